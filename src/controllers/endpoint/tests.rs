use serde_json::json;

use super::samples::*;
use super::*;
use crate::api::Reason;
use crate::controllers::decision::Problem;
use crate::controllers::samples::{cr, guest};

#[test]
fn control_plane_is_held_only_for_a_custom_resource_that_is_served() {
    let unheld = |change: fn(&mut plan::Surroundings)| {
        let mut meaning = around();
        meaning.control_plane.as_mut().unwrap().held = false;
        change(&mut meaning);
        Around {
            found: Some(HostedControlPlane::default()),
            meaning,
        }
    };
    let holds = |around: &Around, cr: &AzurePrivateLinkService| around.to_be_held(cr).is_some();
    assert!(holds(&unheld(|_| {}), &with_alias()));
    assert!(
        !holds(&unheld(|_| {}), &cr(json!(null), json!({}))),
        "the management side has not looked"
    );
    let held = |meaning: &mut plan::Surroundings| meaning.control_plane.as_mut().unwrap().held = true;
    assert!(!holds(&unheld(held), &with_alias()));
    for stop in [
        |meaning: &mut plan::Surroundings| meaning.paused = Some(Problem::new(Reason::Provisioning, "paused")),
        |meaning: &mut plan::Surroundings| meaning.refused = Some(Problem::new(Reason::ScopeNotAllowed, "no entry")),
        |meaning: &mut plan::Surroundings| meaning.control_plane.as_mut().unwrap().azure.resource_group = None,
    ] {
        assert!(!holds(&unheld(stop), &with_alias()));
    }
}

#[test]
fn zone_that_was_never_put_is_not_waited_for() {
    let zones = |cr: &AzurePrivateLinkService| perhaps_put(cr, &tear(cr, &around(), &[])).count();
    assert_eq!(zones(&cr(json!(null), json!({}))), 0, "nothing was begun");
    assert_eq!(zones(&cr(json!(null), intent())), 2);
    let named = cr(json!({"privateDNSZoneID": guest(INTERNAL)}), intent());
    assert_eq!(zones(&named), 1, "one was seen, and is gone");
}
