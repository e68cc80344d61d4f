//! What Azure refuses of a load balancer: what its parts and frontends refer to, and frontends in use.
//!
//! `FrontendIPConfigurationInUseByPrivateLinkService` and `LoadBalancer...CannotBeChanged` are the simulator's: Azure's
//! own codes are not documented.

use serde_json::Value;

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::kind::LinkedScope;

use super::link_service;
use super::load_balancer::{FRONTENDS, NAMES, frontend};
use super::reference::{missing, usable};
use super::shape::{by_name, id_of, items};
use super::subnet;
use super::written::Put;

fn refuse<T>(code: &str, message: String) -> Result<T, ArmError> {
    Err(ArmError::service(400, code, message))
}

/// What a caller must be allowed to join to put this load balancer.
pub(crate) fn joins(properties: &Value) -> Vec<LinkedScope> {
    let frontends = items(&properties[FRONTENDS]).iter();
    let references = frontends.flat_map(|item| {
        [
            ("subnet", "Microsoft.Network/virtualNetworks/subnets/join/action"),
            ("publicIPAddress", "Microsoft.Network/publicIPAddresses/join/action"),
        ]
        .map(|(field, action)| (id_of(&item["properties"][field]), action))
    });
    references
        .filter_map(|(id, action)| {
            Some(LinkedScope {
                id: id?.to_owned(),
                action,
            })
        })
        .collect()
}

/// Every rule for a PUT, in the order in which they are checked.
pub(crate) fn check(cx: &Context<'_>, put: &Put<'_>, frontends: &[(&str, &Value)]) -> Result<(), ArmError> {
    let known = cx.state.store.get(put.id);
    let sku = put.given["sku"]["name"].as_str().unwrap_or("Basic");
    if let Some(old) = known.and_then(|known| known.body["sku"]["name"].as_str())
        && !old.eq_ignore_ascii_case(sku)
    {
        let message = format!("SKU of load balancer {} cannot be changed from {old} to {sku}.", put.id);
        return refuse("LoadBalancerSkuCannotBeChanged", message);
    }
    for (name, item) in frontends {
        let before = known
            .and_then(|known| frontend(known, name))
            .map(|before| &before["properties"]);
        let given = &item["properties"];
        // What it has already may be busy.
        let new = |field: &str| {
            let id = id_of(&given[field])?;
            let same = before
                .and_then(|before| id_of(&before[field]))
                .is_some_and(|old| old.eq_ignore_ascii_case(id));
            Some(id).filter(|_| !same)
        };
        if let Some(public) = new("publicIPAddress") {
            usable(cx, put.id, public, put.location)?;
        }
        if let Some(reference) = new("subnet") {
            subnet::usable(cx, put, reference)?;
        }
    }
    names_exist(put)?;
    in_use(cx, put)
}

/// What a part names of the load balancer itself is in the same body.
fn names_exist(put: &Put<'_>) -> Result<(), ArmError> {
    let given = &put.given["properties"];
    let own = format!("{}/", put.id.key());
    for (by, field, list) in NAMES {
        for user in items(&given[by]) {
            let named = &user["properties"][field];
            for id in items(named).iter().chain(Some(named)).filter_map(id_of) {
                let name = id.rsplit('/').next().unwrap_or_default();
                if !id.to_ascii_lowercase().starts_with(&own) || by_name(&given[list], name).is_none() {
                    return Err(missing(put.id, id));
                }
            }
        }
    }
    Ok(())
}

/// A frontend that a private link service uses cannot be left out.
fn in_use(cx: &Context<'_>, put: &Put<'_>) -> Result<(), ArmError> {
    let Some(balancer) = cx.state.store.get(put.id) else {
        return Ok(());
    };
    for item in items(balancer.property(FRONTENDS)) {
        let name = item["name"].as_str().unwrap_or_default();
        if by_name(&put.given["properties"][FRONTENDS], name).is_some() {
            continue;
        }
        let frontend = put.id.child(FRONTENDS, name);
        if let Some(service) = link_service::on_frontend(cx, &frontend).first() {
            let message =
                format!("Frontend IP configuration {frontend} cannot be deleted since it is used by {service}.");
            return refuse("FrontendIPConfigurationInUseByPrivateLinkService", message);
        }
    }
    Ok(())
}
