//! Endpoint services: what endpoints in other networks connect to.

use hyperlink_engine::client::{Execution, Reconcile, WriteError};

use super::tags::{self, Tags, with_new_tags};
use super::{Ec2, Selection, done, page};
use crate::api::action::Action;
use crate::api::error::AwsError;
use crate::api::pages::Page;
use crate::api::request::ServiceRequest;
use crate::client_token::ClientToken;
use crate::wire::form::Form;
use crate::wire::xml::{Element, Malformed};

/// An endpoint service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointService {
    /// `vpce-svc-…`
    pub id: String,
    /// `com.amazonaws.vpce.REGION.vpce-svc-…`
    pub name: String,
    /// How far EC2 is with it.
    pub state: ServiceState,
    /// Whether each connection has to be accepted.
    pub acceptance_required: bool,
    /// The ARNs of its network load balancers.
    pub load_balancers: Vec<String>,
    /// The names of its zones in its own account.
    pub zones: Vec<String>,
    /// The ids of its zones, which are the same in all accounts.
    pub zone_ids: Vec<String>,
    /// Its tags.
    pub tags: Tags,
}

/// The state of an endpoint service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceState {
    /// Being created.
    Pending,
    /// In force.
    Available,
    /// Being deleted.
    Deleting,
    /// Deleted, and still listed.
    Deleted,
    /// It could not be created.
    Failed,
    /// A state that Hyperlink does not know.
    Other(String),
}

impl ServiceState {
    fn parse(text: &str) -> Self {
        match text.to_ascii_lowercase().as_str() {
            "pending" => Self::Pending,
            "available" => Self::Available,
            "deleting" => Self::Deleting,
            "deleted" => Self::Deleted,
            "failed" => Self::Failed,
            _ => Self::Other(text.to_owned()),
        }
    }
}

/// An endpoint service to create: no connection has to be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEndpointService {
    /// The ARN of its network load balancer.
    pub load_balancer: String,
    /// Tells a repeated create from another one.
    pub client_token: ClientToken,
    /// Its tags.
    pub tags: Tags,
}

/// What to change of an endpoint service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceChanges {
    /// Whether each connection has to be accepted; none to leave it.
    pub acceptance_required: Option<bool>,
    /// The ARNs of network load balancers to add.
    pub add_load_balancers: Vec<String>,
    /// The ARNs of network load balancers to remove.
    pub remove_load_balancers: Vec<String>,
}

impl Ec2 {
    /// Creates an endpoint service.
    ///
    /// # Errors
    /// AWS's, or the gate is shut. `InvalidParameter`: its load balancer has one already.
    pub async fn create_endpoint_service(
        &self,
        reconcile: Reconcile,
        new: &NewEndpointService,
    ) -> Result<EndpointService, WriteError<AwsError>> {
        let form = Form::default()
            .with("AcceptanceRequired", "false")
            .with_list("NetworkLoadBalancerArn", [new.load_balancer.as_str()])
            .with("ClientToken", new.client_token.as_str());
        let form = with_new_tags(form, "vpc-endpoint-service", &new.tags);
        let request = ServiceRequest::query(Action::CreateVpcEndpointServiceConfiguration, &form);
        self.0.write(reconcile, request, created).await
    }

    /// Lists endpoint services of the account.
    ///
    /// # Errors
    /// AWS's.
    pub async fn endpoint_services(
        &self,
        reconcile: Reconcile,
        selection: &Selection,
    ) -> Result<Vec<EndpointService>, AwsError> {
        let action = Action::DescribeVpcEndpointServiceConfigurations;
        self.list(reconcile, action, ("ServiceId", selection), services).await
    }

    /// Changes an endpoint service.
    ///
    /// # Errors
    /// AWS's, or the gate is shut.
    pub async fn modify_endpoint_service(
        &self,
        reconcile: Reconcile,
        id: &str,
        changes: &ServiceChanges,
    ) -> Result<(), WriteError<AwsError>> {
        let mut form = Form::default()
            .with("ServiceId", id)
            .with_list("AddNetworkLoadBalancerArn", &changes.add_load_balancers)
            .with_list("RemoveNetworkLoadBalancerArn", &changes.remove_load_balancers);
        if let Some(required) = changes.acceptance_required {
            form = form.with("AcceptanceRequired", required.to_string());
        }
        let request = ServiceRequest::query(Action::ModifyVpcEndpointServiceConfiguration, &form);
        self.0.write(reconcile, request, done).await
    }

    /// Deletes an endpoint service.
    ///
    /// # Errors
    /// AWS's, or the gate is shut. `ExistingVpcEndpointConnections`: it still has connections.
    pub async fn delete_endpoint_service(
        &self,
        reconcile: Reconcile,
        id: &str,
    ) -> Result<Execution, WriteError<AwsError>> {
        let action = Action::DeleteVpcEndpointServiceConfigurations;
        self.delete_one(reconcile, action, "ServiceId", id).await
    }
}

fn created(root: &Element) -> Result<EndpointService, Malformed> {
    service(root.required_child("serviceConfiguration")?)
}

fn services(root: &Element) -> Result<Page<EndpointService>, Malformed> {
    page(root, "serviceConfigurationSet", service)
}

fn service(item: &Element) -> Result<EndpointService, Malformed> {
    Ok(EndpointService {
        id: item.required("serviceId")?,
        name: item.required("serviceName")?,
        state: ServiceState::parse(&item.required("serviceState")?),
        acceptance_required: item.flag("acceptanceRequired")?,
        load_balancers: item.texts("networkLoadBalancerArnSet", "item"),
        zones: item.texts("availabilityZoneSet", "item"),
        zone_ids: item.texts("availabilityZoneIdSet", "item"),
        tags: tags::tags(item)?,
    })
}
