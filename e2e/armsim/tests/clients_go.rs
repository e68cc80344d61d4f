//! Azure's own Go packages against the simulator: the tests are in `e2e/clients/go`, and run here with one simulator
//! for each of those that run at once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod clients_support;
mod http_support;

use std::{io::ErrorKind, process::Command};

use clients_support::{WORKERS, clients, nothing_is_left_out, run, start_simulators};
use http_support::spec_support;

/// Whether there is a Go to build them with.
fn go_is_here() -> bool {
    match Command::new("go").arg("version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        other => {
            assert!(other.unwrap().status.success(), "go does not run");
            true
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn official_go_packages_work() {
    if !go_is_here() {
        println!("SKIPPED: no go");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (servers, addresses) = start_simulators(dir.path()).await;
    let mut go = Command::new("go");
    go.args(["test", "-mod=readonly", "-vet=all", "-count=1", "-v"])
        .args(["-parallel", &WORKERS.to_string(), "./..."])
        .current_dir(clients().join("go"))
        .env("ARMSIM_WORLDS", addresses);
    let passed = run(go).await;
    for server in &servers {
        server.with_azure(|azure, _| spec_support::kept(azure));
    }
    assert!(passed, "Go tests failed: see above");
    if spec_support::specs().is_some() {
        nothing_is_left_out(&servers);
    }
}
