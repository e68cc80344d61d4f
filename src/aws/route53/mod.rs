//! Route 53: hosted zones and the records in them.
//!
//! API: <https://docs.aws.amazon.com/Route53/latest/APIReference/>

pub mod hosted_zone;
mod names;
mod records;
mod zones;

use hyperlink_engine::failure::Class;

use crate::api::client::Client;
use crate::api::error::AwsError;

pub use records::{Change, ChangeKind, RecordSet};

/// Route 53's calls, as the identity of a client.
#[derive(Clone)]
pub struct Route53(pub Client);

/// The longest id of a hosted zone.
const MAX_ID: usize = 32;

/// The id of a hosted zone as it is part of a path. It may come from a custom resource, so nothing else is accepted.
fn zone_segment(id: &str) -> Result<&str, AwsError> {
    let id = id.strip_prefix("/hostedzone/").unwrap_or(id);
    if (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        Ok(id)
    } else {
        Err(AwsError::own(Class::Invalid, "InvalidZoneId"))
    }
}

#[cfg(test)]
mod tests;
