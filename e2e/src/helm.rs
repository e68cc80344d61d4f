//! The real helm program, and Hyperlink's chart.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

use crate::run_dir::RunDir;

/// The directory of the chart.
pub fn chart() -> PathBuf {
    crate::repository().join("charts/hyperlink")
}

/// helm for one cluster, or for none where it only renders. It has caches and settings of its own.
#[derive(Debug)]
pub struct Helm {
    program: PathBuf,
    kubeconfig: Option<PathBuf>,
    home: RunDir,
}

impl Helm {
    /// helm that talks to the API server of this kubeconfig, if there is one.
    ///
    /// # Errors
    ///
    /// helm cannot be built.
    pub fn new(kubeconfig: Option<&Path>) -> Result<Self> {
        Ok(Self {
            program: program("helm")?,
            kubeconfig: kubeconfig.map(Path::to_owned),
            home: RunDir::new("helm")?,
        })
    }

    /// The path of the program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Runs helm with these arguments; returns its standard output.
    ///
    /// # Errors
    ///
    /// helm exits with another code than 0; the error is its standard error.
    pub fn run<S: AsRef<str>>(&self, arguments: &[S]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.args(arguments.iter().map(AsRef::as_ref)).env_clear();
        for kind in ["CACHE", "CONFIG", "DATA"] {
            command.env(format!("HELM_{kind}_HOME"), self.home.path().join(kind));
        }
        // helm caches there what it has discovered of an API server.
        command.env("HOME", self.home.path());
        // Without KUBECONFIG, helm would read the user's own kubeconfig.
        let nowhere = self.home.path().join("nowhere");
        command.env("KUBECONFIG", self.kubeconfig.as_ref().unwrap_or(&nowhere));
        let output = command.output().context("run helm")?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// The path of a program that `hack/helm/build` builds. Runs that script first, once for each process.
fn program(name: &str) -> Result<PathBuf> {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    if let Some(directory) = DIRECTORY.get() {
        return Ok(directory.join(name));
    }
    let script = crate::repository().join("hack/helm/build");
    let output = Command::new(&script)
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("run {}", script.display()))?;
    ensure!(output.status.success(), "{}: {}", script.display(), output.status);
    let directory = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    Ok(DIRECTORY.get_or_init(|| directory).join(name))
}
