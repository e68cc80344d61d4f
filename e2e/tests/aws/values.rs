//! Empty and strange text in every field that is read. What the API server accepts leads to a path, to one clear False,
//! or to an Event; it is never retried in a loop.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::aws_cluster::AwsHostedCluster;
use e2e::bench::audit::Audit;
use e2e::hosted_cluster::{NAMESPACE, conditions};
use e2e::{eventually, scenario};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::SignedDuration;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::SOON;
use crate::many::{Many, cluster, role};

const ODD: [&str; 5] = ["", " ", "東京", "a\u{202e}b", "\u{0}"];
/// How many clusters are created at once.
const AT_ONCE: usize = 8;
/// What is watched at rest: each object is reconciled three times meanwhile.
const REST: SignedDuration = SignedDuration::from_secs(10);
/// The most often that AWS refuses an action for one cluster.
const MOST_REFUSALS: usize = 6;

/// What is strange about a cluster.
#[derive(Clone, Debug)]
enum Odd {
    /// A part of the `spec` of HostedCluster and HostedControlPlane.
    Spec(Value),
    /// `spec.platform.aws.subnet` of a NodePool beside two ordinary ones.
    Subnet(Value),
    /// What Karpenter's ConfigMap lists.
    Karpenter(String),
}

/// Every field that is read, with this text.
fn with(text: &str) -> Vec<Odd> {
    let aws = |field: &str, value: Value| Odd::Spec(json!({"platform": {"aws": {field: value}}}));
    let shared = |zone: &str, endpoints: &str, records: &str| {
        let roles = json!({"controlPlaneARN": endpoints, "ingressARN": records});
        aws("sharedVPC", json!({"localZoneID": zone, "rolesRef": roles}))
    };
    let odd_role = format!("arn:aws:iam::444455556666:role/{text}");
    vec![
        Odd::Spec(json!({"clusterID": text})),
        Odd::Spec(json!({"infraID": text})),
        Odd::Spec(json!({"pausedUntil": text})),
        Odd::Spec(json!({"networking": {"machineNetwork": [{"cidr": text}]}})),
        aws("resourceTags", json!([{"key": text, "value": "x"}])),
        aws("resourceTags", json!([{"key": "x", "value": text}])),
        aws("region", json!(text)),
        aws("endpointAccess", json!(text)),
        aws("cloudProviderConfig", json!({"vpc": text})),
        aws("rolesRef", json!({"controlPlaneOperatorARN": text})),
        aws("rolesRef", json!({"controlPlaneOperatorARN": odd_role})),
        aws("additionalAllowedPrincipals", json!([text, "ROLE"])),
        shared(text, "ROLE", "ROLE"),
        shared("ZONE", &odd_role, "ROLE"),
        shared("ZONE", "ROLE", &odd_role),
        Odd::Subnet(json!({"id": text})),
        Odd::Subnet(json!({"id": format!("subnet-{text}")})),
        Odd::Subnet(json!({"filters": [{"name": text, "values": [text]}]})),
        Odd::Karpenter(text.to_owned()),
        Odd::Karpenter(json!([text]).to_string()),
    ]
}

/// Values that are strange in their own way.
fn edges() -> Vec<Odd> {
    let aws = |field: &str, value: Value| Odd::Spec(json!({"platform": {"aws": {field: value}}}));
    let infra_id = |length: usize| Odd::Spec(json!({"infraID": "x".repeat(length)}));
    let network = |cidr: &str| Odd::Spec(json!({"networking": {"machineNetwork": [{"cidr": cidr}]}}));
    vec![
        // The key of a tag takes 128 characters.
        infra_id(106),
        infra_id(107),
        infra_id(255),
        network("10.0.0.9/16"),
        network("999.0.0.0/16"),
        network("10.0.0.0/99"),
        network("::/0"),
        aws("region", json!("us-east-2")),
        aws("region", json!("US-EAST-1")),
        aws("resourceTags", json!([{"key": "aws:x", "value": "x"}])),
        aws("additionalAllowedPrincipals", json!([])),
        Odd::Karpenter("{}".to_owned()),
        Odd::Karpenter("[7]".to_owned()),
        Odd::Karpenter("[]".to_owned()),
    ]
}

impl Odd {
    /// The cluster of this name with it.
    fn cluster(&self, name: &str) -> Result<AwsHostedCluster> {
        let cluster = cluster(name);
        let Self::Spec(patch) = self else {
            return Ok(cluster);
        };
        let text = patch.to_string();
        let text = text.replace("ROLE", &role(name)).replace("ZONE", &cluster.zone());
        let patch = json!({"spec": serde_json::from_str::<Value>(&text)?});
        Ok(cluster.with_hosted_cluster(patch.clone()).with_control_plane(patch))
    }

    /// What there is of it beside the cluster's own objects.
    fn object(&self, cluster: &AwsHostedCluster) -> Option<Value> {
        let name = cluster.name();
        match self {
            Self::Spec(_) => None,
            Self::Subnet(subnet) => Some(
                json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "NodePool",
                "metadata": {"name": format!("{name}-odd"), "namespace": NAMESPACE},
                "spec": {"arch": "amd64", "clusterName": name, "replicas": 2,
                    "management": {"autoRepair": false, "upgradeType": "Replace"},
                    "release": {"image": "example.com/release:4.22.0"},
                    "platform": {"type": "AWS", "aws": {"instanceType": "m5.large", "subnet": subnet}}}}),
            ),
            Self::Karpenter(list) => Some(json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "karpenter-subnets", "namespace": cluster.control_plane_namespace(),
                    "labels": {"hypershift.openshift.io/managed-by": "karpenter"}},
                "data": {"subnetIDs": list}})),
        }
    }
}

/// What became of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The API server refuses it.
    Refused,
    /// There is no path, and an Event says why.
    Unserved,
    /// A condition is False.
    Failed,
    /// There is a path, and an Event names what is not used.
    Reported,
    /// There is a path.
    Served,
}

/// Creates a cluster; whether the API server takes it.
async fn is_taken(many: &Many, cluster: &AwsHostedCluster, odd: &Odd) -> Result<bool> {
    cluster.create_guest_network(&many.env).await?;
    cluster.create_namespaces(&many.env).await?;
    if cluster.create_hosted_cluster(&many.env).await.is_err() {
        return Ok(false);
    }
    cluster.create_node_pools(&many.env).await?;
    if let Some(object) = odd.object(cluster)
        && many.env.apply_yaml(&object.to_string()).await.is_err()
    {
        return Ok(false);
    }
    let owner = cluster.create_control_plane(&many.env).await?;
    cluster.create_services(&many.env, Some(&owner)).await?;
    Ok(true)
}

impl Many {
    /// What has become of a cluster that the API server took.
    async fn outcome(&self, cluster: &AwsHostedCluster) -> Result<Outcome> {
        let events: Api<Event> = Api::namespaced(self.env.client()?, &cluster.control_plane_namespace());
        let events = events.list(&ListParams::default()).await?.items;
        let is_warning = |event: &&Event| event.type_.as_deref() == Some("Warning");
        let notes: Vec<_> = events
            .iter()
            .filter(is_warning)
            .filter_map(|event| event.note.as_deref())
            .collect();
        let Some(found) = cluster.get_custom_resource(&self.env.client()?).await? else {
            ensure!(!notes.is_empty(), "no custom resource, and no Event");
            return Ok(Outcome::Unserved);
        };
        let all = conditions(&found);
        ensure!(all.len() == 2, "{all:?}");
        if all.iter().all(|one| one.status == "True") {
            return Ok(if notes.is_empty() {
                Outcome::Served
            } else {
                Outcome::Reported
            });
        }
        let is_clear = |status: &str, message: &str| status == "True" || status == "False" && !message.is_empty();
        ensure!(all.iter().all(|one| is_clear(&one.status, &one.message)), "{all:?}");
        // One of them is the cause, for which nobody waits.
        let is_cause = |reason: &str| !["AWSSuccess", "Provisioning", "Throttled"].contains(&reason);
        ensure!(all.iter().any(|one| is_cause(&one.reason)), "{all:?}");
        Ok(Outcome::Failed)
    }

    /// Waits until nothing has changed in Kubernetes and AWS while every object was reconciled.
    async fn rests(&self) -> Result<()> {
        eventually("nobody writes any more", SOON * 4, async || {
            let since = self.env.oracle().last_call().await?;
            let audit = Audit::begin(self.env.control_plane().audit_log())?;
            let calls = eventually("some time has passed", SOON, async || {
                let calls = self.env.oracle().journal(since).await?;
                let (first, last) = (calls.first().context("no call")?, calls.last().context("no call")?);
                ensure!(last.time.duration_since(first.time) >= REST, "{} calls", calls.len());
                Ok(calls)
            })
            .await?;
            let changes: Vec<_> = calls.iter().filter(|call| call.changed && call.is_write()).collect();
            let writes = audit.writes()?;
            ensure!(changes.is_empty() && writes.is_empty(), "{changes:?}, {writes:?}");
            Ok(())
        })
        .await
    }

    /// Fails if AWS has refused an action for a cluster often.
    async fn ensure_few_refusals(&self, cluster: &AwsHostedCluster) -> Result<()> {
        let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
        for call in self.calls_as(cluster).await?.iter().filter(|call| call.code.is_some()) {
            *refusals.entry(call.path.clone()).or_default() += 1;
        }
        let many = refusals.iter().find(|(_, count)| **count > MOST_REFUSALS);
        ensure!(many.is_none(), "{many:?}");
        Ok(())
    }

    /// Fails if a reconcile of either role has failed, or panicked.
    async fn ensure_no_failed_reconcile(&self) -> Result<()> {
        for process in [&self.ho, &self.cpo] {
            let log = std::fs::read_to_string(process.process().log())?;
            let failed: Vec<_> = log.lines().filter(|line| line.contains("reconcile failed")).collect();
            ensure!(failed.is_empty(), "{failed:#?}");
            let (_, metrics) = process.page("/metrics").await?;
            let mut panics = metrics
                .lines()
                .filter(|line| line.starts_with("hyperlink_reconcile_panics_total"));
            ensure!(panics.all(|line| line.ends_with(" 0")), "{metrics}");
        }
        Ok(())
    }
}

#[test]
fn strange_text_in_any_field_is_reported_and_never_loops() {
    scenario(async {
        let all: Vec<Odd> = ODD.into_iter().flat_map(with).chain(edges()).collect();
        let clusters: Vec<_> = all
            .iter()
            .enumerate()
            .map(|(number, odd)| odd.cluster(&format!("odd-{number}")))
            .collect::<Result<_>>()?;
        let many = Many::start(&clusters.iter().collect::<Vec<_>>()).await?;
        let pairs: Vec<_> = clusters.iter().zip(&all).collect();
        let taken: Vec<bool> = stream::iter(&pairs)
            .map(|(cluster, odd)| is_taken(&many, cluster, odd))
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        many.rests().await?;
        let mut outcomes = Vec::new();
        for ((cluster, odd), is_taken) in pairs.iter().zip(taken) {
            let found = if is_taken {
                eventually("it is decided", SOON * 4, || many.outcome(cluster)).await
            } else {
                Ok(Outcome::Refused)
            };
            let found = found.with_context(|| format!("{}: {odd:?}", cluster.name()))?;
            println!("{found:?}: {} {odd:?}", cluster.name());
            many.ensure_few_refusals(cluster).await?;
            outcomes.push(found);
        }
        many.ensure_no_failed_reconcile().await?;
        many.ensure_base_only_assumes().await?;
        for each in [Outcome::Refused, Outcome::Unserved, Outcome::Failed, Outcome::Reported] {
            ensure!(outcomes.contains(&each), "none is {each:?}: {outcomes:?}");
        }
        many.stop().await
    });
}
