//! Endpoints to a service of another subscription by its id, of the same tenant or of another one: who may ask, who is
//! approved without asking, and what the service's owner decides.

use armsim::{Caller, Preset};
use rstest::rstest;
use serde_json::{Value, json};

use crate::endpoint::{AUTOMATIC, MANUAL, by_id, path, status};
use crate::network_support::{CONSUMER, GUEST_NET, GUEST_SUB, NET, PROVIDER, SUB, Sim, TENANT, caller, pls, seed};

const OTHER_TENANT: &str = "99999999-9999-9999-9999-999999999999";

/// A provider and a consumer, each with rights on its own subscription only; the consumer's is of that tenant.
struct Apart {
    sim: Sim,
    tenant: &'static str,
}

impl Apart {
    fn new(tenant: &'static str) -> Self {
        let mut json = seed();
        json["tenants"] = json!([{"id": TENANT}, {"id": OTHER_TENANT}]);
        json["subscriptions"] = json!([{"id": SUB, "tenant": TENANT}, {"id": GUEST_SUB, "tenant": tenant}]);
        let role = |who: &str, subscription: &str| {
            let scope = format!("/subscriptions/{subscription}");
            json!({"object_id": who, "scope": scope, "actions": ["*"]})
        };
        json["roles"] = json!([role(PROVIDER, SUB), role(CONSUMER, GUEST_SUB)]);
        let sim = Sim::seeded(json, Preset::Recorded);
        Self { sim, tenant }
    }

    fn as_provider(&mut self) -> &mut Sim {
        self.sim.caller = caller(PROVIDER);
        &mut self.sim
    }

    fn as_consumer(&mut self) -> &mut Sim {
        let tenant_id = self.tenant.to_owned();
        self.sim.caller = Caller {
            tenant_id,
            ..caller(CONSUMER)
        };
        &mut self.sim
    }

    /// A service with these lists of subscriptions, ready.
    fn service(&mut self, visible: &[&str], approved: &[&str]) {
        let mut body = pls();
        body["properties"]["visibility"]["subscriptions"] = json!(visible);
        body["properties"]["autoApproval"]["subscriptions"] = json!(approved);
        self.as_provider().make(&service(), body);
    }

    /// The state of the endpoint's connection as its owner reads it.
    fn state(&mut self, list: &str) -> String {
        status(&self.as_consumer().get(&path("pe")).body, list).0
    }

    /// The id of the only connection, as the service's owner reads it.
    fn connection(&mut self) -> String {
        let list = self
            .as_provider()
            .get(&format!("{}/privateEndpointConnections", service()));
        assert_eq!(list.body["value"].as_array().unwrap().len(), 1, "{}", list.body);
        list.body["value"][0]["id"].as_str().unwrap().to_owned()
    }

    /// The owner's decision, in force.
    fn decide(&mut self, decision: &str) {
        let connection = self.connection();
        let state = json!({"status": decision, "description": "decided"});
        let body = json!({"properties": {"privateLinkServiceConnectionState": state}});
        let put = self.as_provider().put(&connection, body);
        assert_eq!(put.status, 200, "{}", put.body);
        self.sim.wait(60.0);
    }
}

fn service() -> String {
    format!("{NET}/privateLinkServices/svc")
}

/// An endpoint by id that asks for approval.
fn request() -> Value {
    let mut body = by_id();
    body["properties"][MANUAL] = body["properties"][AUTOMATIC].take();
    body["properties"][AUTOMATIC] = json!([]);
    body["properties"][MANUAL][0]["properties"]["requestMessage"] = json!("please");
    body
}

#[rstest]
#[case::same_tenant(TENANT)]
#[case::other_tenant(OTHER_TENANT)]
fn request_by_id_waits_for_the_owner(#[case] tenant: &'static str) {
    let mut apart = Apart::new(tenant);
    apart.service(&[GUEST_SUB], &[]);
    let put = apart.as_consumer().put(&path("pe"), request());
    assert_eq!((put.status, put.state()), (201, "Updating"), "{}", put.body);
    apart.sim.wait(700.0);
    let shown = apart.as_consumer().get(&path("pe"));
    assert_eq!((shown.state(), apart.state(MANUAL).as_str()), ("Succeeded", "Pending"));
    let connection = &shown.body["properties"][MANUAL][0]["properties"];
    assert_eq!(connection["privateLinkServiceId"], json!(service()));
    assert_eq!(connection["requestMessage"], json!("please"));
    apart.decide("Approved");
    assert_eq!(apart.state(MANUAL), "Approved");
    apart.decide("Rejected");
    assert_eq!(apart.state(MANUAL), "Rejected");
    let connection = apart.connection();
    assert_eq!(apart.as_provider().delete(&connection).status, 202);
    apart.sim.wait(60.0);
    assert_eq!(apart.state(MANUAL), "Disconnected");
}

#[rstest]
#[case::same_tenant(TENANT)]
#[case::other_tenant(OTHER_TENANT)]
fn request_by_id_of_the_invited_is_approved_by_itself(#[case] tenant: &'static str) {
    let mut apart = Apart::new(tenant);
    apart.service(&["*"], &[GUEST_SUB]);
    let put = apart.as_consumer().put(&path("pe"), request());
    assert_eq!((put.status, status(&put.body, MANUAL).0.as_str()), (201, "Pending"));
    apart.sim.wait(700.0);
    assert_eq!(apart.state(MANUAL), "Approved");
}

#[rstest]
#[case::same_tenant(TENANT, 201, "")]
#[case::other_tenant(OTHER_TENANT, 403, "LinkedAuthorizationFailed")]
fn automatic_connection_by_id_stops_at_the_tenant(
    #[case] tenant: &'static str,
    #[case] status: u16,
    #[case] code: &str,
) {
    let mut apart = Apart::new(tenant);
    apart.service(&["*"], &[GUEST_SUB]);
    let put = apart.as_consumer().put(&path("pe"), by_id());
    assert_eq!((put.status, put.code()), (status, code), "{}", put.body);
    if status == 403 {
        let why = format!("the current tenant '{tenant}' is not authorized to access linked subscription '{SUB}'");
        assert!(put.message().contains(&why), "{}", put.message());
    } else {
        assert_eq!(apart.state(AUTOMATIC), "Approved");
    }
}

#[rstest]
#[case::same_tenant(TENANT)]
#[case::other_tenant(OTHER_TENANT)]
fn service_that_is_hidden_cannot_be_asked_by_id(#[case] tenant: &'static str) {
    let mut apart = Apart::new(tenant);
    apart.service(&[SUB], &[]);
    let refused = apart.as_consumer().put(&path("pe"), request());
    assert_eq!(refused.refusal(), (400, "InvalidPrivateLinkServiceId", "service"));
    apart.service(&[SUB, GUEST_SUB], &[]);
    assert_eq!(apart.as_consumer().put(&path("pe"), request()).status, 201);
}

#[test]
fn owner_of_the_endpoint_has_no_say_at_the_service() {
    let mut apart = Apart::new(TENANT);
    apart.service(&[GUEST_SUB], &[]);
    apart.as_consumer().make(&path("pe"), request());
    let connection = apart.connection();
    let body = json!({"properties": {"privateLinkServiceConnectionState": {"status": "Approved"}}});
    let refused = apart.as_consumer().put(&connection, body);
    assert_eq!(refused.refusal(), (403, "AuthorizationFailed", "gateway"));
    let refused = apart.as_provider().get(&path("pe"));
    assert_eq!(refused.refusal(), (403, "AuthorizationFailed", "gateway"));
}

/// Characters count, not bytes.
#[rstest]
#[case::longest("é".repeat(140), 201, "")]
#[case::too_long("x".repeat(141), 400, "RequestMessageTooLong")]
fn request_message_has_a_limit(#[case] message: String, #[case] status: u16, #[case] code: &str) {
    let mut sim = Sim::new();
    sim.link_service("svc");
    for list in [MANUAL, AUTOMATIC] {
        let mut body = if list == MANUAL { request() } else { by_id() };
        body["properties"][list][0]["properties"]["requestMessage"] = json!(message);
        let put = sim.put(&path(list), body);
        assert_eq!((put.status, put.code()), (status, code), "{}", put.body);
    }
}

#[test]
fn endpoint_without_rights_on_its_own_subnet_is_refused() {
    let mut apart = Apart::new(OTHER_TENANT);
    apart.service(&[GUEST_SUB], &[]);
    let mut body = request();
    body["properties"]["subnet"]["id"] = json!(format!("{NET}/virtualNetworks/vnet/subnets/lb"));
    let refused = apart
        .as_consumer()
        .put(&format!("{GUEST_NET}/privateEndpoints/pe"), body);
    assert_eq!(refused.refusal(), (403, "LinkedAuthorizationFailed", "gateway"));
}
