//! The fields that hold one text, each with its length and the forms that its rules refuse.

use super::case::{Case, NETWORK, UUID, Verb, set};

/// One row of the table.
pub(crate) struct TextField {
    /// JSON pointer of the field.
    at: &'static str,
    /// Longest text that is accepted.
    max: usize,
    /// A valid text is this, as many `a` as are needed, and [`TextField::tail`].
    head: String,
    tail: &'static str,
    /// Further accepted texts.
    good: Vec<String>,
    /// Texts within the length that are refused.
    bad: Vec<String>,
}

impl TextField {
    fn new(at: &'static str, max: usize, head: impl Into<String>) -> Self {
        TextField {
            at,
            max,
            head: head.into(),
            tail: "",
            good: Vec::new(),
            bad: Vec::new(),
        }
    }

    fn good<const N: usize>(mut self, texts: [&str; N]) -> Self {
        self.good.extend(texts.map(str::to_owned));
        self
    }

    fn bad<const N: usize>(mut self, texts: [&str; N]) -> Self {
        self.bad.extend(texts.map(str::to_owned));
        self
    }

    /// An ARM id below [`NETWORK`], whose `types` lead to the name.
    fn arm_id(at: &'static str, max: usize, types: &str) -> Self {
        let id = format!("{NETWORK}/{types}/");
        let mut row = TextField::new(at, max, &id);
        // The rules keep the number of segments, not what is in them.
        row.good = vec![format!("{id}x\n"), format!("{id}..?x=y#z")];
        row.bad = vec![
            id.clone(),
            format!("{id}x/"),
            format!("{id}x/y/z"),
            format!("{id}x").replace("Microsoft.Network", "microsoft.network"),
            format!("{id}x").replace("Microsoft.Network", "MicrosoftxNetwork"),
            format!("{id}x").replace("resourceGroups", "resourcegroups"),
            format!("{id}x").replace("/resourceGroups/rg", ""),
            format!("{id}x").replacen('/', "", 1),
            format!("https://management.azure.com{id}x"),
            format!("{NETWORK}/unknownType/x"),
        ];
        row
    }

    /// Also accepts an ARM id in which the subscription is any word.
    fn any_subscription(mut self) -> Self {
        self.good.push(format!("{}x", self.head.replace(UUID, "any")));
        self
    }

    fn longest(&self) -> String {
        self.of_length(self.max)
    }

    fn of_length(&self, length: usize) -> String {
        let fill = length - self.head.len() - self.tail.len();
        format!("{}{}{}", self.head, "a".repeat(fill), self.tail)
    }

    /// The cases of this row.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let verb = if self.at.starts_with("/spec") {
            Verb::Create
        } else {
            Verb::Status
        };
        let case = |what: &str, text: &str| Case::new(verb, format!("{} {what}", self.at)).edit(set(self.at, text));
        let field = self.at[1..].replace('/', ".");
        let mut cases = vec![
            case("is as long as allowed", &self.longest()),
            case("is too long", &self.of_length(self.max + 1)).refused_at(&field),
            case("is empty", "").refused_at(&field),
        ];
        cases.extend(self.good.iter().map(|text| case(&format!("is {text:?}"), text)));
        let refused = |text: &String| case(&format!("is {text:?}"), text).refused_at(&field);
        cases.extend(self.bad.iter().map(refused));
        cases
    }
}

/// All rows of the table.
pub(crate) fn text_fields() -> Vec<TextField> {
    [spec(), status()].into_iter().flatten().collect()
}

fn spec() -> Vec<TextField> {
    vec![
        ip("/spec/loadBalancerIP"),
        TextField::new("/spec/subscriptionID", 36, UUID)
            .good([&UUID.to_uppercase()])
            .bad([
                &UUID[1..],
                &UUID.replace('-', "0"),
                &UUID.replace('a', "g"),
                "{1111111-1111-4111-8111-11111111abc}",
            ]),
        TextField::new("/spec/resourceGroupName", 90, "A-z_0.(9)")
            .good(["(a)", ".a"])
            .bad(["rg.", "r g", "rg/x", "grüppe", "rg\n"]),
        TextField::new("/spec/location", 50, "")
            .good(["0", "westus2"])
            .bad(["EastUS", "East US", "east-us", "eastus ", "eastus\n"]),
        subnet("/spec/natSubnetID"),
        subnet("/spec/guestSubnetID"),
        TextField::arm_id("/spec/guestVNetID", 355, "virtualNetworks").any_subscription(),
        dns_name("/spec/baseDomain"),
    ]
}

fn status() -> Vec<TextField> {
    let mut alias = TextField::new("/status/privateLinkServiceAlias", 170, "pls-")
        .good(["a.-.0.azure.privatelinkservice"])
        .bad([
            "pls-1",
            "a.b.c.0-a.eastus.azure.privatelinkservice",
            "pls.xyz.eastus.azure.privatelinkservice",
            "pls.0-a.East-US.azure.privatelinkservice",
            "pls.0-a.eastus.azurexprivatelinkservice",
            "pls.0-a.eastus.azure.privatelinkservice.",
        ]);
    alias.tail = ".0-a.eastus.azure.privatelinkservice";
    let mut load_balancer = TextField::arm_id("/status/internalLoadBalancerID", 284, "loadBalancers");
    load_balancer
        .bad
        .push(format!("{}x", load_balancer.head.replace(UUID, "any")));
    let mut zone_id = ["/status/privateDNSZoneID", "/status/baseDomainDNSZoneID"]
        .map(|at| TextField::arm_id(at, 265, "privateDnsZones").any_subscription());
    for row in &mut zone_id {
        row.bad.push(format!("{NETWORK}/privateDNSZones/x"));
    }
    let [zone, base_domain_zone] = zone_id;
    vec![
        load_balancer,
        TextField::arm_id("/status/privateLinkServiceID", 270, "privateLinkServices").any_subscription(),
        alias,
        TextField::arm_id("/status/privateEndpointID", 267, "privateEndpoints").any_subscription(),
        ip("/status/privateEndpointIP"),
        zone,
        dns_name("/status/dnsZoneName"),
        base_domain_zone,
    ]
}

fn subnet(at: &'static str) -> TextField {
    let mut row = TextField::arm_id(at, 355, "virtualNetworks/v/subnets").any_subscription();
    row.bad.push(format!("{NETWORK}/virtualNetworks/v"));
    row
}

fn ip(at: &'static str) -> TextField {
    // The longest address that Kubernetes takes has exactly the length that is allowed.
    TextField::new(at, 39, "2001:0db8:0000:0000:0000:0000:0000:0001")
        .good(["10.0.0.4", "fd00::4"])
        .bad([
            "10.0.0",
            "010.0.0.4",
            "10.0.0.256",
            "10.0.0.4/24",
            "fe80::1%eth0",
            "::ffff:10.0.0.4",
            "example.com",
        ])
}

fn dns_name(at: &'static str) -> TextField {
    TextField::new(at, 253, "a.")
        .good(["local", "A.Example.COM", "0-0.1"])
        .bad([
            "example.com.",
            ".example.com",
            "example..com",
            "-a.example.com",
            "a-.example.com",
            "a_b.example.com",
            "*.example.com",
            "bücher.example",
        ])
}
