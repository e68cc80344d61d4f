//! A node changes nothing outside, and leaves nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use e2e::node;

/// The settings that a kubelet would change, for the whole kernel.
const SETTINGS: [&str; 6] = [
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
];
/// The directories that it, or containerd, would make by default.
const DIRECTORIES: [&str; 4] = [
    "/opt/containerd",
    "/usr/libexec/kubernetes",
    "/var/lib/kubelet",
    "/run/containerd",
];

#[test]
fn node_touches_nothing_outside_and_leaves_nothing() {
    let before = outside();
    let mut inside = None;
    node::scenario(&[], async |cluster| {
        inside = Some((network("self").unwrap_or_default(), cluster.cgroup()));
        Ok(())
    });
    // There can be no node here.
    let Some((its_network, its_cgroup)) = inside else {
        return;
    };
    assert_eq!(outside(), before);
    let all = std::fs::read_dir("/proc").unwrap();
    let names = all.filter_map(|one| one.ok()?.file_name().into_string().ok());
    let left: Vec<_> = names
        .filter(|pid| network(pid).as_ref() == Some(&its_network))
        .collect();
    assert!(left.is_empty(), "processes {left:?} are left");
    let mut roots = vec![PathBuf::from("/sys/fs/cgroup")];
    roots.extend(
        std::fs::read_dir("/sys/fs/cgroup")
            .unwrap()
            .filter_map(|one| Some(one.ok()?.path())),
    );
    let left: Vec<_> = roots
        .iter()
        .map(|root| root.join(&its_cgroup))
        .filter(|path| path.exists())
        .collect();
    assert!(left.is_empty(), "{left:?} are left");
}

fn outside() -> BTreeMap<&'static str, String> {
    let settings = SETTINGS.map(|name| {
        (
            name,
            std::fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap_or_default(),
        )
    });
    let directories = DIRECTORIES.map(|name| (name, Path::new(name).exists().to_string()));
    settings.into_iter().chain(directories).collect()
}

/// The network that a process is in; a thread's own for `self`.
fn network(pid: &str) -> Option<PathBuf> {
    let of = if pid == "self" { "thread-self" } else { pid };
    std::fs::read_link(Path::new("/proc").join(of).join("ns/net")).ok()
}
