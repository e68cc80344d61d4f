//! Errors as ARM and the providers behind it send them.
//!
//! The texts are Azure's; this file decides only how an error is carried, never when it is raised.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::id::ResourceId;
use super::kind::Stack;

/// The code of a refusal that asks the caller to retry.
pub(crate) const RETRYABLE: &str = "RetryableError";

/// Who made an error. ARM names it in the header `X-Ms-Failure-Cause`; not every provider does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// ARM itself.
    Gateway,
    /// The resource provider.
    Service,
}

/// Code and message, with details where Azure nests the real reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDetail {
    /// The stable word.
    pub code: String,
    /// The text for people.
    pub message: String,
    /// Nested reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<ErrorDetail>,
}

impl ErrorDetail {
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            details: vec![],
        }
    }

    pub(crate) fn because(mut self, detail: Self) -> Self {
        self.details.push(detail);
        self
    }

    /// As a service of that stack writes it: Microsoft.Network's have details, were it none.
    pub(crate) fn shown(&self, stack: Stack) -> Value {
        let mut shown = json!(self);
        if stack == Stack::Network && self.details.is_empty() {
            shown["details"] = json!([]);
        }
        shown
    }
}

/// A refused call.
#[derive(Clone, Debug)]
pub(crate) struct ArmError {
    pub(crate) status: u16,
    pub(crate) cause: Cause,
    pub(crate) error: ErrorDetail,
    /// Seconds for `Retry-After`.
    pub(crate) retry_after: Option<u32>,
    /// Whether the body is `{"error":{...}}`; private DNS record sets answer 412 without the wrapper.
    pub(crate) wrapped: bool,
}

impl ArmError {
    fn new(status: u16, cause: Cause, code: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            cause,
            error: ErrorDetail::new(code, message),
            retry_after: None,
            wrapped: true,
        }
    }

    /// An error that ARM makes itself.
    pub(crate) fn gateway(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self::new(status, Cause::Gateway, code, message)
    }

    /// An error of the resource provider.
    pub(crate) fn service(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self::new(status, Cause::Service, code, message)
    }

    /// The same with a nested reason.
    pub(crate) fn because(mut self, code: &str, message: impl Into<String>) -> Self {
        self.error.details.push(ErrorDetail::new(code, message));
        self
    }

    /// The same with a body that is not wrapped in `error`.
    pub(crate) fn unwrapped(mut self) -> Self {
        self.wrapped = false;
        self
    }

    /// The body as a service of that stack sends it.
    pub(crate) fn body(&self, stack: Stack) -> Value {
        let error = match self.cause {
            Cause::Service => self.error.shown(stack),
            Cause::Gateway => json!(self.error),
        };
        if self.wrapped { json!({ "error": error }) } else { error }
    }

    /// The value of `X-Ms-Failure-Cause`. Microsoft.Network names itself in retryable errors only.
    pub(crate) fn failure_cause(&self, stack: Stack) -> Option<&'static str> {
        match self.cause {
            Cause::Gateway => Some("gateway"),
            Cause::Service if stack == Stack::Network && self.error.code != RETRYABLE => None,
            Cause::Service => Some("service"),
        }
    }

    /// ARM has no such resource.
    pub(crate) fn resource_not_found(id: &ResourceId) -> Self {
        let namespace = id.resource_type();
        let namespace = namespace.split('/').next().unwrap_or_default();
        let group = id.resource_group().unwrap_or_default();
        let message = format!(
            "The Resource '{namespace}/{}' under resource group '{group}' was not found. For more details please go to \
             https://aka.ms/ARMResourceNotFoundFix",
            id.typed_name()
        );
        Self::gateway(404, "ResourceNotFound", message)
    }

    /// The provider has no such nested resource.
    pub(crate) fn nested_not_found(id: &ResourceId) -> Self {
        Self::service(404, "NotFound", format!("Resource {id} not found."))
    }

    /// A nested resource's parent is missing.
    pub(crate) fn parent_not_found(parent: &ResourceId) -> Self {
        let message = format!(
            "Can not perform requested operation on nested resource. Parent resource '{}' not found.",
            parent.name()
        );
        Self::gateway(404, "ParentResourceNotFound", message)
    }

    /// The resource group is missing.
    pub(crate) fn group_not_found(group: &str) -> Self {
        Self::gateway(
            404,
            "ResourceGroupNotFound",
            format!("Resource group '{group}' could not be found."),
        )
    }

    /// The type has no such method.
    pub(crate) fn method_not_allowed(method: &http::Method) -> Self {
        let message = format!("The requested resource does not support http method '{method}'.");
        Self::gateway(405, "MethodNotAllowed", message)
    }

    /// The body is not what it must be.
    pub(crate) fn invalid_content(message: impl Into<String>) -> Self {
        Self::gateway(400, "InvalidRequestContent", message)
    }
}
