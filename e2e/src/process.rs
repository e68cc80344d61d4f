//! Child processes that cannot outlive this process, not even when it is killed with SIGKILL.
//!
//! The kernel sends a child its parent-death signal when the *thread* that started it ends. So one thread that never
//! ends starts all children. Children lead process groups of their own: Ctrl-C reaches only this process, which ends
//! them in order. A child is in the network of the thread that requested it.

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

/// setpriv sets the parent-death signal. Then the shell exits if the parent ($0) has died before that, or else becomes
/// the program.
const BECOME: &str = r#"[ "$PPID" = "$0" ] || exit 1; exec "$@""#;

/// A program to start. Its standard error goes to `NAME.log` and its standard output to `NAME.out` in the directory
/// given to [`Program::spawn`].
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    args: Vec<OsString>,
    envs: Vec<(OsString, OsString)>,
    inherits: bool,
}

impl Program {
    /// A program without arguments, with the environment of this process.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            args: Vec::new(),
            envs: Vec::new(),
            inherits: true,
        }
    }

    /// Removes all variables of this process except `PATH`, so that none of its settings reaches the program.
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

    /// Adds the argument `--NAME=VALUE`.
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
    /// There is no such file, a log cannot be written, or the process cannot be started.
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
        let child = spawn_from_permanent_thread(command).with_context(|| format!("start {name}"))?;
        Ok(Process {
            name: name.to_owned(),
            log,
            out,
            pid: child.id(),
            child: Mutex::new(child),
        })
    }

    /// Starts the program and waits for its end; returns its standard output.
    ///
    /// # Errors
    ///
    /// As [`Program::spawn`], it is still running after `timeout`, or it fails; the error holds the end of its log.
    pub async fn output(&self, name: &str, logs: &Path, timeout: Duration) -> Result<String> {
        let process = self.spawn(name, logs)?;
        let waited = process.wait(timeout).await;
        let out = std::fs::read_to_string(process.out())?;
        let status = waited.with_context(|| format!("{out}{}", process.log_tail()))?;
        ensure!(status.success(), "{name}: {status}\n{out}{}", process.log_tail());
        Ok(out)
    }
}

/// The command to start, the network to start it in, and where to send the result.
type Order = (Command, OwnedFd, mpsc::Sender<std::io::Result<Child>>);

fn spawn_from_permanent_thread(command: Command) -> Result<Child> {
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

/// Moves the calling thread, and what it will start, into a network. Only root may enter another network.
///
/// # Errors
///
/// The kernel does not allow it.
pub(crate) fn move_into(network: &OwnedFd) -> std::io::Result<()> {
    if fstat(network)?.st_ino != fstat(own_network()?)?.st_ino {
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
    }
    Ok(())
}

/// A child process. Dropping this value kills the process.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    out: PathBuf,
    pid: u32,
    child: Mutex<Child>,
}

impl Process {
    /// The name it was started under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The id of the process that it has started, for a program that only starts another (`nsenter`).
    ///
    /// # Errors
    ///
    /// It has started no process.
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

    /// The exit status, if the process has ended.
    pub fn exit(&self) -> Option<ExitStatus> {
        self.child
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .try_wait()
            .ok()
            .flatten()
    }

    /// Waits until the process has ended.
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

    /// Fails, with the end of its log, if the process has ended.
    ///
    /// # Errors
    ///
    /// The process is not running.
    pub fn check(&self) -> Result<()> {
        match self.exit() {
            None => Ok(()),
            Some(status) => bail!("{} has ended: {status}\n{}", self.name, self.log_tail()),
        }
    }

    /// Waits until `probe` succeeds; fails at once if the process has ended.
    ///
    /// # Errors
    ///
    /// `probe` does not succeed within `timeout`, or the process has ended.
    pub async fn until<T>(&self, what: &str, timeout: Duration, probe: impl AsyncFn() -> Result<T>) -> Result<T> {
        eventually(what, timeout, || async {
            match self.check() {
                Ok(()) => probe().await.map(Ok),
                Err(error) => Ok(Err(error)),
            }
        })
        .await?
    }

    /// Waits until it has printed a whole line to standard output, and returns the first one.
    ///
    /// # Errors
    ///
    /// It ends, or prints nothing within `timeout`.
    pub async fn first_line(&self, timeout: Duration) -> Result<String> {
        self.until("its first line is printed", timeout, async || {
            let text = std::fs::read_to_string(self.out())?;
            let (line, _) = text.split_once('\n').ok_or_else(|| anyhow!("it has printed nothing"))?;
            Ok(line.to_owned())
        })
        .await
    }

    /// Sends a signal by its name without `SIG`: `TERM`, `STOP`, `CONT`.
    ///
    /// # Errors
    ///
    /// It is not running.
    pub fn signal(&self, signal: &str) -> Result<()> {
        // The kernel may reuse an id once its process was waited for, which exit() does.
        self.check()?;
        self::signal(self.pid, signal)
    }

    /// Kills the process with SIGKILL and waits for its end.
    pub fn kill(&self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }

    /// The peak resident memory so far, in bytes (`VmHWM`); none if the process has ended.
    pub fn peak_rss(&self) -> Option<u64> {
        self.memory("VmHWM:")
    }

    /// The resident memory, in bytes (`VmRSS`); none if the process has ended.
    pub fn rss(&self) -> Option<u64> {
        self.memory("VmRSS:")
    }

    fn memory(&self, field: &str) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    }

    /// The processor time used so far; none if the process has ended.
    pub fn processor_time(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        // The field before is the name, which may contain spaces.
        let (_, fields) = stat.rsplit_once(')')?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        // The kernel counts hundredths of a second for user programs, whatever its own clock.
        Some(Duration::from_millis(10 * ticks.sum::<Result<u64, _>>().ok()?))
    }

    /// The path of the log and its last 15 lines.
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

/// Whether a process runs. A zombie, whose parent has not waited for it yet, does not.
pub fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The second field is the name in brackets, and may contain anything.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some(state) if state != 'Z' && state != 'X')
}
