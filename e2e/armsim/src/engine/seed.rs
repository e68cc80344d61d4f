//! The seed: a whole small Azure from JSON. Unknown keys are errors that name them, except inside `resources`.

use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use simulator::seed;
pub use simulator::seed::SeedError;

/// The state to start from. What is absent has its default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Seed {
    /// Directories and who is in them.
    pub tenants: Vec<Tenant>,
    /// Subscriptions; calls to others are refused.
    pub subscriptions: Vec<Subscription>,
    /// Role assignments.
    pub roles: Vec<Role>,
    /// ARM resources in ARM's own JSON, each with its `id`; put as they are, `Succeeded`.
    pub resources: Vec<Value>,
    /// What stands behind load balancer frontends.
    pub services: Vec<Service>,
    /// Budgets.
    pub throttle: ThrottleSeed,
    /// Choices where Azure's own answer is not known.
    pub switches: Switches,
}

impl Seed {
    /// Reads a seed. The error names the unknown key, or the principal whose certificate cannot be read.
    pub fn parse(json: &[u8]) -> Result<Self, SeedError> {
        let seed: Self = seed::parse(json)?;
        for principal in seed.tenants.iter().flat_map(|tenant| &tenant.principals) {
            if principal.certificates().count() < principal.certificates.len() {
                let id = &principal.client_id;
                return Err(SeedError::Form(format!(
                    "a certificate of principal '{id}' cannot be read"
                )));
            }
        }
        Ok(seed)
    }
}

/// A directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// GUID.
    pub id: String,
    /// Who can get tokens.
    #[serde(default)]
    pub principals: Vec<Principal>,
}

/// An application or managed identity.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Principal {
    /// The application's GUID, which tokens and the journal carry.
    pub client_id: String,
    /// The GUID that role assignments name.
    pub object_id: String,
    /// Client secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Issuers whose assertions are accepted in place of a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub federated: Vec<Federated>,
    /// X.509 certificates in PEM, whose keys sign assertions in place of a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<String>,
}

impl Principal {
    /// The certificates that can be read; of a text with several blocks the first certificate.
    pub(crate) fn certificates(&self) -> impl Iterator<Item = CertificateDer<'static>> {
        let read = |pem: &String| CertificateDer::from_pem_slice(pem.as_bytes()).ok();
        let all = self.certificates.iter().filter_map(read);
        all.filter(|der| webpki::EndEntityCert::try_from(der).is_ok())
    }

    /// Whether it has a credential that a managed identity has not.
    pub(crate) fn has_credential(&self) -> bool {
        self.secret.is_some() || !self.federated.is_empty() || !self.certificates.is_empty()
    }
}

/// A federated credential.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Federated {
    /// `iss` of the assertion.
    pub issuer: String,
    /// `sub` of the assertion.
    pub subject: String,
    /// `aud` of the assertion.
    pub audience: String,
    /// The issuer's keys, as a JWKS.
    pub jwks: Value,
}

/// A subscription.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subscription {
    /// GUID.
    pub id: String,
    /// The tenant that it trusts.
    pub tenant: String,
    /// Limits.
    #[serde(default)]
    pub quotas: Quotas,
    /// Provider namespaces that the subscription has not registered; it has registered all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unregistered: Vec<String>,
}

/// A role assignment: scopes inherit, actions take Azure's wildcards.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Who.
    pub object_id: String,
    /// Where: an ARM id, or `/`.
    pub scope: String,
    /// What, e.g. `Microsoft.Network/privateEndpoints/*`.
    pub actions: Vec<String>,
}

/// A Service behind a frontend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// ARM id of the load balancer.
    pub load_balancer: String,
    /// Name of the frontend.
    pub frontend: String,
    /// What a person calls it: `namespace/name`.
    pub name: String,
}

/// Limits of a subscription: Azure's documented ones unless seeded.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quotas {
    /// Private link services in the subscription.
    pub pls: usize,
    /// Private link services on one load balancer.
    pub pls_per_load_balancer: usize,
    /// IP configurations of one private link service.
    pub nat_ips_per_pls: usize,
    /// Connections of one private link service.
    pub endpoints_per_pls: usize,
    /// Private endpoints in one VNet.
    pub endpoints_per_vnet: usize,
    /// Private endpoints in the subscription.
    pub endpoints: usize,
    /// Subscriptions in one visibility or auto-approval list.
    pub allowed_subscriptions: usize,
    /// Private DNS zones in the subscription.
    pub zones: usize,
    /// VNet links of one zone.
    pub links_per_zone: usize,
    /// VNet links with registration of one zone.
    pub registration_links_per_zone: usize,
    /// Zones that one VNet can be linked to.
    pub zones_per_vnet: usize,
    /// Zones that one VNet can be linked to with registration.
    pub registration_zones_per_vnet: usize,
    /// Record sets of one zone.
    pub record_sets_per_zone: usize,
    /// Records of one record set.
    pub records_per_set: usize,
    /// DNS zone groups of one private endpoint.
    pub zone_groups_per_endpoint: usize,
    /// Zones of one DNS zone group.
    pub zones_per_group: usize,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            pls: 800,
            pls_per_load_balancer: 8,
            nat_ips_per_pls: 8,
            endpoints_per_pls: 1000,
            endpoints_per_vnet: 1000,
            endpoints: 64_000,
            allowed_subscriptions: 100,
            zones: 1000,
            links_per_zone: 1000,
            registration_links_per_zone: 100,
            zones_per_vnet: 1000,
            registration_zones_per_vnet: 1,
            record_sets_per_zone: 25_000,
            records_per_set: 20,
            zone_groups_per_endpoint: 1,
            zones_per_group: 5,
        }
    }
}

/// Budgets of ARM and of the providers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThrottleSeed {
    /// Whether anything is ever refused for its rate; the headers are sent in any case.
    pub enabled: bool,
    /// GET and HEAD, per subscription and principal.
    pub reads: Bucket,
    /// PUT, PATCH and POST.
    pub writes: Bucket,
    /// DELETE.
    pub deletes: Bucket,
    /// A subscription's budgets over all principals are this many times one principal's.
    pub global_factor: u32,
    /// GET and HEAD outside subscriptions, per tenant and principal.
    pub tenant_reads: Bucket,
    /// All other calls outside subscriptions, per tenant and principal.
    pub tenant_writes: Bucket,
    /// Reads of Microsoft.Network in five minutes, per subscription.
    pub network_reads_5min: u32,
    /// Writes and deletes of Microsoft.Network in five minutes, per subscription.
    pub network_writes_5min: u32,
    /// Reads of private DNS in five minutes, per subscription; status polls count.
    pub dns_reads_5min: u32,
    /// Writes of private DNS in an hour, per subscription.
    pub dns_writes_hour: u32,
}

impl Default for ThrottleSeed {
    fn default() -> Self {
        let bucket = |bucket, per_s| Bucket { bucket, per_s };
        Self {
            enabled: true,
            reads: bucket(250, 25.0),
            writes: bucket(200, 10.0),
            deletes: bucket(200, 10.0),
            global_factor: 15,
            tenant_reads: bucket(250, 25.0),
            tenant_writes: bucket(200, 10.0),
            network_reads_5min: 10_000,
            network_writes_5min: 1_000,
            dns_reads_5min: 500,
            dns_writes_hour: 12_000,
        }
    }
}

/// A token bucket.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// Calls at once.
    pub bucket: u32,
    /// Calls per second that come back.
    pub per_s: f64,
}

/// How a write meets another one in the same VNet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VnetBusy {
    /// 409 `AnotherOperationInProgress`.
    #[serde(rename = "409")]
    Conflict,
    /// 429 `RetryableError`.
    #[serde(rename = "429")]
    Retryable,
}

/// Choices where Azure's own answer is not documented; the defaults are the stricter ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Switches {
    /// The refusal of a second write to a VNet.
    pub vnet_busy: VnetBusy,
    /// Whether a private link service with nothing but rejected connections refuses to be deleted.
    pub rejected_connections_block_delete: bool,
    /// Whether a rejected connection can be approved again.
    pub rejected_can_be_approved: bool,
    /// Seconds after the creation of a private link service has ended in which its alias is not known yet.
    pub alias_lag_s: f64,
    /// Whether a few operations take as long as the longest that were recorded; otherwise each takes what most of its kind do.
    pub rare_durations: bool,
    /// Seconds after the end of a VNet link's deletion in which it is still shown.
    pub link_delete_lag_s: f64,
    /// Seconds after the end of a VNet link's operation in which the link still shows `InProgress`.
    pub link_complete_lag_s: f64,
    /// Seconds after the end of a subnet's operation in which the subnet still shows `Updating`.
    pub subnet_lag_s: f64,
    /// Whether a private link service needs `loadBalancers/frontendIPConfigurations/join/action`.
    pub pls_needs_frontend_join: bool,
    /// Whether private endpoints are refused in a subnet whose network policies are `Enabled`.
    pub endpoint_needs_policies_disabled: bool,
    /// Characters that the request message of a private endpoint's connection may have; 0 for any number.
    pub request_message_limit: usize,
    /// Rows of a page of Microsoft.Network's lists, unless `$top` asks for another number.
    pub network_page_rows: usize,
    /// Whether a subnet's prefix with addresses in use may be replaced by a larger one.
    pub prefix_in_use_can_grow: bool,
    /// Whether polling Microsoft.Network needs `locations/operations/read`; the URLs are signed.
    pub network_poll_needs_role: bool,
    /// Whether polling private DNS needs `privateDnsOperationStatuses/read` or `privateDnsOperationResults/read`.
    pub dns_poll_needs_role: bool,
    /// Whether a polling URL whose signature was changed is refused; otherwise it counts as one without a signature.
    pub changed_signature_is_refused: bool,
    /// Whether asking for one's own permissions needs `Microsoft.Authorization/permissions/read`.
    pub permissions_need_role: bool,
    /// Whether Microsoft.Network honours `If-None-Match: *`.
    pub network_if_none_match: bool,
    /// Whether a DNS zone group of a private link service's endpoint writes a record with the endpoint's name.
    pub zone_group_names_endpoint: bool,
    /// Lifetime of tokens in seconds.
    pub token_life_s: i64,
    /// Seconds by which the token endpoint's clock is ahead.
    pub token_skew_s: i64,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            vnet_busy: VnetBusy::Conflict,
            rejected_connections_block_delete: true,
            rejected_can_be_approved: false,
            alias_lag_s: 0.0,
            rare_durations: true,
            link_delete_lag_s: 0.0,
            link_complete_lag_s: 0.0,
            subnet_lag_s: 0.0,
            pls_needs_frontend_join: true,
            endpoint_needs_policies_disabled: true,
            request_message_limit: 140,
            network_page_rows: 1000,
            prefix_in_use_can_grow: false,
            network_poll_needs_role: false,
            dns_poll_needs_role: true,
            changed_signature_is_refused: true,
            permissions_need_role: true,
            network_if_none_match: false,
            zone_group_names_endpoint: false,
            token_life_s: 3599,
            token_skew_s: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_key_is_named() {
        for (json, key) in [
            (r#"{"tenant":[]}"#, "`tenant`"),
            (r#"{"switches":{"vnet_bussy":"409"}}"#, "`vnet_bussy`"),
            (
                r#"{"subscriptions":[{"id":"s","tenant":"t","quotas":{"plss":1}}]}"#,
                "`plss`",
            ),
            (r#"{"throttle":{"reads":{"bucket":1,"per_s":1,"x":2}}}"#, "`x`"),
        ] {
            let error = Seed::parse(json.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
        assert!(
            Seed::parse(br#"{"resources":[{"id":"x","anything":{"goes":1}}],"switches":{"vnet_busy":"429"}}"#).is_ok()
        );
    }

    #[test]
    fn unseeded_limits_are_azures() {
        assert_eq!(
            serde_json::to_value(Quotas::default()).unwrap(),
            serde_json::json!({
                "pls": 800, "pls_per_load_balancer": 8, "nat_ips_per_pls": 8, "allowed_subscriptions": 100,
                "endpoints_per_pls": 1000, "endpoints_per_vnet": 1000, "endpoints": 64_000,
                "zone_groups_per_endpoint": 1, "zones_per_group": 5,
                "zones": 1000, "record_sets_per_zone": 25_000, "records_per_set": 20,
                "links_per_zone": 1000, "registration_links_per_zone": 100,
                "zones_per_vnet": 1000, "registration_zones_per_vnet": 1,
            })
        );
    }
}
