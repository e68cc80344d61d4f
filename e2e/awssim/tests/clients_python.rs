//! AWS's own Python package against the simulator: the tests are in `e2e/clients/aws`. They hold every request and every
//! answer against the service models that the package carries.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use awssim::{Options, Server};
use simulator::python::python;

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients/aws")
}

fn text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn official_python_package_works() {
    let Some(python) = tokio::task::spawn_blocking(|| python(&clients().join("requirements.txt")))
        .await
        .unwrap()
    else {
        println!("SKIPPED: no python3");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        dir: Some(dir.path().to_owned()),
        ..Options::default()
    };
    let server = Server::start(options).await.unwrap();
    let mut pytest = Command::new("timeout");
    pytest
        .arg("300")
        .arg(python)
        .args(["-m", "pytest"])
        .current_dir(clients())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("AWSSIM_AWS", &server.aws)
        .env("AWSSIM_CONTROL", &server.control)
        .env("AWSSIM_CA", dir.path().join("ca.pem"));
    // No test collected is an error of pytest's too.
    let output = tokio::task::spawn_blocking(move || pytest.output())
        .await
        .unwrap()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
}
