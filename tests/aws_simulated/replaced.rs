//! What is replaced: endpoints that fail, and rules where not all fit; and endpoints of others beside the own one.

use std::time::Duration;

use hyperlink::aws::cloud::Aws;
use hyperlink::aws::owner_tags::CLUSTER_ID_TAG;
use hyperlink::engine::cloud::Cloud;
use hyperlink::engine::plan::{Outcome, Verb, ensure_present};
use hyperlink::engine::resource::Observed;
use serde_json::json;
use tokio::time::sleep;

use crate::desired::{GUEST, security_group, vpc_endpoint};
use crate::life::Path;
use crate::principals::count;
use crate::process::Process;
use crate::sim::{SimTransport, fault};
use crate::strangers::{live, token};

const OTHERS_ID: &str = "vpce-0aaaaaaaaaaaaaaaa";

#[tokio::test(start_paused = true)]
async fn rules_are_swapped_where_both_do_not_fit() {
    let aws = SimTransport::with(|seed| seed["accounts"][1]["quotas"] = json!({"rules_per_group": 2}));
    let (cpo, mut group) = (Process::cpo(&aws), security_group());
    cpo.present(&group).await;
    group.ranges = ["10.2.0.0/16", "10.3.0.0/16"]
        .map(|range| range.parse().unwrap())
        .into();
    cpo.forget(&group.slot);
    cpo.present(&group).await;
    let mut shown = aws.resources("security-group");
    shown.retain(|shown| shown["name"] != "default");
    let rules: Vec<&str> = shown[0]["ingress"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|rule| rule["source"]["ipv4"].as_str())
        .collect();
    assert_eq!(rules, ["10.2.0.0/16", "10.3.0.0/16"]);
}

#[tokio::test(start_paused = true)]
async fn endpoint_that_fails_is_replaced_ever_more_rarely() {
    let path = Path::made().await;
    let endpoint = path.aws.resources("vpc-endpoint").remove(0);
    path.aws.change(endpoint, |body| body["state"] = json!("failed"));
    path.aws
        .set_faults(&fault("/CreateVpcEndpoint$", 1_000, &json!({"ends": "failed"})));
    path.aws.clear_journal();
    let mut desired = vpc_endpoint(
        path.service_name(),
        Aws::instance(&path.group),
        &["subnet-1", "subnet-2"],
    );
    path.cpo.forget(&desired.slot);
    let began = path.aws.elapsed();
    let mut replaced = 0;
    while path.aws.elapsed() < began + 7_200 {
        let creates = count(&path.aws, "/CreateVpcEndpoint");
        desired.client_token = token(&format!("token-{creates}"));
        let (step, outcome) = path
            .cpo
            .reconcile(&desired, |observed| {
                if let Observed::Found(body) = observed {
                    assert_ne!(body["State"], "deleted");
                }
                ensure_present(&desired, observed)
            })
            .await;
        replaced += usize::from(step.verb == Verb::Delete && outcome == Outcome::Accepted);
        sleep(Duration::from_secs(20)).await;
    }
    // At once, and 10, 30 and 70 minutes later.
    assert_eq!(replaced, 4);
    let creates = count(&path.aws, "/CreateVpcEndpoint");
    assert!(creates <= 4, "{creates} creates");
}

/// Another cluster's endpoint to the same service in the same network, which is older.
async fn beside_another() -> Path {
    let path = Path::made().await;
    let mut body = path.aws.resources("vpc-endpoint").remove(0);
    body["id"] = json!(format!("arn:aws:ec2:us-east-1:{GUEST}:vpc-endpoint/{OTHERS_ID}"));
    body["created"] = json!("2020-01-01T00:00:00Z");
    body["tags"] = json!({CLUSTER_ID_TAG: "other"});
    path.aws.change(body, |_| {});
    path.aws.clear_journal();
    path
}

#[tokio::test(start_paused = true)]
async fn older_endpoint_of_another_cluster_hides_no_own_one() {
    let path = beside_another().await;
    let mut desired = vpc_endpoint(
        path.service_name(),
        Aws::instance(&path.group),
        &["subnet-1", "subnet-2"],
    );
    desired.client_token = token("own");
    let found = Process::cpo(&path.aws).present(&desired).await;
    assert_eq!(Aws::instance(&found), Aws::instance(&path.endpoint));
    assert_eq!(path.aws.writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn own_endpoint_beside_an_older_foreign_one_is_deleted() {
    let path = beside_another().await;
    let desired = vpc_endpoint(path.service_name(), Aws::instance(&path.group), &[]);
    let is_left = Process::cpo(&path.aws).released(&desired, None).await;
    assert!(is_left, "the foreign one is reported");
    let left = live(&path.aws, "vpc-endpoint");
    assert!(
        left.len() == 1 && left[0]["id"].as_str().unwrap().ends_with(OTHERS_ID),
        "{left:#?}"
    );
    let deletes = path.aws.writes();
    assert_eq!(deletes, ["/ec2/DeleteVpcEndpoints"]);
}
