//! The Events of the HO role beside those of every controller.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, ResourceExt};

use super::plan::PrivateLinkServiceInputs;
use crate::api::AzurePrivateLinkService;
use crate::azure::cloud::Arm;
use crate::controllers::azure::Decision;
use crate::controllers::azure::access::Context;
use crate::controllers::custom_resource::guest_is_locked;
use crate::controllers::{abandon, event};
use crate::hypershift::identity::DeletedCluster;
use crate::runtime::event::{Event, What};

/// Emits an Event on the HostedCluster if a lock stops the deletion of the guest's side: the namespace accepts none.
pub(super) async fn guest_lock(cx: &Context, cr: &AzurePrivateLinkService, hosted: Option<&ObjectReference>) {
    let note = guest_is_locked(cr).then(|| {
        format!(
            "the guest's side cannot be deleted: ScopeLocked; {}",
            abandon::LOCKED_STAYS
        )
    });
    let uid = cr.uid().unwrap_or_default();
    let is_new = cx.runtime.events.begins(&uid, "guest lock", note.as_deref());
    if let (true, Some(note), Some(hosted)) = (is_new, note, hosted) {
        let event = Event::new(What::Refused, note);
        let events = &cx.runtime.events;
        if !events.emit_elsewhere(&cr.object_ref(&()), hosted, &event).await {
            // It is tried again as long as the lock stands.
            events.begins(&uid, "guest lock", None);
        }
    }
}

/// Emits an Event if the custom resource names subscriptions that the HostedCluster does not.
pub(super) async fn unconfirmed(cx: &Context, cr: &AzurePrivateLinkService, inputs: &PrivateLinkServiceInputs) {
    let more = inputs.connecting.unconfirmed(cr);
    let note = format!("{more} of spec.additionalAllowedSubscriptions are not the HostedCluster's and may not connect");
    let event = (more > 0).then(|| Event::new(What::Refused, note));
    cx.runtime
        .events
        .stands(&cr.object_ref(&()), "unconfirmed subscriptions", event)
        .await;
}

/// The Events of a release after which nothing is left.
pub(super) fn last_events(inputs: &PrivateLinkServiceInputs, decision: &Decision) -> Vec<Event> {
    if inputs.deleted_cluster == DeletedCluster::OfAnother {
        // Somebody recorded ids that another cluster has.
        return vec![event::not_read::<Arm>(
            "the ids that are known belong to another HostedCluster",
        )];
    }
    event::released(decision)
}
