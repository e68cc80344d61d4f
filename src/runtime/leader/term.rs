//! One term of leadership: renewing the lease, losing it, releasing it.
//!
//! The term ends at the deadline even while a call hangs; a renewal whose answer arrives after the deadline is too
//! late. A write by somebody else shuts the gate until a renewal proves that this process still holds the lease.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::guard::{deadline, holder};
use super::lease::{LeaseCalls, names};
use super::{Elector, LeaderError, LeaderGate, LeaseSettings, Standing};

/// Held while this process leads. A background task renews the lease until this is dropped. That shuts the gate but
/// lets the lease expire; a clean stop calls [`Leadership::step_down`].
#[must_use = "dropping it ends leadership"]
pub struct Leadership {
    term: Arc<Term>,
    renewing: JoinHandle<()>,
}

/// What the handle and its renewing task share.
struct Term {
    calls: LeaseCalls,
    settings: Arc<LeaseSettings>,
    gate: LeaderGate,
    standing: watch::Sender<Standing>,
    /// Cancelled when renewing is to stop.
    stop: CancellationToken,
    /// Cancelled when leadership is lost.
    lost: CancellationToken,
}

impl Leadership {
    /// Opens the gate and keeps renewing. The call that acquired the lease began at `begun`.
    pub(super) fn begin(elector: Elector, begun: Instant) -> Self {
        let Elector {
            calls,
            settings,
            gate,
            standing,
        } = elector;
        let term = Arc::new(Term {
            calls,
            settings,
            gate,
            standing,
            stop: CancellationToken::new(),
            lost: CancellationToken::new(),
        });
        term.gate
            .open_until(deadline(begun, term.settings.times.renew_deadline));
        term.standing.send_replace(Standing::Leading);
        tracing::info!(lease = %term.settings.name, identity = %term.settings.identity, "leading");
        let renewing = tokio::spawn(Arc::clone(&term).renew(begun));
        Self { term, renewing }
    }

    pub(super) fn lease(&self) -> &str {
        &self.term.settings.name
    }

    /// Returns once leadership is lost: somebody else has the lease, or it could not be renewed in time. The gate is
    /// shut by then.
    pub async fn lost(&mut self) {
        self.term.lost.cancelled().await;
    }

    /// Shuts the gate and releases the lease, so that a standby acquires it at once; unless others hold it too. Call it
    /// when everything that writes has ended.
    ///
    /// If the lease could not be released; it then expires by itself.
    pub async fn step_down(mut self) -> Result<(), LeaderError> {
        self.term.gate.close();
        self.term.stop.cancel();
        tokio::time::timeout(self.term.settings.times.renew_deadline, async {
            // A renewal under way would make the release a lost race.
            let _ = (&mut self.renewing).await;
            self.term.release().await
        })
        .await
        .unwrap_or(Err(LeaderError::TimedOut))
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        self.term.gate.close();
        self.term.stop.cancel();
    }
}

/// Why a renewal did not succeed.
enum Setback {
    /// The lease names somebody else, or nobody.
    HeldByOther { holder: Option<String> },
    /// Somebody else wrote the lease; its holder is not known.
    Uncertain,
    /// The lease is unchanged, or the answer is missing.
    Failed(LeaderError),
}

impl From<LeaderError> for Setback {
    fn from(error: LeaderError) -> Self {
        match error {
            LeaderError::Conflict => Self::Uncertain,
            error => Self::Failed(error),
        }
    }
}

impl Term {
    async fn renew(self: Arc<Self>, won: Instant) {
        // Cancels `lost` when this task ends, also by a panic.
        let _lost = self.lost.clone().drop_guard();
        let mut until = deadline(won, self.settings.times.renew_deadline);
        let mut next = won + self.settings.times.retry;
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep_until(next.min(until).into()) => {}
            }
            let begun = Instant::now();
            let attempt = tokio::time::timeout_at(until.into(), self.attempt(until)).await;
            match attempt {
                Ok(Err(Setback::HeldByOther { holder })) => {
                    return self.lose(holder.as_deref().unwrap_or("nobody"));
                }
                _ if Instant::now() >= until => return self.lose("unknown: not renewed in time"),
                Ok(Ok(renewed)) => {
                    until = deadline(renewed, self.settings.times.renew_deadline);
                    self.gate.open_until(until);
                    next = renewed + self.settings.times.retry;
                }
                // A peer has renewed it: until when this process may lead stays known. They must not meet again.
                Ok(Err(Setback::Uncertain)) if self.settings.shared => next = Instant::now() + self.pause(),
                Ok(Err(Setback::Uncertain)) => {
                    self.gate.suspend();
                    tracing::warn!(lease = %self.settings.name, "somebody else has written the lease; looking who holds it");
                    next = Instant::now();
                }
                Ok(Err(Setback::Failed(error))) => {
                    tracing::warn!(lease = %self.settings.name, %error, "cannot renew the lease");
                    next = begun + self.settings.times.retry;
                }
                Err(_) => return self.lose("unknown: not renewed in time"),
            }
        }
    }

    /// Renews once; returns when the call that proved it began. A deleted lease is created again: until that succeeds
    /// nobody else may acquire it, because all others wait a whole lease duration. After `until` nothing is written.
    async fn attempt(&self, until: Instant) -> Result<Instant, Setback> {
        let lease = self.calls.read().await?;
        if let Some(lease) = lease.as_ref().filter(|lease| !names(lease, &self.settings.identity)) {
            return Err(Setback::HeldByOther {
                holder: lease.spec.as_ref().and_then(holder),
            });
        }
        let begun = Instant::now();
        if begun >= until {
            return Err(LeaderError::TimedOut.into());
        }
        self.calls.claim(lease).await?;
        Ok(begun)
    }

    /// A pause by chance, up to a quarter of the time between renewals.
    fn pause(&self) -> Duration {
        let share = uuid::Uuid::new_v4().as_fields().0 % 1_000;
        self.settings.times.retry * share / 4_000
    }

    fn lose(&self, holder: &str) {
        self.gate.close();
        self.standing.send_replace(Standing::Lost);
        tracing::error!(lease = %self.settings.name, %holder, "leadership lost");
        self.lost.cancel();
    }

    async fn release(&self) -> Result<(), LeaderError> {
        if self.settings.shared {
            return Ok(());
        }
        loop {
            let held = self
                .calls
                .read()
                .await?
                .filter(|lease| names(lease, &self.settings.identity));
            let Some(held) = held else { return Ok(()) };
            match self.calls.release(held).await {
                Err(LeaderError::Conflict | LeaderError::TimedOut) => {}
                result => {
                    self.standing.send_replace(Standing::Standby { holder: None });
                    tracing::info!(lease = %self.settings.name, "lease released");
                    return result;
                }
            }
        }
    }
}
