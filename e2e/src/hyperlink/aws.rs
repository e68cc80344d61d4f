//! Runs the real executable for clusters on AWS.

use std::path::Path;

use anyhow::{Context, Result};

use super::{Hyperlink, PATIENT_LEASE, Planned, Role};
use crate::aws_sim::REGION;
use crate::process::Program;
use crate::{AwsEnv, TestEnv, roles};

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
        let given = |name: &str| flags.iter().find(|(flag, _)| *flag == name).map(|(_, value)| *value);
        let lease = lease(role, given("namespace"));
        let account = roles::install_on_aws(env.control_plane(), role, &lease).await?;
        let kubeconfig = account.path().to_string_lossy();
        let credentials = given("aws-credentials-file").map_or_else(|| credentials_of(env, role), Path::new);
        let of_aws = flags_of_aws(env, credentials);
        let own = [
            ("role", role.as_str()),
            ("platform", "aws"),
            ("kubeconfig", &kubeconfig),
            ("lease-namespace", env.hyperlink_namespace()),
            ("metrics-bind", "127.0.0.1:0"),
            ("log-format", "json"),
        ];
        let own = own
            .into_iter()
            .chain(PATIENT_LEASE)
            .chain(of_aws.iter().map(|(flag, value)| (*flag, value.as_str())));
        let own = own.filter(|(flag, _)| given(flag).is_none());
        let program = Program::new(program).without_our_environment();
        let program = own
            .chain(flags.iter().copied())
            .fold(program.arg("run"), |program, (flag, value)| program.flag(flag, value));
        Self::start_prepared(&program, role.as_str(), name, env.dir()).await
    }

    /// Starts one role for clusters on both clouds, which it reaches as in both of these environments.
    ///
    /// # Errors
    ///
    /// As [`Hyperlink::start_on_aws`].
    pub async fn start_on_both(
        test_env: &TestEnv,
        aws: &AwsEnv,
        role: Role,
        name: &str,
        flags: &[(&str, &str)],
    ) -> Result<Self> {
        let namespace = flags.iter().find(|(flag, _)| *flag == "namespace");
        let namespace = namespace.map(|(_, namespace)| *namespace);
        let control_plane = test_env.control_plane();
        roles::add_aws(control_plane, role, &lease(role, namespace)).await?;
        if let Some(namespace) = namespace {
            let lease = format!("hyperlink-{}-{namespace}", role.as_str());
            roles::install_lease(control_plane.admin(), role.as_str(), &lease, roles::NAMESPACE, "").await?;
        }
        let ca_file = aws.dir().join("ca-of-both.pem");
        let azure = test_env
            .azure()
            .ca_file
            .as_ref()
            .context("no certificate authority of Azure")?;
        let text = [std::fs::read(azure)?, std::fs::read(aws.aws().ca_file())?].concat();
        std::fs::write(&ca_file, text)?;
        let mut of_both = flags_of_aws(aws, credentials_of(aws, role));
        of_both.retain(|(flag, _)| *flag != "ca-file");
        of_both.push(("ca-file", ca_file.to_string_lossy().into_owned()));
        of_both.push(("platform", "azure,aws".to_owned()));
        let given = |name: &str| flags.iter().any(|(flag, _)| *flag == name);
        let of_both = of_both.iter().map(|(flag, value)| (*flag, value.as_str()));
        let all: Vec<_> = of_both
            .filter(|(flag, _)| !given(flag))
            .chain(flags.iter().copied())
            .collect();
        Self::start(test_env, role, name, &all).await
    }
}

/// The credentials file of a role.
fn credentials_of(env: &AwsEnv, role: Role) -> &Path {
    let credentials = env.credentials();
    match role {
        Role::Ho => &credentials.ho,
        Role::Cpo => &credentials.cpo_role,
    }
}

/// How AWS is reached with this credentials file. The simulator's machine is there only for a file that names it.
fn flags_of_aws(env: &AwsEnv, credentials: &Path) -> Vec<(&'static str, String)> {
    let aws = env.aws();
    let profile = std::fs::read_to_string(credentials).unwrap_or_default();
    let instance_metadata = match profile.contains("Ec2InstanceMetadata") {
        true => env.oracle().control_url(),
        false => NO_INSTANCE_METADATA,
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut flags = vec![
        ("aws-region", REGION.to_owned()),
        ("aws-credentials-file", text(credentials)),
        ("aws-endpoint-imds", instance_metadata.to_owned()),
        ("ca-file", text(aws.ca_file())),
    ];
    let services = [
        "aws-endpoint-ec2",
        "aws-endpoint-elb",
        "aws-endpoint-route53",
        "aws-endpoint-sts",
    ];
    flags.extend(services.map(|flag| (flag, aws.endpoint().to_owned())));
    flags
}

/// Runs `hyperlink plan` for clusters on AWS with these arguments, a given kubeconfig and a given credentials file.
///
/// # Errors
///
/// It cannot be started or does not end.
pub async fn plan(env: &AwsEnv, kubeconfig: &Path, credentials: &Path, arguments: &[&str]) -> Result<Planned> {
    let program = Program::new(crate::binaries::executable("hyperlink")?).without_our_environment();
    let program = arguments.iter().fold(program.arg("plan"), Program::arg);
    let program = program
        .flag("platform", "aws")
        .flag("kubeconfig", kubeconfig)
        .flag("log-format", "json");
    let flags = flags_of_aws(env, credentials).into_iter();
    super::planned(&flags.fold(program, |program, (flag, value)| program.flag(flag, value))).await
}
