//! What the paths of many clusters cost while nothing changes.

use super::fleet::{Fleet, Member};
use super::*;

const CLUSTERS: usize = 20;
/// Reads of what is at rest in an hour: one every five minutes.
const READS: usize = 12;

/// The management side reads the endpoint services of an account by lists that its clusters share.
#[tokio::test(start_paused = true)]
async fn twenty_paths_at_rest_share_the_calls_of_the_management_side() {
    let member = |number: usize| Member::new(&format!("c{number}"), number, GUEST, number);
    let members: Vec<Member> = (11..11 + CLUSTERS).map(member).collect();
    let fleet = Fleet::new(&members);
    let all_are_available = |fleet: &Fleet| members.iter().all(|member| fleet.is_available(&member.key(CR)));
    assert!(fleet.run_until(Duration::from_secs(3_600), all_are_available).await);
    // Its own writes are confirmed.
    fleet.run_until(Duration::from_secs(900), |_| false).await;
    fleet.aws.clear_journal();
    fleet.run_until(Duration::from_secs(3_600), |_| false).await;
    assert!(all_are_available(&fleet));
    let journal = fleet.aws.journal();
    assert_eq!(fleet.aws.writes(), Vec::<String>::new());
    let of_ho = journal.iter().filter(|entry| entry.principal.ends_with(":user/ho"));
    let calls: Vec<&str> = of_ho.map(|entry| entry.path.as_str()).collect();
    let most = CLUSTERS * READS / 2;
    assert!(
        (READS..=most).contains(&calls.len()),
        "{} calls in an hour, at most {most}: {calls:?}",
        calls.len()
    );
}
