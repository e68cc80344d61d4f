//! Runs the real executable for clusters on AWS.

use std::path::Path;

use anyhow::Result;

use super::{Hyperlink, Planned, Role};
use crate::aws_sim::REGION;
use crate::process::Program;
use crate::{AwsEnv, roles};

/// Nothing answers there: no test runs on a machine of EC2.
const NO_INSTANCE_METADATA: &str = "http://127.0.0.1:9";

/// The name of the lease of a role for clusters on AWS, in one namespace or in all.
pub fn lease(role: Role, namespace: Option<&str>) -> String {
    let name = format!("hyperlink-{}-aws", role.as_str());
    match namespace {
        Some(namespace) => format!("{name}-{namespace}"),
        None => name,
    }
}

impl Hyperlink {
    /// Starts one role for clusters on AWS, with a ServiceAccount that has the shipped rights and nothing else, and
    /// waits until it serves its probes. `name` distinguishes several processes of one role; `flags` replace the
    /// default flags of the same names.
    ///
    /// # Errors
    ///
    /// The build fails or the process ends; the error holds the end of its log.
    pub async fn start_on_aws(env: &AwsEnv, role: Role, name: &str, flags: &[(&str, &str)]) -> Result<Self> {
        let program = crate::binaries::executable("hyperlink")?;
        Self::start_program_on_aws(&program, env, role, name, flags).await
    }

    /// Like [`Hyperlink::start_on_aws`], with another executable.
    ///
    /// # Errors
    ///
    /// As [`Hyperlink::start_on_aws`].
    pub async fn start_program_on_aws(
        program: &Path,
        env: &AwsEnv,
        role: Role,
        name: &str,
        flags: &[(&str, &str)],
    ) -> Result<Self> {
        let namespace = flags.iter().find(|(flag, _)| *flag == "namespace");
        let lease = lease(role, namespace.map(|(_, namespace)| *namespace));
        let account = roles::install_on_aws(env.control_plane(), role, &lease).await?;
        let credentials = env.credentials();
        let credentials = match role {
            Role::Ho => &credentials.ho,
            Role::Cpo => &credentials.cpo_role,
        };
        let (kubeconfig, credentials) = (account.path().to_string_lossy(), credentials.to_string_lossy());
        let ca_file = env.aws().ca_file().to_string_lossy();
        let own = [
            ("role", role.as_str()),
            ("lease-namespace", env.hyperlink_namespace()),
            ("metrics-bind", "127.0.0.1:0"),
        ];
        let given = |name: &str| flags.iter().any(|(flag, _)| *flag == name);
        let own = own
            .into_iter()
            .chain(connection(env, &kubeconfig, &credentials, &ca_file));
        let own = own.filter(|(flag, _)| !given(flag));
        let program = Program::new(program).without_our_environment();
        let program = own
            .chain(flags.iter().copied())
            .fold(program.arg("run"), |program, (flag, value)| program.flag(flag, value));
        Self::start_prepared(&program, role, name, env.dir()).await
    }
}

/// Runs `hyperlink plan` for clusters on AWS with these arguments, a given kubeconfig and a given credentials file.
///
/// # Errors
///
/// It cannot be started or does not end.
pub async fn plan(env: &AwsEnv, kubeconfig: &Path, credentials: &Path, arguments: &[&str]) -> Result<Planned> {
    let (kubeconfig, credentials) = (kubeconfig.to_string_lossy(), credentials.to_string_lossy());
    let ca_file = env.aws().ca_file().to_string_lossy();
    let flags = connection(env, &kubeconfig, &credentials, &ca_file);
    let program = Program::new(crate::binaries::executable("hyperlink")?).without_our_environment();
    let program = arguments.iter().fold(program.arg("plan"), Program::arg);
    let program = flags
        .into_iter()
        .fold(program, |program, (flag, value)| program.flag(flag, value));
    super::planned(&program).await
}

/// The flags that every command needs to reach the API server and AWS.
fn connection<'a>(
    env: &'a AwsEnv,
    kubeconfig: &'a str,
    credentials: &'a str,
    ca_file: &'a str,
) -> [(&'static str, &'a str); 11] {
    let endpoint = env.aws().endpoint();
    [
        ("platform", "aws"),
        ("kubeconfig", kubeconfig),
        ("log-format", "json"),
        ("aws-region", REGION),
        ("aws-credentials-file", credentials),
        ("aws-endpoint-ec2", endpoint),
        ("aws-endpoint-elb", endpoint),
        ("aws-endpoint-route53", endpoint),
        ("aws-endpoint-sts", endpoint),
        ("aws-endpoint-imds", NO_INSTANCE_METADATA),
        ("ca-file", ca_file),
    ]
}
