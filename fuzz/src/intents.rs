//! Annotations and other short texts: they are read as written, and a forged intent deletes only owned resources.

use std::sync::Arc;

use hyperlink::api::markers::{ABANDON, CLUSTER_ANNOTATION, CPO_INTENT, HO_INTENT};
use hyperlink::api::prune::read_part;
use hyperlink::api::{AzurePrivateLinkService, ClusterRef, Paused, Reason, Role, pause};
use hyperlink::azure::arm::id::{ResourceId, SubscriptionId, same};
use hyperlink::azure::cloud::Observed;
use hyperlink::azure::kinds::Kind;
use hyperlink::controllers::abandon;
use hyperlink::controllers::azure::lists::ListNeed;
use hyperlink::controllers::azure::{Facts, Need};
use hyperlink::controllers::private_link_service::frontend::FrontendMatch;
use hyperlink::controllers::private_link_service::nat_prefix::NatSubnetRules;
use hyperlink::controllers::private_link_service::plan::PrivateLinkServiceInputs;
use hyperlink::controllers::private_link_service::settings::Settings;
use hyperlink::controllers::private_link_service::teardown::teardown;
use hyperlink::engine::plan::Verb;
use hyperlink::hypershift::azure::intent::{CpoIntent, HoIntent};
use hyperlink::hypershift::azure::management_scopes::ManagementScope;
use hyperlink::hypershift::azure::names;
use hyperlink::hypershift::identity::{DeletedCluster, Identity};
use hyperlink::hypershift::intent;
use hyperlink::hypershift::problem::Problem;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::desired::{GUEST, GUEST_SUB, NET, SUB};
use super::mutate::{Input, mutate};

/// A text, or an intent of either role with something changed.
pub fn intents(data: &[u8]) {
    let mut input = Input(data);
    let (form, absences) = (input.byte(), input.byte());
    let text = match form % 3 {
        0 => String::from_utf8_lossy(input.0).into_owned(),
        1 => changed(ho(), &mut input),
        _ => changed(cpo(), &mut input),
    };
    let part = read_part(&text);
    assert!(part.len() <= 8_192 && text.starts_with(part) && read_part(part) == part);
    round_trips(&text);
    words(&text);
    forged(&text, absences);
}

fn changed(mut intent: Value, input: &mut Input<'_>) -> String {
    mutate(&mut intent, input);
    intent.to_string()
}

fn ho() -> Value {
    json!({"cluster": "x", "clusterID": "id", "infraID": "infra",
        "privateLinkServiceID": format!("{NET}/privateLinkServices/pls-id"), "resourceGuid": "guid",
        "frontendID": format!("{NET}/loadBalancers/lb/frontendIPConfigurations/router"),
        "natSubnetID": format!("{NET}/virtualNetworks/hub/subnets/infra-pls-nat"), "natSubnetMade": true})
}

fn cpo() -> Value {
    json!({"cluster": "x", "clusterID": "id", "infraID": "infra", "privateLinkServiceAlias": "a",
        "resourceIDs": [format!("{GUEST}/privateEndpoints/private-router-pe")]})
}

fn round_trips(text: &str) {
    let text = text.to_owned();
    if let Some(read) = intent::read::<HoIntent>(Some(&text)) {
        assert_eq!(intent::read(Some(&intent::write(&read))), Some(read));
    }
    if let Some(read) = intent::read::<CpoIntent>(Some(&text)) {
        assert_eq!(intent::read(Some(&intent::write(&read))), Some(read));
    }
}

fn words(text: &str) {
    if let Ok(cluster) = text.parse::<ClusterRef>() {
        assert_eq!((cluster.to_string().as_str(), &text.parse().unwrap()), (text, &cluster));
    }
    for now in [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
        let paused = Paused::read(Some(text), now);
        assert!(paused == Paused::No || pause::understood(text), "{text}");
        assert!(!matches!(paused, Paused::Until(until) if until <= now), "{text}");
    }
}

/// Tears down a custom resource with this text in each of its annotations.
fn forged(text: &str, absences: u8) {
    let vnet = format!("{GUEST}/virtualNetworks/workers");
    let cr: AzurePrivateLinkService = serde_json::from_value(json!({
        "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AzurePrivateLinkService",
        "metadata": {"name": "private-router", "namespace": "clusters-x", "uid": "u",
            "annotations": {HO_INTENT: text, CPO_INTENT: text, ABANDON: text, CLUSTER_ANNOTATION: text}},
        "spec": {"subscriptionID": GUEST_SUB, "resourceGroupName": "guest", "location": "westus2",
            "guestSubnetID": format!("{vnet}/subnets/guest"), "guestVNetID": vnet}}))
    .unwrap();
    for role in Role::ALL {
        let noted = abandon::noted(&cr, role, Problem::new(Reason::ScopeLocked, "x"));
        assert!(!noted.message.contains(char::is_control));
    }
    let identity = Identity {
        name: "x".into(),
        cluster_id: "id".into(),
        infra_id: "infra".into(),
    };
    let (inputs, settings) = (inputs_of(&identity), settings());
    let mut facts = Facts::default();
    for _ in 0..20 {
        match teardown(&cr, &inputs, &facts, &settings, Timestamp::UNIX_EPOCH) {
            Err(needs) => needs
                .into_iter()
                .for_each(|need| answer(&mut facts, need, &identity, absences)),
            Ok(decision) => {
                let deleted = decision.steps.iter().filter(|step| step.verb == Verb::Delete);
                return deleted.for_each(|step| may_be_deleted(&step.key, &identity, &settings));
            }
        }
    }
    panic!("no decision for {text}");
}

fn may_be_deleted(id: &ResourceId, identity: &Identity, settings: &Settings) {
    let service = names::link_service("private-router", &identity.cluster_id);
    let of_service = id.to_string().contains(&service) && settings.allows(id);
    let subnet = same(id.name(), &names::nat_subnet(&identity.infra_id)) && settings.allows_subnet(id);
    assert!(of_service || subnet, "{id}");
}

/// Answers a need: bits of `absences` say whether the service, and whether all else, is absent. What exists has owner
/// tags and looks like a NAT subnet.
fn answer(facts: &mut Facts, need: Need, identity: &Identity, absences: u8) {
    let owner_tags = names::private_link_service_tags(&identity.name, &identity.cluster_id).all();
    let properties = json!({"addressPrefix": "10.0.1.0/28", "privateLinkServiceNetworkPolicies": "Disabled"});
    let observed = |id: &ResourceId| {
        let absent = absences >> u8::from(id.is(Kind::PrivateLinkService)) & 1 == 1;
        let body = json!({"id": id.to_string(), "tags": owner_tags, "properties": properties});
        if absent {
            Observed::Absent
        } else {
            Observed::Found(body)
        }
    };
    match need {
        Need::Read(_, id) => {
            facts.reads.insert(id.clone(), observed(&id));
        }
        Need::FreshRead(_, id) => {
            facts.fresh_reads.insert(id.clone());
            facts.reads.insert(id.clone(), observed(&id));
        }
        Need::List(ListNeed::Frontends(subscription, group)) => {
            facts.lists.frontends.insert((subscription, group), Ok(Arc::default()));
        }
        Need::List(ListNeed::NewFrontends(subscription, group, _)) => {
            facts.lists.new_frontends.insert((subscription.clone(), group.clone()));
            facts.lists.frontends.insert((subscription, group), Ok(Arc::default()));
        }
        Need::List(ListNeed::Inside(kind, id)) => {
            facts.lists.inside.insert((kind, id), Ok(Vec::new()));
        }
    }
}

fn inputs_of(identity: &Identity) -> PrivateLinkServiceInputs {
    PrivateLinkServiceInputs {
        identity: Ok(identity.clone()),
        management_scope: None,
        own: Some(identity.clone()),
        hosted_cluster: None,
        paused: None,
        paused_until: None,
        service: None,
        address_claimed: false,
        sibling_stays: false,
        sibling_deleting: false,
        sibling_made_subnet: false,
        deleted_cluster: DeletedCluster::Unknown,
        shown_subnet: None,
        given_subnets: Vec::new(),
        subnets_of_older: Vec::new(),
        adopt_from: None,
        connecting: Default::default(),
    }
}

fn settings() -> Settings {
    Settings {
        cloud: "AzurePublicCloud",
        management_cluster: "5e1f0a3c-7b2d-4c68-9e14-2a6d8f0b4c35".into(),
        scope: ManagementScope {
            subscription: SubscriptionId::parse(SUB).unwrap(),
            resource_group: "mgmt".into(),
        },
        other_scopes: Vec::new(),
        nat: NatSubnetRules {
            prefix_length: 28,
            pool: None,
        },
        nat_subnet: None,
        frontend_match: FrontendMatch::Name,
        also_manage: Vec::new(),
    }
}
