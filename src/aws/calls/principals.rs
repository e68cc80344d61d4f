//! The allowed principals of an endpoint service are read and changed together.

use hyperlink_engine::client::{Execution, Reconcile, WriteTarget};
use serde_json::{Value, json};

use super::{Calls, Written, accepted};
use crate::api::error::AwsError;
use crate::cloud::Aws;
use crate::kinds::allowed_principals::PrincipalChange;
use crate::slot::Slot;

impl Calls {
    /// Reads all allowed principals.
    pub(super) async fn allowed_principals(&self, reconcile: Reconcile, slot: &Slot) -> Result<Value, AwsError> {
        let service = self.service_id(slot)?;
        let found = self.ec2.principals(reconcile, &service).await?;
        let arns: Vec<String> = found.into_iter().map(|principal| principal.arn).collect();
        Ok(json!({"AllowedPrincipals": arns}))
    }

    /// Allows those that are missing, and no longer those that are not desired.
    pub(super) async fn put_principals(
        &self,
        reconcile: Reconcile,
        target: WriteTarget<'_, Aws>,
        body: &Value,
    ) -> Written {
        let service = self.service_id(target.key)?;
        let change = PrincipalChange::between(target.found, body);
        let (added, removed): (Vec<_>, Vec<_>) =
            (change.added.into_iter().collect(), change.removed.into_iter().collect());
        self.ec2
            .modify_principals(reconcile, &service, &added, &removed)
            .await?;
        Ok(accepted(Some(body.clone()), Execution::Complete))
    }
}
