//! The principals that may create endpoints of an endpoint service.

use hyperlink_engine::client::{Reconcile, WriteError};

use super::{Ec2, PAGE, done, page};
use crate::api::action::Action;
use crate::api::error::AwsError;
use crate::api::pages::Page;
use crate::api::request::ServiceRequest;
use crate::wire::form::Form;
use crate::wire::xml::{Element, Malformed};

/// A principal that may create endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Its ARN; `*` for everybody.
    pub arn: String,
    /// `Role`, `Account` and so on.
    pub kind: Option<String>,
}

impl Ec2 {
    /// Lists the allowed principals of an endpoint service.
    ///
    /// # Errors
    /// AWS's.
    pub async fn principals(&self, reconcile: Reconcile, service_id: &str) -> Result<Vec<Principal>, AwsError> {
        let first = Form::default()
            .with("ServiceId", service_id)
            .with("MaxResults", PAGE.to_string());
        let action = Action::DescribeVpcEndpointServicePermissions;
        let request = |next: &Form| ServiceRequest::query(action, &first.clone().followed_by(next));
        self.0.pages(reconcile, request, principals).await
    }

    /// Adds and removes allowed principals of an endpoint service, in one request.
    ///
    /// # Errors
    /// AWS's, or the gate is shut.
    pub async fn modify_principals(
        &self,
        reconcile: Reconcile,
        service_id: &str,
        add: &[String],
        remove: &[String],
    ) -> Result<(), WriteError<AwsError>> {
        let form = Form::default()
            .with("ServiceId", service_id)
            .with_list("AddAllowedPrincipals", add)
            .with_list("RemoveAllowedPrincipals", remove);
        let request = ServiceRequest::query(Action::ModifyVpcEndpointServicePermissions, &form);
        self.0.write(reconcile, request, done).await
    }
}

fn principals(root: &Element) -> Result<Page<Principal>, Malformed> {
    page(root, "allowedPrincipals", |item| {
        Ok(Principal {
            arn: item.required("principal")?,
            kind: item.optional("principalType"),
        })
    })
}
