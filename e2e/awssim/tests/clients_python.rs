//! AWS's own Python package against the simulator: the tests are in `e2e/clients/aws`. They hold every request and every
//! answer against the service models that the package carries.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use awssim::{Options, Server};

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients/aws")
}

fn text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// The Python of the virtual environment with the pinned packages; `None` where there is no Python to make one.
fn python() -> Option<PathBuf> {
    match Command::new("python3").arg("--version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        other => assert!(other.unwrap().status.success(), "python3 does not run"),
    }
    let venv = Command::new(clients().join("../../../hack/venv"))
        .arg(clients().join("requirements.txt"))
        .output()
        .unwrap();
    assert!(venv.status.success(), "hack/venv: {}", text(&venv));
    Some(Path::new(String::from_utf8(venv.stdout).unwrap().trim()).join("bin/python"))
}

#[tokio::test(flavor = "multi_thread")]
async fn official_python_package_works() {
    let Some(python) = tokio::task::spawn_blocking(python).await.unwrap() else {
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
