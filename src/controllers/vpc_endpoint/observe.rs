//! Reads the inputs of the CPO role on AWS from Kubernetes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::ResourceExt;

use super::VpcEndpointController;
use super::inputs::{Guest, Roles, VpcEndpointInputs};
use crate::api::AWSEndpointService;
use crate::api::hypershift::AwsPlatform;
use crate::api::markers::CPO_INTENT;
use crate::aws::account_roles::AccountRoles;
use crate::aws::slot::Slot;
use crate::controllers::aws::access::Context;
use crate::hypershift::aws::ids::is_id;
use crate::hypershift::aws::intent::CpoIntent;
use crate::hypershift::{identity, intent, owner};
use crate::runtime::call::ReconcileError;

/// What Kubernetes shows around a custom resource. Sets which roles are assumed for it.
pub(super) async fn read_inputs(
    cx: &Context,
    cr: &AWSEndpointService,
    controller: &VpcEndpointController,
) -> Result<VpcEndpointInputs, ReconcileError> {
    let namespace = cr.namespace().unwrap_or_default();
    let control_plane = owner::only_control_plane(&cx.runtime.kube, &namespace).await?;
    let accounts = &cx.cloud.client;
    let found = control_plane.as_ref().ok();
    let guest = match &control_plane {
        Ok(found) => Guest::of(found, accounts.own(), &controller.region),
        Err(problem) => Err(problem.clone()),
    };
    let recorded: Option<CpoIntent> = intent::read(cr.annotations().get(CPO_INTENT));
    let recorded_roles = recorded.as_ref().map(Roles::recorded).unwrap_or_default();
    for (account, roles) in assumed(guest.as_ref().ok(), &recorded_roles, accounts.own()) {
        accounts.assume(account, roles);
    }
    if let Ok(guest) = &guest {
        note_recorded(cx, cr, guest, recorded.as_ref());
    }
    let is_deleting = found.is_some_and(|found| found.metadata.deletion_timestamp.is_some());
    let access = found.and_then(|found| found.spec.aws()).map(AwsPlatform::access);
    Ok(VpcEndpointInputs {
        guest,
        is_unwanted: is_deleting || access.is_some_and(|access| !access.is_private()),
        paused: found.and_then(|found| identity::paused(&found.spec, Timestamp::now())),
        paused_until: found.and_then(|found| found.spec.paused_until.clone()),
    })
}

/// Notes which endpoint the status or the intent names: AWS is asked about it by this id, too.
fn note_recorded(cx: &Context, cr: &AWSEndpointService, guest: &Guest, recorded: Option<&CpoIntent>) {
    let status = cr.status.as_ref();
    let shown = status.and_then(|status| status.endpoint_id.as_deref());
    let endpoint = recorded
        .and_then(CpoIntent::endpoint_id)
        .or(shown.filter(|id| is_id("vpce", id)));
    let service = status.and_then(|status| status.endpoint_service_name.as_deref());
    if let Some((service, id)) = service.zip(endpoint) {
        let slot = Slot::vpc_endpoint(&guest.account, &guest.vpc, service);
        cx.cloud.client.note_recorded(&slot, id);
    }
}

/// The roles by account: those of the guest, and where it has none, those that are recorded. In the process' own
/// account none is assumed that the guest does not name any more.
fn assumed<'a>(guest: Option<&'a Guest>, recorded: &'a Roles, own: &'a str) -> BTreeMap<&'a str, AccountRoles> {
    let mut assumed: BTreeMap<&str, AccountRoles> = recorded.by_account().into_iter().collect();
    if let Some(guest) = guest {
        assumed.insert(own, AccountRoles::default());
        assumed.extend(guest.roles.by_account());
    }
    assumed
}

/// The inputs whose change needs a reconcile, as one text. Each field counts, except what is taken out here.
pub(super) fn fingerprint(inputs: &VpcEndpointInputs) -> String {
    let mut compared = inputs.clone();
    // The time until the pause ends; `paused_until` says when that is.
    if let Some(paused) = &mut compared.paused {
        paused.requeue_after = None;
    }
    format!("{compared:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aws::role_arn::RoleArn;

    #[test]
    fn role_that_the_guest_no_longer_names_is_not_assumed() {
        let role = |arn: &str| Roles {
            endpoint: RoleArn::parse(arn).ok(),
            records: None,
        };
        let before = role("arn:aws:iam::111122223333:role/before");
        let mut guest = crate::controllers::vpc_endpoint::samples::Sample::new().guest().clone();
        let own = assumed(Some(&guest), &before, "111122223333");
        assert_eq!(own["111122223333"], AccountRoles::default());
        guest.roles = role("arn:aws:iam::444455556666:role/now");
        let elsewhere = role("arn:aws:iam::444455556666:role/before");
        let both = assumed(Some(&guest), &elsewhere, "111122223333");
        assert_eq!(both["444455556666"].endpoints, guest.roles.endpoint);
        assert_eq!(assumed(None, &before, "111122223333").len(), 1);
    }
}
