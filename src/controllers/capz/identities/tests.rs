//! Which clusters share a credential, and when it is another one.

use kube::runtime::reflector;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};

use super::*;
use crate::api::markers::capz::CONDITION;
use crate::capz::samples::workload;
use crate::controllers::capz::tests::{NAMESPACE, RESYNC, Server, identity_settings, served, serving};
use crate::controllers::capz::{management_cluster, workload_cluster};
use crate::metrics::ReconcileResult;

/// Identities before an API server.
struct Known {
    server: Server,
    runtime: Runtime,
    writer: Writer<AzureClusterIdentity>,
    identities: Identities,
}

impl Known {
    fn new() -> Self {
        let (reader, mut writer) = reflector::store();
        for event in [Event::Init, Event::InitDone] {
            writer.apply_watcher_event(&event);
        }
        let server = Server::default();
        Self {
            runtime: server.runtime(),
            server,
            writer,
            identities: Identities::new(identity_settings(), reader),
        }
    }

    /// The watch shows this identity, with this merged into it.
    fn show(&mut self, name: &str, patch: &Value) {
        let mut object = json!({"metadata": {"name": name, "namespace": NAMESPACE, "uid": format!("uid-{name}")},
            "spec": {"type": "WorkloadIdentity", "tenantID": "123", "clientID": "456",
                "allowedNamespaces": {"list": [NAMESPACE]}}});
        json_patch::merge(&mut object, patch);
        let object = serde_json::from_value(object).unwrap();
        self.writer.apply_watcher_event(&Event::Apply(object));
    }

    async fn cloud(&self, cluster: &str, identity: &str) -> Result<Arc<ArmContext>, Problem> {
        let cluster = workload(cluster).with("/spec/identityRef/name", json!(identity));
        let found = self.identities.cloud(&self.runtime, &cluster.cluster()).await;
        found.map_err(|error| match error {
            NoIdentity::Certain(problem) | NoIdentity::Unread(problem) => problem,
        })
    }
}

#[tokio::test]
async fn clusters_of_one_identity_share_its_credential() {
    let mut known = Known::new();
    known.show("one", &json!({}));
    known.show("two", &json!({}));
    let first = known.cloud("wc-1", "one").await.unwrap();
    assert!(Arc::ptr_eq(&first, &known.cloud("wc-1", "one").await.unwrap()));
    assert!(Arc::ptr_eq(&first, &known.cloud("wc-2", "one").await.unwrap()));
    assert!(!Arc::ptr_eq(&first, &known.cloud("wc-2", "two").await.unwrap()));
    known.show("one", &json!({"spec": {"clientID": "789"}}));
    assert!(!Arc::ptr_eq(&first, &known.cloud("wc-1", "one").await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn another_secret_is_another_credential_within_a_resync() {
    let mut known = Known::new();
    let secret = |text: &str| {
        let data = json!({"clientSecret": k8s_openapi::ByteString(text.as_bytes().to_vec())});
        json!({"metadata": {"name": "s", "namespace": NAMESPACE, "resourceVersion": "1"}, "data": data})
    };
    known.show(
        "one",
        &json!({"spec": {"type": "ServicePrincipal", "clientSecret": {"name": "s"}}}),
    );
    let missing = known.cloud("wc", "one").await.err().unwrap();
    assert_eq!(missing.reason, Reason::IdentityMissing);
    known.server.put::<Secret>(&secret("first"));
    let first = known.cloud("wc", "one").await.unwrap();
    known.server.put::<Secret>(&secret("second"));
    assert!(Arc::ptr_eq(&first, &known.cloud("wc", "one").await.unwrap()));
    assert_eq!(known.server.reads_of("s"), 2, "one that was missing, and one");
    tokio::time::advance(RESYNC).await;
    assert!(!Arc::ptr_eq(&first, &known.cloud("wc", "one").await.unwrap()));
}

#[tokio::test]
async fn identity_is_missing_once_all_are_listed() {
    let (reader, mut writer) = reflector::store::<AzureClusterIdentity>();
    let (server, identities) = (Server::default(), Identities::new(identity_settings(), reader));
    let runtime = server.runtime();
    let cluster = workload("wc").cluster();
    let cloud = || identities.cloud(&runtime, &cluster);
    writer.apply_watcher_event(&Event::Init);
    for _ in 0..2 {
        assert!(matches!(cloud().await, Err(NoIdentity::Unread(_))));
    }
    writer.apply_watcher_event(&Event::InitDone);
    for _ in 0..2 {
        assert!(
            matches!(cloud().await, Err(NoIdentity::Certain(problem)) if problem.reason == Reason::IdentityMissing)
        );
    }
}

#[tokio::test]
async fn condition_stays_until_all_identities_are_listed() {
    let (management, cluster) = (served(), workload("wc"));
    let (server, mut cx) = serving(&[&management, &cluster]);
    let (reader, mut writer) = reflector::store();
    cx.identities = Identities::new(identity_settings(), reader);
    management_cluster::reconcile(&cx, &management.cluster()).await.unwrap();
    let reconcile = || async { workload_cluster::reconcile(&cx, &cluster.cluster()).await.unwrap() };
    let reason = || {
        let all = server.get::<AzureCluster>("wc")["status"]["conditions"].clone();
        let all = all.as_array().cloned().unwrap_or_default();
        all.into_iter()
            .find(|one| one["type"] == CONDITION)
            .map(|one| one["reason"].clone())
    };
    writer.apply_watcher_event(&Event::Init);
    let (result, again) = reconcile().await;
    assert_eq!((result, reason()), (ReconcileResult::Waiting, None));
    assert!(again.is_some());
    writer.apply_watcher_event(&Event::InitDone);
    reconcile().await;
    assert_eq!(reason(), Some(json!("IdentityMissing")));
}

#[tokio::test(start_paused = true)]
async fn credential_that_nobody_uses_for_an_hour_is_dropped() {
    let mut known = Known::new();
    for name in ["unused", "used", "new"] {
        known.show(name, &json!({}));
    }
    let unused = Arc::downgrade(&known.cloud("wc-1", "unused").await.unwrap());
    let used = known.cloud("wc-2", "used").await.unwrap();
    tokio::time::advance(UNUSED_FOR / 2).await;
    assert!(Arc::ptr_eq(&used, &known.cloud("wc-2", "used").await.unwrap()));
    tokio::time::advance(UNUSED_FOR / 2 - Duration::from_secs(1)).await;
    known.cloud("wc-3", "new").await.unwrap();
    assert!(unused.upgrade().is_some(), "an hour is not over");
    tokio::time::advance(Duration::from_secs(1)).await;
    known.show("new", &json!({"spec": {"clientID": "789"}}));
    known.cloud("wc-3", "new").await.unwrap();
    assert!(unused.upgrade().is_none(), "it is kept");
    assert!(Arc::ptr_eq(&used, &known.cloud("wc-2", "used").await.unwrap()));
}

#[tokio::test]
async fn identity_that_a_namespace_may_not_use_is_refused() {
    let mut known = Known::new();
    let name = ClusterRef {
        namespace: NAMESPACE.to_owned(),
        name: "one".to_owned(),
    };
    let selector = json!({"list": [], "selector": {"matchLabels": {"team": "a"}}});
    let namespace = |team: &str| json!({"metadata": {"name": NAMESPACE, "labels": {"team": team}}});
    known.server.put::<Namespace>(&namespace("b"));
    for allowed in [json!(null), json!({"list": ["org"]}), selector.clone()] {
        known.show("one", &json!({"spec": {"allowedNamespaces": null}}));
        known.show("one", &json!({"spec": {"allowedNamespaces": allowed}}));
        let refused = known.cloud("wc", "one").await.err().unwrap();
        assert_eq!(refused.reason, Reason::IdentityNotAllowed, "{allowed}");
        let federated = known.identities.federated(&known.runtime, &name, NAMESPACE).await;
        assert!(
            matches!(&federated, Err(NoIdentity::Certain(problem)) if problem.reason == Reason::IdentityNotAllowed)
        );
    }
    known.server.put::<Namespace>(&namespace("a"));
    assert!(known.cloud("wc", "one").await.is_ok());
    assert!(
        known
            .identities
            .federated(&known.runtime, &name, NAMESPACE)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn only_a_workload_identity_is_crossplanes() {
    let mut known = Known::new();
    known.show("one", &json!({"spec": {"type": "UserAssignedMSI"}}));
    let name = format!("{NAMESPACE}/one").parse().unwrap();
    let found = known.identities.federated(&known.runtime, &name, NAMESPACE).await;
    assert!(matches!(&found, Err(NoIdentity::Certain(problem)) if problem.reason == Reason::IdentityTypeNotSupported));
}
