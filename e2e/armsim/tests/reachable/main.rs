//! The walk from a name to a Service, on a simulated Azure in which everything is in place.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod across;
#[path = "../dns_support/mod.rs"]
mod dns_support;
mod hops;
mod names;

use armsim::Reachable;
use dns_support::{NETWORK, Sim, a, seed, vnet, zone};
use serde_json::{Value, json};

const NAME: &str = "api.mine.hypershift.local";

const ZONE: &str = "mine.hypershift.local";

/// The first address that the workers' subnet has to give.
const ADDRESS: &str = "10.0.0.4";

fn balancer() -> String {
    format!("{NETWORK}/loadBalancers/lb")
}

fn link_service() -> String {
    format!("{NETWORK}/privateLinkServices/pls")
}

fn endpoint(name: &str) -> String {
    format!("{NETWORK}/privateEndpoints/{name}")
}

fn subnet(vnet_name: &str) -> String {
    format!("{}/subnets/workers", vnet(vnet_name))
}

fn frontend() -> String {
    format!("{}/frontendIPConfigurations/f1", balancer())
}

fn link_service_body() -> Value {
    json!({
        "location": "westus2",
        "properties": {
            "loadBalancerFrontendIpConfigurations": [{"id": frontend()}],
            "ipConfigurations": [{"name": "nat", "properties": {"subnet": {"id": subnet("vnet2")}}}],
            "visibility": {"subscriptions": ["*"]},
            "autoApproval": {"subscriptions": []},
        },
    })
}

impl Sim {
    fn drift(&mut self, id: &str, body: Value) {
        let now = self.now;
        self.azure.put_resource(now, id, body).unwrap();
    }

    fn drop(&mut self, id: &str) {
        let now = self.now;
        assert!(self.azure.delete_resource(now, id).unwrap(), "{id}");
    }

    fn walk(&mut self, name: &str) -> Reachable {
        let now = self.now;
        self.azure.reachable(now, &vnet("vnet1"), name)
    }

    /// An endpoint in the VNet, asking for the service by its alias; its address.
    fn add_endpoint(&mut self, name: &str, vnet_name: &str) -> String {
        let alias = self.get(&link_service()).body["properties"]["alias"].clone();
        let connection =
            json!({"name": name, "properties": {"privateLinkServiceId": alias, "requestMessage": "please"}});
        let body = json!({"location": "westus2", "properties": {
            "subnet": {"id": subnet(vnet_name)}, "manualPrivateLinkServiceConnections": [connection],
        }});
        let created = self.put(&endpoint(name), body);
        assert_eq!(created.status, 201, "{}", created.body);
        self.wait(700);
        let shown = self.get(&format!("{}?$expand=networkInterfaces", endpoint(name))).body;
        assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
        let nic = &shown["properties"]["networkInterfaces"][0]["properties"];
        nic["ipConfigurations"][0]["properties"]["privateIPAddress"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// The id of the endpoint's connection on the service.
    fn connection(&mut self, name: &str) -> String {
        let shown = self.get(&link_service()).body;
        let all = shown["properties"]["privateEndpointConnections"].as_array().unwrap();
        let made = all
            .iter()
            .find(|made| made["properties"]["privateEndpoint"]["id"] == endpoint(name))
            .unwrap();
        made["id"].as_str().unwrap().to_owned()
    }

    /// The provider's decision.
    fn decide(&mut self, name: &str, status: &str) {
        let connection = self.connection(name);
        let state = json!({"status": status, "description": "decided"});
        let decided = self.put(
            &connection,
            json!({"properties": {"privateLinkServiceConnectionState": state}}),
        );
        assert_eq!(decided.status, 200, "{}", decided.body);
        self.wait(60);
    }

    fn point(&mut self, addresses: &[&str]) {
        for name in ["api", "*.apps"] {
            let written = self.put(&format!("{}/A/{name}", zone(ZONE)), a(addresses));
            assert!(written.status < 300, "{}", written.body);
        }
    }
}

/// Everything in place: zone, completed link, records, endpoint in vnet1, approved connection, PLS, frontend, Service.
fn in_place() -> Sim {
    let mut seed = seed();
    let mut resources = seed["resources"].as_array().unwrap().clone();
    for (name, prefix) in [("vnet1", "10.0.0.0/24"), ("vnet2", "10.1.0.0/24")] {
        let policies = json!({"addressPrefix": prefix, "privateLinkServiceNetworkPolicies": "Disabled"});
        resources.push(json!({"id": subnet(name), "properties": policies}));
    }
    resources.push(json!({
        "id": balancer(), "location": "westus2", "sku": {"name": "Standard"},
        "properties": {"frontendIPConfigurations": [
            {"name": "f1", "properties": {"privateIPAddress": "10.1.0.4", "subnet": {"id": subnet("vnet2")}}},
        ]},
    }));
    seed["resources"] = json!(resources);
    seed["services"] = json!([{"load_balancer": balancer(), "frontend": "f1", "name": "clusters-mine/private-router"}]);
    let mut sim = Sim::with(seed);
    let created = sim.put(&link_service(), link_service_body());
    assert_eq!(created.status, 201, "{}", created.body);
    sim.wait(60);
    assert_eq!(sim.add_endpoint("pe1", "vnet1"), ADDRESS);
    sim.decide("pe1", "Approved");
    sim.make_zone(ZONE);
    sim.link(ZONE, "l", "vnet1");
    sim.point(&[ADDRESS]);
    sim
}
