//! The connections of an endpoint service: one for each endpoint, in whatever account.

use hyperlink_engine::client::{Reconcile, WriteError};

use super::{Ec2, EndpointState, MAX_IDS, Selection, filter, page, unsuccessful};
use crate::api::action::{Action, Verb};
use crate::api::error::AwsError;
use crate::api::pages::Page;
use crate::api::request::ServiceRequest;
use crate::wire::form::Form;
use crate::wire::xml::{Element, Malformed};

/// A connection of an endpoint service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointConnection {
    /// The endpoint, `vpce-…`.
    pub endpoint_id: String,
    /// The account of the endpoint.
    pub owner: Option<String>,
    /// The state of the endpoint, as the service shows it.
    pub state: EndpointState,
}

impl Ec2 {
    /// Lists the connections of an endpoint service.
    ///
    /// # Errors
    /// AWS's.
    pub async fn connections(
        &self,
        reconcile: Reconcile,
        service_id: &str,
    ) -> Result<Vec<EndpointConnection>, AwsError> {
        let selection = Selection::Filters(vec![filter("service-id", service_id)]);
        let action = Action::DescribeVpcEndpointConnections;
        self.list(reconcile, action, ("", &selection), connections).await
    }

    /// Rejects connections of an endpoint service, the first hundred of these. Returns the endpoints for which that
    /// failed, each with its error.
    ///
    /// # Errors
    /// AWS's, or the gate is shut.
    pub async fn reject_connections(
        &self,
        reconcile: Reconcile,
        service_id: &str,
        endpoint_ids: &[String],
    ) -> Result<Vec<(String, AwsError)>, WriteError<AwsError>> {
        let ids = endpoint_ids.iter().take(MAX_IDS);
        let form = Form::default()
            .with("ServiceId", service_id)
            .with_list("VpcEndpointId", ids);
        let request = ServiceRequest::query(Action::RejectVpcEndpointConnections, &form);
        let parse = |root: &Element| {
            let failed = unsuccessful(root, Verb::Write)?.into_iter();
            let denying = |(id, error): (_, AwsError)| (id, error.of_action(Action::RejectVpcEndpointConnections));
            Ok(failed.map(denying).collect())
        };
        self.0.write(reconcile, request, parse).await
    }
}

fn connections(root: &Element) -> Result<Page<EndpointConnection>, Malformed> {
    page(root, "vpcEndpointConnectionSet", |item| {
        Ok(EndpointConnection {
            endpoint_id: item.required("vpcEndpointId")?,
            owner: item.optional("vpcEndpointOwner"),
            state: EndpointState::parse(&item.required("vpcEndpointState")?),
        })
    })
}
