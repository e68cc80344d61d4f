//! Managed identities in two forms, App Service's and that of a virtual machine's instance metadata: decides which principal answers, for which
//! resource, and what either form shows. Sources: <https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference>,
//! <https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token>.

use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    entra::{known_resource, subject},
    token::{AccessToken, Subject},
};
use crate::{Principal, Tenant};

/// Which of the two endpoints is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `/msi/token`
    AppService,
    /// `/metadata/identity/oauth2/token`
    Metadata,
}

/// The query of either form.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct IdentityQuery {
    resource: Option<String>,
    #[serde(rename = "api-version")]
    api_version: Option<String>,
    client_id: Option<String>,
    /// App Service calls it `principal_id`.
    #[serde(alias = "principal_id")]
    object_id: Option<String>,
    /// No seed gives an identity a resource id.
    #[serde(alias = "msi_res_id")]
    mi_res_id: Option<String>,
}

/// A refusal: HTTP status, OAuth 2.0 error, message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IdentityError {
    pub(crate) status: u16,
    pub(crate) error: &'static str,
    pub(crate) message: String,
}

fn refuse<T>(status: u16, message: impl Into<String>) -> Result<T, IdentityError> {
    Err(IdentityError {
        status,
        error: "invalid_request",
        message: message.into(),
    })
}

impl Form {
    /// The JSON of a refusal.
    pub(crate) fn error(self, status: u16, error: &str, message: &str) -> Value {
        match self {
            Self::AppService => json!({"statusCode": status, "message": message}),
            Self::Metadata => json!({"error": error, "error_description": message}),
        }
    }

    /// The JSON of a token; all values are strings in both forms.
    pub(crate) fn token(self, token: &AccessToken, subject: &Subject, resource: &str) -> Value {
        let mut body = json!({"access_token": token.token, "expires_on": token.expires_on.to_string(), "resource": resource,
            "token_type": "Bearer", "client_id": subject.client_id});
        if self == Self::Metadata {
            body["expires_in"] = json!(token.expires_in_s.to_string());
            body["ext_expires_in"] = body["expires_in"].clone();
            body["not_before"] = json!(token.expires_on.saturating_sub(token.expires_in_s).to_string());
        }
        body
    }

    /// The header that keeps requests out that were only forwarded here, and the api-version: what a program must know to be let in.
    fn enter(self, query: &IdentityQuery, headers: &HeaderMap) -> Result<(), IdentityError> {
        let has = |name, fits: &dyn Fn(&[u8]) -> bool| headers.get(name).is_some_and(|value| fits(value.as_bytes()));
        let version = query.api_version.as_deref();
        match self {
            Self::AppService if !has("x-identity-header", &|value| !value.is_empty()) => {
                refuse(403, "The X-IDENTITY-HEADER header is missing.")
            }
            Self::AppService if version != Some("2019-08-01") => refuse(400, "The api-version must be 2019-08-01."),
            Self::Metadata if !has("metadata", &|value| value.eq_ignore_ascii_case(b"true")) => {
                refuse(400, "Required metadata header not specified")
            }
            Self::Metadata if version.is_none_or(|version| version < "2018-02-01") => refuse(
                400,
                "Bad request. api-version was not specified in the request, or is older than 2018-02-01.",
            ),
            Self::AppService | Self::Metadata => Ok(()),
        }
    }

    fn nobody(self) -> &'static str {
        match self {
            Self::AppService => {
                "No User Assigned or Delegated Managed Identity found for specified ClientId/ResourceId/PrincipalId."
            }
            Self::Metadata => "Identity not found",
        }
    }
}

impl IdentityQuery {
    /// Without any id it is the system-assigned identity: a principal without a credential of its own.
    fn names(&self, principal: &Principal) -> bool {
        let is = |asked: &str, id: &str| asked.eq_ignore_ascii_case(id);
        match (&self.client_id, &self.object_id, &self.mi_res_id) {
            (None, None, None) => !principal.has_credential(),
            (Some(client), _, _) => is(client, &principal.client_id),
            (None, Some(object), _) => is(object, &principal.object_id),
            (None, None, Some(_)) => false,
        }
    }

    /// Whose token is asked for, whatever else is wrong with the request; fault rules match the client id.
    pub(crate) fn subject(&self, tenants: &[Tenant]) -> Option<Subject> {
        tenants.iter().find_map(|tenant| {
            let mut principals = tenant.principals.iter();
            let found = principals.find(|principal| self.names(principal));
            found.map(|principal| subject(tenant, principal))
        })
    }
}

/// Who asks, and the audience that the token is to have.
///
/// # Errors
/// What either form refuses, in its words.
pub(crate) fn decide(
    form: Form,
    query: &IdentityQuery,
    headers: &HeaderMap,
    tenants: &[Tenant],
    arm_audiences: &[String],
) -> Result<(Subject, String), IdentityError> {
    form.enter(query, headers)?;
    let Some(resource) = &query.resource else {
        return refuse(400, "Required query variable 'resource' is missing");
    };
    let Some(audience) = known_resource(resource, arm_audiences) else {
        return Err(IdentityError {
            status: 400,
            error: "invalid_resource",
            message: format!("AADSTS500011: The resource principal named {resource} was not found in the tenant."),
        });
    };
    match query.subject(tenants) {
        Some(subject) => Ok((subject, audience)),
        None => refuse(400, form.nobody()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ARM: &str = "https://management.azure.com";

    fn ask(form: Form, query: Value, header: (&'static str, &'static str)) -> Result<String, u16> {
        let tenants: Vec<Tenant> = serde_json::from_value(json!([{"id": "t", "principals": [
            {"client_id": "secretive", "object_id": "o1", "secret": "s"},
            {"client_id": "certified", "object_id": "o4", "certificates": ["PEM"]},
            {"client_id": "system", "object_id": "o2"},
            {"client_id": "user", "object_id": "o3"},
        ]}]))
        .unwrap();
        let query = serde_json::from_value(query).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header.0, header.1.parse().unwrap());
        decide(form, &query, &headers, &tenants, &[ARM.to_owned()])
            .map(|(subject, _)| subject.client_id)
            .map_err(|error| error.status)
    }

    #[rstest]
    #[case::system_assigned(json!({}), Ok("system"))]
    #[case::client(json!({"client_id": "USER"}), Ok("user"))]
    #[case::unknown_client(json!({"client_id": "nobody"}), Err(400))]
    #[case::object(json!({"object_id": "o3"}), Ok("user"))]
    #[case::principal(json!({"principal_id": "O3"}), Ok("user"))]
    #[case::resource_id(json!({"mi_res_id": "/subscriptions/s"}), Err(400))]
    #[case::resource_id_of_a_machine(json!({"msi_res_id": "/subscriptions/s"}), Err(400))]
    #[case::unknown_resource(json!({"resource": "https://unknown.example"}), Err(400))]
    #[case::no_resource(json!({"resource": null}), Err(400))]
    #[case::old_version(json!({"api-version": "2017-09-01"}), Err(400))]
    #[case::no_version(json!({"api-version": null}), Err(400))]
    fn both_forms_answer_for(#[case] change: Value, #[case] expected: Result<&str, u16>) {
        for (form, version, header) in [
            (Form::AppService, "2019-08-01", ("x-identity-header", "x")),
            (Form::Metadata, "2018-02-01", ("metadata", "True")),
        ] {
            let mut query = json!({"resource": ARM, "api-version": version});
            query
                .as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone());
            assert_eq!(
                ask(form, query.clone(), header),
                expected.map(str::to_owned),
                "{form:?}"
            );
            assert!(ask(form, query, ("other", "x")).is_err(), "{form:?} without its header");
        }
    }
}
