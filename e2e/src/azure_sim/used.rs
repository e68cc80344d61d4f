//! Which actions a role has used, by the journal of the simulated Azure.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, ensure};

use crate::test_env::Call;

/// The actions that a caller needed: those of the calls themselves and of the resources that they join.
///
/// # Errors
///
/// A call was refused.
pub fn used_actions(calls: &[Call], client: &str) -> Result<BTreeSet<String>> {
    let mut used = BTreeSet::new();
    for call in calls.iter().filter(|call| call.principal.as_deref() == Some(client)) {
        ensure!(
            !matches!(call.status, 401 | 403),
            "refused: {} {}",
            call.method,
            call.path
        );
        // The URL of a Microsoft.Network operation is signed, which is all that it takes.
        if call.resource_kind == "Microsoft.Network/locations/operations" {
            continue;
        }
        let verb = match call.method.as_str() {
            "GET" | "HEAD" => "read",
            "PUT" | "PATCH" => "write",
            "DELETE" => "delete",
            other => return Err(anyhow!("{other} {}", call.path)),
        };
        used.insert(format!("{}/{verb}", call.resource_kind));
        if call.query.contains("networkInterfaces") {
            // What an expanded read shows is the interface itself.
            used.insert("Microsoft.Network/networkInterfaces/read".to_owned());
        }
        if verb == "write" {
            used.extend(joins(&call.resource_kind).iter().map(|action| (*action).to_owned()));
        }
    }
    Ok(used)
}

/// What joins a subnet.
pub const SUBNET_JOIN: &str = "Microsoft.Network/virtualNetworks/subnets/join/action";

/// What joins a virtual network.
pub const NETWORK_JOIN: &str = "Microsoft.Network/virtualNetworks/join/action";

/// What joins the frontend of a load balancer.
pub const FRONTEND_JOIN: &str = "Microsoft.Network/loadBalancers/frontendIPConfigurations/join/action";

/// What a write needs on the resources that its body refers to.
fn joins(kind: &str) -> &'static [&'static str] {
    match kind {
        "Microsoft.Network/privateLinkServices" => &[SUBNET_JOIN, FRONTEND_JOIN],
        "Microsoft.Network/privateEndpoints" => &[SUBNET_JOIN],
        "Microsoft.Network/privateDnsZones/virtualNetworkLinks" => &[NETWORK_JOIN],
        _ => &[],
    }
}
