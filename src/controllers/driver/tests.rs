use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::AzurePrivateLinkService;
use crate::api::Role;
use crate::azure::arm::error::ArmError;
use crate::azure::kinds::Kind;
use crate::azure::plan::{Outcome, Step, Why};
use crate::controllers::azure::access::Context;
use crate::controllers::azure::{Decision, Facts};
use crate::controllers::context::sample;
use crate::controllers::samples;
use crate::engine::plan::Verb;

fn cr(changed: &Value) -> AzurePrivateLinkService {
    let mut cr = serde_json::to_value(samples::cr(Value::Null, json!({}))).unwrap();
    for (name, value) in changed.as_object().unwrap() {
        cr["metadata"][name] = value.clone();
    }
    serde_json::from_value(cr).unwrap()
}

/// A context whose API server answers the first patch with a conflict, then shows the object as `meanwhile` and accepts
/// every patch.
fn context(meanwhile: AzurePrivateLinkService, patches: Arc<AtomicUsize>) -> Context {
    let answers = tower::service_fn(move |request: Request<Body>| {
        let first = request.method() == Method::PATCH && patches.fetch_add(1, Ordering::SeqCst) == 0;
        let (status, body) = if first {
            let body = json!({"status": "Failure", "message": "changed", "reason": "Conflict", "code": 409});
            (StatusCode::CONFLICT, body)
        } else {
            (StatusCode::OK, serde_json::to_value(&meanwhile).unwrap())
        };
        async move {
            let answer = Response::builder().status(status);
            Ok::<_, tower::BoxError>(answer.body(Body::from(serde_json::to_vec(&body)?))?)
        }
    });
    sample::context(kube::Client::new(answers, "default"))
}

#[rstest]
#[case::others_wrote(json!({"resourceVersion": "2"}), true)]
#[case::it_is_deleted(json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["another"]}), false)]
#[case::it_was_recreated(json!({"uid": "another"}), false)]
#[tokio::test]
async fn intent_is_not_recorded_on_what_went_meanwhile(#[case] meanwhile: Value, #[case] recorded: bool) {
    let patches = Arc::new(AtomicUsize::new(0));
    let cx = context(cr(&meanwhile), Arc::clone(&patches));
    assert_eq!(cx.role, Role::Cpo);
    let outcome = record(&cx, cr(&json!({})), Some("{}"), &OwnFields::default()).await;
    assert_eq!(outcome.is_ok(), recorded);
    assert!(
        outcome.err().is_none_or(|error| error.conflict()),
        "the reconcile is run again"
    );
    assert_eq!(patches.load(Ordering::SeqCst), if recorded { 2 } else { 1 });
}

/// A lock counts from the first refusal: it must not count anew because somebody else wrote the object.
#[tokio::test]
async fn release_that_is_refused_forgets_nothing() {
    let cx = context(cr(&json!({})), Arc::default());
    let id = samples::id(&samples::guest("privateDnsZones/z"));
    let locked = ArmError::own(Class::Denied, "ScopeLocked");
    let observations = &cx.cloud.observations;
    observations.delete_failed(Kind::PrivateDnsZone, &id, &locked, Instant::now());
    let steps = [Step::remove(Kind::PrivateDnsZone, id.clone())];
    let refused = release(&cx, cr(&json!({})), None, &steps, &[]).await;
    assert!(refused.is_err_and(|error| error.conflict()));
    assert!(observations.failing(&id).is_some());
    release(&cx, cr(&json!({})), None, &steps, &[]).await.unwrap();
    assert!(observations.failing(&id).is_none());
}

/// What names a resource of another object has it to itself neither while it is there nor while it is not.
#[rstest]
#[case::left(Verb::Refuse, Why::NotOurs, false, true)]
#[case::not_there(Verb::Keep, Why::UpToDate, false, true)]
#[case::deleted_from_here(Verb::Keep, Why::UpToDate, true, false)]
#[tokio::test]
async fn release_forgets_only_what_the_object_had(
    #[case] verb: Verb,
    #[case] why: Why,
    #[case] is_deleted: bool,
    #[case] is_known: bool,
) {
    let cx = context(cr(&json!({})), Arc::new(AtomicUsize::new(1)));
    let id = samples::id(&samples::guest("privateDnsZones/z"));
    let observations = &cx.cloud.observations;
    let refused = ArmError::own(Class::Invalid, "X");
    observations.write_failed(Kind::PrivateDnsZone, &id, &refused, Instant::now());
    if is_deleted {
        observations.delete_accepted(&id, None);
    }
    let step = Step {
        verb,
        why,
        ..Step::needs(Kind::PrivateDnsZone, id.clone(), "")
    };
    release(&cx, cr(&json!({})), None, &[step], &[]).await.unwrap();
    assert_eq!(observations.failing(&id).is_some(), is_known);
}

#[rstest]
#[case::refused(Class::Invalid, Why::Absent, Outcome::Accepted, true)]
#[case::denied_and_under_way_again(Class::Denied, Why::InProgress, Outcome::Nothing, true)]
#[case::network_was_busy(Class::Busy, Why::Absent, Outcome::Accepted, false)]
#[case::up_to_date(Class::Invalid, Why::UpToDate, Outcome::Nothing, false)]
#[tokio::test]
async fn accepted_retry_of_a_refused_write_is_reported_as_refused(
    #[case] class: Class,
    #[case] why: Why,
    #[case] outcome: Outcome,
    #[case] refused: bool,
) {
    let cx = context(cr(&json!({})), Arc::default());
    let step = Step {
        why,
        ..Step::needs(
            Kind::PrivateEndpoint,
            samples::id(&samples::guest("privateEndpoints/pe")),
            "",
        )
    };
    let reported = || {
        as_reported(
            &cx.cloud.observations,
            std::slice::from_ref(&step),
            std::slice::from_ref(&outcome),
        )
    };
    assert_eq!(reported(), std::slice::from_ref(&outcome), "nothing has failed");
    let error = ArmError::own(class, "X");
    cx.cloud
        .observations
        .write_failed(step.kind, &step.key, &error, Instant::now());
    assert_eq!(
        reported(),
        [if refused {
            Outcome::Failed(error)
        } else {
            outcome.clone()
        }]
    );
    cx.cloud.observations.confirm(&step.key);
    assert_eq!(reported(), std::slice::from_ref(&outcome), "it is as wanted now");
}

#[tokio::test(start_paused = true)]
async fn list_that_cannot_be_read_is_asked_for_ever_less_often() {
    let cx = context(cr(&json!({})), Arc::default());
    let id = samples::id(&samples::guest("privateDnsZones/example.hypershift.local"));
    let error = ArmError::own(Class::Down, "InternalServerError");
    let decision = Decision {
        steps: vec![Step::needs(Kind::PrivateDnsZone, id, "x").unreadable(&error)],
        ..Decision::default()
    };
    let mut waits = Vec::new();
    for _ in 0..6 {
        let wait = requeue(&cx, &decision, Instant::now()).after;
        waits.push(wait.as_secs());
        tokio::time::sleep(wait).await;
    }
    assert_eq!(waits, [5, 5, 10, 20, 40, 60], "no longer than everything is read");
}

#[rstest]
#[case::just_before_the_reconcile(400, false)]
#[case::long_before(600, true)]
#[tokio::test(start_paused = true)]
async fn what_was_read_just_now_is_not_read_again_before_a_write(#[case] earlier: u64, #[case] again: bool) {
    let cx = context(cr(&json!({})), Arc::default());
    let id = samples::id(&samples::guest("privateEndpoints/pe"));
    cx.cloud
        .observations
        .ready(Kind::PrivateEndpoint, &id, Observed::Absent, Instant::now());
    tokio::time::sleep(Duration::from_millis(earlier)).await;
    let mut decide = |facts: &Facts| {
        let found = facts.read(Kind::PrivateEndpoint, &id)?.clone();
        let step = Step {
            why: Why::Absent,
            verb: Verb::Put(json!({})),
            ..Step::needs(Kind::PrivateEndpoint, id.clone(), "")
        };
        Ok((
            Decision {
                steps: vec![step],
                ..Decision::default()
            },
            found,
        ))
    };
    let times = Times {
        began: Instant::now(),
        deleting_since: None,
    };
    let (_, found) = decided(&cx, Reconcile::begin(), &mut Facts::default(), times, &mut decide).await;
    // A read fails, because no Azure answers in this test.
    assert_eq!(found != Observed::Absent, again, "{found:?}");
}
