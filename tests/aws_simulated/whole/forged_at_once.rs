//! A tenant hides everything that names its endpoint in the moment of the deletion.

use rstest::rstest;

use super::*;

const CPO_INTENT: &str = "hyperlink.hypershift.openshift.io/cpo-intent";
const ANOTHERS: &str = "com.amazonaws.vpce.us-east-1.vpce-svc-0123456789abcdef0";

/// The control plane is there still, and so are the VPC and the cluster's tags.
#[rstest]
#[case::nothing_is_named(Value::Null, Value::Null)]
#[case::another_service_is_named(json!({"endpointServiceNames": [ANOTHERS]}), json!(ANOTHERS))]
#[tokio::test(start_paused = true)]
async fn endpoint_that_nothing_names_is_reported(#[case] named: Value, #[case] shown: Value) {
    let mut life = Life::new();
    life.until_available().await;
    let recorded = life.cluster.get(CR).unwrap()["metadata"]["annotations"][CPO_INTENT].clone();
    let mut intent: Value = serde_json::from_str(recorded.as_str().unwrap()).unwrap();
    intent["endpointServiceNames"] = named["endpointServiceNames"].clone();
    intent["endpointID"] = Value::Null;
    let forgery = json!({"metadata": {"annotations": {CPO_INTENT: intent.to_string()}},
        "status": {"endpointServiceName": shown, "endpointID": null}});
    life.cluster.forge(CR, &forgery);
    life.cluster
        .delete_at(CR, &(Timestamp::now() - jiff::SignedDuration::from_mins(6)).to_string());
    let endpoint = crate::strangers::live(&life.aws, "vpc-endpoint").remove(0);
    let id = endpoint["id"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    life.cluster.take_events();
    life.run_for(Duration::from_secs(7_200)).await;
    assert!(life.cr().is_none(), "{:#}", life.cluster.get(CR).unwrap());
    let events = life.cluster.take_events();
    let reported = events.iter().find(|note| note.contains(&format!("endpoint {id} to ")));
    assert!(reported.is_some_and(|note| note.contains("stays")), "{events:?}");
    let calls = life.calls_of("DescribeVpcEndpoints").len();
    assert!(calls <= 40, "{calls} reads");
}
