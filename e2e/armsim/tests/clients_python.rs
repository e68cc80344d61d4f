//! Azure's own Python packages against the simulator: the tests are in `e2e/clients`, and run here with one simulator
//! for each of pytest's workers.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod clients_support;
mod http_support;

use std::path::PathBuf;
use std::process::Command;

use clients_support::{WORKERS, clients, nothing_is_left_out, run, start, start_simulators};
use http_support::spec_support;
use simulator::python::python;

fn pinned() -> Option<PathBuf> {
    python(&clients().join("requirements.txt"))
}

#[tokio::test(flavor = "multi_thread")]
async fn official_python_packages_work() {
    let Some(python) = tokio::task::spawn_blocking(pinned).await.unwrap() else {
        println!("SKIPPED: no python3");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (servers, addresses) = start_simulators(dir.path()).await;
    let mut pytest = Command::new(python);
    pytest
        .args(["-m", "pytest"])
        .args(["-n", &WORKERS.to_string(), "--dist", "worksteal"])
        .current_dir(clients())
        .env("ARMSIM_WORLDS", addresses);
    // No test collected is an error of pytest's too.
    let passed = run(pytest).await;
    for server in &servers {
        server.with_azure(|azure, _| spec_support::kept(azure));
    }
    assert!(passed, "Python tests failed: see above");
    if spec_support::specs().is_some() {
        nothing_is_left_out(&servers);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readme_examples_by_python_work() {
    let Some(python) = tokio::task::spawn_blocking(pinned).await.unwrap() else {
        println!("SKIPPED: no python3");
        return;
    };
    let examples = http_support::readme_blocks("py");
    assert_eq!(examples.len(), 5);
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let mut program = Command::new(python);
    program
        .args(["-c", &examples.join("\n")])
        .env("ARMSIM_ARM", &server.arm)
        .env("ARMSIM_AUTHORITY", &server.authority)
        .env("ARMSIM_CONTROL", &server.control)
        .env("ARMSIM_CA", dir.path().join("ca.pem"));
    assert!(run(program).await, "an example failed: see above");
    let changes = server.with_azure(|azure, _| azure.journal(0).iter().filter(|call| call.changed).count());
    assert_eq!(changes, 2, "two subnets were put");
}
