//! Paths that HyperShift's controllers leave in a mess, as they do by defects of theirs: Hyperlink takes them over with
//! the least that puts them right.

use anyhow::{Context, Result, ensure};
use e2e::aws_cluster::{AwsHostedCluster, KUBE_API_SERVER};
use e2e::aws_sim::GUEST_ADMINISTRATOR;
use e2e::hosted_cluster::ROUTER;
use e2e::hyperlink::Role;
use e2e::{eventually, scenario};
use serde_json::{Value, json};

use crate::SOON;
use crate::beside::{is_at_rest, served_by_theirs};
use crate::both::Both;

/// The networks of the workers. The first one is that of their VPC.
const NETWORKS: [&str; 2] = ["10.0.0.0/16", "10.1.0.0/16"];

impl Both {
    /// The names in the status of a custom resource.
    async fn published_names(&self, name: &str) -> Result<Value> {
        let api = self.cluster.custom_resources(&self.env.client()?);
        Ok(api.get(name).await?.data["status"]["dnsNames"].take())
    }

    /// The DNS name of the endpoint of a custom resource.
    async fn dns_name_of(&self, name: &str) -> Result<String> {
        let api = self.cluster.custom_resources(&self.env.client()?);
        let found = api.get(name).await?;
        let id = found.data["status"]["endpointID"].as_str().context("no endpoint")?;
        let parameters = [("VpcEndpointId.1", id)];
        let person = self.env.caller(GUEST_ADMINISTRATOR)?;
        let found = person.ec2("DescribeVpcEndpoints", &parameters).await?.ok()?;
        found.text("dnsName").map(str::to_owned).context("no DNS name")
    }

    /// Has the record of the API server lead there.
    async fn lead_api_to(&self, dns_name: &str) -> Result<()> {
        let (arn, name) = (self.cluster.zone_arn(), format!("api.{}.", self.cluster.zone_name()));
        let mut zones = self.env.oracle().resources(&arn).await?;
        let zone = zones.first_mut().context("no zone")?;
        let records = zone["records"].as_array_mut().context("no records")?;
        let record = records.iter_mut().find(|record| record["name"] == *name);
        record.context("no record")?["values"] = json!([dns_name]);
        self.env.oracle().drift_put(&arn, zone).await
    }

    /// Ends HyperShift's controllers' part, and begins Hyperlink's; returns the writes to AWS until it rests.
    async fn takes_over(&mut self) -> Result<Vec<String>> {
        let since = self.env.oracle().last_call().await?;
        self.start_role(Role::Ho).await?;
        self.start_role(Role::Cpo).await?;
        eventually("both roles have recorded what they serve", SOON, || async {
            let api = self.cluster.custom_resources(&self.env.client()?);
            for name in self.cluster.services() {
                let annotations = api.get(name).await?.metadata.annotations.unwrap_or_default();
                let recorded = annotations.keys().filter(|key| key.ends_with("-intent")).count();
                ensure!(recorded == 2, "{name}: {annotations:?}");
            }
            Ok(())
        })
        .await?;
        self.becomes_available().await?;
        is_at_rest(self, &[Role::Ho, Role::Cpo], &[]).await?;
        self.writes(since).await
    }

    /// Deletes the cluster, which leaves nothing.
    async fn delete(self) -> Result<()> {
        self.cluster.delete(&self.env, SOON).await?;
        self.nothing_is_left().await?;
        self.ensure_no_denied_call().await?;
        self.stop().await
    }
}

#[test]
fn name_that_two_custom_resources_have_is_left_with_the_router() {
    scenario(async {
        let cluster = AwsHostedCluster::new("named-twice").with_stale_api_server();
        let (mut both, ho, cpo) = served_by_theirs(cluster).await?;
        let zone = both.cluster.zone_name();
        let (api, apps) = (format!("api.{zone}"), format!("*.apps.{zone}"));
        eventually("both have the name", SOON, || async {
            let (router, stale) = (
                both.published_names(ROUTER).await?,
                both.published_names(KUBE_API_SERVER).await?,
            );
            ensure!(
                router == json!([api, apps]) && stale == json!([api]),
                "{router}, {stale}"
            );
            Ok(())
        })
        .await?;
        ho.stop().await?;
        cpo.stop().await?;
        both.lead_api_to(&both.dns_name_of(KUBE_API_SERVER).await?).await?;

        let writes = both.takes_over().await?;
        ensure!(writes == ["ChangeResourceRecordSets"], "{writes:?}");
        ensure!(both.published_names(ROUTER).await? == json!([apps, api]));
        ensure!(both.published_names(KUBE_API_SERVER).await? == Value::Null);
        both.delete().await
    });
}

#[test]
fn network_that_is_locked_out_is_let_in_by_one_rule() {
    scenario(async {
        let networks = NETWORKS.map(|cidr| json!({"cidr": cidr}));
        let patch = json!({"spec": {"networking": {"machineNetwork": networks}}});
        let cluster = AwsHostedCluster::new("locked-out")
            .with_hosted_cluster(patch.clone())
            .with_control_plane(patch);
        let (mut both, ho, cpo) = served_by_theirs(cluster).await?;
        let [own, other] = NETWORKS;
        both.lock_out(other).await?;
        is_at_rest(&both, &[], &[Role::Ho, Role::Cpo]).await?;
        ensure!(!both.rules().await?.contains(other), "HyperShift opens it");
        ho.stop().await?;
        cpo.stop().await?;

        let since = both.env.oracle().last_call().await?;
        let writes = both.takes_over().await?;
        // Whoever changes a group marks it.
        ensure!(writes == ["AuthorizeSecurityGroupIngress", "CreateTags"], "{writes:?}");
        let calls = both.calls(since).await?;
        let opened = calls.iter().find(|call| call.is_write()).context("no write")?;
        ensure!(
            opened.query.contains("10.1.0.0") && !opened.query.contains("10.0.0.0"),
            "{opened:?}"
        );
        let rules = both.rules().await?;
        ensure!(rules.contains(own) && rules.contains(other), "{rules}");
        both.delete().await
    });
}

impl Both {
    /// The rules of the endpoint's security group.
    async fn rules(&self) -> Result<String> {
        Ok(self.own_group().await?["ingress"].to_string())
    }

    async fn own_group(&self) -> Result<Value> {
        let name = format!("{}-vpce-{ROUTER}", self.cluster.infra_id());
        let found = self.env.oracle().resources_of("security-group").await?;
        let own = found.into_iter().find(|group| group["name"] == *name);
        own.context("no group")
    }

    /// Takes away the rule of a network.
    async fn lock_out(&self, cidr: &str) -> Result<()> {
        let group = self.own_group().await?;
        let id = group["id"].as_str().and_then(|arn| arn.rsplit('/').next());
        let parameters = [
            ("GroupId", id.context("no id")?),
            ("IpPermissions.1.IpProtocol", "tcp"),
            ("IpPermissions.1.FromPort", "443"),
            ("IpPermissions.1.ToPort", "443"),
            ("IpPermissions.1.IpRanges.1.CidrIp", cidr),
        ];
        let person = self.env.caller(GUEST_ADMINISTRATOR)?;
        person.ec2("RevokeSecurityGroupIngress", &parameters).await?.ok()?;
        Ok(())
    }
}
