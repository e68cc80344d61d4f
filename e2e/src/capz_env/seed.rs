//! What the simulated Azure of a [`super::CapzEnv`] holds at first: two tenants with subscriptions, and an identity of
//! each type that an AzureClusterIdentity can have. It holds no resources.

use anyhow::Result;
use rcgen::{CertificateParams, DnType, KeyPair, PKCS_RSA_SHA256};
use serde_json::{Value, json};

use crate::azure_sim::shipped_actions;
use crate::{ControlPlane, roles};

/// Tenant of all subscriptions but one.
pub const TENANT: &str = "22222222-2222-4222-8222-222222222222";
/// Subscription of management clusters.
pub const MANAGEMENT: &str = "33333333-3333-4333-8333-333333333333";
/// Subscription of workload clusters.
pub const WORKLOAD: &str = "11111111-1111-4111-8111-111111111111";
/// A tenant with a subscription of its own.
pub const OTHER_TENANT: &str = "66666666-6666-4666-8666-666666666666";
/// The subscription of [`OTHER_TENANT`].
pub const OTHER_TENANT_SUBSCRIPTION: &str = "77777777-7777-4777-8777-777777777777";
/// Region of everything.
pub const LOCATION: &str = "westeurope";

/// Client id of the identity by which CAPZ calls, which may do everything in each subscription of [`TENANT`].
pub const CAPZ_CLIENT: &str = "aaaaaaaa-0005-4000-8000-000000000001";
/// Client id of the identity by which the DNS operator calls, which may do the same.
pub const DNS_CLIENT: &str = "aaaaaaaa-0005-4000-8000-000000000002";
/// Client id of an identity that trusts the tokens of [`WORKLOAD_ACCOUNT`].
pub const FEDERATED_CLIENT: &str = "aaaaaaaa-0005-4000-8000-000000000003";
/// Client id of an identity with a secret.
pub const SECRET_CLIENT: &str = "aaaaaaaa-0005-4000-8000-000000000004";
/// Client id of an identity with a certificate.
pub const CERTIFICATE_CLIENT: &str = "aaaaaaaa-0005-4000-8000-000000000005";
/// Client id of a managed identity.
pub const MANAGED_CLIENT: &str = "aaaaaaaa-0005-4000-8000-000000000006";
/// Client id of an identity of [`OTHER_TENANT`], which trusts the same tokens.
pub const OTHER_TENANT_CLIENT: &str = "aaaaaaaa-0005-4000-8000-000000000007";

/// Client secret of the identities that have one.
pub const SECRET: &str = "capz-secret";

/// Namespace and name of the ServiceAccount whose tokens federated identities trust.
pub const WORKLOAD_ACCOUNT: (&str, &str) = (roles::NAMESPACE, "capz");
/// The audience of those tokens.
pub const TOKEN_AUDIENCE: &str = "api://AzureADTokenExchange";

/// The key and the certificate of an identity, as PEM.
pub(super) fn certificate() -> Result<(String, String)> {
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256)?;
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "cluster identity of a test");
    let certificate = params.self_signed(&key)?.pem();
    Ok((key.serialize_pem(), certificate))
}

/// The seed. The identities of clusters may do the shipped actions in the subscriptions of their tenant.
pub(super) fn seed(token_keys: &Value, certificate: &str) -> Result<Value> {
    let shipped = shipped_actions("capz")?;
    let shipped: Vec<&str> = shipped.iter().map(String::as_str).collect();
    let (namespace, account) = WORKLOAD_ACCOUNT;
    let federated = json!([{
        "issuer": ControlPlane::TOKEN_ISSUER,
        "subject": format!("system:serviceaccount:{namespace}:{account}"),
        "audience": TOKEN_AUDIENCE,
        "jwks": token_keys,
    }]);
    let principal = |client: &str, credential: (&str, Value)| {
        let (kind, value) = credential;
        json!({"client_id": client, "object_id": client, kind: value})
    };
    let secret = || ("secret", json!(SECRET));
    let own = [MANAGEMENT, WORKLOAD];
    let readers = [FEDERATED_CLIENT, SECRET_CLIENT, CERTIFICATE_CLIENT, MANAGED_CLIENT];
    let role = |client: &str, subscription: &str, actions: &[&str]| {
        let scope = format!("/subscriptions/{subscription}");
        json!({"object_id": client, "scope": scope, "actions": actions})
    };
    let mut assigned = Vec::new();
    for subscription in own {
        assigned.extend([CAPZ_CLIENT, DNS_CLIENT].map(|client| role(client, subscription, &["*"])));
        assigned.extend(readers.map(|client| role(client, subscription, &shipped)));
    }
    assigned.push(role(OTHER_TENANT_CLIENT, OTHER_TENANT_SUBSCRIPTION, &shipped));
    let subscription = |id: &str, tenant: &str| json!({"id": id, "tenant": tenant});
    let mut subscriptions: Vec<_> = own.iter().map(|id| subscription(id, TENANT)).collect();
    subscriptions.push(subscription(OTHER_TENANT_SUBSCRIPTION, OTHER_TENANT));
    Ok(json!({
        "tenants": [
            {"id": TENANT, "principals": [
                principal(CAPZ_CLIENT, secret()),
                principal(DNS_CLIENT, secret()),
                principal(FEDERATED_CLIENT, ("federated", federated.clone())),
                principal(SECRET_CLIENT, secret()),
                principal(CERTIFICATE_CLIENT, ("certificates", json!([certificate]))),
                json!({"client_id": MANAGED_CLIENT, "object_id": MANAGED_CLIENT}),
            ]},
            {"id": OTHER_TENANT, "principals": [principal(OTHER_TENANT_CLIENT, ("federated", federated))]},
        ],
        "subscriptions": subscriptions,
        "roles": assigned,
    }))
}
