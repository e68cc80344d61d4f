//! Connections of an endpoint service that nobody may read.

use super::*;
use crate::sim::fault;

const ALWAYS: u64 = 1_000_000;

#[tokio::test(start_paused = true)]
async fn service_is_deleted_though_nobody_may_read_its_connections() {
    let mut life = Life::new();
    life.until_available().await;
    let denied = json!({"status": 403, "code": "UnauthorizedOperation"});
    let rule = fault("/DescribeVpcEndpointConnections$", ALWAYS, &denied);
    life.aws.set_faults(&rule);
    life.deleted().await;
    assert_eq!(life.remains(), Vec::<String>::new());
}
