//! VPCs, subnets and network interfaces, as they are described. They come from the seed.

use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{is_well_formed, next_token};
use crate::engine::call::{Answered, Call};
use crate::engine::filter::Filters;
use crate::engine::page::page;
use crate::engine::tags::{self, Tags};
use crate::wire::error::AwsError;
use crate::wire::xml::{Xml, group, list, text};

/// A virtual network.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vpc {
    #[serde(default)]
    pub(crate) account: String,
    #[serde(default)]
    pub(crate) region: String,
    pub(crate) cidr: IpNet,
    #[serde(default)]
    pub(crate) tags: Tags,
}

/// A subnet.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subnet {
    #[serde(default)]
    pub(crate) account: String,
    #[serde(default)]
    pub(crate) region: String,
    pub(crate) vpc: String,
    pub(crate) cidr: IpNet,
    /// `use1-az4`: the same in all accounts.
    pub(crate) zone_id: String,
    /// Accounts that may use it too.
    #[serde(default)]
    pub(crate) shared_with: Vec<String>,
    #[serde(default)]
    pub(crate) tags: Tags,
}

impl Call<'_> {
    /// A subnet of the caller's account, or shared with it.
    pub(crate) fn subnet(&self, id: &str) -> Result<&Subnet, AwsError> {
        let found = self.state.subnets.get(id).filter(|subnet| {
            let shared = subnet.shared_with.iter().any(|account| account == self.account());
            subnet.region == self.region && (shared || subnet.account == self.account())
        });
        found.ok_or_else(|| AwsError::not_found("InvalidSubnetID.NotFound", "subnet", id))
    }

    /// A VPC of the caller's account, or one with a subnet that is shared with it.
    pub(crate) fn vpc(&self, id: &str) -> Result<&Vpc, AwsError> {
        let not_found = || AwsError::not_found("InvalidVpcID.NotFound", "vpc", id);
        let vpc = self
            .state
            .vpcs
            .get(id)
            .filter(|vpc| vpc.region == self.region)
            .ok_or_else(not_found)?;
        let mut subnets = self.state.subnets.values().filter(|subnet| subnet.vpc == id);
        let shared = subnets.any(|subnet| subnet.shared_with.iter().any(|account| account == self.account()));
        Some(vpc)
            .filter(|vpc| shared || vpc.account == self.account())
            .ok_or_else(not_found)
    }
}

pub(super) fn describe_vpcs(call: &mut Call<'_>) -> Answered {
    call.params.only(&["VpcId", "Filter", "MaxResults", "NextToken"])?;
    call.authorize(&["*".to_owned()])?;
    let known = [
        "vpc-id",
        "cidr",
        "cidr-block-association.cidr-block",
        "owner-id",
        "state",
        "is-default",
        "tag-key",
    ];
    let filters = Filters::read(&call.params, &known)?;
    let asked = call.params.list("VpcId");
    for id in &asked {
        if !is_well_formed(id, "vpc") {
            return Err(AwsError::bad("InvalidVpcID.Malformed", format!("Invalid id: \"{id}\"")));
        }
        call.vpc(id)?;
    }
    let mut shown = Vec::new();
    for (id, vpc) in &call.state.vpcs {
        let values = |name: &str| match name {
            "vpc-id" => vec![id.clone()],
            "owner-id" => vec![vpc.account.clone()],
            "state" => vec!["available".to_owned()],
            "is-default" => vec!["false".to_owned()],
            _ => vec![vpc.cidr.to_string()],
        };
        let is_asked = asked.is_empty() || asked.contains(&id.as_str());
        if is_asked && call.vpc(id).is_ok() && filters.hit(&vpc.tags, values) {
            shown.push((id.clone(), show_vpc(id, vpc)));
        }
    }
    let (shown, next) = page(&call.params, shown)?;
    Ok([list("vpcSet", "item", shown)]
        .into_iter()
        .chain(next_token(next))
        .collect())
}

fn show_vpc(id: &str, vpc: &Vpc) -> Vec<Xml> {
    let state = group("cidrBlockState", vec![text("state", "associated")]);
    let association = vec![
        text("cidrBlock", vpc.cidr),
        text("associationId", id.replacen("vpc-", "vpc-cidr-assoc-", 1)),
        state,
    ];
    vec![
        text("vpcId", id),
        text("ownerId", &vpc.account),
        text("state", "available"),
        text("cidrBlock", vpc.cidr),
        list("cidrBlockAssociationSet", "item", [association]),
        text("dhcpOptionsId", "default"),
        text("instanceTenancy", "default"),
        text("isDefault", false),
        tags::show(&vpc.tags),
    ]
}

pub(super) fn describe_subnets(call: &mut Call<'_>) -> Answered {
    call.params.only(&["SubnetId", "Filter", "MaxResults", "NextToken"])?;
    call.authorize(&["*".to_owned()])?;
    let known = [
        "subnet-id",
        "vpc-id",
        "availability-zone",
        "availability-zone-id",
        "owner-id",
        "state",
        "cidr-block",
        "tag-key",
    ];
    let filters = Filters::read(&call.params, &known)?;
    let asked = call.params.list("SubnetId");
    for id in &asked {
        if !is_well_formed(id, "subnet") {
            return Err(AwsError::bad(
                "InvalidSubnetID.Malformed",
                format!("Invalid id: \"{id}\""),
            ));
        }
        call.subnet(id)?;
    }
    let mut shown = Vec::new();
    for (id, subnet) in &call.state.subnets {
        let zone = call.state.zone_name(call.account(), &call.region, &subnet.zone_id);
        let values = |name: &str| {
            vec![match name {
                "subnet-id" => id.clone(),
                "vpc-id" => subnet.vpc.clone(),
                "availability-zone" => zone.clone(),
                "availability-zone-id" => subnet.zone_id.clone(),
                "owner-id" => subnet.account.clone(),
                "state" => "available".to_owned(),
                _ => subnet.cidr.to_string(),
            }]
        };
        let is_asked = asked.is_empty() || asked.contains(&id.as_str());
        if is_asked && call.subnet(id).is_ok() && filters.hit(&subnet.tags, values) {
            shown.push((id.clone(), show_subnet(call, id, subnet, &zone)));
        }
    }
    let (shown, next) = page(&call.params, shown)?;
    Ok([list("subnetSet", "item", shown)]
        .into_iter()
        .chain(next_token(next))
        .collect())
}

fn show_subnet(call: &Call<'_>, id: &str, subnet: &Subnet, zone: &str) -> Vec<Xml> {
    let used = call
        .state
        .interfaces
        .values()
        .filter(|interface| interface.subnet == id)
        .count();
    let all = 1_u64 << (32 - u32::from(subnet.cidr.prefix_len().min(32)));
    vec![
        text("subnetId", id),
        text("subnetArn", call.arn_in(&subnet.account, &format!("subnet/{id}"))),
        text("state", "available"),
        text("ownerId", &subnet.account),
        text("vpcId", &subnet.vpc),
        text("cidrBlock", subnet.cidr),
        text("availableIpAddressCount", all.saturating_sub(5 + used as u64)),
        text("availabilityZone", zone),
        text("availabilityZoneId", &subnet.zone_id),
        text("defaultForAz", false),
        text("mapPublicIpOnLaunch", false),
        tags::show(&subnet.tags),
    ]
}

pub(super) fn describe_interfaces(call: &mut Call<'_>) -> Answered {
    call.params
        .only(&["NetworkInterfaceId", "Filter", "MaxResults", "NextToken"])?;
    call.authorize(&["*".to_owned()])?;
    let known = [
        "network-interface-id",
        "vpc-id",
        "subnet-id",
        "group-id",
        "interface-type",
        "status",
        "owner-id",
    ];
    let filters = Filters::read(&call.params, &known)?;
    let asked = call.params.list("NetworkInterfaceId");
    let mut shown = Vec::new();
    for (id, interface) in &call.state.interfaces {
        let values = |name: &str| match name {
            "network-interface-id" => vec![id.clone()],
            "vpc-id" => vec![interface.vpc.clone()],
            "subnet-id" => vec![interface.subnet.clone()],
            "group-id" => interface.groups.clone(),
            "interface-type" => vec!["vpc_endpoint".to_owned()],
            "status" => vec!["in-use".to_owned()],
            _ => vec![interface.account.clone()],
        };
        let is_asked = asked.is_empty() || asked.contains(&id.as_str());
        let is_here = call.is_here(&interface.account, &interface.region);
        if is_asked && is_here && filters.hit(&Tags::new(), values) {
            shown.push((id.clone(), interface.show(call, id)));
        }
    }
    if let Some(id) = asked.iter().find(|id| !shown.iter().any(|(known, _)| known == *id)) {
        let code = "InvalidNetworkInterfaceID.NotFound";
        return Err(AwsError::not_found(code, "networkInterface", id));
    }
    let (shown, next) = page(&call.params, shown)?;
    Ok([list("networkInterfaceSet", "item", shown)]
        .into_iter()
        .chain(next_token(next))
        .collect())
}

/// When nothing that is seeded was made: long ago.
pub(crate) fn long_ago() -> Timestamp {
    Timestamp::UNIX_EPOCH
}
