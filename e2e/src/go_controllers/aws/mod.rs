//! HyperShift's controllers on AWS. They mark nothing as the cluster's, and write all records in every reconcile.
//!
//! Only the interval of five minutes is divided. In the waits after errors AWS becomes consistent.

mod cpo;
mod cpo_deletion;
mod ho;
mod observer;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::{Value, json};

pub(super) use self::cpo::Operator as CpoOperator;
pub(super) use self::ho::Operator as HoOperator;
pub(super) use self::observer::Observer;
use super::Next;
use super::object::{set_condition, update_status};
use crate::AwsEnv;
use crate::aws_cluster::AwsHostedCluster;
use crate::aws_sim::{Answer, Caller};

/// The waits are not divided.
const UNDIVIDED: u32 = 1;
/// HyperShift's interval between reconciles.
const DRIFT: Duration = Duration::from_mins(5);

/// The clients and settings of a controller of one cluster.
#[derive(Clone)]
pub(super) struct Clients {
    kube: kube::Client,
    aws: Caller,
    /// Who calls Route 53.
    records: Caller,
    cluster: AwsHostedCluster,
    speed: u32,
}

impl Clients {
    pub(super) fn new(env: &AwsEnv, cluster: &AwsHostedCluster, aws: Caller, speed: u32) -> Result<Self> {
        Ok(Self {
            kube: env.client()?,
            records: aws.clone(),
            aws,
            cluster: cluster.clone(),
            speed,
        })
    }

    /// Calls Route 53 as somebody else.
    pub(super) fn with_records(mut self, records: Caller) -> Self {
        self.records = records;
        self
    }

    /// Reconciles after the interval in which everything is compared.
    fn drift(&self) -> Next {
        Next::After(DRIFT / self.speed)
    }

    /// The objects of a kind in the control plane's namespace.
    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let namespace = self.cluster.control_plane_namespace();
        self.cluster.api(&self.kube, kind, &namespace)
    }

    fn custom_resources(&self) -> Api<DynamicObject> {
        self.api("AWSEndpointService")
    }

    /// The only HostedControlPlane of the namespace.
    async fn control_plane(&self) -> Result<DynamicObject> {
        let found = self.api("HostedControlPlane").list(&ListParams::default()).await?;
        ensure!(found.items.len() == 1, "{} HostedControlPlanes", found.items.len());
        found.items.into_iter().next().context("none")
    }

    /// Calls an action of EC2; a refusal is an error.
    async fn accepted(&self, action: &str, parameters: &Parameters) -> Result<Answer> {
        accept(self.ec2(action, parameters).await?)
    }

    /// Calls an action of EC2; a refusal is an answer.
    async fn ec2(&self, action: &str, parameters: &Parameters) -> Result<Answer> {
        self.aws.ec2(action, &parameters.pairs()).await
    }
}

/// The answer, unless AWS refused. All that a condition says of a refusal is AWS's code.
fn accept(answer: Answer) -> Result<Answer> {
    ensure!(answer.status == 200, "{}", answer.code.unwrap_or_default());
    Ok(answer)
}

/// The parameters of a call.
#[derive(Clone, Default)]
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn pairs(&self) -> Vec<(&str, &str)> {
        let pairs = self.0.iter();
        pairs.map(|(key, value)| (key.as_str(), value.as_str())).collect()
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A list: `name.1`, `name.2`, …
    fn with_all<'a>(mut self, name: &str, values: impl IntoIterator<Item = &'a str>) -> Self {
        let values = (1..).zip(values);
        self.0
            .extend(values.map(|(number, value)| (format!("{name}.{number}"), value.to_owned())));
        self
    }

    /// Filters by one value each.
    fn with_filters(mut self, filters: &[(&str, &str)]) -> Self {
        for (number, (name, value)) in (1..).zip(filters) {
            self = self.with(&format!("Filter.{number}.Name"), name);
            self = self.with(&format!("Filter.{number}.Value.1"), value);
        }
        self
    }

    /// The tags of a new resource: those of the custom resource's spec, then these.
    fn with_tags(mut self, resource_type: &str, cr: &DynamicObject, own: &[(&str, &str)]) -> Self {
        self = self.with("TagSpecification.1.ResourceType", resource_type);
        let users = resource_tags(cr);
        let all = users.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        for (number, (key, value)) in (1..).zip(all.chain(own.iter().copied())) {
            self = self.with(&format!("TagSpecification.1.Tag.{number}.Key"), key);
            self = self.with(&format!("TagSpecification.1.Tag.{number}.Value"), value);
        }
        self
    }
}

/// The tags that a custom resource asks for.
fn resource_tags(cr: &DynamicObject) -> Vec<(String, String)> {
    let tags = cr.data["spec"]["resourceTags"].as_array().into_iter().flatten();
    let text = |tag: &Value, field: &str| tag[field].as_str().unwrap_or_default().to_owned();
    tags.map(|tag| (text(tag, "key"), text(tag, "value"))).collect()
}

/// Publishes a condition, with these fields of the status, and returns the error that it reports.
async fn publish(
    api: &Api<DynamicObject>,
    cr: &DynamicObject,
    kind: &str,
    mut status: Value,
    outcome: Result<()>,
    manager: &str,
) -> Result<()> {
    let (value, reason) = match outcome {
        Ok(()) => ("True", "AWSSuccess"),
        Err(_) => ("False", "AWSError"),
    };
    let message = outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let condition = json!({"type": kind, "status": value, "reason": reason, "message": message});
    set_condition(&mut conditions, condition);
    status["conditions"] = conditions.into();
    update_status(api, cr, status, manager).await?;
    outcome
}

/// The status of a custom resource, to change.
fn status_of(cr: &DynamicObject) -> Value {
    match &cr.data["status"] {
        Value::Null => json!({}),
        status => status.clone(),
    }
}
