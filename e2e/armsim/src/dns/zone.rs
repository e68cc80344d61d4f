//! Private DNS zones.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::etag::Unmet;
use super::write::{Tracked, WriteRequest, refused};
use super::{links, names, record, record_sets};
use crate::engine::context::Context;
use crate::engine::error::{ArmError, ErrorDetail};
use crate::engine::id::ResourceId;
use crate::engine::preset::Pace;
use crate::engine::resource::Resource;

/// Microsoft.Network/privateDnsZones.
pub(crate) struct Zones;

pub(crate) const TYPE: &str = "Microsoft.Network/privateDnsZones";
/// The first version that shows `internalId`.
const SHOWS_INTERNAL_ID: &str = "2020-01-01";

impl Tracked for Zones {
    const TYPE: &'static str = TYPE;
    const UPSERT: (&'static str, Pace) = ("UpsertPrivateDnsZone", Pace::new(15.0, 30));
    const DELETE: (&'static str, Pace) = ("DeletePrivateDnsZone", Pace::new(15.0, 30));

    fn check_name(name: &str) -> Result<(), String> {
        names::zone(name).map(|_| ())
    }

    fn check_body(_id: &ResourceId, _body: &Value, _whole: bool) -> Result<(), ArmError> {
        Ok(())
    }

    fn check_parent(cx: &Context<'_>, id: &ResourceId) -> Result<(), ArmError> {
        if id.group_id().is_some_and(|group| cx.state.store.get(&group).is_some()) {
            return Ok(());
        }
        Err(ArmError::group_not_found(id.resource_group().unwrap_or_default()))
    }

    fn judge(
        cx: &Context<'_>,
        id: &ResourceId,
        _request: &WriteRequest,
        known: Option<&Resource>,
    ) -> Result<(), ErrorDetail> {
        let most = cx.state.quotas(id.subscription()).zones;
        let subscription = ResourceId::parse(&format!("/subscriptions/{}", id.subscription()));
        let there = subscription.map_or(0, |all| cx.state.store.of_type(&all, TYPE).count());
        if known.is_none() && there >= most {
            let message = format!("The subscription can have at most {most} private DNS zones.");
            return refused("QuotaExceeded", message);
        }
        Ok(())
    }

    /// A new zone gets its identity and its SOA.
    fn store(cx: &mut Context<'_>, id: &ResourceId, request: &WriteRequest) {
        let known = cx.state.store.get(id).map(|known| known.body.clone());
        let mut body = request.envelope(known.as_ref());
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

    /// ARM refuses to delete a zone that has links.
    fn check_deletion(cx: &Context<'_>, id: &ResourceId) -> Result<(), ErrorDetail> {
        let links: Vec<String> = links::of(&cx.state.store, id)
            .map(|link| format!("'Microsoft.Network/{}'", link.id.typed_name()))
            .collect();
        if links.is_empty() {
            return Ok(());
        }
        let message = format!(
            "Cannot delete resource while nested resources exist. Some existing nested resource IDs include: {}. Please \
             delete all nested resources before deleting this resource.",
            links.join(", ")
        );
        refused("CannotDeleteResource", message)
    }

    fn unmet(id: &ResourceId, unmet: Unmet) -> String {
        match unmet {
            Unmet::Exists => format!(
                "The Zone {} exists already and hence cannot be created again.",
                id.name()
            ),
            Unmet::Modified => format!("The Zone {} has been modified (etag mismatch).", id.name()),
        }
    }

    fn show(cx: &Context<'_>, zone: &Resource, properties: &mut Value) {
        let quotas = cx.state.quotas(zone.id.subscription());
        let links: Vec<&Resource> = links::of(&cx.state.store, &zone.id).collect();
        let registering = links.iter().filter(|link| links::registers(link)).count();
        properties["maxNumberOfRecordSets"] = json!(quotas.record_sets_per_zone);
        properties["maxNumberOfVirtualNetworkLinks"] = json!(quotas.links_per_zone);
        properties["maxNumberOfVirtualNetworkLinksWithRegistration"] = json!(quotas.registration_links_per_zone);
        properties["numberOfRecordSets"] = json!(record_sets::of(&cx.state.store, &zone.id).count());
        properties["numberOfVirtualNetworkLinks"] = json!(links.len());
        properties["numberOfVirtualNetworkLinksWithRegistration"] = json!(registering);
        if !cx.shows_since(SHOWS_INTERNAL_ID)
            && let Some(properties) = properties.as_object_mut()
        {
            properties.remove("internalId");
        }
    }
}
