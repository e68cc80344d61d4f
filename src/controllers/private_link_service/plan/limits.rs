//! Whether Azure can take every id, name and list that there will be. Pure.

use crate::api::Reason;
use crate::azure::arm::id::{IdError, ResourceId};
use crate::azure::kinds::Kind;
use crate::controllers::private_link_service::basis::Basis;
use crate::controllers::private_link_service::service_id::{self, invalid_spec};
use crate::hypershift::azure::names;
use crate::hypershift::identity::Identity;
use crate::hypershift::problem::Problem;

/// Azure's limit of subscriptions that a service may be shown to, and as many whose connections it approves
/// (<https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits>).
const MAX_SUBSCRIPTIONS: usize = 100;

/// What Azure cannot take. Checked before the first call.
pub(super) fn check(basis: Basis<'_>, identity: &Identity) -> Result<(), Problem> {
    check_names(basis, identity).map_err(invalid_spec)?;
    let subscriptions = basis.inputs.connecting.subscriptions(basis.cr).map_err(invalid_spec)?;
    let allowed = subscriptions.len();
    if allowed > MAX_SUBSCRIPTIONS {
        let text =
            format!("{allowed} subscriptions are allowed, the guest's own included; Azure takes {MAX_SUBSCRIPTIONS}");
        // Not InvalidSpec, which would stop the guest's side too.
        return Err(Problem::new(Reason::PLSCreationFailed, text));
    }
    Ok(())
}

fn check_names(basis: Basis<'_>, identity: &Identity) -> Result<(), IdError> {
    let settings = basis.settings;
    service_id::usual(basis.cr, &identity.cluster_id, settings)?;
    match &basis.cr.spec.nat_subnet_id {
        Some(given) => ResourceId::parse_as(Kind::Subnet, given)?,
        // The network is not known yet and does not matter for this check.
        None => ResourceId::new(
            Kind::Subnet,
            &settings.scope.subscription,
            &settings.scope.resource_group,
            &["any", &names::nat_subnet(&identity.infra_id)],
        )?,
    };
    ResourceId::parse_as(Kind::VirtualNetwork, &basis.cr.spec.guest_vnet_id)?;
    Ok(())
}
