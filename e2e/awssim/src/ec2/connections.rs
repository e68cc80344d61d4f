//! Connections: endpoints as the owner of the endpoint service has them.

use super::endpoint_service_calls::NOT_FOUND;
use super::{next_token, time, unsuccessful};
use crate::engine::call::{Answered, Call};
use crate::engine::filter::Filters;
use crate::engine::page::page;
use crate::engine::preset::Phase;
use crate::engine::tags::Tags;
use crate::wire::error::AwsError;
use crate::wire::xml::{list, text, texts};

pub(super) fn describe(call: &mut Call<'_>) -> Answered {
    call.params.only(&["Filter", "MaxResults", "NextToken"])?;
    call.authorize(&["*".to_owned()])?;
    let mut known = vec![
        "service-id",
        "vpc-endpoint-owner",
        "vpc-endpoint-state",
        "ip-address-type",
    ];
    if !call.state.switches.connection_filter_is_refused {
        known.push("vpc-endpoint-id");
    }
    let filters = Filters::read(&call.params, &known)?;
    let mut shown = Vec::new();
    for (id, endpoint) in &call.state.endpoints {
        let Some(service) = call.state.endpoint_services.get(&endpoint.service_id) else {
            continue;
        };
        let values = |name: &str| {
            vec![match name {
                "service-id" => endpoint.service_id.clone(),
                "vpc-endpoint-owner" => endpoint.account.clone(),
                "vpc-endpoint-state" => endpoint.connection_state().to_owned(),
                "vpc-endpoint-id" => id.clone(),
                _ => "ipv4".to_owned(),
            }]
        };
        let is_shown = call.is_here(&service.account, &service.region) && call.shows(endpoint.created);
        if is_shown && filters.hit(&Tags::new(), values) {
            let members = vec![
                text("serviceId", &endpoint.service_id),
                text("vpcEndpointId", id),
                text("vpcEndpointOwner", &endpoint.account),
                text("vpcEndpointState", endpoint.connection_state()),
                text("creationTimestamp", time(endpoint.created)),
                endpoint.dns_entries(call.state, id),
                texts("networkLoadBalancerArnSet", "item", &service.load_balancers),
                text("ipAddressType", "ipv4"),
                text("vpcEndpointConnectionId", id.replacen("vpce-", "vpce-con-", 1)),
            ];
            shown.push((id.clone(), members));
        }
    }
    let (shown, next) = page(&call.params, shown)?;
    Ok([list("vpcEndpointConnectionSet", "item", shown)]
        .into_iter()
        .chain(next_token(next))
        .collect())
}

pub(super) fn reject(call: &mut Call<'_>) -> Answered {
    each(call, |call, id| {
        let endpoint = call.state.endpoints.get_mut(id).filter(|endpoint| endpoint.is_live());
        let Some(endpoint) = endpoint else {
            return Err(invalid_state(id));
        };
        endpoint.state = "rejected".to_owned();
        endpoint.rejected = true;
        endpoint.next = None;
        Ok(())
    })
}

pub(super) fn accept(call: &mut Call<'_>) -> Answered {
    each(call, |call, id| {
        let ready = call.now + call.state.preset.lasts(Phase::EndpointPending);
        let endpoint = call
            .state
            .endpoints
            .get_mut(id)
            .filter(|endpoint| endpoint.state == "pendingAcceptance");
        let Some(endpoint) = endpoint else {
            return Err(invalid_state(id));
        };
        endpoint.state = "pending".to_owned();
        endpoint.next = Some((ready, "available".to_owned()));
        Ok(())
    })
}

fn invalid_state(id: &str) -> AwsError {
    AwsError::bad(
        "InvalidState",
        format!("VPC Endpoint {id} is not in a state that allows this"),
    )
}

/// Does something to each connection that the call names; what fails is answered item by item.
fn each(call: &mut Call<'_>, act: impl Fn(&mut Call<'_>, &str) -> Result<(), AwsError>) -> Answered {
    call.params.only(&["ServiceId", "VpcEndpointId"])?;
    let service = call.params.required("ServiceId")?.to_owned();
    let ids: Vec<String> = call
        .params
        .list("VpcEndpointId")
        .into_iter()
        .map(str::to_owned)
        .collect();
    if ids.is_empty() {
        return Err(AwsError::missing("VpcEndpointId"));
    }
    call.authorize(&[call.arn(&format!("vpc-endpoint-service/{service}"))])?;
    call.endpoint_service(&service, NOT_FOUND)?;
    let mut failed = Vec::new();
    for id in &ids {
        let connected = call
            .state
            .endpoints
            .get(id)
            .is_some_and(|endpoint| endpoint.service_id == service);
        let done = match connected {
            true => act(call, id),
            false => Err(AwsError::not_found("InvalidVpcEndpointId.NotFound", "Vpc Endpoint", id)),
        };
        match done {
            Ok(()) => call.changed = true,
            Err(error) => failed.push(unsuccessful(id, &error)),
        }
    }
    Ok(vec![list("unsuccessful", "item", failed)])
}
