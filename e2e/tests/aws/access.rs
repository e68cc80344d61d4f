//! A private cluster that becomes public, and private again; and custom resources that nobody needs any more.

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::{NAMESPACE, ROUTER};
use e2e::hyperlink::Role;
use e2e::{eventually, scenario};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::json;

use crate::SOON;
use crate::both::Both;

const FINALIZERS: [&str; 2] = [
    "hypershift.openshift.io/hypershift-operator-finalizer",
    "hypershift.openshift.io/control-plane-operator-finalizer",
];

impl Both {
    /// Deletes the router's Service, as HyperShift does in a public cluster.
    async fn delete_service(&self) -> Result<()> {
        let services: Api<Service> = Api::namespaced(self.env.client()?, &self.cluster.control_plane_namespace());
        services.delete(ROUTER, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until the custom resource is gone.
    async fn custom_resource_is_gone(&self) -> Result<()> {
        let client = self.env.client()?;
        eventually("the custom resource is gone", SOON, || async {
            let left = self.cluster.get_custom_resource(&client).await?;
            ensure!(left.is_none(), "{left:?}");
            Ok(())
        })
        .await
    }

    /// Fails unless one Normal Event on the HostedCluster has this note.
    async fn ensure_reported_once(&self, note: &str) -> Result<()> {
        let events: Api<Event> = Api::namespaced(self.env.client()?, NAMESPACE);
        let all = events.list(&ListParams::default()).await?.items;
        let is_it = |event: &&Event| {
            let about = event.regarding.as_ref().and_then(|object| object.kind.as_deref());
            let (text, kind) = (event.note.as_deref(), event.type_.as_deref());
            about == Some("HostedCluster") && text == Some(note) && kind == Some("Normal")
        };
        ensure!(all.iter().filter(is_it).count() == 1, "{all:?}");
        Ok(())
    }

    /// Waits until HO has read its endpoint service twice after the call numbered `since`.
    async fn endpoint_service_is_read_twice(&self, since: u64) -> Result<()> {
        eventually("HO reads twice", SOON, || async {
            let calls = self.calls(since).await?;
            let reads = calls
                .iter()
                .filter(|call| call.action() == "DescribeVpcEndpointServiceConfigurations");
            ensure!(reads.count() >= 2, "{calls:?}");
            Ok(())
        })
        .await
    }
}

#[test]
fn path_of_a_cluster_made_public_is_deleted_and_remade() {
    scenario(async {
        let both = Both::start("public", "1h").await?;
        both.cluster.create_objects(&both.env).await?;
        let before = both.becomes_available().await?.metadata.uid;

        let since = both.env.oracle().last_call().await?;
        both.patch_hosted_cluster(&json!({"endpointAccess": "Public"})).await?;
        both.patch_control_plane(&json!({"endpointAccess": "Public"})).await?;
        both.custom_resource_is_gone().await?;
        both.ensure_reported_once("private-router is deleted: the cluster is not private")
            .await?;
        both.delete_service().await?;
        both.nothing_is_left().await?;
        let writes = both.writes(since).await?;
        // The guest's side first: no live connection is rejected.
        let rejected = writes.iter().any(|action| action == "RejectVpcEndpointConnections");
        ensure!(!rejected, "{writes:?}");
        let last = writes.last().map(String::as_str);
        ensure!(last == Some("DeleteVpcEndpointServiceConfigurations"), "{writes:?}");

        both.patch_hosted_cluster(&json!({"endpointAccess": "PublicAndPrivate"}))
            .await?;
        both.patch_control_plane(&json!({"endpointAccess": "PublicAndPrivate"}))
            .await?;
        let owner = both.control_plane().await?.metadata.uid.context("no uid")?;
        both.cluster.create_services(&both.env, Some(&owner)).await?;
        let now = both.becomes_available().await?.metadata.uid;
        ensure!(now != before, "the custom resource of before");
        both.cluster.delete(&both.env, SOON).await?;
        both.nothing_is_left().await?;
        both.ensure_no_denied_call().await?;
        both.stop().await
    });
}

#[test]
fn path_is_deleted_with_its_service_alone() {
    scenario(async {
        let both = Both::start("serviceless", "3s").await?;
        both.cluster.create_objects(&both.env).await?;
        let before = both.becomes_available().await?.metadata.uid;
        // The control plane does not follow its HostedCluster yet, and its observer would make the path again.
        both.patch_hosted_cluster(&json!({"endpointAccess": "Public"})).await?;
        let since = both.env.oracle().last_call().await?;
        both.endpoint_service_is_read_twice(since).await?;
        let found = both.cluster.get_custom_resource(&both.env.client()?).await?;
        ensure!(
            found.and_then(|found| found.metadata.uid) == before,
            "another custom resource"
        );
        let writes = both.writes(since).await?;
        ensure!(writes.is_empty(), "{writes:?}");
        both.patch_hosted_cluster(&json!({"endpointAccess": "Private"})).await?;

        both.delete_service().await?;
        both.custom_resource_is_gone().await?;
        both.nothing_is_left().await?;
        let owner = both.control_plane().await?.metadata.uid.context("no uid")?;
        both.cluster.create_services(&both.env, Some(&owner)).await?;
        both.becomes_available().await?;
        both.ensure_no_denied_call().await?;
        both.stop().await
    });
}

#[test]
fn router_of_an_earlier_hypershift_is_deleted() {
    scenario(async {
        let mut both = Both::without_roles("succeeded", "3s").await?;
        both.cluster.create_objects(&both.env).await?;
        let namespace = both.cluster.control_plane_namespace();
        let (client, name) = (both.env.client()?, format!("router-{namespace}"));
        let object = json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
            "metadata": {"name": name, "namespace": namespace, "finalizers": FINALIZERS},
            "spec": {"networkLoadBalancerName": "a0123456789abcdef0123456789abcde"}});
        both.env.apply_yaml(&object.to_string()).await?;
        both.start_role(Role::Ho).await?;
        both.start_role(Role::Cpo).await?;
        both.becomes_available().await?;
        let custom_resources = both.cluster.custom_resources(&client);
        eventually("the router of before is gone", SOON, || async {
            let left = custom_resources.get_opt(&name).await?;
            ensure!(left.is_none(), "{left:?}");
            Ok(())
        })
        .await?;
        for kind in ["vpc-endpoint-service", "vpc-endpoint", "security-group"] {
            both.only(kind).await?;
        }
        both.cluster.delete(&both.env, SOON).await?;
        both.nothing_is_left().await?;
        both.stop().await
    });
}
