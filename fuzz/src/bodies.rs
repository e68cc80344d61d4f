//! Bodies of resources: whatever Azure shows, a write brings what is wanted, and only what is ours is deleted.

use hyperlink::azure::load_balancer::internal_frontends;
use hyperlink::azure::plan::{Verb, away, toward};
use hyperlink::azure::resource::{Resource, Seen};
use hyperlink::azure::{endpoint, link_service, record, subnet, zone, zone_link};
use serde_json::{Value, json};

use super::mutate::{Input, mutate};
use super::wanted::{self, NET};

const ALIAS: &str = "pls-x.6b1f0a2c-3d4e-4f50-8a61-7b8c9d0e1f22.westus2.azure.privatelinkservice";

/// A resource as it is wanted, or as JSON, with something changed.
pub(crate) fn seen(data: &[u8]) {
    let mut input = Input(data);
    let all: [&dyn Resource; 6] = [
        &wanted::subnet(),
        &wanted::link_service(),
        &wanted::endpoint(ALIAS),
        &wanted::zone(),
        &wanted::zone_link(),
        &wanted::record("api"),
    ];
    let (choice, raw) = (usize::from(input.byte()), input.byte() % 4 == 0);
    let want = all[choice % all.len()];
    let mut body = want.body(None);
    body["id"] = json!(want.id().to_string());
    body["etag"] = json!("x");
    body["properties"]["provisioningState"] = json!("Succeeded");
    if raw {
        let Ok(json) = serde_json::from_slice(input.0) else {
            return;
        };
        body = json;
    } else {
        mutate(&mut body, &mut input);
    }
    read_all(&body);
    brings_what_is_wanted(want, body);
}

fn brings_what_is_wanted(want: &dyn Resource, body: Value) {
    let ours = want.ours(&body);
    let seen = Seen::Found(body);
    let step = toward(want, &seen);
    assert!(ours || step.verb == Verb::Refuse, "{step:?}");
    if let Verb::Put(body) = &step.verb {
        let differs = want.differs(body);
        assert!(differs.is_empty() && want.ours(body), "{differs:?} after {step:?}");
    }
    let verb = away(want, &seen).verb;
    assert!(ours || verb == Verb::Refuse, "{verb:?}");
}

/// Everything else that is read of a body, whatever it is of.
fn read_all(body: &Value) {
    let _ = (
        endpoint::approval(body),
        endpoint::address(body),
        record::addresses(body),
    );
    let _ = (link_service::alias(body), link_service::nat_subnet(body));
    let _ = (
        link_service::connections(body),
        link_service::frontends(body),
        internal_frontends(std::slice::from_ref(body)),
    );
    let _ = (
        zone::links(body),
        zone_link::virtual_network(body),
        zone_link::completed(body),
    );
    let service = wanted::id(&format!("{NET}/privateLinkServices/pls-x"));
    let alone = subnet::used_only_by(body, &[service]);
    let _ = (
        subnet::takes_link_services(body),
        subnet::has_reference_shape(body),
        alone,
        subnet::used_by_others(body),
    );
}
