//! Runs an image's program as a pod would: `src/bin/container.rs`.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use e2e::process::Process;
use e2e::run_dir::RunDir;

use crate::archive::Image;
use e2e::node::images::Built;

/// Path of the volume, as the program sees it.
const VOLUME: &str = "/volume";

/// An unpacked image, a directory that its program sees, and a command that runs it there.
#[derive(Debug)]
pub(crate) struct Pod {
    image: Image,
    command: PathBuf,
    dir: RunDir,
}

impl Pod {
    /// Unpacks the image and prepares the command. For users other than root it returns none, and reports the test as
    /// skipped.
    pub(crate) fn new(built: &Built) -> Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            e2e::scenario::skipped("only root gives a program a root and a user of its own");
            return Ok(None);
        }
        let image = Image::unpack(&built.archive)?;
        let dir = RunDir::new("pod")?;
        let volume = dir.path().join("volume");
        std::fs::create_dir(&volume)?;
        std::fs::set_permissions(&volume, Permissions::from_mode(0o755))?;
        std::fs::set_permissions(&image.root, Permissions::from_mode(0o755))?;
        let program = image.config["config"]["Entrypoint"][0]
            .as_str()
            .context("no entry point")?;
        let container = e2e::binaries::executable("container")?;
        let text = format!(
            "#!/bin/sh\nexec unshare --mount --propagation private '{}' '{}' '{}' '{program}' \"$@\"\n",
            container.display(),
            image.root.display(),
            volume.display(),
        );
        let command = dir.path().join("pod");
        std::fs::write(&command, text)?;
        std::fs::set_permissions(&command, Permissions::from_mode(0o755))?;
        Ok(Some(Self { image, command, dir }))
    }

    /// The command that becomes the program.
    pub(crate) fn command(&self) -> &Path {
        &self.command
    }

    /// The unpacked image.
    pub(crate) fn image(&self) -> &Image {
        &self.image
    }

    /// The volume's path from outside.
    pub(crate) fn volume(&self) -> PathBuf {
        self.dir.path().join("volume")
    }

    /// Puts a copy of a file into the volume, for all to read; its path from inside.
    pub(crate) fn put(&self, file: &Path) -> Result<PathBuf> {
        let name = file.file_name().context("no file")?;
        let copy = self.volume().join(name);
        std::fs::copy(file, &copy).with_context(|| format!("copy {}", file.display()))?;
        std::fs::set_permissions(&copy, Permissions::from_mode(0o644))?;
        Ok(Path::new(VOLUME).join(name))
    }
}

/// Fails unless a process is as restricted as a pod may ask for: user, capabilities, root, no way to more.
pub(crate) fn is_restricted(process: &Process) -> Result<()> {
    let proc = Path::new("/proc").join(process.pid().to_string());
    let status = std::fs::read_to_string(proc.join("status"))?;
    let none = "0000000000000000";
    let nobody = "65532\t65532\t65532\t65532";
    for (field, expected) in [
        ("Uid", nobody),
        ("Gid", nobody),
        ("Groups", ""),
        ("NoNewPrivs", "1"),
        ("CapInh", none),
        ("CapPrm", none),
        ("CapEff", none),
        ("CapBnd", none),
        ("CapAmb", none),
    ] {
        let line = status.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
        ensure!(line.map(str::trim) == Some(expected), "{field}: {line:?}");
    }
    let mounts = std::fs::read_to_string(proc.join("mountinfo"))?;
    let mounts: Vec<Vec<&str>> = mounts.lines().map(|line| line.split(' ').collect()).collect();
    let root = mounts
        .iter()
        .filter(|fields| fields.get(4) == Some(&"/"))
        .collect::<Vec<_>>();
    let read_only = |fields: &&Vec<&str>| {
        fields
            .get(5)
            .is_some_and(|options| options.split(',').any(|one| one == "ro"))
    };
    ensure!(
        !root.is_empty() && root.iter().all(read_only),
        "the root can be written to: {root:?}"
    );
    ensure!(mounts.len() == 2, "mounts: {mounts:?}");
    Ok(())
}
