use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn take(budgets: &Budgets, action: Action, call: u32, now: Instant) -> Option<Duration> {
    let bucket = Bucket::of("1", "us-east-1", action);
    budgets.take(&bucket, action, &call, Urgency::Awaited, now)
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_come_back_one_after_the_other() {
    let (budgets, now) = (Budgets::default(), Instant::now());
    let create = |call, now| take(&budgets, Action::CreateVpcEndpoint, call, now);
    let waits: Vec<_> = (0..100).map(|call| create(call, now)).collect();
    assert!(waits[..4].iter().all(Option::is_none));
    let mut waiting: BTreeSet<(Instant, u32)> = waits
        .into_iter()
        .zip(0..)
        .filter_map(|(wait, call)| Some((now + wait?, call)))
        .collect();
    assert_eq!(waiting.len(), 96);
    let mut sent = Vec::new();
    while let Some((at, call)) = waiting.pop_first() {
        match create(call, at) {
            None => sent.push((call, at)),
            Some(wait) => drop(waiting.insert((at + wait, call))),
        }
    }
    assert!(sent.is_sorted(), "each in its turn: {sent:?}");
    let last = sent.last().map(|(_, at)| at.duration_since(now).as_secs());
    assert_eq!(last, Some(320), "no turn is lost");
}

#[tokio::test(start_paused = true)]
async fn newcomer_takes_no_turn_of_one_that_waits() {
    let (budgets, now) = (Budgets::default(), Instant::now());
    let create = |call, now| take(&budgets, Action::CreateVpcEndpoint, call, now);
    let waits: Vec<_> = (0..5).map(|call| create(call, now)).collect();
    let turn = now + waits[4].unwrap();
    assert!(create(5, turn).is_some());
    assert_eq!(create(4, turn), None);
}

#[tokio::test(start_paused = true)]
async fn call_that_does_not_come_back_holds_up_nobody() {
    let (budgets, now) = (Budgets::default(), Instant::now());
    let create = |call, now| take(&budgets, Action::CreateVpcEndpoint, call, now);
    for call in 0..30 {
        create(call, now);
    }
    let later = now + Duration::from_secs(150);
    assert_eq!(create(99, later), None);
}

#[tokio::test(start_paused = true)]
async fn thousand_calls_that_are_given_up_hold_up_nobody_for_long() {
    let (budgets, began) = (Budgets::default(), Instant::now());
    let create = |call, now| take(&budgets, Action::CreateVpcEndpoint, call, now);
    for call in 0..1_000 {
        create(call, began);
    }
    let mut now = began;
    while let Some(wait) = create(9_999, now) {
        now += wait;
        assert!(now - began <= Duration::from_secs(120), "{:?}", now - began);
    }
}

#[tokio::test(start_paused = true)]
async fn write_that_waits_holds_up_no_read() {
    let (budgets, now) = (Budgets::default(), Instant::now());
    for call in 0..100 {
        take(&budgets, Action::ChangeResourceRecordSets, call, now);
        take(&budgets, Action::CreateVpcEndpoint, call, now);
    }
    assert_eq!(take(&budgets, Action::ListResourceRecordSets, 0, now), None);
    assert_eq!(take(&budgets, Action::DescribeVpcEndpoints, 0, now), None);
}

#[tokio::test(start_paused = true)]
async fn half_of_a_budget_is_kept_for_what_somebody_waits_for() {
    let (budgets, now) = (Budgets::default(), Instant::now());
    let action = Action::DescribeVpcEndpoints;
    let bucket = Bucket::of("1", "us-east-1", action);
    let routine = |call: &u32| budgets.take(&bucket, action, call, Urgency::Routine { served: 100 }, now);
    assert_eq!((0..100).filter(|call| routine(call).is_none()).count(), 50);
    assert_eq!(take(&budgets, action, 200, now), None, "not behind them");
}

proptest! {
    /// Whatever the times of the calls, no more are sent than AWS grants.
    #[test]
    fn never_more_than_is_granted(calls in prop::collection::vec((0_u64..5_000, 0_u32..20), 1..300)) {
        let (budgets, began) = (Budgets::default(), std::time::Instant::now().into());
        let (mut now, mut sent): (Instant, f64) = (began, 0.0);
        for (gap, call) in calls {
            now += Duration::from_millis(gap);
            let is_sent = take(&budgets, Action::CreateVpcEndpoint, call, now).is_none();
            sent += f64::from(u8::from(is_sent));
            prop_assert!(sent <= 4.0 + now.duration_since(began).as_secs_f64() * 0.3 + 1e-3);
        }
    }
}
