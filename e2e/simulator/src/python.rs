//! The Python of a virtual environment with pinned packages, for tests by others' clients.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Python of `hack/venv` for this file of requirements; none where there is no Python to make one.
///
/// # Panics
/// The packages cannot be installed.
#[must_use]
pub fn python(requirements: &Path) -> Option<PathBuf> {
    match Command::new("python3").arg("--version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        other => assert!(
            other.is_ok_and(|output| output.status.success()),
            "python3 does not run"
        ),
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/venv");
    let made = Command::new(script).arg(requirements).output();
    let made = made.unwrap_or_else(|error| panic!("hack/venv: {error}"));
    let [stdout, stderr] = [made.stdout, made.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(made.status.success(), "hack/venv: {stderr}");
    Some(Path::new(stdout.trim()).join("bin/python"))
}
