//! Dry runs for tests: on an Azure that holds some resources, and takes no write.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::azure::Preview;
use super::context::sample;
use super::custom_resource::CustomResource;
use super::driver::Driver;
use super::reconciler::CustomResourceReconciler;
use crate::api::{AzurePrivateLinkService, Role};
use crate::azure::arm::client::Client;
use crate::azure::arm::id::lower;
use crate::azure::arm::transport::{Transport, TransportError};
use crate::engine::gate::Gate;
use crate::engine::plan::Verb;

/// Resources by their ids.
pub(crate) type Resources = Vec<(String, Value)>;

struct StubAzure(Resources);

impl Gate for StubAzure {
    fn open(&self) -> bool {
        false
    }
}

#[async_trait]
impl Transport for StubAzure {
    async fn ready(&self) -> Result<(), TransportError> {
        Err(TransportError::ReadOnly)
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let (status, body) = self.answer(request.uri().path());
        let mut answer = Response::new(Bytes::from(body.to_string()));
        *answer.status_mut() = status;
        Ok(answer)
    }
}

impl StubAzure {
    fn answer(&self, path: &str) -> (StatusCode, Value) {
        // An id has a name for each type, a list has none for the last one.
        if path.split('/').skip(1).count() % 2 == 1 {
            return (StatusCode::OK, json!({"value": self.below(path)}));
        }
        match self.0.iter().find(|(id, _)| lower(id) == lower(path)) {
            Some(resource) => (StatusCode::OK, shown(resource)),
            None => {
                let error = json!({"error": {"code": "ResourceNotFound", "message": "not found"}});
                (StatusCode::NOT_FOUND, error)
            }
        }
    }

    /// What a list shows; the one of all record sets of a zone has only records of type A.
    fn below(&self, list: &str) -> Vec<Value> {
        let list = list
            .strip_suffix("ALL")
            .map_or(list.to_owned(), |zone| zone.to_owned() + "A");
        let start = lower(&format!("{list}/"));
        let found = self.0.iter().filter(|(id, _)| lower(id).starts_with(&start));
        found.map(shown).collect()
    }
}

fn shown((id, body): &(String, Value)) -> Value {
    let mut shown = body.clone();
    shown["id"] = json!(id);
    shown
}

/// The dry run of a role for `cr`, in a process that has read nothing before.
pub(crate) async fn dry_run<C: CustomResourceReconciler<Object = AzurePrivateLinkService>>(
    role: Role,
    controller: &C,
    cr: &AzurePrivateLinkService,
    inputs: &C::Inputs,
    resources: Resources,
) -> Preview {
    let no_server = tower::service_fn(|_: Request<kube::client::Body>| {
        std::future::pending::<Result<Response<kube::client::Body>, tower::BoxError>>()
    });
    let mut cx = sample::context(kube::Client::new(no_server, "default"));
    let azure = Arc::new(StubAzure(resources));
    let endpoint = "https://management.azure.com".parse().unwrap();
    cx.role = role;
    cx.cloud.client = Client::new(azure.clone(), endpoint, azure, cx.runtime.metrics.clone());
    Driver::new(controller, &cx, Uuid::new_v4(), inputs).dry_run(cr).await
}

/// What `hyperlink plan -o json` prints of the role. The time of the next reconcile is rounded up: reads are spread by a
/// hash, which another release of Rust may compute in another way.
pub(crate) fn printed(preview: &Preview) -> Value {
    let mut printed = json!(preview);
    if let Some(seconds) = preview.requeue_after_seconds {
        printed["requeueAfterSeconds"] = json!(seconds.next_multiple_of(10));
    }
    printed
}

/// The resources as they are once Azure has made what `preview` would put.
pub(crate) fn put(preview: &Preview) -> Resources {
    let puts = preview.decision.steps.iter().filter_map(|step| match &step.verb {
        Verb::Put(body) => Some((step.key.to_string(), body.clone())),
        _ => None,
    });
    puts.collect()
}

/// The custom resource once everything is written that `preview` shows for it.
pub(crate) fn written(cr: &AzurePrivateLinkService, preview: &Preview) -> AzurePrivateLinkService {
    let mut object = json!(cr);
    let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.extend(preview.conditions.iter().map(|change| {
        let mut condition = json!(change.would_be);
        condition["type"] = json!(change.kind);
        condition["observedGeneration"] = json!(cr.metadata.generation);
        condition["lastTransitionTime"] = json!("2026-01-01T00:00:00Z");
        condition
    }));
    for change in &preview.fields {
        object["status"][&change.field] = change.would_be.clone();
    }
    object["status"]["conditions"] = json!(conditions);
    object["metadata"]["finalizers"] = json!([AzurePrivateLinkService::finalizer(preview.role)]);
    object["metadata"]["annotations"][preview.role.intent_annotation()] = json!(preview.decision.intent);
    serde_json::from_value(object).unwrap()
}

/// The custom resource, long under deletion.
pub(crate) fn deleting(mut cr: AzurePrivateLinkService) -> AzurePrivateLinkService {
    cr.metadata.deletion_timestamp = serde_json::from_value(json!("2020-01-01T00:00:00Z")).unwrap();
    cr
}
