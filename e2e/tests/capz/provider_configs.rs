//! Each Cluster on Azure has a ProviderConfig of Crossplane's, with the identity and subscription that it is made with.

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::Preset;
use e2e::capz_cluster::{CapzCluster, LoadBalancer};
use e2e::capz_env::{FEDERATED_CLIENT, LOCATION, MANAGED_CLIENT, TENANT, WORKLOAD};
use e2e::hyperlink::Hyperlink;
use e2e::rights::audit;
use e2e::{CapzEnv, crds, eventually, scenario};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, Patch};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::{SOON, has_event};

const NAMESPACE: &str = "crossplane-one";
const OTHER: &str = "crossplane-two";
const HOLDER: &str = "hyperlink.hypershift.openshift.io/capz-cluster";
pub(crate) const FINALIZER: &str = "azure.giantswarm.io/providerconfig";
const RESYNC: [(&str, &str); 1] = [("resync", "10s")];
/// With this, only events wake a Cluster.
const SELDOM: [(&str, &str); 1] = [("resync", "1h")];

fn provider_configs(env: &CapzEnv) -> Result<Api<DynamicObject>> {
    let kind = GroupVersionKind::gvk("azure.upbound.io", "v1beta1", "ProviderConfig");
    Ok(Api::all_with(env.client()?, &ApiResource::from_gvk(&kind)))
}

/// An environment whose API server serves ProviderConfigs, or not, and a management cluster there.
async fn environment(is_served: bool) -> Result<(CapzEnv, CapzCluster)> {
    let env = CapzEnv::local(Preset::Fast).await?;
    crds::serve_provider_configs(&env.client()?, is_served).await?;
    let management = CapzCluster::management(NAMESPACE, "crossplane-mc", LoadBalancer::Public);
    Ok((env, management))
}

/// Waits until the ProviderConfig of this name has these ids, and returns it.
pub(crate) async fn has_ids(
    env: &CapzEnv,
    name: &str,
    [client, subscription, tenant]: [&str; 3],
) -> Result<DynamicObject> {
    let api = provider_configs(env)?;
    let expected = json!({"credentials": {"source": "UserAssignedManagedIdentity"}, "clientID": client,
        "subscriptionID": subscription, "tenantID": tenant});
    eventually(&format!("{name} has its ids"), SOON, || async {
        let found = api.get_opt(name).await?.context("no ProviderConfig")?;
        ensure!(found.data["spec"] == expected, "{}", found.data);
        Ok(found)
    })
    .await
}

fn workload(namespace: &str, name: &str) -> CapzCluster {
    CapzCluster::workload(namespace, name, LoadBalancer::Public)
}

#[test]
fn cluster_has_a_provider_config_until_it_is_gone() {
    scenario(async {
        let (env, management) = environment(false).await?;
        let cluster = workload(NAMESPACE, "configured");
        for cluster in [&management, &cluster] {
            cluster.create_objects(&env).await?;
        }
        let hyperlink = Hyperlink::start_capz(&env, &management, &[NAMESPACE], "first", &RESYNC).await?;
        hyperlink.ready(SOON).await?;
        crds::serve_provider_configs(&env.client()?, true).await?;
        let found = has_ids(&env, "configured", [FEDERATED_CLIENT, WORKLOAD, TENANT]).await?;
        let clusters = cluster.clusters(&env.client()?);
        let owner = clusters.get("configured").await?;
        let holder = format!("{NAMESPACE}/configured/{}", owner.uid().context("no uid")?);
        ensure!(found.annotations()[HOLDER] == holder, "{:?}", found.annotations());
        ensure!(owner.finalizers().iter().any(|name| name == FINALIZER));

        // Somebody changes one, deletes another, and a subscription changes.
        let api = provider_configs(&env)?;
        api.delete("configured", &DeleteParams::default()).await?;
        has_ids(&env, "configured", [FEDERATED_CLIENT, WORKLOAD, TENANT]).await?;
        let moved = json!({"spec": {"subscriptionID": "00000000-0000-0000-0000-00000000abcd"}});
        if cluster.patch(&env, &moved).await.is_ok() {
            has_ids(
                &env,
                "configured",
                [FEDERATED_CLIENT, "00000000-0000-0000-0000-00000000abcd", TENANT],
            )
            .await?;
        }
        cluster.delete(&env, SOON).await?;
        ensure!(api.get_opt("configured").await?.is_none(), "it stays");
        hyperlink.stop().await
    });
}

#[test]
fn provider_config_of_another_cluster_is_left_alone() {
    scenario(async {
        let (env, management) = environment(true).await?;
        let (first, second) = (workload(NAMESPACE, "same-name"), workload(OTHER, "same-name"));
        let theirs = workload(NAMESPACE, "theirs");
        for cluster in [&management, &first, &theirs] {
            cluster.create_objects(&env).await?;
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHER}});
        env.apply_yaml(&namespace.to_string()).await?;
        let api = provider_configs(&env)?;
        let foreign = json!({"apiVersion": "azure.upbound.io/v1beta1", "kind": "ProviderConfig",
            "metadata": {"name": "theirs"}, "spec": {"credentials": {"source": "None"}, "clientID": "person"}});
        env.apply_yaml(&foreign.to_string()).await?;
        let before = api.get("theirs").await?;
        let hyperlink = Hyperlink::start_capz(&env, &management, &[NAMESPACE, OTHER], "first", &RESYNC).await?;
        let own = has_ids(&env, "same-name", [FEDERATED_CLIENT, WORKLOAD, TENANT]).await?;
        second.create_objects(&env).await?;
        has_event(
            &env,
            OTHER,
            "ProviderConfigTaken",
            "is that of Cluster crossplane-one/same-name",
        )
        .await?;
        has_event(&env, NAMESPACE, "Refused", "ProviderConfig theirs is there already").await?;
        ensure!(
            api.get("theirs").await?.resource_version() == before.resource_version(),
            "it was written"
        );
        ensure!(
            api.get("same-name").await?.resource_version() == own.resource_version(),
            "it was written"
        );

        // The second one has nothing that its deletion could delete.
        second.delete(&env, SOON).await?;
        ensure!(api.get("same-name").await?.uid() == own.uid(), "another one");
        theirs.delete(&env, SOON).await?;
        ensure!(api.get("theirs").await?.uid() == before.uid(), "a person's is deleted");
        first.delete(&env, SOON).await?;
        ensure!(api.get_opt("same-name").await?.is_none(), "it stays");
        api.delete("theirs", &DeleteParams::default()).await?;
        hyperlink.stop().await
    });
}

/// Waits until Hyperlink has learned, since so many lines of the audit log, that ProviderConfigs are not served.
async fn are_known_as_not_served(env: &CapzEnv, since: usize) -> Result<()> {
    let path = "/apis/azure.upbound.io/v1beta1";
    eventually("Hyperlink knows what is served", SOON, || async {
        let audited = audit(env.control_plane())?;
        let mut answers = audited[since..].iter().filter_map(|line| line.answer("capz", path));
        ensure!(answers.any(|code| code == 404), "it has not asked again");
        Ok(())
    })
    .await
}

#[test]
fn clusters_live_on_while_no_provider_config_is_served() {
    scenario(async {
        let (env, management) = environment(true).await?;
        let [ends, stays, comes] = ["ends", "stays", "comes"].map(|name| workload(NAMESPACE, name));
        for cluster in [&management, &ends, &stays] {
            cluster.create_objects(&env).await?;
        }
        let hyperlink = Hyperlink::start_capz(&env, &management, &[NAMESPACE], "first", &RESYNC).await?;
        for cluster in [&ends, &stays] {
            has_ids(&env, cluster.name(), [FEDERATED_CLIENT, WORKLOAD, TENANT]).await?;
        }
        // What the API server does not serve any more is not deleted, and would be there again.
        let api = provider_configs(&env)?;
        let since = audit(env.control_plane())?.len();
        for cluster in [&ends, &stays] {
            api.delete(cluster.name(), &DeleteParams::default()).await?;
        }
        crds::serve_provider_configs(&env.client()?, false).await?;
        are_known_as_not_served(&env, since).await?;
        ends.delete(&env, SOON).await?;
        comes.create_objects(&env).await?;

        crds::serve_provider_configs(&env.client()?, true).await?;
        for cluster in [&stays, &comes] {
            has_ids(&env, cluster.name(), [FEDERATED_CLIENT, WORKLOAD, TENANT]).await?;
        }
        for cluster in [&stays, &comes] {
            cluster.delete(&env, SOON).await?;
            ensure!(api.get_opt(cluster.name()).await?.is_none(), "it stays");
        }
        hyperlink.process().check()?;
        hyperlink.stop().await
    });
}

#[test]
fn managed_cluster_has_the_ids_of_its_secret() {
    scenario(async {
        if !crds::capi::are_real() {
            e2e::scenario::skipped("no CRDs of CAPZ at hand, so there are no managed control planes");
            return Ok(());
        }
        let (env, management) = environment(true).await?;
        management.create_objects(&env).await?;
        let reference =
            |kind: &str| json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": "managed"});
        let cluster = workload(NAMESPACE, "managed").with_cluster(json!({"spec": {
            "infrastructureRef": reference("AzureASOManagedCluster"),
            "controlPlaneRef": reference("AzureASOManagedControlPlane")}}));
        let hyperlink = Hyperlink::start_capz(&env, &management, &[NAMESPACE], "first", &RESYNC).await?;
        cluster.create_cluster(&env).await?;
        let control_plane = |resources: Value| {
            json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureASOManagedControlPlane",
                "metadata": {"namespace": NAMESPACE, "name": "managed"},
                "spec": {"version": "1.32", "resources": resources}})
            .to_string()
        };
        env.apply_yaml(&control_plane(json!([]))).await?;
        has_event(
            &env,
            NAMESPACE,
            "Refused",
            "the first resource of AzureASOManagedControlPlane managed has no",
        )
        .await?;
        let resource = json!([{"apiVersion": "containerservice.azure.com/v1api20231001", "kind": "ManagedCluster",
            "metadata": {"name": "m", "annotations": {"serviceoperator.azure.com/credential-from": "aso"}}}]);
        env.apply_yaml(&control_plane(resource)).await?;
        has_event(&env, NAMESPACE, "Refused", "Secret crossplane-one/aso does not exist").await?;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": NAMESPACE, "name": "aso"},
            "stringData": {"AZURE_CLIENT_ID": "456", "AZURE_SUBSCRIPTION_ID": "s", "AZURE_TENANT_ID": "123"}});
        env.apply_yaml(&secret.to_string()).await?;
        has_ids(&env, "managed", ["456", "s", "123"]).await?;
        cluster.delete_object(&cluster.clusters(&env.client()?), SOON).await?;
        ensure!(provider_configs(&env)?.get_opt("managed").await?.is_none(), "it stays");
        hyperlink.stop().await
    });
}

#[test]
fn provider_config_follows_its_sources_at_once() {
    scenario(async {
        let (env, management) = environment(true).await?;
        let cluster = workload(NAMESPACE, "sources");
        for cluster in [&management, &cluster] {
            cluster.create_objects(&env).await?;
        }
        let hyperlink = Hyperlink::start_capz(&env, &management, &[NAMESPACE], "first", &SELDOM).await?;
        has_ids(&env, "sources", [FEDERATED_CLIENT, WORKLOAD, TENANT]).await?;
        let another = Patch::Merge(json!({"spec": {"clientID": MANAGED_CLIENT}}));
        let identities = cluster.identities(&env.client()?);
        identities.patch("sources", &Default::default(), &another).await?;
        has_ids(&env, "sources", [MANAGED_CLIENT, WORKLOAD, TENANT]).await?;
        let named = json!({"spec": {"identityRef": {"name": management.name()}}});
        cluster.patch(&env, &named).await?;
        has_ids(&env, "sources", [FEDERATED_CLIENT, WORKLOAD, TENANT]).await?;

        // One that may not be used any more, or is not named, is an Event; what there is stays.
        let nobodys = Patch::Merge(json!({"spec": {"allowedNamespaces": null}}));
        identities
            .patch(management.name(), &Default::default(), &nobodys)
            .await?;
        has_event(&env, NAMESPACE, "Refused", "does not allow namespace").await?;
        cluster.patch(&env, &json!({"spec": {"identityRef": null}})).await?;
        has_event(&env, NAMESPACE, "Refused", "has no identityRef").await?;
        has_ids(&env, "sources", [FEDERATED_CLIENT, WORKLOAD, TENANT]).await?;
        hyperlink.stop().await
    });
}

#[test]
fn managed_cluster_has_the_ids_of_its_identity() {
    scenario(async {
        if !crds::capi::are_real() {
            e2e::scenario::skipped("no CRDs of CAPZ at hand, so there are no managed control planes");
            return Ok(());
        }
        let (env, management) = environment(true).await?;
        management.create_objects(&env).await?;
        let reference =
            |kind: &str| json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": "aks"});
        let cluster = workload(NAMESPACE, "aks").with_cluster(json!({"spec": {
            "infrastructureRef": reference("AzureManagedCluster"),
            "controlPlaneRef": reference("AzureManagedControlPlane")}}));
        // Without a namespace it is one of the control plane's.
        let identity = json!({"kind": "AzureClusterIdentity", "name": management.name()});
        let control_plane = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "AzureManagedControlPlane", "metadata": {"namespace": NAMESPACE, "name": "aks"},
            "spec": {"version": "1.32.0", "location": LOCATION, "resourceGroupName": "aks",
                "subscriptionID": WORKLOAD, "identityRef": identity}});
        env.apply_yaml(&control_plane.to_string()).await?;
        let hyperlink = Hyperlink::start_capz(&env, &management, &[NAMESPACE], "first", &SELDOM).await?;
        cluster.create_cluster(&env).await?;
        has_ids(&env, "aks", [FEDERATED_CLIENT, WORKLOAD, TENANT]).await?;
        let another = Patch::Merge(json!({"spec": {"clientID": MANAGED_CLIENT}}));
        let identities = management.identities(&env.client()?);
        identities
            .patch(management.name(), &Default::default(), &another)
            .await?;
        has_ids(&env, "aks", [MANAGED_CLIENT, WORKLOAD, TENANT]).await?;
        cluster.delete_object(&cluster.clusters(&env.client()?), SOON).await?;
        ensure!(provider_configs(&env)?.get_opt("aks").await?.is_none(), "it stays");
        hyperlink.stop().await
    });
}
