//! Child processes that cannot outlive us, not even when we are killed with SIGKILL.
//!
//! The kernel sends a child its parent-death signal when the *thread* that started it ends, so
//! all children are started by one thread that never does. Children lead process groups of their
//! own: Ctrl-C reaches us alone, and we end them in order. A child is in the network of the thread
//! that asked for it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::fs::fstat;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::wait::eventually;

/// setpriv arms the signal; the shell then looks whether the parent ($0) died before that, and
/// becomes the program.
const BECOME: &str = r#"[ "$PPID" = "$0" ] || exit 1; exec "$@""#;

/// What to start. Its standard error goes to `NAME.log` and its standard output to `NAME.out` in
/// the directory given to [`Program::spawn`].
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    args: Vec<OsString>,
    envs: Vec<(OsString, OsString)>,
    inherits: bool,
}

impl Program {
    /// A program without arguments, with our environment.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            args: Vec::new(),
            envs: Vec::new(),
            inherits: true,
        }
    }

    /// Leaves out our environment but for `PATH`, so that no setting of ours gets in.
    #[must_use]
    pub fn without_our_environment(mut self) -> Self {
        self.inherits = false;
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds `--NAME=VALUE`.
    #[must_use]
    pub fn flag(self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let mut arg = OsString::from(format!("--{name}="));
        arg.push(value);
        self.arg(arg)
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.envs.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Starts the program.
    ///
    /// # Errors
    ///
    /// There is no such file, a log cannot be written, or the process cannot be made.
    pub fn spawn(&self, name: &str, logs: &Path) -> Result<Process> {
        if !self.path.is_file() {
            bail!("no program {}", self.path.display());
        }
        let log = logs.join(format!("{name}.log"));
        let out = logs.join(format!("{name}.out"));
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--", "sh", "-c", BECOME])
            .arg(std::process::id().to_string())
            .arg(&self.path)
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(File::create(&out).with_context(|| format!("write {}", out.display()))?)
            .stderr(File::create(&log).with_context(|| format!("write {}", log.display()))?)
            .process_group(0);
        if !self.inherits {
            let path = std::env::var_os("PATH").unwrap_or_default();
            command.env_clear().env("PATH", path);
        }
        command.envs(self.envs.iter().map(|(name, value)| (name, value)));
        let child = spawn_from_the_lasting_thread(command).with_context(|| format!("start {name}"))?;
        Ok(Process {
            name: name.to_owned(),
            log,
            out,
            pid: child.id(),
            child: Mutex::new(child),
        })
    }

    /// Starts the program and waits for its end; its standard output.
    ///
    /// # Errors
    ///
    /// As [`Program::spawn`], it is still running after `timeout`, or it fails: then with the end of its log.
    pub async fn output(&self, name: &str, logs: &Path, timeout: Duration) -> Result<String> {
        let process = self.spawn(name, logs)?;
        let ended = process.wait(timeout).await;
        let out = std::fs::read_to_string(process.out())?;
        let status = ended.with_context(|| format!("{out}{}", process.log_tail()))?;
        ensure!(status.success(), "{name}: {status}\n{out}{}", process.log_tail());
        Ok(out)
    }
}

/// What to start, and in whose network.
type Order = (Command, OwnedFd, mpsc::Sender<std::io::Result<Child>>);

fn spawn_from_the_lasting_thread(command: Command) -> Result<Child> {
    static SPAWNER: OnceLock<Mutex<mpsc::Sender<Order>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (orders, inbox) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            // The sender is static, so this loop ends with the process.
            for (mut command, network, reply) in inbox {
                let _ = reply.send(move_into(&network).and_then(|()| command.spawn()));
            }
        });
        Mutex::new(orders)
    });
    let (reply, answer) = mpsc::channel();
    let network = own_network().context("the thread's network")?;
    spawner
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .send((command, network, reply))
        .context("the spawner has ended")?;
    Ok(answer.recv().context("the spawner has ended")??)
}

/// The network that the calling thread is in.
fn own_network() -> std::io::Result<OwnedFd> {
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

/// Has the calling thread, and what it starts, be in a network. Another one takes root.
///
/// # Errors
///
/// It may not.
pub(crate) fn move_into(network: &OwnedFd) -> std::io::Result<()> {
    if fstat(network)?.st_ino != fstat(own_network()?)?.st_ino {
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
    }
    Ok(())
}

/// A running child. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    out: PathBuf,
    pid: u32,
    child: Mutex<Child>,
}

impl Process {
    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The process that it has started, for one that only starts another (`nsenter`).
    ///
    /// # Errors
    ///
    /// It has started none.
    pub fn child(&self) -> Result<u32> {
        let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid))?;
        let first = children.split_whitespace().next();
        let first = first.with_context(|| format!("{} has no child", self.name))?;
        Ok(first.parse()?)
    }

    /// The file that its standard error goes to.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The file that its standard output goes to.
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<ExitStatus> {
        self.child
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .try_wait()
            .ok()
            .flatten()
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// It is still running after `timeout`.
    pub async fn wait(&self, timeout: Duration) -> Result<ExitStatus> {
        eventually(&format!("{} ends", self.name), timeout, || async {
            self.exit().ok_or_else(|| anyhow!("it is running"))
        })
        .await
    }

    /// Fails, with the end of its log, if it has ended.
    ///
    /// # Errors
    ///
    /// It is not running.
    pub fn check(&self) -> Result<()> {
        match self.exit() {
            None => Ok(()),
            Some(status) => bail!("{} has ended: {status}\n{}", self.name, self.log_tail()),
        }
    }

    /// Waits for something that never comes once the process has ended.
    ///
    /// # Errors
    ///
    /// It does not come within `timeout`, or the process has ended.
    pub async fn until<T>(&self, what: &str, timeout: Duration, probe: impl AsyncFn() -> Result<T>) -> Result<T> {
        eventually(what, timeout, || async {
            match self.check() {
                Ok(()) => probe().await.map(Ok),
                Err(ended) => Ok(Err(ended)),
            }
        })
        .await?
    }

    /// Sends a signal by its name without `SIG`: `TERM`, `STOP`, `CONT`.
    ///
    /// # Errors
    ///
    /// It is not running.
    pub fn signal(&self, signal: &str) -> Result<()> {
        // An id is free for reuse once its process was waited for, which exit() does.
        self.check()?;
        self::signal(self.pid, signal)
    }

    /// Kills it with SIGKILL and waits for its end.
    pub fn kill(&self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }

    /// The most memory that it had resident so far, in bytes (`VmHWM`), while it runs.
    pub fn peak_rss(&self) -> Option<u64> {
        self.memory("VmHWM:")
    }

    /// The memory that it has resident, in bytes (`VmRSS`), while it runs.
    pub fn rss(&self) -> Option<u64> {
        self.memory("VmRSS:")
    }

    fn memory(&self, field: &str) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    }

    /// The processor time that it has used so far, while it runs.
    pub fn processor_time(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        // The name before it may have spaces in it.
        let (_, fields) = stat.rsplit_once(')')?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        // The kernel counts hundredths of a second for user programs, whatever its own clock.
        Some(Duration::from_millis(10 * ticks.sum::<Result<u64, _>>().ok()?))
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        let tail = lines.get(lines.len().saturating_sub(15)..).unwrap_or_default();
        format!("{}:\n{}", self.log.display(), tail.join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal to a process by its id.
///
/// # Errors
///
/// There is no such process.
pub fn signal(pid: u32, signal: &str) -> Result<()> {
    let status = Command::new("sh")
        .args(["-c", r#"kill -s "$0" "$1""#, signal, &pid.to_string()])
        .status()?;
    if !status.success() {
        bail!("cannot send {signal} to process {pid}");
    }
    Ok(())
}

/// Whether a process runs: a zombie, which only waits to be waited for, does not.
pub fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The second field is the name in brackets, and may contain anything.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some(state) if state != 'Z' && state != 'X')
}
