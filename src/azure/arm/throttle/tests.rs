use super::*;

const ROUTINE: Urgency = Urgency::Routine { served: 500 };

fn draw(subscription: &SubscriptionId, budget: Budget, kind: Kind, urgency: Urgency) -> Draw<'_> {
    Draw {
        subscription,
        budget,
        kind,
        urgency,
    }
}

struct NoCounters;

impl Counters for NoCounters {
    fn call(&self, _: crate::arm::ports::ObservedCall) {}
    fn budget(&self, _: &'static str, _: u64) {}
    fn call_budget_exhausted(&self, _: Kind) {}
}

fn headers(name: &'static str, left: u64) -> HeaderMap {
    HeaderMap::from_iter([(http::HeaderName::from_static(name), left.into())])
}

const OF_DNS: &str = "x-ms-ratelimit-remaining-subscription-resource-requests";

#[tokio::test(start_paused = true)]
async fn later_answer_makes_no_wait_shorter() {
    let (throttle, one) = (Throttle::default(), SubscriptionId::parse("a").unwrap());
    let now = Instant::now();
    let draw = draw(&one, Budget::Reads, Kind::PrivateDnsZone, Urgency::Awaited);
    for seconds in [300, 60] {
        throttle.note_exhausted(&draw, Counts::Arm, Duration::from_secs(seconds), now);
    }
    assert_eq!(throttle.wait(&draw, now), Some(Duration::from_secs(300)));
}

#[tokio::test(start_paused = true)]
async fn a_used_up_budget_holds_its_own_kind_of_call_until_its_time() {
    let (throttle, one, two) = (
        Throttle::default(),
        SubscriptionId::parse("a").unwrap(),
        SubscriptionId::parse("b").unwrap(),
    );
    let now = Instant::now();
    let of = |subscription, budget, kind| draw(subscription, budget, kind, Urgency::Awaited);
    throttle.note_exhausted(
        &of(&one, Budget::Writes, Kind::PrivateDnsZone),
        Counts::Arm,
        Duration::from_secs(30),
        now,
    );
    let wait = |subscription, budget, kind, later| {
        throttle.wait(&of(subscription, budget, kind), now + Duration::from_secs(later))
    };
    assert_eq!(
        wait(&one, Budget::Writes, Kind::PrivateDnsZone, 0),
        Some(Duration::from_secs(30))
    );
    assert_eq!(wait(&one, Budget::Reads, Kind::PrivateDnsZone, 0), None);
    assert_eq!(wait(&two, Budget::Writes, Kind::PrivateDnsZone, 0), None);
    assert_eq!(wait(&one, Budget::Writes, Kind::PrivateDnsZone, 30), None);
    let private_dns = Counts::Service(Kind::PrivateDnsZone.spec().service);
    throttle.note_exhausted(
        &of(&two, Budget::Reads, Kind::PrivateDnsZone),
        private_dns,
        Duration::from_secs(30),
        now,
    );
    assert_eq!(
        wait(&two, Budget::Reads, Kind::RecordSet, 0),
        Some(Duration::from_secs(30))
    );
    assert_eq!(wait(&two, Budget::Reads, Kind::PrivateEndpoint, 0), None);
}

#[tokio::test(start_paused = true)]
async fn those_that_wait_for_a_budget_do_not_come_back_together() {
    let (throttle, one) = (Throttle::default(), SubscriptionId::parse("a").unwrap());
    let now = Instant::now();
    let draw = draw(&one, Budget::Reads, Kind::PrivateDnsZone, Urgency::Awaited);
    throttle.note_exhausted(&draw, Counts::Arm, Duration::from_secs(10), now);
    let waits: std::collections::BTreeSet<_> = (0..100).map(|_| throttle.wait(&draw, now).unwrap()).collect();
    assert_eq!(waits.len(), 100);
    assert_eq!(waits.first(), Some(&Duration::from_secs(10)));
    assert!(waits.last() < Some(&Duration::from_secs(21)));
}

/// How many routine reads of private DNS may be sent in so many seconds, if each is asked for again when its wait ends.
fn routine_reads(throttle: &Throttle, subscription: &SubscriptionId, began: Instant, seconds: u64) -> usize {
    let draw = draw(subscription, Budget::Reads, Kind::RecordSet, ROUTINE);
    let end = began + Duration::from_secs(seconds);
    let mut due: std::collections::BinaryHeap<_> = (0..2_000).map(|_| std::cmp::Reverse(began)).collect();
    let mut sent = 0;
    while let Some(std::cmp::Reverse(now)) = due.pop().filter(|next| next.0 < end) {
        match throttle.wait(&draw, now) {
            None => sent += 1,
            Some(wait) => due.push(std::cmp::Reverse(now + wait)),
        }
    }
    sent
}

#[tokio::test(start_paused = true)]
async fn verification_uses_half_of_a_budget() {
    let (throttle, one) = (Throttle::default(), SubscriptionId::parse("a").unwrap());
    let sent = routine_reads(&throttle, &one, Instant::now(), 300);
    assert!(
        (400..=500).contains(&sent),
        "{sent}: the burst, and what came in five minutes"
    );
    let waited_for = draw(&one, Budget::Reads, Kind::RecordSet, Urgency::Awaited);
    assert_eq!(
        throttle.wait(&waited_for, Instant::now()),
        None,
        "the other half is free"
    );
}

#[tokio::test(start_paused = true)]
async fn verification_waits_when_an_answer_tells_that_little_is_left() {
    let (throttle, one) = (Throttle::default(), SubscriptionId::parse("a").unwrap());
    let now = Instant::now();
    let routine = draw(&one, Budget::Reads, Kind::RecordSet, ROUTINE);
    throttle.note_left(&routine, &headers(OF_DNS, 499), &NoCounters, now);
    assert_eq!(throttle.wait(&routine, now), None);
    throttle.note_left(&routine, &headers(OF_DNS, 240), &NoCounters, now);
    assert!(throttle.wait(&routine, now).is_some());
    let of_endpoints = draw(&one, Budget::Reads, Kind::PrivateEndpoint, ROUTINE);
    assert_eq!(throttle.wait(&of_endpoints, now), None, "they have another budget");
}

#[tokio::test(start_paused = true)]
async fn budget_that_azure_lowers_is_shared_as_it_is() {
    let (throttle, one) = (Throttle::default(), SubscriptionId::parse("a").unwrap());
    let now = Instant::now();
    let routine = draw(&one, Budget::Reads, Kind::RecordSet, ROUTINE);
    throttle.note_left(&routine, &headers(OF_DNS, 99), &NoCounters, now);
    let sent = routine_reads(&throttle, &one, now, 300);
    assert!(
        (80..=105).contains(&sent),
        "{sent}: half of a hundred at once, and half of what came"
    );
}

const OF_ARM: &str = "x-ms-ratelimit-remaining-subscription-reads";

/// How long a routine read waits in all, if it asks again when each wait ends.
fn waited(throttle: &Throttle, draw: &Draw<'_>, began: Instant) -> Duration {
    let mut now = began;
    for _ in 0..1_000 {
        match throttle.wait(draw, now) {
            None => break,
            Some(wait) => now += wait,
        }
    }
    now - began
}

#[tokio::test(start_paused = true)]
async fn budget_of_which_nothing_is_left_opens_again() {
    let one = SubscriptionId::parse("a").unwrap();
    let routine = draw(&one, Budget::Reads, Kind::RecordSet, ROUTINE);
    for (header, noted_before) in [(OF_DNS, None), (OF_ARM, None), (OF_ARM, Some(249))] {
        let (throttle, mut now) = (Throttle::default(), Instant::now());
        if let Some(left) = noted_before {
            throttle.note_left(&routine, &headers(header, left), &NoCounters, now);
            now += REMEMBERED + Duration::from_secs(1);
        }
        throttle.note_left(&routine, &headers(header, 0), &NoCounters, now);
        let waited = waited(&throttle, &routine, now);
        assert!(waited <= REMEMBERED, "{header}: {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn crowd_that_verifies_is_not_put_off_for_hours() {
    let (throttle, one) = (Throttle::default(), SubscriptionId::parse("a").unwrap());
    let now = Instant::now();
    let routine = draw(&one, Budget::Reads, Kind::RecordSet, ROUTINE);
    throttle.note_left(&routine, &headers(OF_DNS, 1), &NoCounters, now);
    let longest = (0..1_000).filter_map(|_| throttle.wait(&routine, now)).max();
    assert_eq!(longest, Some(Duration::from_secs(300)));
    throttle.note_left(&routine, &headers(OF_DNS, 499), &NoCounters, now);
    assert!(
        throttle.wait(&routine, now) < Some(Duration::from_secs(5)),
        "the budget is full again"
    );
}

#[tokio::test(start_paused = true)]
async fn crowd_that_verifies_is_behind_what_somebody_waits_for() {
    let (throttle, one) = (Throttle::default(), SubscriptionId::parse("a").unwrap());
    let now = Instant::now();
    let of = |urgency| draw(&one, Budget::Reads, Kind::Subnet, urgency);
    throttle.note_exhausted(&of(ROUTINE), Counts::Arm, Duration::from_secs(10), now);
    let longest = (0..5_000).filter_map(|_| throttle.wait(&of(ROUTINE), now)).max();
    assert!(longest <= Some(Duration::from_secs(71)), "{longest:?}");
    assert_eq!(throttle.wait(&of(Urgency::Awaited), now), Some(Duration::from_secs(10)));
}
