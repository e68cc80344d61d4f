//! The allowed principals of an endpoint service are read and changed together. AWS refuses the whole change for one bad
//! principal: then each is sent by itself.

use std::collections::BTreeSet;

use hyperlink_engine::client::{Execution, Reconcile, WriteError, WriteTarget};
use hyperlink_engine::failure::Class;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Calls, Written, accepted};
use crate::api::error::AwsError;
use crate::cloud::Aws;
use crate::kinds::allowed_principals::PrincipalChange;
use crate::slot::Slot;

/// The code for a desired principal in whose place AWS shows a unique id.
const PRINCIPAL_GONE: &str = "PrincipalGone";

impl Calls {
    /// Reads all allowed principals.
    pub(super) async fn allowed_principals(&self, reconcile: Reconcile, slot: &Slot) -> Result<Value, AwsError> {
        let service = self.service_id(slot)?;
        let found = self.ec2.principals(reconcile, &service).await?;
        let arns: Vec<String> = found.into_iter().map(|principal| principal.arn).collect();
        Ok(json!({"AllowedPrincipals": arns}))
    }

    /// Allows those that are missing, and no longer those that are not desired. Fails for those that it is of no use to
    /// send, after all others.
    pub(super) async fn put_principals(
        &self,
        reconcile: Reconcile,
        target: WriteTarget<'_, Aws>,
        body: &Value,
    ) -> Written {
        let slot = target.key;
        let [refused, taken] = self.sent_principals.recent(slot, Instant::now());
        let whole = PrincipalChange::between(target.found, body);
        let missing = whole.added.clone();
        let change = whole.useful(&refused, &taken);
        let is_complete = change.added == missing;
        if !change.is_empty() {
            self.change_principals(reconcile, slot, change).await?;
        }
        match self.sent_principals.refusal(slot, &missing, Instant::now()) {
            Some(error) => Err(error.into()),
            None if is_complete => Ok(accepted(Some(body.clone()), Execution::Complete)),
            None => Err(AwsError::own(Class::Invalid, PRINCIPAL_GONE).into()),
        }
    }

    /// Sends a change; if AWS does not accept it as it is, in parts.
    async fn change_principals(
        &self,
        reconcile: Reconcile,
        slot: &Slot,
        change: PrincipalChange,
    ) -> Result<(), WriteError<AwsError>> {
        match self
            .send_principals(reconcile, slot, &change.added, &change.removed)
            .await
        {
            Err(WriteError::Failed(error))
                if error.class == Class::Invalid && change.added.len() + change.removed.len() > 1 => {}
            other => return other,
        }
        let none = BTreeSet::new();
        if !change.removed.is_empty() {
            self.send_principals(reconcile, slot, &none, &change.removed).await?;
        }
        for arn in change.added {
            match self
                .send_principals(reconcile, slot, &BTreeSet::from([arn]), &none)
                .await
            {
                // It is noted.
                Err(WriteError::Failed(error)) if error.class == Class::Invalid => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Sends one change. A principal is noted as refused only where it was sent alone.
    async fn send_principals(
        &self,
        reconcile: Reconcile,
        slot: &Slot,
        added: &BTreeSet<String>,
        removed: &BTreeSet<String>,
    ) -> Result<(), WriteError<AwsError>> {
        let service = self.service_id(slot)?;
        let added: Vec<String> = added.iter().cloned().collect();
        let removed: Vec<String> = removed.iter().cloned().collect();
        let sent = self.ec2.modify_principals(reconcile, &service, &added, &removed).await;
        let now = Instant::now();
        match &sent {
            Ok(()) => self.sent_principals.note_sent(slot, &added, None, now),
            Err(WriteError::Failed(error)) if error.class == Class::Invalid && added.len() + removed.len() == 1 => {
                self.sent_principals.note_sent(slot, &added, Some(error), now);
            }
            Err(_) => {}
        }
        sent
    }
}
