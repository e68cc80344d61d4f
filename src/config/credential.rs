//! The credential for Azure. Contradictions in the environment are refused, never guessed at.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::settings::CredentialKind;
use super::{Environment, Problems};
use crate::api::Role;
use crate::azure::arm::auth::{CredentialSource, CredentialsFile};

pub(super) const CREDENTIALS_FILE: &str = "AZURE_CREDENTIALS_FILE";
const CLIENT_ID: &str = "AZURE_CLIENT_ID";
const TENANT_ID: &str = "AZURE_TENANT_ID";
const TOKEN_FILE: &str = "AZURE_FEDERATED_TOKEN_FILE";
/// HyperShift's switch to workload identity; the identity itself is in the other variables.
const PLS_CLIENT_ID: &str = "AZURE_PLS_CLIENT_ID";

/// The credential that was chosen, or else the one that the environment describes.
pub(super) fn credential(
    chosen: Option<CredentialKind>,
    roles: &BTreeSet<Role>,
    environment: &Environment,
    problems: &mut Problems,
) -> Option<CredentialSource> {
    let kind = match chosen {
        Some(kind) => kind,
        None => problems.check(described(roles, environment))?,
    };
    match kind {
        CredentialKind::SecretFile => {
            let path = PathBuf::from(needed(CREDENTIALS_FILE, "secret-file", environment, problems)?);
            // Only a check: the file is read again for each token.
            let file = CredentialsFile::read(&path);
            problems.check(file.map_err(|error| format!("{CREDENTIALS_FILE}: {error}")))?;
            Some(CredentialSource::SecretFile { path })
        }
        CredentialKind::WorkloadIdentity => workload_identity(environment, problems),
        CredentialKind::ManagedIdentity => Some(CredentialSource::ManagedIdentity {
            client_id: environment.variable(CLIENT_ID),
        }),
        CredentialKind::AzureCli => Some(CredentialSource::AzureCli),
    }
}

fn workload_identity(environment: &Environment, problems: &mut Problems) -> Option<CredentialSource> {
    let variables = [CLIENT_ID, TENANT_ID, TOKEN_FILE];
    if variables.iter().all(|name| environment.variable(name).is_none()) {
        problems.add(format!(
            "{CLIENT_ID}, {TENANT_ID} and {TOKEN_FILE} are missing; credential workload-identity needs them: its \
             webhook sets them when a pod is made, so install it and make the pod anew, or set them all"
        ));
        return None;
    }
    let [client, tenant, token_file] = variables.map(|name| needed(name, "workload-identity", environment, problems));
    Some(CredentialSource::WorkloadIdentity {
        tenant: tenant?,
        client: client?,
        // It may not exist yet: HyperShift's token minter starts at the same time.
        token_file: token_file?.into(),
    })
}

fn needed(variable: &str, credential: &str, environment: &Environment, problems: &mut Problems) -> Option<String> {
    let value = environment.variable(variable);
    problems.check(value.ok_or_else(|| format!("{variable} is missing; credential {credential} needs it")))
}

/// The credential that HyperShift's variables describe. HyperShift's operator uses workload identity if its switch is
/// set, else the file; the control plane operator uses the federated token.
fn described(roles: &BTreeSet<Role>, environment: &Environment) -> Result<CredentialKind, String> {
    if environment.has(CREDENTIALS_FILE) {
        if environment.has(PLS_CLIENT_ID) {
            Err(two_credentials(PLS_CLIENT_ID))
        } else if environment.has(TOKEN_FILE) && roles.contains(&Role::Cpo) {
            Err(two_credentials(TOKEN_FILE))
        } else {
            Ok(CredentialKind::SecretFile)
        }
    } else if [PLS_CLIENT_ID, CLIENT_ID, TENANT_ID, TOKEN_FILE]
        .into_iter()
        .any(|name| environment.has(name))
    {
        Ok(CredentialKind::WorkloadIdentity)
    } else {
        Err(format!(
            "no credential: set {CREDENTIALS_FILE}, or {CLIENT_ID}, {TENANT_ID} and {TOKEN_FILE}, or choose with \
             --credential (or HYPERLINK_CREDENTIAL)"
        ))
    }
}

fn two_credentials(other: &str) -> String {
    format!(
        "two credentials: {CREDENTIALS_FILE} and {other} are both set; unset one or choose with --credential (or \
         HYPERLINK_CREDENTIAL)"
    )
}
