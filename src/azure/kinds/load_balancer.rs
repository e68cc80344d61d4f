//! Load balancers, of which only the internal frontends are read.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::Value;

use super::{Kind, KindSpec, NETWORK, NETWORK_API, Rules};
use crate::arm::error::ArmError;
use crate::arm::id::{ResourceId, lower};
use crate::body::id_at;

/// What generic code has to know of load balancers.
pub const SPEC: KindSpec = KindSpec {
    label: "load_balancer",
    provider: NETWORK,
    path: &["loadBalancers"],
    api_version: NETWORK_API,
    service: NETWORK,
    rules: Rules {
        shared: true,
        ..Rules::DEFAULT
    },
    ..KindSpec::DEFAULT
};

/// An internal frontend of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frontend {
    /// The load balancer.
    pub load_balancer: ResourceId,
    /// The frontend's own id, as Azure spells it.
    pub id: String,
    /// The frontend's name.
    pub name: String,
    /// The frontend's private address.
    pub address: IpAddr,
    /// The subnet that the address is in.
    pub subnet: ResourceId,
}

/// The frontends that a list shows, which all who read it share; or why there is none.
pub type FrontendList = Result<Arc<Vec<Frontend>>, ArmError>;

/// The internal frontends of a list of load balancers, each once: a load balancer that changes between two pages is
/// listed twice. Public frontends, and those without an address yet, are left out.
pub fn internal_frontends(load_balancers: &[Value]) -> Vec<Frontend> {
    let mut unique = HashSet::new();
    let all = load_balancers.iter().flat_map(frontends_of);
    all.filter(|frontend| unique.insert((lower(&frontend.id), frontend.address, frontend.subnet.clone())))
        .collect()
}

fn frontends_of(load_balancer: &Value) -> Vec<Frontend> {
    let Some(id) = id_at(load_balancer, "/id").filter(|id| id.is(Kind::LoadBalancer)) else {
        return Vec::new();
    };
    let list = load_balancer
        .pointer("/properties/frontendIPConfigurations")
        .and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|frontend| read(&id, frontend))
        .collect()
}

fn read(load_balancer: &ResourceId, frontend: &Value) -> Option<Frontend> {
    Some(Frontend {
        load_balancer: load_balancer.clone(),
        id: frontend.get("id")?.as_str()?.to_owned(),
        name: frontend.get("name")?.as_str()?.to_owned(),
        address: frontend
            .pointer("/properties/privateIPAddress")?
            .as_str()?
            .parse()
            .ok()?,
        subnet: id_at(frontend, "/properties/subnet/id").filter(|id| id.is(Kind::Subnet))?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn public_and_addressless_frontends_are_left_out() {
        let base = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";
        let subnet = json!({"id": format!("{base}/virtualNetworks/v/subnets/a")});
        let list = [
            json!({"id": format!("{base}/loadBalancers/lb"), "properties": {"frontendIPConfigurations": [
                {"id": "x/public", "name": "public", "properties": {"publicIPAddress": {"id": "p"}}},
                {"id": "x/new", "name": "new", "properties": {"subnet": subnet}},
                {"id": "x/good", "name": "good", "properties": {"subnet": subnet, "privateIPAddress": "10.0.0.4"}},
            ]}}),
        ];
        let names: Vec<String> = internal_frontends(&list).into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["good"]);
    }

    #[test]
    fn load_balancer_that_the_list_shows_twice_is_one() {
        let base = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";
        let shown = |group: &str, address: &str| {
            let id = format!("{}/loadBalancers/lb", base.replace("resourceGroups/g", group));
            let properties =
                json!({"subnet": {"id": format!("{base}/virtualNetworks/v/subnets/a")}, "privateIPAddress": address});
            let frontend =
                json!({"id": format!("{id}/frontendIPConfigurations/f"), "name": "f", "properties": properties});
            json!({"id": id, "properties": {"frontendIPConfigurations": [frontend]}})
        };
        let list = [
            shown("resourceGroups/g", "10.0.0.4"),
            shown("resourceGroups/G", "10.0.0.4"),
            shown("resourceGroups/g", "10.0.0.5"),
            shown("resourceGroups/other", "10.0.0.4"),
        ];
        let addresses: Vec<String> = internal_frontends(&list)
            .iter()
            .map(|f| f.address.to_string())
            .collect();
        assert_eq!(
            addresses,
            ["10.0.0.4", "10.0.0.5", "10.0.0.4"],
            "what it had before may be shown too"
        );
    }
}
