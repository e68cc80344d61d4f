//! HTTP of the Entra endpoints and of the cloud's description: routes, forms, answers. What a client may have is decided in `entra`.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    entra::{self, EntraError, TokenRequest},
    http_json,
    token::{TokenIssuer, TokenTimes},
};
use crate::Tenant;

/// A request that is for Entra, or for the description of the cloud.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route<'p> {
    Token { tenant: &'p str },
    OpenIdConfiguration { tenant: &'p str },
    Keys { tenant: &'p str },
    InstanceDiscovery,
    Metadata,
}

/// What the answers are made from.
pub(super) struct Login<'s> {
    pub(super) tenants: &'s [Tenant],
    pub(super) times: TokenTimes,
    pub(super) issuer: &'s TokenIssuer,
    pub(super) audiences: &'s [String],
    pub(super) real: Timestamp,
}

impl<'p> Route<'p> {
    /// `None`: the path is ARM's.
    pub(super) fn of(path: &'p str) -> Option<Self> {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        match segments.as_slice() {
            ["metadata", "endpoints"] => Some(Self::Metadata),
            [_, "discovery", "instance"] => Some(Self::InstanceDiscovery),
            [tenant, "oauth2", "v2.0", "token"] => Some(Self::Token { tenant }),
            [tenant, "v2.0", ".well-known", "openid-configuration"] => Some(Self::OpenIdConfiguration { tenant }),
            [tenant, "discovery", "v2.0", "keys"] => Some(Self::Keys { tenant }),
            _ => None,
        }
    }
}

impl Login<'_> {
    /// The answer; `request` carries the absolute URI that the client used.
    pub(super) fn answer(&self, route: &Route<'_>, request: &Request<Bytes>) -> Response<Bytes> {
        let host = request.uri().authority().map_or("", |authority| authority.as_str());
        let authority = format!("https://{host}");
        let answered = match route {
            Route::Token { tenant } if request.method() == Method::POST => self.token((&authority, tenant), request),
            Route::Token { .. } => {
                let message = format!(
                    "The endpoint only accepts POST requests. Received a {} request.",
                    request.method()
                );
                Err(EntraError {
                    status: 400,
                    error: "invalid_request",
                    code: 900_561,
                    message,
                })
            }
            Route::OpenIdConfiguration { tenant } => {
                self.known(tenant, || entra::openid_configuration(&authority, tenant))
            }
            Route::Keys { tenant } => self.known(tenant, || self.issuer.jwks()),
            Route::InstanceDiscovery => Ok(entra::instance_discovery(&authority, host)),
            Route::Metadata => {
                let query = request.uri().query().unwrap_or_default();
                let mut parameters = url::form_urlencoded::parse(query.as_bytes());
                let version = parameters.find(|(name, _)| name.eq_ignore_ascii_case("api-version"));
                let version = version.as_ref().map(|(_, version)| version.as_ref());
                Ok(entra::metadata(&authority, self.audiences, version))
            }
        };
        let mut response = match answered {
            Ok(body) => http_json(StatusCode::OK, &body),
            Err(error) => {
                let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
                http_json(status, &error.body(&authority, self.real))
            }
        };
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-cache"));
        if let Ok(id) = HeaderValue::from_str(&Uuid::new_v4().to_string()) {
            headers.insert("x-ms-request-id", id);
        }
        response
    }

    /// `common` and its like have documents too, though no tokens for clients without a user.
    fn known(&self, tenant: &str, body: impl FnOnce() -> Value) -> Result<Value, EntraError> {
        if !entra::NO_TENANTS.contains(&tenant) {
            entra::find_tenant(self.tenants, tenant).map_err(|error| EntraError {
                error: "invalid_tenant",
                ..error
            })?;
        }
        Ok(body())
    }

    fn token(&self, (authority, tenant): (&str, &str), request: &Request<Bytes>) -> Result<Value, EntraError> {
        let form = token_request(request.headers(), request.body());
        let (subject, audience) = entra::decide(&form, self.tenants, (authority, tenant), self.audiences, self.real)?;
        let Some(token) = self.issuer.issue(&subject, &audience, self.times, self.real) else {
            let message = "The service could not sign a token.".to_owned();
            return Err(EntraError {
                status: 503,
                error: "temporarily_unavailable",
                code: 90033,
                message,
            });
        };
        Ok(
            json!({"token_type": "Bearer", "expires_in": token.expires_in_s, "ext_expires_in": token.expires_in_s, "access_token": token.token}),
        )
    }
}

/// The body of a refusal that a fault rule made.
pub(super) fn refusal(_status: u16, error: &str, message: &str) -> Value {
    json!({"error": error, "error_description": message})
}

/// The client id that a token request names; fault rules match it.
pub(super) fn client_id(request: &Request<Bytes>) -> Option<String> {
    token_request(request.headers(), request.body()).client_id
}

fn token_request(headers: &HeaderMap, body: &[u8]) -> TokenRequest {
    let mut form = TokenRequest::default();
    for (key, value) in url::form_urlencoded::parse(body) {
        let field = match key.as_ref() {
            "grant_type" => &mut form.grant_type,
            "client_id" => &mut form.client_id,
            "client_secret" => &mut form.client_secret,
            "client_assertion" => &mut form.client_assertion,
            "client_assertion_type" => &mut form.client_assertion_type,
            "scope" => &mut form.scope,
            _ => continue,
        };
        *field = Some(value.into_owned());
    }
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if let Some((id, secret)) = header.and_then(entra::basic) {
        form.client_id.get_or_insert(id);
        form.client_secret.get_or_insert(secret);
    }
    form
}

/// The Entra endpoints without the socket, the clock and the key of a server; nothing for a path that is ARM's.
#[doc(hidden)]
pub fn login(tenants: &[Tenant], request: &Request<Bytes>) -> Option<Response<Bytes>> {
    let login = Login {
        tenants,
        times: TokenTimes {
            life_s: 3599,
            skew_s: 0,
        },
        issuer: &TokenIssuer::new(super::jwt::SigningKey::generate()?.into()),
        audiences: &["https://management.azure.com".to_owned()],
        real: Timestamp::now(),
    };
    Route::of(request.uri().path()).map(|route| login.answer(&route, request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_entra_and_of_arm_are_distinguished() {
        assert_eq!(Route::of("//t/oauth2/v2.0/token"), Some(Route::Token { tenant: "t" }));
        assert_eq!(
            Route::of("/t/v2.0/.well-known/openid-configuration"),
            Some(Route::OpenIdConfiguration { tenant: "t" })
        );
        assert_eq!(Route::of("/common/discovery/instance"), Some(Route::InstanceDiscovery));
        assert_eq!(Route::of("/metadata/endpoints"), Some(Route::Metadata));
        assert_eq!(Route::of("/subscriptions"), None);
        assert_eq!(Route::of("/subscriptions/s/resourceGroups/token"), None);
    }

    #[test]
    fn credentials_may_come_in_a_basic_header() {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Basic YzpzOnM="));
        let form = token_request(&headers, b"grant_type=client_credentials&scope=a%2F.default");
        assert_eq!(
            (form.client_id.as_deref(), form.client_secret.as_deref()),
            (Some("c"), Some("s:s"))
        );
        assert_eq!(form.scope.as_deref(), Some("a/.default"));
    }
}
