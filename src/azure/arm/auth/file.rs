//! The files that credentials are read from. Their contents never appear in an error.

use std::path::Path;

use secrecy::SecretString;
use serde::Deserialize;

use crate::arm::auth::AuthError;

/// HyperShift's credentials file: YAML or JSON.
#[derive(Debug, Clone)]
pub struct CredentialsFile {
    /// The value of `subscriptionId`.
    pub subscription: String,
    /// The value of `tenantId`.
    pub tenant: String,
    /// The value of `clientId`.
    pub client: String,
    /// The value of `clientSecret`.
    pub secret: SecretString,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    #[serde(default)]
    subscription_id: String,
    #[serde(default)]
    tenant_id: String,
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    client_secret: String,
}

impl CredentialsFile {
    /// Reads and checks the file.
    ///
    /// # Errors
    /// The file cannot be read, cannot be parsed, or lacks a field.
    pub fn read(path: &Path) -> Result<Self, AuthError> {
        let text = read(path, "credentials file")?;
        // A parser's own message may quote the secret.
        let options = serde_saphyr::options! { no_schema: true, strict_booleans: true };
        let fields: Fields = serde_saphyr::from_str_with_options(&text, options).map_err(|_| {
            misconfigured(
                path,
                "credentials file",
                "is neither YAML nor JSON with text in subscriptionId, tenantId, clientId and clientSecret",
            )
        })?;
        let missing: Vec<&str> = [
            ("subscriptionId", &fields.subscription_id),
            ("tenantId", &fields.tenant_id),
            ("clientId", &fields.client_id),
            ("clientSecret", &fields.client_secret),
        ]
        .into_iter()
        .filter(|(_, value)| value.is_empty())
        .map(|(name, _)| name)
        .collect();
        if !missing.is_empty() {
            let lacks = format!("lacks {}", missing.join(", "));
            return Err(misconfigured(path, "credentials file", &lacks));
        }
        Ok(Self {
            subscription: fields.subscription_id,
            tenant: fields.tenant_id,
            client: fields.client_id,
            secret: fields.client_secret.into(),
        })
    }
}

/// Reads a federated token, without the newline at the end that its writer may have left.
pub(super) fn federated_token(path: &Path) -> Result<SecretString, AuthError> {
    let text = read(path, "federated token file")?;
    match text.trim() {
        "" => Err(misconfigured(path, "federated token file", "is empty")),
        token => Ok(token.into()),
    }
}

fn read(path: &Path, what: &str) -> Result<String, AuthError> {
    std::fs::read_to_string(path).map_err(|error| {
        let why = format!("cannot be read: {}", error.kind());
        misconfigured(path, what, &why)
    })
}

fn misconfigured(path: &Path, what: &str, why: &str) -> AuthError {
    AuthError::Misconfigured(format!("the {what} {} {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use secrecy::ExposeSecret;

    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[rstest::rstest]
    #[case("subscriptionId: s\ntenantId: t\nclientId: c\nclientSecret: x~y\n")]
    #[case(
        "{\n\t\"subscriptionId\": \"s\",\n\t\"tenantId\": \"t\",\n\t\"clientId\": \"c\",\n\t\"clientSecret\": \"x~y\", \"more\": 1\n}"
    )]
    fn yaml_and_json_are_read(#[case] text: &str) {
        let read = CredentialsFile::read(file(text).path()).unwrap();
        assert_eq!([read.subscription, read.tenant, read.client], ["s", "t", "c"]);
        assert_eq!(read.secret.expose_secret(), "x~y");
    }

    #[test]
    fn missing_fields_are_all_named() {
        let file = file("tenantId: t\nclientSecret: hunter2\n");
        let error = CredentialsFile::read(file.path()).unwrap_err().to_string();
        assert!(error.ends_with("lacks subscriptionId, clientId"), "{error}");
    }

    #[rstest::rstest]
    #[case("hunter2")]
    #[case("clientSecret: [hunter2]")]
    #[case("clientSecret: \"hunter2")]
    fn unreadable_file_is_refused_without_its_text(#[case] text: &str) {
        let error = CredentialsFile::read(file(text).path()).unwrap_err();
        assert!(matches!(error, AuthError::Misconfigured(_)));
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }

    #[test]
    fn absent_file_is_named() {
        let error = CredentialsFile::read(Path::new("/nowhere/creds")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the credentials file /nowhere/creds cannot be read: entity not found"
        );
    }

    #[test]
    fn secret_does_not_show_in_debug() {
        let text = "{subscriptionId: s, tenantId: t, clientId: c, clientSecret: hunter2}";
        let read = CredentialsFile::read(file(text).path()).unwrap();
        assert!(!format!("{read:?}").contains("hunter2"));
    }

    #[test]
    fn newline_after_a_federated_token_is_dropped() {
        let token = federated_token(file("a.b.c\n").path()).unwrap();
        assert_eq!(token.expose_secret(), "a.b.c");
    }

    #[test]
    fn empty_federated_token_is_refused() {
        let error = federated_token(file("\n").path()).unwrap_err();
        assert!(error.to_string().ends_with("is empty"), "{error}");
    }
}
