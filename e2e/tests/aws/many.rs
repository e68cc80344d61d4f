//! One process of the guest side for many clusters: as which role it calls AWS for each of them, and where, is in the
//! operator's file.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use e2e::AwsEnv;
use e2e::aws_cluster::AwsHostedCluster;
use e2e::aws_sim::{AwsCall, GUEST, Identity, MANAGEMENT, shipped_policy};
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::{NAMESPACE, conditions};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::{eventually, scenario};
use hyperlink::hypershift::shard::Shard;
use serde_json::{Value, json};

use crate::SOON;

/// The identity of the process, which may assume roles and nothing else.
pub(crate) const BASE: Identity = Identity {
    name: "base",
    account: MANAGEMENT,
    access_key_id: "AKIABASE",
};

/// The same of a second process.
const TWIN: Identity = Identity {
    name: "twin",
    account: MANAGEMENT,
    access_key_id: "AKIATWIN",
};

/// How many endpoint services the management account may have.
const MOST_SERVICES: u32 = 200;

/// The name of the role of a cluster.
pub(crate) fn role_name(cluster: &str) -> String {
    format!("hyperlink-{cluster}")
}

pub(crate) fn role(cluster: &str) -> String {
    format!("arn:aws:iam::{GUEST}:role/{}", role_name(cluster))
}

/// Adds the identities of the processes, and a role for each of these clusters, with the rights of the shipped policy.
pub(crate) fn add_identities(seed: &mut Value, clusters: &[&str], policy: &Value) {
    let assume = json!({"Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}]});
    let callers = [BASE, TWIN].map(|one| {
        json!({"name": one.name, "access_key_id": one.access_key_id, "secret_access_key": one.secret(),
            "policies": [assume]})
    });
    let roles = clusters
        .iter()
        .map(|cluster| json!({"name": role_name(cluster), "trusted": [BASE.arn(), TWIN.arn()], "policies": [policy]}));
    let [management, guest] = [0, 1].map(|account| seed["accounts"][account].clone());
    let more = |account: &Value, list: &str, added: Vec<Value>| {
        let mut all = account[list].as_array().cloned().unwrap_or_default();
        all.extend(added);
        json!(all)
    };
    seed["accounts"][0]["quotas"] = json!({"endpoint_services": MOST_SERVICES});
    seed["accounts"][0]["users"] = more(&management, "users", callers.into());
    seed["accounts"][1]["roles"] = more(&guest, "roles", roles.collect());
}

/// An environment in which these clusters have a role each, and the operator's file an entry for each.
async fn environment(clusters: &[&AwsHostedCluster]) -> Result<AwsEnv> {
    let names: Vec<&str> = clusters.iter().map(|cluster| cluster.name()).collect();
    let policy = shipped_policy("cpo")?;
    let entries: Vec<Value> = clusters.iter().map(|cluster| entry(cluster)).collect();
    environment_with(&entries, |seed| add_identities(seed, &names, &policy)).await
}

/// An environment whose seed is changed first, and with these entries in the operator's file.
pub(crate) async fn environment_with(entries: &[Value], change: impl FnOnce(&mut Value)) -> Result<AwsEnv> {
    let env = AwsEnv::local_with(Preset::Fast, change).await?;
    env.create_leases().await?;
    let file = json!({"hostedClusters": entries}).to_string();
    std::fs::write(env.dir().join("allow-scopes.json"), file)?;
    Ok(env)
}

/// A process of the guest side for all namespaces, with this identity.
async fn guest_side(env: &AwsEnv, name: &str, identity: Identity, more: &[(&str, &str)]) -> Result<Hyperlink> {
    let (file, credentials) = (env.dir().join("allow-scopes.json"), credentials(env, identity)?);
    let own = [
        ("resync", "3s"),
        ("allow-scopes", &*file.to_string_lossy()),
        ("aws-credentials-file", &*credentials.to_string_lossy()),
    ];
    Hyperlink::start_on_aws(env, Role::Cpo, name, &[&own, more].concat()).await
}

/// Both roles of Hyperlink, of which the guest side serves all namespaces.
pub(crate) struct Many {
    pub(crate) ho: Hyperlink,
    pub(crate) cpo: Hyperlink,
    pub(crate) env: AwsEnv,
}

impl Many {
    pub(crate) async fn start(clusters: &[&AwsHostedCluster]) -> Result<Self> {
        Self::in_env(environment(clusters).await?).await
    }

    /// Starts both roles in an environment.
    pub(crate) async fn in_env(env: AwsEnv) -> Result<Self> {
        let ho = Hyperlink::start_on_aws(&env, Role::Ho, "ho", &[("resync", "3s")]).await?;
        let cpo = guest_side(&env, "cpo", BASE, &[]).await?;
        Ok(Self { ho, cpo, env })
    }

    /// Waits until a cluster has its private path.
    pub(crate) async fn becomes_available(&self, cluster: &AwsHostedCluster) -> Result<()> {
        cluster.becomes_available(&self.env, SOON).await
    }

    /// Waits until the guest side refuses a cluster with this message.
    async fn is_refused(&self, cluster: &AwsHostedCluster, message: &str) -> Result<()> {
        self.is_refused_for(cluster, "ScopeNotAllowed", message).await
    }

    async fn is_refused_for(&self, cluster: &AwsHostedCluster, reason: &str, message: &str) -> Result<()> {
        let kind = "AWSEndpointAvailable";
        let found = cluster.has_condition(&self.env, kind, ("False", reason), SOON).await?;
        let all = conditions(&found);
        let condition = all.iter().find(|one| one.kind == kind).context("no condition")?;
        ensure!(condition.message == message, "{condition:?}");
        Ok(())
    }

    /// The calls as the role of a cluster.
    pub(crate) async fn calls_as(&self, cluster: &AwsHostedCluster) -> Result<Vec<AwsCall>> {
        let session = format!(":assumed-role/{}/", role_name(cluster.name()));
        let mut calls = self.env.oracle().journal(0).await?;
        calls.retain(|call| call.principal.contains(&session));
        Ok(calls)
    }

    /// Fails if the process' own identity has done anything but assume roles.
    pub(crate) async fn ensure_base_only_assumes(&self) -> Result<()> {
        let mut calls = self.env.oracle().journal(0).await?;
        calls.retain(|call| call.principal == BASE.arn());
        ensure!(
            calls
                .iter()
                .all(|call| ["AssumeRole", "GetCallerIdentity"].contains(&call.action())),
            "{calls:?}"
        );
        Ok(())
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.ho.stop().await?;
        self.cpo.stop().await
    }
}

/// The operator's entry for a cluster.
pub(crate) fn entry(cluster: &AwsHostedCluster) -> Value {
    let aws = json!({"roleARN": role(cluster.name()), "vpcIDs": [cluster.vpc()], "hostedZoneIDs": [cluster.zone()]});
    json!({"namespace": NAMESPACE, "names": [cluster.name()], "aws": aws})
}

fn credentials(env: &AwsEnv, identity: Identity) -> Result<PathBuf> {
    let path = env.dir().join(format!("credentials-{}", identity.name));
    let (key, secret) = (identity.access_key_id, identity.secret());
    let profile = format!("[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n");
    std::fs::write(&path, profile)?;
    Ok(path)
}

/// A cluster whose endpoint service lets its role in.
pub(crate) fn cluster(name: &str) -> AwsHostedCluster {
    AwsHostedCluster::new(name).with_platform(json!({"additionalAllowedPrincipals": [role(name)]}))
}

/// Fails if a call names something of another cluster.
fn ensure_none_is_about(calls: &[AwsCall], other: &AwsHostedCluster) -> Result<()> {
    let [first, second, third] = other.subnets();
    let names = [other.vpc(), other.zone(), other.infra_id(), first, second, third];
    let foreign = calls
        .iter()
        .find(|call| names.iter().any(|name| call.query.contains(name.as_str())));
    ensure!(foreign.is_none(), "{foreign:?}");
    Ok(())
}

#[test]
fn each_cluster_has_its_path_by_the_role_of_its_entry() {
    scenario(async {
        let clusters = ["blue", "green"].map(cluster);
        let many = Many::start(&clusters.each_ref()).await?;
        for cluster in &clusters {
            cluster.create_objects(&many.env).await?;
        }
        for cluster in &clusters {
            many.becomes_available(cluster).await?;
        }
        let [blue, green] = &clusters;
        for (own, other) in [(blue, green), (green, blue)] {
            let calls = many.calls_as(own).await?;
            ensure!(
                calls.iter().any(|call| call.action() == "CreateVpcEndpoint"),
                "{calls:?}"
            );
            ensure!(
                calls.iter().any(|call| call.action() == "ChangeResourceRecordSets"),
                "{calls:?}"
            );
            ensure_none_is_about(&calls, other)?;
        }
        blue.delete(&many.env, SOON).await?;
        eventually("only the other endpoint is left", SOON, || async {
            let mut left = many.env.oracle().resources_of("vpc-endpoint").await?;
            left.retain(|one| one["state"] != "deleted");
            ensure!(left.len() == 1 && left[0]["vpc"] == green.vpc(), "{left:?}");
            Ok(())
        })
        .await?;
        green.becomes_reachable(&many.env, SOON).await?;
        many.ensure_base_only_assumes().await?;
        many.stop().await
    });
}

#[test]
fn control_plane_that_no_hosted_cluster_confirms_gets_nothing() {
    scenario(async {
        let victim = cluster("victim");
        let ids = json!({"spec": {"clusterID": victim.cluster_id(), "infraID": victim.infra_id()}});
        let (twin, ghost) = (cluster("twin").with_control_plane(ids), cluster("ghost"));
        let many = Many::start(&[&twin, &ghost]).await?;
        twin.create_objects(&many.env).await?;
        ghost.create_guest_network(&many.env).await?;
        ghost.create_namespaces(&many.env).await?;
        let owner = ghost.create_control_plane(&many.env).await?;
        ghost.create_services(&many.env, Some(&owner)).await?;
        let disagree = "HostedCluster and HostedControlPlane disagree on the cluster";
        many.is_refused_for(&twin, "IdentityMismatch", disagree).await?;
        let nobody = "HostedCluster clusters/ghost does not exist";
        many.is_refused_for(&ghost, "HostedClusterNotFound", nobody).await?;
        for forged in [&twin, &ghost] {
            let calls = many.calls_as(forged).await?;
            ensure!(calls.is_empty(), "{calls:?}");
        }

        ghost.create_hosted_cluster(&many.env).await?;
        ghost.create_node_pools(&many.env).await?;
        many.becomes_available(&ghost).await?;
        many.ensure_base_only_assumes().await?;
        many.stop().await
    });
}

#[test]
fn tenant_who_names_the_role_or_vpc_of_another_is_refused() {
    scenario(async {
        let victim = cluster("victim");
        let of_victim = json!({"controlPlaneARN": role("victim"), "ingressARN": role("victim")});
        let shared = json!({"localZoneID": victim.zone(), "rolesRef": of_victim});
        let names_role =
            cluster("thief").with_control_plane(json!({"spec": {"platform": {"aws": {"sharedVPC": shared}}}}));
        let vpc = json!({"cloudProviderConfig": {"vpc": victim.vpc()}});
        let names_vpc = cluster("intruder").with_control_plane(json!({"spec": {"platform": {"aws": vpc}}}));
        let many = Many::start(&[&victim, &names_role, &names_vpc]).await?;
        victim.create_objects(&many.env).await?;
        many.becomes_available(&victim).await?;
        names_role.create_objects(&many.env).await?;
        names_vpc.create_objects(&many.env).await?;
        names_role.gets_endpoint_service(&many.env, SOON).await?;
        names_vpc.gets_endpoint_service(&many.env, SOON).await?;
        let field = "platform.aws.sharedVPC.rolesRef.controlPlaneARN";
        let lack = format!("roleARN is not {}", role("victim"));
        many.is_refused(
            &names_role,
            &format!("{field} is outside of the allowed scopes; {lack}"),
        )
        .await?;
        let field = "platform.aws.cloudProviderConfig.vpc";
        let lack = format!("vpcIDs lacks {}", victim.vpc());
        many.is_refused(&names_vpc, &format!("{field} is outside of the allowed scopes; {lack}"))
            .await?;

        // A deletion of what was never begun needs no call either.
        names_role.delete(&many.env, SOON).await?;
        for rogue in [&names_role, &names_vpc] {
            let calls = many.calls_as(rogue).await?;
            ensure!(calls.is_empty(), "{calls:?}");
            ensure_none_is_about(&many.calls_as(&victim).await?, rogue)?;
        }
        victim.becomes_reachable(&many.env, SOON).await?;
        many.ensure_base_only_assumes().await?;
        many.stop().await
    });
}

/// A number of shards of which different ones have the control planes of these clusters, and which.
fn split(clusters: [&AwsHostedCluster; 2]) -> Result<[String; 2]> {
    let shard_of = |cluster: &AwsHostedCluster, of: u16| {
        let namespace = cluster.control_plane_namespace();
        let mut all = (1..=of).map(|number| format!("{number}/{of}"));
        all.find(|shard| shard.parse::<Shard>().is_ok_and(|shard| shard.has(&namespace)))
    };
    let mut splits = (2..10).filter_map(|of| {
        let [one, two] = clusters.map(|cluster| shard_of(cluster, of));
        Some([one?, two?])
    });
    splits.find(|[one, two]| one != two).context("no number splits them")
}

/// For whose roles a process has asked.
async fn assumed_by(env: &AwsEnv, identity: Identity) -> Result<BTreeSet<String>> {
    let mut calls = env.oracle().journal(0).await?;
    calls.retain(|call| call.principal == identity.arn() && call.action() == "AssumeRole");
    let roles = ["blue", "green"].map(role_name);
    let asked = roles
        .into_iter()
        .filter(|role| calls.iter().any(|call| call.query.contains(role)));
    Ok(asked.collect())
}

#[test]
fn each_shard_serves_the_control_planes_of_its_namespaces() {
    scenario(async {
        let clusters = ["blue", "green"].map(cluster);
        let shards = split(clusters.each_ref())?;
        let env = environment(&clusters.each_ref()).await?;
        let ho = Hyperlink::start_on_aws(&env, Role::Ho, "ho", &[("resync", "3s")]).await?;
        // The shipped role for the lease is for one process that serves all.
        let admin = env.control_plane().admin().path().to_string_lossy();
        let mut processes = vec![ho];
        for (identity, shard) in [BASE, TWIN].into_iter().zip(&shards) {
            let flags = [("shard", shard.as_str()), ("kubeconfig", &*admin)];
            processes.push(guest_side(&env, identity.name, identity, &flags).await?);
        }
        for cluster in &clusters {
            cluster.create_objects(&env).await?;
        }
        for (cluster, identity) in clusters.iter().zip([BASE, TWIN]) {
            cluster.becomes_available(&env, SOON).await?;
            let expected = BTreeSet::from([role_name(cluster.name())]);
            ensure!(assumed_by(&env, identity).await? == expected, "{}", cluster.name());
        }
        for cluster in &clusters {
            cluster.delete(&env, SOON).await?;
        }
        for process in processes {
            process.stop().await?;
        }
        Ok(())
    });
}
