//! Samples for the tests of the CPO role: a cluster's resources in Azure, and decisions over them.

use serde_json::{Value, json};

use super::plan::{ControlPlane, ControlPlaneState, Vouched, Voucher, build};
use super::shadow::PublicNames;
use super::siblings::Sibling;
use super::teardown::teardown;
use crate::api::hypershift::AzurePlatform;
use crate::api::markers::{CPO_FINALIZER, CPO_INTENT, OAUTH};
use crate::api::{AzurePrivateLinkService, Reason};
use crate::azure::plan::Step;
use crate::controllers::azure::{Decision, Facts};
use crate::controllers::samples::{ALIAS, cr, decided, guest, identity};
use crate::engine::plan::Verb;
use crate::hypershift::problem::Problem;

pub(super) const ENDPOINT: &str = "privateEndpoints/private-router-pe";
pub(super) const INTERNAL: &str = "privateDnsZones/example.hypershift.local";
pub(super) const BASE: &str = "privateDnsZones/apps.example.com";

pub(super) fn azure() -> AzurePlatform {
    let vnet = guest("virtualNetworks/v");
    serde_json::from_value(json!({"subscriptionID": crate::controllers::samples::GUEST, "resourceGroup": "Guest",
        "vnetID": vnet.to_uppercase().replace("/SUBSCRIPTIONS/", "/subscriptions/"), "subnetID": format!("{vnet}/subnets/default")}))
    .unwrap()
}

pub(super) fn served_state() -> ControlPlaneState {
    let control_plane = ControlPlane {
        identity: identity(),
        azure: azure(),
        held: true,
        public: PublicNames::default(),
    };
    ControlPlaneState {
        control_plane: Ok(control_plane),
        paused: None,
        refused: None,
        control_plane_deleting: false,
        siblings: Vec::new(),
        voucher: Voucher::Conditions,
        other_controller: None,
    }
}

/// A served state, where the HostedCluster vouches with this.
pub(super) fn vouched(vouched: Vouched) -> ControlPlaneState {
    ControlPlaneState {
        voucher: Voucher::HostedCluster(Box::new(vouched)),
        ..served_state()
    }
}

/// The state when the control plane does not exist any more.
pub(super) fn headless() -> ControlPlaneState {
    ControlPlaneState {
        control_plane: Err(Problem::new(Reason::HostedControlPlaneNotFound, "gone")),
        ..served_state()
    }
}

/// The annotations with our own intent.
pub(super) fn intent() -> Value {
    json!({CPO_INTENT: json!({"cluster": "example", "clusterID": "id", "infraID": "infra"}).to_string()})
}

pub(super) fn with_alias() -> AzurePrivateLinkService {
    cr(json!({"privateLinkServiceAlias": ALIAS}), json!({}))
}

pub(super) fn run(cr: &AzurePrivateLinkService, world: &[(String, Value)]) -> (Decision, Vec<String>) {
    run_in(cr, &served_state(), world)
}

/// Decides in a process that has proven all of this world to be the cluster's.
pub(super) fn run_after_proof(cr: &AzurePrivateLinkService, world: &[(String, Value)]) -> Decision {
    let facts = Facts {
        proven: world
            .iter()
            .map(|(id, _)| crate::controllers::samples::id(id))
            .collect(),
        ..Facts::default()
    };
    decided(facts, world, |facts| build(cr, &served_state(), facts)).0.0
}

pub(super) fn run_in(
    cr: &AzurePrivateLinkService,
    state: &ControlPlaneState,
    world: &[(String, Value)],
) -> (Decision, Vec<String>) {
    let ((decision, _), asked) = decided(Facts::default(), world, |facts| build(cr, state, facts));
    (decision, asked)
}

pub(super) fn tear(cr: &AzurePrivateLinkService, state: &ControlPlaneState, world: &[(String, Value)]) -> Decision {
    decided(Facts::default(), world, |facts| teardown(cr, state, facts)).0
}

pub(super) fn marked(more: Value) -> Value {
    let mut body = json!({"tags": {"hypershift.openshift.io_cluster-id": "id"}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

pub(super) fn endpoint(state: &str, alias: &str) -> (String, Value) {
    let connection =
        json!({"properties": {"privateLinkServiceId": alias, "privateLinkServiceConnectionState": {"status": state}}});
    let nic = json!({"properties": {"ipConfigurations": [{"properties": {"privateIPAddress": "10.0.0.5"}}]}});
    let properties = json!({"subnet": {"id": guest("virtualNetworks/v/subnets/default")},
        "manualPrivateLinkServiceConnections": [connection], "networkInterfaces": [nic]});
    (guest(ENDPOINT), marked(json!({"properties": properties})))
}

pub(super) fn zones() -> Vec<(String, Value)> {
    [INTERNAL, BASE]
        .map(|zone| {
            (
                guest(zone),
                marked(json!({"properties": {"numberOfVirtualNetworkLinks": 0}})),
            )
        })
        .to_vec()
}

/// Everything as the first reconciles would have put it.
pub(super) fn complete() -> Vec<(String, Value)> {
    let mut world: Vec<_> = zones().into_iter().chain([endpoint("Approved", ALIAS)]).collect();
    let (decision, _) = run(&with_alias(), &world);
    for step in decision.steps {
        if let Verb::Put(mut body) = step.verb {
            body["name"] = json!(step.key.name());
            body["type"] = json!("Microsoft.Network/privateDnsZones/A");
            world.push((step.key.to_string(), body));
        }
    }
    for (_, zone) in world.iter_mut().take(2) {
        zone["properties"]["numberOfVirtualNetworkLinks"] = json!(1);
    }
    world
}

/// Everything as HyperShift's own operator makes it: without our owner tags.
pub(super) fn unmarked() -> Vec<(String, Value)> {
    let mut world = complete();
    for (_, body) in &mut world {
        body["tags"] = json!({"hypershift.openshift.io_resource-type": "x"});
        body["properties"].as_object_mut().unwrap().remove("metadata");
    }
    world
}

/// The custom resource as HyperShift's own operator leaves it, but for some fields of the status.
pub(super) fn of_go(change: Value) -> AzurePrivateLinkService {
    let mut status = json!({"privateLinkServiceAlias": ALIAS, "privateEndpointID": guest(ENDPOINT),
        "privateEndpointIP": "10.0.0.5", "privateDNSZoneID": guest(INTERNAL), "dnsZoneName": "example.hypershift.local",
        "baseDomainDNSZoneID": guest(BASE)});
    status
        .as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    cr(status, json!({}))
}

/// Another body for what has this name.
pub(super) fn changed(
    mut world: Vec<(String, Value)>,
    name: &str,
    change: impl FnOnce(&mut Value),
) -> Vec<(String, Value)> {
    let found = world.iter_mut().find(|(id, _)| id.ends_with(&format!("/{name}")));
    change(&mut found.unwrap().1);
    world
}

pub(super) fn step<'a>(decision: &'a Decision, name: &str) -> &'a Step {
    decision.steps.iter().find(|step| step.key.name() == name).unwrap()
}

pub(super) fn verb<'a>(decision: &'a Decision, name: &str) -> &'a Verb {
    &step(decision, name).verb
}

/// The names of what is written.
pub(super) fn written(decision: &Decision) -> Vec<&str> {
    let writes = decision.steps.iter().filter(|step| step.writes());
    writes.map(|step| step.key.name()).collect()
}

/// The custom resource of OAuth, in the status of one that is complete.
pub(super) fn oauth() -> AzurePrivateLinkService {
    let mut resource = of_go(json!({"privateEndpointID": null, "privateEndpointIP": null, "privateDNSZoneID": null}));
    resource.metadata.name = Some(OAUTH.to_owned());
    resource.metadata.uid = Some("o".to_owned());
    resource
}

pub(super) fn beside(siblings: &[AzurePrivateLinkService]) -> ControlPlaneState {
    let siblings = siblings.iter().map(|one| {
        let mut held = one.clone();
        held.metadata.finalizers = Some(vec![CPO_FINALIZER.to_owned()]);
        Sibling::of(&held, false)
    });
    ControlPlaneState {
        siblings: siblings.collect(),
        ..served_state()
    }
}
