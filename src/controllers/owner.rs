//! The HostedControlPlane that owns a custom resource. Reads only.

use kube::{Api, ResourceExt};

use super::context::Context;
use super::frame::{PassError, within};
use crate::api::{AzurePrivateLinkService, HostedControlPlane};

/// The owner, if it is still the one that the owner reference means.
pub async fn control_plane(
    cx: &Context,
    cr: &AzurePrivateLinkService,
) -> Result<Option<HostedControlPlane>, PassError> {
    let Some(owner) = cr
        .owner_references()
        .iter()
        .find(|owner| owner.kind == "HostedControlPlane")
    else {
        return Ok(None);
    };
    let api: Api<HostedControlPlane> = Api::namespaced(cx.kube.clone(), &cr.namespace().unwrap_or_default());
    Ok(within(api.get_opt(&owner.name))
        .await?
        .filter(|found| found.metadata.uid.as_ref() == Some(&owner.uid)))
}
