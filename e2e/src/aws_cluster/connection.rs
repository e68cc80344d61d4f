//! The CPO role's part of a path, played by hand with its identity: for tests of what others do while a connection
//! lives.

use anyhow::{Context, Result, ensure};
use reqwest::Method;

use super::AwsHostedCluster;
use crate::AwsEnv;
use crate::aws_sim::Caller;
use crate::wait::eventually;

/// What was made in a guest's VPC.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Id of the endpoint.
    pub endpoint: String,
    /// Id of its security group.
    pub security_group: String,
}

impl AwsHostedCluster {
    /// Creates a security group, an endpoint to this endpoint service and the cluster's records, and waits until the
    /// endpoint is available.
    ///
    /// # Errors
    ///
    /// AWS refuses; the endpoint service may not allow the CPO role.
    pub async fn connect(&self, env: &AwsEnv, service_name: &str) -> Result<Connection> {
        let cpo = env.cpo_session().await?;
        let security_group = self.create_security_group(&cpo).await?;
        let [subnet, ..] = self.subnets();
        let vpc = self.vpc();
        let parameters = [
            ("VpcEndpointType", "Interface"),
            ("VpcId", &vpc),
            ("ServiceName", service_name),
            ("SubnetId.1", &subnet),
            ("SecurityGroupId.1", &security_group),
        ];
        // A new endpoint service takes endpoints only a moment later.
        let created = eventually("the endpoint is created", env.patience(), || async {
            cpo.ec2("CreateVpcEndpoint", &parameters).await?.ok()
        })
        .await?;
        let endpoint = created.text("vpcEndpointId").context("no id")?.to_owned();
        let dns_name = self.is_connected(env, &cpo, &endpoint).await?;
        self.write_records(&cpo, &dns_name).await?;
        Ok(Connection {
            endpoint,
            security_group,
        })
    }

    /// Waits until an endpoint is available, and returns its first DNS name.
    pub(super) async fn is_connected(&self, env: &AwsEnv, cpo: &Caller, endpoint: &str) -> Result<String> {
        eventually("the endpoint is available", env.patience(), || async {
            let found = cpo
                .ec2("DescribeVpcEndpoints", &[("VpcEndpointId.1", endpoint)])
                .await?;
            let found = found.ok()?;
            ensure!(found.text("state") == Some("available"), "{}", found.body);
            found.text("dnsName").map(str::to_owned).context("no DNS name")
        })
        .await
    }

    /// Deletes the endpoint, and waits until it is not listed any more. Group and records stay.
    ///
    /// # Errors
    ///
    /// AWS refuses.
    pub async fn disconnect(&self, env: &AwsEnv, connection: &Connection) -> Result<()> {
        let cpo = env.cpo_session().await?;
        let parameters = [("VpcEndpointId.1", connection.endpoint.as_str())];
        cpo.ec2("DeleteVpcEndpoints", &parameters).await?.ok()?;
        eventually("the endpoint is gone", env.patience(), || async {
            let found = cpo.ec2("DescribeVpcEndpoints", &parameters).await?;
            ensure!(found.status != 200, "{}", found.body);
            Ok(())
        })
        .await
    }

    async fn create_security_group(&self, cpo: &Caller) -> Result<String> {
        let name = format!("{}-by-hand", self.infra_id());
        let parameters = [
            ("GroupName", name.as_str()),
            ("GroupDescription", "made by hand"),
            ("VpcId", &self.vpc()),
        ];
        let created = cpo.ec2("CreateSecurityGroup", &parameters).await?.ok()?;
        let id = created.text("groupId").context("no id")?.to_owned();
        let parameters = [
            ("GroupId", id.as_str()),
            ("IpPermissions.1.IpProtocol", "tcp"),
            ("IpPermissions.1.FromPort", "443"),
            ("IpPermissions.1.ToPort", "443"),
            ("IpPermissions.1.IpRanges.1.CidrIp", "10.0.0.0/16"),
        ];
        cpo.ec2("AuthorizeSecurityGroupIngress", &parameters).await?.ok()?;
        Ok(id)
    }

    pub(super) async fn write_records(&self, cpo: &Caller, dns_name: &str) -> Result<()> {
        let zone = self.zone_name();
        let names = [format!("api.{zone}"), format!("*.apps.{zone}")];
        let change = |name: &String| {
            format!(
                "<Change><Action>UPSERT</Action><ResourceRecordSet><Name>{name}</Name><Type>CNAME</Type><TTL>300</TTL>\
                 <ResourceRecords><ResourceRecord><Value>{dns_name}</Value></ResourceRecord></ResourceRecords>\
                 </ResourceRecordSet></Change>"
            )
        };
        let changes: String = names.iter().map(change).collect();
        let batch = format!(
            "<ChangeResourceRecordSetsRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><ChangeBatch>\
             <Changes>{changes}</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>"
        );
        let path = format!("/hostedzone/{}/rrset", self.zone());
        cpo.route53(Method::POST, &path, &batch).await?.ok().map(drop)
    }
}
