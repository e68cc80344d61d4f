//! Both roles in a test environment of their own.

use std::path::Path;

use anyhow::{Result, ensure};
use e2e::bench::audit::Audit;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::shared_env::SOON;
use e2e::{TestEnv, eventually};

/// A test environment with both roles running.
pub(crate) struct Both {
    pub(crate) test_env: TestEnv,
    processes: [Hyperlink; 2],
}

impl Both {
    /// Starts both roles with this program, which read ready resources again at this interval.
    pub(crate) async fn start(test_env: TestEnv, program: &Path, resync: &str) -> Result<Self> {
        let flags = [("resync", resync), ("record-resync", resync)];
        let processes = [
            Hyperlink::start_program(program, &test_env, Role::Ho, "ho", &flags).await?,
            Hyperlink::start_program(program, &test_env, Role::Cpo, "cpo", &flags).await?,
        ];
        Ok(Self { test_env, processes })
    }

    /// What is asked of Kubernetes from now on.
    pub(crate) fn audit(&self) -> Result<Audit> {
        Audit::begin(self.test_env.control_plane().audit_log())
    }

    /// How often each role's reconciles have found a custom resource ready.
    async fn ready(&self) -> Result<[u64; 2]> {
        let mut ready = [0; 2];
        let controllers = ["private_link_service", "private_endpoint"];
        for ((process, controller), count) in self.processes.iter().zip(controllers).zip(&mut ready) {
            let series = format!("hyperlink_reconcile_total{{controller=\"{controller}\",result=\"ready\"}} ");
            let (_, page) = process.page("/metrics").await?;
            let value = page.lines().find_map(|line| line.strip_prefix(&series));
            *count = value.unwrap_or("0").parse()?;
        }
        Ok(ready)
    }

    /// Waits until each role has found a custom resource ready so many times more. Fails at once if a
    /// process has ended.
    pub(crate) async fn find_it_ready_again(&self, times: u64) -> Result<()> {
        let before = self.ready().await?;
        eventually("more reconciles", SOON, || async {
            if let Err(ended) = self.processes.iter().try_for_each(|one| one.process().check()) {
                return Ok(Err(ended));
            }
            let now = self.ready().await?;
            let more = before.iter().zip(now).map(|(before, now)| now - before);
            ensure!(more.min() >= Some(times), "{before:?}, then {now:?}");
            Ok(Ok(()))
        })
        .await?
    }
}
