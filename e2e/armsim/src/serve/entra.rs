//! The Entra token endpoint: decides whether a client may have a token and for which audience. Pure: sockets, signing and faults are elsewhere.
//! Error codes: <https://learn.microsoft.com/entra/identity-platform/reference-error-codes>.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{assertion, token::Subject};
use crate::{Principal, Tenant};

const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Words that stand for a tenant where a user signs in.
pub(crate) const NO_TENANTS: [&str; 3] = ["common", "organizations", "consumers"];
/// Resources other than ARM that every tenant knows; a token for one of them is good, and good for nothing here.
const OTHER_RESOURCES: [&str; 5] = [
    "https://graph.microsoft.com",
    "https://graph.windows.net",
    "https://vault.azure.net",
    "https://storage.azure.com",
    "https://database.windows.net",
];

/// Scopes of OpenID Connect, which a client may name beside the resource; MSAL for Go always does
/// (<https://learn.microsoft.com/entra/identity-platform/scopes-oidc#openid-connect-scopes>).
const OPENID_SCOPES: [&str; 4] = ["openid", "profile", "email", "offline_access"];

/// The form fields of a token request.
#[derive(Default)]
pub(crate) struct TokenRequest {
    pub(crate) grant_type: Option<String>,
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<String>,
    pub(crate) client_assertion: Option<String>,
    pub(crate) client_assertion_type: Option<String>,
    pub(crate) scope: Option<String>,
}

/// A refusal in Entra's form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EntraError {
    /// HTTP status.
    pub(crate) status: u16,
    /// OAuth 2.0 error.
    pub(crate) error: &'static str,
    /// The number behind `AADSTS`.
    pub(crate) code: u32,
    pub(crate) message: String,
}

impl EntraError {
    pub(super) fn request(code: u32, message: impl Into<String>) -> Self {
        Self {
            status: 400,
            error: "invalid_request",
            code,
            message: message.into(),
        }
    }

    pub(super) fn client(code: u32, message: impl Into<String>) -> Self {
        Self {
            status: 401,
            error: "invalid_client",
            code,
            message: message.into(),
        }
    }

    /// The JSON body.
    pub(crate) fn body(&self, authority: &str, real: Timestamp) -> Value {
        let (trace, correlation) = (Uuid::new_v4().to_string(), Uuid::new_v4().to_string());
        let timestamp = real.strftime("%Y-%m-%d %H:%M:%SZ").to_string();
        json!({
            "error": self.error,
            "error_description": format!("AADSTS{}: {} Trace ID: {trace} Correlation ID: {correlation} Timestamp: {timestamp}", self.code, self.message),
            "error_codes": [self.code],
            "timestamp": timestamp,
            "trace_id": trace,
            "correlation_id": correlation,
            "error_uri": format!("{authority}/error?code={}", self.code),
        })
    }
}

/// The credentials of an `Authorization: Basic` header, which Entra takes in place of the form's.
pub(crate) fn basic(header: &str) -> Option<(String, String)> {
    let text = String::from_utf8(BASE64_STANDARD.decode(header.strip_prefix("Basic ")?).ok()?).ok()?;
    let (id, secret) = text.split_once(':')?;
    Some((id.to_owned(), secret.to_owned()))
}

/// The tenant of that id.
pub(crate) fn find_tenant<'t>(tenants: &'t [Tenant], id: &str) -> Result<&'t Tenant, EntraError> {
    tenants.iter().find(|tenant| tenant.id.eq_ignore_ascii_case(id)).ok_or_else(|| {
        EntraError::request(
            90002,
            format!("Tenant '{id}' not found. Check to make sure you have the correct tenant ID and are signing into the correct cloud."),
        )
    })
}

/// Who asks, and the audience that the token is to have.
pub(crate) fn decide(
    request: &TokenRequest,
    tenants: &[Tenant],
    (authority, tenant): (&str, &str),
    arm_audiences: &[String],
    real: Timestamp,
) -> Result<(Subject, String), EntraError> {
    if NO_TENANTS.contains(&tenant) {
        let message =
            "No tenant-identifying information found in either the request or implied by any provided credentials.";
        return Err(EntraError::request(50059, message));
    }
    let tenant = find_tenant(tenants, tenant)?;
    match required(request.grant_type.as_ref(), "grant_type")? {
        "client_credentials" => {}
        other => {
            let message = format!("The app requested an unsupported grant type '{other}'.");
            return Err(EntraError {
                status: 400,
                error: "unsupported_grant_type",
                code: 70003,
                message,
            });
        }
    }
    let client_id = required(request.client_id.as_ref(), "client_id")?;
    let scope = required(request.scope.as_ref(), "scope")?;
    let principal = tenant
        .principals
        .iter()
        .find(|principal| principal.client_id.eq_ignore_ascii_case(client_id))
        .ok_or_else(|| EntraError {
            status: 400,
            error: "unauthorized_client",
            code: 700_016,
            message: format!(
                "Application with identifier '{client_id}' was not found in the directory '{}'.",
                tenant.id
            ),
        })?;
    let oauth = format!("{authority}/{}", tenant.id);
    let endpoints = ["/oauth2/v2.0/token", "/oauth2/token", "/v2.0", "/", ""].map(|path| format!("{oauth}{path}"));
    prove(request, principal, &endpoints, real)?;
    let audience = audience(scope, arm_audiences, &tenant.id)?;
    Ok((subject(tenant, principal), audience))
}

/// Whom a token for this principal names.
pub(crate) fn subject(tenant: &Tenant, principal: &Principal) -> Subject {
    Subject {
        tenant: tenant.id.clone(),
        client_id: principal.client_id.clone(),
        object_id: principal.object_id.clone(),
    }
}

fn required<'r>(value: Option<&'r String>, name: &str) -> Result<&'r str, EntraError> {
    match value.map(String::as_str) {
        Some(value) if !value.is_empty() => Ok(value),
        _ => Err(EntraError::request(
            900_144,
            format!("The request body must contain the following parameter: '{name}'."),
        )),
    }
}

fn prove(
    request: &TokenRequest,
    principal: &Principal,
    endpoints: &[String],
    real: Timestamp,
) -> Result<(), EntraError> {
    if let Some(assertion) = &request.client_assertion {
        if required(request.client_assertion_type.as_ref(), "client_assertion_type")? != JWT_BEARER {
            let message = "Invalid request. Request is malformed or invalid.";
            return Err(EntraError::request(9_002_313, message));
        }
        return assertion::proves(assertion, principal, endpoints, real);
    }
    match (&request.client_secret, &principal.secret) {
        (None, _) => {
            let message =
                "'client_assertion', 'client_secret' or 'request' is required for the 'client_credentials' grant type.";
            Err(EntraError::client(7_000_216, message))
        }
        (Some(given), Some(secret)) if given == secret => Ok(()),
        _ => {
            let message = format!("Invalid client secret provided for app '{}'.", principal.client_id);
            Err(EntraError::client(7_000_215, message))
        }
    }
}

/// The audience of `<resource>/.default`, with or without scopes of OpenID Connect; a resource with a slash at its end keeps it.
fn audience(scope: &str, arm_audiences: &[String], tenant: &str) -> Result<String, EntraError> {
    let of_resources = scope.split(' ').filter(|one| !OPENID_SCOPES.contains(one));
    let of_resources: Vec<&str> = of_resources.filter(|one| !one.is_empty()).collect();
    let resource = match of_resources[..] {
        [only] => only.strip_suffix("/.default"),
        _ => None,
    };
    let Some(resource) = resource else {
        let message = format!(
            "The provided value for scope {scope} is not valid. Client credential flows must have a scope value with /.default suffixed to the resource identifier."
        );
        return Err(EntraError {
            status: 400,
            error: "invalid_scope",
            code: 1_002_012,
            message,
        });
    };
    known_resource(resource, arm_audiences).ok_or_else(|| {
        let message = format!("The resource principal named {resource} was not found in the tenant named {tenant}.");
        EntraError {
            status: 400,
            error: "invalid_resource",
            code: 500_011,
            message,
        }
    })
}

/// The resource as an audience, if the tenant knows it.
pub(crate) fn known_resource(resource: &str, arm_audiences: &[String]) -> Option<String> {
    let known = arm_audiences.iter().any(|audience| audience == resource)
        || OTHER_RESOURCES.contains(&resource.trim_end_matches('/'));
    known.then(|| resource.to_owned())
}

/// The OpenID configuration of a tenant (`/v2.0/.well-known/openid-configuration`).
pub(crate) fn openid_configuration(authority: &str, tenant: &str) -> Value {
    let oauth = format!("{authority}/{tenant}/oauth2/v2.0");
    json!({
        "issuer": format!("{authority}/{tenant}/v2.0"),
        "token_endpoint": format!("{oauth}/token"),
        "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt", "client_secret_basic"],
        "authorization_endpoint": format!("{oauth}/authorize"),
        "device_authorization_endpoint": format!("{oauth}/devicecode"),
        "end_session_endpoint": format!("{oauth}/logout"),
        "jwks_uri": format!("{authority}/{tenant}/discovery/v2.0/keys"),
        "response_modes_supported": ["query", "fragment", "form_post"],
        "response_types_supported": ["code", "id_token", "code id_token", "id_token token"],
        "subject_types_supported": ["pairwise"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "scopes_supported": ["openid", "profile", "email", "offline_access"],
        "claims_supported": ["sub", "iss", "aud", "exp", "iat", "nbf", "ver"],
        "tenant_region_scope": null,
        "cloud_instance_name": "armsim",
    })
}

/// The answer to instance discovery (`/common/discovery/instance`): this host is an authority of its own.
pub(crate) fn instance_discovery(authority: &str, host: &str) -> Value {
    json!({
        "tenant_discovery_endpoint": format!("{authority}/common/v2.0/.well-known/openid-configuration"),
        "api-version": "1.1",
        "metadata": [{"preferred_network": host, "preferred_cache": host, "aliases": [host]}],
    })
}

/// The description of this cloud (`/metadata/endpoints`), in the form of an api-version: of 2015 a few endpoints, up to 2022 a list of clouds,
/// then one cloud. What is not simulated is named as in the public cloud.
pub(crate) fn metadata(authority: &str, arm_audiences: &[String], version: Option<&str>) -> Value {
    let own = format!("{authority}/");
    let authentication =
        json!({"loginEndpoint": own, "audiences": arm_audiences, "tenant": "common", "identityProvider": "AAD"});
    if version == Some("2015-01-01") {
        return json!({"galleryEndpoint": own, "graphEndpoint": "https://graph.windows.net/", "portalEndpoint": own, "authentication": authentication});
    }
    let cloud = json!({
        "name": "armsim",
        "resourceManager": own,
        "portal": own,
        "gallery": own,
        "authentication": authentication,
        "graph": "https://graph.windows.net/",
        "graphAudience": "https://graph.windows.net/",
        "microsoftGraphResourceId": "https://graph.microsoft.com/",
        "batch": "https://batch.core.windows.net/",
        "media": "https://rest.media.azure.net",
        "sqlManagement": "https://management.core.windows.net:8443/",
        "vmImageAliasDoc": own,
        "suffixes": {"storage": "core.windows.net", "keyVaultDns": "vault.azure.net", "acrLoginServer": "azurecr.io", "sqlServerHostname": "database.windows.net"},
    });
    match version {
        Some(version) if version < "2022-09-01" => json!([cloud]),
        _ => cloud,
    }
}
