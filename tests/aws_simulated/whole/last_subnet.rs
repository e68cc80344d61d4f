//! AWS may want a subnet in each endpoint, and may take no swap in one call.

use rstest::rstest;

use super::*;
use crate::strangers::live;

/// X22: the workers move to another subnet of the same zone.
#[rstest]
#[case::at_once(true, false, "subnet-00000003")]
#[case::one_after_the_other(false, true, "subnet-00000003")]
#[case::either_way(false, false, "subnet-00000003")]
#[case::not_at_all(true, true, "subnet-00000001")]
#[tokio::test(start_paused = true)]
async fn only_subnet_is_swapped_as_aws_takes_it(
    #[case] is_required: bool,
    #[case] is_swap_refused: bool,
    #[case] expected: &str,
) {
    let mut life = Life::with(|seed| {
        seed["switches"] = json!({"subnets_are_required": is_required, "zone_swap_is_refused": is_swap_refused});
    });
    life.until_available().await;
    let subnet = json!({"spec": {"platform": {"aws": {"subnet": {"id": "subnet-00000003"}}}}});
    life.cluster.forge("clusters/nodepools/a", &subnet);
    life.wake();
    life.aws.clear_journal();
    life.run_for(Duration::from_secs(600)).await;
    life.stays_available_for(Duration::from_secs(7_200)).await;
    let endpoint = live(&life.aws, "vpc-endpoint").remove(0);
    assert_eq!(
        endpoint["subnets"],
        json!([expected]),
        "{:#}",
        life.cluster.get(CR).unwrap()
    );
    assert!(life.is_reachable());
    let tries = life.calls_of("ModifyVpcEndpoint").len();
    assert!((1..=20).contains(&tries), "{tries} tries in two hours");
}
