//! Waits for what the process needs and may not exist yet, keeps a valid token, and reports the state of both to
//! probes.

use std::fmt::Display;
use std::time::Duration;

use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use tokio::sync::watch::Receiver;
use url::Url;

use crate::api::LedRole;
use crate::aws::credentials::SessionCache;
use crate::azure::arm::auth::TokenCache;
use crate::engine::credential_cache::CredentialState;
use crate::http::ReadinessItem;
use crate::metrics::Metrics;
use crate::runtime::watch_health::Health;

/// The time between two tries to reach the API server, the custom resource definition or Azure at the start.
const RETRY: Duration = Duration::from_secs(5);

/// The time between two heartbeats of a role's task, by which `/livez` knows that it is not blocked.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Runs the work of a role. `/livez` fails when its task is blocked, also outside of any reconcile.
pub(super) async fn with_heartbeat<T>(metrics: &Metrics, role: LedRole, work: impl Future<Output = T>) -> T {
    let due = metrics.due(role.as_str());
    let beat = async {
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            due.moved();
        }
    };
    tokio::select! {
        result = work => result,
        never = beat => never,
    }
}

/// Reports the state of the watches to readiness. A process that once had all lists continues with what it knows: to
/// take it out of service would help nobody.
pub(super) async fn follow_watches(mut health: Receiver<Health>, item: ReadinessItem) {
    loop {
        match &*health.borrow_and_update() {
            Health::Unlisted(why) => item.waiting(why),
            Health::Good => item.ready_as("running"),
            Health::Failing(why) => item.ready_as(&format!("running; {why}")),
        }
        if health.changed().await.is_err() {
            return;
        }
    }
}

/// Waits until the API server answers and knows the custom resource.
pub(super) async fn wait_for_crd(
    kube: &kube::Client,
    resource: &ApiResource,
    namespace: Option<&str>,
    server: &ReadinessItem,
    crd: &ReadinessItem,
) {
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(kube.clone(), namespace, resource),
        None => Api::all_with(kube.clone(), resource),
    };
    loop {
        let answer = tokio::time::timeout(RETRY * 2, api.list(&ListParams::default().limit(1))).await;
        match answer {
            Ok(Ok(_)) => {
                server.ready();
                return crd.ready();
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => {
                server.ready();
                crd.waiting(&format!("{}.{} is not installed", resource.plural, resource.group));
            }
            Ok(Err(kube::Error::Api(status))) => server.waiting(&format!("refused: {}", status.reason)),
            Ok(Err(kube::Error::SerdeError(_))) => server.waiting("the answer cannot be read"),
            Ok(Err(_)) | Err(_) => server.waiting("no answer"),
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Keeps a valid token for Azure and reports its state; never returns. A standby uses none, but may lead at any moment.
pub(super) async fn keep_token(tokens: TokenCache, item: ReadinessItem) {
    tokens.keep(|token| report(&item, token)).await;
}

/// Keeps a valid session for AWS and reports its state; never returns.
pub(super) async fn keep_session(sessions: SessionCache, item: ReadinessItem) {
    sessions.keep(|session| report(&item, session)).await;
}

/// Reports the state of a token or session. One that is still valid is enough to work with, so a failed renewal takes
/// no process out of service.
fn report<E: Display>(item: &ReadinessItem, held: Result<CredentialState<E>, E>) {
    match held.map(|held| (held.left, held.failure)) {
        Ok((_, None)) => item.ready(),
        Ok((Some(Duration::ZERO), Some(error))) => item.ready_as(&format!("refused, no new one: {error}")),
        Ok((_, Some(error))) => item.ready_as(&format!("good still, no new one: {error}")),
        Err(error) => item.waiting(&error.to_string()),
    }
}

/// Waits until ARM gives any answer.
pub(super) async fn wait_for_arm(http: reqwest::Client, mut url: Url, item: ReadinessItem) {
    url.set_path("/metadata/endpoints");
    url.set_query(Some("api-version=2020-09-01"));
    while http.get(url.clone()).send().await.is_err() {
        item.waiting("no answer");
        tokio::time::sleep(RETRY).await;
    }
    item.ready();
}

#[cfg(test)]
mod tests {
    use crate::azure::arm::auth::{AuthError, TokenState};
    use crate::http::Readiness;

    use super::*;

    #[test]
    fn process_is_taken_out_when_it_has_no_token_and_not_before() {
        let readiness = Readiness::default();
        let item = readiness.item("azure token");
        let down = || AuthError::Unreachable("it answered 503".to_owned());
        let held = |failure| {
            let left = Some(Duration::from_secs(60));
            Ok(TokenState {
                age: left,
                left,
                failure,
            })
        };
        report(&item, Err(down()));
        let waits = ["azure token: no token from the token endpoint: it answered 503"];
        assert_eq!(readiness.waits(), waits);
        report(&item, held(None));
        assert!(readiness.waits().is_empty());
        report(&item, held(Some(down())));
        assert!(readiness.waits().is_empty(), "it can work");
        report(&item, Err(down()));
        assert_eq!(readiness.waits(), waits);
    }
}
