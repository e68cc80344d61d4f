//! What proves that a security group or an endpoint is the cluster's, and how they should be.

use std::collections::BTreeSet;

use ipnet::IpNet;
use kube::ResourceExt;

use super::Basis;
use crate::api::{AWSEndpointService, Reason};
use crate::aws::kinds::Kind;
use crate::aws::kinds::security_group::SecurityGroup;
use crate::aws::kinds::vpc_endpoint::VpcEndpoint;
use crate::aws::slot::{Scope, Slot};
use crate::controllers::vpc_endpoint::inputs::Guest;
use crate::hypershift::aws::intent::client_token;
use crate::hypershift::aws::names;
use crate::hypershift::identity::Identity;
use crate::hypershift::problem::Problem;

/// The security group of a cluster's endpoint.
pub(super) fn security_group(basis: Basis<'_>, guest: &Guest) -> Result<SecurityGroup, Problem> {
    let cr = basis.cr.name_any();
    let parsed: Result<BTreeSet<IpNet>, _> = guest.networks.iter().map(|cidr| cidr.parse::<IpNet>()).collect();
    let ranges = parsed.map_err(|_| {
        let text = "networking.machineNetwork has a network that is not in CIDR notation";
        Problem::new(Reason::InvalidSpec, text)
    })?;
    Ok(SecurityGroup {
        ranges: ranges.iter().map(IpNet::trunc).collect(),
        port: names::port(&cr),
        ..owned_group(&guest.identity, (&guest.account, &guest.vpc), basis.cr)
    })
}

/// What proves that a security group is the cluster's.
pub(crate) fn owned_group(
    identity: &Identity,
    (account, vpc): (&Scope, &str),
    cr: &AWSEndpointService,
) -> SecurityGroup {
    let name = names::security_group(&identity.infra_id, &cr.name_any());
    let tags = &cr.spec.resource_tags;
    SecurityGroup {
        slot: Slot::security_group(account, vpc, &name),
        owner_tags: names::security_group_tags(&identity.cluster_id, &identity.infra_id, &cr.name_any(), tags),
        cluster_tag: names::cluster_tag(&identity.infra_id),
        port: names::port(&cr.name_any()),
        ranges: BTreeSet::new(),
    }
}

/// What proves that an endpoint to this service is the cluster's.
pub(super) fn endpoint_of(basis: Basis<'_>, guest: &Guest, service: &str) -> VpcEndpoint {
    owned_endpoint(&guest.identity, (&guest.account, &guest.vpc), service, basis.cr)
}

/// What proves that an endpoint to this service is the cluster's.
pub(crate) fn owned_endpoint(
    identity: &Identity,
    (account, vpc): (&Scope, &str),
    service: &str,
    cr: &AWSEndpointService,
) -> VpcEndpoint {
    VpcEndpoint {
        slot: Slot::vpc_endpoint(account, vpc, service),
        security_group: String::new(),
        subnets: BTreeSet::new(),
        zones: Default::default(),
        may_be_refused: false,
        owner_tags: names::endpoint_tags(&identity.cluster_id, &cr.name_any(), &cr.spec.resource_tags),
        client_token: client_token("", Kind::VpcEndpoint, ""),
        kept: None,
    }
}
