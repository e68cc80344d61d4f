//! Watches the gates of several candidates, far more often than anything else happens, and records whether two were
//! open at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, bail};
use hyperlink::runtime::leader::LeaderGate;

pub(crate) struct Witness {
    enough: Arc<AtomicBool>,
    watching: JoinHandle<Option<(usize, usize)>>,
}

impl Witness {
    pub(crate) fn of(gates: Vec<LeaderGate>) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&enough);
        let watching = std::thread::spawn(move || {
            let mut overlap = None;
            while overlap.is_none() && !stop.load(Ordering::SeqCst) {
                overlap = two_open(&gates);
                std::thread::sleep(Duration::from_micros(500));
            }
            overlap
        });
        Self { enough, watching }
    }

    /// Ends the watch.
    ///
    /// # Errors
    /// Two gates were open at the same time.
    pub(crate) fn verdict(self) -> Result<()> {
        self.enough.store(true, Ordering::SeqCst);
        match self.watching.join() {
            Ok(None) => Ok(()),
            Ok(Some((one, other))) => bail!("gates {one} and {other} were open at once"),
            Err(_) => bail!("the witness panicked"),
        }
    }
}

/// Two gates that were open at once. A gate that is open before and after another one was open was open together with
/// it, because it opens for one term only.
fn two_open(gates: &[LeaderGate]) -> Option<(usize, usize)> {
    let pairs = (0..gates.len()).flat_map(|one| (0..gates.len()).map(move |other| (one, other)));
    pairs
        .filter(|(one, other)| one != other)
        .find(|&(one, other)| gates[one].open() && gates[other].open() && gates[one].open())
}
