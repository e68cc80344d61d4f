//! Hosted zones, record sets and changes, as they are kept.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::names;
use crate::ec2::vpc::long_ago;
use crate::engine::call::Call;
use crate::wire::error::AwsError;

/// A hosted zone.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostedZone {
    pub(crate) account: String,
    pub(crate) name: String,
    #[serde(default = "yes")]
    pub(crate) private: bool,
    #[serde(default)]
    pub(crate) vpcs: Vec<ZoneVpc>,
    #[serde(default)]
    pub(crate) records: Vec<RecordSet>,
    #[serde(default)]
    pub(crate) comment: String,
    /// The next change is refused before this.
    #[serde(default = "long_ago")]
    pub(crate) busy_until: Timestamp,
}

fn yes() -> bool {
    true
}

/// A VPC that resolves by a zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ZoneVpc {
    pub(crate) id: String,
    pub(crate) region: String,
}

/// A record set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordSet {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) ttl: u32,
    pub(crate) values: Vec<String>,
}

/// A change of records.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    pub(crate) account: String,
    pub(crate) submitted: Timestamp,
    pub(crate) in_sync_at: Timestamp,
    pub(crate) comment: String,
}

impl HostedZone {
    /// Names in their kept form, records in their order, with those that every zone has.
    pub(crate) fn normalize(&mut self) {
        self.name = names::plain(&self.name);
        let apex = |kind: &str, ttl, values: &[&str]| RecordSet {
            name: self.name.clone(),
            kind: kind.to_owned(),
            ttl,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let servers = [
            "ns-0.awsdns-00.com.",
            "ns-512.awsdns-00.net.",
            "ns-1024.awsdns-00.org.",
            "ns-1536.awsdns-00.co.uk.",
        ];
        let authority = "ns-0.awsdns-00.com. awsdns-hostmaster.amazon.com. 1 7200 900 1209600 86400";
        for usual in [apex("NS", 172_800, &servers), apex("SOA", 900, &[authority])] {
            if !self
                .records
                .iter()
                .any(|known| known.kind == usual.kind && names::plain(&known.name) == self.name)
            {
                self.records.push(usual);
            }
        }
        for record in &mut self.records {
            record.name = names::plain(&record.name);
        }
        self.sort();
    }

    pub(super) fn sort(&mut self) {
        self.records
            .sort_by_key(|record| (names::order(&record.name), record.kind.clone()));
    }
}

impl Call<'_> {
    /// A zone of the caller's account.
    pub(super) fn zone(&self, id: &str) -> Result<&HostedZone, AwsError> {
        let zone = self.state.zones.get(id).ok_or_else(|| {
            let message = format!("No hosted zone found with ID: {id}");
            AwsError::new(404, "NoSuchHostedZone", message)
        })?;
        match zone.account == self.account() {
            true => Ok(zone),
            false => {
                let message = format!("User: {} is not authorized to access this resource", self.caller.arn);
                Err(AwsError::new(403, "AccessDenied", message))
            }
        }
    }

    /// The ARN of a zone.
    pub(super) fn zone_arn(&self, id: &str) -> String {
        format!("arn:{}:route53:::hostedzone/{id}", self.caller.partition)
    }
}
