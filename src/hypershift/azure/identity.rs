//! Which cluster an AzurePrivateLinkService serves, where only Azure's part shows it. Pure.

use kube::ResourceExt;

use crate::api::hypershift::{AzurePlatform, ClusterSpec, PUBLIC_CLOUD};
use crate::api::{AzurePrivateLinkService, HostedCluster, Reason};
use crate::azure::arm::id::{ResourceId, same};
use crate::azure::kinds::Kind;
use crate::engine::text::is_uuid;
use crate::hypershift::azure::names;
use crate::hypershift::claims::{self, Claim, Claims, Holder};
use crate::hypershift::identity::{IDENTITY_RETRY, Identity};
use crate::hypershift::problem::Problem;

/// Why a cluster is not served by a process for `cloud`, as HostedControlPlanes spell it.
pub fn in_cloud(spec: &ClusterSpec, cloud: &str) -> Result<(), Problem> {
    let azure = spec.platform.azure.as_ref();
    let named = azure.map_or(PUBLIC_CLOUD, AzurePlatform::cloud_name);
    if named == cloud {
        return Ok(());
    }
    let text = format!("the cluster is in {named}, this process serves {cloud}");
    Err(Problem::new(Reason::CloudMismatch, text).requeue_after(IDENTITY_RETRY))
}

/// Why a custom resource's cluster may not use the NAT subnet that it gives.
pub fn foreign_nat_subnet(cr: &AzurePrivateLinkService, hosted: &HostedCluster, all: &Claims) -> Option<Problem> {
    let given = cr.spec.nat_subnet_id.as_deref()?;
    if !claims::nat_subnet(&hosted.spec).is_some_and(|named| same(named, given)) {
        return Some(scope_not_allowed("natSubnetID is not that of the HostedCluster"));
    }
    let id = ResourceId::parse_as(Kind::Subnet, given).ok()?;
    let infra = names::infra_id_of_nat_subnet(id.name())?;
    // A newer cluster may have taken a name that was given before; only an older claim counts.
    if all.older_than(&Holder::of(hosted), &Claim::nat_subnet(given), &Claim::infra_id(infra)) {
        Some(scope_not_allowed("natSubnetID is the subnet of another cluster"))
    } else {
        None
    }
}

fn scope_not_allowed(text: &str) -> Problem {
    Problem::new(Reason::ScopeNotAllowed, text).requeue_after(IDENTITY_RETRY)
}

/// The cluster of the service that the status shows; all that is left when nothing was recorded.
pub fn of_status(cr: &AzurePrivateLinkService) -> Option<Identity> {
    let id = cr.status.as_ref()?.private_link_service_id.as_deref()?;
    let id = ResourceId::parse_as(Kind::PrivateLinkService, id).ok()?;
    let cluster_id = names::cluster_id_of_link_service(&cr.name_any(), id.name())?;
    is_uuid(cluster_id).then(|| Identity {
        name: String::new(),
        cluster_id: cluster_id.to_owned(),
        infra_id: String::new(),
    })
}
