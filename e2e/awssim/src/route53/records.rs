//! ListResourceRecordSets: in the order of names, from a name on.

use super::zone::RecordSet;
use super::{invalid, max_items, names, truncated};
use crate::engine::call::{Answered, Call};
use crate::wire::xml::{Xml, list, text};

fn show(record: &RecordSet) -> Vec<Xml> {
    let values = record.values.iter().map(|value| vec![text("Value", value)]);
    vec![
        text("Name", names::shown(&record.name)),
        text("Type", &record.kind),
        text("TTL", record.ttl),
        list("ResourceRecords", "ResourceRecord", values),
    ]
}

pub(super) fn list_records(call: &mut Call<'_>, id: &str) -> Answered {
    call.authorize(&[call.zone_arn(id)])?;
    let size = max_items(call, 300)?;
    let name = call.params.text("name").map(|name| names::order(&names::plain(name)));
    let kind = call.params.text("type").unwrap_or_default().to_owned();
    if name.is_none() && !kind.is_empty() {
        return Err(invalid("type needs name"));
    }
    let first = (name.unwrap_or_default(), kind);
    let zone = call.zone(id)?;
    let key = |record: &RecordSet| (names::order(&record.name), record.kind.clone());
    let rest: Vec<&RecordSet> = zone.records.iter().filter(|record| key(record) >= first).collect();
    let shown = list(
        "ResourceRecordSets",
        "ResourceRecordSet",
        rest.iter().take(size).map(|record| show(record)),
    );
    let mut answer = vec![shown];
    answer.extend(truncated(rest.len() > size, size));
    if let Some(next) = rest.get(size) {
        answer.extend([
            text("NextRecordName", names::shown(&next.name)),
            text("NextRecordType", &next.kind),
        ]);
    }
    Ok(answer)
}
