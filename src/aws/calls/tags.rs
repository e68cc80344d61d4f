//! Tags of what is there already: the last that a put sends, as whoever may change a resource may not always tag it.
//! AWS's own policies allow tags in a create alone.

use std::time::Duration;

use hyperlink_engine::client::{Reconcile, WriteError};
use hyperlink_engine::failure::Class;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Calls;
use super::given_ids::TagsShown;
use crate::api::error::AwsError;
use crate::body::{Tags, tags, text};
use crate::slot::Slot;

/// The wait until a resource is read again that was shown without its tags.
const TAGS_READ_AGAIN: Duration = Duration::from_secs(10);

impl Calls {
    /// Notes which tags a read shows. One that may be behind says so in the body, or is an error.
    pub(super) fn note_tags(&self, slot: &Slot, body: &mut Value) -> Result<(), AwsError> {
        let has_tags = !tags(body).is_empty();
        match self.ids.note_tags(slot, text(body, "Id"), has_tags, Instant::now()) {
            TagsShown::AsTheyAre => {}
            TagsShown::NotYet => body["TagsPending"] = json!(true),
            TagsShown::NotNow => {
                return Err(AwsError {
                    retry_after: Some(TAGS_READ_AGAIN),
                    ..AwsError::own(Class::Busy, "TagsNotShown")
                });
            }
        }
        Ok(())
    }

    /// Adds the tags of a body that a resource lacks, or has with another value. Returns those that it has then.
    ///
    /// # Errors
    /// AWS's, or the gate is shut; none if this put has changed something else: what the resource has to have for it is
    /// missing in the next read, and sent then by itself.
    pub(super) async fn add_tags(
        &self,
        reconcile: Reconcile,
        (found, body): (&Value, &Value),
        is_changed: bool,
    ) -> Result<Tags, WriteError<AwsError>> {
        let (mut all, mut missing) = (tags(found), tags(body));
        missing.retain(|key, value| all.get(key) != Some(value));
        if missing.is_empty() {
            return Ok(all);
        }
        match self.ec2.create_tags(reconcile, text(found, "Id"), &missing).await {
            Ok(()) => all.extend(missing),
            Err(_) if is_changed => {}
            Err(error) => return Err(error),
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests;
