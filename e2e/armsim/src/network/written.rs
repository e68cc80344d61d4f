//! What a type of Microsoft.Network defines: its fixed facts, what a PUT stores, what may be deleted, what follows. How
//! writes are carried out is in [`super::write`].

use serde_json::Value;

use crate::engine::context::Context;
use crate::engine::error::{ArmError, ErrorDetail};
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, LinkedScope};
use crate::engine::operation::Operation;
use crate::engine::preset::Pace;
use crate::engine::resource::Resource;

/// What is fixed of a type.
pub(crate) struct About {
    pub(crate) resource_type: &'static str,
    /// Its oldest api-version.
    pub(crate) first_version: &'static str,
    /// `Subnet` makes `PutSubnetOperation` and `DeleteSubnetOperation`.
    pub(crate) noun: &'static str,
    pub(crate) create: Pace,
    pub(crate) update: Pace,
    pub(crate) delete: Pace,
}

/// What is to be put.
pub(crate) struct Put<'a> {
    pub(crate) id: &'a ResourceId,
    /// The region as ARM spells it.
    pub(crate) location: &'a str,
    /// ARM JSON as it came.
    pub(crate) given: &'a Value,
    /// Nothing for seed and control calls, for which no rule holds.
    pub(crate) call: Option<&'a Call<'a>>,
}

/// What follows a PUT.
pub(crate) type After = Box<dyn FnOnce(&mut Context<'_>)>;

/// What a PUT does once it is accepted.
#[derive(Default)]
pub(crate) struct Plan {
    /// What is stored.
    pub(crate) body: Value,
    /// It is over when it is answered, whatever changes.
    pub(crate) at_once: bool,
    /// More changes than the body.
    pub(crate) more: bool,
    /// What follows once the body is stored and its operation has begun.
    pub(crate) after: Option<After>,
}

impl Plan {
    pub(crate) fn new(body: Value) -> Self {
        Self {
            body,
            ..Self::default()
        }
    }

    /// The same, and `after` follows.
    pub(crate) fn then(mut self, after: impl FnOnce(&mut Context<'_>) + 'static) -> Self {
        self.after = Some(Box::new(after));
        self
    }
}

/// A type whose writes are operations. Nested resources share their parent's etag and region.
pub(crate) trait Written: Sync {
    fn about(&self) -> &About;

    /// What the caller must be allowed to do on the resources that `call` refers to.
    fn needs(&self, _cx: &Context<'_>, _call: &Call<'_>) -> Vec<LinkedScope> {
        vec![]
    }

    /// What a PUT stores, if the rules let it.
    fn plan(&self, cx: &mut Context<'_>, put: &Put<'_>) -> Result<Plan, ArmError>;

    /// Refuses every write to what only another resource may change.
    fn is_open(&self, _found: &Resource) -> Result<(), ArmError> {
        Ok(())
    }

    /// Refuses the deletion of what is in use.
    fn may_go(&self, _cx: &Context<'_>, _call: &Call<'_>, _found: &Resource) -> Result<(), ArmError> {
        Ok(())
    }

    /// Adds what is not stored to `shown`: the body with id, name, type, etag and state.
    fn show(&self, _cx: &Context<'_>, _resource: &Resource, _shown: &mut Value) {}

    /// Why an operation that was accepted fails at its end.
    fn fails(&self, _cx: &Context<'_>, _operation: &Operation) -> Option<ErrorDetail> {
        None
    }

    /// After an operation on it has ended.
    fn ended(&self, _cx: &mut Context<'_>, _operation: &Operation) {}

    /// After it has left the store.
    fn gone(&self, _cx: &mut Context<'_>, _gone: &Resource) {}
}
