//! Endpoint services: what they are, and how their state moves.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::vpc::long_ago;
use crate::engine::call::Call;
use crate::engine::state::State;
use crate::engine::tags::{self, Tags};
use crate::wire::error::AwsError;
use crate::wire::xml::{Xml, group, list, text, texts};

/// An endpoint service.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndpointService {
    #[serde(default)]
    pub(crate) account: String,
    #[serde(default)]
    pub(crate) region: String,
    /// `Pending`, `Available`, `Deleting`, `Deleted`, `Failed`.
    #[serde(default = "available")]
    pub(crate) state: String,
    /// The next state and when it begins.
    #[serde(default)]
    pub(crate) next: Option<(Timestamp, String)>,
    /// ARNs.
    pub(crate) load_balancers: Vec<String>,
    #[serde(default)]
    pub(crate) acceptance_required: bool,
    #[serde(default)]
    pub(crate) principals: Vec<Principal>,
    #[serde(default)]
    pub(crate) tags: Tags,
    #[serde(default = "long_ago")]
    pub(crate) created: Timestamp,
}

fn available() -> String {
    "Available".to_owned()
}

/// Who may connect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Principal {
    /// ARN, or `*`.
    pub(crate) arn: String,
    /// `vpce-svc-perm-…`.
    #[serde(default)]
    pub(crate) id: String,
}

impl EndpointService {
    /// Begins the next state if its time has come.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        if let Some((_, to)) = self.next.take_if(|(at, _)| *at <= now) {
            self.state = to;
        }
    }

    pub(crate) fn is_gone(&self, _now: Timestamp) -> bool {
        self.state == "Deleted"
    }

    pub(crate) fn name(&self, id: &str) -> String {
        service_name(&self.region, id)
    }

    /// Ids of the zones that its load balancers are in.
    pub(crate) fn zone_ids(&self, state: &State) -> Vec<String> {
        let balancers = self
            .load_balancers
            .iter()
            .filter_map(|arn| state.load_balancers.get(arn));
        let subnets = balancers.flat_map(|balancer| balancer.subnets.iter());
        let mut zones: Vec<String> = subnets
            .filter_map(|id| state.subnets.get(id))
            .map(|subnet| subnet.zone_id.clone())
            .collect();
        zones.sort_unstable();
        zones.dedup();
        zones
    }

    /// Whether a principal (an ARN of a user or role) may connect.
    pub(crate) fn allows(&self, principal: &str, partition: &str, account: &str) -> bool {
        let root = format!("arn:{partition}:iam::{account}:root");
        let bare = without_path(principal);
        self.principals
            .iter()
            .any(|allowed| allowed.arn == "*" || allowed.arn == root || allowed.arn == bare)
    }

    pub(super) fn show(&self, call: &Call<'_>, id: &str, tags: &Tags) -> Vec<Xml> {
        let zone_ids = self.zone_ids(call.state);
        let names = zone_ids
            .iter()
            .map(|zone| call.state.zone_name(&self.account, &self.region, zone));
        let domain = dns_suffix(call.state.partition(&self.account));
        vec![
            list("serviceType", "item", [vec![text("serviceType", "Interface")]]),
            text("serviceId", id),
            text("serviceName", self.name(id)),
            text("serviceState", &self.state),
            texts("availabilityZoneSet", "item", names),
            texts("availabilityZoneIdSet", "item", &zone_ids),
            text("acceptanceRequired", self.acceptance_required),
            text("managesVpcEndpoints", false),
            texts("networkLoadBalancerArnSet", "item", &self.load_balancers),
            texts("supportedIpAddressTypeSet", "item", ["ipv4"]),
            texts(
                "baseEndpointDnsNameSet",
                "item",
                [format!("{id}.{}.vpce.{domain}", self.region)],
            ),
            group("privateDnsNameConfiguration", vec![]),
            tags::show(tags),
        ]
    }
}

/// The name of the endpoint service with this id. The regions in China have a beginning of their own.
pub(super) fn service_name(region: &str, id: &str) -> String {
    let domain = match region.starts_with("cn-") {
        true => "cn.com.amazonaws",
        false => "com.amazonaws",
    };
    format!("{domain}.vpce.{region}.{id}")
}

/// The domain that AWS's names end in.
pub(crate) fn dns_suffix(partition: &str) -> &'static str {
    match partition {
        "aws-cn" => "amazonaws.com.cn",
        _ => "amazonaws.com",
    }
}

/// A role's ARN without its IAM path, which is how sessions name it.
pub(crate) fn without_path(arn: &str) -> String {
    match arn.split_once(":role/") {
        Some((head, path)) => format!("{head}:role/{}", path.rsplit('/').next().unwrap_or(path)),
        None => arn.to_owned(),
    }
}

impl Call<'_> {
    /// An endpoint service of the caller's that is not being deleted.
    pub(super) fn endpoint_service(&self, id: &str, code: &str) -> Result<&EndpointService, AwsError> {
        let found = self.state.endpoint_services.get(id);
        let here = found.filter(|service| self.is_here(&service.account, &service.region));
        here.filter(|service| service.state != "Deleting").ok_or_else(|| {
            let message = format!("The VpcEndpointService Id '{id}' does not exist");
            AwsError::bad(code, message)
        })
    }
}
