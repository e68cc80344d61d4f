//! How many endpoints each VPC has that count for AWS's quota. They are counted by a read that is due anyway.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::ec2::Endpoint;

/// How many interface endpoints and Gateway Load Balancer endpoints AWS lets a VPC have, unless its owner asks for more.
///
/// Source: <https://docs.aws.amazon.com/vpc/latest/privatelink/vpc-limits-endpoints.html>
pub const ENDPOINTS_PER_VPC: usize = 50;

/// How rarely all endpoints of a VPC are read instead of those to one endpoint service.
const COUNTED_EVERY: Duration = Duration::from_secs(45 * 60);

/// The VPCs whose endpoints were counted.
#[derive(Debug, Default)]
pub(super) struct VpcUsage(Mutex<HashMap<String, Count>>);

#[derive(Debug, Clone, Copy)]
struct Count {
    endpoints: usize,
    at: Instant,
}

impl Count {
    /// Whether it is one that should have been renewed, so that nobody may need it any more.
    fn is_old(&self, now: Instant) -> bool {
        now.duration_since(self.at) >= 2 * COUNTED_EVERY
    }
}

impl VpcUsage {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Count>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the endpoints of a VPC are to be counted by its next read.
    pub(super) fn is_due(&self, vpc: &str, now: Instant) -> bool {
        let counted = self.all().get(vpc).copied();
        counted.is_none_or(|count| now.duration_since(count.at) >= COUNTED_EVERY)
    }

    /// Forgets the count of a VPC whose endpoints have changed.
    pub(super) fn forget(&self, vpc: &str) {
        self.all().remove(vpc);
    }

    /// Counts all endpoints of a VPC.
    pub(super) fn count(&self, vpc: &str, endpoints: &[Endpoint], now: Instant) {
        let endpoints = endpoints.iter().filter(|endpoint| endpoint.counts_in_vpc()).count();
        let mut all = self.all();
        all.retain(|_, count| !count.is_old(now));
        all.insert(vpc.to_owned(), Count { endpoints, at: now });
    }

    /// The endpoints of the VPC that has most; none while none was counted lately.
    pub(super) fn most(&self, now: Instant) -> Option<usize> {
        let all = self.all();
        let recent = all.values().filter(|count| !count.is_old(now));
        recent.map(|count| count.endpoints).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ec2::EndpointState;

    fn endpoint(endpoint_type: &str, state: EndpointState) -> Endpoint {
        Endpoint {
            id: "vpce-1".to_owned(),
            endpoint_type: Some(endpoint_type.to_owned()),
            service_name: None,
            vpc_id: None,
            state,
            subnet_ids: Vec::new(),
            group_ids: Vec::new(),
            dns_entries: Vec::new(),
            created: None,
            last_error: None,
            tags: crate::ec2::Tags::default(),
        }
    }

    #[test]
    fn fullest_vpc_is_shown_without_what_takes_no_quota() {
        let (usage, now) = (VpcUsage::default(), Instant::now());
        assert_eq!(usage.most(now), None);
        let of = |types: &[&str]| -> Vec<_> { types.iter().map(|of| endpoint(of, EndpointState::Available)).collect() };
        let mut full = of(&["Interface", "Gateway", "GatewayLoadBalancer", "Resource"]);
        full.push(endpoint("Interface", EndpointState::Deleted));
        full.push(endpoint("Interface", EndpointState::Deleting));
        usage.count("vpc-1", &full, now);
        usage.count("vpc-2", &of(&["Interface"]), now);
        assert_eq!(usage.most(now), Some(3));
    }

    #[test]
    fn vpc_is_counted_now_and_then_and_forgotten_at_last() {
        let (usage, now) = (VpcUsage::default(), Instant::now());
        assert!(usage.is_due("vpc-1", now));
        usage.count("vpc-1", &[], now);
        assert!(!usage.is_due("vpc-1", now + COUNTED_EVERY / 2));
        assert!(usage.is_due("vpc-1", now + COUNTED_EVERY));
        assert_eq!(usage.most(now + COUNTED_EVERY), Some(0));
        usage.count("vpc-2", &[], now + 2 * COUNTED_EVERY);
        assert_eq!(
            usage.all().len(),
            1,
            "that of a VPC which nobody reads any more is dropped"
        );
    }
}
