//! The credentials file and the token file. Their secrets never appear in an error.
//!
//! Format: <https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html>

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use secrecy::{ExposeSecret, SecretString};

use crate::credentials::{CredentialError, Session};
use crate::role_arn::RoleArn;

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 64 * 1024;
/// The profile that is used.
const PROFILE: &str = "default";
/// Keys of identities that are not served. They are named in the error.
const NOT_SERVED: [&str; 4] = ["source_profile", "credential_process", "sso_session", "sso_start_url"];

/// What the profile `default` says.
#[derive(Debug, Clone)]
pub struct Profile {
    /// How the process proves who it is.
    pub source: IdentitySource,
    /// The value of `region`.
    pub region: Option<String>,
}

/// How the process proves who it is.
#[derive(Debug, Clone)]
pub enum IdentitySource {
    /// Long-lived keys.
    Keys(Session),
    /// A role that is assumed with a token of an identity provider.
    WebIdentity {
        /// The role.
        role: RoleArn,
        /// The file with the token. Kubernetes or HyperShift's token minter writes it.
        token_file: PathBuf,
    },
    /// A role that is assumed with the role of the machine on which the process runs.
    InstanceMetadata {
        /// The role.
        role: RoleArn,
    },
}

impl Profile {
    /// Reads the file.
    ///
    /// # Errors
    /// The file cannot be read, has no profile `default`, or that has none of the forms that are served.
    pub fn read(path: &Path) -> Result<Self, CredentialError> {
        let text = read(path, "credentials file")?;
        Self::parse(text.expose_secret())
            .map_err(|why| CredentialError::Misconfigured(format!("the credentials file {} {why}", path.display())))
    }

    /// Parses the file's text.
    ///
    /// # Errors
    /// What is wrong with it, without any value.
    pub fn parse(text: &str) -> Result<Self, String> {
        let keys = keys(text)?;
        let value = |name: &str| keys.get(name).map(|secret| secret.expose_secret());
        if let Some(name) = NOT_SERVED.iter().find(|name| value(name).is_some()) {
            return Err(format!("has {name}, which is not supported"));
        }
        let role = value("role_arn").map(RoleArn::parse).transpose();
        let role = role.map_err(|_| "has a role_arn that is not the ARN of a role".to_owned())?;
        let source = match (role, value("web_identity_token_file"), value("credential_source")) {
            (Some(role), Some(file), None) => IdentitySource::WebIdentity {
                role,
                token_file: file.into(),
            },
            (Some(role), None, Some("Ec2InstanceMetadata")) => IdentitySource::InstanceMetadata { role },
            (_, None, Some("Ec2InstanceMetadata")) => return Err("lacks role_arn".to_owned()),
            (_, None, Some(_)) => return Err("has a credential_source other than Ec2InstanceMetadata".to_owned()),
            (None, Some(_), _) => return Err("lacks role_arn".to_owned()),
            (Some(_), Some(_), Some(_)) => {
                return Err("has both web_identity_token_file and credential_source".to_owned());
            }
            (Some(_), None, None) => return Err("lacks web_identity_token_file or credential_source".to_owned()),
            (None, None, None) => IdentitySource::Keys(session(&keys)?),
        };
        let region = value("region").map(str::to_owned);
        Ok(Self { source, region })
    }
}

fn session(keys: &HashMap<String, SecretString>) -> Result<Session, String> {
    let (Some(id), Some(secret)) = (keys.get("aws_access_key_id"), keys.get("aws_secret_access_key")) else {
        return Err("lacks aws_access_key_id with aws_secret_access_key, and role_arn".to_owned());
    };
    let token = keys.get("aws_session_token").cloned();
    let secrets = [Some(id), Some(secret), token.as_ref()];
    let is_sendable = |key: &SecretString| key.expose_secret().bytes().all(|byte| byte.is_ascii_graphic());
    if !secrets.into_iter().flatten().all(is_sendable) {
        return Err("has a key with characters that no key has".to_owned());
    }
    Ok(Session::new(id.expose_secret(), secret.clone(), token))
}

/// The keys of the profile. A later value of a key counts, an empty one counts as absent.
fn keys(text: &str) -> Result<HashMap<String, SecretString>, String> {
    let (mut keys, mut inside, mut exists) = (HashMap::new(), false, false);
    for (index, raw) in text.lines().enumerate() {
        let line = without_comment(raw).trim_end();
        // Blanks before it: it belongs to the key above, and no key that is read has such lines.
        if line.is_empty() || line.starts_with([' ', '\t']) {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            let name = section
                .strip_suffix(']')
                .ok_or_else(|| format!("has no ] in line {}", index + 1))?;
            let name = name.trim();
            let name = name.strip_prefix("profile ").unwrap_or(name).trim();
            inside = name == PROFILE;
            exists |= inside;
            continue;
        }
        let (key, value) = line
            .split_once('=')
            .ok_or_else(|| format!("has no = in line {}", index + 1))?;
        if inside {
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            if value.is_empty() {
                keys.remove(&key);
            } else {
                keys.insert(key, SecretString::from(value));
            }
        }
    }
    if exists {
        Ok(keys)
    } else {
        Err(format!("has no profile {PROFILE}"))
    }
}

/// The line without a comment: from a number sign or semicolon on, at its beginning or after a blank.
fn without_comment(line: &str) -> &str {
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        if matches!(c, '#' | ';') && before.is_whitespace() {
            return &line[..at];
        }
        before = c;
    }
    line
}

/// Reads a web identity token, without the newline at the end that its writer may have left.
pub(super) fn web_identity_token(path: &Path) -> Result<SecretString, CredentialError> {
    let text = read(path, "web identity token file")?;
    match text.expose_secret().trim() {
        "" => Err(misconfigured(path, "web identity token file", "is empty")),
        token => Ok(token.into()),
    }
}

/// What tells two versions of a file apart without reading it. Kubernetes replaces files by new ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileStamp(Option<(SystemTime, u64)>);

impl FileStamp {
    /// The stamp of the file as it is now.
    pub(super) fn of(path: &Path) -> Self {
        let metadata = std::fs::metadata(path).ok();
        Self(metadata.and_then(|metadata| Some((metadata.modified().ok()?, metadata.len()))))
    }
}

fn read(path: &Path, what: &str) -> Result<SecretString, CredentialError> {
    let mut text = String::new();
    let opened = std::fs::File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_string(&mut text));
    let text = SecretString::from(text);
    match opened {
        Err(error) => Err(misconfigured(path, what, &format!("cannot be read: {}", error.kind()))),
        Ok(size) if size as u64 > MAX_FILE => Err(misconfigured(path, what, "is too large")),
        Ok(_) => Ok(text),
    }
}

fn misconfigured(path: &Path, what: &str, why: &str) -> CredentialError {
    CredentialError::Misconfigured(format!("the {what} {} {why}", path.display()))
}

#[cfg(test)]
mod tests;
