//! Two Pods of the guest side. A process that ends is restarted, as a kubelet would.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::shared_env::SOON;
use e2e::test_env::Credential;
use e2e::{TestEnv, binaries, eventually};

use crate::processes::has_logged;
use crate::watched::Watched;

/// Names of the two Pods.
const NAMES: [&str; 2] = ["cpo-0", "cpo-1"];

/// Timeout for one request to a process.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// The Pods, in the order of their names.
pub(crate) struct Pods<'a> {
    test_env: &'a TestEnv,
    watched: &'a Watched,
    flags: &'a [(&'a str, &'a str)],
    running: [Hyperlink; 2],
}

impl<'a> Pods<'a> {
    /// Starts both; the first leads. Their federated tokens are in the files that [`token_file`] names.
    pub(crate) async fn start(
        test_env: &'a TestEnv,
        watched: &'a Watched,
        flags: &'a [(&'a str, &'a str)],
    ) -> Result<Self> {
        let first = start(test_env, 0, flags).await?;
        first.leading(SOON).await?;
        let running = [first, start(test_env, 1, flags).await?];
        let pods = Self {
            test_env,
            watched,
            flags,
            running,
        };
        pods.update_targets()?;
        Ok(pods)
    }

    /// The processes that run now.
    pub(crate) fn running(&self) -> &[Hyperlink; 2] {
        &self.running
    }

    /// Runs `work`, and meanwhile restarts processes that end.
    pub(crate) async fn during<T>(&mut self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                result = &mut work => return result,
                () = tokio::time::sleep(REQUEST_TIMEOUT / 10) => self.revive().await?,
            }
        }
    }

    /// Pauses the leader until the other one leads, again and again, until `until` completes.
    pub(crate) async fn flap<T>(&mut self, until: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::pin!(until);
        let result = loop {
            tokio::select! {
                result = &mut until => break result?,
                changed = self.change_hands() => changed?,
            }
        };
        self.running.iter().try_for_each(go_on)?;
        Ok(result)
    }

    /// Restarts both with other flags.
    pub(crate) async fn take(&mut self, flags: &'a [(&'a str, &'a str)]) -> Result<()> {
        self.flags = flags;
        for n in 0..NAMES.len() {
            self.running[n] = start(self.test_env, n, flags).await?;
        }
        self.update_targets()
    }

    /// Pauses the leader for this time; fails if another one leads afterwards.
    pub(crate) async fn outlasts(&self, pause: Duration) -> Result<()> {
        let before = self.leader().await?;
        let process = self.running[before].process();
        process.signal("STOP")?;
        tokio::time::sleep(pause).await;
        process.signal("CONT")?;
        let after = self.leader().await?;
        ensure!(before == after, "the lease has gone to {}", NAMES[after]);
        process.check()
    }

    /// Asks both to stop.
    pub(crate) async fn stop(self) -> Result<()> {
        for one in self.running {
            one.stop().await?;
        }
        Ok(())
    }

    async fn change_hands(&mut self) -> Result<()> {
        self.revive().await?;
        let leader = self.leader().await?;
        self.running[leader].process().signal("STOP")?;
        let other = &self.running[1 - leader];
        eventually("the other one leads, or ends", SOON, || async {
            ensure!(other.process().exit().is_some() || leads(other).await, "it does not");
            Ok(())
        })
        .await?;
        go_on(&self.running[leader])?;
        let status = self.running[leader].process().wait(SOON).await?;
        ensure!(!status.success(), "ends as one that has lost: {status}");
        has_logged(&self.running[leader], &["leadership lost"])?;
        self.revive().await
    }

    /// Which one leads.
    async fn leader(&self) -> Result<usize> {
        eventually("one of them leads", SOON, || async {
            for (n, one) in self.running.iter().enumerate() {
                if leads(one).await {
                    return Ok(n);
                }
            }
            bail!("none leads")
        })
        .await
    }

    async fn revive(&mut self) -> Result<()> {
        for n in 0..NAMES.len() {
            if self.running[n].process().exit().is_some() {
                self.running[n] = start(self.test_env, n, self.flags).await?;
                self.update_targets()?;
            }
        }
        Ok(())
    }

    fn update_targets(&self) -> Result<()> {
        let [first, second] = &self.running;
        self.watched.scrapes("cpo", &[(NAMES[0], first), (NAMES[1], second)])
    }
}

/// File of a Pod's federated token. The test decides what is in it when the Pod starts.
pub(crate) fn token_file(test_env: &TestEnv, pod: usize) -> PathBuf {
    test_env.dir().join(format!("token-of-{}", NAMES[pod]))
}

async fn start(test_env: &TestEnv, pod: usize, flags: &[(&str, &str)]) -> Result<Hyperlink> {
    let Credential::WorkloadIdentity { tenant, client, .. } = &test_env.azure().cpo else {
        bail!("the guest side has no federated token")
    };
    let credential = Credential::WorkloadIdentity {
        tenant: tenant.clone(),
        client: client.clone(),
        token_file: token_file(test_env, pod),
    };
    let access = test_env.service_account(Role::Cpo.as_str()).await?;
    let program = binaries::executable("hyperlink")?;
    Hyperlink::start_as(
        &program,
        test_env,
        Role::Cpo,
        NAMES[pod],
        access.path(),
        &credential,
        flags,
    )
    .await
    .with_context(|| NAMES[pod])
}

/// Whether it reports that it leads; a paused process answers nothing.
async fn leads(one: &Hyperlink) -> bool {
    match tokio::time::timeout(REQUEST_TIMEOUT, one.page("/metrics")).await {
        Ok(Ok((_, page))) => page.lines().any(|line| line == "hyperlink_leader{role=\"cpo\"} 1"),
        _ => false,
    }
}

fn go_on(one: &Hyperlink) -> Result<()> {
    match one.process().exit() {
        Some(_) => Ok(()),
        None => one.process().signal("CONT"),
    }
}
