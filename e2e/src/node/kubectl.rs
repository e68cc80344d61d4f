//! kubectl, of the API server's version, as somebody with a kubeconfig runs it.

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

    /// The directory that it is in.
    pub fn directory(&self) -> &Path {
        self.program.parent().unwrap_or(&self.program)
    }

    /// What it says when it has done what it was asked.
    ///
    /// # Errors
    ///
    /// It fails; with what it has said.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = self.output(arguments)?;
        let (said, failed) = (
            String::from_utf8(output.stdout)?,
            String::from_utf8_lossy(&output.stderr),
        );
        ensure!(output.status.success(), "kubectl {arguments:?}: {said}{failed}");
        Ok(said)
    }

    /// How it ends, and what it says.
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

    /// Runs a line of shell, in which `kubectl` is this one.
    ///
    /// # Errors
    ///
    /// It fails; with what it has said.
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
        let (said, failed) = (
            String::from_utf8(output.stdout)?,
            String::from_utf8_lossy(&output.stderr),
        );
        ensure!(output.status.success(), "{line}: {said}{failed}");
        Ok(said)
    }

    fn environment(&self, command: &mut Command) {
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", &self.cache);
    }
}
