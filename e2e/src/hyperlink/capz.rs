//! Runs the real executable as role `capz`.

use std::path::Path;

use anyhow::Result;

use super::{Hyperlink, PATIENT_LEASE, Planned, planned};
use crate::capz_cluster::CapzCluster;
use crate::capz_env::CapzEnv;
use crate::process::Program;
use crate::roles;

impl Hyperlink {
    /// Starts role `capz` for a management cluster, with a ServiceAccount that has the shipped rights and nothing else:
    /// Secrets it may read in these namespaces alone, and control planes it may pause where there are gates. Waits
    /// until it serves its probes. `flags` replace the default flags of the same names.
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
        let executable = crate::binaries::executable("hyperlink")?;
        Self::start_capz_program(&executable, env, (management, identity_namespaces), name, flags).await
    }

    /// Starts the executable at this path as [`Hyperlink::start_capz`] does.
    ///
    /// # Errors
    ///
    /// As [`Hyperlink::start_capz`].
    pub async fn start_capz_program(
        executable: &Path,
        env: &CapzEnv,
        (management, identity_namespaces): (&CapzCluster, &[&str]),
        name: &str,
        flags: &[(&str, &str)],
    ) -> Result<Self> {
        let given = |name: &str| flags.iter().any(|(flag, _)| *flag == name);
        let scope = flags.iter().find(|(flag, _)| *flag == "namespace");
        // Where the lease is elsewhere than what is served, its name tells what that is.
        let lease = scope.map_or_else(
            || roles::CAPZ_LEASE.to_owned(),
            |(_, namespace)| format!("{}-{namespace}", roles::CAPZ_LEASE),
        );
        let has_gates = given("azure-cluster-gates");
        let account = roles::install_capz(env.control_plane(), &lease, identity_namespaces, has_gates).await?;
        env.create_lease(&lease).await?;
        let kubeconfig = account.path().to_string_lossy();
        let of_run = [
            ("lease-namespace", env.hyperlink_namespace()),
            ("metrics-bind", "127.0.0.1:0"),
        ];
        let own = shared(env, management, &kubeconfig).into_iter().chain(of_run);
        let own = own.chain(PATIENT_LEASE).filter(|(flag, _)| !given(flag));
        let program = own
            .chain(flags.iter().copied())
            .fold(program(executable, env).arg("run"), |program, (flag, value)| {
                program.flag(flag, value)
            });
        Self::start_prepared(&program, "capz", name, env.dir()).await
    }
}

/// Runs `hyperlink plan` of role `capz` with these arguments.
///
/// # Errors
///
/// It cannot be started or does not end.
pub async fn plan_capz(
    env: &CapzEnv,
    management: &CapzCluster,
    kubeconfig: &Path,
    arguments: &[&str],
) -> Result<Planned> {
    let kubeconfig = kubeconfig.to_string_lossy();
    let program = program(&crate::binaries::executable("hyperlink")?, env).arg("plan");
    let program = arguments.iter().fold(program, Program::arg);
    let flags = shared(env, management, &kubeconfig).into_iter();
    planned(&flags.fold(program, |program, (flag, value)| program.flag(flag, value))).await
}

/// The flags of every command of the role.
fn shared<'a>(env: &'a CapzEnv, management: &'a CapzCluster, kubeconfig: &'a str) -> [(&'static str, &'a str); 9] {
    let azure = env.azure();
    [
        ("role", "capz"),
        ("management-cluster-name", management.name()),
        ("management-cluster-namespace", management.namespace()),
        ("kubeconfig", kubeconfig),
        ("log-format", "json"),
        ("arm-endpoint", &azure.arm),
        ("authority", &azure.authority),
        ("audience", &azure.audience),
        ("ca-file", azure.ca_file.to_str().unwrap_or_default()),
    ]
}

/// An executable, with what its Pod has to prove its identities.
fn program(executable: &Path, env: &CapzEnv) -> Program {
    let azure = env.azure();
    Program::new(executable)
        .without_our_environment()
        .env("AZURE_FEDERATED_TOKEN_FILE", &azure.token_file)
        .env("IDENTITY_ENDPOINT", &azure.managed_identity)
        .env("IDENTITY_HEADER", "test")
}
