//! Which identity is used: that of the process, for which this says where its secret is, or one that is given with its
//! secret.

use std::fmt;
use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};

/// How an identity is proven. The choice is explicit; no other source is tried if one fails.
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
    /// A client secret.
    ClientSecret {
        /// The tenant's id or domain.
        tenant: String,
        /// The application's client id.
        client: String,
        /// The secret.
        secret: GivenSecret,
    },
    /// A certificate with its private key.
    ClientCertificate {
        /// The tenant's id or domain.
        tenant: String,
        /// The application's client id.
        client: String,
        /// Both as PEM.
        pem: GivenSecret,
    },
}

/// A secret that is given. `Debug` does not show it.
#[derive(Clone)]
pub struct GivenSecret(pub SecretString);

impl PartialEq for GivenSecret {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose_secret() == other.0.expose_secret()
    }
}

impl Eq for GivenSecret {}

impl fmt::Debug for GivenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GivenSecret")
    }
}
