//! Objects that are created and deleted in every order that an API server accepts, a namespace that is deleted at any
//! moment, and two clusters with one id: each cluster ends available, deleted, or with one clear False.

use anyhow::{Context, Result, ensure};
use e2e::aws_cluster::AwsHostedCluster;
use e2e::aws_env::{SharedAwsEnv, situation};
use e2e::aws_sim::AwsCall;
use e2e::eventually;
use e2e::hosted_cluster::{NAMESPACE, ROUTER, conditions, release};
use e2e::hyperlink::aws::lease;
use e2e::hyperlink::{Hyperlink, Role};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::api::{Api, DeleteParams, PostParams};
use rstest::rstest;
use serde_json::json;

use crate::SOON;

/// An object that is created or deleted. The control plane's namespace is always created first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    HostedCluster,
    ControlPlane,
    /// With its owner, if that is there.
    Service,
    /// The custom resource, made by hand.
    Custom,
    /// The custom resource again: it is deleted and then recreated.
    Recreated,
    Namespace,
}

use Part::{
    ControlPlane, Custom, HostedCluster as TheCluster, Namespace as TheNamespace, Recreated, Service as TheService,
};

/// A cluster in the shared environment, with a process of the CPO role of its own.
struct Guest {
    shared: &'static SharedAwsEnv,
    cluster: AwsHostedCluster,
    cpo: Hyperlink,
    client: kube::Client,
}

impl Guest {
    /// Starts the role, and creates the network and the namespaces, and nothing else.
    async fn begin(shared: &'static SharedAwsEnv, cluster: AwsHostedCluster) -> Result<Self> {
        let namespace = cluster.control_plane_namespace();
        shared.env.create_lease(&lease(Role::Cpo, Some(&namespace))).await?;
        cluster.create_guest_network(&shared.env).await?;
        cluster.create_namespaces(&shared.env).await?;
        let flags = [("resync", "3s"), ("namespace", namespace.as_str())];
        let name = format!("cpo-{}", cluster.name());
        let cpo = Hyperlink::start_on_aws(&shared.env, Role::Cpo, &name, &flags).await?;
        let client = shared.env.client()?;
        Ok(Self {
            shared,
            cluster,
            cpo,
            client,
        })
    }

    async fn uid_of_control_plane(&self) -> Result<Option<String>> {
        let namespace = self.cluster.control_plane_namespace();
        let api = self.cluster.api(&self.client, "HostedControlPlane", &namespace);
        let found = api.get_opt(self.cluster.name()).await?;
        Ok(found.and_then(|found| found.metadata.uid))
    }

    /// A custom resource as a person might write it, before there is a load balancer.
    async fn create_custom_resource_by_hand(&self) -> Result<()> {
        let object = json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
            "metadata": {"name": ROUTER}, "spec": {"networkLoadBalancerName": "by-hand"}});
        let api = self.cluster.custom_resources(&self.client);
        api.create(&PostParams::default(), &serde_json::from_value(object)?)
            .await?;
        eventually("somebody has reported on the custom resource", SOON, || async {
            let found = api.get(ROUTER).await?;
            ensure!(!conditions(&found).is_empty(), "no conditions");
            Ok(())
        })
        .await
    }

    async fn create(&self, part: Part) -> Result<()> {
        let env = &self.shared.env;
        match part {
            TheCluster => {
                self.cluster.create_hosted_cluster(env).await?;
                self.cluster.create_node_pools(env).await
            }
            ControlPlane => self.cluster.create_control_plane(env).await.map(drop),
            TheService => {
                let owner = self.uid_of_control_plane().await?;
                self.cluster.create_services(env, owner.as_deref()).await
            }
            Custom => self.create_custom_resource_by_hand().await,
            Recreated => self.delete(Custom).await,
            TheNamespace => Ok(()),
        }
    }

    async fn becomes_available(&self) -> Result<()> {
        let (env, success) = (&self.shared.env, ("True", "AWSSuccess"));
        self.cluster.gets_endpoint_service(env, SOON).await?;
        let kind = "AWSEndpointAvailable";
        self.cluster.has_condition(env, kind, success, SOON).await?;
        self.cluster.becomes_reachable(env, SOON).await
    }

    /// Asks for the deletion of an object; nothing holds a HostedCluster.
    async fn delete(&self, part: Part) -> Result<()> {
        let Self { cluster, client, .. } = self;
        let (namespace, params) = (cluster.control_plane_namespace(), DeleteParams::default());
        match part {
            TheCluster => {
                let api = cluster.api(client, "HostedCluster", NAMESPACE);
                api.delete(cluster.name(), &params).await?;
                release(&api, cluster.name()).await?;
            }
            ControlPlane => {
                let api = cluster.api(client, "HostedControlPlane", &namespace);
                api.delete(cluster.name(), &params).await?;
            }
            Custom | Recreated => {
                cluster.custom_resources(client).delete(ROUTER, &params).await?;
            }
            TheService => {
                let api: Api<Service> = Api::namespaced(client.clone(), &namespace);
                api.delete(ROUTER, &params).await?;
            }
            TheNamespace => {
                Api::<Namespace>::all(client.clone())
                    .delete(&namespace, &params)
                    .await?;
            }
        }
        Ok(())
    }

    /// Waits until the namespace is gone. HyperShift lets the HostedControlPlane go once that is deleted.
    async fn namespace_is_gone(&self) -> Result<()> {
        let namespace = self.cluster.control_plane_namespace();
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let control_planes = self.cluster.api(&self.client, "HostedControlPlane", &namespace);
        eventually("the namespace is gone", SOON * 2, || async {
            let found = control_planes.get_opt(self.cluster.name()).await?;
            if found.is_some_and(|found| found.metadata.deletion_timestamp.is_some()) {
                release(&control_planes, self.cluster.name()).await?;
            }
            let left = namespaces.get_opt(&namespace).await?;
            ensure!(left.is_none(), "{:?}", left.and_then(|left| left.status));
            Ok(())
        })
        .await
    }

    /// Waits until AWS has nothing with the id of the cluster, and no record in its zone.
    async fn nothing_is_left(self) -> Result<()> {
        let (oracle, id) = (self.shared.env.oracle(), self.cluster.cluster_id());
        let zone = self.cluster.zone_arn();
        eventually("nothing is left in AWS", SOON, || async {
            let mut left = oracle.resources("arn:").await?;
            left.retain(|one| one["state"] != "deleted");
            let own = left.iter().find(|one| one["tags"].to_string().contains(&id));
            ensure!(own.is_none(), "{own:?}");
            let zone = left.iter().find(|one| one["id"] == *zone).context("no zone")?;
            ensure!(!zone["records"].to_string().contains("CNAME"), "{zone}");
            Ok(())
        })
        .await?;
        self.cluster.delete_node_pools(&self.client, SOON).await?;
        self.cpo.stop().await
    }

    /// The calls that name the cluster.
    async fn calls(&self) -> Result<Vec<AwsCall>> {
        let mut calls = self.shared.env.oracle().journal(0).await?;
        let (id, infra) = (self.cluster.cluster_id(), self.cluster.infra_id());
        calls.retain(|call| call.query.contains(&id) || call.query.contains(&infra));
        Ok(calls)
    }

    /// Waits until this was called for the cluster.
    async fn is_called(&self, action: &str) -> Result<()> {
        eventually(action, SOON, || async {
            let calls = self.calls().await?;
            let is_called = calls.iter().any(|call| call.action() == action);
            ensure!(is_called, "not among {} calls", calls.len());
            Ok(())
        })
        .await
    }
}

async fn life(shared: &'static SharedAwsEnv, name: &str, come: &[Part], go: &[Part]) -> Result<()> {
    let guest = Guest::begin(shared, AwsHostedCluster::new(name)).await?;
    for part in come {
        guest.create(*part).await.with_context(|| format!("{part:?}"))?;
    }
    guest.becomes_available().await?;
    for part in go {
        guest.delete(*part).await.with_context(|| format!("{part:?}"))?;
    }
    guest.namespace_is_gone().await?;
    guest.nothing_is_left().await
}

#[test]
fn clusters_come_and_go_in_orders_of_their_own() {
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
            &[TheNamespace, TheCluster],
        ),
        (
            "by-hand-first",
            &[Custom, TheCluster, ControlPlane, TheService, Recreated],
            &[TheCluster, TheService, ControlPlane, TheNamespace],
        ),
    ];
    situation(|shared| async move {
        let lives = lives.map(|(name, come, go)| async move {
            let done = life(shared, name, come, go).await;
            done.with_context(|| format!("{name} {come:?} {go:?}"))
        });
        try_join_all(lives).await.map(drop)
    });
}

#[rstest]
#[case::before_anything_was_written("evicted-at-once", None)]
#[case::at_the_security_group("evicted-early", Some("CreateSecurityGroup"))]
#[case::at_the_endpoint_service("evicted-served", Some("CreateVpcEndpointServiceConfiguration"))]
#[case::at_the_endpoint("evicted-connected", Some("CreateVpcEndpoint"))]
#[case::when_available("evicted-available", Some(""))]
fn namespace_is_deleted_at_any_moment(#[case] name: &str, #[case] moment: Option<&str>) {
    situation(|shared| async move {
        let guest = Guest::begin(shared, AwsHostedCluster::new(name)).await?;
        for part in [TheCluster, ControlPlane, TheService] {
            guest.create(part).await?;
        }
        match moment {
            None => {}
            Some("") => guest.becomes_available().await?,
            Some(action) => guest.is_called(action).await?,
        }
        guest.delete(TheNamespace).await?;
        guest.namespace_is_gone().await?;
        guest.delete(TheCluster).await?;
        guest.nothing_is_left().await
    });
}

#[test]
fn cluster_with_the_id_of_an_older_one_waits_for_its_end() {
    situation(|shared| async move {
        let env = &shared.env;
        let older = shared.lives("first-id").await?;
        let before = older.get_custom_resource(&shared.env.client()?).await?;
        let id = json!({"spec": {"clusterID": older.cluster_id()}});
        let newer = AwsHostedCluster::new("second-id")
            .with_hosted_cluster(id.clone())
            .with_control_plane(id);
        newer.create(env).await?;
        let kind = "AWSEndpointServiceAvailable";
        newer
            .has_condition(env, kind, ("False", "DuplicateIdentity"), SOON)
            .await?;
        let now = older.get_custom_resource(&shared.env.client()?).await?;
        ensure!(
            now.as_ref().map(|now| &now.data["status"]) == before.as_ref().map(|before| &before.data["status"]),
            "the older one's was changed: {now:?}"
        );
        older.delete(env, SOON).await?;
        newer.gets_endpoint_service(env, SOON).await?;
        newer.delete(env, SOON).await
    });
}
