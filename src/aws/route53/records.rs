//! Records in a hosted zone, and changes to them.

use std::fmt::Write as _;

use hyperlink_engine::client::{Reconcile, WriteError};

use super::names::plain;
use super::{Route53, zone_segment};
use crate::api::action::Action;
use crate::api::error::AwsError;
use crate::api::pages::Page;
use crate::api::request::ServiceRequest;
use crate::wire::form::Form;
use crate::wire::xml::{Element, Malformed, escaped};

/// How many record sets a page has at most.
const PAGE: &str = "300";
/// The namespace of requests.
const NAMESPACE: &str = "https://route53.amazonaws.com/doc/2013-04-01/";

/// The records of one name and type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSet {
    /// The name, in plain form: with `*`, without a dot at the end.
    pub name: String,
    /// `CNAME`, `A` and so on.
    pub kind: String,
    /// The time to live, in seconds; none for an alias.
    pub ttl: Option<u64>,
    /// The values; none for an alias.
    pub values: Vec<String>,
    /// Tells record sets of one name and type apart that a routing policy chooses from; none without one.
    pub set_identifier: Option<String>,
}

/// A change to the records of one name and type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What to do.
    pub kind: ChangeKind,
    /// The records; all of their fields have to match those that are deleted.
    pub records: RecordSet,
}

/// What a change does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// Creates the records; an error if there are any.
    Create,
    /// Creates or replaces the records.
    Upsert,
    /// Deletes the records.
    Delete,
}

impl ChangeKind {
    fn word(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Upsert => "UPSERT",
            Self::Delete => "DELETE",
        }
    }
}

impl Route53 {
    /// Lists all records of a zone.
    ///
    /// # Errors
    /// AWS's. `NoSuchHostedZone`: there is no such zone.
    pub async fn records(&self, reconcile: Reconcile, zone_id: &str) -> Result<Vec<RecordSet>, AwsError> {
        let path = ["hostedzone", zone_segment(zone_id)?, "rrset"];
        let request = |next: &Form| {
            let query = Form::default().with("maxitems", PAGE).followed_by(next);
            ServiceRequest::get(Action::ListResourceRecordSets, &path, query)
        };
        self.0.pages(reconcile, request, records).await
    }

    /// Reads the record of each of these names, whatever its type: a CNAME stands alone. Names next to each other in
    /// the zone cost one request.
    ///
    /// # Errors
    /// AWS's. `NoSuchHostedZone`: there is no such zone.
    pub async fn records_named(
        &self,
        reconcile: Reconcile,
        zone_id: &str,
        names: &[&str],
    ) -> Result<Vec<RecordSet>, AwsError> {
        let mut names: Vec<&str> = names
            .iter()
            .map(|name| name.strip_suffix('.').unwrap_or(name))
            .collect();
        names.sort_by(|one, other| one.rsplit('.').cmp(other.rsplit('.')));
        let mut found: Vec<RecordSet> = Vec::new();
        let mut rest = names.as_slice();
        while let Some((first, others)) = rest.split_first() {
            let (page, is_last) = self.page_from(reconcile, zone_id, first).await?;
            let shown = |name: &str| page.iter().find(|one| one.name.eq_ignore_ascii_case(name));
            found.extend(shown(first).cloned());
            // What a page does not show may be on the next one, unless there is none.
            let on_page = others
                .iter()
                .take_while(|name| is_last || shown(name).is_some())
                .count();
            found.extend(others[..on_page].iter().filter_map(|name| shown(name)).cloned());
            rest = &others[on_page..];
        }
        Ok(found)
    }

    /// Reads a page of records, from this name on; whether it is the last one.
    async fn page_from(
        &self,
        reconcile: Reconcile,
        zone_id: &str,
        name: &str,
    ) -> Result<(Vec<RecordSet>, bool), AwsError> {
        let path = ["hostedzone", zone_segment(zone_id)?, "rrset"];
        let query = Form::default().with("maxitems", PAGE).with("name", name);
        let request = ServiceRequest::get(Action::ListResourceRecordSets, &path, query);
        let page = self.0.read(reconcile, request, records).await?;
        let is_last = page.next.is_none();
        Ok((page.items, is_last))
    }

    /// Changes records: all of these changes, or none.
    ///
    /// # Errors
    /// AWS's, or the gate is shut. `InvalidChangeBatch`: the records are not what the changes suppose.
    pub async fn change_records(
        &self,
        reconcile: Reconcile,
        zone_id: &str,
        changes: &[Change],
    ) -> Result<(), WriteError<AwsError>> {
        // Route 53's own path of this action ends in a slash.
        let path = ["hostedzone", zone_segment(zone_id)?, "rrset", ""];
        let request = ServiceRequest::post(Action::ChangeResourceRecordSets, &path, batch(changes));
        let accepted = |root: &Element| root.required_child("ChangeInfo").map(|_| ());
        self.0.write(reconcile, request, accepted).await
    }
}

fn records(root: &Element) -> Result<Page<RecordSet>, Malformed> {
    let items = root.items("ResourceRecordSets", "ResourceRecordSet").map(|item| {
        let values = item.items("ResourceRecords", "ResourceRecord");
        Ok(RecordSet {
            name: plain(&item.required("Name")?),
            kind: item.required("Type")?,
            ttl: item.number("TTL")?,
            values: values
                .map(|record| record.required("Value"))
                .collect::<Result<_, _>>()?,
            set_identifier: item.optional("SetIdentifier"),
        })
    });
    let items = items.collect::<Result<_, _>>()?;
    Ok(Page {
        items,
        next: next(root)?,
    })
}

/// Where the next page begins: a name, a type, and if a routing policy chooses among several, an identifier.
fn next(root: &Element) -> Result<Option<Form>, Malformed> {
    if !root.flag("IsTruncated")? {
        return Ok(None);
    }
    let first = Form::default().with("name", root.required("NextRecordName")?);
    let rest = [("NextRecordType", "type"), ("NextRecordIdentifier", "identifier")];
    let given = rest
        .into_iter()
        .filter_map(|(element, parameter)| Some((parameter, root.optional(element)?)));
    Ok(Some(
        given.fold(first, |form, (parameter, value)| form.with(parameter, value)),
    ))
}

/// The document of a batch of changes.
fn batch(changes: &[Change]) -> String {
    let changes: String = changes.iter().map(change).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ChangeResourceRecordSetsRequest xmlns=\"{NAMESPACE}\"><ChangeBatch>\
         <Changes>{changes}</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>"
    )
}

/// The elements of a change, in the order that Route 53's schema has.
fn change(change: &Change) -> String {
    let records = &change.records;
    let mut xml = format!(
        "<Change><Action>{}</Action><ResourceRecordSet><Name>{}</Name><Type>{}</Type>",
        change.kind.word(),
        escaped(&records.name),
        escaped(&records.kind)
    );
    if let Some(identifier) = &records.set_identifier {
        // Writing to a String cannot fail.
        let _ = write!(xml, "<SetIdentifier>{}</SetIdentifier>", escaped(identifier));
    }
    if let Some(ttl) = records.ttl {
        let _ = write!(xml, "<TTL>{ttl}</TTL>");
    }
    xml.push_str("<ResourceRecords>");
    for value in &records.values {
        let _ = write!(
            xml,
            "<ResourceRecord><Value>{}</Value></ResourceRecord>",
            escaped(value)
        );
    }
    xml.push_str("</ResourceRecords></ResourceRecordSet></Change>");
    xml
}
