//! Describe, modify and delete endpoints.

use super::endpoint::Endpoint;
use super::endpoint_create::{attach, check_groups, check_subnets};
use super::endpoint_service::service_name;
use super::{next_token, returned, unsuccessful};
use crate::engine::call::{Answered, Call};
use crate::engine::filter::Filters;
use crate::engine::page::page;
use crate::engine::preset::Phase;
use crate::wire::error::AwsError;
use crate::wire::xml::list;

const NOT_FOUND: &str = "InvalidVpcEndpointId.NotFound";

impl Call<'_> {
    /// An endpoint of the caller's that is still listed.
    fn endpoint(&self, id: &str) -> Result<&Endpoint, AwsError> {
        let found = self.state.endpoints.get(id);
        let here = found.filter(|known| self.is_here(&known.account, &known.region) && known.is_listed(self.now));
        here.ok_or_else(|| {
            let message = format!("The Vpc Endpoint Id '{id}' does not exist");
            AwsError::bad(NOT_FOUND, message)
        })
    }
}

pub(super) fn describe(call: &mut Call<'_>) -> Answered {
    call.params
        .only(&["VpcEndpointId", "Filter", "MaxResults", "NextToken"])?;
    call.authorize(&["*".to_owned()])?;
    let known = [
        "service-name",
        "vpc-id",
        "vpc-endpoint-id",
        "vpc-endpoint-state",
        "vpc-endpoint-type",
        "ip-address-type",
        "tag-key",
    ];
    let filters = Filters::read(&call.params, &known)?;
    let asked = call.params.list("VpcEndpointId");
    for id in &asked {
        let created = call.endpoint(id)?.created;
        if !call.shows(created) {
            let message = format!("The Vpc Endpoint Id '{id}' does not exist");
            return Err(AwsError::bad(NOT_FOUND, message));
        }
    }
    let mut shown = Vec::new();
    let is_asked = |id: &str| asked.is_empty() || asked.contains(&id);
    for (id, endpoint) in call.state.endpoints.iter().filter(|(id, _)| is_asked(id)) {
        let tags = call.shown_tags(&endpoint.tags, endpoint.created);
        let values = |name: &str| {
            vec![match name {
                "service-name" => service_name(&endpoint.region, &endpoint.service_id),
                "vpc-id" => endpoint.vpc.clone(),
                "vpc-endpoint-id" => id.clone(),
                "vpc-endpoint-state" => endpoint.state.clone(),
                "vpc-endpoint-type" => "Interface".to_owned(),
                _ => "ipv4".to_owned(),
            }]
        };
        let is_shown = call.endpoint(id).is_ok() && call.shows(endpoint.created);
        if is_shown && filters.hit(&tags, values) {
            shown.push((id.clone(), endpoint.show(call, id, &tags)));
        }
    }
    let (shown, next) = page(&call.params, shown)?;
    Ok([list("vpcEndpointSet", "item", shown)]
        .into_iter()
        .chain(next_token(next))
        .collect())
}

pub(super) fn modify(call: &mut Call<'_>) -> Answered {
    call.params.only(&[
        "VpcEndpointId",
        "AddSubnetId",
        "RemoveSubnetId",
        "AddSecurityGroupId",
        "RemoveSecurityGroupId",
    ])?;
    let id = call.params.required("VpcEndpointId")?.to_owned();
    authorize(call, &id)?;
    let endpoint = call.endpoint(&id)?.clone();
    if !endpoint.is_live() {
        let message = format!(
            "The operation is not allowed for VPC Endpoint {id} in state {}",
            endpoint.state
        );
        return Err(AwsError::bad("InvalidState", message));
    }
    let subnets = subnets_after(call, &endpoint)?;
    check_subnets(call, &endpoint.service_id, &endpoint.vpc, &subnets)?;
    let groups = groups_after(call, &endpoint)?;
    call.changed = subnets != endpoint.subnets || groups != endpoint.groups;
    let gone_at = call.now + call.state.preset.lasts(Phase::InterfaceGone);
    for interface in call
        .state
        .interfaces
        .values_mut()
        .filter(|interface| interface.endpoint == id)
    {
        interface.groups.clone_from(&groups);
        if !subnets.contains(&interface.subnet) && interface.gone_at.is_none() {
            interface.gone_at = Some(gone_at);
        }
    }
    if let Some(endpoint) = call.state.endpoints.get_mut(&id) {
        endpoint.groups = groups;
        endpoint.subnets.retain(|subnet| subnets.contains(subnet));
    }
    for subnet in subnets.iter().filter(|subnet| !endpoint.subnets.contains(subnet)) {
        attach(call, &id, subnet)?;
    }
    Ok(returned())
}

fn authorize(call: &Call<'_>, id: &str) -> Result<(), AwsError> {
    let mut arns = vec![call.arn(&format!("vpc-endpoint/{id}"))];
    for subnet in [call.params.list("AddSubnetId"), call.params.list("RemoveSubnetId")].concat() {
        let owner = call
            .state
            .subnets
            .get(subnet)
            .map_or(call.account(), |subnet| &subnet.account);
        arns.push(call.arn_in(owner, &format!("subnet/{subnet}")));
    }
    for group in [
        call.params.list("AddSecurityGroupId"),
        call.params.list("RemoveSecurityGroupId"),
    ]
    .concat()
    {
        arns.push(call.arn(&format!("security-group/{group}")));
    }
    call.authorize(&arns)
}

/// The subnets that the endpoint has after the call.
fn subnets_after(call: &Call<'_>, endpoint: &Endpoint) -> Result<Vec<String>, AwsError> {
    let (added, removed) = (call.params.list("AddSubnetId"), call.params.list("RemoveSubnetId"));
    for id in &removed {
        call.subnet(id)?;
        if !endpoint.subnets.iter().any(|known| known == id) {
            let message = format!("The subnet {id} is not associated with the VPC endpoint");
            return Err(AwsError::bad("InvalidParameter", message));
        }
    }
    if call.state.switches.zone_swap_is_refused {
        for id in &added {
            let zone = &call.subnet(id)?.zone_id;
            let mut removed = removed.iter().filter_map(|id| call.state.subnets.get(*id));
            if removed.any(|removed| removed.zone_id == *zone) {
                let message = format!("Found another VPC endpoint subnet in the availability zone of {id}");
                return Err(AwsError::bad("DuplicateSubnetsInSameZone", message));
            }
        }
    }
    let kept = endpoint
        .subnets
        .iter()
        .filter(|known| !removed.contains(&known.as_str()))
        .cloned();
    let mut subnets: Vec<String> = kept.collect();
    subnets.extend(
        added
            .into_iter()
            .filter(|id| !endpoint.subnets.iter().any(|known| known == id))
            .map(str::to_owned),
    );
    Ok(subnets)
}

/// The security groups that the endpoint has after the call.
fn groups_after(call: &Call<'_>, endpoint: &Endpoint) -> Result<Vec<String>, AwsError> {
    let (added, removed) = (
        call.params.list("AddSecurityGroupId"),
        call.params.list("RemoveSecurityGroupId"),
    );
    let mut groups: Vec<&str> = endpoint.groups.iter().map(String::as_str).collect();
    groups.retain(|known| !removed.contains(known));
    for id in added {
        if !groups.contains(&id) {
            groups.push(id);
        }
    }
    check_groups(call, &endpoint.vpc, &groups)?;
    match groups.is_empty() {
        true => {
            let message = "An endpoint needs at least one security group";
            Err(AwsError::bad("InvalidParameter", message))
        }
        false => Ok(groups.into_iter().map(str::to_owned).collect()),
    }
}

pub(super) fn delete(call: &mut Call<'_>) -> Answered {
    call.params.only(&["VpcEndpointId"])?;
    let ids: Vec<String> = call
        .params
        .list("VpcEndpointId")
        .into_iter()
        .map(str::to_owned)
        .collect();
    if ids.is_empty() {
        return Err(AwsError::missing("VpcEndpointId"));
    }
    let arns: Vec<String> = ids.iter().map(|id| call.arn(&format!("vpc-endpoint/{id}"))).collect();
    call.authorize(&arns)?;
    let mut failed = Vec::new();
    for id in &ids {
        if let Err(error) = call.endpoint(id) {
            failed.push(unsuccessful(id, &error));
            continue;
        }
        let (over, gone_at) = (
            call.now + call.state.preset.lasts(Phase::EndpointDeleting),
            call.now + call.state.preset.lasts(Phase::InterfaceGone),
        );
        let endpoint = call.state.endpoints.get_mut(id);
        // A second deletion changes nothing.
        if let Some(endpoint) = endpoint.filter(|known| !known.state.starts_with("delet")) {
            endpoint.state = "deleting".to_owned();
            endpoint.next = Some((over, "deleted".to_owned()));
            for interface in call
                .state
                .interfaces
                .values_mut()
                .filter(|interface| interface.endpoint == *id)
            {
                interface.gone_at.get_or_insert(gone_at);
            }
            call.changed = true;
        }
    }
    Ok(vec![list("unsuccessful", "item", failed)])
}
