//! Leader election: one leader per lease, and a gate that is open only while this process leads.
//!
//! The guard judges the lease, each write of the lease is conditional on what was judged, and the local monotonic clock
//! ends leadership at the deadline whatever the calls do. After a loss the process must end; nothing here starts a
//! second term.
//!
//! | file | rule |
//! |---|---|
//! | `gate.rs` | what may be sent now |
//! | `gated_client.rs` | Kubernetes writes ask the gate |
//! | `guard.rs` | when a lease may be acquired |
//! | `lease.rs` | how it is read and written |
//! | `lease_watch.rs` | noticing a release at once |
//! | `shards.rs` | two leases, for a part of all objects |
//! | `term.rs` | renewing, losing, stepping down |
//! | `work.rs` | what ends before what |

mod gate;
mod gated_client;
mod guard;
mod lease;
mod lease_watch;
mod shards;
mod term;
mod work;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use gate::LeaderGate;
pub use gated_client::{GateShut, gated_client};
pub use shards::{Electors, LeaderGates, Standings};
pub use term::Leadership;
pub use work::Worked;

use guard::{Guard, LeaseVerdict};
use lease::LeaseCalls;
use lease_watch::LeaseWatch;

/// The most characters of an identity: it is sent as the field manager too, which Kubernetes limits to 128.
const IDENTITY_MAX: usize = 128;

/// The times of an election: `retry` < `renew_deadline` < `duration`, which the configuration ensures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimes {
    /// How long others wait after a renewal before they acquire the lease. Whole seconds.
    pub duration: Duration,
    /// How long after the last proven renewal leadership ends.
    pub renew_deadline: Duration,
    /// The time between renewals, and between reads of a lease that somebody else holds.
    pub retry: Duration,
}

impl LeaseTimes {
    /// The longest time for one call: a call that hangs must leave time for another before the deadline.
    fn call_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }
}

/// The lease to campaign for, the candidate's identity, and the times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSettings {
    /// The Lease's name: one per role and scope.
    pub name: String,
    /// The Lease's namespace.
    pub namespace: String,
    /// The holder that the Lease names. Must be unique to this process, see [`LeaseSettings::identity`], unless the
    /// lease is `shared`.
    pub identity: String,
    /// Whether several processes hold the lease together, under one identity. None of them releases it: it expires when
    /// the last one has ended.
    pub shared: bool,
    /// The times of the election.
    pub times: LeaseTimes,
}

impl LeaseSettings {
    /// An identity that no other process has: the pod's name, cut if need be, and a random suffix. A restarted
    /// container keeps its pod's name, so the name alone would let it pass for its predecessor.
    #[must_use]
    pub fn identity(pod: &str) -> String {
        let suffix = format!("_{}", uuid::Uuid::new_v4());
        let pod: String = pod
            .chars()
            .filter(char::is_ascii)
            .take(IDENTITY_MAX - suffix.len())
            .collect();
        pod + &suffix
    }
}

/// Why a lease could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LeaderError {
    /// The API server was not reached, or refused.
    #[error("lease: {0}")]
    Kube(#[from] kube::Error),
    /// A call was not answered in time.
    #[error("lease: no answer in time")]
    TimedOut,
    /// Somebody else wrote the lease between this process's read and its write.
    #[error("lease: somebody else has written it")]
    Conflict,
    /// This process does not lead any more.
    #[error("the lease is lost")]
    Lost,
    /// The API server refused a write for another reason.
    #[error("lease: {0}")]
    Write(kube_leader_election::Error),
}

impl From<kube_leader_election::Error> for LeaderError {
    fn from(error: kube_leader_election::Error) -> Self {
        use kube_leader_election::Error::{AcquireLease, CreateLease, ReleaseLease, RenewLease};
        let lost_race = match &error {
            CreateLease(kube::Error::Api(status)) => status.code == 409,
            // A patch also finds nothing if the lease was deleted meanwhile.
            AcquireLease(kube::Error::Api(status))
            | RenewLease(kube::Error::Api(status))
            | ReleaseLease(kube::Error::Api(status)) => matches!(status.code, 404 | 409),
            _ => false,
        };
        if lost_race { Self::Conflict } else { Self::Write(error) }
    }
}

/// The standing of this process in the election, for readiness and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The API server does not answer about the lease, or has not yet.
    Unknown,
    /// Somebody else leads, or nobody does yet.
    Standby {
        /// The holder that the lease names, if any.
        holder: Option<String>,
    },
    /// This process leads.
    Leading,
    /// This process led and does not any more; it must end.
    Lost,
}

/// A candidate for one lease.
pub struct Elector {
    calls: LeaseCalls,
    settings: Arc<LeaseSettings>,
    gate: LeaderGate,
    standing: watch::Sender<Standing>,
}

impl Elector {
    /// A candidate with a client of its own: the renewal must not wait behind other calls, nor be repeated by a retry
    /// that knows no deadline. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the client's configuration is unusable.
    pub fn new(mut config: kube::Config, settings: LeaseSettings) -> Result<Self, LeaderError> {
        config.default_retry = false;
        config.connect_timeout = Some(settings.times.call_timeout());
        Ok(Self::over(kube::Client::try_from(config)?, settings))
    }

    fn over(client: kube::Client, settings: LeaseSettings) -> Self {
        let settings = Arc::new(settings);
        Self {
            calls: LeaseCalls::new(client, Arc::clone(&settings)),
            gate: LeaderGate::shut_from(Instant::now()),
            standing: watch::Sender::new(Standing::Unknown),
            settings,
        }
    }

    /// The gate that is open only while this candidate leads.
    #[must_use]
    pub fn gate(&self) -> LeaderGate {
        self.gate.clone()
    }

    /// The standing of this candidate, now and later.
    #[must_use]
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// Waits until this candidate leads; `None` if `stop` came first. Failed calls are logged and tried again.
    ///
    /// A lease that was released, or never used, is acquired at once. A missing one is acquired only after a whole
    /// lease duration, because its leader may not have noticed yet.
    pub async fn lead(self, stop: CancellationToken) -> Option<Leadership> {
        let mut guard = Guard::new(&self.settings.identity, self.settings.times.duration);
        let mut lease_watch = LeaseWatch::default();
        let mut last_failure = String::new();
        let name = self.settings.name.clone();
        while !stop.is_cancelled() {
            let until = match self.campaign(&mut guard, &mut lease_watch).await {
                Ok(Campaign::Won { begun }) => {
                    let leadership = Leadership::begin(self, begun);
                    if stop.is_cancelled() {
                        if let Err(error) = leadership.step_down().await {
                            tracing::warn!(lease = %name, %error, "lease not released");
                        }
                        return None;
                    }
                    return Some(leadership);
                }
                Ok(Campaign::Wait { until }) => {
                    last_failure.clear();
                    until.min(Instant::now() + self.settings.times.retry)
                }
                Err(LeaderError::Conflict) => Instant::now() + self.settings.times.retry / 20,
                Err(error) => {
                    let failure = error.to_string();
                    if failure != last_failure {
                        tracing::warn!(lease = %name, error = %failure, "cannot campaign for the lease");
                        last_failure = failure;
                    }
                    Instant::now() + self.settings.times.retry
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = lease_watch.change(&self.calls) => {}
                () = tokio::time::sleep_until(until.into()) => {}
            }
        }
        None
    }

    fn set_standing(&self, now: Standing) {
        self.standing
            .send_if_modified(|standing| std::mem::replace(standing, now.clone()) != now);
    }

    /// Reads the lease once, and tries once to acquire it if nobody else can be leading.
    async fn campaign(&self, guard: &mut Guard, lease_watch: &mut LeaseWatch) -> Result<Campaign, LeaderError> {
        let lease = self
            .calls
            .read()
            .await
            .inspect_err(|_| self.set_standing(Standing::Unknown))?;
        lease_watch.observed(lease.as_ref());
        match guard.judge(lease.as_ref(), Instant::now()) {
            LeaseVerdict::Held { holder, until } => {
                self.set_standing(Standing::Standby { holder });
                Ok(Campaign::Wait { until })
            }
            LeaseVerdict::Own | LeaseVerdict::Free => {
                self.standing.send_if_modified(|standing| {
                    let first = *standing == Standing::Unknown;
                    if first {
                        *standing = Standing::Standby { holder: None };
                    }
                    first
                });
                let begun = Instant::now();
                self.calls.claim(lease).await?;
                Ok(Campaign::Won { begun })
            }
        }
    }
}

enum Campaign {
    /// This candidate holds the lease; the call that proved it began at `begun`.
    Won { begun: Instant },
    /// Nothing to do before `until` unless the lease changes.
    Wait { until: Instant },
}
