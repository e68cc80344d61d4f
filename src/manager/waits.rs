//! Waits for what the process needs and may not be there yet, and says in probes what it waits for.

use std::time::Duration;

use hyperlink::api::AzurePrivateLinkService;
use hyperlink::azure::auth::{TokenCache, TokenSource};
use hyperlink::http::ReadinessItem;
use kube::Api;
use kube::api::ListParams;
use url::Url;

/// Between two tries.
const RETRY: Duration = Duration::from_secs(5);

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
            Ok(Err(_)) | Err(_) => server.waiting("no answer"),
        }
        tokio::time::sleep(RETRY).await;
    }
}

pub(super) async fn wait_for_token(tokens: TokenCache, item: ReadinessItem) {
    while let Err(error) = tokens.token().await {
        item.waiting(&error.to_string());
        tokio::time::sleep(RETRY).await;
    }
    item.ready();
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
