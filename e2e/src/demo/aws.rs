//! The demo on AWS.

mod observed;

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Variant;
use super::observed::Observed;
use super::stage::{Calls, Drift, RESYNC, Stage};
use super::view::View;
use crate::AwsEnv;
use crate::aws_cluster::AwsHostedCluster;
use crate::azure_sim::Preset;
use crate::hyperlink::{Hyperlink, Role};

/// A simulated AWS, both roles, and one cluster.
pub struct AwsStage {
    env: AwsEnv,
    roles: Vec<Hyperlink>,
    client: kube::Client,
    cluster: AwsHostedCluster,
}

/// What is changed by hand.
pub enum Change {
    /// The record of the API server leads elsewhere.
    Record,
    /// That record is deleted.
    NoRecord,
    /// The security group lets nobody in.
    Rules,
    /// The only resource of this kind is deleted.
    Deleted(&'static str),
}

impl AwsStage {
    /// Changes the records of the cluster's zone; the function gets the name of the API server's, too.
    async fn change_records(&self, change: impl Fn(&mut Vec<Value>, &str)) -> Result<()> {
        let api = format!("api.{}.", self.cluster.zone_name());
        let change = |zone: &mut Value| {
            if let Some(records) = zone["records"].as_array_mut() {
                change(records, &api);
            }
        };
        self.patch(&self.cluster.zone_arn(), change).await
    }

    /// The only resource of a kind, as its ARN names it, that has the cluster's id in a tag.
    async fn arn(&self, kind: &str) -> Result<String> {
        let found = self.env.oracle().resources_of(kind).await?;
        let id = self.cluster.cluster_id();
        let mut own = found
            .iter()
            .filter(|one| one["tags"]["hypershift.openshift.io/cluster-id"] == id);
        let arn = own.next().and_then(|one| one["id"].as_str());
        arn.map(str::to_owned).with_context(|| format!("no {kind}"))
    }

    /// Changes one field of a resource.
    async fn patch(&self, arn: &str, change: impl FnOnce(&mut Value)) -> Result<()> {
        let oracle = self.env.oracle();
        let mut found = oracle
            .resources(arn)
            .await?
            .into_iter()
            .next()
            .context(arn.to_owned())?;
        change(&mut found);
        oracle.drift_put(arn, &found).await
    }
}

impl Stage for AwsStage {
    type Change = Change;
    type Position = u64;
    const CLOUD: &'static str = "AWS";
    const HEADINGS: [&'static str; 2] = ["AWS calls", "AWS writes"];
    const PROGRAMS: &'static str = "etcd, kube-apiserver, kube-controller-manager, awssim";
    /// Hyperlink confirms what it does not find by further reads, at AWS's pace.
    const PATIENCE: Duration = Duration::from_secs(180);
    const DELETION: &'static str = "go: NodePools, HostedControlPlane, AWSEndpointService and namespace are deleted";
    const DELETED: &'static str = "nothing is left in AWS, no finalizer, and the namespace is gone";

    async fn start(preset: Preset, _: Variant) -> Result<Self> {
        let env = AwsEnv::local(preset).await?;
        let cluster = AwsHostedCluster::new("first-light");
        Ok(Self {
            client: env.client()?,
            env,
            roles: Vec::new(),
            cluster,
        })
    }

    async fn start_roles(&mut self) -> Result<()> {
        let namespace = self.cluster.control_plane_namespace();
        let of_cluster = [RESYNC[0], RESYNC[1], ("namespace", &namespace)];
        for (role, flags) in [(Role::Ho, &RESYNC[..]), (Role::Cpo, &of_cluster)] {
            let started = Hyperlink::start_on_aws(&self.env, role, role.as_str(), flags).await?;
            self.roles.push(started);
        }
        Ok(())
    }

    fn addresses(&self) -> [String; 2] {
        let server = self.env.control_plane().server();
        [server.to_owned(), self.env.aws().endpoint().to_owned()]
    }

    fn roles(&self) -> Vec<&Hyperlink> {
        self.roles.iter().collect()
    }

    async fn observe(&self) -> Result<Observed> {
        observed::read(&self.env, &self.client, &self.cluster).await
    }

    async fn position(&self) -> Result<u64> {
        self.env.oracle().last_call().await
    }

    async fn calls(&self, since: &u64) -> Result<Calls> {
        let calls = self.env.oracle().journal(*since).await?;
        Ok(Calls {
            all: calls.len(),
            writes: calls.iter().filter(|call| call.is_write()).count(),
        })
    }

    async fn create(&self) -> Result<()> {
        self.cluster.create_objects(&self.env).await
    }

    fn drifts(&self) -> Result<Vec<Drift<Change>>> {
        let drift = |heading, phase, change| Drift { heading, phase, change };
        Ok(vec![
            drift(
                "heal: the record of the API is changed",
                "heal a record",
                Change::Record,
            ),
            drift(
                "heal: the record of the API is deleted",
                "heal: record is deleted",
                Change::NoRecord,
            ),
            drift(
                "heal: the rule of the security group is revoked",
                "heal: rule is revoked",
                Change::Rules,
            ),
            drift(
                "heal: the endpoint is deleted",
                "heal: endpoint is deleted",
                Change::Deleted("vpc-endpoint"),
            ),
            drift(
                "heal: the endpoint service is deleted",
                "heal: endpoint service is deleted",
                Change::Deleted("vpc-endpoint-service"),
            ),
        ])
    }

    async fn change(&self, change: Change) -> Result<Observed> {
        match change {
            Change::Record => {
                let wrong = json!(["vpce-0123456789abcdef0.vpce-svc-0123.us-east-1.vpce.amazonaws.com."]);
                let lead_elsewhere = |records: &mut Vec<Value>, api: &str| {
                    for record in records.iter_mut().filter(|record| record["name"] == *api) {
                        record["values"].clone_from(&wrong);
                    }
                };
                self.change_records(lead_elsewhere).await?;
            }
            Change::NoRecord => {
                self.change_records(|records, api| records.retain(|record| record["name"] != *api))
                    .await?;
            }
            Change::Rules => {
                let arn = self.arn("security-group").await?;
                self.patch(&arn, |group| group["ingress"] = json!([])).await?;
            }
            Change::Deleted(kind) => self.env.oracle().drift_delete(&self.arn(kind).await?).await?,
        }
        self.observe().await
    }

    async fn delete(&self, timeout: Duration) -> Result<()> {
        self.cluster.delete(&self.env, timeout).await
    }

    async fn resource_ids(&self) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        for resource in self.env.oracle().resources("arn:").await? {
            let id = resource["id"].as_str().context("a resource without an id")?;
            let records = resource["records"].as_array().into_iter().flatten();
            let aliases = records.filter(|record| record["type"] == "CNAME");
            ids.extend(aliases.map(|record| format!("{id} {}", record["name"])));
            // A VPC always has one such security group.
            if resource["name"] != "default" {
                ids.push(id.to_owned());
            }
        }
        let network = self.cluster.network_arns();
        ids.retain(|id| !network.contains(id));
        Ok(ids)
    }

    fn show_how_to_inspect(&self, view: &View) {
        let control = self.env.oracle().control_url();
        view.note(&format!("export KUBECONFIG={}", self.env.admin().path().display()));
        view.note(&format!("export CONTROL={control}"));
        for process in &self.roles {
            let name = process.role().to_uppercase();
            view.note(&format!("export {name}={}", process.metrics_address()));
        }
        view.note("To try:");
        view.note("  kubectl get awsendpointservices -A -o yaml");
        view.note(&format!("  curl \"{control}/resources?prefix=arn:aws:ec2\""));
        let (vpc, name) = (self.cluster.vpc(), self.cluster.host_names().swap_remove(0));
        view.note(&format!("  curl '{control}/reachable?vpc={vpc}&name={name}'"));
    }

    async fn stop(self) -> Result<()> {
        for process in self.roles {
            process.stop().await?;
        }
        Ok(())
    }
}
