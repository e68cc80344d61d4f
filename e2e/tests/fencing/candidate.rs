//! A process that campaigns for its role's lease, with a token and an Azure identity that nobody else has.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::pipe::Pipe;
use e2e::process::Process;
use e2e::roles::NAMESPACE;
use e2e::test_env::Credential;
use e2e::{TestEnv, eventually};
use jiff::Timestamp;
use serde_json::Value;

/// Longer than the API server of a busy machine is silent after a pause.
pub(crate) const RENEW_DEADLINE: Duration = Duration::from_secs(20);
/// Timeout for what takes no time but on a busy machine, and for a take-over from a leader that is gone.
pub(crate) const SOON: Duration = Duration::from_secs(40);
/// Timeout for one phase of a cluster's life.
pub(crate) const LIFE: Duration = Duration::from_secs(60);

const FLAGS: &[(&str, &str)] = &[
    ("lease-duration", "24s"),
    ("lease-renew-deadline", "20s"),
    ("lease-retry", "500ms"),
    ("resync", "2s"),
    ("record-resync", "2s"),
];

/// Which of a role's two Azure identities.
#[derive(Clone, Copy)]
pub(crate) enum Identity {
    First,
    Twin,
}

pub(crate) struct Candidate {
    pub(crate) hyperlink: Hyperlink,
    /// Its name in Azure: the client id.
    pub(crate) client: String,
    /// Its name for the API server: the id of its token.
    pub(crate) token: String,
}

impl Candidate {
    pub(crate) async fn start(test_env: &TestEnv, role: Role, identity: Identity) -> Result<Self> {
        Self::start_through(test_env, role, identity, None).await
    }

    pub(crate) async fn start_through(
        test_env: &TestEnv,
        role: Role,
        identity: Identity,
        pipe: Option<&Pipe>,
    ) -> Result<Self> {
        let azure = test_env.azure();
        let (name, credential) = match (role, identity) {
            (Role::Ho, Identity::First) => ("ho-first", &azure.ho),
            (Role::Ho, Identity::Twin) => ("ho-twin", &azure.ho_twin),
            (Role::Cpo, Identity::First) => ("cpo-first", &azure.cpo),
            (Role::Cpo, Identity::Twin) => ("cpo-twin", &azure.cpo_twin),
        };
        // Each access has a new token.
        let access = test_env
            .control_plane()
            .service_account(NAMESPACE, role.as_str())
            .await?;
        let token = token_id(&std::fs::read_to_string(access.path())?)?;
        if let Some(pipe) = pipe {
            pipe.redirect(access.path())?;
        }
        let program = e2e::binaries::executable("hyperlink")?;
        let hyperlink = Hyperlink::start_as(&program, test_env, role, name, access.path(), credential, FLAGS).await?;
        Ok(Self {
            hyperlink,
            client: client_id(credential)?,
            token,
        })
    }

    pub(crate) fn process(&self) -> &Process {
        self.hyperlink.process()
    }

    /// Waits until it leads.
    pub(crate) async fn leads(&self) -> Result<()> {
        self.lease_is("leading").await
    }

    /// Waits until it is ready and yields to somebody.
    pub(crate) async fn stands_by(&self) -> Result<()> {
        self.lease_is("standing by, hyperlink_").await?;
        self.hyperlink.ready(SOON).await
    }

    async fn lease_is(&self, standing: &str) -> Result<()> {
        let line = format!("[+] lease ({}): {standing}", self.hyperlink.role());
        self.process()
            .until(&line, SOON, async || {
                let (_, page) = self.hyperlink.page("/readyz").await?;
                ensure!(page.contains(&line), "{page}");
                Ok(())
            })
            .await
    }

    /// Time and line of its first log entry with this message.
    pub(crate) fn logged(&self, message: &str) -> Result<(Timestamp, Value)> {
        let log = std::fs::read_to_string(self.process().log())?;
        let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let line = lines
            .find(|line| line["message"] == message)
            .with_context(|| format!("it has not logged {message:?}"))?;
        Ok((line["timestamp"].as_str().context("a timestamp")?.parse()?, line))
    }

    /// Waits until it logs this message.
    pub(crate) async fn logs(&self, message: &str) -> Result<Timestamp> {
        let (at, _) = eventually(message, SOON, async || self.logged(message)).await?;
        Ok(at)
    }

    /// Waits for its end; returns its exit code.
    pub(crate) async fn ends(&self, timeout: Duration) -> Result<i32> {
        self.process().wait(timeout).await?.code().context("ended by a signal")
    }
}

fn client_id(credential: &Credential) -> Result<String> {
    match credential {
        Credential::WorkloadIdentity { client, .. } => Ok(client.clone()),
        Credential::SecretFile { path } => {
            let file: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
            Ok(file["clientId"].as_str().context("a clientId")?.to_owned())
        }
    }
}

/// The `jti` of the token in a kubeconfig.
fn token_id(kubeconfig: &str) -> Result<String> {
    let kubeconfig: Value = serde_json::from_str(kubeconfig)?;
    let token = kubeconfig["users"][0]["user"]["token"].as_str().context("a token")?;
    let claims = token.split('.').nth(1).context("a JWT")?;
    let claims: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims)?)?;
    Ok(claims["jti"].as_str().context("a token with an id")?.to_owned())
}
