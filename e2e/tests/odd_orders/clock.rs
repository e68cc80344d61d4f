//! A wall clock that jumps under running processes: nothing is written because of it, and what comes then is served.

use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::HostedCluster;
use e2e::shared_env::{SOON, alone, nothing_is_left_of};
use e2e::{Target, TestEnv};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::Api;
use rstest::rstest;

use crate::both::Both;

/// How many reconciles show that nothing is written.
const ROUNDS: u64 = 4;
/// The lease of each role.
const LEASES: [&str; 2] = ["hyperlink-ho", "hyperlink-cpo"];

/// A program that runs `hyperlink` with a wall clock of its own.
struct OwnClock {
    program: PathBuf,
    offset: File,
}

impl OwnClock {
    fn new(dir: &Path) -> Result<Self> {
        let library = dir.join("clock.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/odd_orders/clock.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&library)
            .arg(source)
            .output()?;
        ensure!(
            compiled.status.success(),
            "{}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        let offset = dir.join("clock-offset");
        std::fs::write(&offset, 0_i64.to_ne_bytes())?;
        let program = dir.join("hyperlink-with-own-clock");
        let hyperlink = e2e::binaries::executable("hyperlink")?;
        let [library, file, hyperlink] = [&library, &offset, &hyperlink].map(|path| path.display().to_string());
        let script = format!("#!/bin/sh\nexport CLOCK_OFFSET={file} LD_PRELOAD={library}\nexec {hyperlink} \"$@\"\n");
        std::fs::write(&program, script)?;
        std::fs::set_permissions(&program, Permissions::from_mode(0o755))?;
        let offset = File::options().write(true).open(offset)?;
        Ok(Self { program, offset })
    }

    fn jump(&self, seconds: i64) -> Result<()> {
        self.offset
            .write_all_at(&seconds.to_ne_bytes(), 0)
            .context("the clock stands")
    }
}

/// Who leads each role, and how often that has changed.
async fn leaders(target: &Target) -> Result<Vec<(Option<String>, Option<i32>)>> {
    let leases: Api<Lease> = Api::namespaced(target.client()?, &target.hyperlink_namespace());
    let mut leaders = Vec::new();
    for name in LEASES {
        let spec = leases.get(name).await?.spec.context("an empty lease")?;
        leaders.push((spec.holder_identity, spec.lease_transitions));
    }
    Ok(leaders)
}

/// Fails unless each role renews its lease by a clock that is off by this.
async fn clocks_are_off(target: &Target, seconds: i64) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(target.client()?, &target.hyperlink_namespace());
    for name in LEASES {
        let renewed = leases.get(name).await?.spec.and_then(|spec| spec.renew_time);
        let off = renewed.context("never renewed")?.0.duration_since(Timestamp::now());
        ensure!(
            (off.as_secs() - seconds).abs() < 100,
            "the clock did not jump: {name} is off by {off:?}"
        );
    }
    Ok(())
}

#[rstest]
#[case::ahead(1_200)]
#[case::back(-1_200)]
fn clock_that_jumps_disturbs_nothing(#[case] seconds: i64) {
    alone(async |test_env: TestEnv| {
        let clock = OwnClock::new(test_env.dir())?;
        let both = Both::start(test_env, &clock.program, "2s").await?;
        let test_env = &both.test_env;
        let before = HostedCluster::new(test_env, "before-the-jump");
        before.create(test_env).await?;
        before.becomes_available(test_env, SOON).await?;
        let led = leaders(test_env).await?;
        both.find_it_ready_again(ROUNDS).await?;

        let since = test_env.oracle().last_call().await?;
        let audit = both.audit()?;
        clock.jump(seconds)?;
        both.find_it_ready_again(ROUNDS).await?;
        let calls = test_env.oracle().journal(since).await?;
        let writes: Vec<_> = calls
            .iter()
            .filter(|call| call.is_write())
            .map(|call| &call.path)
            .collect();
        ensure!(writes.is_empty(), "written to Azure: {writes:?}");
        let writes = audit.writes()?;
        ensure!(writes.is_empty(), "written to Kubernetes: {writes:?}");
        clocks_are_off(test_env, seconds).await?;

        let after = HostedCluster::new(test_env, "after-the-jump");
        after.create(test_env).await?;
        after.becomes_available(test_env, SOON).await?;
        for cluster in [&before, &after] {
            cluster.delete(test_env, SOON).await?;
            nothing_is_left_of(test_env, cluster, &[]).await?;
        }
        ensure!(leaders(test_env).await? == led, "another leader");
        Ok(())
    });
}
