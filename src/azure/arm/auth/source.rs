//! Which identity the process uses. Holds no secret, only where to find it.

use std::path::PathBuf;

/// How the process proves who it is. The choice is explicit; no other source is tried if one fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSource {
    /// A client secret in HyperShift's credentials file, which is read for each token.
    SecretFile {
        /// YAML or JSON with `subscriptionId`, `clientId`, `clientSecret` and `tenantId`.
        path: PathBuf,
    },
    /// A federated token in a file, which is read for each token. The workload-identity webhook or HyperShift's token
    /// minter writes the file.
    WorkloadIdentity {
        /// The tenant's id or domain.
        tenant: String,
        /// The application's client id.
        client: String,
        /// The file that holds the service-account token.
        token_file: PathBuf,
    },
    /// The identity of the virtual machine or App Service on which the process runs.
    ManagedIdentity {
        /// The client id of a user-assigned identity; none for the system-assigned one.
        client_id: Option<String>,
    },
    /// The login of the `az` command, for development.
    AzureCli,
}
