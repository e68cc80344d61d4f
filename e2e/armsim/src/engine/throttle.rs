//! Budgets of calls: ARM's token buckets and the providers' windows. Counts each call, refuses, and says what is left.

use std::collections::BTreeMap;

use http::Method;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::ArmError;
use super::kind::Stack;
use super::preset::Preset;
use super::seed::{Bucket, ThrottleSeed};
use crate::Caller;

/// What is left of every budget that was ever used.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Throttle {
    buckets: BTreeMap<String, Level>,
    windows: BTreeMap<String, Window>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Level {
    left: f64,
    at: Timestamp,
    blocked_until: Option<Timestamp>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Window {
    start: Timestamp,
    used: u32,
}

/// The headers of an answer, name and value.
pub(crate) type Remaining = Vec<(&'static str, u32)>;

/// The kind of a call as ARM counts it.
#[derive(Clone, Copy)]
enum Counted {
    Read,
    Write,
    Delete,
}

impl Counted {
    fn of(method: &Method) -> Self {
        match *method {
            Method::GET | Method::HEAD => Self::Read,
            Method::DELETE => Self::Delete,
            _ => Self::Write,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
        }
    }

    fn bucket(self, seed: &ThrottleSeed) -> &Bucket {
        match self {
            Self::Read => &seed.reads,
            Self::Write => &seed.writes,
            Self::Delete => &seed.deletes,
        }
    }

    fn headers(self) -> (&'static str, &'static str) {
        match self {
            Self::Read => (
                "x-ms-ratelimit-remaining-subscription-reads",
                "x-ms-ratelimit-remaining-subscription-global-reads",
            ),
            Self::Write => (
                "x-ms-ratelimit-remaining-subscription-writes",
                "x-ms-ratelimit-remaining-subscription-global-writes",
            ),
            Self::Delete => (
                "x-ms-ratelimit-remaining-subscription-deletes",
                "x-ms-ratelimit-remaining-subscription-global-deletes",
            ),
        }
    }
}

/// A subscription's share of all principals is this many times one principal's.
const GLOBAL: u32 = 15;
const FIVE_MINUTES_S: i64 = 300;
const HOUR_S: i64 = 3600;

/// One call to count.
pub(crate) struct Counting<'a> {
    pub(crate) now: Timestamp,
    pub(crate) preset: Preset,
    pub(crate) caller: &'a Caller,
    pub(crate) subscription: &'a str,
    pub(crate) method: &'a Method,
    pub(crate) stack: Stack,
}

impl Throttle {
    /// Counts one call; says what is left, or refuses.
    pub(crate) fn count(
        &mut self,
        seed: &ThrottleSeed,
        call: &Counting<'_>,
    ) -> Result<Remaining, ArmError> {
        let kind = Counted::of(call.method);
        let arm = self.arm(seed, call, kind)?;
        let provider = self.provider(seed, call, kind)?;
        Ok(provider.map_or(arm, |left| vec![left]))
    }

    fn arm(
        &mut self,
        seed: &ThrottleSeed,
        call: &Counting<'_>,
        kind: Counted,
    ) -> Result<Remaining, ArmError> {
        let bucket = kind.bucket(seed);
        let actor = &call.caller.object_id;
        let word = kind.word();
        let key = format!("{}|{actor}|{word}", call.subscription.to_ascii_lowercase());
        let global_key = format!("{}||{word}", call.subscription.to_ascii_lowercase());
        let global = Bucket {
            bucket: bucket.bucket * GLOBAL,
            per_s: bucket.per_s * f64::from(GLOBAL),
        };
        let (own_header, global_header) = kind.headers();
        let own = self.take(&key, bucket, call.now, seed.enabled);
        let all = self.take(&global_key, &global, call.now, seed.enabled);
        if let (Some(own), Some(all)) = (own, all) {
            return Ok(vec![(own_header, own), (global_header, all)]);
        }
        let seconds = call.preset.retry_after(wait_s(bucket));
        let message = format!(
            "Number of '{word}' requests for subscription '{}' actor '{actor}' exceeded. Please try again after '{seconds}' \
             seconds after additional tokens are available. Refer to https://aka.ms/arm-throttling for additional information.",
            call.subscription
        );
        let mut error = ArmError::gateway(429, "SubscriptionRequestsThrottled", message);
        error.retry_after = Some(seconds);
        Err(error)
    }

    /// Takes one token; nothing if there is none, or if the caller came back before it was told to.
    fn take(&mut self, key: &str, bucket: &Bucket, now: Timestamp, enabled: bool) -> Option<u32> {
        let full = f64::from(bucket.bucket);
        let level = self.buckets.entry(key.to_owned()).or_insert(Level {
            left: full,
            at: now,
            blocked_until: None,
        });
        let passed = now.duration_since(level.at).as_secs_f64().max(0.0);
        level.left = (level.left + passed * bucket.per_s).min(full);
        level.at = level.at.max(now);
        let blocked = level.blocked_until.is_some_and(|until| now < until);
        if enabled && (blocked || level.left < 1.0) {
            level.blocked_until =
                Some(now + jiff::SignedDuration::from_secs(i64::from(wait_s(bucket))));
            return None;
        }
        level.blocked_until = None;
        level.left = (level.left - 1.0).max(0.0);
        Some(level.left as u32)
    }

    /// The provider's own window, and the header that takes the place of ARM's.
    fn provider(
        &mut self,
        seed: &ThrottleSeed,
        call: &Counting<'_>,
        kind: Counted,
    ) -> Result<Option<(&'static str, u32)>, ArmError> {
        let (limit, span_s) = match (call.stack, kind) {
            (Stack::Resources, _) => return Ok(None),
            (Stack::Network, Counted::Read) => (seed.network_reads_5min, FIVE_MINUTES_S),
            (Stack::Network, _) => (seed.network_writes_5min, FIVE_MINUTES_S),
            (Stack::PrivateDns, Counted::Read) => (seed.dns_reads_5min, FIVE_MINUTES_S),
            (Stack::PrivateDns, _) => (seed.dns_writes_hour, HOUR_S),
        };
        let read = matches!(kind, Counted::Read);
        let key = format!(
            "{}|{:?}|{}",
            call.subscription.to_ascii_lowercase(),
            call.stack,
            read
        );
        let window = self.windows.entry(key).or_insert(Window {
            start: call.now,
            used: 0,
        });
        let age_s = call.now.duration_since(window.start).as_secs();
        if age_s >= span_s {
            *window = Window {
                start: call.now,
                used: 0,
            };
        }
        if seed.enabled && window.used >= limit {
            let left_s = u32::try_from(span_s - age_s).unwrap_or(1).max(1);
            let mut error = ArmError::service(429, "TooManyRequests", "The request was throttled.");
            error.retry_after = Some(call.preset.retry_after(left_s));
            return Err(error);
        }
        window.used = window.used.saturating_add(1);
        let left = limit.saturating_sub(window.used);
        let shown = call.stack == Stack::PrivateDns;
        Ok(shown.then_some((
            "x-ms-ratelimit-remaining-subscription-resource-requests",
            left,
        )))
    }
}

/// Seconds that a caller is told to wait: until a tenth of the bucket is back.
fn wait_s(bucket: &Bucket) -> u32 {
    ((f64::from(bucket.bucket) / 10.0 / bucket.per_s.max(0.001)).ceil() as u32).max(1)
}
