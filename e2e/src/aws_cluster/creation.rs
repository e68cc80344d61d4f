//! What an installer and HyperShift create before Hyperlink begins, step by step.

use anyhow::{Context, Result};
use serde_json::json;

use super::{AwsHostedCluster, SUBNETS};
use crate::AwsEnv;
use crate::aws_sim::REGION;
use crate::hosted_cluster::NAMESPACE;

impl AwsHostedCluster {
    /// Creates everything that Hyperlink's HO role begins with, the custom resources included.
    ///
    /// # Errors
    ///
    /// AWS or the API server refuses, or the Service gets no host name.
    pub async fn create(&self, env: &AwsEnv) -> Result<()> {
        self.create_objects(env).await?;
        self.create_custom_resources(env).await
    }

    /// Creates everything that Hyperlink begins with where the CPO role runs, which creates the custom resource.
    ///
    /// # Errors
    ///
    /// AWS or the API server refuses.
    pub async fn create_objects(&self, env: &AwsEnv) -> Result<()> {
        self.create_guest_network(env).await?;
        self.create_namespaces(env).await?;
        self.create_hosted_cluster(env).await?;
        self.create_node_pools(env).await?;
        let owner = self.create_control_plane(env).await?;
        self.create_services(env, Some(&owner)).await
    }

    /// Creates the workers' network and the internal hosted zone in AWS, as an installer does.
    ///
    /// # Errors
    ///
    /// AWS refuses.
    pub async fn create_guest_network(&self, env: &AwsEnv) -> Result<()> {
        let (oracle, vpc) = (env.oracle(), self.vpc());
        oracle
            .drift_put(&self.arn(&format!("vpc/{vpc}")), &json!({"cidr": "10.0.0.0/16"}))
            .await?;
        for ((id, zone_id), number) in self.subnets().iter().zip(SUBNETS).zip(1..) {
            let subnet = json!({"vpc": vpc, "cidr": format!("10.0.{number}.0/24"), "zone_id": zone_id});
            oracle.drift_put(&self.arn(&format!("subnet/{id}")), &subnet).await?;
        }
        let zone =
            json!({"account": self.network_account, "name": self.zone_name(), "vpcs": [{"id": vpc, "region": REGION}]});
        oracle.drift_put(&self.zone_arn(), &zone).await
    }

    /// Deletes the workers' network and the internal hosted zone, as an installer does at the end.
    ///
    /// # Errors
    ///
    /// Something of it does not exist.
    pub async fn delete_guest_network(&self, env: &AwsEnv) -> Result<()> {
        let oracle = env.oracle();
        oracle.drift_delete(&self.zone_arn()).await?;
        for id in self.subnets() {
            oracle.drift_delete(&self.arn(&format!("subnet/{id}"))).await?;
        }
        oracle.drift_delete(&self.arn(&format!("vpc/{}", self.vpc()))).await
    }

    /// ARN of the internal hosted zone.
    pub fn zone_arn(&self) -> String {
        format!("arn:aws:route53:::hostedzone/{}", self.zone())
    }

    /// ARNs of what the installer has created.
    pub fn network_arns(&self) -> Vec<String> {
        let subnets = self.subnets().map(|id| self.arn(&format!("subnet/{id}")));
        let others = [self.zone_arn(), self.arn(&format!("vpc/{}", self.vpc()))];
        others.into_iter().chain(subnets).collect()
    }

    /// Creates the namespaces of the HostedCluster and of the control plane.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_namespaces(&self, env: &AwsEnv) -> Result<()> {
        let names = [NAMESPACE, &self.control_plane_namespace()];
        let namespace = |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).to_string();
        env.apply_yaml(&names.map(namespace).join("\n---\n")).await.map(drop)
    }

    /// Creates the HostedCluster.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_hosted_cluster(&self, env: &AwsEnv) -> Result<()> {
        env.apply_yaml(&self.hosted_cluster().to_string()).await.map(drop)
    }

    /// Creates the NodePools, or those that are missing.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_node_pools(&self, env: &AwsEnv) -> Result<()> {
        let pools = self.node_pools.iter().zip(1..);
        let text: Vec<_> = pools
            .map(|(subnet, number)| self.node_pool(number, subnet).to_string())
            .collect();
        env.apply_yaml(&text.join("\n---\n")).await.map(drop)
    }

    /// Creates the HostedControlPlane and returns its uid.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_control_plane(&self, env: &AwsEnv) -> Result<String> {
        let applied = env.apply_yaml(&self.hosted_control_plane().to_string()).await?;
        let control_plane = applied.into_iter().next().context("nothing applied")?;
        control_plane.metadata.uid.context("no uid")
    }

    /// Creates the Services. The HostedControlPlane with this uid owns them, or nobody yet. An existing Service gets
    /// the owner.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_services(&self, env: &AwsEnv, owner: Option<&str>) -> Result<()> {
        let services = self.services.iter().map(|name| self.service(name, owner).to_string());
        let services: Vec<_> = services.collect();
        env.apply_yaml(&services.join("\n---\n")).await.map(drop)
    }
}
