//! What a resource type is to the engine: how it reads, writes, lists, ends its operations and shows itself.
//!
//! A type is a file that implements [`Kind`] and a line in [`super::registry`]. ARM's own checks are done before.

use http::{HeaderMap, Method};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::context::Context;
use super::error::ArmError;
use super::id::ResourceId;
use super::operation::{Operation, OperationStatus, Verb};
use super::resource::{ProvisioningState, Resource};
use super::{names, tags};

/// The server stack behind a type: decides headers, budgets and polling URLs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stack {
    /// Microsoft.Network without private DNS.
    Network,
    /// Microsoft.Network/privateDnsZones.
    PrivateDns,
    /// Microsoft.Resources: ARM itself.
    #[default]
    Resources,
}

/// One call to a type, checked by ARM.
pub(crate) struct Call<'a> {
    pub(crate) method: &'a Method,
    /// The resource; for a list, the scope that is listed: subscription, group or parent resource.
    pub(crate) id: ResourceId,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: &'a HeaderMap,
    /// The JSON body; null if there was none.
    pub(crate) body: Value,
    pub(crate) api_version: String,
    /// `https://host` and the path, for `nextLink`.
    pub(crate) url: String,
}

impl Call<'_> {
    /// A query parameter by its name in any case.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// `https://host`.
    pub(crate) fn base(&self) -> &str {
        let host = self.url.find("://").map_or(0, |at| at + 3);
        let end = self
            .url
            .get(host..)
            .and_then(|rest| rest.find('/'))
            .map_or(self.url.len(), |at| host + at);
        self.url.get(..end).unwrap_or_default()
    }

    /// A header's text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// The answer of a type; the engine adds the headers that all answers of a stack have.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Option<Value>,
    pub(crate) etag: Option<String>,
    /// The operation whose polling URLs are sent.
    pub(crate) operation: Option<String>,
    /// Seconds for `Retry-After` where no operation's URLs are sent.
    pub(crate) retry_after: Option<u32>,
    /// Whether the call changed anything (for the journal).
    pub(crate) changed: bool,
    /// Rows of a list, which private DNS counts against a budget of its own.
    pub(crate) rows: Option<u32>,
    /// Whether ARM answers itself, without the provider's headers.
    pub(crate) by_gateway: bool,
}

impl Reply {
    pub(crate) fn new(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    pub(crate) fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    pub(crate) fn etag(mut self, etag: &str) -> Self {
        self.etag = Some(etag.to_owned()).filter(|etag| !etag.is_empty());
        self
    }

    pub(crate) fn operation(mut self, id: &str) -> Self {
        self.operation = Some(id.to_owned());
        self
    }

    pub(crate) fn changed(mut self) -> Self {
        self.changed = true;
        self
    }

    pub(crate) fn by_gateway(mut self) -> Self {
        self.by_gateway = true;
        self
    }
}

/// A permission that a call needs on a resource which its body names.
#[derive(Clone, Debug)]
pub(crate) struct LinkedScope {
    pub(crate) id: String,
    pub(crate) action: &'static str,
}

/// A resource type. Every method has the default that most types need.
pub(crate) trait Kind: Sync {
    /// In Azure's spelling: `Microsoft.Network/virtualNetworks/subnets`.
    fn resource_type(&self) -> &'static str;

    /// The oldest api-version, `YYYY-MM-DD`.
    fn first_version(&self) -> &'static str;

    fn stack(&self) -> Stack {
        Stack::Network
    }

    /// Whether it has a location and tags of its own, and is shown among the resources of its group.
    fn tracked(&self) -> bool {
        self.resource_type().matches('/').count() == 1
    }

    /// How many tags one may have.
    fn most_tags(&self) -> usize {
        match self.stack() {
            Stack::PrivateDns => 15,
            Stack::Network | Stack::Resources => 50,
        }
    }

    /// Refuses the name of a resource that is to be made; private DNS judges names together with the rest of a write.
    fn check_name(&self, name: &str) -> Result<(), ArmError> {
        match self.stack() {
            Stack::Network => names::network(name),
            Stack::PrivateDns | Stack::Resources => Ok(()),
        }
    }

    /// What the caller must be allowed to do on the resources that `call` refers to.
    fn links(&self, _cx: &Context<'_>, _call: &Call<'_>) -> Vec<LinkedScope> {
        vec![]
    }

    fn get(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let found = cx.find(&call.id)?;
        Ok(Reply::new(200).body(self.render(cx, found)).etag(&self.etag(cx, found)))
    }

    fn list(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let found = cx.state.store.of_type(&call.id, self.resource_type());
        let items = found.map(|resource| (resource.id.key(), resource)).collect();
        super::page::page(call, items, cx.state.switches.network_page_rows, |resource| {
            self.render(cx, resource)
        })
    }

    fn put(&self, _cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        Err(ArmError::method_not_allowed(call.method))
    }

    /// Tags, unless the type can do more.
    fn patch(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        if !self.tracked() {
            return Err(ArmError::method_not_allowed(call.method));
        }
        tags::patch(cx, call, self)
    }

    fn delete(&self, _cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        Err(ArmError::method_not_allowed(call.method))
    }

    /// A POST to `RESOURCE/action`.
    fn post(&self, _cx: &mut Context<'_>, call: &Call<'_>, _action: &str) -> Result<Reply, ArmError> {
        Err(ArmError::method_not_allowed(call.method))
    }

    /// The etag shown, where it is not the resource's own.
    fn etag(&self, _cx: &Context<'_>, resource: &Resource) -> String {
        resource.etag.clone()
    }

    /// The resource as GET and lists show it.
    fn render(&self, cx: &Context<'_>, resource: &Resource) -> Value {
        let mut shown = resource.body.clone();
        shown["id"] = json!(resource.id);
        shown["name"] = json!(resource.id.name());
        shown["type"] = json!(self.resource_type());
        shown["properties"]["provisioningState"] = json!(resource.state.as_str());
        let etag = self.etag(cx, resource);
        if !etag.is_empty() {
            shown["etag"] = json!(etag);
        }
        shown
    }

    /// Puts a resource as it is given, `Succeeded`, and fills in what the server makes (seed and drift): no checks, no
    /// operation. `body` is ARM JSON.
    fn install(&self, cx: &mut Context<'_>, id: &ResourceId, body: Value) -> Result<(), ArmError> {
        cx.store(self.resource_type(), id, body);
        Ok(())
    }

    /// The end of an operation whose target is of this type; its status is final already.
    fn finish(&self, cx: &mut Context<'_>, operation: &Operation) {
        finish(cx, operation);
    }

    /// Called after a resource of this type has left the store, by whatever way.
    fn removed(&self, _cx: &mut Context<'_>, _gone: &Resource) {}
}

/// The usual end: the resource gets its final state, or is removed.
pub(crate) fn finish(cx: &mut Context<'_>, operation: &Operation) {
    match (operation.status, operation.verb) {
        (OperationStatus::Succeeded, Verb::Delete) => cx.remove(&operation.target),
        (OperationStatus::Succeeded, Verb::Put) => cx.settle(operation, ProvisioningState::Succeeded),
        (OperationStatus::Succeeded, Verb::Post) => {}
        (OperationStatus::Canceled, _) => cx.settle(operation, ProvisioningState::Canceled),
        _ => cx.settle(operation, ProvisioningState::Failed),
    }
}
