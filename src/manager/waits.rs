//! Waits for what the process needs and may not be there yet, keeps what does not last, and says in probes how that stands.

use std::time::Duration;

use hyperlink::api::{AzurePrivateLinkService, Role};
use hyperlink::azure::auth::{AuthError, TokenCache, TokenState};
use hyperlink::http::ReadinessItem;
use hyperlink::metrics::Metrics;
use kube::Api;
use kube::api::ListParams;
use url::Url;

/// Between two tries.
const RETRY: Duration = Duration::from_secs(5);

/// Between two signs of life of a role's task.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Does the work of a role. `/livez` fails when its task is held up, also outside of any pass.
pub(super) async fn with_heartbeat<T>(metrics: &Metrics, role: Role, work: impl Future<Output = T>) -> T {
    let due = metrics.due(role.as_str());
    let beat = async {
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            due.moved();
        }
    };
    tokio::select! {
        done = work => done,
        never = beat => never,
    }
}

/// Waits until the API server answers and knows the custom resource.
pub(super) async fn wait_for_crd(
    kube: &kube::Client,
    namespace: Option<&str>,
    server: &ReadinessItem,
    crd: &ReadinessItem,
) {
    let api: Api<AzurePrivateLinkService> = match namespace {
        Some(namespace) => Api::namespaced(kube.clone(), namespace),
        None => Api::all(kube.clone()),
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
                crd.waiting("azureprivatelinkservices.hypershift.openshift.io is not installed");
            }
            Ok(Err(kube::Error::Api(status))) => server.waiting(&format!("refused: {}", status.reason)),
            Ok(Err(kube::Error::SerdeError(_))) => server.waiting("the answer cannot be read"),
            Ok(Err(_)) | Err(_) => server.waiting("no answer"),
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Keeps a token for Azure at hand and says how it stands; does not end. A standby uses none, but may lead at any moment.
pub(super) async fn keep_token(tokens: TokenCache, item: ReadinessItem) {
    tokens.keep(|token| report(&item, token)).await;
}

/// One that is good still is enough to work with, so a renewal that fails takes nobody out of service.
fn report(item: &ReadinessItem, token: Result<TokenState, AuthError>) {
    match token.map(|held| held.failure) {
        Ok(None) => item.ready(),
        Ok(Some(error)) => item.ready_as(&format!("good still, no new one: {error}")),
        Err(error) => item.waiting(&error.to_string()),
    }
}

/// Waits until ARM answers at all.
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
    use hyperlink::http::Readiness;

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
