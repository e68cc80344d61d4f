//! Starts and stops one control plane by hand: `testenv up` prints the path of its kubeconfig, `testenv down` ends it.
//! Each user can have one at a time.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use e2e::process::{is_running, signal};
use e2e::{ControlPlane, eventually};
use tokio::signal::unix::{SignalKind, signal as on_signal};

const PATIENCE: Duration = Duration::from_secs(1800);

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let files = StateFiles::of_this_user()?;
    match std::env::args().nth(1).as_deref() {
        Some("up") => up(&files).await?,
        Some("down") => down(&files).await?,
        Some("serve") => serve().await?,
        _ => {
            eprintln!("usage: testenv up|down|serve");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The files by which `down` and a second `up` find the control plane of the first `up`.
struct StateFiles {
    dir: PathBuf,
}

impl StateFiles {
    fn of_this_user() -> Result<Self> {
        let cache = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
            .context("neither XDG_CACHE_HOME nor HOME is set")?;
        let dir = cache.join("hyperlink/testenv/by-hand");
        std::fs::create_dir_all(&dir)?;
        Ok(Self { dir })
    }

    fn pid_file(&self) -> PathBuf {
        self.dir.join("pid")
    }

    fn out(&self) -> PathBuf {
        self.dir.join("out")
    }

    fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// The process id of a running `serve`, if there is one.
    fn running(&self) -> Option<u32> {
        let pid: u32 = std::fs::read_to_string(self.pid_file()).ok()?.trim().parse().ok()?;
        // Another process may have this id by now.
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        (is_running(pid) && command.ends_with(b"testenv\0serve\0")).then_some(pid)
    }
}

async fn up(files: &StateFiles) -> Result<()> {
    let pid = match files.running() {
        Some(pid) => pid,
        None => {
            let child = Command::new(std::env::current_exe()?)
                .arg("serve")
                .stdin(Stdio::null())
                .stdout(File::create(files.out())?)
                .stderr(File::create(files.log())?)
                .process_group(0)
                .spawn()?;
            std::fs::write(files.pid_file(), child.id().to_string())?;
            child.id()
        }
    };
    // `serve` may have to build first. When it has ended, the wait ends too.
    let kubeconfig = eventually("the control plane is up", PATIENCE, || async {
        let text = read(&files.out())?;
        match text.strip_suffix('\n') {
            Some(path) => Ok(Ok(path.to_owned())),
            None if is_running(pid) => bail!("not yet"),
            None => Ok(Err(anyhow!("it did not start:\n{}", read(&files.log())?))),
        }
    })
    .await??;
    println!("{kubeconfig}");
    Ok(())
}

async fn down(files: &StateFiles) -> Result<()> {
    let Some(pid) = files.running() else {
        eprintln!("nothing is up");
        return Ok(());
    };
    signal(pid, "TERM")?;
    eventually("the control plane is down", Duration::from_secs(20), || async {
        if is_running(pid) {
            Err(anyhow!("process {pid} runs"))
        } else {
            Ok(())
        }
    })
    .await?;
    Ok(std::fs::remove_file(files.pid_file())?)
}

/// Runs a control plane in the foreground until a signal; prints the path of its kubeconfig.
async fn serve() -> Result<()> {
    let mut terminate = on_signal(SignalKind::terminate())?;
    let mut interrupt = on_signal(SignalKind::interrupt())?;
    let control_plane = ControlPlane::start().await?;
    println!("{}", control_plane.kubeconfig_path().display());
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}
