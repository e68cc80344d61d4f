//! Answers that are lost, refused or late, on each call.

use hyperlink::aws::kinds::Kind;
use serde_json::{Value, json};

use crate::desired::{endpoint_service, load_balancer};
use crate::life::Path;
use crate::process::Process;
use crate::sim::{SimTransport, fault};

/// The calls of a path's life.
const CALLS: [&str; 15] = [
    "DescribeLoadBalancers",
    "DescribeVpcEndpointServiceConfigurations",
    "CreateVpcEndpointServiceConfiguration",
    "DescribeVpcEndpointServicePermissions",
    "ModifyVpcEndpointServicePermissions",
    "DescribeSecurityGroups",
    "CreateSecurityGroup",
    "AuthorizeSecurityGroupIngress",
    "DescribeVpcEndpoints",
    "CreateVpcEndpoint",
    "ListResourceRecordSets",
    "ChangeResourceRecordSets",
    "DeleteVpcEndpoints",
    "DeleteSecurityGroup",
    "DeleteVpcEndpointServiceConfigurations",
];

/// A life in which `times` calls of each action fail like this: there is one path, and nothing is left of it.
async fn life_with(times: u64, action: &Value) {
    for call in CALLS {
        let aws = SimTransport::new();
        aws.set_faults(&fault(&format!("/{call}$"), times, action));
        let (ho, cpo) = (Process::ho(&aws), Process::cpo(&aws));
        let path = Path::made_by(aws, ho, cpo).await;
        path.assert_reachable();
        for kind in ["vpc-endpoint", "vpc-endpoint-service"] {
            assert_eq!(path.aws.resources(kind).len(), 1, "{call}: {kind}");
        }
        path.deleted().await;
        path.assert_nothing_left();
        let calls = path.aws.journal().len();
        assert!(calls <= 90, "{call}: {calls} calls");
    }
}

#[tokio::test(start_paused = true)]
async fn lost_answers_make_nothing_twice() {
    life_with(2, &json!({"drop": "after"})).await;
}

#[tokio::test(start_paused = true)]
async fn calls_that_never_arrive_are_made_again() {
    life_with(2, &json!({"drop": "before"})).await;
}

#[tokio::test(start_paused = true)]
async fn unavailable_service_is_waited_for() {
    life_with(3, &json!({"status": 503, "code": "Unavailable"})).await;
}

#[tokio::test(start_paused = true)]
async fn throttled_calls_are_held_back() {
    life_with(2, &json!({"status": 503, "code": "RequestLimitExceeded"})).await;
}

#[tokio::test(start_paused = true)]
async fn hidden_endpoint_whose_answer_was_lost_is_not_created_twice() {
    let aws = SimTransport::with(|seed| seed["switches"] = json!({"describe_lag_s": 60.0}));
    // The first one comes too early for the new endpoint service.
    aws.set_faults(&fault("/CreateVpcEndpoint$", 2, &json!({"drop": "after"})));
    let (ho, cpo) = (Process::ho(&aws), Process::cpo(&aws));
    let path = Path::made_by(aws, ho, cpo).await;
    path.assert_reachable();
    assert_eq!(path.aws.resources("vpc-endpoint").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn process_that_does_not_lead_writes_nothing() {
    let aws = SimTransport::new();
    let ho = Process::ho(&aws);
    ho.gate.shut();
    ho.ready(Kind::LoadBalancer, &load_balancer()).await;
    let service = endpoint_service();
    ho.reconcile(&service, |observed| {
        hyperlink::engine::plan::ensure_present(&service, observed)
    })
    .await;
    assert_eq!(aws.writes(), Vec::<String>::new());
    assert!(aws.resources("vpc-endpoint-service").is_empty());
}
