//! Tags of EC2's resources.

use hyperlink_engine::client::{Reconcile, WriteError};

use super::{Ec2, done};
use crate::api::action::Action;
use crate::api::error::AwsError;
use crate::api::request::ServiceRequest;
use crate::wire::form::Form;
use crate::wire::xml::{Element, Malformed};

/// Tags: keys with values. No key is there twice.
pub type Tags = std::collections::BTreeMap<String, String>;

impl Ec2 {
    /// Adds tags to a resource; a key that it has gets the new value. No other tag is removed.
    ///
    /// # Errors
    /// AWS's, or the gate is shut.
    pub async fn create_tags(&self, reconcile: Reconcile, id: &str, tags: &Tags) -> Result<(), WriteError<AwsError>> {
        let form = Form::default()
            .with_list("ResourceId", [id])
            .with_tags("Tag", &list(tags));
        let request = ServiceRequest::query(Action::CreateTags, &form);
        self.0.write(reconcile, request, done).await
    }
}

/// The form with the tags that a new resource of this type gets.
pub(super) fn with_new_tags(form: Form, resource_type: &str, tags: &Tags) -> Form {
    if tags.is_empty() {
        return form;
    }
    form.with("TagSpecification.1.ResourceType", resource_type)
        .with_tags("TagSpecification.1.Tag", &list(tags))
}

fn list(tags: &Tags) -> Vec<(String, String)> {
    tags.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The tags of a resource. A tag may have no value.
pub(super) fn tags(resource: &Element) -> Result<Tags, Malformed> {
    let items = resource.items("tagSet", "item");
    items
        .map(|tag| Ok((tag.required("key")?, tag.optional("value").unwrap_or_default())))
        .collect()
}
