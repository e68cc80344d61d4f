//! Tags of tracked resources: what ARM lets through, and PATCH, which replaces them.
//!
//! Limits: <https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources#limitations>.

use serde_json::Value;

use super::context::Context;
use super::error::ArmError;
use super::kind::{Call, Kind, Reply};

const LONGEST_NAME: usize = 512;
const LONGEST_VALUE: usize = 256;
const RESERVED: &str = "<>%&\\?/";

/// Refuses tags that are not an object of at most `most` strings with names and values as ARM allows them.
pub(crate) fn check(tags: &Value, most: usize) -> Result<(), ArmError> {
    let refuse = |code: &str, message: String| Err(ArmError::gateway(400, code, message));
    if tags.is_null() {
        return Ok(());
    }
    let Some(pairs) = tags.as_object().filter(|pairs| pairs.values().all(Value::is_string)) else {
        return Err(ArmError::invalid_content(
            "The request content was invalid and could not be deserialized: 'tags' is not an object of strings.",
        ));
    };
    if pairs.len() > most {
        let message = format!(
            "The resource has {} tags. It can have at most {most} tags.",
            pairs.len()
        );
        return refuse("TooManyTags", message);
    }
    for (name, value) in pairs {
        if name
            .chars()
            .any(|letter| RESERVED.contains(letter) || letter.is_control())
        {
            let message =
                format!("The tag names '{name}' have reserved characters '<,>,%,&,\\,?,/' or control characters.");
            return refuse("InvalidTagNameCharacters", message);
        }
        if name.is_empty() || name.chars().count() > LONGEST_NAME {
            let message = format!(
                "Tag key too large. Following tag name '{name}' exceeded the maximum length. Maximum allowed length for tag \
                 name - '{LONGEST_NAME}' characters."
            );
            return refuse("InvalidTagName", message);
        }
        let value = value.as_str().unwrap_or_default();
        if value.chars().count() > LONGEST_VALUE {
            let message = format!(
                "Tag value too large. Following tag value '{value}' exceeded the maximum length. Maximum allowed length for \
                 tag value - '{LONGEST_VALUE}' characters."
            );
            return refuse("InvalidTagValueLength", message);
        }
    }
    Ok(())
}

/// PATCH of a tracked resource: replaces its tags at once and leaves everything else.
pub(crate) fn patch<K: Kind + ?Sized>(cx: &mut Context<'_>, call: &Call<'_>, kind: &K) -> Result<Reply, ArmError> {
    let known = cx.find(&call.id)?;
    let tags = call
        .body
        .get("tags")
        .filter(|tags| **tags != known.body["tags"])
        .cloned();
    let changed = tags.is_some();
    if let Some(tags) = tags {
        let etag = cx.weak_etag();
        if let Some(found) = cx.state.store.get_mut(&call.id) {
            found.body["tags"] = tags;
            found.etag = etag;
        }
    }
    let mut reply = Reply::new(200).body(kind.render(cx, cx.find(&call.id)?));
    reply.changed = changed;
    Ok(reply)
}
