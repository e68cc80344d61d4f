//! The control-plane-operator on AWS: security group, endpoint, records and external Services.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Clients, Parameters, UNDIVIDED, accept, publish, resource_tags, status_of};
use crate::aws_cluster::{AwsHostedCluster, KUBE_API_SERVER};
use crate::aws_sim::{Answer, all_inner, inner};
use crate::go_controllers::cpo::{MANAGER, ROUTER, create_or_merge};
use crate::go_controllers::object::{has_finalizer, is_deleting, text, update_finalizer};
use crate::go_controllers::observer::control_plane_reference;
use crate::go_controllers::queue::GoReconciler;
use crate::go_controllers::{Next, queue};

const FINALIZER: &str = "hypershift.openshift.io/control-plane-operator-finalizer";
const AVAILABLE: &str = "AWSEndpointAvailable";

/// How long a throttled reconcile waits.
const THROTTLED: Next = Next::After(Duration::from_mins(2));

/// How often the SDK sends a request again, and how long it waits.
const RETRIES: u32 = 10;
const RETRY: Duration = Duration::from_millis(500);

pub(crate) struct Operator {
    pub(super) clients: Clients,
}

impl Operator {
    pub(crate) fn new(clients: Clients) -> Self {
        Self { clients }
    }

    pub(crate) async fn run(&self) -> Result<()> {
        let own = queue::changes(self.clients.custom_resources());
        queue::work(queue::names(own), UNDIVIDED, self).await
    }
}

impl GoReconciler for Operator {
    async fn reconcile(&self, name: &str) -> Result<Next> {
        let api = self.clients.custom_resources();
        let Some(cr) = api.get_opt(name).await? else {
            return Ok(Next::Event);
        };
        if is_deleting(&cr) {
            if has_finalizer(&cr, FINALIZER) {
                if let Some(next) = self.delete(&cr).await? {
                    return Ok(next);
                }
                update_finalizer(&api, &cr, FINALIZER, false, MANAGER).await?;
            }
            return Ok(Next::Event);
        }
        if !has_finalizer(&cr, FINALIZER) {
            update_finalizer(&api, &cr, FINALIZER, true, MANAGER).await?;
            return Ok(Next::Event);
        }
        if text(&cr, "/status/endpointServiceName").is_empty() {
            return Ok(Next::Event);
        }
        let control_plane = self.clients.control_plane().await?;
        let mut status = status_of(&cr);
        let outcome = self.path(&cr, &control_plane, &mut status).await;
        match publish(&api, &cr, AVAILABLE, status, outcome, MANAGER).await {
            Err(error) if is_throttled(&error) => Ok(THROTTLED),
            outcome => outcome.map(|()| self.clients.drift()),
        }
    }
}

impl Operator {
    async fn path(&self, cr: &DynamicObject, control_plane: &DynamicObject, status: &mut Value) -> Result<()> {
        let group = self.security_group(cr, control_plane).await?;
        status["securityGroupID"] = group.clone().into();
        let endpoint = self.endpoint(cr, &group).await?;
        status["endpointID"] = endpoint.text("vpcEndpointId").context("no id")?.into();
        // The state of the endpoint is not looked at.
        let Some(dns_name) = endpoint.text("dnsName") else {
            return Ok(());
        };
        let names = record_names(cr, control_plane);
        if !names.is_empty() {
            let zone = self.zone(cr, control_plane).await?;
            for name in &names {
                accept(self.change(&zone, &record("UPSERT", name, dns_name)).await?)?;
            }
            status["dnsZoneID"] = zone.into();
            status["dnsNames"] = json!(names);
        }
        self.external_services(control_plane, dns_name).await
    }

    async fn security_group(&self, cr: &DynamicObject, control_plane: &DynamicObject) -> Result<String> {
        let cluster = &self.clients.cluster;
        let (name, vpc) = (format!("{}-vpce-{}", cluster.infra_id(), cr.name_any()), cluster.vpc());
        let filters = Parameters::default().with_filters(&[("group-name", &name), ("vpc-id", &vpc)]);
        let mut found = self.clients.accepted("DescribeSecurityGroups", &filters).await?;
        if found.text("groupId").is_none() {
            let tag = format!("kubernetes.io/cluster/{}", cluster.infra_id());
            let parameters = Parameters::default()
                .with_tags("security-group", cr, &[(&tag, "owned"), ("Name", &name)])
                .with("GroupName", &name)
                .with("GroupDescription", "VPC endpoint security group")
                .with("VpcId", &vpc);
            found = self.clients.accepted("CreateSecurityGroup", &parameters).await?;
        }
        let id = found.text("groupId").context("no id")?;
        if inner(&found.body, "ipRanges").is_none_or(str::is_empty) {
            let parameters = ingress(id, &cr.name_any(), control_plane);
            let answer = self.clients.ec2("AuthorizeSecurityGroupIngress", &parameters).await?;
            if answer.code.as_deref() != Some("InvalidPermission.Duplicate") {
                accept(answer)?;
            }
        }
        Ok(id.to_owned())
    }

    /// The endpoint that the status names, or that has the tags, or a new one.
    async fn endpoint(&self, cr: &DynamicObject, group: &str) -> Result<Answer> {
        let service = text(cr, "/status/endpointServiceName");
        let found = match self.known_endpoint(cr).await? {
            Some(found) => found,
            None => return self.create_endpoint(cr, service, group).await,
        };
        let id = found.text("vpcEndpointId").context("no id")?;
        if found.text("serviceName") != Some(service) {
            let parameters = Parameters::default().with("VpcEndpointId.1", id);
            self.clients.accepted("DeleteVpcEndpoints", &parameters).await?;
            bail!("endpoint {id} of another service is being deleted");
        }
        let attached = inner(&found.body, "subnetIdSet")
            .map(|set| all_inner(set, "item"))
            .unwrap_or_default();
        let desired = self.subnets(cr).await?;
        let added = desired.iter().map(String::as_str).filter(|id| !attached.contains(id));
        let removed = attached
            .iter()
            .copied()
            .filter(|id| !desired.iter().any(|one| one == id));
        if added.clone().chain(removed.clone()).count() > 0 {
            let parameters = Parameters::default().with("VpcEndpointId", id);
            let parameters = parameters
                .with_all("AddSubnetId", added)
                .with_all("RemoveSubnetId", removed);
            self.clients.accepted("ModifyVpcEndpoint", &parameters).await?;
        }
        Ok(found)
    }

    async fn known_endpoint(&self, cr: &DynamicObject) -> Result<Option<Answer>> {
        let recorded = text(cr, "/status/endpointID");
        if !recorded.is_empty() {
            let parameters = Parameters::default().with("VpcEndpointId.1", recorded);
            let found = self.clients.ec2("DescribeVpcEndpoints", &parameters).await?;
            if found.code.as_deref() != Some("InvalidVpcEndpointId.NotFound") {
                let found = accept(found)?;
                let is_dying = matches!(found.text("state"), Some("deleting" | "deleted"));
                return Ok(Some(found).filter(|_| !is_dying));
            }
        }
        let mut tags = resource_tags(cr);
        tags.push(("AWSEndpointService".to_owned(), cr.name_any()));
        let filters: Vec<_> = tags.iter().map(|(key, value)| (format!("tag:{key}"), value)).collect();
        let filters: Vec<_> = filters
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let parameters = Parameters::default().with_filters(&filters);
        let mut found = self.clients.accepted("DescribeVpcEndpoints", &parameters).await?;
        let is_live = |one: &&str| matches!(inner(one, "state"), Some("pending" | "available"));
        let live = found.body.split("<vpcEndpointId>").skip(1).find(is_live);
        let live = live.map(|one| format!("<vpcEndpointId>{one}"));
        Ok(live.map(|one| {
            found.body = one;
            found
        }))
    }

    async fn create_endpoint(&self, cr: &DynamicObject, service: &str, group: &str) -> Result<Answer> {
        let subnets = self.subnets(cr).await?;
        let parameters = Parameters::default()
            .with_tags("vpc-endpoint", cr, &[("AWSEndpointService", &cr.name_any())])
            .with_all("SubnetId", subnets.iter().map(String::as_str))
            .with("VpcEndpointType", "Interface")
            .with("VpcId", &self.clients.cluster.vpc())
            .with("ServiceName", service)
            .with("SecurityGroupId.1", group);
        self.clients.accepted("CreateVpcEndpoint", &parameters).await
    }

    /// The first subnet of each zone.
    async fn subnets(&self, cr: &DynamicObject) -> Result<Vec<String>> {
        let ids: Vec<String> = serde_json::from_value(cr.data["spec"]["subnetIDs"].clone())?;
        let parameters = Parameters::default().with_all("SubnetId", ids.iter().map(String::as_str));
        let found = self.clients.accepted("DescribeSubnets", &parameters).await?;
        let mut of_zones: BTreeMap<&str, &str> = BTreeMap::new();
        let all = all_inner(&found.body, "availabilityZone");
        for (zone, id) in all.into_iter().zip(all_inner(&found.body, "subnetId")) {
            let first = of_zones.entry(zone).or_insert(id);
            *first = id.min(first);
        }
        let mut first: Vec<_> = of_zones.into_values().map(str::to_owned).collect();
        first.sort_unstable();
        Ok(first)
    }

    /// The zone of a shared VPC, or that in the status, or the first private one of the cluster's name.
    async fn zone(&self, cr: &DynamicObject, control_plane: &DynamicObject) -> Result<String> {
        let local = text(control_plane, "/spec/platform/aws/sharedVPC/localZoneID");
        let known = [local, text(cr, "/status/dnsZoneID")];
        if let Some(known) = known.into_iter().find(|id| !id.is_empty()) {
            return Ok(known.to_owned());
        }
        let found = accept(self.clients.records.route53(Method::GET, "/hostedzone", "").await?)?;
        let name = format!("{}.", self.clients.cluster.zone_name());
        let mut zones = all_inner(&found.body, "HostedZone").into_iter();
        let zone = zones.find(|zone| inner(zone, "Name") == Some(&name) && inner(zone, "PrivateZone") == Some("true"));
        let id = zone.and_then(|zone| inner(zone, "Id")).context("no hosted zone")?;
        Ok(id.trim_start_matches("/hostedzone/").to_owned())
    }

    /// Sends one change of records to a zone. The SDK sends it again while AWS is at the one before.
    pub(super) async fn change(&self, zone: &str, change: &str) -> Result<Answer> {
        let batch = format!(
            "<ChangeResourceRecordSetsRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><ChangeBatch>\
             <Changes>{change}</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>"
        );
        let path = format!("/hostedzone/{zone}/rrset");
        let mut answer = self.clients.records.route53(Method::POST, &path, &batch).await?;
        for _ in 0..RETRIES {
            if answer.code.as_deref() != Some("PriorRequestNotComplete") {
                break;
            }
            tokio::time::sleep(RETRY).await;
            answer = self.clients.records.route53(Method::POST, &path, &batch).await?;
        }
        Ok(answer)
    }

    /// Every custom resource's endpoint gets the host names.
    async fn external_services(&self, control_plane: &DynamicObject, dns_name: &str) -> Result<()> {
        let namespace = self.clients.cluster.control_plane_namespace();
        let services: Api<Service> = Api::namespaced(self.clients.kube.clone(), &namespace);
        for (service, name) in [
            ("APIServer", "kube-apiserver-private-external"),
            ("OAuthServer", "oauth-private-external"),
        ] {
            let strategy = strategy(control_plane, service);
            let Some(host) = strategy["route"]["hostname"].as_str() else {
                continue;
            };
            let body = json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": name,
                    "labels": {"hypershift.openshift.io/external-private-service": "true"},
                    "annotations": {"external-dns.alpha.kubernetes.io/hostname": host},
                    "ownerReferences": [control_plane_reference(control_plane)?]},
                "spec": {"type": "ExternalName", "externalName": dns_name}});
            create_or_merge(&services, name, body).await?;
        }
        Ok(())
    }
}

fn is_throttled(error: &anyhow::Error) -> bool {
    let text = error.to_string();
    ["Throttling", "RequestLimitExceeded"]
        .iter()
        .any(|code| text.contains(code))
}

/// One change of a CNAME.
pub(super) fn record(action: &str, name: &str, value: &str) -> String {
    format!(
        "<Change><Action>{action}</Action><ResourceRecordSet><Name>{name}</Name><Type>CNAME</Type><TTL>300</TTL>\
         <ResourceRecords><ResourceRecord><Value>{value}</Value></ResourceRecord></ResourceRecords>\
         </ResourceRecordSet></Change>"
    )
}

/// How a service of the control plane is published.
fn strategy(control_plane: &DynamicObject, service: &str) -> Value {
    let all = control_plane.data["spec"]["services"].as_array().into_iter().flatten();
    let mut found = all.filter(|one| one["service"] == service);
    found
        .next()
        .map(|one| one["servicePublishingStrategy"].clone())
        .unwrap_or_default()
}

/// The names of the records of a custom resource.
fn record_names(cr: &DynamicObject, control_plane: &DynamicObject) -> Vec<String> {
    let is_routed = strategy(control_plane, "APIServer")["type"] == "Route";
    let labels: &[&str] = match cr.name_any().as_str() {
        // Whether or not the router has it too.
        KUBE_API_SERVER => &["api"],
        ROUTER if is_routed => &["api", "*.apps"],
        ROUTER => &["*.apps"],
        _ => &[],
    };
    let zone = format!("{}.hypershift.local", control_plane.name_any());
    labels.iter().map(|label| format!("{label}.{zone}")).collect()
}

/// The rules that let the machine networks in.
fn ingress(group: &str, cr: &str, control_plane: &DynamicObject) -> Parameters {
    let port = AwsHostedCluster::port(cr).to_string();
    let mut parameters = Parameters::default()
        .with("GroupId", group)
        .with("IpPermissions.1.IpProtocol", "tcp")
        .with("IpPermissions.1.FromPort", &port)
        .with("IpPermissions.1.ToPort", &port);
    let networks = control_plane.data["spec"]["networking"]["machineNetwork"].as_array();
    for (number, network) in (1..).zip(networks.into_iter().flatten()) {
        let prefix = format!("IpPermissions.1.IpRanges.{number}");
        let cidr = network["cidr"].as_str().unwrap_or_default();
        parameters = parameters.with(&format!("{prefix}.CidrIp"), cidr);
        parameters = parameters.with(&format!("{prefix}.Description"), "Control plane service");
    }
    parameters
}
