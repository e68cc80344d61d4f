//! The App Service form of a managed identity: decides which principal answers and for which resource.
//! Source: <https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference>.

use serde::Deserialize;

use super::{
    entra::{known_resource, subject},
    token::Subject,
};
use crate::{Principal, Tenant};

/// The query of `GET /msi/token`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct IdentityQuery {
    pub(crate) resource: Option<String>,
    #[serde(rename = "api-version")]
    pub(crate) api_version: Option<String>,
    pub(crate) client_id: Option<String>,
}

/// A refusal: HTTP status and message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IdentityError {
    pub(crate) status: u16,
    pub(crate) message: String,
}

fn refuse<T>(status: u16, message: impl Into<String>) -> Result<T, IdentityError> {
    Err(IdentityError {
        status,
        message: message.into(),
    })
}

/// Who asks, and the audience that the token is to have. `secret` is the `X-IDENTITY-HEADER`: any value will do, none will not.
///
/// Without `client_id` it is the system-assigned identity: the first principal that has neither secret nor federated subject.
pub(crate) fn decide(
    query: &IdentityQuery,
    secret: Option<&str>,
    tenants: &[Tenant],
    arm_audiences: &[String],
) -> Result<(Subject, String), IdentityError> {
    if secret.is_none_or(str::is_empty) {
        return refuse(403, "The X-IDENTITY-HEADER header is missing.");
    }
    if query.api_version.as_deref() != Some("2019-08-01") {
        return refuse(400, "The api-version must be 2019-08-01.");
    }
    let Some(resource) = &query.resource else {
        return refuse(400, "The resource parameter is missing.");
    };
    let Some(audience) = known_resource(resource, arm_audiences) else {
        return refuse(
            400,
            format!(
                "AADSTS500011: The resource principal named {resource} was not found in the tenant."
            ),
        );
    };
    let wanted = |principal: &Principal| match &query.client_id {
        Some(id) => principal.client_id.eq_ignore_ascii_case(id),
        None => principal.secret.is_none() && principal.federated.is_empty(),
    };
    let found = tenants.iter().find_map(|tenant| {
        tenant
            .principals
            .iter()
            .find(|principal| wanted(principal))
            .map(|principal| subject(tenant, principal))
    });
    match found {
        Some(subject) => Ok((subject, audience)),
        None => refuse(
            400,
            "No User Assigned or Delegated Managed Identity found for specified ClientId/ResourceId/PrincipalId.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ARM: &str = "https://management.azure.com/";

    fn ask(query: serde_json::Value, secret: Option<&str>) -> Result<String, u16> {
        let tenants: Vec<Tenant> = serde_json::from_value(json!([{"id": "t", "principals": [
            {"client_id": "secretive", "object_id": "o1", "secret": "s"},
            {"client_id": "system", "object_id": "o2"},
            {"client_id": "user", "object_id": "o3"},
        ]}]))
        .unwrap();
        let query = serde_json::from_value(query).unwrap();
        decide(&query, secret, &tenants, &[ARM.to_owned()])
            .map(|(subject, _)| subject.client_id)
            .map_err(|error| error.status)
    }

    #[test]
    fn system_assigned_identity_is_the_principal_without_credentials() {
        assert_eq!(
            ask(
                json!({"resource": ARM, "api-version": "2019-08-01"}),
                Some("x")
            ),
            Ok("system".into())
        );
    }

    #[test]
    fn user_assigned_identity_is_named_by_its_client_id() {
        assert_eq!(
            ask(
                json!({"resource": ARM, "api-version": "2019-08-01", "client_id": "USER"}),
                Some("x")
            ),
            Ok("user".into())
        );
        assert_eq!(
            ask(
                json!({"resource": ARM, "api-version": "2019-08-01", "client_id": "nobody"}),
                Some("x")
            ),
            Err(400)
        );
    }

    #[test]
    fn missing_header_version_or_resource_is_refused() {
        assert_eq!(
            ask(json!({"resource": ARM, "api-version": "2019-08-01"}), None),
            Err(403)
        );
        assert_eq!(
            ask(
                json!({"resource": ARM, "api-version": "2017-09-01"}),
                Some("x")
            ),
            Err(400)
        );
        assert_eq!(
            ask(json!({"api-version": "2019-08-01"}), Some("x")),
            Err(400)
        );
        assert_eq!(
            ask(
                json!({"resource": "https://unknown.example", "api-version": "2019-08-01"}),
                Some("x")
            ),
            Err(400)
        );
    }
}
