//! kubectl, of the API server's version, as a person with a kubeconfig runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};

/// kubectl with a kubeconfig.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    cache: PathBuf,
}

impl Kubectl {
    pub(super) fn new(program: PathBuf, kubeconfig: &Path, dir: &Path) -> Self {
        Self {
            program,
            kubeconfig: kubeconfig.to_owned(),
            cache: dir.join("kubectl"),
        }
    }

    /// The directory of the program.
    pub fn directory(&self) -> &Path {
        self.program.parent().unwrap_or(&self.program)
    }

    /// Runs kubectl with these arguments; returns its standard output.
    ///
    /// # Errors
    ///
    /// kubectl fails; the error holds its output.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = self.output(arguments)?;
        let (printed, failed) = (
            String::from_utf8(output.stdout)?,
            String::from_utf8_lossy(&output.stderr),
        );
        ensure!(output.status.success(), "kubectl {arguments:?}: {printed}{failed}");
        Ok(printed)
    }

    /// Runs kubectl with these arguments; returns its exit status and its output.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn output(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(&self.program);
        self.environment(&mut command);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .context("run kubectl")
    }

    /// Runs a line of shell, in which `kubectl` is this program; returns its standard output.
    ///
    /// # Errors
    ///
    /// The line fails; the error holds its output.
    pub fn shell(&self, line: &str) -> Result<String> {
        let mut path = self.directory().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new("bash");
        self.environment(&mut command);
        command
            .args(["-euo", "pipefail", "-c", line])
            .env("PATH", path)
            .stdin(Stdio::null());
        let output = command.output()?;
        let (printed, failed) = (
            String::from_utf8(output.stdout)?,
            String::from_utf8_lossy(&output.stderr),
        );
        ensure!(output.status.success(), "{line}: {printed}{failed}");
        Ok(printed)
    }

    fn environment(&self, command: &mut Command) {
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", &self.cache);
    }
}
