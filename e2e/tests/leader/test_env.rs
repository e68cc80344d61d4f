//! What the situations have in common: leases, leaders, standbys.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use e2e::{ControlPlane, patient};
use hyperlink::runtime::leader::{Elector, LeaderGate, Leadership, LeaseSettings, LeaseTimes, Standing};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, PostParams};
use kube_leader_election::{LeaseLock, LeaseLockParams};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Long enough that a leader keeps its lease while other tests take the machine for some seconds.
pub(crate) const DURATION: Duration = Duration::from_secs(9);
pub(crate) const RENEW_DEADLINE: Duration = Duration::from_secs(7);
pub(crate) const RETRY: Duration = Duration::from_millis(500);
/// Timeout for what takes at most as long as a lease lasts.
pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) fn settings(lease: &str, identity: &str) -> LeaseSettings {
    LeaseSettings {
        name: lease.to_owned(),
        namespace: "default".to_owned(),
        identity: identity.to_owned(),
        shared: false,
        times: LeaseTimes {
            duration: DURATION,
            renew_deadline: RENEW_DEADLINE,
            retry: RETRY,
        },
    }
}

pub(crate) fn leases(plane: &ControlPlane) -> Result<Api<Lease>> {
    Ok(Api::default_namespaced(plane.client()?))
}

pub(crate) async fn make(plane: &ControlPlane, name: &str, spec: Value) -> Result<()> {
    let lease = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec}))?;
    leases(plane)?.create(&PostParams::default(), &lease).await?;
    Ok(())
}

/// A lease that nobody has used: the first candidate takes it at once.
pub(crate) async fn blank(plane: &ControlPlane, name: &str) -> Result<()> {
    make(plane, name, json!({})).await
}

/// A lease whose holder is gone for years, by any clock.
pub(crate) fn expired() -> Value {
    json!({"holderIdentity": "gone", "leaseDurationSeconds": 1, "leaseTransitions": 3,
        "acquireTime": "2020-01-01T00:00:00.000000Z", "renewTime": "2020-01-01T00:00:00.000000Z"})
}

pub(crate) async fn lead(config: kube::Config, settings: LeaseSettings) -> Result<(Leadership, LeaderGate)> {
    let elector = Elector::new(config, settings)?;
    let gate = elector.gate();
    ensure!(!gate.open(), "the gate is shut before leading");
    let leading = tokio::time::timeout(patient(SOON), elector.lead(CancellationToken::new())).await;
    Ok((leading.context("takes the lease")?.context("not stopped")?, gate))
}

/// A candidate that campaigns in the background until it leads or is dropped.
pub(crate) struct Standby {
    pub(crate) gate: LeaderGate,
    standing: watch::Receiver<Standing>,
    campaign: tokio::task::JoinHandle<Option<Leadership>>,
    _stop: DropGuard,
}

impl Standby {
    pub(crate) fn start(config: kube::Config, settings: LeaseSettings) -> Result<Self> {
        let elector = Elector::new(config, settings)?;
        let (gate, standing, stop) = (elector.gate(), elector.standing(), CancellationToken::new());
        let campaign = tokio::spawn(elector.lead(stop.clone()));
        Ok(Self {
            gate,
            standing,
            campaign,
            _stop: stop.drop_guard(),
        })
    }

    /// Waits until it knows that `holder` leads.
    pub(crate) async fn yields_to(&mut self, holder: &str) -> Result<()> {
        let yields = Standing::Standby {
            holder: Some(holder.to_owned()),
        };
        if let Ok(observed) =
            tokio::time::timeout(patient(SOON), self.standing.wait_for(|standing| *standing == yields)).await
        {
            observed?;
            return Ok(());
        }
        bail!("it does not see {holder} lead but is {:?}", *self.standing.borrow())
    }

    pub(crate) async fn leads(self) -> Result<(Leadership, LeaderGate)> {
        let leadership = tokio::time::timeout(patient(SOON), self.campaign)
            .await
            .context("takes over")??;
        Ok((leadership.context("not stopped")?, self.gate))
    }
}

/// A lease of the election crate, without Hyperlink's guard.
pub(crate) fn bare(client: kube::Client, name: &str, identity: &str) -> LeaseLock {
    let params = LeaseLockParams {
        lease_name: name.to_owned(),
        holder_id: identity.to_owned(),
        lease_ttl: Duration::from_secs(15),
    };
    LeaseLock::new(client, "default", params)
}
