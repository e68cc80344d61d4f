//! A cluster that HyperShift's own controllers, which are written in Go, have served until now: what they made in AWS,
//! in the form in which they make it, and what they wrote into the custom resource.

use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::{AwsHostedCluster, load_balancer_name};
use crate::AwsEnv;
use crate::aws_env::INFRASTRUCTURE;
use crate::aws_sim::{Caller, GUEST, HO, REGION};
use crate::hosted_cluster::ROUTER;
use crate::wait::eventually;

/// The finalizers of both of HyperShift's controllers.
const FINALIZERS: [&str; 2] = [
    "hypershift.openshift.io/control-plane-operator-finalizer",
    "hypershift.openshift.io/hypershift-operator-finalizer",
];

/// Simulated seconds since the cluster is up.
const SERVED_FOR: f64 = 60.0;

impl AwsHostedCluster {
    /// Does what both of HyperShift's controllers do for a cluster that exists, and stops.
    ///
    /// # Errors
    ///
    /// AWS or the API server refuses.
    pub async fn serve_as_hypershift(&self, env: &AwsEnv) -> Result<()> {
        let service = self.reference_service(env).await?;
        let name = format!("com.amazonaws.vpce.{REGION}.{service}");
        let cpo = env.cpo_session().await?;
        let group = self.reference_group(&cpo).await?;
        let (endpoint, dns_name) = self.reference_endpoint(env, &cpo, &name, &group).await?;
        self.write_records(&cpo, &dns_name).await?;
        let zone = self.zone_name();
        let condition = |kind: &str| {
            json!({"type": kind, "status": "True", "reason": "AWSSuccess", "message": "",
                "lastTransitionTime": "2026-01-02T03:04:05Z"})
        };
        let status = json!({
            "endpointServiceName": name,
            "endpointID": endpoint,
            "securityGroupID": group,
            "dnsNames": [format!("api.{zone}"), format!("*.apps.{zone}")],
            "dnsZoneID": self.zone(),
            "conditions": [condition("AWSEndpointServiceAvailable"), condition("AWSEndpointAvailable")],
        });
        self.write_custom_resource(env, &status).await?;
        // All tags show by now.
        env.oracle().advance(SERVED_FOR).await
    }

    async fn write_custom_resource(&self, env: &AwsEnv, status: &Value) -> Result<()> {
        let api = self.custom_resources(&env.client()?);
        let object = json!({
            "metadata": {
                "finalizers": FINALIZERS,
                "annotations": {"hypershift.openshift.io/cluster": self.full_name()},
            },
            "spec": {"subnetIDs": self.node_pool_subnets()},
        });
        let parameters = PatchParams::default();
        api.patch(ROUTER, &parameters, &Patch::Merge(object)).await?;
        let status = json!({ "status": status });
        api.patch_status(ROUTER, &parameters, &Patch::Merge(status)).await?;
        Ok(())
    }

    async fn reference_service(&self, env: &AwsEnv) -> Result<String> {
        let ho = env.caller(HO)?;
        let host_name = self.gets_host_name(&env.client()?, env.patience()).await?;
        let parameters = [("Names.member.1", load_balancer_name(&host_name))];
        let arn = eventually("the load balancer is active", env.patience(), || async {
            let found = ho.load_balancing("DescribeLoadBalancers", &parameters).await?.ok()?;
            ensure!(found.text("Code") == Some("active"), "{}", found.body);
            found.text("LoadBalancerArn").map(str::to_owned).context("no ARN")
        })
        .await?;
        let mut parameters = self.tags("vpc-endpoint-service", &[(&cluster_tag(INFRASTRUCTURE), "owned")]);
        parameters.extend([
            ("NetworkLoadBalancerArn.1".to_owned(), arn),
            ("AcceptanceRequired".to_owned(), "false".to_owned()),
        ]);
        let created = call(&ho, "CreateVpcEndpointServiceConfiguration", &parameters).await?;
        let id = created.text("serviceId").context("no id")?.to_owned();
        let role = format!("arn:aws:iam::{GUEST}:role/control-plane-operator");
        let parameters = [("ServiceId", id.as_str()), ("AddAllowedPrincipals.1", &role)];
        ho.ec2("ModifyVpcEndpointServicePermissions", &parameters).await?.ok()?;
        Ok(id)
    }

    async fn reference_group(&self, cpo: &Caller) -> Result<String> {
        let name = format!("{}-vpce-{ROUTER}", self.infra_id());
        let own = [(&*cluster_tag(&self.infra_id()), "owned"), ("Name", &name)];
        let mut parameters = self.tags("security-group", &own);
        parameters.extend([
            ("GroupName".to_owned(), name.clone()),
            ("GroupDescription".to_owned(), "VPC endpoint security group".to_owned()),
            ("VpcId".to_owned(), self.vpc()),
        ]);
        let created = call(cpo, "CreateSecurityGroup", &parameters).await?;
        let id = created.text("groupId").context("no id")?.to_owned();
        let parameters = [
            ("GroupId", id.as_str()),
            ("IpPermissions.1.IpProtocol", "tcp"),
            ("IpPermissions.1.FromPort", "443"),
            ("IpPermissions.1.ToPort", "443"),
            ("IpPermissions.1.IpRanges.1.CidrIp", "10.0.0.0/16"),
            ("IpPermissions.1.IpRanges.1.Description", "Control plane service"),
        ];
        cpo.ec2("AuthorizeSecurityGroupIngress", &parameters).await?.ok()?;
        Ok(id)
    }

    /// Returns the id of the endpoint and its first DNS name.
    async fn reference_endpoint(
        &self,
        env: &AwsEnv,
        cpo: &Caller,
        service: &str,
        group: &str,
    ) -> Result<(String, String)> {
        let mut parameters = self.tags("vpc-endpoint", &[("AWSEndpointService", ROUTER)]);
        let subnets = (1..).zip(self.node_pool_subnets());
        parameters.extend(subnets.map(|(number, subnet)| (format!("SubnetId.{number}"), subnet)));
        parameters.extend([
            ("VpcEndpointType".to_owned(), "Interface".to_owned()),
            ("VpcId".to_owned(), self.vpc()),
            ("ServiceName".to_owned(), service.to_owned()),
            ("SecurityGroupId.1".to_owned(), group.to_owned()),
        ]);
        let created = eventually("the endpoint is created", env.patience(), || async {
            call(cpo, "CreateVpcEndpoint", &parameters).await
        })
        .await?;
        let id = created.text("vpcEndpointId").context("no id")?.to_owned();
        let dns_name = self.is_connected(env, cpo, &id).await?;
        Ok((id, dns_name))
    }

    /// The tags of a new resource of this type, as parameters.
    fn tags(&self, resource_type: &str, own: &[(&str, &str)]) -> Vec<(String, String)> {
        let users = self
            .resource_tags()
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()));
        let tags = (1..).zip(users.chain(own.iter().copied()));
        let mut parameters = vec![("TagSpecification.1.ResourceType".to_owned(), resource_type.to_owned())];
        for (number, (key, value)) in tags {
            parameters.push((format!("TagSpecification.1.Tag.{number}.Key"), key.to_owned()));
            parameters.push((format!("TagSpecification.1.Tag.{number}.Value"), value.to_owned()));
        }
        parameters
    }
}

fn cluster_tag(infrastructure: &str) -> String {
    format!("kubernetes.io/cluster/{infrastructure}")
}

async fn call(caller: &Caller, action: &str, parameters: &[(String, String)]) -> Result<crate::aws_sim::Answer> {
    let parameters = parameters.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    caller.ec2(action, &Vec::from_iter(parameters)).await?.ok()
}
