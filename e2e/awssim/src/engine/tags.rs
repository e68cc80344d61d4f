//! Tags: at most 50 per thing, no key of AWS's own, none twice.

use std::collections::BTreeMap;

use crate::wire::error::AwsError;
use crate::wire::params::Params;
use crate::wire::xml::{Xml, list, text};

/// Tags by key.
pub(crate) type Tags = BTreeMap<String, String>;

/// AWS's limit per thing.
const MOST: usize = 50;

/// Reads `Tag.1.Key`, `Tag.1.Value`, ….
pub(crate) fn read(params: &Params) -> Result<Tags, AwsError> {
    let mut tags = Tags::new();
    for tag in params.structures("Tag") {
        let key = tag.required("Key")?;
        let value = tag.text("Value").unwrap_or_default();
        if key.to_ascii_lowercase().starts_with("aws:") {
            let message = "Tag keys starting with 'aws:' are reserved for internal use";
            return Err(AwsError::bad("InvalidParameterValue", message));
        }
        if key.chars().count() > 128 || value.chars().count() > 256 {
            return Err(AwsError::invalid_value(key, "Tag"));
        }
        if tags.insert(key.to_owned(), value.to_owned()).is_some() {
            let message = format!("Duplicate tag key '{key}' specified.");
            return Err(AwsError::bad("InvalidParameterValue", message));
        }
    }
    fits(tags.len())?;
    Ok(tags)
}

fn fits(count: usize) -> Result<(), AwsError> {
    if count <= MOST {
        return Ok(());
    }
    let message = format!("The maximum number of Tags for a resource has been reached: {MOST}");
    Err(AwsError::bad("TagLimitExceeded", message))
}

/// The tags of a create call's `TagSpecification`s, which must be for `resource_type`.
pub(crate) fn specified(params: &Params, resource_type: &str) -> Result<Tags, AwsError> {
    let mut tags = Tags::new();
    let mut types = Vec::new();
    for specification in params.structures("TagSpecification") {
        let given = specification.required("ResourceType")?.to_owned();
        if given != resource_type || types.contains(&given) {
            let message = format!("'{given}' is not a valid taggable resource type for this operation.");
            return Err(AwsError::bad("InvalidParameterValue", message));
        }
        types.push(given);
        tags.extend(read(&specification)?);
    }
    Ok(tags)
}

/// Adds tags to those of a thing.
pub(crate) fn add(to: &mut Tags, tags: &Tags) -> Result<(), AwsError> {
    let new = tags.keys().filter(|key| !to.contains_key(*key)).count();
    fits(to.len() + new)?;
    to.extend(tags.clone());
    Ok(())
}

pub(crate) fn show(tags: &Tags) -> Xml {
    let pair = |(key, value): (&String, &String)| vec![text("key", key), text("value", value)];
    list("tagSet", "item", tags.iter().map(pair))
}
