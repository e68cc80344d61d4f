//! What each role records on an AWSEndpointService, and the client tokens that follow from it. Pure.
//!
//! Anybody in the namespace may forge it. What is read by a function below has the right form; whose it is, a read of
//! AWS shows.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::ids::{is_account, is_id, is_zone_id, service_id};
use crate::aws::client_token::ClientToken;
use crate::aws::kinds::Kind;
use crate::aws::region::Region;
use crate::aws::slot::Scope;
use crate::hypershift::identity::Identity;

/// What the HO role records. A field that is missing is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HoIntent {
    /// The cluster's name.
    pub cluster: String,
    /// `spec.clusterID` of the cluster.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// `spec.infraID` of the cluster.
    #[serde(rename = "infraID")]
    pub infra_id: String,
    /// The account of the endpoint service.
    pub account: String,
    /// The region of the endpoint service.
    pub region: String,
    /// The name of its load balancer.
    pub load_balancer: String,
    /// The names of those that the Service had before, as long as their endpoint services may be there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub former_load_balancers: Vec<String>,
    /// The id of the endpoint service, once AWS has given one.
    #[serde(rename = "endpointServiceID", skip_serializing_if = "Option::is_none")]
    pub endpoint_service_id: Option<String>,
    /// Makes the client token of a create another one than that of the create before.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nonce: String,
}

impl HoIntent {
    /// Nothing but the cluster.
    pub fn of(identity: &Identity) -> Self {
        Self {
            cluster: identity.name.clone(),
            cluster_id: identity.cluster_id.clone(),
            infra_id: identity.infra_id.clone(),
            ..Self::default()
        }
    }

    /// The cluster that it was recorded for.
    pub fn identity(&self) -> Identity {
        identity(&self.cluster, &self.cluster_id, &self.infra_id)
    }

    /// Where the endpoint service is.
    pub fn scope(&self) -> Option<Scope> {
        scope(&self.account, &self.region)
    }

    /// The id of the endpoint service.
    pub fn service_id(&self) -> Option<&str> {
        self.endpoint_service_id.as_deref().filter(|id| is_id("vpce-svc", id))
    }
}

/// What the CPO role records. A field that is missing is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CpoIntent {
    /// The cluster's name.
    pub cluster: String,
    /// `spec.clusterID` of the cluster.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// `spec.infraID` of the cluster.
    #[serde(rename = "infraID")]
    pub infra_id: String,
    /// The account of the endpoint and its security group.
    pub account: String,
    /// The account of the hosted zone.
    pub zone_account: String,
    /// The region of the endpoint.
    pub region: String,
    /// Id of the guest's VPC.
    pub vpc: String,
    /// ARN of the role that is assumed for the endpoint, in a shared VPC. Used only where it is allowed, too.
    #[serde(rename = "endpointRoleARN", skip_serializing_if = "Option::is_none")]
    pub endpoint_role: Option<String>,
    /// ARN of the role that is assumed for the records, in a shared VPC. Used only where it is allowed, too.
    #[serde(rename = "recordsRoleARN", skip_serializing_if = "Option::is_none")]
    pub records_role: Option<String>,
    /// The names of the endpoint services that the endpoint was observed to lead to; the last one is that to which it
    /// is about to lead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub endpoint_service_names: Vec<String>,
    /// The id of the endpoint, once AWS has given one.
    #[serde(rename = "endpointID", skip_serializing_if = "Option::is_none")]
    pub endpoint_id: Option<String>,
    /// The id of the security group, once AWS has given one.
    #[serde(rename = "securityGroupID", skip_serializing_if = "Option::is_none")]
    pub security_group_id: Option<String>,
    /// The id of the hosted zone.
    #[serde(rename = "dnsZoneID", skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
    /// The zones that had the records before and may have some still.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub former_zones: Vec<FormerZone>,
    /// The whole names of the records that are there or about to be written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub record_names: Vec<String>,
    /// Makes the client token of a create of the endpoint another one than that of the create before.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub endpoint_nonce: String,
}

/// A hosted zone that had the records before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FormerZone {
    /// Its account.
    pub account: String,
    /// ARN of the role that was assumed for the records. Used only where it is allowed, too.
    #[serde(rename = "recordsRoleARN", skip_serializing_if = "Option::is_none")]
    pub records_role: Option<String>,
    /// Its id.
    #[serde(rename = "dnsZoneID")]
    pub zone_id: String,
}

impl CpoIntent {
    /// Nothing but the cluster.
    pub fn of(identity: &Identity) -> Self {
        Self {
            cluster: identity.name.clone(),
            cluster_id: identity.cluster_id.clone(),
            infra_id: identity.infra_id.clone(),
            ..Self::default()
        }
    }

    /// The cluster that it was recorded for.
    pub fn identity(&self) -> Identity {
        identity(&self.cluster, &self.cluster_id, &self.infra_id)
    }

    /// Where the endpoint and its security group are.
    pub fn scope(&self) -> Option<Scope> {
        scope(&self.account, &self.region)
    }

    /// Where the hosted zone is: in its own account, in the endpoint's if none is recorded.
    pub fn zone_scope(&self) -> Option<Scope> {
        let account = if self.zone_account.is_empty() {
            &self.account
        } else {
            &self.zone_account
        };
        scope(account, &self.region)
    }

    /// Whether the endpoint was recorded in another VPC or account than this one.
    pub fn is_elsewhere(&self, account: &Scope, vpc: &str) -> bool {
        let recorded = self.scope().zip(self.vpc());
        recorded.is_some_and(|(known, known_vpc)| !known.is_same_place(account) || known_vpc != vpc)
    }

    /// The id of the guest's VPC.
    pub fn vpc(&self) -> Option<&str> {
        Some(self.vpc.as_str()).filter(|id| is_id("vpc", id))
    }

    /// The id of the endpoint.
    pub fn endpoint_id(&self) -> Option<&str> {
        self.endpoint_id.as_deref().filter(|id| is_id("vpce", id))
    }

    /// The id of the security group.
    pub fn security_group_id(&self) -> Option<&str> {
        self.security_group_id.as_deref().filter(|id| is_id("sg", id))
    }

    /// The id of the hosted zone.
    pub fn zone_id(&self) -> Option<&str> {
        self.zone_id.as_deref().filter(|id| is_zone_id(id))
    }

    /// The id of the endpoint before, if one is known.
    pub fn former_endpoint_id(&self) -> Option<&str> {
        Some(id_before(&self.endpoint_nonce)).filter(|id| is_id("vpce", id))
    }

    /// Records another zone for the records. The one before stays recorded if it may have some.
    pub fn enter_zone(&mut self, zone_id: &str) {
        if self.zone_id.as_deref() != Some(zone_id) {
            self.leave_zone();
        }
        self.zone_id = Some(zone_id.to_owned());
        self.former_zones.retain(|zone| zone.zone_id != zone_id);
    }

    /// Records the zone as one of before, if it may have records.
    pub fn leave_zone(&mut self) {
        let scope = self.zone_scope().filter(|_| !self.record_names.is_empty());
        if let (Some(zone_id), Some(scope)) = (self.zone_id.take(), scope) {
            self.former_zones.push(FormerZone {
                account: scope.account,
                records_role: self.records_role.clone(),
                zone_id,
            });
        }
    }

    /// The same intent, of whose zones only this one counts.
    pub fn of_zone(&self, zone: &FormerZone) -> Self {
        Self {
            zone_account: zone.account.clone(),
            records_role: zone.records_role.clone(),
            zone_id: Some(zone.zone_id.clone()),
            former_zones: Vec::new(),
            ..self.clone()
        }
    }

    /// The names of endpoint services in the recorded region.
    pub fn service_names(&self) -> Vec<&str> {
        let Ok(region) = Region::parse(&self.region) else {
            return Vec::new();
        };
        let names = self.endpoint_service_names.iter().map(String::as_str);
        names.filter(|name| service_id(name, &region).is_some()).collect()
    }
}

/// The client token of a create of `kind` for the custom resource with this UID. AWS gives the same result as long as
/// the nonce, which the intent holds, is the same.
pub fn client_token(cr_uid: &str, kind: Kind, nonce: &str) -> ClientToken {
    let mut digest = Sha256::new();
    for part in [cr_uid, kind.label(), nonce] {
        // The length keeps apart what would be the same text when joined.
        digest.update(format!("{}:{part};", part.len()));
    }
    ClientToken::of_digest(digest.finalize().into())
}

/// Separates in a nonce the id of what was created before from the number of spent tokens.
const SPENT: char = '~';

/// The nonce of the next create, by that of the last one. `before` is the id of what was created before, and `is_spent`
/// whether AWS takes the last client token no more, though nothing shows what it has made.
pub fn next_nonce(nonce: &str, before: Option<&str>, is_spent: bool) -> String {
    let id = id_before(nonce);
    if let Some(before) = before.filter(|before| *before != id) {
        return before.to_owned();
    }
    if !is_spent {
        return nonce.to_owned();
    }
    let spent = nonce.split_once(SPENT).and_then(|(_, spent)| spent.parse().ok());
    format!("{id}{SPENT}{}", spent.unwrap_or(0_u32).wrapping_add(1))
}

/// The id in a nonce of what was created before.
fn id_before(nonce: &str) -> &str {
    nonce.split_once(SPENT).map_or(nonce, |(id, _)| id)
}

fn identity(cluster: &str, cluster_id: &str, infra_id: &str) -> Identity {
    Identity {
        name: cluster.to_owned(),
        cluster_id: cluster_id.to_owned(),
        infra_id: infra_id.to_owned(),
    }
}

fn scope(account: &str, region: &str) -> Option<Scope> {
    let region = Region::parse(region).ok()?;
    is_account(account).then(|| Scope::own(account, region.name()))
}

#[cfg(test)]
mod tests;
