//! ELBv2: network load balancers, which come from the seed, the control calls or a cloud controller.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ec2::endpoint_service::EndpointService;
use crate::ec2::vpc::long_ago;
use crate::engine::call::{Answered, Call};
use crate::engine::state::State;
use crate::engine::tags::Tags;
use crate::wire::error::AwsError;
use crate::wire::xml::{Xml, group, list, text};

/// A network load balancer; its ARN is its id.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadBalancer {
    #[serde(default)]
    pub(crate) account: String,
    #[serde(default)]
    pub(crate) region: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) dns_name: String,
    #[serde(default)]
    pub(crate) vpc: String,
    #[serde(default)]
    pub(crate) subnets: Vec<String>,
    /// `provisioning`, `active`, `active_impaired`, `failed`.
    #[serde(default = "provisioning")]
    pub(crate) state: String,
    /// The next state and when it begins.
    #[serde(default)]
    pub(crate) next: Option<(Timestamp, String)>,
    #[serde(default)]
    pub(crate) tags: Tags,
    #[serde(default = "long_ago")]
    pub(crate) created: Timestamp,
}

fn provisioning() -> String {
    "provisioning".to_owned()
}

impl LoadBalancer {
    /// Begins the next state if its time has come.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        if let Some((_, to)) = self.next.take_if(|(at, _)| *at <= now) {
            self.state = to;
        }
    }

    fn show(&self, call: &Call<'_>, arn: &str) -> Vec<Xml> {
        let zones = self
            .subnets
            .iter()
            .filter_map(|id| Some((id, call.state.subnets.get(id)?)));
        let zones = zones.map(|(id, subnet)| {
            let name = call.state.zone_name(&self.account, &self.region, &subnet.zone_id);
            vec![
                text("ZoneName", name),
                text("SubnetId", id),
                group("LoadBalancerAddresses", vec![]),
            ]
        });
        vec![
            text("LoadBalancerArn", arn),
            text("DNSName", &self.dns_name),
            text("CanonicalHostedZoneId", "Z26RNL4JYFTOTI"),
            text("CreatedTime", self.created.strftime("%Y-%m-%dT%H:%M:%S.000Z")),
            text("LoadBalancerName", &self.name),
            text("Scheme", "internal"),
            text("VpcId", &self.vpc),
            group("State", vec![text("Code", &self.state)]),
            text("Type", "network"),
            list("AvailabilityZones", "member", zones),
            text("IpAddressType", "ipv4"),
        ]
    }
}

/// Carries out a call.
pub(crate) fn answer(call: &mut Call<'_>) -> Answered {
    match call.action.as_str() {
        "DescribeLoadBalancers" => describe(call),
        "DeleteLoadBalancer" => delete(call),
        other => Err(AwsError::bad(
            "InvalidAction",
            format!("Could not find operation {other} for version 2015-12-01"),
        )),
    }
}

fn validation(message: &str) -> AwsError {
    AwsError::bad("ValidationError", message)
}

fn not_found() -> AwsError {
    AwsError::bad("LoadBalancerNotFound", "One or more load balancers not found")
}

fn describe(call: &mut Call<'_>) -> Answered {
    call.params.only(&["Names", "LoadBalancerArns", "Marker", "PageSize"])?;
    call.authorize(&["*".to_owned()])?;
    let (names, arns) = (
        call.params.list("Names.member"),
        call.params.list("LoadBalancerArns.member"),
    );
    if !names.is_empty() && !arns.is_empty() {
        return Err(validation(
            "Load balancer names and load balancer ARNs cannot be specified at the same time",
        ));
    }
    if names.len() > 20 || arns.len() > 20 {
        return Err(validation("Only 20 load balancers can be described at once"));
    }
    let size: usize = call.params.number("PageSize")?.unwrap_or(400);
    if !(1..=400).contains(&size) {
        return Err(validation("PageSize must be between 1 and 400"));
    }
    let mut found: Vec<(&String, &LoadBalancer)> = Vec::new();
    for (arn, balancer) in &call.state.load_balancers {
        let asked = names.contains(&balancer.name.as_str()) || arns.contains(&arn.as_str());
        let all = names.is_empty() && arns.is_empty();
        if (asked || all) && call.is_here(&balancer.account, &balancer.region) && call.shows(balancer.created) {
            found.push((arn, balancer));
        }
    }
    let names_found = names
        .iter()
        .all(|name| found.iter().any(|(_, known)| known.name == *name));
    if !names_found || !arns.iter().all(|arn| found.iter().any(|(known, _)| *known == *arn)) {
        return Err(not_found());
    }
    if let Some(marker) = call.params.text("Marker").filter(|marker| !marker.is_empty()) {
        let after = BASE64_STANDARD
            .decode(marker)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok());
        let after = after.ok_or_else(|| validation("Invalid Marker"))?;
        found.retain(|(arn, _)| **arn > after);
    }
    let next = found
        .get(size)
        .and_then(|_| found.get(size - 1))
        .map(|(arn, _)| BASE64_STANDARD.encode(arn));
    let shown = found.iter().take(size).map(|(arn, balancer)| balancer.show(call, arn));
    let shown = list("LoadBalancers", "member", shown);
    Ok([shown]
        .into_iter()
        .chain(next.map(|marker| text("NextMarker", marker)))
        .collect())
}

fn delete(call: &mut Call<'_>) -> Answered {
    call.params.only(&["LoadBalancerArn"])?;
    let arn = call.params.required("LoadBalancerArn")?.to_owned();
    call.authorize(std::slice::from_ref(&arn))?;
    let found = call.state.load_balancers.get(&arn);
    if !found.is_some_and(|balancer| call.is_here(&balancer.account, &balancer.region)) {
        // A deletion that has nothing to delete succeeds.
        return Ok(vec![]);
    }
    call.changed = remove(call.state, &arn)?;
    Ok(vec![])
}

/// Removes a load balancer that nothing uses; whether it was there.
pub(crate) fn remove(state: &mut State, arn: &str) -> Result<bool, AwsError> {
    let uses = |service: &EndpointService| service.load_balancers.iter().any(|used| used == arn);
    if state.endpoint_services.values().any(uses) {
        let message = format!("Load balancer '{arn}' cannot be deleted because it is associated with another service");
        return Err(AwsError::bad("ResourceInUse", message));
    }
    Ok(state.load_balancers.remove(arn).is_some())
}
