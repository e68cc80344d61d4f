//! Objects that are not as they should be: each has one clear condition, is served once it is corrected, and harms no
//! other cluster.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::capz_cluster::{CapzCluster, IdentityType, LoadBalancer, PrivateLink};
use e2e::capz_controllers::{CONDITION, MANAGEMENT_INGRESS_IP};
use e2e::capz_env::{MANAGEMENT, SECRET, TENANT, WORKLOAD};
use e2e::{eventually, scenario};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch};
use serde_json::{Value, json};

use crate::fleet::{Fleet, NAMESPACE, entry, workload};
use crate::{SOON, becomes_true};

/// A cluster with one fault: the reason that it shows, and what corrects it.
struct Faulty {
    cluster: CapzCluster,
    reason: &'static str,
    correction: Correction,
}

/// A merge patch.
enum Correction {
    AzureCluster(Value),
    Identity(Value),
}

impl Faulty {
    /// A private cluster whose AzureCluster is patched by `fault`.
    fn new(name: &str, reason: &'static str, fault: Value, correction: Value) -> Self {
        let cluster = workload(name, IdentityType::WorkloadIdentity).with_azure_cluster(json!({"spec": fault}));
        let correction = Correction::AzureCluster(json!({"spec": correction}));
        Self {
            cluster,
            reason,
            correction,
        }
    }

    /// A private cluster whose identity is patched by `fault`.
    fn in_identity(name: &str, reason: &'static str, fault: Value, correction: Value) -> Self {
        let cluster = workload(name, IdentityType::WorkloadIdentity).with_identity(json!({"spec": fault}));
        let correction = Correction::Identity(json!({"spec": correction}));
        Self {
            cluster,
            reason,
            correction,
        }
    }

    /// A private cluster with these links instead of its own.
    fn in_links(name: &str, reason: &'static str, links: &[PrivateLink]) -> Self {
        let cluster = workload(name, IdentityType::WorkloadIdentity);
        // The links as they are without the fault, of a cluster that is never created.
        let frontends = json!([format!("{}-frontEnd", cluster.load_balancer_name())]);
        let good = json!([{"name": cluster.links()[0].name(), "lbFrontendIPConfigNames": frontends,
            "allowedSubscriptions": [MANAGEMENT], "autoApprovedSubscriptions": [MANAGEMENT],
            "natIpConfigurations": [{"allocationMethod": "Dynamic", "subnet": "node-subnet"}]}]);
        Self {
            cluster: cluster.with_private_links(links),
            reason,
            correction: Correction::AzureCluster(
                json!({"spec": {"networkSpec": {"apiServerLB": {"privateLinks": good}}}}),
            ),
        }
    }

    /// Waits until it has one condition with its reason.
    async fn is_reported(&self, fleet: &Fleet) -> Result<()> {
        has_reason(fleet, &self.cluster, self.reason).await
    }

    async fn correct(&self, fleet: &Fleet) -> Result<()> {
        match &self.correction {
            Correction::AzureCluster(patch) => self.cluster.patch(&fleet.env, patch).await.map(drop),
            Correction::Identity(patch) => {
                let api = self.cluster.identities(&fleet.env.client()?);
                let patch = Patch::Merge(patch);
                api.patch(self.cluster.name(), &Default::default(), &patch).await?;
                Ok(())
            }
        }
    }
}

/// Waits until a cluster has exactly one condition of the role, which is False for this reason.
pub(crate) async fn has_reason(fleet: &Fleet, cluster: &CapzCluster, reason: &str) -> Result<()> {
    has_reason_within(fleet, cluster, reason, SOON).await.map(drop)
}

/// Likewise, within this time; returns the message.
async fn has_reason_within(fleet: &Fleet, cluster: &CapzCluster, reason: &str, time: Duration) -> Result<String> {
    eventually(&format!("{} shows {reason}", cluster.name()), time, || async {
        let found = cluster.conditions(&fleet.env, CONDITION).await?;
        let [condition] = &found[..] else {
            anyhow::bail!("{found:?}");
        };
        ensure!(
            condition["status"] == "False" && condition["reason"] == reason,
            "{condition}"
        );
        let message = condition["message"].as_str().unwrap_or_default();
        ensure!(!message.is_empty() && message.len() < 400, "{condition}");
        Ok(message.to_owned())
    })
    .await
}

fn faults_of_clusters() -> Vec<Faulty> {
    let balancer = |kind: &str| json!({"networkSpec": {"apiServerLB": {"type": kind}}});
    let cloud = |name: &str| json!({"azureEnvironment": name});
    let subscription = |id: &str| json!({"subscriptionID": id});
    let identity = |name: &str, namespace: &str| json!({"identityRef": {"name": name, "namespace": namespace}});
    let mut whole = identity("unset", NAMESPACE);
    whole["identityRef"]["kind"] = json!("AzureClusterIdentity");
    let all = [
        ("type", "UnknownLoadBalancerType", balancer("New"), balancer("Internal")),
        (
            "cloud",
            "CloudMismatch",
            cloud("AzureChinaCloud"),
            cloud("AzurePublicCloud"),
        ),
        ("unset", "IdentityRefUnset", json!({"identityRef": null}), whole),
        (
            "dangling",
            "IdentityMissing",
            identity("none", NAMESPACE),
            identity("dangling", NAMESPACE),
        ),
        (
            "foreign",
            "IdentityNotAllowed",
            identity("mc", OTHER),
            identity("foreign", NAMESPACE),
        ),
        (
            "path",
            "InvalidLinkName",
            subscription("../../x"),
            subscription(WORKLOAD),
        ),
    ];
    let all = all.into_iter();
    all.map(|(name, reason, fault, correction)| Faulty::new(name, reason, fault, correction))
        .collect()
}

fn faults_of_identities() -> Vec<Faulty> {
    let kind = |name: &str| json!({"type": name});
    let not_supported = kind("UserAssignedIdentityCredential");
    let tenant = |id: &str| json!({"tenantID": id});
    let allowed = |namespaces: Value| json!({"allowedNamespaces": namespaces});
    let all = [
        (
            "kind",
            "IdentityTypeNotSupported",
            not_supported,
            kind("WorkloadIdentity"),
        ),
        (
            "tenant",
            "IdentityMissing",
            tenant(&format!("{TENANT}/../x")),
            tenant(TENANT),
        ),
        ("nobody", "IdentityNotAllowed", allowed(Value::Null), allowed(json!({}))),
    ];
    let all = all.into_iter();
    all.map(|(name, reason, fault, correction)| Faulty::in_identity(name, reason, fault, correction))
        .collect()
}

fn faults_of_links() -> Vec<Faulty> {
    let link = || PrivateLink::new("unused");
    let named = |name: &str| link().with(json!({"name": name}));
    let all = [
        (
            "others",
            "LinksNotAllowed",
            PrivateLink::new("others-api-privatelink").allowing(&[]).approving(&[]),
        ),
        ("nameless", "LinksNotAllowed", link().with(json!({"name": null}))),
        ("empty", "LinksNotAllowed", named("")),
        ("long", "InvalidLinkName", named(&"x".repeat(300))),
        ("slash", "InvalidLinkName", named("../x")),
    ];
    let all = all.into_iter();
    all.map(|(name, reason, link)| Faulty::in_links(name, reason, &[link]))
        .collect()
}

/// A namespace whose identities are not for the clusters of these tests.
const OTHER: &str = "other";

#[test]
fn each_fault_of_a_cluster_is_reported_until_corrected() {
    scenario(async {
        let fleet = Fleet::start().await?;
        let good = workload("good", IdentityType::WorkloadIdentity);
        // An identity of the same name as the management cluster's, for another namespace.
        CapzCluster::management(OTHER, "mc", LoadBalancer::Public)
            .create_objects(&fleet.env)
            .await?;
        let all: Vec<_> = [faults_of_clusters(), faults_of_identities(), faults_of_links()]
            .into_iter()
            .flatten()
            .collect();
        good.create(&fleet.env).await?;
        try_join_all(all.iter().map(|one| one.cluster.create(&fleet.env))).await?;
        let hyperlink = fleet.hyperlink("first").await?;
        try_join_all(all.iter().map(|one| one.is_reported(&fleet))).await?;
        fleet.is_connected(&good).await?;

        try_join_all(all.iter().map(|one| one.correct(&fleet))).await?;
        try_join_all(all.iter().map(|one| becomes_true(&fleet.env, &one.cluster, CONDITION))).await?;
        let entries = all
            .iter()
            .map(|one| format!("{}-api-privatelink-privateendpoint", one.cluster.name()));
        fleet
            .has_entries(&entries.chain([entry(&good)]).collect::<Vec<_>>())
            .await?;
        fleet.is_connected(&good).await?;
        fleet.only_reads().await?;
        hyperlink.process().check()?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

/// The longest time until a cluster that was connected shows that Azure does not accept its identity any more: reads
/// have to fail for two minutes.
const LASTING: Duration = Duration::from_secs(210);

/// Replaces what the Secret of a cluster's identity holds.
async fn replace_secret(fleet: &Fleet, cluster: &CapzCluster, key: &str, text: &str) -> Result<()> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"namespace": NAMESPACE, "name": cluster.secret_name()}, "stringData": {key: text}});
    let secret: Secret = serde_json::from_value(secret)?;
    let secrets: Api<Secret> = Api::namespaced(fleet.env.client()?, NAMESPACE);
    secrets
        .replace(&cluster.secret_name(), &Default::default(), &secret)
        .await?;
    Ok(())
}

/// Replaces the Secrets of these clusters by the right ones, and waits until each is connected.
async fn correct_secrets(fleet: &Fleet, clusters: [(&CapzCluster, &str); 2]) -> Result<()> {
    for (cluster, right) in clusters {
        replace_secret(fleet, cluster, "clientSecret", right).await?;
    }
    for (cluster, _) in clusters {
        fleet.is_connected(cluster).await?;
    }
    Ok(())
}

#[test]
fn each_fault_of_a_secret_is_reported_until_corrected() {
    scenario(async {
        let fleet = Fleet::start().await?;
        let keyless = workload("keyless", IdentityType::ServicePrincipal);
        let junk = workload("junk", IdentityType::ServicePrincipalCertificate);
        for cluster in [&keyless, &junk] {
            cluster.create(&fleet.env).await?;
        }
        replace_secret(&fleet, &keyless, "another", SECRET).await?;
        replace_secret(&fleet, &junk, "clientSecret", "-----BEGIN JUNK-----").await?;
        let hyperlink = fleet.hyperlink("first").await?;
        let message = has_reason_within(&fleet, &keyless, "IdentityMissing", SOON).await?;
        let named = format!("Secret {NAMESPACE}/keyless-identity has no key clientSecret");
        ensure!(message == named, "{message}");
        let message = has_reason_within(&fleet, &junk, "IdentityMissing", SOON).await?;
        ensure!(
            message.contains("cannot be used: the client certificate has no certificate"),
            "{message}"
        );
        let right = [(&keyless, SECRET), (&junk, fleet.env.certificate())];
        correct_secrets(&fleet, right).await?;
        hyperlink.process().check()?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

#[test]
fn secret_that_turns_wrong_in_use_is_reported_until_corrected() {
    scenario(async {
        let fleet = Fleet::start().await?;
        let (secret, keyless) = (
            workload("secret", IdentityType::ServicePrincipal),
            workload("certificate", IdentityType::ServicePrincipalCertificate),
        );
        let good = workload("good", IdentityType::WorkloadIdentity);
        for cluster in [&secret, &keyless, &good] {
            cluster.create(&fleet.env).await?;
        }
        let hyperlink = fleet.hyperlink("first").await?;
        for cluster in [&secret, &keyless, &good] {
            fleet.is_connected(cluster).await?;
        }
        replace_secret(&fleet, &secret, "clientSecret", "wrong").await?;
        replace_secret(&fleet, &keyless, "another", fleet.env.certificate()).await?;
        has_reason(&fleet, &keyless, "IdentityMissing").await?;
        let message = has_reason_within(&fleet, &secret, "AzureDenied", LASTING).await?;
        ensure!(message.contains("TokenRefused"), "{message}");
        becomes_true(&fleet.env, &good, CONDITION).await?;
        for cluster in [&secret, &keyless] {
            let address = cluster.annotation(&fleet.env, MANAGEMENT_INGRESS_IP).await?;
            ensure!(address.is_some(), "an address is removed that is in use");
        }
        let right = [(&secret, SECRET), (&keyless, fleet.env.certificate())];
        correct_secrets(&fleet, right).await?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}
