//! The program for the other kind of machine, on Debian's emulator: it prints its version, and serves one cluster's
//! life.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};
use e2e::azure_sim::Preset;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::run_dir::RunDir;
use e2e::{TestEnv, scenario};

use crate::archive::Image;
use crate::life::{RESYNC, lives_and_is_deleted};
use e2e::node::images::{self, HYPERLINK_ARM64};

/// An unpacked image and a command that runs its program.
struct Emulated {
    image: Image,
    command: PathBuf,
    _dir: RunDir,
}

impl Emulated {
    fn new() -> Result<Option<Self>> {
        let Some(built) = images::built(HYPERLINK_ARM64)? else {
            return Ok(None);
        };
        let emulator = Command::new(e2e::repository().join("hack/debian"))
            .args(["qemu-aarch64", "qemu-user"])
            .output()?;
        if !emulator.status.success() {
            e2e::scenario::skipped(String::from_utf8_lossy(&emulator.stderr).trim());
            return Ok(None);
        }
        let image = Image::unpack(&built.archive)?;
        let dir = RunDir::new("arm64")?;
        let command = dir.path().join("hyperlink");
        let program = image.root.join("hyperlink");
        std::fs::write(
            &command,
            format!("#!/bin/sh\nexec qemu-aarch64 '{}' \"$@\"\n", program.display()),
        )?;
        std::fs::set_permissions(&command, Permissions::from_mode(0o755))?;
        Ok(Some(Self {
            image,
            command,
            _dir: dir,
        }))
    }
}

#[test]
fn version_for_the_other_machine_names_the_commit() {
    scenario(async {
        let Some(emulated) = Emulated::new()? else {
            return Ok(());
        };
        let output = Command::new(&emulated.command).arg("version").output()?;
        let (version, commit) = (emulated.image.label("version")?, emulated.image.label("revision")?);
        let printed = String::from_utf8(output.stdout)?;
        ensure!(printed == format!("hyperlink {version} ({commit})\n"), "{printed}");
        Ok(())
    });
}

#[test]
fn private_cluster_lives_on_the_other_machine() {
    scenario(async {
        let Some(emulated) = Emulated::new()? else {
            return Ok(());
        };
        let test_env = TestEnv::local(Preset::Fast).await?;
        let program = &emulated.command;
        let ho = Hyperlink::start_program(program, &test_env, Role::Ho, "ho", &RESYNC).await?;
        let cpo = Hyperlink::start_program(program, &test_env, Role::Cpo, "cpo", &RESYNC).await?;
        lives_and_is_deleted(&test_env, "emulated").await?;
        ho.stop().await?;
        cpo.stop().await
    });
}
