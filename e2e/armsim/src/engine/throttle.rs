//! Budgets of calls: ARM's token buckets and the providers' windows. Counts each call, refuses, and reports what is
//! left.

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

    /// The budget outside subscriptions and its header.
    fn tenant(self, seed: &ThrottleSeed) -> (&Bucket, &'static str) {
        match self {
            Self::Read => (&seed.tenant_reads, "x-ms-ratelimit-remaining-tenant-reads"),
            Self::Write | Self::Delete => (&seed.tenant_writes, "x-ms-ratelimit-remaining-tenant-writes"),
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

const FIVE_MINUTES_S: i64 = 300;
const HOUR_S: i64 = 3600;

/// One call to count.
pub(crate) struct Counting<'a> {
    pub(crate) now: Timestamp,
    pub(crate) preset: Preset,
    pub(crate) caller: &'a Caller,
    /// Empty outside subscriptions.
    pub(crate) subscription: &'a str,
    pub(crate) method: &'a Method,
    pub(crate) stack: Stack,
}

impl Throttle {
    /// Counts one call; leaves in `remaining` what the answer shows of the budgets, also that of a refusal by a
    /// provider.
    pub(crate) fn count(
        &mut self,
        seed: &ThrottleSeed,
        call: &Counting<'_>,
        remaining: &mut Remaining,
    ) -> Result<(), ArmError> {
        let kind = Counted::of(call.method);
        if call.subscription.is_empty() {
            return self.tenant(seed, call, kind, remaining);
        }
        *remaining = self.arm(seed, call, kind)?;
        self.provider(seed, call, kind, remaining)
    }

    /// The budgets of a subscription: one principal's, and that of all together.
    fn arm(&mut self, seed: &ThrottleSeed, call: &Counting<'_>, kind: Counted) -> Result<Remaining, ArmError> {
        let bucket = kind.bucket(seed);
        let (subscription, actor) = (call.subscription.to_ascii_lowercase(), &call.caller.object_id);
        let word = kind.word();
        let global = Bucket {
            bucket: bucket.bucket.saturating_mul(seed.global_factor),
            per_s: bucket.per_s * f64::from(seed.global_factor),
        };
        let (own_header, global_header) = kind.headers();
        let own = self.take(
            &format!("{subscription}|{actor}|{word}"),
            bucket,
            call.now,
            seed.enabled,
        );
        let refused = || throttled("subscription", call.subscription, call, kind, bucket);
        let own = own.ok_or_else(refused)?;
        let all = self.take(&format!("{subscription}||{word}"), &global, call.now, seed.enabled);
        let all = all.ok_or_else(refused)?;
        Ok(vec![(own_header, own), (global_header, all)])
    }

    /// The budget of calls outside subscriptions.
    fn tenant(
        &mut self,
        seed: &ThrottleSeed,
        call: &Counting<'_>,
        kind: Counted,
        remaining: &mut Remaining,
    ) -> Result<(), ArmError> {
        let (bucket, header) = kind.tenant(seed);
        let key = format!("tenant {}|{}|{header}", call.caller.tenant_id, call.caller.object_id);
        let left = self.take(&key, bucket, call.now, seed.enabled);
        let left = left.ok_or_else(|| throttled("tenant", &call.caller.tenant_id, call, kind, bucket))?;
        *remaining = vec![(header, left)];
        Ok(())
    }

    /// Takes one token; nothing if there is none, or if the caller came back before its `Retry-After` was over.
    fn take(&mut self, key: &str, bucket: &Bucket, now: Timestamp, enabled: bool) -> Option<u32> {
        let full = f64::from(bucket.bucket);
        let level = self.buckets.entry(key.to_owned()).or_insert(Level {
            left: full,
            at: now,
            blocked_until: None,
        });
        let passed = now.duration_since(level.at).as_secs_f64().max(0.0);
        // In 1024ths: a level that is saved and loaded is the same.
        level.left = ((level.left + passed * bucket.per_s).min(full) * 1024.0).round() / 1024.0;
        level.at = level.at.max(now);
        let blocked = level.blocked_until.is_some_and(|until| now < until);
        if enabled && (blocked || level.left < 1.0) {
            let wait = jiff::SignedDuration::from_secs(i64::from(wait_s(bucket)));
            level.blocked_until = Some(now.saturating_add(wait).unwrap_or(Timestamp::MAX));
            return None;
        }
        level.blocked_until = None;
        level.left = (level.left - 1.0).max(0.0);
        Some(level.left as u32)
    }

    /// The provider's own window; private DNS shows it in place of ARM's.
    fn provider(
        &mut self,
        seed: &ThrottleSeed,
        call: &Counting<'_>,
        kind: Counted,
        remaining: &mut Remaining,
    ) -> Result<(), ArmError> {
        let (limit, span_s) = match (call.stack, kind) {
            (Stack::Resources, _) => return Ok(()),
            (Stack::Network, Counted::Read) => (seed.network_reads_5min, FIVE_MINUTES_S),
            (Stack::Network, _) => (seed.network_writes_5min, FIVE_MINUTES_S),
            (Stack::PrivateDns, Counted::Read) => (seed.dns_reads_5min, FIVE_MINUTES_S),
            (Stack::PrivateDns, _) => (seed.dns_writes_hour, HOUR_S),
        };
        let read = matches!(kind, Counted::Read);
        let key = format!("{}|{:?}|{}", call.subscription.to_ascii_lowercase(), call.stack, read);
        let fresh = Window {
            start: call.now,
            used: 0,
        };
        let window = self.windows.entry(key).or_insert_with(|| fresh.clone());
        let age_s = call.now.duration_since(window.start).as_secs();
        if age_s >= span_s {
            *window = fresh;
        }
        let refused = seed.enabled && window.used >= limit;
        if !refused {
            window.used = window.used.saturating_add(1);
        }
        if call.stack == Stack::PrivateDns {
            let left = limit.saturating_sub(window.used);
            *remaining = vec![("x-ms-ratelimit-remaining-subscription-resource-requests", left)];
        }
        if refused {
            let left_s = u32::try_from(span_s - age_s).unwrap_or(1).max(1);
            let mut error = ArmError::service(429, "TooManyRequests", "The request was throttled.");
            error.retry_after = Some(call.preset.retry_after(left_s));
            return Err(error);
        }
        Ok(())
    }
}

/// ARM's refusal; `whose` is `subscription` or `tenant`.
fn throttled(whose: &str, id: &str, call: &Counting<'_>, kind: Counted, bucket: &Bucket) -> ArmError {
    let seconds = call.preset.retry_after(wait_s(bucket));
    let (word, actor) = (kind.word(), &call.caller.object_id);
    let message = format!(
        "Number of '{word}' requests for {whose} '{id}' actor '{actor}' exceeded. Please try again after '{seconds}' seconds \
         after additional tokens are available. Refer to https://aka.ms/arm-throttling for additional information."
    );
    let code = if whose == "tenant" {
        "TenantRequestsThrottled"
    } else {
        "SubscriptionRequestsThrottled"
    };
    let mut error = ArmError::gateway(429, code, message);
    error.retry_after = Some(seconds);
    error
}

/// Seconds of `Retry-After`: until a tenth of the bucket is back.
fn wait_s(bucket: &Bucket) -> u32 {
    ((f64::from(bucket.bucket) / 10.0 / bucket.per_s.max(0.001)).ceil() as u32).max(1)
}
