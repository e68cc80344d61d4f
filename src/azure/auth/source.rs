//! Which identity is used. Holds no secret, only where to find it.

use std::path::PathBuf;

/// How the process proves who it is. Never tried one after another: the choice is explicit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSource {
    /// A client secret in HyperShift's credentials file; read anew for each token.
    SecretFile {
        /// YAML or JSON with `subscriptionId`, `clientId`, `clientSecret` and `tenantId`.
        path: PathBuf,
    },
    /// A federated token, as the workload-identity webhook or HyperShift's token minter lays it down; read anew for each token.
    WorkloadIdentity {
        /// The tenant's id or domain.
        tenant: String,
        /// The application's client id.
        client: String,
        /// The file that holds the service-account token.
        token_file: PathBuf,
    },
    /// The identity of the virtual machine or App Service that we run on.
    ManagedIdentity {
        /// The client id of a user-assigned identity; none for the system-assigned one.
        client_id: Option<String>,
    },
    /// The login of the `az` command, for development.
    AzureCli,
}
