//! A control plane that asks for what belongs to another tenant, and one that claims to be another tenant's.

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::CPO_CLIENT;
use e2e::eventually;
use e2e::hosted_cluster::{ADDITIONAL_SUBSCRIPTION, HostedCluster, NAMESPACE};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::shared_env::{SOON, alone, calls_about, ensure_condition, patch, refused};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use rstest::rstest;
use serde_json::{Value, json};

use crate::tenants::{GUEST_SIDE, Tenants, tenants};

const ANNOTATION: &str = "hypershift.openshift.io/cluster";
const CPO_FINALIZER: &str = "hypershift.openshift.io/azure-private-link-service";
const HCP_FINALIZER: &str = "hypershift.openshift.io/azure-pls-endpoint-cleanup";

/// Fails unless the cluster is refused, Azure was not called for it, it has neither finalizer nor intent, and its
/// deletion leaves nothing.
async fn is_kept_out(tenants: &Tenants, cluster: &HostedCluster, reason: &str) -> Result<()> {
    let shared_env = &tenants.shared_env;
    shared_env.refuses_all(cluster, &GUEST_SIDE, reason).await?;
    let calls = tenants.guest_calls_about(cluster).await?;
    ensure!(calls.is_empty(), "{calls:?}");
    let client = shared_env.test_env.client()?;
    let cr = cluster.get_link_service(&client).await?.context("no custom resource")?;
    let namespace = cluster.control_plane_namespace();
    let control_plane = cluster
        .api(&client, "HostedControlPlane", &namespace)
        .get(cluster.name())
        .await?;
    let finalizers = [cr.metadata.finalizers.clone(), control_plane.metadata.finalizers];
    let finalizers: Vec<String> = finalizers.into_iter().flatten().flatten().collect();
    let is_own = |one: &String| one == CPO_FINALIZER || one == HCP_FINALIZER;
    ensure!(!finalizers.iter().any(is_own), "{finalizers:?}");
    let recorded = cr.metadata.annotations.unwrap_or_default();
    ensure!(
        !recorded.keys().any(|name| name.ends_with("cpo-intent")),
        "{recorded:?}"
    );
    cluster.delete(&shared_env.test_env, SOON).await?;
    shared_env.nothing_is_left_of(cluster, &[]).await
}

#[rstest]
#[case::subnet("subnet", |other_tenant: &HostedCluster, _: &str| json!({"subnetID": other_tenant.subnet()}))]
#[case::network("network", |other_tenant: &HostedCluster, _: &str| json!({"vnetID": other_tenant.vnet()}))]
#[case::group_of_endpoint_and_zones("group", |other_tenant: &HostedCluster, _: &str| json!({"resourceGroup": other_tenant.infra_id()}))]
#[case::subscription("subscription", |_: &HostedCluster, other: &str| json!({"subscriptionID": other}))]
#[case::connecting_subscription("connecting", |_: &HostedCluster, other: &str|
    json!({"private": {"privateLink": {"additionalAllowedSubscriptions": [ADDITIONAL_SUBSCRIPTION, other]}}}))]
fn control_plane_asks_for_what_is_anothers(#[case] what: &str, #[case] asked: fn(&HostedCluster, &str) -> Value) {
    tenants(async |tenants| {
        let test_env = &tenants.shared_env.test_env;
        let azure = asked(&tenants.other_tenant, &test_env.azure().other_guest_subscription);
        let spec = json!({"spec": {"platform": {"azure": azure}}});
        let cluster = HostedCluster::new(test_env, &format!("asks-{what}"))
            .with_hosted_cluster(spec.clone())
            .with_control_plane(spec);
        tenants.allow(&cluster).await?;
        cluster.create(test_env).await?;
        is_kept_out(tenants, &cluster, "ScopeNotAllowed").await
    });
}

/// A zone for the parent of the other tenant's domain, in the other tenant's network. The operator's file allows the
/// network to both; it allows the domain in one case and not in the other.
#[rstest]
#[case::that_is_not_allowed("hides-all", &[])]
#[case::that_is_allowed("hides-more", &["example.com"])]
fn zone_that_hides_another_tenants_domain(#[case] name: &str, #[case] allowed: &[&str]) {
    tenants(async |tenants| {
        let test_env = &tenants.shared_env.test_env;
        let network = json!({"vnetID": tenants.other_tenant.vnet(), "subnetID": tenants.other_tenant.subnet()});
        let spec = json!({"spec": {"platform": {"azure": network}}});
        let cluster = HostedCluster::new(test_env, name)
            .with_base_domain("example.com")
            .with_hosted_cluster(spec.clone())
            .with_control_plane(spec);
        let scopes = [cluster.resource_group(), tenants.other_tenant.vnet()];
        tenants.allow_more(&cluster, &scopes, allowed).await?;
        cluster.create(test_env).await?;
        is_kept_out(tenants, &cluster, "ScopeNotAllowed").await
    });
}

#[test]
fn control_plane_claims_to_be_another_tenants() {
    tenants(async |tenants| {
        let test_env = &tenants.shared_env.test_env;
        let other_name = format!("{NAMESPACE}/{}", tenants.other_tenant.name());
        let forged = json!({"metadata": {"annotations": {ANNOTATION: other_name}}});
        let cluster = HostedCluster::new(test_env, "annotated").with_control_plane(forged);
        tenants.allow(&cluster).await?;
        cluster.create(test_env).await?;
        is_kept_out(tenants, &cluster, "IdentityMismatch").await
    });
}

#[test]
fn control_plane_has_another_tenants_ids() {
    tenants(async |tenants| {
        let (shared_env, other_tenant) = (&tenants.shared_env, &tenants.other_tenant);
        let ids = json!({"spec": {"clusterID": other_tenant.cluster_id(), "infraID": other_tenant.infra_id()}});
        let cluster = HostedCluster::new(&shared_env.test_env, "impostor")
            .with_hosted_cluster(ids.clone())
            .with_control_plane(ids);
        tenants.allow(&cluster).await?;
        cluster.create(&shared_env.test_env).await?;
        is_kept_out(tenants, &cluster, "DuplicateIdentity").await
    });
}

async fn lives(tenants: &Tenants, name: &str) -> Result<(HostedCluster, Api<DynamicObject>)> {
    let test_env = &tenants.shared_env.test_env;
    let cluster = HostedCluster::new(test_env, name);
    tenants.allow(&cluster).await?;
    cluster.create(test_env).await?;
    tenants.shared_env.heals(&cluster).await?;
    let namespace = cluster.control_plane_namespace();
    let api = cluster.api(&test_env.client()?, "AzurePrivateLinkService", &namespace);
    Ok((cluster, api))
}

#[rstest]
#[case::subnet_of_another_tenant("forged-subnet", true, "ScopeNotAllowed")]
#[case::without_an_owner("ownerless", false, "HostedControlPlaneNotFound")]
fn custom_resource_is_made_by_hand(#[case] name: &str, #[case] owned: bool, #[case] reason: &str) {
    tenants(async |tenants| {
        let (cluster, api) = lives(tenants, name).await?;
        let real = api.get("private-router").await?;
        let mut spec = real.data["spec"].clone();
        if owned {
            spec["guestSubnetID"] = tenants.other_tenant.subnet().into();
        }
        let owners = if owned { real.metadata.owner_references } else { None };
        let annotations = json!({ANNOTATION: format!("{NAMESPACE}/{name}")});
        let object = json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AzurePrivateLinkService",
            "metadata": {"name": "forged", "annotations": annotations, "ownerReferences": owners}, "spec": spec});
        api.create(&PostParams::default(), &serde_json::from_value(object)?)
            .await?;
        eventually("it is refused", SOON, || async {
            let forged = api.get("forged").await?;
            refused(&forged, &GUEST_SIDE, reason)?;
            ensure_condition(&forged, GUEST_SIDE[0], reason)
        })
        .await?;
        let calls = tenants.guest_calls_about(&cluster).await?;
        let asked = calls.iter().find(|call| call.path.contains("forged-pe"));
        ensure!(asked.is_none(), "{asked:?}");
        api.delete("forged", &DeleteParams::default()).await?;
        eventually("it is gone", SOON, || async {
            ensure!(api.get_opt("forged").await?.is_none(), "it is there");
            Ok(())
        })
        .await?;
        tenants.shared_env.heals_and_is_deleted(&cluster).await
    });
}

/// The control plane's operator is compromised, and restores what the cluster's owner has revoked.
#[test]
fn revoked_subscription_stays_revoked() {
    tenants(async |tenants| {
        let shared_env = &tenants.shared_env;
        let (cluster, api) = lives(tenants, "reinstating").await?;
        let service = cluster.link_service(&shared_env.test_env);
        let client = shared_env.test_env.client()?;
        // The field may not be empty.
        let others = [&shared_env.test_env.azure().other_guest_subscription];
        let revoked = json!({"spec": {"platform": {"azure": {"private": {"privateLink": {
            "additionalAllowedSubscriptions": others}}}}}});
        let hosted = cluster.api(&client, "HostedCluster", NAMESPACE);
        patch(&hosted, cluster.name(), revoked).await?;
        eventually("the subscription may not connect any more", SOON, || async {
            let observed = shared_env.observed(&service).await?;
            ensure!(!observed.contains(ADDITIONAL_SUBSCRIPTION), "{observed}");
            Ok(())
        })
        .await?;
        let spec = &api.get("private-router").await?.data["spec"];
        ensure!(
            spec["additionalAllowedSubscriptions"] == json!([ADDITIONAL_SUBSCRIPTION]),
            "{spec}"
        );
        let since = shared_env.test_env.oracle().last_call().await?;
        eventually("the management side looks again", SOON, || async {
            let calls = shared_env.test_env.oracle().journal(since).await?;
            let reads = calls.iter().filter(|call| call.path.eq_ignore_ascii_case(&service));
            ensure!(reads.count() >= 2, "not yet");
            Ok(())
        })
        .await?;
        let observed = shared_env.observed(&service).await?;
        ensure!(!observed.contains(ADDITIONAL_SUBSCRIPTION), "{observed}");
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

/// The control plane's operator is compromised: it knows of the revocation to come, and has the custom resource refused
/// before.
#[test]
fn subscription_is_revoked_while_the_custom_resource_is_refused() {
    tenants(async |tenants| {
        let shared_env = &tenants.shared_env;
        let (cluster, _) = lives(tenants, "resisting").await?;
        let service = cluster.link_service(&shared_env.test_env);
        let client = shared_env.test_env.client()?;
        let planes = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
        let named = |name: Value| json!({"metadata": {"annotations": {ANNOTATION: name}}});
        patch(&planes, cluster.name(), named(Value::Null)).await?;
        shared_env
            .refuses(&cluster, "AzurePLSCreated", "IdentityMismatch")
            .await?;
        let others = [&shared_env.test_env.azure().other_guest_subscription];
        let revoked = json!({"spec": {"platform": {"azure": {"private": {"privateLink": {
            "additionalAllowedSubscriptions": others}}}}}});
        let hosted = cluster.api(&client, "HostedCluster", NAMESPACE);
        patch(&hosted, cluster.name(), revoked).await?;
        eventually("the subscription may not connect any more", SOON, || async {
            let observed = shared_env.observed(&service).await?;
            ensure!(!observed.contains(ADDITIONAL_SUBSCRIPTION), "{observed}");
            ensure!(
                observed.contains(&shared_env.test_env.azure().guest_subscription),
                "the guest's own may: {observed}"
            );
            Ok(())
        })
        .await?;
        let name = format!("{NAMESPACE}/{}", cluster.name());
        patch(&planes, cluster.name(), named(name.into())).await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[test]
fn status_names_another_tenants_resources() {
    tenants(async |tenants| {
        let (shared_env, other_tenant) = (&tenants.shared_env, &tenants.other_tenant);
        let (cluster, api) = lives(tenants, "claiming").await?;
        let forged = json!({"status": {
            "privateEndpointID": other_tenant.endpoint(),
            "privateDNSZoneID": other_tenant.zones()[0],
            "baseDomainDNSZoneID": other_tenant.zones()[1],
            "privateLinkServiceID": other_tenant.link_service(&shared_env.test_env)}});
        let forge = async || -> Result<()> {
            let forged = Patch::Merge(&forged);
            Ok(api
                .patch_status("private-router", &PatchParams::default(), &forged)
                .await
                .map(drop)?)
        };
        forge().await?;
        shared_env.heals(&cluster).await?;
        // A forged status is no reason to delete anything when the cluster is deleted either.
        forge().await?;
        cluster.delete(&shared_env.test_env, SOON).await?;
        shared_env.nothing_is_left_of(&cluster, &[]).await
    });
}

#[test]
fn intents_name_another_tenants_identity() {
    tenants(async |tenants| {
        let (shared_env, other_tenant) = (&tenants.shared_env, &tenants.other_tenant);
        let (cluster, api) = lives(tenants, "intending").await?;
        let first = api.get("private-router").await?.metadata;
        let forge = |text: &str| {
            let text = text.replace(&cluster.infra_id(), &other_tenant.infra_id());
            let text = text.replace(&cluster.cluster_id(), &other_tenant.cluster_id());
            text.replace("\"intending\"", &format!("\"{}\"", other_tenant.name()))
        };
        let recorded = first.annotations.unwrap_or_default();
        let intents = recorded.iter().filter(|(name, _)| name.ends_with("-intent"));
        let forged: serde_json::Map<_, _> = intents
            .map(|(name, text)| (name.clone(), Value::from(forge(text))))
            .collect();
        ensure!(forged.len() == 2, "{forged:?}");
        let forged = patch(&api, "private-router", json!({"metadata": {"annotations": forged}})).await?;
        let annotations = json!(forged.metadata.annotations).to_string();
        ensure!(annotations.contains(&other_tenant.cluster_id()), "{annotations}");
        api.delete("private-router", &DeleteParams::default()).await?;
        eventually("it goes, and another comes", SOON, || async {
            let found = api.get_opt("private-router").await?.context("no custom resource")?;
            ensure!(found.metadata.uid != first.uid, "it has not gone");
            Ok(())
        })
        .await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

/// The status that the management side writes for a cluster that it approves.
fn forged_approval(cluster: &HostedCluster) -> Value {
    let good = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "AzureSuccess", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let alias = format!(
        "pls-{}.00000000-0000-4000-8000-000000000000.eastus.azure.privatelinkservice",
        cluster.cluster_id()
    );
    json!({"status": {"privateLinkServiceAlias": alias,
        "conditions": [good("AzureInternalLoadBalancerAvailable"), good("AzurePLSCreated")]}})
}

/// Only the guest side runs, so that nobody overwrites what is forged.
#[test]
fn forged_conditions_approve_no_control_plane_without_a_cluster() {
    alone(async |test_env| {
        let _cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", &[]).await?;
        let cluster = HostedCluster::new(&test_env, "unvouched").without_hosted_cluster();
        cluster.create(&test_env).await?;
        let namespace = cluster.control_plane_namespace();
        let client = test_env.client()?;
        let api = cluster.api(&client, "AzurePrivateLinkService", &namespace);
        eventually("there is a custom resource", SOON, || async {
            api.get("private-router").await.map(drop).map_err(Into::into)
        })
        .await?;
        let forged = Patch::Merge(forged_approval(&cluster));
        api.patch_status("private-router", &PatchParams::default(), &forged)
            .await?;
        eventually("it is refused", SOON, || async {
            let found = api.get("private-router").await?;
            refused(&found, &GUEST_SIDE, "HostedClusterNotFound")
        })
        .await?;
        let mut calls = calls_about(&test_env, &cluster, 0).await?;
        calls.retain(|call| call.principal.as_deref() == Some(CPO_CLIENT));
        ensure!(calls.is_empty(), "{calls:?}");
        Ok(())
    });
}
