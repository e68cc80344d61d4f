//! Calls for endpoint services: create, modify, describe, delete.

use super::endpoint_service::EndpointService;
use super::{next_token, returned, unsuccessful};
use crate::engine::call::{Answered, Call};
use crate::engine::filter::Filters;
use crate::engine::page::page;
use crate::engine::preset::Phase;
use crate::engine::tags;
use crate::wire::error::AwsError;
use crate::wire::xml::{group, list, text};

/// The code of calls that name an endpoint service that is not there; its deletion has another.
pub(super) const NOT_FOUND: &str = "InvalidVpcEndpointServiceId.NotFound";

fn invalid(message: String) -> AwsError {
    AwsError::bad("InvalidParameter", message)
}

/// Refuses load balancers that cannot serve: unknown, not active, or serving another endpoint service.
fn check_balancers(call: &Call<'_>, arns: &[&str], except: Option<&str>) -> Result<(), AwsError> {
    for arn in arns {
        let found = call.state.load_balancers.get(*arn);
        let here = found.filter(|balancer| call.is_here(&balancer.account, &balancer.region));
        let balancer = here.ok_or_else(|| invalid(format!("The load balancer {arn} does not exist")))?;
        if !balancer.state.starts_with("active") {
            return Err(invalid(format!("The load balancer {arn} is not active")));
        }
        let others = call
            .state
            .endpoint_services
            .iter()
            .filter(|(id, _)| Some(id.as_str()) != except);
        if others
            .into_iter()
            .any(|(_, other)| other.load_balancers.iter().any(|used| used == arn))
        {
            let message = format!("The load balancer {arn} is already associated with another VPC endpoint service");
            return Err(invalid(message));
        }
    }
    Ok(())
}

pub(super) fn create(call: &mut Call<'_>) -> Answered {
    let known = [
        "AcceptanceRequired",
        "NetworkLoadBalancerArn",
        "ClientToken",
        "TagSpecification",
        "SupportedIpAddressType",
    ];
    call.params.only(&known)?;
    let tags = tags::specified(&call.params, "vpc-endpoint-service")?;
    call.authorize(&[call.arn("vpc-endpoint-service/*")])?;
    call.allow_tags(&tags, "vpc-endpoint-service/*")?;
    if let Some(id) = call.repeated()? {
        match call
            .state
            .endpoint_services
            .get(&id)
            .filter(|service| service.state != "Deleting")
        {
            Some(service) => return Ok(shown(call, &id, service)),
            None => call.repeated_but_gone()?,
        }
    }
    let arns = call.params.list("NetworkLoadBalancerArn");
    if arns.is_empty() {
        return Err(invalid(
            "exactly one of network_load_balancer_arn or gateway_load_balancer_arn is a required member".to_owned(),
        ));
    }
    check_balancers(call, &arns, None)?;
    let here = call
        .state
        .endpoint_services
        .values()
        .filter(|service| call.is_here(&service.account, &service.region));
    if here.count() >= call.quotas().endpoint_services {
        let message = "The maximum number of VPC endpoint services has been reached.";
        return Err(AwsError::bad("VpcEndpointServiceLimitExceeded", message));
    }
    // A new one shows `Available` at once, though it takes no endpoints yet.
    let ends = call.ends.clone();
    let next = ends.map(|ends| (call.now + call.state.preset.lasts(Phase::ServiceChange), ends));
    let service = EndpointService {
        account: call.caller.account.clone(),
        region: call.region.clone(),
        state: if next.is_some() { "Pending" } else { "Available" }.to_owned(),
        next,
        load_balancers: arns.into_iter().map(str::to_owned).collect(),
        // AWS's own default.
        acceptance_required: call.params.flag("AcceptanceRequired")?.unwrap_or(true),
        principals: vec![],
        tags,
        created: call.now,
    };
    let id = call.state.new_id("vpce-svc");
    call.state.endpoint_services.insert(id.clone(), service.clone());
    call.spend_token(&id);
    call.changed = true;
    Ok(shown(call, &id, &service))
}

fn shown(call: &Call<'_>, id: &str, service: &EndpointService) -> Vec<crate::wire::xml::Xml> {
    let mut answer = vec![group("serviceConfiguration", service.show(call, id, &service.tags))];
    answer.extend(call.params.text("ClientToken").map(|token| text("clientToken", token)));
    answer
}

pub(super) fn modify(call: &mut Call<'_>) -> Answered {
    let known = [
        "ServiceId",
        "AcceptanceRequired",
        "AddNetworkLoadBalancerArn",
        "RemoveNetworkLoadBalancerArn",
    ];
    call.params.only(&known)?;
    let id = call.params.required("ServiceId")?.to_owned();
    call.authorize(&[call.arn(&format!("vpc-endpoint-service/{id}"))])?;
    let service = call.endpoint_service(&id, NOT_FOUND)?;
    let mut balancers = service.load_balancers.clone();
    let (added, removed) = (
        call.params.list("AddNetworkLoadBalancerArn"),
        call.params.list("RemoveNetworkLoadBalancerArn"),
    );
    check_balancers(call, &added, Some(&id))?;
    if let Some(unknown) = removed.iter().find(|arn| !balancers.iter().any(|known| known == *arn)) {
        return Err(invalid(format!(
            "The load balancer {unknown} is not associated with {id}"
        )));
    }
    balancers.retain(|arn| !removed.contains(&arn.as_str()));
    balancers.extend(
        added
            .into_iter()
            .filter(|arn| !service.load_balancers.iter().any(|known| known == arn))
            .map(str::to_owned),
    );
    if balancers.is_empty() {
        return Err(invalid("An endpoint service needs a load balancer".to_owned()));
    }
    let acceptance = call.params.flag("AcceptanceRequired")?;
    if let Some(service) = call.state.endpoint_services.get_mut(&id) {
        service.load_balancers = balancers;
        service.acceptance_required = acceptance.unwrap_or(service.acceptance_required);
        call.changed = true;
    }
    Ok(returned())
}

pub(super) fn describe(call: &mut Call<'_>) -> Answered {
    call.params.only(&["ServiceId", "Filter", "MaxResults", "NextToken"])?;
    call.authorize(&["*".to_owned()])?;
    let known = [
        "service-name",
        "service-id",
        "service-state",
        "supported-ip-address-types",
        "tag-key",
    ];
    let filters = Filters::read(&call.params, &known)?;
    let asked = call.params.list("ServiceId");
    for id in &asked {
        let found = call
            .state
            .endpoint_services
            .get(*id)
            .filter(|service| call.shows(service.created));
        if !found.is_some_and(|service| call.is_here(&service.account, &service.region)) {
            return Err(AwsError::not_found(NOT_FOUND, "VpcEndpointService", id));
        }
    }
    let mut shown = Vec::new();
    let is_asked = |id: &str| asked.is_empty() || asked.contains(&id);
    for (id, service) in call.state.endpoint_services.iter().filter(|(id, _)| is_asked(id)) {
        let tags = call.shown_tags(&service.tags, service.created);
        let values = |name: &str| {
            vec![match name {
                "service-name" => service.name(id),
                "service-id" => id.clone(),
                "service-state" => service.state.clone(),
                _ => "ipv4".to_owned(),
            }]
        };
        let is_shown = call.is_here(&service.account, &service.region) && call.shows(service.created);
        if is_shown && filters.hit(&tags, values) {
            shown.push((id.clone(), service.show(call, id, &tags)));
        }
    }
    let (shown, next) = page(&call.params, shown)?;
    Ok([list("serviceConfigurationSet", "item", shown)]
        .into_iter()
        .chain(next_token(next))
        .collect())
}

pub(super) fn delete(call: &mut Call<'_>) -> Answered {
    call.params.only(&["ServiceId"])?;
    let ids: Vec<String> = call.params.list("ServiceId").into_iter().map(str::to_owned).collect();
    if ids.is_empty() {
        return Err(AwsError::missing("ServiceId"));
    }
    let arns: Vec<String> = ids
        .iter()
        .map(|id| call.arn(&format!("vpc-endpoint-service/{id}")))
        .collect();
    call.authorize(&arns)?;
    let mut failed = Vec::new();
    for id in &ids {
        match delete_one(call, id) {
            Ok(()) => call.changed = true,
            Err(error) => failed.push(unsuccessful(id, &error)),
        }
    }
    Ok(vec![list("unsuccessful", "item", failed)])
}

fn delete_one(call: &mut Call<'_>, id: &str) -> Result<(), AwsError> {
    call.endpoint_service(id, "InvalidVpcEndpointService.NotFound")?;
    let blocks = |state: &str| match state {
        "pendingAcceptance" | "pending" | "available" => true,
        "deleting" => call.state.switches.deleting_blocks_delete,
        _ => false,
    };
    let mut endpoints = call
        .state
        .endpoints
        .values()
        .filter(|endpoint| endpoint.service_id == id);
    if endpoints.any(|endpoint| blocks(endpoint.connection_state())) {
        let message = format!("Service {id} has existing active VPC Endpoint connections!");
        return Err(AwsError::bad("ExistingVpcEndpointConnections", message));
    }
    let over = call.now + call.state.preset.lasts(Phase::ServiceChange);
    if let Some(service) = call.state.endpoint_services.get_mut(id) {
        service.state = "Deleting".to_owned();
        service.next = Some((over, "Deleted".to_owned()));
    }
    Ok(())
}
