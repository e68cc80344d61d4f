//! The other role reports while a reconcile is running.

use std::sync::Mutex;

use serde_json::Value;

use super::*;
use crate::api::{ConditionType, Reason};
use crate::controllers::report::Report;
use crate::controllers::write_status::write_status;
use crate::hypershift::conditions::NewCondition;

/// The stored object. Every write makes a new version of it, and has to name the last one.
type Stored = Arc<Mutex<Value>>;

fn merge(stored: &mut Value, status: &Value) {
    let version = stored["metadata"]["resourceVersion"]
        .as_str()
        .and_then(|v| v.parse().ok());
    stored["metadata"]["resourceVersion"] = (version.unwrap_or(0) + 1).to_string().into();
    for (name, value) in status.as_object().into_iter().flatten() {
        stored["status"][name] = value.clone();
    }
}

async fn answer(stored: Stored, request: Request<Body>) -> (u16, Value) {
    let written = request.uri().path().ends_with("/status");
    let body = request.into_body().collect_bytes().await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut stored = stored.lock().unwrap();
    if written && body["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"] {
        let refused = json!({"status": "Failure", "message": "changed", "reason": "Conflict", "code": 409});
        return (409, refused);
    }
    if written {
        merge(&mut stored, &body["status"]);
    }
    (200, stored.clone())
}

/// Reports the alias that it has found. The other role writes it during the first reconcile.
struct Overtaken(Stored);

impl Script for Overtaken {
    async fn play(
        &self,
        cx: &Context,
        cr: AzurePrivateLinkService,
    ) -> Result<ReconcileOutcome<AzurePrivateLinkService>, ReconcileError> {
        let found = cr
            .status
            .as_ref()
            .and_then(|status| status.private_link_service_alias.clone());
        if found.is_none() {
            merge(
                &mut self.0.lock().unwrap(),
                &json!({"privateLinkServiceAlias": "pls.abc.azure"}),
            );
        }
        let kind = ConditionType::AzurePrivateEndpointAvailable;
        let message = found.as_deref().unwrap_or("no alias yet");
        let report = Report {
            conditions: vec![NewCondition::fails(kind, Reason::Provisioning, message, Some(1))],
            ..Report::default()
        };
        let cr = write_status(cx, cr, None, &report).await?;
        Ok(ReconcileOutcome::new(
            cr,
            Requeue::new(Duration::from_secs(300), Requeue::RESYNC),
            ReconcileResult::Waiting,
        ))
    }
}

#[tokio::test(start_paused = true)]
async fn report_of_the_other_role_during_a_reconcile_is_read_soon() {
    let cr = serde_json::to_value(sample::cr(json!({}), json!({}))).unwrap();
    let stored: Stored = Arc::new(Mutex::new(cr));
    merge(&mut stored.lock().unwrap(), &json!({}));
    let answers = tower::service_fn({
        let stored = Arc::clone(&stored);
        move |request| {
            let stored = Arc::clone(&stored);
            async move {
                let (code, answer) = answer(stored, request).await;
                let answer = Body::from(serde_json::to_vec(&answer)?);
                Ok::<_, tower::BoxError>(Response::builder().status(code).body(answer)?)
            }
        }
    });
    let cx = Arc::new(sample::context(kube::Client::new(answers, "default")));
    let runner = Arc::new(Runner::new(Overtaken(Arc::clone(&stored)), cx, Label::PrivateEndpoint));
    let cached = sample::cr(json!({}), json!({}));
    // The other role's event, and what the reconcile itself asked for.
    let action = runner.reconcile(&cached).await;
    assert_eq!(action, Action::Requeue(Duration::from_millis(200)));
    tokio::time::sleep(Duration::from_millis(200)).await;
    runner.reconcile(&cached).await;
    let conditions = stored.lock().unwrap()["status"]["conditions"].clone();
    assert_eq!(conditions[0]["message"], "pls.abc.azure");
}
