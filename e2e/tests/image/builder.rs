//! Which tool builds an image: any that works here, but no client without its daemon.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::run_dir::RunDir;
use rstest::rstest;

/// The tools that `hack/image/builder` itself needs.
const TOOLS: [&str; 4] = ["bash", "dirname", "env", "timeout"];

#[rstest]
#[case::nothing(&[], None)]
#[case::a_docker_client_alone(&[("docker", false)], None)]
#[case::podman_that_cannot_run(&[("podman", false)], None)]
#[case::docker(&[("docker", true)], Some("docker"))]
#[case::podman_beside_a_docker_client(&[("docker", false), ("podman", true)], Some("podman"))]
#[case::all(&[("docker", true), ("podman", true), ("buildah", true)], Some("buildah"))]
fn image_is_built_by_what_works(#[case] programs: &[(&str, bool)], #[case] chosen: Option<&str>) {
    e2e::scenario(async {
        let dir = RunDir::new("builder")?;
        for tool in TOOLS {
            symlink(found(tool)?, dir.path().join(tool))?;
        }
        for (program, works) in programs {
            let path = dir.path().join(program);
            std::fs::write(&path, format!("#!/usr/bin/env bash\n{works}\n"))?;
            std::fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        }
        let script = e2e::repository().join("hack/image/builder");
        let output = Command::new(script).env("PATH", dir.path()).output()?;
        let (out, error) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        ensure!(output.status.success() == chosen.is_some(), "{out}{error}");
        ensure!(out.trim() == chosen.unwrap_or_default(), "{out}");
        ensure!(
            chosen.is_some() || error.contains("buildah is missing: install it"),
            "{error}"
        );
        Ok(())
    });
}

fn found(tool: &str) -> Result<std::path::PathBuf> {
    let path = std::env::var("PATH")?;
    let mut files = path.split(':').map(|dir| Path::new(dir).join(tool));
    files.find(|file| file.is_file()).with_context(|| tool.to_owned())
}
