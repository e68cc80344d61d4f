//! What was made though nobody was told: it shows late, and is deleted even so.

use std::time::Duration;

use hyperlink::aws::kinds::Kind;
use hyperlink::aws::kinds::vpc_endpoint::VpcEndpoint;
use hyperlink::engine::plan::{Outcome, ensure_present};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::desired::{allowed_principals, endpoint_service, load_balancer, security_group};
use crate::life::Path;
use crate::process::Process;
use crate::sim::{SimTransport, fault};
use crate::stale::own_endpoint;
use crate::strangers::{live, token};

/// A path up to its endpoint, whose create is not answered, and which no read shows for a minute.
async fn lost_create() -> (Path, VpcEndpoint) {
    let aws = SimTransport::with(|seed| seed["switches"] = json!({"describe_lag_s": 60.0}));
    let (ho, cpo) = (Process::ho(&aws), Process::cpo(&aws));
    ho.ready(Kind::LoadBalancer, &load_balancer()).await;
    let service = ho.present(&endpoint_service()).await;
    ho.present(&allowed_principals()).await;
    let group = cpo.present(&security_group()).await;
    let path = Path {
        aws,
        ho,
        cpo,
        service,
        group,
        endpoint: Value::Null,
    };
    let desired = own_endpoint(&path);
    sleep(Duration::from_secs(60)).await;
    path.aws
        .set_faults(&fault("/CreateVpcEndpoint$", 1, &json!({"drop": "after"})));
    for _ in 0..10 {
        path.cpo
            .reconcile(&desired, |observed| ensure_present(&desired, observed))
            .await;
        if !live(&path.aws, "vpc-endpoint").is_empty() {
            return (path, desired);
        }
        sleep(Duration::from_secs(10)).await;
    }
    panic!("no create was sent")
}

#[tokio::test(start_paused = true)]
async fn endpoint_whose_create_was_not_answered_is_deleted() {
    let (path, desired) = lost_create().await;
    path.cpo.released(&desired, None).await;
    sleep(Duration::from_secs(120)).await;
    assert!(live(&path.aws, "vpc-endpoint").is_empty());
}

#[tokio::test(start_paused = true)]
async fn endpoint_of_a_process_that_ended_is_deleted() {
    let (path, desired) = lost_create().await;
    Process::cpo(&path.aws).released(&desired, None).await;
    sleep(Duration::from_secs(120)).await;
    assert!(live(&path.aws, "vpc-endpoint").is_empty());
}

/// The creates fail for so long that an endpoint has not been found for minutes when the last one takes effect.
#[tokio::test(start_paused = true)]
async fn endpoint_that_the_last_create_made_is_deleted() {
    let (path, desired) = lost_create().await;
    let endpoint = live(&path.aws, "vpc-endpoint").remove(0);
    let now = path.aws.now();
    path.aws.aws().delete_resource(now, endpoint["id"].as_str().unwrap());
    path.aws
        .set_faults(&fault("/CreateVpcEndpoint$", 4, &json!({"drop": "before"})));
    let mut desired = desired;
    desired.client_token = token("second");
    while live(&path.aws, "vpc-endpoint").is_empty() {
        path.cpo
            .reconcile(&desired, |observed| ensure_present(&desired, observed))
            .await;
        let drops = path
            .aws
            .journal()
            .iter()
            .filter(|entry| entry.path.ends_with("/CreateVpcEndpoint"))
            .count();
        if drops == 5 {
            path.aws
                .set_faults(&fault("/CreateVpcEndpoint$", 1, &json!({"drop": "after"})));
        }
        sleep(Duration::from_secs(5)).await;
    }
    path.cpo.released(&desired, None).await;
    sleep(Duration::from_secs(120)).await;
    assert!(live(&path.aws, "vpc-endpoint").is_empty());
}

pub(crate) fn groups(aws: &SimTransport) -> Vec<Value> {
    let mut groups = aws.resources("security-group");
    groups.retain(|group| group["name"] != "default");
    groups
}

#[tokio::test(start_paused = true)]
async fn group_whose_rules_were_refused_is_deleted() {
    let aws = SimTransport::with(|seed| seed["switches"] = json!({"describe_lag_s": 60.0}));
    let refusal = json!({"status": 400, "code": "RulesPerSecurityGroupLimitExceeded"});
    aws.set_faults(&fault("/AuthorizeSecurityGroupIngress$", 9, &refusal));
    let (cpo, group) = (Process::cpo(&aws), security_group());
    cpo.reconcile(&group, |observed| ensure_present(&group, observed)).await;
    assert_eq!(groups(&aws).len(), 1);
    cpo.released(&group, None).await;
    assert_eq!(groups(&aws), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn refused_rules_of_a_new_group_are_reported() {
    let aws = SimTransport::with(|seed| seed["switches"] = json!({"describe_lag_s": 60.0}));
    let code = "RulesPerSecurityGroupLimitExceeded";
    let refusal = json!({"status": 400, "code": code});
    aws.set_faults(&fault("/AuthorizeSecurityGroupIngress$", 99, &refusal));
    let (cpo, group) = (Process::cpo(&aws), security_group());
    for _ in 0..30 {
        let (_, outcome) = cpo.reconcile(&group, |observed| ensure_present(&group, observed)).await;
        if matches!(&outcome, Outcome::Failed(error) if error.code == code) {
            assert_eq!(groups(&aws).len(), 1);
            return;
        }
        sleep(Duration::from_secs(5)).await;
    }
    panic!("never reported")
}
