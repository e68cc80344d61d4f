//! CreateVpcEndpoint.

use super::endpoint::{Endpoint, Interface, free_address};
use super::endpoint_service::EndpointService;
use crate::engine::call::{Answered, Call};
use crate::engine::preset::Phase;
use crate::engine::tags::{self, Tags};
use crate::wire::error::AwsError;
use crate::wire::xml::{Xml, group, text};

/// What the call takes.
const KNOWN: [&str; 9] = [
    "VpcEndpointType",
    "VpcId",
    "ServiceName",
    "SubnetId",
    "SecurityGroupId",
    "ClientToken",
    "TagSpecification",
    "PrivateDnsEnabled",
    "IpAddressType",
];

/// What a call asks for, once it has been checked.
struct Checked {
    vpc: String,
    service_id: String,
    acceptance_required: bool,
    subnets: Vec<String>,
    groups: Vec<String>,
    tags: Tags,
}

pub(super) fn create(call: &mut Call<'_>) -> Answered {
    call.params.only(&KNOWN)?;
    let vpc = call.params.required("VpcId")?.to_owned();
    let service_name = call.params.required("ServiceName")?.to_owned();
    let tags = tags::specified(&call.params, "vpc-endpoint")?;
    authorize(call, &vpc, &tags)?;
    if let Some(id) = call.repeated()? {
        match call
            .state
            .endpoints
            .get(&id)
            .filter(|endpoint| endpoint.is_listed(call.now))
        {
            Some(endpoint) if endpoint.state != "deleted" => return Ok(shown(call, &id, endpoint)),
            _ => call.repeated_but_gone()?,
        }
    }
    let checked = check(call, vpc, &service_name, tags)?;
    let subnets = checked.subnets.clone();
    let endpoint = endpoint(call, checked);
    let id = call.state.new_id("vpce");
    call.state.endpoints.insert(id.clone(), endpoint);
    for subnet in &subnets {
        attach(call, &id, subnet)?;
    }
    call.spend_token(&id);
    call.changed = true;
    call.late = call.state.preset.endpoint_answer();
    Ok(call
        .state
        .endpoints
        .get(&id)
        .map(|endpoint| shown(call, &id, endpoint))
        .unwrap_or_default())
}

fn check(call: &Call<'_>, vpc: String, service_name: &str, tags: Tags) -> Result<Checked, AwsError> {
    let private_dns = call.params.flag("PrivateDnsEnabled")?;
    if call.params.text("VpcEndpointType") != Some("Interface") || private_dns == Some(true) {
        let message = "Only interface endpoints without private DNS are supported for this service";
        return Err(AwsError::bad("InvalidParameter", message));
    }
    call.vpc(&vpc)?;
    let (service_id, service) = connectable(call, service_name)?;
    let subnets: Vec<String> = call.params.list("SubnetId").into_iter().map(str::to_owned).collect();
    check_subnets(call, &service_id, &vpc, &subnets)?;
    if call.now < service.created + call.state.preset.lasts(Phase::ServiceChange) {
        // Reported of services that already show `Available`.
        return Err(AwsError::new(
            503,
            "Unavailable",
            "The service is unavailable. Please try again shortly.",
        ));
    }
    let groups = groups(call, &vpc)?;
    let used = call
        .state
        .endpoints
        .values()
        .filter(|known| known.vpc == vpc && known.state != "deleted")
        .count();
    if used >= call.quotas().endpoints_per_vpc {
        let message = "The maximum number of VPC endpoints has been reached.";
        return Err(AwsError::bad("VpcEndpointLimitExceeded", message));
    }
    let acceptance_required = service.acceptance_required;
    Ok(Checked {
        vpc,
        service_id,
        acceptance_required,
        subnets,
        groups,
        tags,
    })
}

/// The endpoint, still without network interfaces.
fn endpoint(call: &mut Call<'_>, checked: Checked) -> Endpoint {
    let ready = call.now + call.state.preset.lasts(Phase::EndpointPending);
    let ends = call.ends.clone().unwrap_or_else(|| "available".to_owned());
    let acceptance = checked.acceptance_required;
    Endpoint {
        account: call.caller.account.clone(),
        region: call.region.clone(),
        vpc: checked.vpc,
        service_id: checked.service_id,
        state: if acceptance { "pendingAcceptance" } else { "pending" }.to_owned(),
        next: (!acceptance).then_some((ready, ends)),
        rejected: false,
        subnets: vec![],
        groups: checked.groups,
        label: format!("{:08x}", call.state.random.bits() >> 32),
        tags: checked.tags,
        created: call.now,
        unlisted_at: None,
    }
}

fn authorize(call: &Call<'_>, vpc: &str, tags: &Tags) -> Result<(), AwsError> {
    let owner = call.state.vpcs.get(vpc).map_or(call.account(), |vpc| &vpc.account);
    let mut arns = vec![call.arn_in(owner, &format!("vpc/{vpc}")), call.arn("vpc-endpoint/*")];
    for subnet in call.params.list("SubnetId") {
        let owner = call
            .state
            .subnets
            .get(subnet)
            .map_or(call.account(), |subnet| &subnet.account);
        arns.push(call.arn_in(owner, &format!("subnet/{subnet}")));
    }
    for group in call.params.list("SecurityGroupId") {
        arns.push(call.arn(&format!("security-group/{group}")));
    }
    call.authorize(&arns)?;
    call.allow_tags(tags, "vpc-endpoint/*")
}

/// The endpoint service of a name, if the caller may connect to it.
fn connectable<'c>(call: &'c Call<'_>, name: &str) -> Result<(String, &'c EndpointService), AwsError> {
    let id = name.rsplit('.').next().unwrap_or(name);
    let caller = &call.caller;
    let found = call.state.endpoint_services.get(id).filter(|service| {
        service.name(id) == name
            && service.state == "Available"
            && service.region == call.region
            && service.allows(&caller.principal, &caller.partition, &caller.account)
    });
    found.map(|service| (id.to_owned(), service)).ok_or_else(|| {
        let message = format!("The Vpc Endpoint Service '{name}' does not exist");
        AwsError::bad("InvalidServiceName", message)
    })
}

/// Refuses subnets that are unknown, elsewhere, two of one zone, or in a zone that the service is not in.
pub(super) fn check_subnets(call: &Call<'_>, service: &str, vpc: &str, subnets: &[String]) -> Result<(), AwsError> {
    if subnets.is_empty() && call.state.switches.subnets_are_required {
        return Err(AwsError::missing("SubnetId"));
    }
    let service = call.state.endpoint_services.get(service);
    let zones = service.map(|service| service.zone_ids(call.state)).unwrap_or_default();
    let mut taken: Vec<&str> = Vec::new();
    for id in subnets {
        let subnet = call.subnet(id)?;
        if subnet.vpc != vpc {
            let message = format!("The subnet {id} is not in the VPC {vpc}");
            return Err(AwsError::bad("InvalidParameter", message));
        }
        if taken.contains(&subnet.zone_id.as_str()) {
            let message = format!("Found another VPC endpoint subnet in the availability zone of {id}");
            return Err(AwsError::bad("DuplicateSubnetsInSameZone", message));
        }
        taken.push(&subnet.zone_id);
        if !zones.contains(&subnet.zone_id) {
            let message =
                format!("The VPC endpoint service does not support the availability zone of the subnet: {id}.");
            return Err(AwsError::bad("InvalidParameter", message));
        }
        if free_address(call.state, id).is_none() {
            let message = format!("The subnet {id} has no free addresses");
            return Err(AwsError::bad("InsufficientFreeAddressesInSubnet", message));
        }
    }
    Ok(())
}

/// The security groups of the call, or the VPC's default one.
fn groups(call: &Call<'_>, vpc: &str) -> Result<Vec<String>, AwsError> {
    let asked = call.params.list("SecurityGroupId");
    if asked.is_empty() {
        let account = call.account();
        let mut known = call.state.groups.iter();
        let usual = known.find(|(_, group)| group.vpc == vpc && group.name == "default" && group.account == account);
        return Ok(usual.map(|(id, _)| id.clone()).into_iter().collect());
    }
    check_groups(call, vpc, &asked)?;
    Ok(asked.into_iter().map(str::to_owned).collect())
}

/// Refuses security groups that are unknown, of another VPC, or too many.
pub(super) fn check_groups(call: &Call<'_>, vpc: &str, ids: &[&str]) -> Result<(), AwsError> {
    for id in ids {
        if call.group(id)?.vpc != vpc {
            let message = format!("The security group '{id}' does not belong to VPC '{vpc}'");
            return Err(AwsError::bad("InvalidParameter", message));
        }
    }
    match ids.len() > call.quotas().groups_per_interface {
        true => {
            let message = "The maximum number of security groups per interface has been reached.";
            Err(AwsError::bad("SecurityGroupsPerInterfaceLimitExceeded", message))
        }
        false => Ok(()),
    }
}

/// Gives an endpoint a network interface in a subnet.
pub(super) fn attach(call: &mut Call<'_>, id: &str, subnet: &str) -> Result<(), AwsError> {
    let full = || {
        AwsError::bad(
            "InsufficientFreeAddressesInSubnet",
            format!("The subnet {subnet} is full"),
        )
    };
    let address = free_address(call.state, subnet).ok_or_else(full)?;
    let interface = call.state.new_id("eni");
    if let Some(endpoint) = call.state.endpoints.get_mut(id) {
        endpoint.subnets.push(subnet.to_owned());
        let new = Interface {
            account: endpoint.account.clone(),
            region: endpoint.region.clone(),
            vpc: endpoint.vpc.clone(),
            subnet: subnet.to_owned(),
            groups: endpoint.groups.clone(),
            address,
            endpoint: id.to_owned(),
            gone_at: None,
        };
        call.state.interfaces.insert(interface, new);
    }
    Ok(())
}

fn shown(call: &Call<'_>, id: &str, endpoint: &Endpoint) -> Vec<Xml> {
    let mut answer = vec![group("vpcEndpoint", endpoint.show(call, id, &endpoint.tags))];
    answer.extend(call.params.text("ClientToken").map(|token| text("clientToken", token)));
    answer
}
