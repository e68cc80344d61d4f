//! The cluster has moved to another management cluster, and its former custom resource is deleted here.

use super::*;
use crate::controllers::event;
use crate::controllers::samples::ALIAS;

const NEW: &str = "pls-id.0f0e0d0c-0b0a-4988-8776-655443322110.eastus.azure.privatelinkservice";

fn with_intent(aliases: &[&str]) -> AzurePrivateLinkService {
    let recorded =
        json!({"cluster": "example", "clusterID": "id", "infraID": "infra", "privateLinkServiceAliases": aliases});
    cr(
        json!({"privateLinkServiceAlias": ALIAS}),
        json!({CPO_INTENT: recorded.to_string()}),
    )
}

fn led_to(alias: &str) -> Vec<(String, Value)> {
    let mut world = complete();
    world.retain(|(id, _)| !id.ends_with("private-router-pe"));
    world.push(endpoint("Approved", alias));
    world
}

#[test]
fn endpoint_that_leads_elsewhere_stays_with_its_names() {
    for cr in [with_intent(&[ALIAS]), with_intent(&[])] {
        let decision = tear(&cr, &served_state(), &led_to(NEW));
        assert!(decision.nothing_left() && written(&decision) == [""; 0], "{decision:?}");
        let left = event::left(&decision);
        assert_eq!(left.len(), 3, "{left:?}");
        assert!(
            left.iter()
                .all(|event| event.note.contains("another management cluster"))
        );
    }
}

#[test]
fn foreign_endpoint_keeps_no_owned_zone() {
    let mut world = led_to(NEW);
    world.last_mut().unwrap().1["tags"] = json!({"owner": "customer"});
    let decision = tear(&with_intent(&[ALIAS]), &served_state(), &world);
    assert_eq!(*verb(&decision, "private-router-pe"), Verb::Refuse);
    assert_eq!(*verb(&decision, "private-router-vnet-link"), Verb::Delete);
}

#[rstest]
#[case::to_the_recorded_service(with_intent(&[ALIAS, NEW]), NEW)]
#[case::to_the_one_in_the_status(with_intent(&[ALIAS, NEW]), ALIAS)]
#[case::and_nothing_was_recorded(cr(Value::Null, intent()), NEW)]
fn endpoint_is_deleted_that_leads(#[case] cr: AzurePrivateLinkService, #[case] alias: &str) {
    let decision = tear(&cr, &served_state(), &led_to(alias));
    assert_eq!(*verb(&decision, "private-router-pe"), Verb::Delete);
}

#[test]
fn endpoint_that_does_not_show_where_it_leads_is_owned() {
    let mut world = led_to(NEW);
    world.last_mut().unwrap().1["properties"]["manualPrivateLinkServiceConnections"] = json!([]);
    let decision = tear(&with_intent(&[ALIAS]), &served_state(), &world);
    assert_eq!(*verb(&decision, "private-router-pe"), Verb::Delete);
}

#[rstest]
#[case::cannot_be_read(Observed::ReadFailed(ArmError::own(
    crate::engine::failure::Class::Down,
    "InternalServerError"
)))]
#[case::is_not_found_once(Observed::Absent)]
fn names_stay_while_the_endpoint(#[case] observed: Observed) {
    let id = crate::controllers::samples::id(&guest(ENDPOINT));
    let facts = Facts {
        reads: [(id, observed)].into(),
        ..Facts::default()
    };
    let cr = with_intent(&[ALIAS]);
    let (decision, asked) = decided(facts, &led_to(NEW), |facts| teardown(&cr, &served_state(), facts));
    assert!(
        !decision.nothing_left() && written(&decision) == [""; 0],
        "{decision:?}"
    );
    assert_eq!(asked, [""; 0]);
}
