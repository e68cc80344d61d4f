//! Bodies of resources: whatever Azure shows, a write brings what is desired, and only what is owned is deleted.

use hyperlink::azure::cloud::{Arm, Observed};
use hyperlink::azure::kinds::load_balancer::internal_frontends;
use hyperlink::azure::kinds::{
    private_dns_zone, private_endpoint, private_link_service, record_set, subnet, virtual_network_link,
};
use hyperlink::engine::plan::{Verb, ensure_absent, ensure_present};
use hyperlink::engine::resource::Resource;
use serde_json::{Value, json};

use super::desired::{self, NET};
use super::mutate::{Input, mutate};

const ALIAS: &str = "pls-x.6b1f0a2c-3d4e-4f50-8a61-7b8c9d0e1f22.westus2.azure.privatelinkservice";

/// A resource as it is desired, or as JSON, with something changed.
pub(crate) fn observed(data: &[u8]) {
    let mut input = Input(data);
    let all: [&dyn Resource<Arm>; 6] = [
        &desired::subnet(),
        &desired::link_service(),
        &desired::endpoint(ALIAS),
        &desired::zone(),
        &desired::zone_link(),
        &desired::record("api"),
    ];
    let (choice, raw) = (usize::from(input.byte()), input.byte() % 4 == 0);
    let desired = all[choice % all.len()];
    let mut body = desired.body(None);
    body["id"] = json!(desired.key().to_string());
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
    brings_what_is_desired(desired, body);
}

fn brings_what_is_desired(desired: &dyn Resource<Arm>, body: Value) {
    let owned = desired.is_owned(&body);
    let observed = Observed::Found(body);
    let step = ensure_present(desired, &observed);
    assert!(owned || step.verb == Verb::Refuse, "{step:?}");
    if let Verb::Put(body) = &step.verb {
        let differs = desired.differs(body);
        assert!(
            differs.is_empty() && desired.is_owned(body),
            "{differs:?} after {step:?}"
        );
    }
    let verb = ensure_absent(desired, &observed).verb;
    assert!(owned || verb == Verb::Refuse, "{verb:?}");
}

/// Everything else that is read of a body, whatever it is of.
fn read_all(body: &Value) {
    let _ = (
        private_endpoint::approval(body),
        private_endpoint::address(body),
        record_set::addresses(body),
    );
    let _ = (
        private_link_service::alias(body),
        private_link_service::nat_subnet(body),
    );
    let _ = (
        private_link_service::connections(body),
        private_link_service::frontends(body),
        internal_frontends(std::slice::from_ref(body)),
    );
    let _ = (
        private_dns_zone::links(body),
        virtual_network_link::virtual_network(body),
        virtual_network_link::completed(body),
    );
    let service = desired::id(&format!("{NET}/privateLinkServices/pls-x"));
    let alone = subnet::used_only_by(body, &[service]);
    let _ = (
        subnet::takes_link_services(body),
        subnet::has_reference_shape(body),
        alone,
        subnet::used_by_others(body),
    );
}
