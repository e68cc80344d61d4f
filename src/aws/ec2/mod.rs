//! EC2: endpoint services and their connections, endpoints, security groups, subnets and tags.
//!
//! API: <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/>. Ids are EC2's. States are compared without case; an
//! unknown one is kept as such.

mod connections;
mod endpoint_services;
mod endpoints;
mod permissions;
mod security_groups;
mod subnets;
mod tags;

use hyperlink_engine::client::{Execution, Reconcile, WriteError};
use hyperlink_engine::failure::Class;

use crate::api::action::{Action, Verb};
use crate::api::client::Client;
use crate::api::error::AwsError;
use crate::api::pages::Page;
use crate::api::request::ServiceRequest;
use crate::wire::form::Form;
use crate::wire::xml::{Element, Malformed};

pub use connections::EndpointConnection;
pub use endpoint_services::{EndpointService, NewEndpointService, ServiceChanges, ServiceState};
pub use endpoints::{DnsEntry, Endpoint, EndpointChanges, EndpointState, NewEndpoint};
pub use permissions::Principal;
pub use security_groups::{NewSecurityGroup, Rule, SecurityGroup};
pub use subnets::Subnet;
pub use tags::Tags;

/// How many items a page has at most: with fifty tags each, an answer stays far below what is read of one.
const PAGE: usize = 200;

/// How many items one delete or rejection names at most.
const MAX_IDS: usize = 100;

/// EC2's calls, as the identity of a client.
#[derive(Clone)]
pub struct Ec2(pub Client);

/// A filter of a list: its name, and the values of which one has to fit.
pub type Filter = (String, Vec<String>);

/// The filter of this name with one value.
pub fn filter(name: &str, value: &str) -> Filter {
    (name.to_owned(), vec![value.to_owned()])
}

/// Which resources a list shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Those with these ids. An unknown id is an error for all.
    Ids(Vec<String>),
    /// Those that fit all of these filters. An unknown value fits nothing.
    Filters(Vec<Filter>),
}

impl Selection {
    /// The resource with this id.
    pub fn id(id: &str) -> Self {
        Self::Ids(vec![id.to_owned()])
    }

    /// The parameters of a page. EC2 refuses the size of a page beside ids.
    fn form(&self, ids: &str) -> Form {
        match self {
            Self::Ids(list) => Form::default().with_list(ids, list),
            Self::Filters(filters) => Form::default()
                .with_filters(filters)
                .with("MaxResults", PAGE.to_string()),
        }
    }

    /// Without an id EC2 lists everything, which nobody asked for.
    fn is_empty(&self) -> bool {
        matches!(self, Self::Ids(ids) if ids.is_empty())
    }
}

impl Ec2 {
    /// Reads all pages of what is selected; `ids` is the parameter for ids.
    async fn list<T>(
        &self,
        reconcile: Reconcile,
        action: Action,
        (ids, selection): (&str, &Selection),
        parse: fn(&Element) -> Result<Page<T>, Malformed>,
    ) -> Result<Vec<T>, AwsError> {
        if selection.is_empty() {
            return Ok(Vec::new());
        }
        let first = selection.form(ids);
        self.0
            .pages(
                reconcile,
                |next| ServiceRequest::query(action, &first.clone().followed_by(next)),
                parse,
            )
            .await
    }

    /// Deletes one resource by an action that answers for each of a list. One that is already gone counts as deleted.
    async fn delete_one(
        &self,
        reconcile: Reconcile,
        action: Action,
        parameter: &str,
        id: &str,
    ) -> Result<Execution, WriteError<AwsError>> {
        let form = Form::default().with_list(parameter, [id]);
        let request = ServiceRequest::query(action, &form);
        let unsuccessful = self.0.write(reconcile, request, deletions).await;
        let failed = unsuccessful.and_then(|failed| match failed.into_iter().next() {
            Some((_, error)) => Err(WriteError::Failed(error.of_action(action))),
            None => Ok(()),
        });
        deleted(failed, Execution::Running)
    }
}

/// The outcome of a delete: what is already gone counts as deleted.
fn deleted(sent: Result<(), WriteError<AwsError>>, accepted: Execution) -> Result<Execution, WriteError<AwsError>> {
    match sent {
        Ok(()) => Ok(accepted),
        Err(WriteError::Failed(error)) if error.class == Class::Gone => Ok(Execution::NothingThere),
        Err(error) => Err(error),
    }
}

/// The page of a list, whose items `parse` reads.
fn page<T>(root: &Element, list: &str, parse: fn(&Element) -> Result<T, Malformed>) -> Result<Page<T>, Malformed> {
    let items = root.items(list, "item").map(parse).collect::<Result<_, _>>()?;
    Ok(Page::new(items, "NextToken", root.optional("nextToken")))
}

/// The items of an answer to a delete that did not succeed, each with its error. The status of the answer is that of a
/// success even so.
fn deletions(root: &Element) -> Result<Vec<(String, AwsError)>, Malformed> {
    unsuccessful(root, Verb::Delete)
}

fn unsuccessful(root: &Element, verb: Verb) -> Result<Vec<(String, AwsError)>, Malformed> {
    let items = root.items("unsuccessful", "item").map(|item| {
        let error = item.required_child("error")?;
        let text = error.optional("message").unwrap_or_default();
        let error = AwsError::of_item(verb, &error.required("code")?, &text);
        Ok((item.optional("resourceId").unwrap_or_default(), error))
    });
    items.collect()
}

/// An answer that says whether the action was done.
fn done(root: &Element) -> Result<(), Malformed> {
    match root.optional("return").as_deref() {
        None | Some("true") => Ok(()),
        Some(_) => Err(Malformed::Unreadable("return")),
    }
}

#[cfg(test)]
mod tests;
