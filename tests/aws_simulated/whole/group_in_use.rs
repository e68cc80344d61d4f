//! AWS still has a network interface in the security group while the path is deleted.

use rstest::rstest;

use super::*;
use crate::sim::fault;

/// The waits between the tries grow up to half a minute, and no rule is revoked: the group is deleted whole.
#[rstest]
#[tokio::test(start_paused = true)]
async fn group_in_use_is_tried_after_ten_twenty_thirty_seconds(#[values(2, 6)] refusals: u64) {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    let busy = json!({"status": 400, "code": "DependencyViolation"});
    life.aws.set_faults(&fault("/DeleteSecurityGroup$", refusals, &busy));
    life.aws.clear_journal();
    life.deleted().await;
    assert_eq!(life.remains(), empty);
    let tries = life.calls_of("DeleteSecurityGroup");
    assert!(tries.len() as u64 > refusals, "{tries:?}");
    let waits = tries.windows(2).map(|two| two[1].duration_since(two[0]).as_secs());
    let least = [10, 20].into_iter().chain(std::iter::repeat(30));
    for (at, (wait, least)) in waits.zip(least).enumerate() {
        assert!(
            (least..=least + 5).contains(&wait),
            "{wait} s after try {at}: {tries:?}"
        );
    }
    for action in ["RevokeSecurityGroupIngress", "RevokeSecurityGroupEgress"] {
        assert_eq!(life.calls_of(action), [], "{action}");
    }
}
