//! Empty and strange text in every field of the control plane that is read. What the API server accepts leads to a
//! custom resource that reports the problem, or to none; it is never retried in a loop.

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, conditions, release};
use e2e::shared_env::{SOON, SharedEnv, situation};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::{Value, json};

const ODD: [&str; 6] = ["", " ", "ünïcödé", "東京", "a\u{202e}b", "\u{0}"];

/// Patches of a HostedControlPlane: every field that is read, each with every odd text.
fn patches() -> Vec<Value> {
    let azure = |field: &str, value: Value| json!({"spec": {"platform": {"azure": {field: value}}}});
    let private = |value: Value| azure("private", json!({"privateLink": value}));
    let host = |service: &str, text: &str| {
        json!({"spec": {"services": [{"service": service, "servicePublishingStrategy":
            {"type": "Route", "route": {"hostname": text}}}]}})
    };
    let network = |text: &str| {
        let group = "/subscriptions/11111111-1111-4111-8111-111111111111/resourceGroups/g";
        format!("{group}/providers/Microsoft.Network/virtualNetworks/{text}")
    };
    let of_text = |text: &'static str| {
        let annotations = |text: &str| json!({"metadata": {"annotations": {"hypershift.openshift.io/cluster": text}}});
        let mut all = vec![
            annotations(text),
            annotations(&format!("{text}/{text}")),
            json!({"spec": {"clusterID": text}}),
            json!({"spec": {"infraID": text}}),
            json!({"spec": {"pausedUntil": text}}),
            json!({"spec": {"dns": {"baseDomain": text}}}),
            json!({"spec": {"dns": {"baseDomain": format!("{text}.example.com")}}}),
            host("OAuthServer", text),
            host("OAuthServer", &format!("oauth-NAME.{text}")),
            host("APIServer", text),
            private(json!({"natSubnetID": text})),
            private(json!({"additionalAllowedSubscriptions": [text]})),
            azure("vnetID", json!(network(text))),
            azure("subnetID", json!(format!("{}/subnets/{text}", network("v")))),
        ];
        let fields = [
            "cloud",
            "location",
            "resourceGroup",
            "subscriptionID",
            "tenantID",
            "vnetID",
            "subnetID",
            "topology",
        ];
        all.extend(fields.map(|field| azure(field, json!(text))));
        all
    };
    ODD.into_iter().flat_map(of_text).chain(edges(azure, private)).collect()
}

/// Values that are strange in their own way.
fn edges(azure: impl Fn(&str, Value) -> Value, private: impl Fn(Value) -> Value) -> Vec<Value> {
    let domain = |text: &str| json!({"spec": {"dns": {"baseDomain": text}}});
    let id = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa";
    vec![
        domain("EXAMPLE.com"),
        domain("example.com."),
        domain("-.example.com"),
        domain(&format!("{}.com", "x".repeat(249))),
        azure("location", json!("East US 2")),
        azure("resourceGroup", json!("x".repeat(91))),
        azure("resourceGroup", json!("dot.")),
        azure("private", json!({"type": ""})),
        private(json!({"additionalAllowedSubscriptions": []})),
        private(json!({"additionalAllowedSubscriptions": [id, id.to_uppercase()]})),
    ]
}

/// What became of a control plane with one of the patches.
#[derive(Debug, PartialEq)]
enum Outcome {
    Refused,
    Unserved,
    Served,
}

async fn outcome(shared_env: &SharedEnv, cluster: &HostedCluster) -> Result<Outcome> {
    let test_env = &shared_env.test_env;
    cluster.create_namespaces(test_env).await?;
    let client = test_env.client()?;
    let namespace = cluster.control_plane_namespace();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let Ok(owner) = cluster.create_control_plane(test_env).await else {
        namespaces.delete(&namespace, &DeleteParams::default()).await?;
        return Ok(Outcome::Refused);
    };
    cluster.create_services(test_env, Some(&owner)).await?;
    let found = eventually("the observer has decided", SOON, || async {
        if let Some(made) = cluster.get_link_service(&client).await? {
            let all = conditions(&made);
            let clear = all.len() == 5 && all.iter().all(|one| one.status == "False" && !one.message.is_empty());
            ensure!(clear, "{all:?}");
            return Ok(Outcome::Served);
        }
        let log = std::fs::read_to_string(shared_env.cpo.process().log())?;
        let own = |line: &&str| line.contains(&format!("\"{namespace}\"")) && line.contains(": refused\"");
        ensure!(log.lines().any(|line| own(&line)), "nobody has told of it");
        Ok(Outcome::Unserved)
    })
    .await?;
    namespaces.delete(&namespace, &DeleteParams::default()).await?;
    // Hyperlink has no finalizer on it yet, or removes its own.
    let control_planes = cluster.api(&client, "HostedControlPlane", &namespace);
    eventually("HyperShift lets go", SOON, || release(&control_planes, cluster.name())).await?;
    Ok(found)
}

/// The name of the cluster is part of some values.
fn named(patch: &Value, name: &str) -> Result<Value> {
    Ok(serde_json::from_str(&patch.to_string().replace("NAME", name))?)
}

#[test]
fn strange_text_in_any_field_is_reported_once_and_never_loops() {
    situation(async |shared_env| {
        let all = patches();
        let run = |(number, patch): (usize, &Value)| {
            let (name, patch) = (format!("odd-{number}"), patch.clone());
            async move {
                let cluster = HostedCluster::new(&shared_env.test_env, &name)
                    .without_hosted_cluster()
                    .with_control_plane(named(&patch, &name)?);
                let found = outcome(shared_env, &cluster).await.with_context(|| patch.to_string())?;
                shared_env.nobody_asked_about(&cluster).await?;
                anyhow::Ok(found)
            }
        };
        let mut running = futures::stream::iter(all.iter().enumerate().map(run)).buffer_unordered(12);
        let mut outcomes = Vec::new();
        while let Some(found) = running.next().await {
            outcomes.push(found?);
        }
        let namespaces: Api<Namespace> = Api::all(shared_env.test_env.client()?);
        eventually("all of them are gone", SOON, || async {
            let left = namespaces.list_metadata(&ListParams::default()).await?;
            let names = left.items.into_iter().filter_map(|one| one.metadata.name);
            let left: Vec<_> = names.filter(|name| name.starts_with("clusters-odd-")).collect();
            ensure!(left.is_empty(), "{left:?}");
            Ok(())
        })
        .await?;
        for each in [Outcome::Refused, Outcome::Unserved, Outcome::Served] {
            ensure!(outcomes.contains(&each), "none is {each:?}: {outcomes:?}");
        }
        // The API server refused nothing that the observer made of them, except in a namespace that is being deleted.
        for process in [&shared_env.ho, &shared_env.cpo] {
            let log = std::fs::read_to_string(process.process().log())?;
            let wrong = |line: &&str| {
                line.contains("odd-") && !line.contains("is being terminated") && line.contains("reconcile failed")
            };
            let wrong: Vec<_> = log.lines().filter(wrong).collect();
            ensure!(wrong.is_empty(), "{wrong:#?}");
            let (_, metrics) = process.page("/metrics").await?;
            ensure!(
                !metrics
                    .lines()
                    .any(|line| line.starts_with("hyperlink_reconcile_panics_total") && !line.ends_with(" 0"))
            );
        }
        Ok(())
    });
}
