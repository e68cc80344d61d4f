//! A cluster's objects, created in every order that an API server accepts, and deleted in different orders.

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, NAMESPACE, conditions, release};
use e2e::shared_env::{SOON, SharedEnv, situation};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;

/// An object that is created or deleted. The control plane's namespace is always created first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    HostedCluster,
    ControlPlane,
    /// With its owner, if that is there.
    Service,
    /// The custom resource, made by hand; with its owner, if that is there.
    Custom,
    /// The custom resource again: it is deleted and then recreated.
    Recreated,
    Namespace,
}

use Part::{ControlPlane, Custom, Namespace as TheNamespace, Recreated, Service as TheService};

const NAME: &str = "private-router";

async fn uid_of_control_plane(shared_env: &SharedEnv, cluster: &HostedCluster) -> Result<Option<String>> {
    let api = cluster.api(
        &shared_env.test_env.client()?,
        "HostedControlPlane",
        &cluster.control_plane_namespace(),
    );
    let found = api.get_opt(cluster.name()).await?;
    Ok(found.and_then(|found| found.metadata.uid))
}

/// A custom resource as a person might write it, before there is an address.
async fn by_hand(shared_env: &SharedEnv, cluster: &HostedCluster) -> Result<()> {
    let owner = uid_of_control_plane(shared_env, cluster).await?.map(|uid| {
        json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
            "name": cluster.name(), "uid": uid, "controller": true, "blockOwnerDeletion": true})
    });
    let azure = shared_env.test_env.azure();
    let object = json!({
        "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AzurePrivateLinkService",
        "metadata": {"name": NAME, "ownerReferences": Vec::from_iter(owner)},
        "spec": {"subscriptionID": azure.guest_subscription, "resourceGroupName": cluster.infra_id(),
            "location": azure.location, "guestVNetID": cluster.vnet(), "guestSubnetID": cluster.subnet()},
    });
    let client = shared_env.test_env.client()?;
    let api = cluster.api(&client, "AzurePrivateLinkService", &cluster.control_plane_namespace());
    api.create(&PostParams::default(), &serde_json::from_value(object)?)
        .await?;
    eventually("somebody has looked at the custom resource", SOON, || async {
        let found = api.get(NAME).await?;
        ensure!(!conditions(&found).is_empty(), "no conditions");
        Ok(())
    })
    .await
}

async fn create_in_order(shared_env: &SharedEnv, cluster: &HostedCluster, order: &[Part]) -> Result<()> {
    let test_env = &shared_env.test_env;
    cluster.create_guest_network(test_env).await?;
    cluster.create_namespaces(test_env).await?;
    for part in order {
        match part {
            Part::HostedCluster => cluster.create_hosted_cluster(test_env).await?,
            ControlPlane => drop(cluster.create_control_plane(test_env).await?),
            TheService => {
                let owner = uid_of_control_plane(shared_env, cluster).await?;
                cluster.create_services(test_env, owner.as_deref()).await?;
            }
            Custom => by_hand(shared_env, cluster).await?,
            Recreated => ask_to_go(shared_env, cluster, Custom).await?,
            TheNamespace => {}
        }
    }
    shared_env.heals(cluster).await
}

async fn ask_to_go(shared_env: &SharedEnv, cluster: &HostedCluster, part: Part) -> Result<()> {
    let (client, namespace) = (shared_env.test_env.client()?, cluster.control_plane_namespace());
    let params = DeleteParams::default();
    let of_hypershift = |kind, namespace: &str| cluster.api(&client, kind, namespace);
    let asked = match part {
        Part::HostedCluster => of_hypershift("HostedCluster", NAMESPACE)
            .delete(cluster.name(), &params)
            .await
            .map(drop),
        ControlPlane => of_hypershift("HostedControlPlane", &namespace)
            .delete(cluster.name(), &params)
            .await
            .map(drop),
        Custom | Recreated => of_hypershift("AzurePrivateLinkService", &namespace)
            .delete(NAME, &params)
            .await
            .map(drop),
        TheService => Api::<Service>::namespaced(client.clone(), &namespace)
            .delete(NAME, &params)
            .await
            .map(drop),
        TheNamespace => Api::<Namespace>::all(client.clone())
            .delete(&namespace, &params)
            .await
            .map(drop),
    };
    Ok(asked?)
}

/// Deletes all of them in this order, and does HyperShift's part meanwhile.
async fn delete_in_order(shared_env: &SharedEnv, cluster: &HostedCluster, order: &[Part]) -> Result<()> {
    for part in order {
        ask_to_go(shared_env, cluster, *part)
            .await
            .with_context(|| format!("{part:?}"))?;
    }
    let client = shared_env.test_env.client()?;
    let control_planes = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
    eventually("only HyperShift holds the HostedControlPlane", SOON, || async {
        let found = control_planes.get_opt(cluster.name()).await?;
        let held = found.and_then(|found| found.metadata.finalizers).unwrap_or_default();
        ensure!(
            held.iter().all(|one| one == "hypershift.openshift.io/finalizer"),
            "{held:?}"
        );
        Ok(())
    })
    .await?;
    release(&control_planes, cluster.name()).await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    eventually("the namespace is gone", SOON, || async {
        let left = namespaces.get_opt(&cluster.control_plane_namespace()).await?;
        ensure!(left.is_none(), "{:?}", left.and_then(|left| left.status));
        Ok(())
    })
    .await?;
    release(&cluster.api(&client, "HostedCluster", NAMESPACE), cluster.name()).await?;
    shared_env.nothing_is_left_of(cluster, &[]).await
}

#[test]
fn clusters_come_and_go_in_orders_of_their_own() {
    use Part::HostedCluster as TheCluster;
    let lives: [(&str, &[Part], &[Part]); 4] = [
        (
            "cluster-last",
            &[ControlPlane, TheService, TheCluster],
            &[TheService, Custom, ControlPlane, TheNamespace, TheCluster],
        ),
        (
            "service-first",
            &[TheService, TheCluster, ControlPlane, TheService],
            &[Custom, ControlPlane, TheService, TheCluster, TheNamespace],
        ),
        (
            "by-hand",
            &[TheCluster, ControlPlane, Custom, TheService],
            &[TheNamespace, TheCluster, Custom],
        ),
        (
            "by-hand-first",
            &[Custom, TheCluster, ControlPlane, TheService, Recreated],
            &[TheCluster, TheService, ControlPlane, Custom, TheNamespace],
        ),
    ];
    situation(async |shared_env| {
        let clusters = lives.map(|(name, come, go)| async move {
            let cluster = HostedCluster::new(&shared_env.test_env, name);
            create_in_order(shared_env, &cluster, come)
                .await
                .with_context(|| format!("{name} {come:?}"))?;
            delete_in_order(shared_env, &cluster, go)
                .await
                .with_context(|| format!("{name} {go:?}"))
        });
        try_join_all(clusters).await.map(drop)
    });
}
