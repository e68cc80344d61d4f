//! Microsoft.Network/privateDnsZones: zones, their links to virtual networks, record sets.
//!
//! The answers and texts are those of recorded traffic. Names and resource groups come back in lower case, as the service
//! stores them.

mod etag;
mod ledger;
mod link_rules;
pub(crate) mod links;
mod names;
pub(crate) mod record;
pub(crate) mod record_sets;
pub(crate) mod resolve;
mod write;
pub(crate) mod zone;

pub(crate) use ledger::Ledger;

use crate::engine::kind::Kind;
use record::RecordType;
use record_sets::{AllRecordSets, RecordSets};
use write::TrackedKind;

/// The types, zones before what is nested in them.
pub(crate) static KINDS: &[&dyn Kind] = &[
    &TrackedKind(zone::Zones),
    &TrackedKind(links::Links),
    &RecordSets(RecordType::Soa),
    &RecordSets(RecordType::A),
    &RecordSets(RecordType::Aaaa),
    &RecordSets(RecordType::Cname),
    &RecordSets(RecordType::Mx),
    &RecordSets(RecordType::Ptr),
    &RecordSets(RecordType::Srv),
    &RecordSets(RecordType::Txt),
    &AllRecordSets,
];
