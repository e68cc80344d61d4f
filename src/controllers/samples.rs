//! Objects that the tests of decisions share.

use std::sync::Arc;

use serde_json::{Value, json};

use super::azure::lists::ListNeed;
use super::azure::{Facts, Need, Needs};
use crate::api::AzurePrivateLinkService;
use crate::azure::arm::id::ResourceId;
use crate::azure::cloud::Observed;
use crate::hypershift::identity::Identity;

pub(crate) const GUEST: &str = "11111111-1111-4111-8111-111111111111";
pub(super) const MANAGEMENT: &str = "33333333-3333-4333-8333-333333333333";
pub(super) const ALIAS: &str = "pls-id.6b1f0a2c-3d4e-4f50-8a61-7b8c9d0e1f22.eastus.azure.privatelinkservice";

/// `/subscriptions/…/providers/Microsoft.Network/…` in the guest's group.
pub(crate) fn guest(path: &str) -> String {
    format!("/subscriptions/{GUEST}/resourceGroups/guest/providers/Microsoft.Network/{path}")
}

/// A path like [`guest`], in the management group.
pub(crate) fn management(path: &str) -> String {
    format!("/subscriptions/{MANAGEMENT}/resourceGroups/mgmt/providers/Microsoft.Network/{path}")
}

pub(crate) fn id(text: &str) -> ResourceId {
    ResourceId::parse(text).unwrap()
}

pub(crate) fn identity() -> Identity {
    Identity {
        name: "example".into(),
        cluster_id: "id".into(),
        infra_id: "infra".into(),
    }
}

/// A custom resource of the cluster, with this status and these annotations.
pub(crate) fn cr(status: Value, annotations: Value) -> AzurePrivateLinkService {
    let vnet = guest("virtualNetworks/v");
    serde_json::from_value(json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AzurePrivateLinkService",
        "metadata": {"name": "private-router", "namespace": "clusters-example", "uid": "u", "generation": 1, "annotations": annotations},
        "spec": {"subscriptionID": GUEST, "resourceGroupName": "guest", "location": "eastus", "loadBalancerIP": "10.224.0.4",
            "guestSubnetID": format!("{vnet}/subnets/default"), "guestVNetID": vnet, "baseDomain": "apps.example.com"},
        "status": status}))
    .unwrap()
}

/// Runs a decision and answers its needs from `resources`; what is not there is absent. Returns the ids that it asked
/// for.
pub(crate) fn decided<T>(
    mut facts: Facts,
    resources: &[(String, Value)],
    decide: impl Fn(&Facts) -> Result<T, Needs>,
) -> (T, Vec<String>) {
    let mut asked = Vec::new();
    loop {
        match decide(&facts) {
            Ok(decision) => return (decision, asked),
            Err(needs) => needs
                .into_iter()
                .for_each(|need| answer(&mut facts, resources, need, &mut asked)),
        }
    }
}

/// Adds the read of one resource. One that is absent is so for certain.
fn add_read(facts: &mut Facts, resources: &[(String, Value)], target: ResourceId) {
    let found = resources.iter().find(|(text, _)| id(text) == target);
    if found.is_none() {
        facts.surely_gone.insert(target.clone());
    }
    let observed = found.map_or(Observed::Absent, |(_, body)| Observed::Found(body.clone()));
    facts.reads.insert(target, observed);
}

fn answer(facts: &mut Facts, resources: &[(String, Value)], need: Need, asked: &mut Vec<String>) {
    match need {
        Need::FreshRead(_, target) => {
            asked.push(format!("new {}", target.name()));
            facts.fresh_reads.insert(target.clone());
            add_read(facts, resources, target);
        }
        Need::Read(_, target) => {
            asked.push(target.name().to_owned());
            add_read(facts, resources, target);
        }
        Need::List(ListNeed::Inside(kind, zone)) => {
            let inside = resources
                .iter()
                .filter(|(text, _)| id(text).parent() == Some(zone.clone()) && id(text).is(kind));
            let bodies = inside.map(|(_, body)| body.clone()).collect();
            asked.push(format!("inside {}", zone.name()));
            facts.lists.inside.insert((kind, zone), Ok(bodies));
        }
        Need::List(ListNeed::Frontends(subscription, group)) => {
            asked.push(format!("frontends {}", group.as_deref().unwrap_or("everywhere")));
            facts.lists.frontends.insert((subscription, group), Ok(Arc::default()));
        }
        Need::List(ListNeed::NewFrontends(subscription, group, _)) => {
            asked.push(format!("new frontends {}", group.as_deref().unwrap_or("everywhere")));
            facts.lists.new_frontends.insert((subscription, group));
        }
    }
}
