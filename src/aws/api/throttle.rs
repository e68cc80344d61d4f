//! Which actions AWS throttles, and until when calls of them are held back. AWS has a token bucket for each account,
//! region and action, and for Route 53 one for each account
//! (<https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html>,
//! <https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DNSLimitations.html>). It does not say for how long.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyperlink_engine::chance::chance;
use hyperlink_engine::urgency::Urgency;
use tokio::time::Instant;

use crate::api::action::Action;
use crate::endpoints::Service;

/// How long calls of a throttled action are held back at first. It doubles each time that it was too short.
const FIRST_WAIT: Duration = Duration::from_secs(30);

/// The longest that calls of a throttled action are held back.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// The time between two calls of an action that come back when it is not held back any more.
const GAP: Duration = Duration::from_millis(100);

/// How long after an action is free again the last of the calls comes back that wait for it.
const LAST_TURN: Duration = Duration::from_secs(60);

/// How long it is remembered that an action was throttled.
const REMEMBERED: Duration = Duration::from_secs(900);

/// What a call draws on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bucket {
    account: String,
    region: String,
    /// None for all actions together.
    action: Option<Action>,
}

impl Bucket {
    /// The bucket of a call in this account, and in this region where the service is regional.
    pub fn of(account: &str, region: &str, action: Action) -> Self {
        let of_all = action.service() == Service::Route53;
        Self {
            account: account.to_owned(),
            region: if of_all { String::new() } else { region.to_owned() },
            action: (!of_all).then_some(action),
        }
    }

    /// The longest hold. An endpoint is created once for each cluster, and AWS allows an account one in three seconds:
    /// of a hundred processes that wait for that, those that wait longer leave it unused.
    fn longest_wait(&self) -> Duration {
        match self.action {
            Some(Action::CreateVpcEndpoint) => FIRST_WAIT,
            _ => LONGEST_WAIT,
        }
    }
}

/// What is known of a bucket that was empty.
#[derive(Debug)]
struct State {
    /// When the hold began, and when it ends.
    began: Instant,
    until: Instant,
    /// How many holds there were in a row.
    in_a_row: u32,
    /// The times that the next calls get that have to wait, those for which somebody waits and the others: each gets a
    /// later one, so that they do not come back together.
    turns: [Instant; 2],
}

impl State {
    fn wait(&mut self, urgency: Urgency, now: Instant) -> Option<Duration> {
        if self.until <= now {
            return None;
        }
        let next = &mut self.turns[usize::from(!urgency.is_awaited())];
        let turn = (*next).clamp(self.until, self.until + LAST_TURN);
        *next = turn + GAP;
        Some(turn - now)
    }
}

/// The buckets that were empty. All identities share it.
#[derive(Debug, Default)]
pub struct Throttle(Mutex<HashMap<Bucket, State>>);

impl Throttle {
    fn states(&self) -> MutexGuard<'_, HashMap<Bucket, State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a call has to wait; none if it may be sent.
    pub fn wait(&self, bucket: &Bucket, urgency: Urgency, now: Instant) -> Option<Duration> {
        self.states().get_mut(bucket)?.wait(urgency, now)
    }

    /// Notes that AWS throttled a call that was sent at `sent`. Returns how long calls are held back now. Calls that
    /// were under way together are throttled together, and count once.
    pub fn note_throttled(&self, bucket: &Bucket, sent: Instant, now: Instant) -> Duration {
        let mut states = self.states();
        states.retain(|_, state| now.saturating_duration_since(state.until) < REMEMBERED);
        let in_a_row = match states.get(bucket) {
            Some(state) if sent < state.began => return state.until.saturating_duration_since(now).max(GAP),
            Some(state) => state.in_a_row,
            None => 0,
        };
        let wait = FIRST_WAIT
            .saturating_mul(1 << in_a_row.min(8))
            .min(bucket.longest_wait());
        // The longer the wait, the less of it need be left to chance.
        let until = now
            + wait
                .mul_f64(1.0 + chance())
                .min(LONGEST_WAIT.mul_f64(1.0 + 0.2 * chance()));
        let held = State {
            began: now,
            until,
            in_a_row: in_a_row + 1,
            turns: [until; 2],
        };
        states.insert(bucket.clone(), held);
        until - now
    }

    /// Notes that AWS answered a call that was sent at `sent`: the last hold was long enough.
    pub fn note_answered(&self, bucket: &Bucket, sent: Instant) {
        let mut states = self.states();
        if states.get(bucket).is_some_and(|state| sent >= state.until) {
            states.remove(bucket);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn bucket(account: &str, action: Action) -> Bucket {
        Bucket::of(account, "us-east-1", action)
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_throttled_action_of_the_account_is_held_back() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        let creates = bucket("1", Action::CreateVpcEndpoint);
        let hold = throttle.note_throttled(&creates, now, now);
        assert!((FIRST_WAIT..=FIRST_WAIT * 2).contains(&hold), "{hold:?}");
        let wait = |bucket: &Bucket| throttle.wait(bucket, Urgency::Awaited, now);
        assert_eq!(wait(&creates), Some(hold));
        assert_eq!(wait(&bucket("2", Action::CreateVpcEndpoint)), None);
        assert_eq!(wait(&bucket("1", Action::DescribeVpcEndpoints)), None);
        assert_eq!(wait(&Bucket::of("1", "eu-west-1", Action::CreateVpcEndpoint)), None);
        assert_eq!(throttle.wait(&creates, Urgency::Awaited, now + hold), None);
    }

    #[tokio::test(start_paused = true)]
    async fn route_53_is_held_back_as_a_whole_account() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        throttle.note_throttled(&bucket("1", Action::ListHostedZones), now, now);
        let elsewhere = Bucket::of("1", "eu-west-1", Action::ChangeResourceRecordSets);
        assert!(throttle.wait(&elsewhere, Urgency::Awaited, now).is_some());
        let other = bucket("2", Action::ListHostedZones);
        assert_eq!(throttle.wait(&other, Urgency::Awaited, now), None);
    }

    #[tokio::test(start_paused = true)]
    async fn hold_doubles_until_it_is_long_enough() {
        let (throttle, mut now) = (Throttle::default(), Instant::now());
        let bucket = bucket("1", Action::CreateSecurityGroup);
        for least in [30, 60, 120, 240, 300, 300] {
            let hold = throttle.note_throttled(&bucket, now, now);
            assert!(
                (secs(least)..=(secs(least) * 2).min(secs(360))).contains(&hold),
                "{hold:?}"
            );
            now += hold;
        }
        throttle.note_answered(&bucket, now);
        let hold = throttle.note_throttled(&bucket, now, now);
        assert!(hold <= secs(60), "{hold:?}: as at first");
    }

    #[tokio::test(start_paused = true)]
    async fn what_many_processes_wait_for_is_never_held_for_long() {
        let (throttle, mut now) = (Throttle::default(), Instant::now());
        for _ in 0..6 {
            let hold = throttle.note_throttled(&bucket("1", Action::CreateVpcEndpoint), now, now);
            assert!((secs(30)..=secs(60)).contains(&hold), "{hold:?}");
            now += hold;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_were_under_way_together_count_once() {
        let (throttle, sent) = (Throttle::default(), Instant::now());
        let bucket = bucket("1", Action::CreateVpcEndpoint);
        let holds = (1..=20).map(|n| throttle.note_throttled(&bucket, sent, sent + secs(n)));
        assert!(holds.max() <= Some(secs(60)));
        throttle.note_answered(&bucket, sent);
        assert!(
            throttle.wait(&bucket, Urgency::Awaited, sent + secs(21)).is_some(),
            "an answer to an earlier call frees nothing"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_wait_do_not_come_back_together() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        let bucket = bucket("1", Action::DescribeVpcEndpoints);
        let hold = throttle.note_throttled(&bucket, now, now);
        let routine = Urgency::Routine { served: 100 };
        let waits: BTreeSet<_> = (0..100).filter_map(|_| throttle.wait(&bucket, routine, now)).collect();
        assert_eq!((waits.len(), waits.first()), (100, Some(&hold)));
        assert!(waits.last() <= Some(&(hold + LAST_TURN)));
        assert_eq!(
            throttle.wait(&bucket, Urgency::Awaited, now),
            Some(hold),
            "not behind them"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn buckets_that_were_not_empty_lately_are_forgotten() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for account in 0..100 {
            throttle.note_throttled(&bucket(&account.to_string(), Action::CreateTags), now, now);
        }
        let later = now + secs(1_300);
        throttle.note_throttled(&bucket("x", Action::CreateTags), later, later);
        assert_eq!(throttle.states().len(), 1);
    }
}
