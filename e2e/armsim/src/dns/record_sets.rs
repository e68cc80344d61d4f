//! Record sets of private DNS zones: synchronous, each type a nested type of its own, and the list over all of them.

use serde_json::{Map, Value, json};

use super::etag::{Condition, Unmet};
use super::record::{self, RecordType};
use super::write::{FIRST_VERSION, PAGE};
use super::{links, names, write};
use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Kind, Reply, Stack};
use crate::engine::page::page;
use crate::engine::resource::{Resource, Store};
use http::Method;

/// Microsoft.Network/privateDnsZones/{A, AAAA, …}.
pub(crate) struct RecordSets(pub(crate) RecordType);

/// Microsoft.Network/privateDnsZones/ALL: only a list.
pub(crate) struct AllRecordSets;

/// The zone's record sets of all types, the order that of their ids.
pub(crate) fn of<'a>(store: &'a Store, zone: &ResourceId) -> impl Iterator<Item = &'a Resource> {
    store.below(zone).filter(|nested| nested.resource_type != links::TYPE)
}

/// The id of a zone's record set, as it is stored.
pub(crate) fn id_of(zone: &ResourceId, kind: RecordType, name: &str) -> ResourceId {
    write::stored(&zone.child(kind.as_str(), name), RecordSets(kind).resource_type())
}

/// Puts a record set under a new etag.
pub(crate) fn store(cx: &mut Context<'_>, kind: RecordType, id: &ResourceId, properties: Map<String, Value>) {
    let etag = cx.guid();
    cx.store_with_etag(
        RecordSets(kind).resource_type(),
        id,
        json!({ "properties": properties }),
        etag,
    );
}

impl Kind for RecordSets {
    fn resource_type(&self) -> &'static str {
        match self.0 {
            RecordType::A => "Microsoft.Network/privateDnsZones/A",
            RecordType::Aaaa => "Microsoft.Network/privateDnsZones/AAAA",
            RecordType::Cname => "Microsoft.Network/privateDnsZones/CNAME",
            RecordType::Mx => "Microsoft.Network/privateDnsZones/MX",
            RecordType::Ptr => "Microsoft.Network/privateDnsZones/PTR",
            RecordType::Soa => "Microsoft.Network/privateDnsZones/SOA",
            RecordType::Srv => "Microsoft.Network/privateDnsZones/SRV",
            RecordType::Txt => "Microsoft.Network/privateDnsZones/TXT",
        }
    }

    fn first_version(&self) -> &'static str {
        FIRST_VERSION
    }

    fn stack(&self) -> Stack {
        Stack::PrivateDns
    }

    fn get(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let found = self.known(cx, call)?.ok_or_else(|| missing(&call.id))?;
        Ok(Reply::new(200).body(show(found)).etag(&found.etag))
    }

    fn list(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        list(cx, call, |set| set.resource_type == self.resource_type())
    }

    fn put(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let found = self.known(cx, call)?;
        let zone = call.id.parent().unwrap_or_else(|| call.id.clone());
        names::record(self.0, call.id.name(), zone.name()).map_err(bad_request)?;
        let most = cx.state.quotas(zone.subscription()).records_per_set;
        let properties = record::put(self.0, &call.body["properties"], most).map_err(bad_request)?;
        check_condition(call, found)?;
        let status = if found.is_some() { 200 } else { 201 };
        if found.is_none() {
            self.check_room(cx, &zone, call.id.name())?;
        }
        self.write(cx, call, properties, status)
    }

    fn patch(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let found = self.known(cx, call)?.ok_or_else(|| missing(&call.id))?;
        check_condition(call, Some(found))?;
        let current = &found.body["properties"];
        let most = cx.state.quotas(call.id.subscription()).records_per_set;
        let properties = record::patch(self.0, current, &call.body["properties"], most).map_err(bad_request)?;
        self.write(cx, call, properties, 200)
    }

    fn delete(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let Some(found) = self.known(cx, call)? else {
            return Ok(Reply::new(204));
        };
        check_condition(call, Some(found))?;
        if self.0 == RecordType::Soa {
            return Err(bad_request(
                "The SOA record set goes with its zone and cannot be deleted.".to_owned(),
            ));
        }
        cx.remove(&call.id);
        Ok(Reply::new(200).changed())
    }

    fn render(&self, _cx: &Context<'_>, set: &Resource) -> Value {
        show(set)
    }

    fn install(&self, cx: &mut Context<'_>, id: &ResourceId, body: Value) -> Result<(), ArmError> {
        let mut sent = body["properties"].clone();
        if sent["ttl"].is_null() {
            sent["ttl"] = json!(3600);
        }
        let properties = record::put(self.0, &sent, usize::MAX).map_err(bad_request)?;
        store(cx, self.0, &write::stored(id, self.resource_type()), properties);
        Ok(())
    }
}

impl RecordSets {
    fn write(
        &self,
        cx: &mut Context<'_>,
        call: &Call<'_>,
        properties: Map<String, Value>,
        status: u16,
    ) -> Result<Reply, ArmError> {
        store(cx, self.0, &write::stored(&call.id, self.resource_type()), properties);
        let written = cx.find(&call.id)?;
        Ok(Reply::new(status).body(show(written)).etag(&written.etag).changed())
    }

    /// The record set, if its zone is there.
    fn known<'a>(&self, cx: &'a Context<'_>, call: &Call<'_>) -> Result<Option<&'a Resource>, ArmError> {
        let Some(zone) = call.id.parent().filter(|zone| cx.state.store.get(zone).is_none()) else {
            return Ok(cx.state.store.get(&call.id));
        };
        let action = match *call.method {
            Method::GET | Method::HEAD => "read",
            Method::DELETE => "delete",
            _ => "write",
        };
        let message = format!(
            "Failed to perform '{action}' on resource(s) of type 'privateDnsZones/{}', because the parent resource '{zone}' \
             could not be found.",
            self.0.as_str()
        );
        Err(ArmError::gateway(404, "ParentResourceNotFound", message))
    }

    /// What the zone's other record sets forbid: more of them than the quota, and others beside a CNAME.
    fn check_room(&self, cx: &Context<'_>, zone: &ResourceId, name: &str) -> Result<(), ArmError> {
        let there = |kind: &RecordType| cx.state.store.get(&id_of(zone, *kind, name)).is_some();
        if self.0 == RecordType::Cname && RecordType::ALL.iter().any(there) {
            return Err(conflict(
                "The CNAME record could not be created because another record with the same name already exists in this \
                 zone.",
            ));
        }
        if there(&RecordType::Cname) {
            return Err(conflict(
                "The record could not be created because a CNAME record with the same name already exists in this zone.",
            ));
        }
        let most = cx.state.quotas(zone.subscription()).record_sets_per_zone;
        if of(&cx.state.store, zone).count() >= most {
            return Err(bad_request(format!(
                "The zone '{}' can have at most {most} record sets.",
                zone.name()
            )));
        }
        Ok(())
    }
}

impl Kind for AllRecordSets {
    fn resource_type(&self) -> &'static str {
        "Microsoft.Network/privateDnsZones/ALL"
    }

    fn first_version(&self) -> &'static str {
        FIRST_VERSION
    }

    fn stack(&self) -> Stack {
        Stack::PrivateDns
    }

    fn list(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        list(cx, call, |_| true)
    }
}

/// A record set as it is answered.
fn show(set: &Resource) -> Value {
    let zone = set.id.parent();
    let stored = set.body["properties"].as_object().cloned().unwrap_or_default();
    json!({
        "id": set.id,
        "name": set.id.name(),
        "type": set.resource_type,
        "etag": set.etag,
        "properties": record::properties(stored, set.id.name(), zone.as_ref().map_or("", |zone| zone.name())),
    })
}

fn list(cx: &Context<'_>, call: &Call<'_>, is_listed: impl Fn(&Resource) -> bool) -> Result<Reply, ArmError> {
    let suffix = call
        .parameter("$recordsetnamesuffix")
        .filter(|suffix| !suffix.is_empty());
    let suffix = suffix.map(|suffix| format!(".{}", suffix.to_ascii_lowercase()));
    let found = of(&cx.state.store, &call.id)
        .filter(|set| is_listed(set) && suffix.as_deref().is_none_or(|suffix| set.id.name().ends_with(suffix)));
    // By name, then by type.
    let key = |set: &Resource| format!("{} {}", set.id.name(), set.resource_type);
    let mut found: Vec<(String, &Resource)> = found.map(|set| (key(set), set)).collect();
    found.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    page(call, found, PAGE, show)
}

/// Record sets are not known to ARM: the service itself reports that one is missing.
fn missing(id: &ResourceId) -> ArmError {
    let message = format!(
        "The resource record '{}' does not exist in resource group '{}' of subscription '{}'.",
        id.name(),
        id.resource_group().unwrap_or_default().to_ascii_lowercase(),
        id.subscription()
    );
    ArmError::service(404, "NotFound", message).unwrapped()
}

fn check_condition(call: &Call<'_>, found: Option<&Resource>) -> Result<(), ArmError> {
    let condition = Condition::new(call.header("if-match"), call.header("if-none-match"));
    let name = call.id.name();
    let message = match condition.check(found.map(|found| found.etag.as_str())) {
        Ok(()) => return Ok(()),
        Err(Unmet::Exists) => {
            format!("The Record set {name} exists already and hence cannot be created again.")
        }
        Err(Unmet::Modified) => format!("The Record set {name} has been modified (etag mismatch)."),
    };
    Err(ArmError::service(412, "PreconditionFailed", message).unwrapped())
}

fn bad_request(message: String) -> ArmError {
    ArmError::service(400, "BadRequest", message).unwrapped()
}

fn conflict(message: &str) -> ArmError {
    ArmError::service(409, "Conflict", message).unwrapped()
}
