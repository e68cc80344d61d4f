//! Interface endpoints: the addresses of an endpoint service in a network.

use hyperlink_engine::client::{Execution, Reconcile, WriteError};
use jiff::Timestamp;

use super::tags::{self, Tags, with_new_tags};
use super::{Ec2, Selection, done, page};
use crate::api::action::Action;
use crate::api::error::AwsError;
use crate::api::pages::Page;
use crate::api::request::ServiceRequest;
use crate::client_token::ClientToken;
use crate::wire::form::Form;
use crate::wire::xml::{Element, Malformed};

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// `vpce-…`
    pub id: String,
    /// Its type, as EC2 names it.
    pub endpoint_type: Option<String>,
    /// The name of its endpoint service; none for types of endpoints that have none.
    pub service_name: Option<String>,
    /// The network that it is in.
    pub vpc_id: Option<String>,
    /// How far EC2 is with it.
    pub state: EndpointState,
    /// Its subnets, one in each zone.
    pub subnet_ids: Vec<String>,
    /// The ids of its security groups.
    pub group_ids: Vec<String>,
    /// Its names: that of the region first, then one for each zone.
    pub dns_entries: Vec<DnsEntry>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// EC2's code of its last failure.
    pub last_error: Option<String>,
    /// Its tags.
    pub tags: Tags,
}

impl Endpoint {
    /// Whether it counts for the quota of its VPC.
    ///
    /// Source: <https://docs.aws.amazon.com/vpc/latest/privatelink/vpc-limits-endpoints.html>
    pub(crate) fn counts_in_vpc(&self) -> bool {
        let counted = ["Interface", "GatewayLoadBalancer"];
        let has_type = self.endpoint_type.as_deref().is_some_and(|of| counted.contains(&of));
        has_type && self.state != EndpointState::Deleted
    }
}

/// A name of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsEntry {
    /// The name, without a dot at its end.
    pub name: String,
    /// The hosted zone that it is in.
    pub zone_id: Option<String>,
}

/// The state of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointState {
    /// The owner of the endpoint service has not accepted it yet.
    PendingAcceptance,
    /// Being created.
    Pending,
    /// In force.
    Available,
    /// Being deleted.
    Deleting,
    /// Deleted, and still listed.
    Deleted,
    /// The owner of the endpoint service has rejected it.
    Rejected,
    /// It could not be created.
    Failed,
    /// The owner of the endpoint service has not accepted it in time.
    Expired,
    /// A part of it is in force.
    Partial,
    /// A state that Hyperlink does not know.
    Other(String),
}

impl EndpointState {
    pub(super) fn parse(text: &str) -> Self {
        match text.to_ascii_lowercase().as_str() {
            "pendingacceptance" => Self::PendingAcceptance,
            "pending" => Self::Pending,
            "available" => Self::Available,
            "deleting" => Self::Deleting,
            "deleted" => Self::Deleted,
            "rejected" => Self::Rejected,
            "failed" => Self::Failed,
            "expired" => Self::Expired,
            "partial" => Self::Partial,
            _ => Self::Other(text.to_owned()),
        }
    }
}

/// An interface endpoint to create, without private DNS and policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEndpoint {
    /// The name of its endpoint service.
    pub service_name: String,
    /// The network that it is in.
    pub vpc_id: String,
    /// Its subnets, one in each zone.
    pub subnet_ids: Vec<String>,
    /// The ids of its security groups.
    pub group_ids: Vec<String>,
    /// Tells a repeated create from another one.
    pub client_token: ClientToken,
    /// Its tags.
    pub tags: Tags,
}

/// What to change of an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointChanges {
    /// Subnets to add.
    pub add_subnets: Vec<String>,
    /// Subnets to remove.
    pub remove_subnets: Vec<String>,
    /// Security groups to add.
    pub add_groups: Vec<String>,
    /// Security groups to remove.
    pub remove_groups: Vec<String>,
}

impl Ec2 {
    /// Creates an endpoint.
    ///
    /// # Errors
    /// AWS's, or the gate is shut. `InvalidServiceName`: there is no such endpoint service, or it does not allow this
    /// identity.
    pub async fn create_endpoint(
        &self,
        reconcile: Reconcile,
        new: &NewEndpoint,
    ) -> Result<Endpoint, WriteError<AwsError>> {
        let form = Form::default()
            .with("VpcEndpointType", "Interface")
            .with("ServiceName", &new.service_name)
            .with("VpcId", &new.vpc_id)
            .with_list("SubnetId", &new.subnet_ids)
            .with_list("SecurityGroupId", &new.group_ids)
            .with("PrivateDnsEnabled", "false")
            .with("ClientToken", new.client_token.as_str());
        let form = with_new_tags(form, "vpc-endpoint", &new.tags);
        let request = ServiceRequest::query(Action::CreateVpcEndpoint, &form);
        self.0.write(reconcile, request, created).await
    }

    /// Lists endpoints of the account.
    ///
    /// # Errors
    /// AWS's.
    pub async fn endpoints(&self, reconcile: Reconcile, selection: &Selection) -> Result<Vec<Endpoint>, AwsError> {
        let action = Action::DescribeVpcEndpoints;
        self.list(reconcile, action, ("VpcEndpointId", selection), endpoints)
            .await
    }

    /// Changes the subnets and security groups of an endpoint.
    ///
    /// # Errors
    /// AWS's, or the gate is shut.
    pub async fn modify_endpoint(
        &self,
        reconcile: Reconcile,
        id: &str,
        changes: &EndpointChanges,
    ) -> Result<(), WriteError<AwsError>> {
        let form = Form::default()
            .with("VpcEndpointId", id)
            .with_list("AddSubnetId", &changes.add_subnets)
            .with_list("RemoveSubnetId", &changes.remove_subnets)
            .with_list("AddSecurityGroupId", &changes.add_groups)
            .with_list("RemoveSecurityGroupId", &changes.remove_groups);
        let request = ServiceRequest::query(Action::ModifyVpcEndpoint, &form);
        self.0.write(reconcile, request, done).await
    }

    /// Deletes an endpoint.
    ///
    /// # Errors
    /// AWS's, or the gate is shut.
    pub async fn delete_endpoint(&self, reconcile: Reconcile, id: &str) -> Result<Execution, WriteError<AwsError>> {
        let action = Action::DeleteVpcEndpoints;
        self.delete_one(reconcile, action, "VpcEndpointId", id).await
    }
}

fn created(root: &Element) -> Result<Endpoint, Malformed> {
    endpoint(root.required_child("vpcEndpoint")?)
}

fn endpoints(root: &Element) -> Result<Page<Endpoint>, Malformed> {
    page(root, "vpcEndpointSet", endpoint)
}

fn endpoint(item: &Element) -> Result<Endpoint, Malformed> {
    let names = item.items("dnsEntrySet", "item").filter_map(|entry| {
        Some(DnsEntry {
            name: entry.optional("dnsName")?.trim_end_matches('.').to_owned(),
            zone_id: entry.optional("hostedZoneId"),
        })
    });
    let groups = item.items("groupSet", "item").map(|group| group.required("groupId"));
    Ok(Endpoint {
        id: item.required("vpcEndpointId")?,
        endpoint_type: item.optional("vpcEndpointType"),
        service_name: item.optional("serviceName"),
        vpc_id: item.optional("vpcId"),
        state: EndpointState::parse(&item.required("state")?),
        subnet_ids: item.texts("subnetIdSet", "item"),
        group_ids: groups.collect::<Result<_, _>>()?,
        dns_entries: names.collect(),
        created: item.optional("creationTimestamp").and_then(|text| text.parse().ok()),
        last_error: item.child("lastError").and_then(|error| error.optional("code")),
        tags: tags::tags(item)?,
    })
}

#[cfg(test)]
mod tests;
