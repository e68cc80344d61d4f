//! Record sets: which types there are, what their bodies may hold, and how they come back.
//!
//! Pure: takes and gives JSON. Writes replace a set; a PATCH lays its fields over it. Fields of other record types and
//! read-only fields are ignored. It does not know zones' quotas nor other sets of the same name.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Map, Value, json};

use super::names;

/// Seconds; DNS carries a TTL in 31 bits (RFC 2181, section 8).
const LONGEST_TTL: u64 = 2_147_483_647;
/// Characters of one string of a TXT record (RFC 1035, section 3.3), and of all strings of one.
const LONGEST_STRING: usize = 255;
const LONGEST_TXT: usize = 1024;
/// Tags that a record set can have, which it calls metadata:
/// <https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources#limitations>.
const MOST_METADATA: usize = 15;

/// The record types of private DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordType {
    A,
    Aaaa,
    Cname,
    Mx,
    Ptr,
    Soa,
    Srv,
    Txt,
}

impl RecordType {
    /// All types.
    pub(crate) const ALL: [Self; 8] = [
        Self::A,
        Self::Aaaa,
        Self::Cname,
        Self::Mx,
        Self::Ptr,
        Self::Soa,
        Self::Srv,
        Self::Txt,
    ];

    /// The type as ids and DNS write it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::Aaaa => "AAAA",
            Self::Cname => "CNAME",
            Self::Mx => "MX",
            Self::Ptr => "PTR",
            Self::Soa => "SOA",
            Self::Srv => "SRV",
            Self::Txt => "TXT",
        }
    }

    /// The property that holds the records; CNAME and SOA have at most one, the others a list.
    pub(crate) fn property(self) -> &'static str {
        match self {
            Self::A => "aRecords",
            Self::Aaaa => "aaaaRecords",
            Self::Cname => "cnameRecord",
            Self::Mx => "mxRecords",
            Self::Ptr => "ptrRecords",
            Self::Soa => "soaRecord",
            Self::Srv => "srvRecords",
            Self::Txt => "txtRecords",
        }
    }
}

/// The writable properties that a PUT stores, or the service's message. A set holds at most `most` records.
pub(crate) fn put(kind: RecordType, sent: &Value, most: usize) -> Result<Map<String, Value>, String> {
    let mut stored = Map::new();
    let ttl = sent.get("ttl").ok_or("The TTL of the record set is missing.")?;
    stored.insert("ttl".to_owned(), checked_ttl(ttl)?);
    if let Some(metadata) = sent.get("metadata").filter(|value| !value.is_null()) {
        stored.insert("metadata".to_owned(), checked_metadata(metadata)?);
    }
    // A CNAME set without its record is an empty set.
    if kind != RecordType::Cname || !sent[kind.property()].is_null() {
        let records = checked_records(kind, &sent[kind.property()], most)?;
        stored.insert(kind.property().to_owned(), records);
    }
    Ok(stored)
}

/// What is stored after a PATCH over `current`, or the service's message.
pub(crate) fn patch(
    kind: RecordType,
    current: &Value,
    sent: &Value,
    most: usize,
) -> Result<Map<String, Value>, String> {
    let mut laid = json!({});
    for property in ["ttl", "metadata", kind.property()] {
        for source in [current, sent] {
            if let Some(value) = source.get(property) {
                laid[property] = value.clone();
            }
        }
    }
    put(kind, &laid, most)
}

/// The properties as the service answers them: what is stored with the read-only ones.
pub(crate) fn properties(mut shown: Map<String, Value>, relative: &str, zone: &str) -> Map<String, Value> {
    shown.insert("fqdn".to_owned(), json!(names::fqdn(relative, zone)));
    shown.insert("isAutoRegistered".to_owned(), json!(false));
    shown
}

/// The SOA that every new zone has at its apex.
pub(crate) fn first_soa() -> Map<String, Value> {
    let soa = json!({
        "email": "azureprivatedns-host.microsoft.com",
        "expireTime": 2_419_200,
        "host": "azureprivatedns.net",
        "minimumTtl": 10,
        "refreshTime": 3600,
        "retryTime": 300,
        "serialNumber": 1,
    });
    Map::from_iter([("ttl".to_owned(), json!(3600)), ("soaRecord".to_owned(), soa)])
}

fn checked_ttl(ttl: &Value) -> Result<Value, String> {
    match ttl.as_u64() {
        Some(seconds) if seconds <= LONGEST_TTL => Ok(json!(seconds)),
        _ => Err(format!(
            "The TTL {ttl} is not valid. A TTL is a number of seconds from 0 to {LONGEST_TTL}."
        )),
    }
}

fn checked_metadata(metadata: &Value) -> Result<Value, String> {
    let pairs = metadata
        .as_object()
        .ok_or("The metadata of the record set is not an object of strings.")?;
    if pairs.len() > MOST_METADATA {
        return Err(format!(
            "The record set has more than {MOST_METADATA} metadata entries."
        ));
    }
    match pairs.iter().find(|(_, value)| !value.is_string()) {
        Some((key, _)) => Err(format!("The metadata value of '{key}' is not a string.")),
        None => Ok(metadata.clone()),
    }
}

fn checked_records(kind: RecordType, sent: &Value, most: usize) -> Result<Value, String> {
    if matches!(kind, RecordType::Cname | RecordType::Soa) {
        return checked_record(kind, sent);
    }
    let records = match sent {
        Value::Null => return Ok(json!([])),
        Value::Array(records) => records,
        _ => return Err(format!("The property '{}' is not a list.", kind.property())),
    };
    if records.len() > most {
        return Err(format!(
            "The record set has {} records. A record set can hold at most {most} records.",
            records.len()
        ));
    }
    let mut checked: Vec<Value> = Vec::with_capacity(records.len());
    for record in records {
        let record = checked_record(kind, record)?;
        if checked.contains(&record) {
            return Err(format!("The record {record} occurs twice in the record set."));
        }
        checked.push(record);
    }
    Ok(Value::Array(checked))
}

fn checked_record(kind: RecordType, record: &Value) -> Result<Value, String> {
    match kind {
        RecordType::A => {
            let text = text_of(record, "ipv4Address")?;
            let address: Ipv4Addr = text.parse().map_err(|_| not_an_address(text, "IPv4"))?;
            Ok(json!({ "ipv4Address": address.to_string() }))
        }
        RecordType::Aaaa => {
            let text = text_of(record, "ipv6Address")?;
            text.parse::<Ipv6Addr>().map_err(|_| not_an_address(text, "IPv6"))?;
            Ok(json!({ "ipv6Address": text }))
        }
        RecordType::Cname => Ok(json!({ "cname": domain_of(record, "cname")? })),
        RecordType::Ptr => Ok(json!({ "ptrdname": domain_of(record, "ptrdname")? })),
        RecordType::Mx => Ok(json!({
            "preference": number_of(record, "preference", u64::from(u16::MAX))?,
            "exchange": domain_of(record, "exchange")?,
        })),
        RecordType::Srv => Ok(json!({
            "priority": number_of(record, "priority", u64::from(u16::MAX))?,
            "weight": number_of(record, "weight", u64::from(u16::MAX))?,
            "port": number_of(record, "port", u64::from(u16::MAX))?,
            "target": domain_of(record, "target")?,
        })),
        RecordType::Txt => checked_txt(record),
        RecordType::Soa => checked_soa(record),
    }
}

fn checked_txt(record: &Value) -> Result<Value, String> {
    let refused = || {
        format!(
            "The value of a TXT record is not a list of strings of at most {LONGEST_STRING} characters, {LONGEST_TXT} \
             together."
        )
    };
    let parts = record["value"].as_array().ok_or_else(refused)?;
    let mut whole = 0;
    for part in parts {
        let length = part.as_str().map(str::len).filter(|length| *length <= LONGEST_STRING);
        whole += length.ok_or_else(refused)?;
    }
    if parts.is_empty() || whole > LONGEST_TXT {
        return Err(refused());
    }
    Ok(json!({ "value": parts }))
}

/// Host and serial number of the SOA belong to the service; the other fields can be changed.
fn checked_soa(record: &Value) -> Result<Value, String> {
    let mut soa = first_soa().remove("soaRecord").unwrap_or_default();
    if record.get("email").is_some() {
        soa["email"] = json!(text_of(record, "email")?);
    }
    for field in ["refreshTime", "retryTime", "expireTime", "minimumTtl"] {
        if record.get(field).is_some() {
            soa[field] = json!(number_of(record, field, u64::from(u32::MAX))?);
        }
    }
    Ok(soa)
}

fn text_of<'a>(record: &'a Value, field: &str) -> Result<&'a str, String> {
    record[field]
        .as_str()
        .ok_or_else(|| format!("The property '{field}' of the record is missing or not a string."))
}

fn domain_of<'a>(record: &'a Value, field: &str) -> Result<&'a str, String> {
    let name = text_of(record, field)?;
    if names::is_domain(name) {
        Ok(name)
    } else {
        Err(format!("The domain name '{name}' is invalid."))
    }
}

fn number_of(record: &Value, field: &str, most: u64) -> Result<u64, String> {
    let number = record[field].as_u64().filter(|number| *number <= most);
    number.ok_or_else(|| format!("The property '{field}' of the record is not a number from 0 to {most}."))
}

fn not_an_address(text: &str, family: &str) -> String {
    format!("The value '{text}' is not a valid {family} address.")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_put_keeps_ttl_metadata_and_records_and_drops_the_rest() {
        let sent = json!({
            "ttl": 30, "metadata": {"owner": "x"}, "aRecords": [{"ipv4Address": "10.0.0.5", "junk": 1}],
            "fqdn": "lie.", "cnameRecord": {"cname": "x.y"},
        });
        let stored = put(RecordType::A, &sent, 20).unwrap();
        let expected = json!({"ttl": 30, "metadata": {"owner": "x"}, "aRecords": [{"ipv4Address": "10.0.0.5"}]});
        assert_eq!(Value::Object(stored), expected);
    }

    #[test]
    fn a_set_without_records_is_an_empty_list() {
        assert_eq!(
            put(RecordType::A, &json!({"ttl": 1}), 20).unwrap()["aRecords"],
            json!([])
        );
    }

    #[rstest]
    #[case(RecordType::A, json!({"aRecords": []}))]
    #[case(RecordType::A, json!({"ttl": -1}))]
    #[case(RecordType::A, json!({"ttl": 2_147_483_648_u64}))]
    #[case(RecordType::A, json!({"ttl": 1, "metadata": {"a": 1}}))]
    #[case(RecordType::A, json!({"ttl": 1, "aRecords": {"ipv4Address": "10.0.0.5"}}))]
    #[case(RecordType::A, json!({"ttl": 1, "aRecords": [{"ipv4Address": "10.0.0.256"}]}))]
    #[case(RecordType::A, json!({"ttl": 1, "aRecords": [{"ipv4Address": "fd00::1"}]}))]
    #[case(RecordType::A, json!({"ttl": 1, "aRecords": [{"ipv4Address": "10.0.0.5"}, {"ipv4Address": "10.0.0.5"}]}))]
    #[case(RecordType::Aaaa, json!({"ttl": 1, "aaaaRecords": [{"ipv6Address": "10.0.0.5"}]}))]
    #[case(RecordType::Cname, json!({"ttl": 1, "cnameRecord": {"cname": "a b"}}))]
    #[case(RecordType::Mx, json!({"ttl": 1, "mxRecords": [{"preference": 70_000, "exchange": "mail.x"}]}))]
    #[case(RecordType::Srv, json!({"ttl": 1, "srvRecords": [{"priority": 1, "weight": 1, "target": "x.y"}]}))]
    #[case(RecordType::Txt, json!({"ttl": 1, "txtRecords": [{"value": "not a list"}]}))]
    #[case(RecordType::Txt, json!({"ttl": 1, "txtRecords": [{"value": []}]}))]
    #[case(RecordType::Txt, json!({"ttl": 1, "txtRecords": [{"value": ["a".repeat(256)]}]}))]
    #[case(RecordType::Txt, json!({"ttl": 1, "txtRecords": [{"value": vec!["a".repeat(255); 5]}]}))]
    #[case(RecordType::A, json!({"ttl": 1, "metadata": (0..16).map(|n| (n.to_string(), "")).collect::<std::collections::BTreeMap<_, _>>()}))]
    fn bad_record_sets_are_refused(#[case] kind: RecordType, #[case] sent: Value) {
        assert!(put(kind, &sent, 20).is_err());
    }

    #[test]
    fn a_set_holds_no_more_records_than_the_quota() {
        let of = |count: u8| {
            let records: Vec<_> = (0..count)
                .map(|n| json!({"ipv4Address": format!("10.0.0.{n}")}))
                .collect();
            put(RecordType::A, &json!({"ttl": 1, "aRecords": records}), 20)
        };
        assert!(of(20).is_ok());
        assert!(of(21).is_err());
    }

    #[test]
    fn a_patch_keeps_what_it_does_not_name() {
        let current = json!({"ttl": 30, "metadata": {"a": "b"}, "aRecords": [{"ipv4Address": "10.0.0.5"}]});
        let stored = patch(RecordType::A, &current, &json!({"metadata": {"c": "d"}}), 20).unwrap();
        let expected = json!({"ttl": 30, "metadata": {"c": "d"}, "aRecords": [{"ipv4Address": "10.0.0.5"}]});
        assert_eq!(Value::Object(stored), expected);
    }
}
