use http::{Request, Response};
use kube::client::Body;
use serde_json::json;
use tower::BoxError;

use super::samples::*;
use super::*;
use crate::api::Reason;
use crate::azure::cloud::Observed;
use crate::azure::plan::Why;
use crate::controllers::context::sample;
use crate::controllers::samples::{cr, guest};
use crate::engine::plan::Verb;
use crate::hypershift::problem::Problem;

#[test]
fn control_plane_is_held_only_for_a_served_custom_resource() {
    let unheld = |change: fn(&mut plan::ControlPlaneState)| {
        let mut state = served_state();
        state.control_plane.as_mut().unwrap().held = false;
        change(&mut state);
        PrivateEndpointInputs {
            found: Some(HostedControlPlane::default()),
            state,
        }
    };
    let holds = |inputs: &PrivateEndpointInputs, cr: &AzurePrivateLinkService| inputs.to_be_held(cr).is_some();
    assert!(holds(&unheld(|_| {}), &with_alias()));
    assert!(
        !holds(&unheld(|_| {}), &cr(json!(null), json!({}))),
        "the management side has not looked"
    );
    let held = |state: &mut plan::ControlPlaneState| state.control_plane.as_mut().unwrap().held = true;
    assert!(!holds(&unheld(held), &with_alias()));
    for stop in [
        |state: &mut plan::ControlPlaneState| state.paused = Some(Problem::new(Reason::Provisioning, "paused")),
        |state: &mut plan::ControlPlaneState| state.refused = Some(Problem::new(Reason::ScopeNotAllowed, "no entry")),
        |state: &mut plan::ControlPlaneState| state.control_plane.as_mut().unwrap().azure.resource_group = None,
    ] {
        assert!(!holds(&unheld(stop), &with_alias()));
    }
}

#[test]
fn zone_that_was_never_put_is_not_waited_for() {
    let zones = |cr: &AzurePrivateLinkService| perhaps_put(cr, &tear(cr, &served_state(), &[])).count();
    assert_eq!(zones(&cr(json!(null), json!({}))), 0, "nothing was begun");
    assert_eq!(zones(&cr(json!(null), intent())), 2);
    let named = cr(json!({"privateDNSZoneID": guest(INTERNAL)}), intent());
    assert_eq!(zones(&named), 1, "one was seen, and is gone");
}

#[tokio::test(start_paused = true)]
async fn connection_that_stays_pending_is_read_ever_less_often() {
    let nobody = tower::service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, BoxError>>());
    let cx = sample::context_with(kube::Client::new(nobody, "default"), Duration::from_secs(3_600));
    let (id, pending) = (ResourceId::parse(&guest("privateEndpoints/pe")).unwrap(), json!({}));
    let decision = Decision {
        steps: vec![Step {
            kind: Kind::PrivateEndpoint,
            key: id.clone(),
            verb: Verb::Keep,
            why: Why::UpToDate,
            found: Some(pending.clone()),
        }],
        ..Decision::default()
    };
    let wait = || {
        cx.cloud.observations.ready(
            Kind::PrivateEndpoint,
            &id,
            Observed::Found(pending.clone()),
            Instant::now(),
        );
        expedite_endpoint(&cx, "u", &decision);
        crate::controllers::driver::requeue(&cx, &decision, Instant::now()).after
    };
    let mut waits = Vec::new();
    for _ in 0..7 {
        waits.push(wait().as_secs());
        tokio::time::sleep(wait()).await;
    }
    assert_eq!(waits, [30, 30, 60, 120, 240, 300, 300]);
    cx.polls.change("u");
    assert_eq!((wait(), wait()), (Duration::ZERO, Duration::from_secs(30)));
}

#[tokio::test(start_paused = true)]
async fn link_of_a_sibling_is_asked_for_ever_less_often() {
    let nobody = tower::service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, BoxError>>());
    let cx = sample::context_with(kube::Client::new(nobody, "default"), Duration::from_secs(3_600));
    let id = ResourceId::parse(&guest(&format!("{INTERNAL}/virtualNetworkLinks/oauth"))).unwrap();
    let mut decision = Decision {
        steps: vec![Step::waits(Kind::VirtualNetworkLink, id, dns::NEEDS_LINK)],
        ..Decision::default()
    };
    let mut waits = Vec::new();
    for _ in 0..4 {
        let wait = awaits_link(&cx, "u", &decision).unwrap().after;
        waits.push(wait.as_secs());
        tokio::time::advance(wait).await;
    }
    assert_eq!(waits, [2, 2, 4, 8]);
    decision.steps.clear();
    assert_eq!(awaits_link(&cx, "u", &decision), None);
}
