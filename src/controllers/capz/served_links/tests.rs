//! What happens to a cluster whose links a watch shows no more.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::*;
use crate::capz::samples::{Sample, entry, workload};
use crate::controllers::capz::tests::{Server, entries_of, served, serving};
use crate::controllers::capz::{management_cluster, workload_cluster};

/// The definition of AzureClusters, with the field of links or without it.
fn definition(balancer: &Value) -> Value {
    let schema = ["apiServerLB", "networkSpec", "spec"].iter().fold(
        json!({"properties": balancer}),
        |schema, field| json!({"properties": {*field: schema}}),
    );
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "azureclusters.infrastructure.cluster.x-k8s.io"},
        "spec": {"versions": [{"name": "v1beta1", "schema": {"openAPIV3Schema": schema}}]}})
}

/// A cluster whose link a watch shows no more, on a server with this definition that has the cluster so; reconciles the
/// management cluster.
async fn without_its_link(definition: Option<&Value>, on_server: &Sample) -> (Server, Context) {
    let (server, cx) = serving(&[&served(), &workload("wc").links(Value::Null)]);
    server.put::<AzureCluster>(&on_server.0);
    if let Some(definition) = definition {
        server.put::<CustomResourceDefinition>(definition);
    }
    management_cluster::reconcile(&cx, &served().cluster()).await.unwrap();
    (server, cx)
}

#[tokio::test]
async fn entry_stays_while_links_are_not_served() {
    let hidden = workload("wc").links(Value::Null);
    let visible = definition(&json!({"privateLinks": {"type": "array"}}));
    for (definition, on_server, is_kept) in [
        (Some(&definition(&json!({}))), &hidden, true),
        (None, &hidden, true),
        // What the watch has shown is older.
        (Some(&visible), &workload("wc"), true),
        (Some(&visible), &hidden, false),
    ] {
        let (server, _) = without_its_link(definition, on_server).await;
        let expected = if is_kept { json!([entry("wc")]) } else { json!([]) };
        assert_eq!(entries_of(&server), expected, "{definition:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn definition_that_is_back_does_not_count_at_once() {
    let hidden = workload("wc").links(Value::Null);
    let (server, cx) = without_its_link(Some(&definition(&json!({}))), &hidden).await;
    server.put::<CustomResourceDefinition>(&definition(&json!({"privateLinks": {"type": "array"}})));
    let management = served().cluster();
    let reconcile = || management_cluster::reconcile(&cx, &management);
    reconcile().await.unwrap();
    assert_eq!(entries_of(&server), json!([entry("wc")]));
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    reconcile().await.unwrap();
    assert_eq!(entries_of(&server), json!([]));
}

#[tokio::test]
async fn links_that_are_served_again_are_brought_by_an_event() {
    let visible = definition(&json!({"privateLinks": {"type": "array"}}));
    // It has no gateway, whose entry would be such an event.
    let (server, cx) = serving(&[&served().public(), &workload("wc")]);
    server.put::<CustomResourceDefinition>(&visible);
    let shown = workload("wc").links(Value::Null).cluster();
    workload_cluster::reconcile(&cx, &shown).await.unwrap();
    let conditions = server.get::<AzureCluster>("wc")["status"]["conditions"].to_string();
    assert!(conditions.contains("are read again"), "{conditions}");
}
