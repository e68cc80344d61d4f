//! What happens to a cluster whose links a watch shows no more.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::*;
use crate::api::markers::capz::API_SERVER_ADDRESS;
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

/// A cluster whose link a watch shows no more, on a server with this definition that has the cluster so.
fn without_its_link(definition: Option<&Value>, on_server: &Sample) -> (Server, Context) {
    let (server, cx) = serving(&[&served(), &workload("wc").links(Value::Null)]);
    server.put::<AzureCluster>(&on_server.0);
    if let Some(definition) = definition {
        server.put::<CustomResourceDefinition>(definition);
    }
    (server, cx)
}

/// Looks for hidden links, and reconciles the management cluster.
async fn reconcile(cx: &Context) {
    let management = served().cluster();
    check(cx, &management).await;
    management_cluster::reconcile(cx, &management).await.unwrap();
}

fn visible() -> Value {
    definition(&json!({"privateLinks": {"type": "array"}}))
}

#[tokio::test]
async fn entry_stays_while_links_are_not_served() {
    let hidden = workload("wc").links(Value::Null);
    for (definition, on_server, is_kept) in [
        (Some(&definition(&json!({}))), &hidden, true),
        (None, &hidden, true),
        // What the watch has shown is older.
        (Some(&visible()), &workload("wc"), true),
        (Some(&visible()), &hidden, false),
    ] {
        let (server, cx) = without_its_link(definition, on_server);
        reconcile(&cx).await;
        let expected = if is_kept { json!([entry("wc")]) } else { json!([]) };
        assert_eq!(entries_of(&server), expected, "{definition:?}");
    }
}

#[tokio::test]
async fn links_that_are_not_read_yet_are_not_gone() {
    let hidden = workload("wc").links(Value::Null);
    let (server, cx) = without_its_link(Some(&visible()), &hidden);
    let management = served().cluster();
    management_cluster::reconcile(&cx, &management).await.unwrap();
    assert_eq!(entries_of(&server), json!([entry("wc")]));
    // The condition is not touched, either.
    workload_cluster::reconcile(&cx, &hidden.cluster()).await.unwrap();
    let conditions = &server.get::<AzureCluster>("wc")["status"]["conditions"];
    assert_eq!(conditions, &hidden.0["status"]["conditions"]);
}

#[tokio::test(start_paused = true)]
async fn definition_that_is_back_does_not_count_at_once() {
    let hidden = workload("wc").links(Value::Null);
    let (server, cx) = without_its_link(Some(&definition(&json!({}))), &hidden);
    reconcile(&cx).await;
    server.put::<CustomResourceDefinition>(&visible());
    reconcile(&cx).await;
    assert_eq!(entries_of(&server), json!([entry("wc")]));
    tokio::time::sleep(CATCHES_UP).await;
    reconcile(&cx).await;
    assert_eq!(entries_of(&server), json!([]));
}

#[tokio::test]
async fn links_that_are_served_again_are_brought_by_an_event() {
    let shown = workload("wc").links(Value::Null);
    // It has no gateway, whose entry would be such an event.
    let (server, cx) = serving(&[&served().public(), &shown]);
    server.put::<AzureCluster>(&workload("wc").0);
    server.put::<CustomResourceDefinition>(&visible());
    let conditions = async || {
        check(&cx, &served().public().cluster()).await;
        workload_cluster::reconcile(&cx, &shown.cluster()).await.unwrap();
        server.get::<AzureCluster>("wc")["status"]["conditions"].to_string()
    };
    // The event of a change that the read has shown may be on its way.
    let first = conditions().await;
    assert!(!first.contains("are read again"), "{first}");
    let second = conditions().await;
    assert!(second.contains("are read again"), "{second}");
}

#[tokio::test]
async fn cluster_that_no_event_shows_as_it_is_is_read_twice() {
    for changed in [workload("wc"), workload("wc").links(Value::Null)] {
        let newer = changed.with("/metadata/resourceVersion", json!("1000"));
        let (server, cx) = without_its_link(Some(&visible()), &newer);
        let management = served().cluster();
        assert!(!check(&cx, &management).await);
        assert!(check(&cx, &management).await);
        assert_eq!(server.reads_of("wc"), 2);
        management_cluster::reconcile(&cx, &management).await.unwrap();
        assert_eq!(entries_of(&server), json!([entry("wc")]));
    }
}

#[tokio::test(start_paused = true)]
async fn hidden_links_are_an_event_only_where_they_are_followed() {
    let hidden = workload("wc").links(Value::Null);
    let (server, cx) = without_its_link(Some(&definition(&json!({}))), &hidden);
    assert!(check(&cx, &served().cluster()).await);
    assert_eq!(server.events(), 0, "a plan only reads");
    let rounds = tokio::time::timeout(AFTER_HIDDEN * 5, follow(&cx)).await;
    assert!(rounds.is_err());
    assert_eq!(server.events(), 1);
}

#[tokio::test(start_paused = true)]
async fn many_forged_addresses_delay_no_entry_and_few_are_read() {
    let forged = |number: usize| {
        let cluster = workload(&format!("forged-{number}")).links(Value::Null);
        cluster.with("/metadata/annotations", json!({API_SERVER_ADDRESS: "10.0.0.4"}))
    };
    let forged: Vec<Sample> = (0..50).map(forged).collect();
    let (own, new) = (served(), workload("new"));
    let all: Vec<&Sample> = [&own, &new].into_iter().chain(&forged).collect();
    let (server, cx) = serving(&all);
    server.put::<CustomResourceDefinition>(&visible());
    let reads = |server: &Server| {
        (0..50)
            .map(|number| server.reads_of(&format!("forged-{number}")))
            .sum::<usize>()
    };
    management_cluster::reconcile(&cx, &own.cluster()).await.unwrap();
    assert_eq!((reads(&server), server.changed()), (0, vec!["mc".to_owned()]));
    for (round, expected) in [(1, 20), (2, 40), (3, 50), (4, 50)] {
        let is_decided = check(&cx, &own.cluster()).await;
        assert_eq!((reads(&server), is_decided), (expected, round > 2), "round {round}");
    }
    let definition = "azureclusters.infrastructure.cluster.x-k8s.io";
    assert_eq!(server.reads_of(definition), 3);
}
