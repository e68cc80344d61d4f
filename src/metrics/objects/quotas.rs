//! How much of the clouds' quotas is used.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use prometheus::Result;

use super::{Objects, Platforms};
use crate::aws::api::request_rate::ROUTE53_REQUESTS_PER_SECOND;
use crate::aws::calls::vpc_usage::ENDPOINTS_PER_VPC;
use crate::azure::arm::id::ResourceId;
use crate::azure::kinds::private_link_service::quota::{Quota, QuotaUse};
use crate::metrics::at_scrape::{AtScrape, Sample};

/// The quotas of both clouds.
pub(in crate::metrics) const QUOTAS: [&str; 5] = [
    AZURE_QUOTAS[0].0,
    AZURE_QUOTAS[1].0,
    AZURE_QUOTAS[2].0,
    AWS_QUOTAS[0].0,
    AWS_QUOTAS[1].0,
];

/// AWS's limits.
const AWS_QUOTAS: [(&str, f64); 2] = [
    ("endpoints_per_vpc", ENDPOINTS_PER_VPC as f64),
    ("route53_requests_per_second", ROUTE53_REQUESTS_PER_SECOND as f64),
];

/// How much of AWS's quotas is used, where most of it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuotasOfAws {
    /// The endpoints of a VPC; none while none were counted lately.
    pub endpoints_per_vpc: Option<usize>,
    /// The requests to Route 53 of this process in an account, over the last minute.
    pub route53_requests_per_second: f64,
}

impl QuotasOfAws {
    /// What is used of each quota that was counted, with its limit.
    fn counted(self) -> impl Iterator<Item = (&'static str, f64, f64)> {
        let used = [
            self.endpoints_per_vpc.map(|count| count as f64),
            Some(self.route53_requests_per_second),
        ];
        let quotas = AWS_QUOTAS.into_iter().zip(used);
        quotas.filter_map(|((quota, limit), used)| Some((quota, used?, limit)))
    }
}

/// Azure's limits
/// (<https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits>).
const AZURE_QUOTAS: [(&str, f64); 3] = [
    (name(Quota::PerLoadBalancer), Quota::PerLoadBalancer.limit() as f64),
    (name(Quota::PerSubscription), Quota::PerSubscription.limit() as f64),
    ("zones_per_subscription", 1000.0),
];

const fn name(quota: Quota) -> &'static str {
    match quota {
        Quota::PerLoadBalancer => "private_link_services_per_load_balancer",
        Quota::PerSubscription => "private_link_services_per_subscription",
    }
}

pub(super) fn gauges(platforms: AtScrape<Platforms>) -> Result<AtScrape<Platforms>> {
    platforms
        .gauge(
            "hyperlink_object_without_quota",
            "1 for each AzurePrivateLinkService that has no Private Link Service yet, where those that this process knows \
             use up one of Azure's quotas; without those being deleted.",
            &["platform", "control_plane", "name", "quota"],
            |all| all.each(Objects::without_quota),
        )?
        .gauge(
            "hyperlink_quota_used",
            "How much of a quota is used, where most of it is: on Azure by the AzurePrivateLinkServices, services as role ho \
             knows them, zones as role cpo does; on AWS as role cpo counts it: all endpoints of a VPC, every 45 minutes, and its \
             own requests to Route 53 in an account, over the last minute.",
            &["quota"],
            Platforms::quotas_used,
        )?
        .gauge(
            "hyperlink_quota_limit",
            "The cloud's own limit; its support may have raised it.",
            &["quota"],
            Platforms::quota_limits,
        )
}

impl Platforms {
    fn quotas_used(&self) -> Vec<Sample<'_>> {
        let on_azure = self.on_azure().map(Objects::quotas_used).unwrap_or_default();
        let on_aws = self.quotas_of_aws.into_iter().flat_map(QuotasOfAws::counted);
        let on_aws = on_aws.map(|(quota, used, _)| (vec![quota], used));
        on_azure.into_iter().chain(on_aws).collect()
    }

    fn quota_limits(&self) -> Vec<Sample<'_>> {
        let on_azure = self.on_azure().map(|_| AZURE_QUOTAS).into_iter().flatten();
        let on_aws = self.quotas_of_aws.into_iter().flat_map(QuotasOfAws::counted);
        let on_aws = on_aws.map(|(quota, _, limit)| (quota, limit));
        on_azure
            .chain(on_aws)
            .map(|(quota, limit)| (vec![quota], limit))
            .collect()
    }
}

impl Objects {
    fn without_quota(&self) -> Vec<Sample<'_>> {
        let quotas = self.quota_use();
        let waiting = self
            .staying()
            .filter_map(|object| Some((object, object.awaits_service_on.as_ref()?)));
        let short = waiting.flat_map(|(object, balancer)| {
            let used_up = quotas.used_up(balancer).into_iter();
            used_up.map(|(quota, _)| (object.labels().into_iter().chain([name(quota)]).collect(), 1.0))
        });
        short.collect()
    }

    fn quota_use(&self) -> QuotaUse<'_> {
        QuotaUse::by(self.all.iter().filter_map(|object| object.link_service.as_ref()))
    }

    fn quotas_used(&self) -> Vec<Sample<'_>> {
        let zones: HashSet<&ResourceId> = self.all.iter().flat_map(|object| &object.zones).collect();
        let zones = zones.into_iter().map(ResourceId::subscription);
        let services = self.quota_use();
        let used = [
            services.most(Quota::PerLoadBalancer) as f64,
            services.most(Quota::PerSubscription) as f64,
            fullest(zones),
        ];
        let quotas = AZURE_QUOTAS.map(|(quota, _)| vec![quota]);
        quotas.into_iter().zip(used).collect()
    }
}

/// How often the most frequent key occurs.
fn fullest<K: Hash + Eq>(keys: impl Iterator<Item = K>) -> f64 {
    let mut counts = HashMap::<K, u32>::new();
    keys.for_each(|key| *counts.entry(key).or_default() += 1);
    counts.into_values().max().unwrap_or_default().into()
}
