//! A process that serves a part of all objects leads under two leases: that of all shards together, which each process
//! of the same number of shards holds under one name, and its own.
//!
//! So a process that splits the objects otherwise, or serves all of them, waits until the last one of the others has
//! ended: no object has two writers while the number of shards changes. A process holds the common lease before it
//! campaigns for its own, and no longer than it renews it itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Elector, LeaderError, LeaderGate, LeaseSettings, Standing, Worked};

/// The candidates of one process for its leases.
pub struct Electors {
    /// For the lease that all shards hold together; none if there is one shard.
    common: Option<Elector>,
    own: Elector,
}

/// Whether this process leads under each of its leases. Cloning gives another handle.
#[derive(Clone)]
pub struct LeaderGates(Arc<[LeaderGate]>);

impl LeaderGates {
    /// Whether writes may go out.
    #[must_use]
    pub fn open(&self) -> bool {
        // One that is shut for good is the least. The clock is read last, once for all: a pause between two readings
        // would count for one gate only.
        let first = self.0.iter().map(LeaderGate::until).min().flatten();
        first.is_some_and(|until| Instant::now() < until)
    }
}

/// The standing of this process in its elections, now and later.
pub struct Standings {
    common: Option<watch::Receiver<Standing>>,
    own: watch::Receiver<Standing>,
}

impl Standings {
    /// The standing: that for the common lease as long as this process does not hold it.
    pub fn now(&mut self) -> Standing {
        let common = self.common.as_mut().map(|common| common.borrow_and_update().clone());
        let own = self.own.borrow_and_update().clone();
        common.filter(|common| *common != Standing::Leading).unwrap_or(own)
    }

    /// Waits for a change.
    ///
    /// # Errors
    /// The elections are over.
    pub async fn changed(&mut self) -> Result<(), watch::error::RecvError> {
        match &mut self.common {
            None => self.own.changed().await,
            Some(common) => tokio::select! {
                changed = common.changed() => changed,
                changed = self.own.changed() => changed,
            },
        }
    }
}

impl Electors {
    /// Candidates with clients of their own. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If the client's configuration is unusable.
    pub fn new(config: &kube::Config, common: Option<LeaseSettings>, own: LeaseSettings) -> Result<Self, LeaderError> {
        let elector = |settings| Elector::new(config.clone(), settings);
        Ok(Self {
            common: common.map(elector).transpose()?,
            own: elector(own)?,
        })
    }

    /// The gates that are open only while this process leads.
    #[must_use]
    pub fn gates(&self) -> LeaderGates {
        let common = self.common.iter().map(Elector::gate);
        LeaderGates(common.chain([self.own.gate()]).collect())
    }

    /// The standing of this process.
    #[must_use]
    pub fn standings(&self) -> Standings {
        Standings {
            common: self.common.as_ref().map(Elector::standing),
            own: self.own.standing(),
        }
    }

    /// Waits until this process leads and then does the work, as [`super::Leadership::work`]; `None` if `stop` came
    /// before it led.
    ///
    /// # Errors
    /// [`LeaderError::Lost`] if a lease is lost before the work has ended.
    pub async fn work<F: Future>(
        self,
        stop: &CancellationToken,
        grace: Duration,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> Result<Option<Worked<F::Output>>, LeaderError> {
        let Self { common, own } = self;
        let Some(common) = common else {
            return work_under(own, stop, grace, work).await;
        };
        let Some(common) = common.lead(stop.clone()).await else {
            return Ok(None);
        };
        let release = own.settings.times.renew_deadline;
        let both = |finish: CancellationToken| async move { work_under(own, &finish, grace, work).await };
        let worked = common.work(stop, grace + release, both).await?;
        worked.outcome.unwrap_or(Err(LeaderError::TimedOut))
    }
}

async fn work_under<F: Future>(
    own: Elector,
    stop: &CancellationToken,
    grace: Duration,
    work: impl FnOnce(CancellationToken) -> F,
) -> Result<Option<Worked<F::Output>>, LeaderError> {
    let Some(leadership) = own.lead(stop.clone()).await else {
        return Ok(None);
    };
    leadership.work(stop, grace, work).await.map(Some)
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinHandle;

    use super::super::LeaseTimes;
    use super::super::model::Model;
    use super::super::tests::{LEASE, TIMES, released, settings, within};
    use super::*;

    /// A process for one shard, or without a number for all objects.
    struct Process {
        gates: LeaderGates,
        standings: Standings,
        stop: CancellationToken,
        ended: JoinHandle<bool>,
    }

    fn process(model: &Model, identity: &str, shard: Option<(u16, u16)>) -> Process {
        process_with(model, identity, shard, TIMES)
    }

    fn process_with(model: &Model, identity: &str, shard: Option<(u16, u16)>, times: LeaseTimes) -> Process {
        let elector = |settings| Elector::over(model.client(), LeaseSettings { times, ..settings });
        let electors = match shard {
            None => Electors {
                common: None,
                own: elector(settings(identity)),
            },
            Some((number, of)) => Electors {
                common: Some(elector(LeaseSettings {
                    shared: true,
                    ..settings(&format!("{of} shards"))
                })),
                own: elector(LeaseSettings {
                    name: format!("{LEASE}.shard-{number}"),
                    ..settings(identity)
                }),
            },
        };
        let (gates, standings) = (electors.gates(), electors.standings());
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let ended = tokio::spawn(async move {
            let work = |finish: CancellationToken| async move { finish.cancelled().await };
            let worked = electors.work(&stopped, TIMES.duration, work).await;
            worked.is_ok()
        });
        Process {
            gates,
            standings,
            stop,
            ended,
        }
    }

    async fn leads(process: &mut Process) {
        within(5, async {
            while process.standings.now() != Standing::Leading {
                process.standings.changed().await.unwrap();
            }
        })
        .await;
    }

    async fn holds(duration: Duration, what: impl Fn() -> bool) {
        let until = Instant::now() + duration;
        while Instant::now() < until {
            assert!(what());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn stopped(process: Process) {
        process.stop.cancel();
        assert!(within(5, process.ended).await.unwrap());
    }

    #[tokio::test]
    async fn shards_of_one_number_lead_together() {
        let model = Model::default();
        model.put(LEASE, released());
        // They write at the same times, and nobody is late even on a busy machine.
        let times = LeaseTimes {
            duration: Duration::from_secs(30),
            renew_deadline: Duration::from_secs(20),
            retry: Duration::from_millis(20),
        };
        for number in 1..=3 {
            model.put(&format!("{LEASE}.shard-{number}"), released());
        }
        let mut shards =
            [1, 2, 3].map(|number| process_with(&model, &format!("pod-{number}"), Some((number, 3)), times));
        for shard in &mut shards {
            leads(shard).await;
        }
        // A peer's renewal between a read and a write shuts no gate.
        holds(TIMES.duration, || shards.iter().all(|shard| shard.gates.open())).await;
        for shard in shards {
            stopped(shard).await;
        }
    }

    #[tokio::test]
    async fn other_number_of_shards_waits_until_the_last_one_has_ended() {
        let model = Model::default();
        model.put(LEASE, released());
        let [mut one, mut two] = [1, 2].map(|number| process(&model, &format!("pod-{number}"), Some((number, 2))));
        leads(&mut one).await;
        leads(&mut two).await;
        let mut others = [
            process(&model, "whole", None),
            process(&model, "of-three", Some((2, 3))),
        ];
        stopped(one).await;
        let leads_alone = || two.gates.open() && !others.iter().any(|other| other.gates.open());
        holds(2 * TIMES.duration, leads_alone).await;
        let holder = Some("2 shards".to_owned());
        assert_eq!(others[0].standings.now(), Standing::Standby { holder });
        stopped(two).await;
        within(5, async {
            while !others.iter().any(|other| other.gates.open()) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
        assert_eq!(others.iter().filter(|other| other.gates.open()).count(), 1);
        for other in others {
            stopped(other).await;
        }
    }

    #[tokio::test]
    async fn shard_that_loses_the_common_lease_ends() {
        let model = Model::default();
        model.put(LEASE, released());
        let mut shard = process(&model, "pod", Some((1, 2)));
        leads(&mut shard).await;
        model.put(
            LEASE,
            serde_json::json!({"holderIdentity": "whole", "leaseDurationSeconds": 15}),
        );
        assert!(!within(5, shard.ended).await.unwrap(), "it is lost");
        assert!(!shard.gates.open());
    }
}
