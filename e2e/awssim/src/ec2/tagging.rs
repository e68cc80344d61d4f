//! CreateTags, on whatever takes tags: all things of a call or none.

use super::returned;
use crate::engine::call::{Answered, Call};
use crate::engine::tags::{self, Tags};
use crate::wire::error::AwsError;

pub(super) fn create(call: &mut Call<'_>) -> Answered {
    call.params.only(&["ResourceId", "Tag"])?;
    let ids: Vec<String> = call.params.list("ResourceId").into_iter().map(str::to_owned).collect();
    if ids.is_empty() {
        return Err(AwsError::missing("ResourceIdSet"));
    }
    let new = tags::read(&call.params)?;
    if new.is_empty() {
        return Err(AwsError::missing("TagSet"));
    }
    let mut arns = Vec::new();
    for id in &ids {
        arns.push(call.arn(&format!("{}/{id}", kind(id))));
    }
    call.authorize(&arns)?;
    for id in &ids {
        let mut tried = of(call, id).ok_or_else(|| not_found(id))?.clone();
        tags::add(&mut tried, &new)?;
    }
    for id in &ids {
        if let Some(known) = of(call, id) {
            let before = known.clone();
            tags::add(known, &new)?;
            let changed = *known != before;
            call.changed |= changed;
        }
    }
    Ok(returned())
}

fn kind(id: &str) -> &'static str {
    match id.rsplit_once('-').map_or(id, |(prefix, _)| prefix) {
        "vpce-svc" => "vpc-endpoint-service",
        "vpce" => "vpc-endpoint",
        "sg" => "security-group",
        "subnet" => "subnet",
        "vpc" => "vpc",
        _ => "*",
    }
}

fn not_found(id: &str) -> AwsError {
    match kind(id) {
        "vpc-endpoint-service" => AwsError::not_found("InvalidVpcEndpointServiceId.NotFound", "VpcEndpointService", id),
        "vpc-endpoint" => AwsError::not_found("InvalidVpcEndpointId.NotFound", "vpcEndpoint", id),
        "security-group" => AwsError::not_found("InvalidGroup.NotFound", "securityGroup", id),
        "subnet" => AwsError::not_found("InvalidSubnetID.NotFound", "subnet", id),
        "vpc" => AwsError::not_found("InvalidVpcID.NotFound", "vpc", id),
        _ => AwsError::bad("InvalidID", format!("The ID '{id}' is not valid")),
    }
}

/// The tags of a thing of the caller's.
fn of<'c>(call: &'c mut Call<'_>, id: &str) -> Option<&'c mut Tags> {
    let (account, region) = (call.caller.account.clone(), call.region.clone());
    let here = |owner: &str, at: &str| owner == account && at == region;
    let state = &mut *call.state;
    match kind(id) {
        "vpc-endpoint-service" => {
            let found = state
                .endpoint_services
                .get_mut(id)
                .filter(|known| here(&known.account, &known.region));
            found.map(|known| &mut known.tags)
        }
        "vpc-endpoint" => {
            let found = state
                .endpoints
                .get_mut(id)
                .filter(|known| here(&known.account, &known.region));
            found.map(|known| &mut known.tags)
        }
        "security-group" => {
            let found = state
                .groups
                .get_mut(id)
                .filter(|known| here(&known.account, &known.region));
            found.map(|known| &mut known.tags)
        }
        "subnet" => {
            let found = state
                .subnets
                .get_mut(id)
                .filter(|known| here(&known.account, &known.region));
            found.map(|known| &mut known.tags)
        }
        "vpc" => {
            let found = state
                .vpcs
                .get_mut(id)
                .filter(|known| here(&known.account, &known.region));
            found.map(|known| &mut known.tags)
        }
        _ => None,
    }
}
