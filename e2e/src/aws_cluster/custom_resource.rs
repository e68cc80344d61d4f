//! The custom resource of a hosted cluster on AWS, as HyperShift's observer writes it, and waits for what it reports.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};

use super::AwsHostedCluster;
use crate::AwsEnv;
use crate::hosted_cluster::{Condition, conditions};
use crate::wait::eventually;

/// The name of the load balancer with this host name, as HyperShift derives it: the first label without its last part.
pub fn load_balancer_name(host_name: &str) -> &str {
    let label = host_name.split('.').next().unwrap_or(host_name);
    label.rsplit_once('-').map_or(label, |(name, _)| name)
}

impl AwsHostedCluster {
    /// Waits until each Service has a host name, and creates the custom resource from it, as the observer does.
    ///
    /// # Errors
    ///
    /// A Service gets no host name in time, or the API server refuses.
    pub async fn create_custom_resources(&self, env: &AwsEnv) -> Result<()> {
        for service in &self.services {
            self.create_custom_resource(env, service).await?;
        }
        Ok(())
    }

    async fn create_custom_resource(&self, env: &AwsEnv, service: &str) -> Result<()> {
        let host_name = self.gets_host_name(&env.client()?, service, env.patience()).await?;
        let tags = self.resource_tags.iter();
        let tags: Vec<_> = tags.map(|(key, value)| json!({"key": key, "value": value})).collect();
        let mut spec = json!({"networkLoadBalancerName": load_balancer_name(&host_name)});
        if !tags.is_empty() {
            spec["resourceTags"] = Value::from(tags);
        }
        let object = json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
            "metadata": {"name": service, "namespace": self.control_plane_namespace()}, "spec": spec});
        env.apply_yaml(&object.to_string()).await.map(drop)
    }

    /// Waits until a Service has a host name, and returns it.
    ///
    /// # Errors
    ///
    /// It has none within `timeout`.
    pub async fn gets_host_name(&self, client: &kube::Client, service: &str, timeout: Duration) -> Result<String> {
        eventually(&format!("{service} has a host name"), timeout, || async {
            let service = self.get_service(client, service).await?.context("no Service")?;
            let status = service.status.and_then(|status| status.load_balancer);
            let ingress = status.and_then(|status| status.ingress).unwrap_or_default();
            let host_name = ingress.into_iter().find_map(|one| one.hostname);
            host_name.context("no host name")
        })
        .await
    }

    /// The Service of this name, if it exists.
    ///
    /// # Errors
    ///
    /// The API server does not answer.
    pub async fn get_service(&self, client: &kube::Client, name: &str) -> Result<Option<Service>> {
        let api: Api<Service> = Api::namespaced(client.clone(), &self.control_plane_namespace());
        Ok(api.get_opt(name).await?)
    }

    /// The custom resource of the first Service, if it exists.
    ///
    /// # Errors
    ///
    /// The API server does not answer.
    pub async fn get_custom_resource(&self, client: &kube::Client) -> Result<Option<DynamicObject>> {
        Ok(self.custom_resources(client).get_opt(self.first_service()).await?)
    }

    /// The custom resources of the control plane.
    pub fn custom_resources(&self, client: &kube::Client) -> Api<DynamicObject> {
        self.api(client, "AWSEndpointService", &self.control_plane_namespace())
    }

    /// Waits until a condition of each custom resource has this status and this reason, and returns the first one.
    ///
    /// # Errors
    ///
    /// It does not within `timeout`; the error holds the conditions.
    pub async fn has_condition(
        &self,
        env: &AwsEnv,
        kind: &str,
        (status, reason): (&str, &str),
        timeout: Duration,
    ) -> Result<DynamicObject> {
        let api = self.custom_resources(&env.client()?);
        eventually(&format!("{kind} is {status}, {reason}"), timeout, || async {
            let fits = |one: &&Condition| one.kind == kind && one.status == status && one.reason == reason;
            for name in &self.services {
                let all = conditions(&api.get(name).await?);
                all.iter().find(fits).ok_or_else(|| anyhow!("{name}: {all:?}"))?;
            }
            Ok(api.get(self.first_service()).await?)
        })
        .await
    }

    /// Waits until both roles report the path as available, and it carries traffic.
    ///
    /// # Errors
    ///
    /// It does not within `timeout` for each step; the error holds the conditions.
    pub async fn becomes_available(&self, env: &AwsEnv, timeout: Duration) -> Result<()> {
        self.gets_endpoint_service(env, timeout).await?;
        let success = ("True", "AWSSuccess");
        self.has_condition(env, "AWSEndpointAvailable", success, timeout)
            .await?;
        self.becomes_reachable(env, timeout).await
    }

    /// Waits until HO reports each endpoint service as available, and returns the first custom resource.
    ///
    /// # Errors
    ///
    /// It does not within `timeout`; the error holds the conditions.
    pub async fn gets_endpoint_service(&self, env: &AwsEnv, timeout: Duration) -> Result<DynamicObject> {
        let success = ("True", "AWSSuccess");
        self.has_condition(env, "AWSEndpointServiceAvailable", success, timeout)
            .await
    }

    /// Waits until a worker reaches the Service under each of its names.
    ///
    /// # Errors
    ///
    /// A worker does not within `timeout`; the error says which hop fails.
    pub async fn becomes_reachable(&self, env: &AwsEnv, timeout: Duration) -> Result<()> {
        for name in self.host_names() {
            eventually(&format!("{name} is reachable"), timeout, || async {
                let expected = self.service_behind(&name);
                let found = env
                    .oracle()
                    .reachable_at(
                        &self.vpc(),
                        &name,
                        Self::port(expected.rsplit('/').next().unwrap_or_default()),
                    )
                    .await?;
                ensure!(found.ok, "{}", found.why.unwrap_or_default());
                let reached = found.path.last().map(|hop| &hop.id);
                ensure!(reached == Some(&expected), "it leads to {reached:?}");
                Ok(())
            })
            .await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::load_balancer_name;

    #[test]
    fn load_balancer_is_named_in_its_host_name() {
        for (host_name, name) in [
            ("a1b2c3-0123abcd.elb.us-east-1.amazonaws.com", "a1b2c3"),
            (
                "k8s-clusters-kubeapis-db6fee3a62-8008741421d14306.elb.us-east-1.amazonaws.com",
                "k8s-clusters-kubeapis-db6fee3a62",
            ),
            ("plain.elb.us-east-1.amazonaws.com", "plain"),
        ] {
            assert_eq!(load_balancer_name(host_name), name);
        }
    }
}
