//! Runs the real executable as role `capz`.

use anyhow::Result;

use super::{Hyperlink, PATIENT_LEASE};
use crate::capz_cluster::CapzCluster;
use crate::capz_env::CapzEnv;
use crate::process::Program;
use crate::roles;

impl Hyperlink {
    /// Starts role `capz` for a management cluster, with a ServiceAccount that has the shipped rights and nothing else:
    /// Secrets it may read in these namespaces alone. Waits until it serves its probes. `flags` replace the default
    /// flags of the same names.
    ///
    /// # Errors
    ///
    /// The build fails or the process ends; the error holds the end of its log.
    pub async fn start_capz(
        env: &CapzEnv,
        management: &CapzCluster,
        identity_namespaces: &[&str],
        name: &str,
        flags: &[(&str, &str)],
    ) -> Result<Self> {
        let account = roles::install_capz(env.control_plane(), identity_namespaces).await?;
        env.create_lease(roles::CAPZ_LEASE).await?;
        let (kubeconfig, azure) = (account.path().to_string_lossy(), env.azure());
        let ca_file = azure.ca_file.to_string_lossy();
        let own = [
            ("role", "capz"),
            ("management-cluster-name", management.name()),
            ("management-cluster-namespace", management.namespace()),
            ("kubeconfig", &kubeconfig),
            ("lease-namespace", env.hyperlink_namespace()),
            ("metrics-bind", "127.0.0.1:0"),
            ("log-format", "json"),
            ("arm-endpoint", &azure.arm),
            ("authority", &azure.authority),
            ("audience", &azure.audience),
            ("ca-file", &ca_file),
        ];
        let given = |name: &str| flags.iter().any(|(flag, _)| *flag == name);
        let own = own.into_iter().chain(PATIENT_LEASE).filter(|(flag, _)| !given(flag));
        let program = Program::new(&crate::binaries::executable("hyperlink")?).without_our_environment();
        let program = own
            .chain(flags.iter().copied())
            .fold(program.arg("run"), |program, (flag, value)| program.flag(flag, value));
        let program = program
            .env("AZURE_FEDERATED_TOKEN_FILE", &azure.token_file)
            .env("IDENTITY_ENDPOINT", &azure.managed_identity)
            .env("IDENTITY_HEADER", "test");
        Self::start_prepared(&program, "capz", name, env.dir()).await
    }
}
