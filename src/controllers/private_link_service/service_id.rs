//! Which id the Private Link Service of a custom resource has or will have. Pure.

use kube::ResourceExt;

use super::basis::{Basis, Stop};
use super::settings::Settings;
use crate::api::markers::HO_INTENT;
use crate::api::{AzurePrivateLinkService, Reason};
use crate::azure::arm::id::{IdError, ResourceId, same};
use crate::azure::cloud::Observed;
use crate::azure::kinds::Kind;
use crate::engine::resource::MISSED;
use crate::hypershift::azure::intent::HoIntent;
use crate::hypershift::azure::management_scopes::ManagementScope;
use crate::hypershift::azure::names;
use crate::hypershift::identity::Identity;
use crate::hypershift::intent;
use crate::hypershift::problem::Problem;

/// The id of a service in the scope in which this process makes services.
pub(crate) fn usual(
    cr: &AzurePrivateLinkService,
    cluster_id: &str,
    settings: &Settings,
) -> Result<ResourceId, IdError> {
    in_scope(cr, cluster_id, &settings.scope)
}

/// The ids of a service in the management scopes of other clusters.
pub(super) fn in_other_scopes(cr: &AzurePrivateLinkService, cluster_id: &str, settings: &Settings) -> Vec<ResourceId> {
    let scopes = settings.other_scopes.iter();
    scopes
        .filter_map(|scope| in_scope(cr, cluster_id, scope).ok())
        .collect()
}

fn in_scope(cr: &AzurePrivateLinkService, cluster_id: &str, scope: &ManagementScope) -> Result<ResourceId, IdError> {
    let name = names::link_service(&cr.name_any(), cluster_id);
    let ManagementScope {
        subscription,
        resource_group,
    } = scope;
    names::in_group(Kind::PrivateLinkService, subscription, resource_group, &name)
}

/// The id of the service as the intent or the status has it. Both may be forged.
pub(super) fn recorded(cr: &AzurePrivateLinkService) -> Option<ResourceId> {
    let recorded: Option<HoIntent> = intent::read(cr.annotations().get(HO_INTENT));
    let recorded = recorded.and_then(|recorded| recorded.link_service);
    let status = cr.status.as_ref();
    let known = recorded.or_else(|| status?.private_link_service_id.clone());
    known.and_then(|id| ResourceId::parse_as(Kind::PrivateLinkService, &id).ok())
}

/// The id of a service in another scope than the one in which this process makes services, from the intent or the
/// status. No second service is made: this process manages the recorded one, or reports that it may not.
pub(crate) fn recorded_elsewhere(
    cr: &AzurePrivateLinkService,
    usual: &ResourceId,
    settings: &Settings,
) -> Result<Option<ResourceId>, Problem> {
    match recorded(cr).filter(|id| id != usual && same(id.name(), usual.name())) {
        None => Ok(None),
        Some(id) if settings.allows(&id) => Ok(Some(id)),
        Some(id) => {
            let scope = format!("/subscriptions/{}/resourceGroups/{}", id.subscription(), id.group());
            let text = if settings
                .other_scopes
                .iter()
                .any(|other| other.as_azure_scope().covers(&id))
            {
                format!(
                    "the Private Link Service was made in {scope}; put the cluster into that management scope again"
                )
            } else {
                format!("the Private Link Service was made in {scope}; allow it with --also-manage")
            };
            Err(Problem::new(Reason::ConfigurationChanged, text))
        }
    }
}

/// The id that the service has or will have. If it is gone from where it was recorded, it is recreated at the usual id.
pub(super) fn find(basis: Basis<'_>, identity: &Identity) -> Result<ResourceId, Stop> {
    let usual = usual(basis.cr, &identity.cluster_id, basis.settings).map_err(invalid_spec)?;
    let Some(recorded) = recorded_elsewhere(basis.cr, &usual, basis.settings)? else {
        return Ok(usual);
    };
    let facts = basis.facts;
    let is_found = *facts.read(Kind::PrivateLinkService, &recorded)? != Observed::Absent;
    if is_found || *facts.fresh_read(Kind::PrivateLinkService, &recorded)? != Observed::Absent {
        return Ok(recorded);
    }
    if facts.surely_gone.contains(&recorded) {
        return Ok(usual);
    }
    let text = format!(
        "the recorded {} {} is not found",
        Kind::PrivateLinkService.label(),
        recorded.name()
    );
    Err(Problem::new(Reason::Provisioning, text)
        .requeue_after(MISSED * 2)
        .into())
}

/// The problem of an id that Azure cannot have.
pub(super) fn invalid_spec(error: IdError) -> Problem {
    Problem::new(Reason::InvalidSpec, error.to_string())
}
