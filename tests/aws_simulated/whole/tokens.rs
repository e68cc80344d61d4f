//! Client tokens that AWS takes no more: the answer to a create was lost, and the tags have changed since.

use rstest::rstest;

use super::*;
use crate::sim::fault;
use crate::strangers::live;

/// A life up to a create of which only AWS knows, after which the tags have changed.
async fn with_lost_create(mut life: Life, call: &str, kind: &str) -> Life {
    let rule = fault(&format!("/{call}$"), 1, &json!({"drop": "after"}));
    life.aws.set_faults(&rule);
    while life.aws.resources(kind).is_empty() {
        life.reconcile_next().await;
    }
    let tags = json!({"spec": {"resourceTags": [{"key": "team", "value": "payments"}]}});
    life.cluster.forge(CR, &tags);
    life
}

fn refused(life: &Life) -> usize {
    let code = Some("IdempotentParameterMismatch");
    let journal = life.aws.journal();
    journal.iter().filter(|entry| entry.code.as_deref() == code).count()
}

#[rstest]
#[case::endpoint("CreateVpcEndpoint", "vpc-endpoint")]
#[case::service("CreateVpcEndpointServiceConfiguration", "vpc-endpoint-service")]
#[tokio::test(start_paused = true)]
async fn what_a_spent_token_made_is_gone_and_recreated(#[case] call: &str, #[case] kind: &str) {
    let mut life = with_lost_create(Life::new(), call, kind).await;
    let (now, made) = (life.aws.now(), life.aws.resources(kind).remove(0));
    life.aws.aws().delete_resource(now, made["id"].as_str().unwrap());
    life.until_available().await;
    assert!(life.is_reachable());
    let refused = refused(&life);
    assert!((1..=4).contains(&refused), "{refused} creates were refused");
    assert_eq!(live(&life.aws, kind).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_spent_token_made_is_adopted_when_it_shows() {
    let life = Life::with(|seed| seed["switches"] = json!({"describe_lag_s": 60.0}));
    let kind = "vpc-endpoint-service";
    let mut life = with_lost_create(life, "CreateVpcEndpointServiceConfiguration", kind).await;
    life.until_available().await;
    assert!(life.is_reachable() && refused(&life) > 0);
    assert_eq!(live(&life.aws, kind).len(), 1);
}
