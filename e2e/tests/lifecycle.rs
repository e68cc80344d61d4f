//! One private cluster's life on the real executable: it becomes available, is repaired and is deleted.

use e2e::azure_sim::Preset;
use e2e::running::Running;
use e2e::scenarios::Scenario;
use e2e::shared_env::leases;
use e2e::{TestEnv, scenario};
use rstest::rstest;

#[rstest]
#[case::plain(Scenario::Plain)]
#[case::with_base_domain(Scenario::Based)]
#[case::with_a_given_nat_subnet(Scenario::Given)]
#[case::with_both(Scenario::Both)]
#[case::with_a_hand_over(Scenario::HandOver)]
fn private_cluster_lives_and_is_deleted(#[case] case: Scenario) {
    scenario(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        leases(&test_env).await?;
        let running = Running::processes(&test_env).await?;
        case.run(&test_env, running).await
    });
}
