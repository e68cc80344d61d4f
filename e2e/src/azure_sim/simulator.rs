//! The process of the simulator alone.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Once;

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

use super::{Preset, START};
use crate::control_api::ControlApi;
use crate::process::{Process, Program};

/// What the simulator logs for a call that violates Azure's REST specs.
const VIOLATION: &str = "against the specs";

/// What the simulator prints when it is up.
#[derive(Debug, Deserialize)]
pub(crate) struct Addresses {
    /// Base URL of ARM.
    pub(crate) arm: String,
    /// Base URL of the token issuer.
    pub(crate) authority: String,
    /// Base URL of the control API.
    control: String,
    /// URL of a managed identity, in App Service's form.
    pub(crate) identity: String,
    /// Path of the certificate authority.
    pub(crate) ca: PathBuf,
}

/// A running simulator.
///
/// Dropping it ends the process, and panics if a call or an answer violated Azure's REST specs: the sender may have
/// continued after the refusal, so the test itself may not have failed.
#[derive(Debug)]
pub(crate) struct Simulator {
    process: Process,
    control: ControlApi,
    addresses: Addresses,
}

impl Simulator {
    /// Starts the simulator and seeds it.
    ///
    /// # Errors
    ///
    /// It does not come up, or refuses the seed.
    pub(crate) async fn start(
        armsim: &Path,
        dir: &Path,
        preset: Preset,
        address: Ipv4Addr,
        seed: &Value,
    ) -> Result<Self> {
        let mut program = serving(armsim, dir, preset, address);
        match crate::reference::directory("azure-rest") {
            Some(specs) => program = program.arg("--strict").flag("specs", specs),
            None => unchecked(),
        }
        let process = program.spawn("armsim", dir)?;
        let addresses: Addresses = serde_json::from_str(&process.first_line(START).await?)?;
        let control = ControlApi::new(addresses.control.clone());
        control.send(reqwest::Method::PUT, "/seed", &[], Some(seed)).await?;
        Ok(Self {
            process,
            control,
            addresses,
        })
    }

    /// The simulator's control API.
    pub(crate) fn control(&self) -> &ControlApi {
        &self.control
    }

    /// Where it is.
    pub(crate) fn addresses(&self) -> &Addresses {
        &self.addresses
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let log = std::fs::read_to_string(self.process.log()).unwrap_or_default();
        let violations: Vec<&str> = log.lines().filter(|line| line.contains(VIOLATION)).collect();
        assert!(
            violations.is_empty() || std::thread::panicking(),
            "{}",
            violations.join("\n")
        );
    }
}

/// Reports once that the simulator checks no call against Azure's REST specs.
fn unchecked() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| crate::scenario::skipped("no specs of Azure at hand, so no call is held against them"));
}

/// A simulator of either cloud, as it serves at this address. Chance repeats what `E2E_SEED` says.
pub(crate) fn serving(simulator: &Path, dir: &Path, preset: Preset, address: Ipv4Addr) -> Program {
    let program = Program::new(simulator)
        .without_our_environment()
        .arg("serve")
        .flag("dir", dir)
        .flag("preset", preset.as_str())
        .flag("listen", format!("{address}:0"))
        .flag("tls-name", address.to_string());
    match std::env::var("E2E_SEED") {
        Ok(random_seed) => program.flag("random-seed", random_seed),
        Err(_) => program,
    }
}
