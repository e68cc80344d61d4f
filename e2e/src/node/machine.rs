//! The machine of a node: Linux namespaces for network, mounts and processes, and a root for its control groups. It
//! changes nothing outside, so several machines do not conflict. All of it ends with the process that started it.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::process::{Process, Program, move_into};
use crate::run_dir::RunDir;
use crate::wait::patient;

const CGROUPS: &str = "/sys/fs/cgroup";

/// How long the creation of the namespaces may take.
const START: Duration = Duration::from_secs(30);

/// Waits for the end of its input, which comes when the owner ends, then removes the control groups ($0). Control
/// groups of processes that were just killed are busy for a moment, so it retries for a minute.
const JANITOR: &str = r#"cat
for try in $(seq 120); do
	left=$(find /sys/fs/cgroup -depth -type d \( -path "*/$0" -o -path "*/$0/*" \))
	[ -n "$left" ] || exit 0
	echo "$left" | xargs rmdir 2>/dev/null
	sleep 0.5
done"#;

/// A machine without programs. Dropping this value ends everything on the machine.
#[derive(Debug)]
pub(super) struct Machine {
    init: u32,
    network: OwnedFd,
    cgroup: String,
    // Drop order: the processes first, then what they ran in.
    holder: Option<Process>,
    janitor: Child,
    #[expect(dead_code, reason = "is there as long as what has files in it")]
    dir: RunDir,
}

impl Machine {
    /// Creates a machine with this address.
    pub(super) fn start(address: Ipv4Addr) -> Result<Self> {
        let dir = RunDir::new("machine")?;
        let name = dir.path().file_name().and_then(|name| name.to_str());
        let cgroup = name.context("a directory without a name")?.to_owned();
        let janitor = janitor(&cgroup)?;
        make_cgroups(&cgroup)?;
        let holder = Program::new("/usr/bin/unshare")
            .arg("--mount")
            .arg("--net")
            .arg("--pid")
            .arg("--fork")
            .arg("--kill-child")
            .arg("--mount-proc")
            .arg(script("machine"))
            .arg(dir.path())
            .arg(address.to_string())
            .spawn("machine", dir.path())?;
        let began = Instant::now();
        while std::fs::read_to_string(holder.out())? != "ready\n" {
            holder.check()?;
            ensure!(began.elapsed() < patient(START), "no machine: {}", holder.log_tail());
            std::thread::sleep(Duration::from_millis(20));
        }
        let init = holder.child()?;
        let network = File::open(format!("/proc/{init}/ns/net"))?.into();
        Ok(Self {
            init,
            network,
            cgroup,
            holder: Some(holder),
            janitor,
            dir,
        })
    }

    /// Moves the calling thread, and the threads and processes that it will start, into the machine's network.
    pub(super) fn enter(&self) -> Result<()> {
        move_into(&self.network).context("enter the machine's network")
    }

    /// The path of its control groups, below the root of each hierarchy.
    pub(super) fn cgroup(&self) -> String {
        format!("/{}", self.cgroup)
    }

    /// A program that will run on the machine.
    pub(super) fn program(&self, path: &Path) -> Program {
        let nsenter = Program::new("/usr/bin/nsenter");
        self.inside().iter().fold(nsenter, Program::arg).arg(path)
    }

    /// Runs a program on the machine to its end; returns its standard output.
    pub(super) fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let output = Command::new("nsenter")
            .args(self.inside())
            .arg(program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()?;
        let (printed, failed) = (
            String::from_utf8(output.stdout)?,
            String::from_utf8_lossy(&output.stderr),
        );
        ensure!(output.status.success(), "{program} {arguments:?}: {printed}{failed}");
        Ok(printed)
    }

    /// A line of shell that runs `line` on the machine.
    pub(super) fn shell(&self, line: &str) -> String {
        format!("nsenter {} {line}", self.inside().join(" "))
    }

    /// The arguments with which nsenter enters the machine.
    fn inside(&self) -> [String; 5] {
        let target = format!("--target={}", self.init);
        [&target, "--net", "--mount", "--pid", "--"].map(str::to_owned)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.holder.take());
        drop(self.janitor.stdin.take());
        let _ = self.janitor.wait();
    }
}

/// Whether this host can run nodes. Installs the container runtime if it is missing; if that is impossible, it reports
/// the test as skipped, with the reason.
pub(super) fn is_possible() -> Result<bool> {
    let runtime = Command::new(script("runtime")).stdin(Stdio::null()).output()?;
    if !runtime.status.success() {
        crate::scenario::skipped(&String::from_utf8_lossy(&runtime.stderr).trim().replace('\n', "; "));
    }
    Ok(runtime.status.success())
}

fn script(name: &str) -> PathBuf {
    crate::repository().join("hack/testenv").join(name)
}

fn janitor(cgroup: &str) -> Result<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", JANITOR, cgroup]).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.spawn().context("start sh")
}

/// Creates the kubelet's root control group, in each hierarchy (v1) or in the one hierarchy (v2).
fn make_cgroups(name: &str) -> Result<()> {
    let root = Path::new(CGROUPS);
    let roots: Vec<PathBuf> = if root.join("cgroup.controllers").exists() {
        vec![root.to_owned()]
    } else {
        let entries = std::fs::read_dir(root)?.collect::<Result<Vec<_>, _>>()?;
        entries
            .into_iter()
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect()
    };
    if roots.is_empty() {
        bail!("no control groups in {CGROUPS}");
    }
    for root in roots {
        let made = root.join(name);
        // A hierarchy may be reachable by two names.
        if !made.exists() {
            std::fs::create_dir(&made).with_context(|| format!("make {}", made.display()))?;
        }
    }
    Ok(())
}
