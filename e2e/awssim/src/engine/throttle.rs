//! Request budgets: token buckets, which are refilled as time advances.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::service::Service;
use crate::wire::error::AwsError;
use crate::wire::params::Params;

/// A bucket: so many calls at once, so many more per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// Calls at once.
    pub bucket: f64,
    /// Calls per second after that.
    pub per_s: f64,
}

/// The budgets of a seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThrottleSeed {
    /// Off: no call is throttled.
    pub enabled: bool,
    /// EC2's describes with a filter, an id or a page size.
    pub ec2_describe: Bucket,
    /// EC2's describes of everything.
    pub ec2_describe_all: Bucket,
    /// EC2's other calls.
    pub ec2_write: Bucket,
    /// Route 53, all calls of an account.
    pub route53: Bucket,
    /// ELBv2, per action.
    pub elbv2: Bucket,
    /// Single actions, by name, in place of the above.
    pub actions: BTreeMap<String, Bucket>,
}

impl Default for ThrottleSeed {
    fn default() -> Self {
        let of = |bucket, per_s| Bucket { bucket, per_s };
        Self {
            enabled: true,
            ec2_describe: of(100.0, 20.0),
            ec2_describe_all: of(50.0, 10.0),
            ec2_write: of(50.0, 5.0),
            route53: of(5.0, 5.0),
            elbv2: of(40.0, 10.0),
            actions: [("CreateVpcEndpoint".to_owned(), of(4.0, 0.3))].into(),
        }
    }
}

/// What is left in each bucket, and when that was counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Throttle(BTreeMap<String, (f64, Timestamp)>);

/// The call that is counted.
pub(crate) struct Counted<'a> {
    pub(crate) service: Service,
    pub(crate) account: &'a str,
    pub(crate) region: &'a str,
    pub(crate) action: &'a str,
    pub(crate) params: &'a Params,
}

impl Throttle {
    /// Counts a call.
    ///
    /// # Errors
    /// The budget is exhausted: `RequestLimitExceeded` (503) of EC2, `Throttling` (400) of the others.
    pub(crate) fn count(&mut self, seed: &ThrottleSeed, now: Timestamp, call: &Counted<'_>) -> Result<(), AwsError> {
        let Counted {
            service,
            account,
            region,
            action,
            params,
        } = call;
        let class = match service {
            Service::Sts => return Ok(()),
            Service::Route53 => seed.route53,
            Service::Elbv2 => seed.elbv2,
            Service::Ec2 if !action.starts_with("Describe") => seed.ec2_write,
            Service::Ec2 if params.fingerprint().lines().count() > 2 => seed.ec2_describe,
            Service::Ec2 => seed.ec2_describe_all,
        };
        let limit = seed.actions.get(*action).copied().unwrap_or(class);
        let key = match service {
            Service::Route53 => format!("{account}/route53"),
            _ => format!("{account}/{region}/{action}"),
        };
        if !seed.enabled {
            return Ok(());
        }
        let (left, since) = self.0.entry(key).or_insert((limit.bucket, now));
        let passed = now.duration_since(*since).as_secs_f64().max(0.0);
        *left = (*left + passed * limit.per_s).min(limit.bucket);
        *since = now;
        if *left < 1.0 {
            return Err(match service {
                Service::Ec2 => AwsError::new(503, "RequestLimitExceeded", "Request limit exceeded."),
                _ => AwsError::bad("Throttling", "Rate exceeded"),
            });
        }
        *left -= 1.0;
        Ok(())
    }
}
