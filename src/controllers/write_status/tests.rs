use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::client::Body;
use rstest::rstest;
use serde_json::{Map, Value, json};

use super::*;
use crate::api::{AzurePrivateLinkService, ConditionType, Reason, Status};
use crate::controllers::azure::access::Context;
use crate::controllers::context::sample;
use crate::controllers::samples;
use crate::hypershift::conditions::NewCondition;

/// A context whose API server accepts every status without this field, and keeps what was written.
fn context(refused: &'static str, written: &Arc<Mutex<Vec<Value>>>) -> Context {
    let written = Arc::clone(written);
    let answers = tower::service_fn(move |request: Request<Body>| {
        let written = Arc::clone(&written);
        async move {
            let body = request.into_body().collect_bytes().await?;
            let body: Value = serde_json::from_slice(&body)?;
            let is_refused = |operation: &Value| operation["path"] == format!("/status/{refused}");
            let mut operations = body.as_array().into_iter().flatten();
            let (code, answer) = if operations.any(is_refused) || body["status"].get(refused).is_some() {
                let causes = json!([{"field": format!("status.{refused}"), "message": "too long", "reason": "FieldValueTooLong"}]);
                let answer = json!({"kind": "Status", "status": "Failure", "code": 422, "reason": "Invalid", "details": {"causes": causes}});
                (422, answer)
            } else {
                // An Event has no status.
                let status = body["status"].as_object().cloned();
                written.lock().unwrap().extend(status.map(Value::Object));
                let mut cr = serde_json::to_value(samples::cr(json!({}), json!({})))?;
                cr["status"] = body["status"].clone();
                (200, cr)
            };
            let answer = serde_json::to_vec(&answer)?;
            Ok::<_, tower::BoxError>(Response::builder().status(code).body(Body::from(answer))?)
        }
    });
    sample::context(kube::Client::new(answers, "default"))
}

fn report() -> Report {
    let parts = [
        ConditionType::AzurePrivateEndpointAvailable,
        ConditionType::AzurePrivateDNSAvailable,
        ConditionType::AzurePrivateLinkServiceAvailable,
    ];
    let fields = json!({"privateEndpointIP": "10.0.0.5", "baseDomainDNSZoneID": "long"});
    Report {
        conditions: parts.map(|kind| NewCondition::holds(kind, "fine", Some(1))).into(),
        fields: fields.as_object().cloned().unwrap_or_else(Map::new),
    }
}

#[tokio::test]
async fn rejected_field_is_reported_and_holds_up_nothing_else() {
    let written = Arc::default();
    let cx = context("baseDomainDNSZoneID", &written);
    let cr = samples::cr(json!({}), json!({}));
    write_status(&cx, cr, None, &report()).await.unwrap();
    let written = written.lock().unwrap();
    assert_eq!(written[0], json!({"privateEndpointIP": "10.0.0.5"}));
    let condition_of = |kind: ConditionType| {
        let all = written[1]["conditions"].as_array().unwrap();
        let found = all.iter().find(|one| one["type"] == kind.as_str()).unwrap();
        ["status", "reason", "message"].map(|field| found[field].as_str().unwrap().to_owned())
    };
    let wrong = "the API server does not take status.baseDomainDNSZoneID";
    let failed = (Status::False.as_str(), Reason::AzureError.as_str());
    assert_eq!(condition_of(ConditionType::AzurePrivateEndpointAvailable)[2], "fine");
    assert_eq!(
        condition_of(ConditionType::AzurePrivateDNSAvailable),
        [failed.0, failed.1, wrong]
    );
    let whole = condition_of(ConditionType::AzurePrivateLinkServiceAvailable);
    assert_eq!(whole[0], failed.0, "{whole:?}");
    assert_eq!(written.len(), 2);
}

#[tokio::test]
async fn status_rejected_for_another_reason_is_an_error() {
    let written = Arc::default();
    let cx = context("conditions", &written);
    let report = Report {
        fields: Map::new(),
        ..report()
    };
    let cr = samples::cr(json!({}), json!({}));
    let error = write_status(&cx, cr, None, &report).await.err();
    assert!(error.is_some_and(|error| error.invalid()));
}

/// A custom resource with a condition, so that fields and conditions are written at once.
fn with_a_condition() -> AzurePrivateLinkService {
    let condition = json!({"type": "AzurePLSCreated", "status": "True", "reason": "AzureSuccess", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    samples::cr(json!({"conditions": [condition]}), json!({}))
}

/// A context whose API server answers these patches of a status with a conflict, has the object as `meanwhile` changed
/// it, and counts patches.
fn busy(conflicts: Range<usize>, meanwhile: &Value, patches: &Arc<AtomicUsize>) -> Context {
    let cr = serde_json::to_value(with_a_condition()).unwrap();
    let stored = Arc::new(Mutex::new(cr));
    for part in ["metadata", "status"] {
        let changed = meanwhile[part].as_object().into_iter().flatten();
        changed.for_each(|(name, value)| stored.lock().unwrap()[part][name] = value.clone());
    }
    let (patches, gone) = (Arc::clone(patches), meanwhile.is_null());
    let answers = tower::service_fn(move |request: Request<Body>| {
        let of_status = request.uri().path().ends_with("/status");
        let refused = of_status && conflicts.contains(&patches.fetch_add(1, Ordering::SeqCst));
        let stored = Arc::clone(&stored);
        async move {
            let patch = request.into_body().collect_bytes().await?;
            let (code, answer) = if refused {
                let body = json!({"kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict"});
                (409, body)
            } else if gone {
                let body = json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"});
                (404, body)
            } else {
                let mut stored = stored.lock().unwrap();
                if of_status {
                    let patch: json_patch::Patch = serde_json::from_slice(&patch)?;
                    json_patch::patch(&mut stored, &patch)?;
                }
                (200, stored.clone())
            };
            let answer = Body::from(serde_json::to_vec(&answer)?);
            Ok::<_, tower::BoxError>(Response::builder().status(code).body(answer)?)
        }
    });
    sample::context(kube::Client::new(answers, "default"))
}

#[rstest]
#[case::nobody_wrote(0..0, json!({"metadata": {"resourceVersion": "1"}}), true, 1)]
#[case::others_wrote(0..1, json!({"metadata": {"resourceVersion": "2"}}), true, 2)]
#[case::others_wrote_twice(0..2, json!({"metadata": {"resourceVersion": "2"}}), true, 3)]
#[case::others_write_on_and_on(0..9, json!({"metadata": {"resourceVersion": "2"}}), false, 3)]
#[case::others_wrote_what_a_reconcile_reads(0..1, json!({"status": {"privateLinkServiceAlias": "pls.abc.azure"}}), false, 1)]
#[case::it_is_deleted(0..1, json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["another"]}}), false, 1)]
#[case::it_is_gone(0..1, Value::Null, false, 1)]
#[case::it_shall_be_otherwise(0..1, json!({"metadata": {"generation": 7}}), false, 1)]
#[tokio::test]
async fn report_is_written_onto_what_others_have_written_meanwhile(
    #[case] conflicts: Range<usize>,
    #[case] meanwhile: Value,
    #[case] is_written: bool,
    #[case] sent: usize,
) {
    let patches = Arc::default();
    let cx = busy(conflicts, &meanwhile, &patches);
    let written = write_status(&cx, with_a_condition(), None, &report()).await;
    assert_eq!(written.is_ok(), is_written);
    assert!(
        written.err().is_none_or(|error| error.conflict()),
        "the reconcile is run again"
    );
    assert_eq!(patches.load(Ordering::SeqCst), sent);
}
