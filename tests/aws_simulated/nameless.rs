//! An available endpoint that has no DNS name.

use hyperlink::aws::cloud::Aws;
use hyperlink::engine::cloud::Cloud;
use hyperlink::engine::plan::{Verb, ensure_absent, ensure_present};
use serde_json::json;

use crate::life::Path;
use crate::process::Process;
use crate::sim::fault;
use crate::stale::own_endpoint;
use crate::strangers::live;

/// The endpoint is shown as available, without a name, and in one subnet.
fn shown_without_a_name(path: &Path) {
    let id = Aws::instance(&path.endpoint);
    let body = format!(
        "<DescribeVpcEndpointsResponse><vpcEndpointSet><item><vpcEndpointId>{id}</vpcEndpointId>\
         <vpcEndpointType>Interface</vpcEndpointType><vpcId>vpc-2</vpcId><serviceName>{}</serviceName>\
         <state>available</state><subnetIdSet><item>subnet-1</item></subnetIdSet>\
         <tagSet><item><key>AWSEndpointService</key><value>private-router</value></item></tagSet></item></vpcEndpointSet>\
         </DescribeVpcEndpointsResponse>",
        path.service_name()
    );
    path.aws
        .set_faults(&fault("/DescribeVpcEndpoints$", 3, &json!({ "body": body })));
}

#[tokio::test(start_paused = true)]
async fn available_endpoint_without_a_name_is_deleted() {
    let path = Path::made().await;
    shown_without_a_name(&path);
    let (cpo, desired) = (Process::cpo(&path.aws), own_endpoint(&path));
    let (step, _) = cpo
        .reconcile(&desired, |observed| ensure_absent(&desired, observed))
        .await;
    assert_eq!(step.verb, Verb::Delete);
    assert!(live(&path.aws, "vpc-endpoint").is_empty());
}

#[tokio::test(start_paused = true)]
async fn endpoint_without_a_name_is_repaired_and_not_ready() {
    let path = Path::made().await;
    shown_without_a_name(&path);
    let (cpo, mut desired) = (Process::cpo(&path.aws), own_endpoint(&path));
    let (step, _) = cpo
        .reconcile(&desired, |observed| ensure_present(&desired, observed))
        .await;
    assert!(matches!(step.verb, Verb::Put(_)), "{step:?}");
    let cpo = Process::cpo(&path.aws);
    shown_without_a_name(&path);
    desired.subnets = ["subnet-1".to_owned()].into();
    let shown = cpo
        .reconcile(&desired, |observed| ensure_present(&desired, observed))
        .await;
    assert!(shown.0.ready().is_none(), "{shown:?}");
}
