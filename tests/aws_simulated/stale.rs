//! Answers of describe calls that do not show for a moment what is there.

use hyperlink::aws::cloud::Aws;
use hyperlink::aws::kinds::vpc_endpoint::VpcEndpoint;
use hyperlink::engine::cloud::Cloud;
use serde_json::{Value, json};

use crate::desired::vpc_endpoint;
use crate::life::Path;
use crate::process::Process;
use crate::sim::fault;
use crate::strangers::{live, token};

/// The endpoint of a path, with a token that made no other one.
pub(crate) fn own_endpoint(path: &Path) -> VpcEndpoint {
    let group = Aws::instance(&path.group);
    let mut desired = vpc_endpoint(path.service_name(), group, &["subnet-1", "subnet-2"]);
    desired.client_token = token("own");
    desired
}

/// The next answers show no endpoint.
fn nothing_shown(times: u64) -> Value {
    let body = "<DescribeVpcEndpointsResponse><vpcEndpointSet/></DescribeVpcEndpointsResponse>";
    fault("/DescribeVpcEndpoints$", times, &json!({ "body": body }))
}

#[tokio::test(start_paused = true)]
async fn stale_answer_after_a_start_makes_no_second_endpoint() {
    let path = Path::made().await;
    let desired = own_endpoint(&path);
    let cpo = Process::cpo(&path.aws);
    path.aws.set_faults(&nothing_shown(1));
    cpo.present(&desired).await;
    assert_eq!(live(&path.aws, "vpc-endpoint").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn stale_answer_to_a_recorded_id_makes_no_second_one() {
    let path = Path::made().await;
    let desired = own_endpoint(&path);
    let cpo = Process::cpo(&path.aws);
    cpo.note_recorded(&desired.slot, Aws::instance(&path.endpoint));
    // By filter and by id, and later by filter again.
    path.aws.set_faults(&nothing_shown(3));
    cpo.present(&desired).await;
    assert_eq!(live(&path.aws, "vpc-endpoint").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn missed_endpoint_is_read_again_ten_seconds_later() {
    let path = Path::made().await;
    let desired = own_endpoint(&path);
    path.cpo.forget(&desired.slot);
    path.aws.set_faults(&nothing_shown(3));
    let missed_at = path.aws.elapsed();
    path.cpo.present(&desired).await;
    assert!(
        path.aws.elapsed() - missed_at >= 10,
        "{} s",
        path.aws.elapsed() - missed_at
    );
    assert_eq!(live(&path.aws, "vpc-endpoint").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn endpoint_that_is_gone_is_created_again_soon() {
    let path = Path::made().await;
    let desired = own_endpoint(&path);
    let endpoint = path.aws.resources("vpc-endpoint").remove(0);
    let now = path.aws.now();
    path.aws.aws().delete_resource(now, endpoint["id"].as_str().unwrap());
    path.cpo.forget(&desired.slot);
    let missed_at = path.aws.elapsed();
    path.cpo.present(&desired).await;
    assert!(
        path.aws.elapsed() - missed_at <= 150,
        "{} s",
        path.aws.elapsed() - missed_at
    );
    assert_eq!(live(&path.aws, "vpc-endpoint").len(), 1);
}
