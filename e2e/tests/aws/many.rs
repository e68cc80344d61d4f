//! One process of the guest side for many clusters: as which role it calls AWS for each of them, and where, is in the
//! operator's file.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use e2e::AwsEnv;
use e2e::aws_cluster::AwsHostedCluster;
use e2e::aws_sim::{AwsCall, GUEST, Identity, MANAGEMENT, shipped_policy};
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::{NAMESPACE, conditions};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::{eventually, scenario};
use serde_json::{Value, json};

use crate::SOON;

/// The identity of the process, which may assume roles and nothing else.
const BASE: Identity = Identity {
    name: "base",
    account: MANAGEMENT,
    access_key_id: "AKIABASE",
};

/// The name of the role of a cluster.
fn role_name(cluster: &str) -> String {
    format!("hyperlink-{cluster}")
}

fn role(cluster: &str) -> String {
    format!("arn:aws:iam::{GUEST}:role/{}", role_name(cluster))
}

/// Adds the identity of the process, and a role for each of these clusters, with the rights of the shipped policy.
fn add_identities(seed: &mut Value, clusters: &[&str], policy: &Value) {
    let assume = json!({"Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}]});
    let base = json!({"name": BASE.name, "access_key_id": BASE.access_key_id, "secret_access_key": BASE.secret(),
        "policies": [assume]});
    let roles = clusters
        .iter()
        .map(|cluster| json!({"name": role_name(cluster), "trusted": [BASE.arn()], "policies": [policy]}));
    let [management, guest] = [0, 1].map(|account| seed["accounts"][account].clone());
    let more = |account: &Value, list: &str, added: Vec<Value>| {
        let mut all = account[list].as_array().cloned().unwrap_or_default();
        all.extend(added);
        json!(all)
    };
    seed["accounts"][0]["users"] = more(&management, "users", vec![base]);
    seed["accounts"][1]["roles"] = more(&guest, "roles", roles.collect());
}

/// Both roles of Hyperlink, of which the guest side serves all namespaces.
struct Many {
    ho: Hyperlink,
    cpo: Hyperlink,
    env: AwsEnv,
}

impl Many {
    async fn start(clusters: &[&AwsHostedCluster]) -> Result<Self> {
        let names: Vec<&str> = clusters.iter().map(|cluster| cluster.name()).collect();
        let policy = shipped_policy("cpo")?;
        let env = AwsEnv::local_with(Preset::Fast, |seed| add_identities(seed, &names, &policy)).await?;
        env.create_leases().await?;
        let entries: Vec<Value> = clusters.iter().map(|cluster| entry(cluster)).collect();
        let file = env.dir().join("allow-scopes.json");
        std::fs::write(&file, json!({"hostedClusters": entries}).to_string())?;
        let (file, credentials) = (file.to_string_lossy(), credentials(&env)?);
        let flags = [
            ("resync", "3s"),
            ("allow-scopes", &*file),
            ("aws-credentials-file", &*credentials.to_string_lossy()),
        ];
        let ho = Hyperlink::start_on_aws(&env, Role::Ho, "ho", &[("resync", "3s")]).await?;
        let cpo = Hyperlink::start_on_aws(&env, Role::Cpo, "cpo", &flags).await?;
        Ok(Self { ho, cpo, env })
    }

    /// Waits until a cluster has its private path.
    async fn becomes_available(&self, cluster: &AwsHostedCluster) -> Result<()> {
        cluster.gets_endpoint_service(&self.env, SOON).await?;
        let success = ("True", "AWSSuccess");
        let kind = "AWSEndpointAvailable";
        cluster.has_condition(&self.env, kind, success, SOON).await?;
        cluster.becomes_reachable(&self.env, SOON).await
    }

    /// Waits until the guest side refuses a cluster with this message.
    async fn is_refused(&self, cluster: &AwsHostedCluster, message: &str) -> Result<()> {
        let kind = "AWSEndpointAvailable";
        let found = cluster
            .has_condition(&self.env, kind, ("False", "ScopeNotAllowed"), SOON)
            .await?;
        let all = conditions(&found);
        let condition = all.iter().find(|one| one.kind == kind).context("no condition")?;
        ensure!(condition.message == message, "{condition:?}");
        Ok(())
    }

    /// The calls as the role of a cluster.
    async fn calls_as(&self, cluster: &AwsHostedCluster) -> Result<Vec<AwsCall>> {
        let session = format!(":assumed-role/{}/", role_name(cluster.name()));
        let mut calls = self.env.oracle().journal(0).await?;
        calls.retain(|call| call.principal.contains(&session));
        Ok(calls)
    }

    /// Fails if the process' own identity has done anything but assume roles.
    async fn ensure_base_only_assumes(&self) -> Result<()> {
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

    async fn stop(self) -> Result<()> {
        self.ho.stop().await?;
        self.cpo.stop().await
    }
}

/// The operator's entry for a cluster.
fn entry(cluster: &AwsHostedCluster) -> Value {
    let aws = json!({"roleARN": role(cluster.name()), "vpcIDs": [cluster.vpc()], "hostedZoneIDs": [cluster.zone()]});
    json!({"namespace": NAMESPACE, "names": [cluster.name()], "aws": aws})
}

fn credentials(env: &AwsEnv) -> Result<PathBuf> {
    let path = env.dir().join("credentials-base");
    let (key, secret) = (BASE.access_key_id, BASE.secret());
    let profile = format!("[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n");
    std::fs::write(&path, profile)?;
    Ok(path)
}

/// A cluster whose endpoint service lets its role in.
fn cluster(name: &str) -> AwsHostedCluster {
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
