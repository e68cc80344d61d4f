//! Runs a program as a container runtime does under a restricted security context: with a read-only root, as user and
//! group 65532, without capabilities and without a way to gain any.
//!
//! `unshare --mount --propagation private container ROOT VOLUME PROGRAM [ARGUMENT]...` becomes PROGRAM, a path below
//! ROOT. VOLUME is a directory, and is `/volume` for the program. There is no `/proc`, no `/dev` and nothing else that
//! ROOT does not have.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use rustix::mount::{MountFlags, mount_bind, mount_remount};
use rustix::process::{Gid, Signal, Uid, chdir, chroot, getppid, set_parent_process_death_signal};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// The id of user and group, as in the image.
const ID: u32 = 65532;

fn main() -> Result<()> {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [root, volume, program, arguments @ ..] = args.as_slice() else {
        bail!("usage: container ROOT VOLUME PROGRAM [ARGUMENT]...")
    };
    let parent = getppid();
    enter(Path::new(root), Path::new(volume))?;
    give_up_rights().context("give up rights")?;
    // The change of user has cleared the parent-death signal.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    ensure!(getppid() == parent, "the parent has ended");
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("run {}", Path::new(program).display()))
}

fn enter(root: &Path, volume: &Path) -> Result<()> {
    let inside = root.join("volume");
    std::fs::create_dir_all(&inside)?;
    mount_bind(root, root).context("mount the root")?;
    mount_bind(volume, &inside).context("mount the volume")?;
    let read_only = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    mount_remount(root, read_only, "").context("make the root read-only")?;
    chroot(root)?;
    Ok(chdir("/")?)
}

fn give_up_rights() -> rustix::io::Result<()> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    for (_, capability) in CapabilitySet::all().iter_names() {
        remove_capability_from_bounding_set(capability)?;
    }
    clear_ambient_capability_set()?;
    let (user, group) = (Uid::from_raw(ID), Gid::from_raw(ID));
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    set_capabilities(None, none)?;
    set_no_new_privs(true)
}
