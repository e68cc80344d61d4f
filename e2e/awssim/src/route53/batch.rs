//! ChangeResourceRecordSets: all changes of a batch or none. GetChange.

use super::zone::{Change, HostedZone, RecordSet};
use super::{invalid, names};
use crate::engine::call::{Answered, Call};
use crate::engine::preset::Phase;
use crate::engine::state::seconds;
use crate::wire::error::AwsError;
use crate::wire::xml::{self, Xml, group, text};

/// AWS's limit of records in one batch; an UPSERT counts twice.
const MOST: usize = 1000;

fn refused(message: &str) -> AwsError {
    AwsError::bad("InvalidChangeBatch", format!("[{message}]"))
}

pub(super) fn change(call: &mut Call<'_>, id: &str, body: &[u8]) -> Answered {
    call.authorize(&[call.zone_arn(id)])?;
    let mut zone = call.zone(id)?.clone();
    let request = xml::parse(body)?;
    let batch = request
        .child("ChangeBatch")
        .filter(|_| request.name == "ChangeResourceRecordSetsRequest");
    let batch = batch.ok_or_else(|| invalid("A ChangeBatch is needed"))?;
    let changes = batch
        .child("Changes")
        .map(|changes| changes.children.as_slice())
        .unwrap_or_default();
    if changes.is_empty() {
        return Err(invalid("A ChangeBatch needs at least one change"));
    }
    if zone.busy_until > call.now {
        let message = "The request was rejected because Route 53 was still processing a prior request.";
        return Err(AwsError::bad("PriorRequestNotComplete", message));
    }
    let mut count = 0;
    for change in changes {
        let action = change.value("Action").unwrap_or_default();
        let record = read(change)?;
        count += record.values.len() * if action == "UPSERT" { 2 } else { 1 };
        apply(&mut zone, action, record)?;
    }
    if count > MOST || zone.records.len() > call.state.quotas(&zone.account).records_per_zone {
        return Err(refused("Number of records limit exceeded"));
    }
    zone.sort();
    zone.busy_until = call.now + seconds(call.state.switches.zone_busy_s);
    let change_id = format!("C{:016X}", call.state.random.bits());
    let change = Change {
        account: call.caller.account.clone(),
        submitted: call.now,
        in_sync_at: call.now + call.state.preset.lasts(Phase::RecordChange),
        comment: batch.value("Comment").unwrap_or_default().to_owned(),
    };
    let shown = show(call, &change_id, &change);
    call.state.changes.insert(change_id, change);
    call.state.zones.insert(id.to_owned(), zone);
    call.changed = true;
    Ok(shown)
}

/// Reads the record set of a change.
fn read(change: &Xml) -> Result<RecordSet, AwsError> {
    let set = change
        .child("ResourceRecordSet")
        .ok_or_else(|| invalid("A change needs a ResourceRecordSet"))?;
    let (Some(name), Some(kind)) = (set.value("Name"), set.value("Type")) else {
        return Err(invalid("A ResourceRecordSet needs Name and Type"));
    };
    let known = ["Name", "Type", "TTL", "ResourceRecords"];
    if let Some(other) = set.children.iter().find(|child| !known.contains(&child.name.as_str())) {
        return Err(invalid(&format!("{} is not supported", other.name)));
    }
    if !["A", "AAAA", "CAA", "CNAME", "MX", "NS", "PTR", "SOA", "SRV", "TXT"].contains(&kind) {
        return Err(invalid(&format!("The type {kind} is not supported")));
    }
    let ttl = set
        .value("TTL")
        .and_then(|ttl| ttl.parse().ok())
        .filter(|ttl| *ttl <= 2_147_483_647_u32);
    let ttl = ttl.ok_or_else(|| {
        refused(&format!(
            "Missing field 'TTL' in Change with [Action={kind}, Name={name}]"
        ))
    })?;
    let records = set
        .child("ResourceRecords")
        .map(|records| records.children.as_slice())
        .unwrap_or_default();
    let values: Vec<String> = records
        .iter()
        .filter_map(|record| record.value("Value"))
        .map(str::to_owned)
        .collect();
    if values.is_empty() || values.iter().any(String::is_empty) {
        return Err(invalid("A ResourceRecordSet needs values"));
    }
    let mut unique = values.clone();
    unique.sort_unstable();
    unique.dedup();
    if unique.len() < values.len() {
        return Err(refused(&format!("Duplicate Resource Record: '{}'", values.join(","))));
    }
    Ok(RecordSet {
        name: names::plain(name),
        kind: kind.to_owned(),
        ttl,
        values,
    })
}

fn apply(zone: &mut HostedZone, action: &str, record: RecordSet) -> Result<(), AwsError> {
    let (name, kind) = (names::shown(&record.name), record.kind.clone());
    let of = format!("resource record set [name='{name}', type='{kind}']");
    let position = zone
        .records
        .iter()
        .position(|known| known.name == record.name && known.kind == record.kind);
    match (action, position) {
        ("CREATE", Some(_)) => Err(refused(&format!("Tried to create {of} but it already exists"))),
        ("DELETE", None) => Err(refused(&format!("Tried to delete {of} but it was not found"))),
        ("DELETE", Some(_)) if record.name == zone.name && ["NS", "SOA"].contains(&kind.as_str()) => {
            Err(refused(&format!("A HostedZone must contain exactly one {kind} record")))
        }
        ("DELETE", Some(at)) => {
            let sorted = |record: &RecordSet| {
                let mut values = record.values.clone();
                values.sort_unstable();
                values
            };
            let known = &zone.records[at];
            if known.ttl != record.ttl || sorted(known) != sorted(&record) {
                let message = format!("Tried to delete {of} but the values provided do not match the current values");
                return Err(refused(&message));
            }
            zone.records.remove(at);
            Ok(())
        }
        ("CREATE" | "UPSERT", at) => {
            fits(zone, &record)?;
            match at {
                Some(at) => zone.records[at] = record,
                None => zone.records.push(record),
            }
            Ok(())
        }
        _ => Err(invalid(&format!(
            "The action '{action}' is not CREATE, DELETE or UPSERT"
        ))),
    }
}

/// Refuses what may not stand in the zone.
fn fits(zone: &HostedZone, record: &RecordSet) -> Result<(), AwsError> {
    let (name, kind) = (names::shown(&record.name), &record.kind);
    if !names::is_in(&record.name, &zone.name) {
        return Err(refused(&format!(
            "RRSet with DNS name {name} is not permitted in zone {}",
            zone.name
        )));
    }
    let label = |label: &str| (1..=63).contains(&label.len());
    if record.name.len() > 255 || !record.name.trim_end_matches('.').split('.').all(label) {
        return Err(refused(&format!(
            "FATAL problem: DomainLabelEmpty or too long encountered with '{name}'"
        )));
    }
    if kind == "CNAME" && record.name == zone.name {
        return Err(refused(&format!(
            "RRSet of type CNAME with DNS name {name} is not permitted at apex in zone {}",
            zone.name
        )));
    }
    if kind == "CNAME" && record.values.len() > 1 {
        return Err(refused(&format!(
            "RRSet of type CNAME with DNS name {name} has more than one value"
        )));
    }
    let others = zone
        .records
        .iter()
        .filter(|known| known.name == record.name && known.kind != *kind);
    if others.into_iter().any(|known| kind == "CNAME" || known.kind == "CNAME") {
        let message = format!(
            "RRSet of type {kind} with DNS name {name} is not permitted as it conflicts with other records with the \
             same DNS name in zone {}",
            zone.name
        );
        return Err(refused(&message));
    }
    Ok(())
}

pub(super) fn get_change(call: &mut Call<'_>, id: &str) -> Answered {
    call.authorize(&[format!("arn:{}:route53:::change/{id}", call.caller.partition)])?;
    let found = call
        .state
        .changes
        .get(id)
        .filter(|change| change.account == call.account());
    match found {
        Some(change) => Ok(show(call, id, change)),
        None => {
            let message = format!("Could not find resource with ID: {id}");
            Err(AwsError::new(404, "NoSuchChange", message))
        }
    }
}

fn show(call: &Call<'_>, id: &str, change: &Change) -> Vec<Xml> {
    let status = if change.in_sync_at <= call.now {
        "INSYNC"
    } else {
        "PENDING"
    };
    let mut info = vec![
        text("Id", format!("/change/{id}")),
        text("Status", status),
        text("SubmittedAt", change.submitted.strftime("%Y-%m-%dT%H:%M:%S.000Z")),
    ];
    if !change.comment.is_empty() {
        info.push(text("Comment", &change.comment));
    }
    vec![group("ChangeInfo", info)]
}
