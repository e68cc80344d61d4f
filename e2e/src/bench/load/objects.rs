//! The simulator's content under load: the resources of hosted clusters, on VNets and load balancers that they share
//! within Azure's limits.

use serde_json::{Value, json};

pub(super) const TENANT: &str = "22222222-2222-4222-8222-222222222222";
pub(super) const CLIENT: &str = "aaaaaaaa-0003-4000-8000-000000000001";
pub(super) const SECRET: &str = "load-secret";
const OBJECT: &str = "bbbbbbbb-0003-4000-8000-000000000001";
const SUBSCRIPTION: &str = "33333333-3333-4333-8333-333333333333";
const LOCATION: &str = "eastus";

/// Azure's limit of Private Link Services on one load balancer.
const ON_ONE_LOAD_BALANCER: usize = 8;
/// How many clusters' Private Endpoints share a VNet.
const ON_ONE_VNET: usize = 50;
const RECORDS: [&str; 3] = ["api", "oauth", "@"];
const NETWORK_VERSION: &str = "2024-05-01";
const DNS_VERSION: &str = "2024-06-01";

fn network(kind: &str, name: impl std::fmt::Display) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/load/providers/Microsoft.Network/{kind}/{name}")
}

/// One hosted cluster's resources, by the cluster's number.
pub(super) struct Cluster(pub(super) usize);

impl Cluster {
    fn load_balancer(&self) -> String {
        network("loadBalancers", self.0 / ON_ONE_LOAD_BALANCER)
    }

    fn frontend(&self) -> usize {
        self.0 % ON_ONE_LOAD_BALANCER
    }

    fn management_vnet() -> String {
        network("virtualNetworks", "management")
    }

    fn guest_vnet(&self) -> String {
        network("virtualNetworks", format!("guest{}", self.0 / ON_ONE_VNET))
    }

    fn link_service(&self) -> String {
        network("privateLinkServices", format!("pls{}", self.0))
    }

    fn endpoint(&self) -> String {
        network("privateEndpoints", format!("pe{}", self.0))
    }

    fn zones(&self) -> [String; 2] {
        ["apps", "hypershift"].map(|name| network("privateDnsZones", format!("{name}.c{}.example.com", self.0)))
    }

    fn link_service_body(&self, proxy: bool) -> Value {
        let frontend = format!("{}/frontendIPConfigurations/f{}", self.load_balancer(), self.frontend());
        let subnet = format!("{}/subnets/nat{}", Self::management_vnet(), self.0);
        json!({"location": LOCATION, "properties": {
            "enableProxyProtocol": proxy,
            "loadBalancerFrontendIpConfigurations": [{"id": frontend}],
            "ipConfigurations": [{"name": "nat", "properties": {"primary": true, "subnet": {"id": subnet}}}]}})
    }

    fn endpoint_body(&self, tag: usize) -> Value {
        let connection = json!({"name": "connection", "properties": {"privateLinkServiceId": self.link_service()}});
        json!({"location": LOCATION, "tags": {"write": tag.to_string()}, "properties": {
            "subnet": {"id": format!("{}/subnets/endpoints", self.guest_vnet())},
            "privateLinkServiceConnections": [connection]}})
    }

    fn record_body(address: usize) -> Value {
        let address = format!("10.1.{}.{}", address / 256 % 256, address % 256);
        json!({"properties": {"ttl": 300, "aRecords": [{"ipv4Address": address}]}})
    }

    fn resources(&self) -> Vec<Value> {
        let with_id = |id: String, mut body: Value| {
            body["id"] = json!(id);
            body
        };
        let mut all = vec![
            with_id(self.link_service(), self.link_service_body(false)),
            with_id(self.endpoint(), self.endpoint_body(0)),
        ];
        for zone in self.zones() {
            all.push(json!({"id": zone, "location": "global"}));
            let link = json!({"location": "global", "properties": {"virtualNetwork": {"id": self.guest_vnet()}, "registrationEnabled": false}});
            all.push(with_id(format!("{zone}/virtualNetworkLinks/guest"), link));
            for name in RECORDS {
                all.push(with_id(format!("{zone}/A/{name}"), Self::record_body(self.0)));
            }
        }
        all
    }

    /// The path of the read numbered `number`: what a controller reads again, and lists in between.
    pub(super) fn read(&self, number: usize) -> String {
        let [zone, other] = self.zones();
        let network = |id: String| format!("{id}?api-version={NETWORK_VERSION}");
        let dns = |id: String| format!("{id}?api-version={DNS_VERSION}");
        match number % 8 {
            0 => network(self.link_service()),
            1 => network(format!("{}/privateEndpointConnections", self.link_service())),
            2 => format!("{}&$expand=networkInterfaces", network(self.endpoint())),
            3 => dns(zone),
            4 => dns(format!("{other}/virtualNetworkLinks/guest")),
            5 => dns(format!("{zone}/A/api")),
            6 => dns(format!("{other}/ALL")),
            _ => network(format!("{}/subnets/nat{}", Self::management_vnet(), self.0)),
        }
    }

    /// The path and body of the write numbered `number`. All writes are PUTs: records, a zone, a Private Endpoint's
    /// tags, and a Private Link Service, which Azure takes a while to change.
    pub(super) fn write(&self, number: usize) -> (String, Value) {
        let [zone, other] = self.zones();
        match number % 8 {
            0 => {
                let path = format!("{}?api-version={NETWORK_VERSION}", self.link_service());
                (path, self.link_service_body((number / 8).is_multiple_of(2)))
            }
            1 => {
                let path = format!("{}?api-version={NETWORK_VERSION}", self.endpoint());
                (path, self.endpoint_body(number))
            }
            2 => {
                let body = json!({"location": "global", "tags": {"write": number.to_string()}});
                (format!("{zone}?api-version={DNS_VERSION}"), body)
            }
            kind => {
                let zone = if kind % 2 == 0 { zone } else { other };
                let path = format!("{zone}/A/{}?api-version={DNS_VERSION}", RECORDS[kind % 2]);
                (path, Self::record_body(number))
            }
        }
    }
}

/// A seed for the simulator with the resources of `clusters` clusters, without throttling.
pub(super) fn seed(clusters: usize) -> Value {
    let mut resources =
        vec![json!({"id": format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/load"), "location": LOCATION})];
    let nat = |cluster: usize| {
        let prefix = format!(
            "10.{}.{}.{}/28",
            64 + cluster / 4096,
            cluster / 16 % 256,
            cluster % 16 * 16
        );
        json!({"name": format!("nat{cluster}"), "properties": {"addressPrefix": prefix, "privateLinkServiceNetworkPolicies": "Disabled"}})
    };
    let mut subnets: Vec<Value> = (0..clusters).map(nat).collect();
    subnets.push(json!({"name": "nodes", "properties": {"addressPrefix": "10.0.0.0/16"}}));
    resources.push(vnet(Cluster::management_vnet(), &json!(subnets)));
    for first in (0..clusters).step_by(ON_ONE_VNET) {
        let subnet = json!([{"name": "endpoints", "properties": {"addressPrefix": "10.0.0.0/16"}}]);
        resources.push(vnet(Cluster(first).guest_vnet(), &subnet));
    }
    for first in (0..clusters).step_by(ON_ONE_LOAD_BALANCER) {
        let subnet = format!("{}/subnets/nodes", Cluster::management_vnet());
        let frontends: Vec<Value> = (0..ON_ONE_LOAD_BALANCER)
            .map(|at| json!({"name": format!("f{at}"), "properties": {"subnet": {"id": subnet}}}))
            .collect();
        resources.push(
            json!({"id": Cluster(first).load_balancer(), "location": LOCATION, "sku": {"name": "Standard"},
            "properties": {"frontendIPConfigurations": frontends}}),
        );
    }
    resources.extend((0..clusters).flat_map(|at| Cluster(at).resources()));
    json!({
        "tenants": [{"id": TENANT, "principals": [{"client_id": CLIENT, "object_id": OBJECT, "secret": SECRET}]}],
        "subscriptions": [{"id": SUBSCRIPTION, "tenant": TENANT}],
        "roles": [{"object_id": OBJECT, "scope": format!("/subscriptions/{SUBSCRIPTION}"), "actions": ["*"]}],
        "throttle": {"enabled": false},
        "resources": resources,
    })
}

fn vnet(id: String, subnets: &Value) -> Value {
    json!({"id": id, "location": LOCATION, "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/8"]}, "subnets": subnets}})
}
