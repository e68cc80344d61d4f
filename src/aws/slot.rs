//! The slots that resources fill: what names a resource before AWS has given it an id.

use std::fmt;
use std::sync::Arc;

use hyperlink_engine::cloud::Key;

use crate::kinds::Kind;
use crate::role_arn::RoleArn;

/// An account and a region, in which most names are unique, and as whom they are called. What one identity was shown is
/// nothing that another one knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// The account: twelve digits.
    pub account: String,
    /// The region's name.
    pub region: String,
    /// The role that is assumed for each call; none: the process' own identity calls.
    pub role: Option<RoleArn>,
}

impl Scope {
    /// An account and a region that the process' own identity calls.
    pub fn own(account: &str, region: &str) -> Self {
        Self {
            account: account.to_owned(),
            region: region.to_owned(),
            role: None,
        }
    }

    /// The account of a role, which is assumed there.
    pub fn of_role(role: RoleArn, region: &str) -> Self {
        Self {
            role: Some(role.clone()),
            ..Self::own(role.account(), region)
        }
    }

    /// Whether both are one account and region, whoever calls it.
    pub fn is_same_place(&self, other: &Self) -> bool {
        self.account == other.account && self.region == other.region
    }
}

/// The slot of one resource. Equal slots are of the same resource, whatever its id is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(Arc<Fields>);

#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Fields {
    kind: Kind,
    scope: Scope,
    /// The endpoint service that the resource is about, if that is another resource.
    service: Option<Slot>,
    /// What it is in, if Hyperlink does not read that: a network, a hosted zone.
    container: Option<String>,
    name: String,
    /// The names of records.
    records: Vec<String>,
}

impl Slot {
    /// A network load balancer, by its name.
    pub fn load_balancer(scope: &Scope, name: &str) -> Self {
        Self::of(Kind::LoadBalancer, scope, None, name)
    }

    /// The endpoint service of a load balancer, which has one at most.
    pub fn endpoint_service(scope: &Scope, load_balancer: &str) -> Self {
        Self::of(Kind::EndpointService, scope, None, load_balancer)
    }

    /// The principals that may connect to an endpoint service.
    pub fn allowed_principals(service: &Self) -> Self {
        service.child(Kind::AllowedPrincipals)
    }

    /// The connections of an endpoint service that keep it from being deleted.
    pub fn endpoint_connections(service: &Self) -> Self {
        service.child(Kind::EndpointConnections)
    }

    /// A security group, whose name is unique in its VPC.
    pub fn security_group(scope: &Scope, vpc: &str, name: &str) -> Self {
        Self::of(Kind::SecurityGroup, scope, Some(vpc), name)
    }

    /// The endpoint in a VPC to an endpoint service.
    pub fn vpc_endpoint(scope: &Scope, vpc: &str, service_name: &str) -> Self {
        Self::of(Kind::VpcEndpoint, scope, Some(vpc), service_name)
    }

    /// A further endpoint in a VPC to an endpoint service that has one already, by its id.
    pub fn further_endpoint(scope: &Scope, vpc: &str, id: &str) -> Self {
        Self::of(Kind::FurtherEndpoint, scope, Some(vpc), id)
    }

    /// The records of these names in a hosted zone, written together. The names are whole, without a last dot.
    pub fn records(scope: &Scope, zone_id: &str, names: &[&str]) -> Self {
        let mut records: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        records.sort_unstable();
        Self(Arc::new(Fields {
            kind: Kind::Records,
            scope: scope.clone(),
            service: None,
            container: Some(zone_id.to_owned()),
            name: records.join(","),
            records,
        }))
    }

    fn of(kind: Kind, scope: &Scope, container: Option<&str>, name: &str) -> Self {
        Self(Arc::new(Fields {
            kind,
            scope: scope.clone(),
            service: None,
            container: container.map(str::to_owned),
            name: name.to_owned(),
            records: Vec::new(),
        }))
    }

    fn child(&self, kind: Kind) -> Self {
        Self(Arc::new(Fields {
            kind,
            scope: self.0.scope.clone(),
            service: Some(self.clone()),
            container: None,
            name: self.0.name.clone(),
            records: Vec::new(),
        }))
    }

    /// The kind of the resource.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The account and region whose identity calls for it.
    pub fn scope(&self) -> &Scope {
        &self.0.scope
    }

    /// The id of the VPC or of the hosted zone that it is in, if it is in one.
    pub fn container(&self) -> Option<&str> {
        self.0.container.as_deref()
    }

    /// The endpoint service that the resource is about, if it is about one.
    pub fn service(&self) -> Option<&Self> {
        self.0.service.as_ref()
    }

    /// The names of the records, in lower case, for a slot of records.
    pub fn record_names(&self) -> impl Iterator<Item = &str> {
        self.0.records.iter().map(String::as_str)
    }

    /// Whether it is another slot of records of which some are in this one, too.
    pub fn shares_records(&self, other: &Self) -> bool {
        let (own, theirs) = (&self.0, &other.0);
        let is_same_zone = own.scope == theirs.scope && own.container == theirs.container;
        self != other && is_same_zone && own.records.iter().any(|name| theirs.records.contains(name))
    }
}

impl Key for Slot {
    fn name(&self) -> &str {
        &self.0.name
    }

    /// None: a service that this process has created may be one that a client token has found again, so that nothing
    /// about it counts as absent without a read.
    fn parent(&self) -> Option<Self> {
        None
    }

    fn is_in(&self, _: &Self) -> bool {
        false
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fields {
            scope, container, name, ..
        } = self.0.as_ref();
        write!(f, "{name}")?;
        if let Some(container) = container {
            write!(f, " in {container}")?;
        }
        write!(f, " ({}, {})", scope.account, scope.region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        Scope::own("123456789012", "us-east-1")
    }

    #[test]
    fn resources_about_a_service_name_it_and_are_not_in_it() {
        let service = Slot::endpoint_service(&scope(), "a1b2");
        for about in [Slot::allowed_principals(&service), Slot::endpoint_connections(&service)] {
            assert!(about.service() == Some(&service) && about != service);
            assert!(about.parent().is_none() && !about.is_in(&service));
        }
    }

    #[test]
    fn order_of_record_names_makes_no_other_slot() {
        let one = Slot::records(&scope(), "Z1", &["api.c.hypershift.local", "*.apps.c.hypershift.local"]);
        let other = Slot::records(&scope(), "Z1", &["*.apps.c.hypershift.local", "api.c.hypershift.local"]);
        assert_eq!(one, other);
        assert_eq!(one.record_names().count(), 2);
        assert_eq!(Slot::load_balancer(&scope(), "a").record_names().count(), 0);
    }

    #[test]
    fn slots_with_a_name_in_common_share_records() {
        let of = |zone: &str, names: &[&str]| Slot::records(&scope(), zone, names);
        let both = of("Z1", &["api.c", "*.apps.c"]);
        assert!(both.shares_records(&of("Z1", &["api.c"])) && of("Z1", &["*.apps.c"]).shares_records(&both));
        for other in [both.clone(), of("Z2", &["api.c"]), of("Z1", &["api.d"])] {
            assert!(!both.shares_records(&other), "{other}");
        }
    }

    #[test]
    fn slot_is_shown_with_account_and_region() {
        let slot = Slot::security_group(&scope(), "vpc-1", "x-vpce-private-router");
        assert_eq!(
            slot.to_string(),
            "x-vpce-private-router in vpc-1 (123456789012, us-east-1)"
        );
    }
}
