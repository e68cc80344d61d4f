//! Private DNS zones.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::etag::Unmet;
use super::write::{self, Wanted, Write, refused};
use super::{link_rules, links, names, record, record_sets};
use crate::engine::context::Context;
use crate::engine::error::{ArmError, ErrorDetail};
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Kind, Reply, Stack};
use crate::engine::operation::{Operation, Verb};
use crate::engine::page::page;
use crate::engine::preset::Pace;
use crate::engine::resource::Resource;

/// Microsoft.Network/privateDnsZones.
pub(crate) struct Zones;

pub(crate) const TYPE: &str = "Microsoft.Network/privateDnsZones";
/// The first version of private DNS as a service of its own.
pub(super) const FIRST_VERSION: &str = "2018-09-01";
/// Rows of a page unless `$top` says otherwise.
pub(super) const PAGE: usize = 100;

const UPSERT: Pace = Pace::new(15.0, 30);
const DELETE: Pace = Pace::new(15.0, 30);

impl Kind for Zones {
    fn resource_type(&self) -> &'static str {
        TYPE
    }

    fn first_version(&self) -> &'static str {
        FIRST_VERSION
    }

    fn stack(&self) -> Stack {
        Stack::PrivateDns
    }

    fn list(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let found = cx.state.store.of_type(&call.id, TYPE);
        page(
            call,
            found.map(|zone| (zone.id.key(), self.render(cx, zone))).collect(),
            PAGE,
        )
    }

    fn put(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        names::zone(call.id.name()).map_err(|message| ArmError::service(400, "BadRequest", message))?;
        write::check_envelope(&call.body, TYPE)?;
        upsert(cx, call, false)
    }

    fn patch(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        cx.find(&call.id)?;
        upsert(cx, call, true)
    }

    fn delete(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        if cx.state.store.get(&call.id).is_none() {
            return Ok(Reply::new(204));
        }
        if let Some(error) = nested(cx, &call.id) {
            return Err(ArmError::gateway(409, &error.code, error.message));
        }
        let target = write::stored(&call.id, TYPE);
        let (name, pace, wanted) = ("DeletePrivateDnsZone", &DELETE, Wanted::of(call, false));
        write::accept(
            cx,
            call,
            Write {
                name,
                verb: Verb::Delete,
                target: &target,
                target_type: TYPE,
                pace,
                wanted,
            },
        )
    }

    fn render(&self, cx: &Context<'_>, zone: &Resource) -> Value {
        let quotas = cx.state.quotas(zone.id.subscription());
        let registering = links::of(&cx.state.store, &zone.id)
            .filter(|link| links::registers(link))
            .count();
        let mut shown = zone.body.clone();
        shown["id"] = json!(zone.id);
        shown["name"] = json!(zone.id.name());
        shown["type"] = json!(TYPE);
        shown["etag"] = json!(zone.etag);
        let properties = &mut shown["properties"];
        properties["maxNumberOfRecordSets"] = json!(quotas.record_sets_per_zone);
        properties["maxNumberOfVirtualNetworkLinks"] = json!(quotas.links_per_zone);
        properties["maxNumberOfVirtualNetworkLinksWithRegistration"] = json!(link_rules::MOST_REGISTERING_PER_ZONE);
        properties["numberOfRecordSets"] = json!(record_sets::of(&cx.state.store, &zone.id).count());
        properties["numberOfVirtualNetworkLinks"] = json!(links::of(&cx.state.store, &zone.id).count());
        properties["numberOfVirtualNetworkLinksWithRegistration"] = json!(registering);
        properties["provisioningState"] = json!(zone.state.as_str());
        shown
    }

    fn install(&self, cx: &mut Context<'_>, id: &ResourceId, body: Value) -> Result<(), ArmError> {
        let wanted = Wanted {
            body,
            condition: Default::default(),
            partial: false,
        };
        store(cx, &write::stored(id, TYPE), &wanted);
        Ok(())
    }

    fn finish(&self, cx: &mut Context<'_>, operation: &Operation) {
        write::finish(cx, operation, |cx, operation| match operation.verb {
            Verb::Put => put_at_end(cx, operation),
            Verb::Delete => delete_at_end(cx, operation),
        });
    }
}

fn upsert(cx: &mut Context<'_>, call: &Call<'_>, partial: bool) -> Result<Reply, ArmError> {
    let target = write::stored(&call.id, TYPE);
    let (name, pace, wanted) = ("UpsertPrivateDnsZone", &UPSERT, Wanted::of(call, partial));
    write::accept(
        cx,
        call,
        Write {
            name,
            verb: Verb::Put,
            target: &target,
            target_type: TYPE,
            pace,
            wanted,
        },
    )
}

fn put_at_end(cx: &mut Context<'_>, operation: &Operation) -> Result<(), ErrorDetail> {
    let (id, wanted) = (&operation.target, Wanted::read(operation));
    if id.group_id().is_none_or(|group| cx.state.store.get(&group).is_none()) {
        return Err(ArmError::group_not_found(id.resource_group().unwrap_or_default()).error);
    }
    let known = cx.state.store.get(id);
    check_condition(&wanted, id, known)?;
    if known.is_none() {
        if wanted.partial {
            return Err(ArmError::resource_not_found(id).error);
        }
        let most = cx.state.quotas(id.subscription()).zones;
        let in_subscription = cx
            .state
            .store
            .all_of_type(TYPE)
            .filter(|zone| zone.id.subscription().eq_ignore_ascii_case(id.subscription()));
        if in_subscription.count() >= most {
            return refused(
                "QuotaExceeded",
                format!("The subscription can have at most {most} private DNS zones."),
            );
        }
    }
    store(cx, id, &wanted);
    Ok(())
}

fn delete_at_end(cx: &mut Context<'_>, operation: &Operation) -> Result<(), ErrorDetail> {
    let id = &operation.target;
    let Some(known) = cx.state.store.get(id) else {
        return Ok(());
    };
    check_condition(&Wanted::read(operation), id, Some(known))?;
    if let Some(error) = nested(cx, id) {
        return Err(error);
    }
    cx.remove(id);
    Ok(())
}

fn check_condition(wanted: &Wanted, id: &ResourceId, known: Option<&Resource>) -> Result<(), ErrorDetail> {
    let name = id.name();
    let message = match wanted.condition.check(known.map(|known| known.etag.as_str())) {
        Ok(()) => return Ok(()),
        Err(Unmet::Exists) => {
            format!("The Zone {name} exists already and hence cannot be created again.")
        }
        Err(Unmet::Modified) => format!("The Zone {name} has been modified (etag mismatch)."),
    };
    refused("PreconditionFailed", message)
}

/// Puts the zone under a new etag; a new one gets its identity and its SOA.
fn store(cx: &mut Context<'_>, id: &ResourceId, wanted: &Wanted) {
    let known = cx.state.store.get(id).map(|known| known.body.clone());
    let mut body = wanted.envelope(known.as_ref());
    body["properties"]["internalId"] = match &known {
        Some(known) => known["properties"]["internalId"].clone(),
        None => json!(STANDARD.encode(format!("ImmutableZoneIdentity;{};0", cx.guid()))),
    };
    let etag = cx.guid();
    cx.store_with_etag(TYPE, id, body, etag);
    if known.is_none() {
        record_sets::store(cx, record::RecordType::Soa, &id.child("SOA", "@"), record::first_soa());
    }
}

/// ARM's refusal to delete a zone that has links.
fn nested(cx: &Context<'_>, id: &ResourceId) -> Option<ErrorDetail> {
    let links: Vec<String> = links::of(&cx.state.store, id)
        .map(|link| format!("'Microsoft.Network/{}'", link.id.typed_name()))
        .collect();
    if links.is_empty() {
        return None;
    }
    let message = format!(
        "Cannot delete resource while nested resources exist. Some existing nested resource IDs include: {}. Please delete \
         all nested resources before deleting this resource.",
        links.join(", ")
    );
    Some(ErrorDetail::new("CannotDeleteResource", message))
}
