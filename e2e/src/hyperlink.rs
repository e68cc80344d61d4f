//! Runs the real executable as one role of Hyperlink, as a Deployment would: with a ServiceAccount that has the shipped
//! rights and nothing else, and with HyperShift's environment variables.

pub mod aws;
pub mod capz;

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::Target;
use crate::process::{Process, Program};
use crate::test_env::Credential;

/// Longer than the defaults: the API server of a busy machine may not answer for ten seconds.
pub(crate) const PATIENT_LEASE: [(&str, &str); 2] = [("lease-duration", "30s"), ("lease-renew-deadline", "25s")];

/// How long a start may take, also for a program that is emulated.
const START: Duration = Duration::from_secs(60);

/// How long a stop may take; running reconciles may take 20 s to end.
const STOP: Duration = Duration::from_secs(30);

/// A role of Hyperlink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The HO role, on the management side.
    Ho,
    /// The CPO role, on the guest side.
    Cpo,
}

impl Role {
    /// The role's name, as on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ho => "ho",
            Self::Cpo => "cpo",
        }
    }
}

/// One running `hyperlink run`. Dropping this value kills the process.
#[derive(Debug)]
pub struct Hyperlink {
    role: &'static str,
    process: Process,
    served: Served,
    http: reqwest::Client,
}

/// The addresses, with ports, at which the process serves its pages.
#[derive(Debug)]
struct Served {
    metrics: String,
    probes: String,
}

impl Hyperlink {
    /// Starts one role and waits until it serves its probes. `name` distinguishes several processes of one role;
    /// `flags` replace the default flags of the same names.
    ///
    /// # Errors
    ///
    /// The build fails or the process ends; the error holds the end of its log.
    pub async fn start(target: &Target, role: Role, name: &str, flags: &[(&str, &str)]) -> Result<Self> {
        Self::start_program(&crate::binaries::executable("hyperlink")?, target, role, name, flags).await
    }

    /// Like [`Hyperlink::start`], with a given executable.
    ///
    /// # Errors
    ///
    /// The process ends; the error holds the end of its log.
    pub async fn start_program(
        program: &Path,
        target: &Target,
        role: Role,
        name: &str,
        flags: &[(&str, &str)],
    ) -> Result<Self> {
        let access = target.service_account(role.as_str()).await?;
        let credential = match role {
            Role::Ho => &target.azure().ho,
            Role::Cpo => &target.azure().cpo,
        };
        Self::start_as(program, target, role, name, access.path(), credential, flags).await
    }

    /// Like [`Hyperlink::start_program`], with a given kubeconfig and a given Azure identity.
    ///
    /// # Errors
    ///
    /// As [`Hyperlink::start_program`].
    pub async fn start_as(
        program: &Path,
        target: &Target,
        role: Role,
        name: &str,
        kubeconfig: &Path,
        credential: &Credential,
        flags: &[(&str, &str)],
    ) -> Result<Self> {
        let lease_namespace = target.hyperlink_namespace();
        let own = [
            ("role", role.as_str()),
            ("lease-namespace", &lease_namespace),
            ("metrics-bind", "127.0.0.1:0"),
        ];
        let own = own.into_iter().chain(PATIENT_LEASE);
        let given = |name: &str| flags.iter().any(|(flag, _)| *flag == name);
        let scopes = target.dir().join("allow-scopes.json");
        let for_many = role == Role::Cpo && !given("namespace");
        if for_many && !given("allow-scopes") {
            std::fs::write(&scopes, allow_guest_subscription(target).to_string())?;
        }
        let scopes = scopes.to_string_lossy();
        let own = own.chain(for_many.then_some(("allow-scopes", &*scopes)));
        let own = own.filter(|(flag, _)| !given(flag));
        let flags: Vec<_> = own.chain(flags.iter().copied()).collect();
        let program = Program::new(program).without_our_environment().arg("run");
        let program = with_flags(program, target, kubeconfig, &flags);
        let program = credentials(program, target, role, credential);
        Self::start_prepared(&program, role.as_str(), name, target.dir()).await
    }

    /// Starts a program that has all its arguments, and waits until it serves its probes. Its log has to be JSON.
    ///
    /// # Errors
    ///
    /// The process ends; the error holds the end of its log.
    pub async fn start_prepared(program: &Program, role: &'static str, name: &str, logs: &Path) -> Result<Self> {
        let process = program.spawn(name, logs)?;
        let served = process
            .until("hyperlink serves its probes", START, async || served_at(&process))
            .await?;
        Ok(Self {
            role,
            process,
            served,
            http: reqwest::Client::new(),
        })
    }

    /// The name of the role that it runs.
    pub fn role(&self) -> &'static str {
        self.role
    }

    /// The operating system's process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The address and port at which it serves `/metrics`.
    pub fn metrics_address(&self) -> &str {
        &self.served.metrics
    }

    /// Reads one of its pages, by plain HTTP: status and text.
    ///
    /// # Errors
    ///
    /// The process does not answer.
    pub async fn page(&self, path: &str) -> Result<(u16, String)> {
        let address = match path {
            "/metrics" => &self.served.metrics,
            _ => &self.served.probes,
        };
        let answer = self.http.get(format!("http://{address}{path}")).send().await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    ///
    /// It is not ready within `timeout`; the error says what it waits for.
    pub async fn ready(&self, timeout: Duration) -> Result<()> {
        let what = format!("hyperlink {} is ready", self.role);
        self.process
            .until(&what, timeout, async || match self.page("/readyz").await? {
                (200, _) => Ok(()),
                (_, reasons) => Err(anyhow!("{reasons}")),
            })
            .await
    }

    /// Waits until it holds the lease of its role.
    ///
    /// # Errors
    ///
    /// It does not lead within `timeout`.
    pub async fn leading(&self, timeout: Duration) -> Result<()> {
        let role = self.role;
        let leads = ["", "-aws"].map(|platform| format!("hyperlink_leader{{role=\"{role}{platform}\"}} 1"));
        self.process
            .until(&format!("hyperlink {role} leads"), timeout, async || {
                let (_, metrics) = self.page("/metrics").await?;
                ensure!(
                    metrics.lines().any(|line| leads.iter().any(|leads| leads == line)),
                    "it does not"
                );
                Ok(())
            })
            .await
    }

    /// Asks it to stop, as the kubelet does, and waits until it has stopped.
    ///
    /// # Errors
    ///
    /// It does not stop in time, or not with exit code 0.
    pub async fn stop(self) -> Result<()> {
        self.process.signal("TERM")?;
        let status = self.process.wait(STOP).await?;
        ensure!(status.success(), "hyperlink {} stopped with {status}", self.role);
        Ok(())
    }
}

/// The exit code and the output of `hyperlink plan`.
#[derive(Debug)]
pub struct Planned {
    /// Its exit code.
    pub code: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub log: String,
}

/// Runs `hyperlink plan` with these arguments, a given kubeconfig and a given Azure identity. The environment is that
/// of `role`.
///
/// # Errors
///
/// It cannot be started or does not end.
pub async fn plan(
    target: &Target,
    role: Role,
    kubeconfig: &Path,
    credential: &Credential,
    arguments: &[&str],
) -> Result<Planned> {
    let program = Program::new(crate::binaries::executable("hyperlink")?).without_our_environment();
    let program = arguments.iter().fold(program.arg("plan"), Program::arg);
    let program = with_flags(program, target, kubeconfig, &[]);
    planned(&credentials(program, target, role, credential)).await
}

/// Runs a program that plans.
async fn planned(program: &Program) -> Result<Planned> {
    let dir = crate::run_dir::RunDir::new("plan")?;
    let process = program.spawn("plan", dir.path())?;
    let status = process.wait(START).await?;
    Ok(Planned {
        code: status.code(),
        out: std::fs::read_to_string(process.out())?,
        log: std::fs::read_to_string(process.log())?,
    })
}

/// Adds the flags that every command needs to reach the target; `flags` replace those of the same names.
fn with_flags(mut program: Program, target: &Target, kubeconfig: &Path, flags: &[(&str, &str)]) -> Program {
    let azure = target.azure();
    let own = [
        ("kubeconfig", kubeconfig.as_os_str()),
        ("arm-endpoint", azure.arm.as_ref()),
        ("authority", azure.authority.as_ref()),
        ("audience", azure.audience.as_ref()),
        ("log-format", "json".as_ref()),
    ];
    let own = own
        .into_iter()
        .chain(azure.ca_file.as_ref().map(|file| ("ca-file", file.as_os_str())));
    let given = |name: &str| flags.iter().any(|(flag, _)| *flag == name);
    let flags = flags.iter().map(|(flag, value)| (*flag, OsStr::new(*value)));
    for (flag, value) in own.filter(|(flag, _)| !given(flag)).chain(flags) {
        program = program.flag(flag, value);
    }
    program
}

/// The file of allowed scopes for a process that serves all hosted clusters of a target.
pub fn allow_guest_subscription(target: &Target) -> Value {
    json!({"hostedClusters": [{
        "namespace": target.hosted_clusters(),
        "scopes": [format!("/subscriptions/{}", target.azure().guest_subscription)],
        "additionalAllowedSubscriptions": [target.azure().additional_subscription],
        "baseDomains": ["example.com", "example.net"],
    }]})
}

fn credentials(program: Program, target: &Target, role: Role, credential: &Credential) -> Program {
    let azure = target.azure();
    let program = match role {
        Role::Ho => program
            .env("AZURE_SUBSCRIPTION_ID", &azure.management_subscription)
            .env("AZURE_RESOURCE_GROUP", &azure.management_group),
        Role::Cpo => program,
    };
    match credential {
        Credential::SecretFile { path } => program.env("AZURE_CREDENTIALS_FILE", path),
        Credential::WorkloadIdentity {
            tenant,
            client,
            token_file,
        } => program
            .env("AZURE_TENANT_ID", tenant)
            .env("AZURE_CLIENT_ID", client)
            .env("AZURE_FEDERATED_TOKEN_FILE", token_file),
    }
}

/// Reads the addresses from the log. The process is started with port 0, so that no other program can take its port
/// first.
fn served_at(process: &Process) -> Result<Served> {
    let log = std::fs::read_to_string(process.log())?;
    let started = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|line| line["message"] == "started")
        .context("it has not said where it serves")?;
    let address = |field: &str| started[field].as_str().map(str::to_owned).context("no address");
    Ok(Served {
        metrics: address("address")?,
        probes: address("probes")?,
    })
}
