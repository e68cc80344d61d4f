//! Leader election on a real API server: races, skewed clocks, cut connections, paused processes, emptied leases.

mod pipe;
mod skew;
mod witness;

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail, ensure};
use e2e::process::{Process, Program};
use e2e::run_dir::RunDir;
use e2e::{ControlPlane, eventually, scenario};
use futures::future::{join_all, try_join_all};
use futures::{FutureExt, StreamExt};
use hyperlink::azure::ports::Gate as _;
use hyperlink::leader::{Elector, Gate, GateShut, Leadership, LeaseSettings, Standing, gated_client};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube_leader_election::{LeaseLock, LeaseLockParams, LeaseLockResult};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use pipe::Pipe;
use skew::SkewedClock;
use witness::Witness;

const DURATION: Duration = Duration::from_secs(3);
const RENEW_DEADLINE: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(500);
/// For what should take no time on a machine that has other things to do too.
const SOON: Duration = Duration::from_secs(10);

fn settings(lease: &str, identity: &str) -> LeaseSettings {
    LeaseSettings {
        duration: DURATION,
        renew_deadline: RENEW_DEADLINE,
        retry: RETRY,
        ..LeaseSettings::new(lease, "default", identity.to_owned())
    }
}

fn leases(plane: &ControlPlane) -> Result<Api<Lease>> {
    Ok(Api::default_namespaced(plane.client()?))
}

async fn make(plane: &ControlPlane, name: &str, spec: Value) -> Result<()> {
    let lease = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec}))?;
    leases(plane)?.create(&PostParams::default(), &lease).await?;
    Ok(())
}

/// A lease that nobody has used: the first candidate takes it at once.
async fn blank(plane: &ControlPlane, name: &str) -> Result<()> {
    make(plane, name, json!({})).await
}

/// A lease whose holder is gone for years, by any clock.
fn expired() -> Value {
    json!({"holderIdentity": "gone", "leaseDurationSeconds": 1, "leaseTransitions": 3,
        "acquireTime": "2020-01-01T00:00:00.000000Z", "renewTime": "2020-01-01T00:00:00.000000Z"})
}

async fn lead(config: kube::Config, settings: LeaseSettings) -> Result<(Leadership, Gate)> {
    let elector = Elector::new(config, settings)?;
    let gate = elector.gate();
    ensure!(!gate.open(), "the gate is shut before leading");
    let leading = tokio::time::timeout(SOON, elector.lead(CancellationToken::new())).await;
    Ok((leading.context("takes the lease")?.context("not stopped")?, gate))
}

/// A candidate that campaigns in the background until it leads or is dropped.
struct Standby {
    gate: Gate,
    standing: watch::Receiver<Standing>,
    campaign: tokio::task::JoinHandle<Option<Leadership>>,
    _stop: DropGuard,
}

impl Standby {
    fn start(config: kube::Config, settings: LeaseSettings) -> Result<Self> {
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
    async fn yields_to(&mut self, holder: &str) -> Result<()> {
        let yields = Standing::Standby {
            holder: Some(holder.to_owned()),
        };
        if let Ok(seen) = tokio::time::timeout(SOON, self.standing.wait_for(|standing| *standing == yields)).await {
            seen?;
            return Ok(());
        }
        bail!("it does not see {holder} lead but is {:?}", *self.standing.borrow())
    }

    async fn leads(self) -> Result<(Leadership, Gate)> {
        let leadership = tokio::time::timeout(SOON, self.campaign)
            .await
            .context("takes over")??;
        Ok((leadership.context("not stopped")?, self.gate))
    }
}

#[test]
fn candidates_that_race_for_expired_leases_yield_one_leader_each() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        for batch in 0..8 {
            let names: Vec<_> = (0..25).map(|n| format!("race-{batch}-{n}")).collect();
            try_join_all(names.iter().map(|name| make(plane, name, expired()))).await?;
            try_join_all(names.iter().map(|name| race(plane, name))).await?;
        }
        Ok(())
    });
}

/// Three candidates for one lease, until all agree who leads.
async fn race(plane: &ControlPlane, name: &str) -> Result<()> {
    let stop = CancellationToken::new();
    let _at_the_end = stop.clone().drop_guard();
    let mut candidates = Vec::new();
    for n in 0..3 {
        let identity = format!("candidate-{n}");
        // The long default times: nobody fails to renew only because so many run here at once.
        let elector = Elector::new(
            plane.admin().config(),
            LeaseSettings::new(name, "default", identity.clone()),
        )?;
        let (gate, standing) = (elector.gate(), elector.standing());
        candidates.push((identity, gate, standing, tokio::spawn(elector.lead(stop.clone()))));
    }
    let settled = candidates.iter_mut().map(|(identity, _, standing, _)| async {
        let done = |standing: &Standing| match standing {
            Standing::Leading => true,
            Standing::Standby { holder } => holder.as_ref().is_some_and(|holder| holder != "gone"),
            _ => false,
        };
        let standing = tokio::time::timeout(3 * SOON, standing.wait_for(done)).await??.clone();
        anyhow::Ok((identity.clone(), standing))
    });
    let settled = try_join_all(settled)
        .await
        .with_context(|| format!("{name} does not settle"))?;
    let leaders: Vec<_> = settled
        .iter()
        .filter(|(_, standing)| *standing == Standing::Leading)
        .collect();
    let [(winner, _)] = leaders[..] else {
        bail!("{name} has {} leaders: {settled:?}", leaders.len())
    };
    for (identity, gate, ..) in &candidates {
        ensure!(
            gate.open() == (identity == winner),
            "{name}: the gate of {identity}, {winner} leads"
        );
    }
    let holder = leases(plane)?
        .get(name)
        .await?
        .spec
        .and_then(|spec| spec.holder_identity);
    ensure!(
        holder.as_ref() == Some(winner),
        "{name}: {holder:?} holds, {winner} leads"
    );
    Ok(())
}

#[test]
fn the_same_race_has_two_leaders_without_the_guard() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        let client = plane.client()?;
        let mut doubles = 0;
        for n in 0..200 {
            let name = format!("bare-race-{n}");
            make(plane, &name, expired()).await?;
            let locks: Vec<_> = (0..3)
                .map(|c| bare(client.clone(), &name, &format!("candidate-{c}")))
                .collect();
            let results = join_all(locks.iter().map(LeaseLock::try_acquire_or_renew)).await;
            let acquired = results
                .iter()
                .filter(|result| matches!(result, Ok(LeaseLockResult::Acquired(_))))
                .count();
            doubles += usize::from(acquired > 1);
        }
        ensure!(
            doubles > 0,
            "the race is no race: a client without the guard survives it too"
        );
        Ok(())
    });
}

/// The election crate by itself.
fn bare(client: kube::Client, name: &str, identity: &str) -> LeaseLock {
    let params = LeaseLockParams {
        lease_name: name.to_owned(),
        holder_id: identity.to_owned(),
        lease_ttl: Duration::from_secs(15),
    };
    LeaseLock::new(client, "default", params)
}

/// Seconds that the clock of the leader, and that of the standby, run ahead.
const SKEWS: [(i64, i64); 4] = [(20, 0), (-20, 0), (0, 20), (0, -20)];

#[test]
fn candidate_with_a_skewed_clock_robs_nobody_and_is_not_robbed() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        try_join_all(SKEWS.map(|(leader, standby)| skewed(plane, leader, standby))).await?;
        Ok(())
    });
}

async fn skewed(plane: &ControlPlane, leader_ahead: i64, standby_ahead: i64) -> Result<()> {
    let name = format!("skew-{leader_ahead}-{standby_ahead}").replace("--", "-minus");
    blank(plane, &name).await?;
    let leader_clock = SkewedClock::start(plane.client()?, leader_ahead).await?;
    let standby_clock = SkewedClock::start(plane.client()?, standby_ahead).await?;
    let (mut leadership, gate) = lead(leader_clock.config(), settings(&name, "leader")).await?;
    let mut standby = Standby::start(standby_clock.config(), settings(&name, "standby"))?;
    let witness = Witness::of(vec![gate.clone(), standby.gate.clone()]);
    standby.yields_to("leader").await?;

    let undisturbed = tokio::time::timeout(2 * DURATION, leadership.lost()).await.is_err();
    ensure!(undisturbed && gate.open(), "{name}: the leader was robbed");
    standby.yields_to("leader").await?;

    // The leader dies without releasing.
    drop(leadership);
    let died = Instant::now();
    let (_leadership, _) = standby.leads().await.with_context(|| name.clone())?;
    ensure!(
        died.elapsed() > DURATION - RETRY - RETRY,
        "{name}: taken over too early"
    );
    witness.verdict()
}

#[test]
fn the_same_skew_robs_the_leader_without_the_guard() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        for (name, leader_ahead, standby_ahead) in [("bare-slow-leader", -20, 0), ("bare-fast-standby", 0, 20)] {
            let leader_clock = SkewedClock::start(plane.client()?, leader_ahead).await?;
            let standby_clock = SkewedClock::start(plane.client()?, standby_ahead).await?;
            let leader = bare(kube::Client::try_from(leader_clock.config())?, name, "leader");
            let standby = bare(kube::Client::try_from(standby_clock.config())?, name, "standby");
            ensure!(matches!(
                leader.try_acquire_or_renew().await?,
                LeaseLockResult::Acquired(_)
            ));
            let robbed = matches!(standby.try_acquire_or_renew().await?, LeaseLockResult::Acquired(_));
            ensure!(
                robbed,
                "the skew is no skew: a client without the guard is not misled by it"
            );
        }
        Ok(())
    });
}

#[test]
fn leader_cut_off_from_the_api_server_stops_writing_before_the_standby_begins() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        let name = "cut-off";
        blank(plane, name).await?;
        let pipe = Pipe::to(&plane.admin().config()).await?;
        let (mut leadership, gate) = lead(pipe.through(plane.admin().config())?, settings(name, "leader")).await?;
        let mut standby = Standby::start(plane.admin().config(), settings(name, "standby"))?;
        standby.yields_to("leader").await?;
        let witness = Witness::of(vec![gate.clone(), standby.gate.clone()]);
        let journal = journal(plane, name).await?;
        // Only the lease's connection is cut: what stops the writes is the gate.
        let old = write_while_allowed(plane, name, "leader", gate.clone());
        let new = write_while_allowed(plane, name, "standby", standby.gate.clone());

        pipe.cut();
        let cut = Instant::now();
        tokio::time::timeout(SOON, leadership.lost()).await.context("loses")?;
        ensure!(
            !gate.open() && gate.deadline().is_none(),
            "the gate is shut when the loss is told"
        );
        ensure!(
            cut.elapsed() < RENEW_DEADLINE + RETRY,
            "lost {:?} after the cut",
            cut.elapsed()
        );
        let (leadership, _) = standby.leads().await?;

        let refusal = tokio::time::timeout(SOON, old).await.context("stops writing")??;
        ensure!(refusal.is::<GateShut>(), "stopped by {refusal}");
        eventually("the standby writes", SOON, || async { said(&journal, "standby") }).await?;
        drop(leadership);
        tokio::time::timeout(SOON, new).await.context("stops writing")??;
        let writers = journal.borrow().clone();
        ensure!(
            writers.first().is_some_and(|writer| writer == "leader"),
            "the leader has written"
        );
        let handover = writers
            .iter()
            .position(|writer| writer == "standby")
            .context("the standby has written")?;
        ensure!(
            writers[handover..].iter().all(|writer| writer == "standby"),
            "the old leader wrote after the new one"
        );
        witness.verdict()
    });
}

fn said(journal: &watch::Receiver<Vec<String>>, writer: &str) -> Result<()> {
    ensure!(
        journal.borrow().iter().any(|said| said == writer),
        "{writer} has not written"
    );
    Ok(())
}

/// Writes an object again and again, once the gate is open and until it refuses; returns the refusal.
fn write_while_allowed(
    plane: &ControlPlane,
    name: &str,
    writer: &'static str,
    gate: Gate,
) -> tokio::task::JoinHandle<Box<dyn std::error::Error + Send + Sync>> {
    let (config, name) = (plane.admin().config(), name.to_owned());
    tokio::spawn(async move {
        let client = match gated_client(config, std::sync::Arc::new(gate.clone())) {
            Ok(client) => client,
            Err(error) => return error.into(),
        };
        let objects: Api<ConfigMap> = Api::default_namespaced(client);
        while !gate.open() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for n in 0_u64.. {
            let body = json!({"data": {"writer": writer, "n": n.to_string()}});
            match objects.patch(&name, &PatchParams::default(), &Patch::Merge(body)).await {
                Ok(_) => {}
                Err(kube::Error::Service(refusal)) => return refusal,
                Err(error) => return error.into(),
            }
        }
        unreachable!("the loop has no end")
    })
}

/// Makes an object and keeps the list of who wrote it, in order.
async fn journal(plane: &ControlPlane, name: &str) -> Result<watch::Receiver<Vec<String>>> {
    let objects: Api<ConfigMap> = Api::default_namespaced(plane.client()?);
    let empty = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    let version = objects
        .create(&PostParams::default(), &empty)
        .await?
        .metadata
        .resource_version;
    let only = WatchParams::default().fields(&format!("metadata.name={name}"));
    let events = objects.watch(&only, &version.context("a version")?).await?;
    let (sender, receiver) = watch::channel(Vec::new());
    tokio::spawn(events.for_each(move |event| {
        if let Ok(WatchEvent::Modified(ConfigMap { data: Some(data), .. })) = event {
            sender.send_modify(|writers| writers.extend(data.get("writer").cloned()));
        }
        std::future::ready(())
    }));
    Ok(receiver)
}

#[test]
fn paused_process_is_let_through_no_more() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        let dir = RunDir::new("paused")?;
        try_join_all((0..3).map(|n| paused(plane, dir.path(), format!("paused-{n}")))).await?;
        Ok(())
    });
}

async fn paused(plane: &ControlPlane, dir: &Path, name: String) -> Result<()> {
    blank(plane, &name).await?;
    let candidate = candidate(plane, &name).spawn(&name, dir)?;
    eventually("it is let through", SOON, || async {
        candidate.check()?;
        ensure!(!let_through(&candidate)?.is_empty(), "not yet");
        Ok(())
    })
    .await?;
    let mut standby = Standby::start(plane.admin().config(), settings(&name, "standby"))?;
    standby.yields_to("child").await?;

    candidate.signal("STOP")?;
    let stopped = now();
    let (_leadership, gate) = standby.leads().await?;
    let continued = now();
    candidate.signal("CONT")?;

    let status = candidate.wait(SOON).await?;
    ensure!(status.code() == Some(1), "ends as one that has lost: {status}");
    ensure!(gate.open(), "the new leader is not disturbed");
    let asked = let_through(&candidate)?;
    ensure!(asked.iter().any(|&at| at < stopped), "it was let through before");
    let late = asked.iter().filter(|&&at| at >= continued).count();
    ensure!(late == 0, "{name}: let through {late} times after the pause");
    Ok(())
}

fn candidate(plane: &ControlPlane, name: &str) -> Program {
    [DURATION, RENEW_DEADLINE, RETRY].iter().fold(
        Program::new(env!("CARGO_BIN_EXE_lease-candidate"))
            .arg(plane.kubeconfig_path())
            .arg("default")
            .arg(name)
            .arg("child"),
        |program, time| program.arg(time.as_millis().to_string()),
    )
}

/// When the child put the questions that the gate has answered with yes: microseconds of the wall clock.
fn let_through(candidate: &Process) -> Result<Vec<u128>> {
    let lines = std::fs::read_to_string(candidate.out())?;
    // The last line may be half written.
    let whole = lines.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .map(|line| Ok(line.strip_prefix("open ").context("a line of its own form")?.parse()?))
        .collect()
}

fn now() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_micros()
}

#[test]
fn clean_stop_hands_over_at_once() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        blank(plane, "clean-stop").await?;
        // Looking every 6 s alone could not do it.
        let slow = |identity| LeaseSettings {
            duration: Duration::from_secs(20),
            renew_deadline: Duration::from_secs(15),
            retry: Duration::from_secs(6),
            ..settings("clean-stop", identity)
        };
        let (leadership, gate) = lead(plane.admin().config(), slow("leader")).await?;
        let mut standby = Standby::start(plane.admin().config(), slow("standby"))?;
        let witness = Witness::of(vec![gate, standby.gate.clone()]);
        standby.yields_to("leader").await?;
        let begun = Instant::now();
        leadership.step_down().await?;
        let (_leadership, _) = standby.leads().await?;
        let took = begun.elapsed();
        ensure!(took < Duration::from_secs(2), "took {took:?}");
        witness.verdict()
    });
}

#[test]
fn lease_with_null_fields_is_taken() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        let old = "2020-01-01T00:00:00.000000Z";
        let cases = [
            ("no-spec", Value::Null),
            ("empty-spec", json!({})),
            (
                "empty-holder",
                json!({"holderIdentity": "", "leaseDurationSeconds": 15}),
            ),
            (
                "released-by-client-go",
                json!({"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": old, "renewTime": old}),
            ),
            ("held-without-times", json!({"holderIdentity": "gone"})),
            (
                "cleared-by-hand",
                json!({"leaseDurationSeconds": 15, "acquireTime": old, "renewTime": old, "leaseTransitions": 2}),
            ),
            (
                "transitions-at-their-maximum",
                json!({"holderIdentity": "", "leaseTransitions": i32::MAX}),
            ),
        ];
        try_join_all(cases.map(|(name, spec)| async move {
            make(plane, name, spec).await?;
            let (_leadership, gate) = lead(plane.admin().config(), settings(name, "me")).await.context(name)?;
            let spec = leases(plane)?.get(name).await?.spec.context("a spec")?;
            let whole = spec.acquire_time.is_some() && spec.renew_time.is_some() && spec.lease_transitions.is_some();
            ensure!(
                gate.open() && whole && spec.holder_identity.as_deref() == Some("me"),
                "{name}: {spec:?}"
            );
            ensure!(spec.lease_duration_seconds == Some(3), "{name}: {spec:?}");
            Ok(())
        }))
        .await?;
        Ok(())
    });
}

#[test]
fn lease_deleted_under_the_leader_makes_no_second_one() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        blank(plane, "deleted").await?;
        let (mut leadership, gate) = lead(plane.admin().config(), settings("deleted", "leader")).await?;
        let mut standby = Standby::start(plane.admin().config(), settings("deleted", "standby"))?;
        standby.yields_to("leader").await?;
        leases(plane)?.delete("deleted", &DeleteParams::default()).await?;
        let mut fresh = Standby::start(plane.admin().config(), settings("deleted", "fresh"))?;
        let witness = Witness::of(vec![gate.clone(), standby.gate.clone(), fresh.gate.clone()]);
        let kept = tokio::time::timeout(2 * DURATION, leadership.lost()).await.is_err();
        ensure!(kept && gate.open(), "the leader keeps the lease");
        fresh.yields_to("leader").await?;
        standby.yields_to("leader").await?;
        witness.verdict()
    });
}

#[test]
fn lease_deleted_while_its_leader_is_cut_off_makes_no_second_one() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        blank(plane, "deleted-cut-off").await?;
        let pipe = Pipe::to(&plane.admin().config()).await?;
        let through = pipe.through(plane.admin().config())?;
        let (mut leadership, gate) = lead(through, settings("deleted-cut-off", "leader")).await?;
        pipe.cut();
        leases(plane)?
            .delete("deleted-cut-off", &DeleteParams::default())
            .await?;
        let fresh = Standby::start(plane.admin().config(), settings("deleted-cut-off", "fresh"))?;
        let witness = Witness::of(vec![gate, fresh.gate.clone()]);
        let (_leadership, _) = fresh.leads().await?;
        leadership
            .lost()
            .now_or_never()
            .ok_or_else(|| anyhow!("the old leader knows by then"))?;
        witness.verdict()
    });
}

#[test]
fn lease_that_names_somebody_else_ends_leadership() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        blank(plane, "forced").await?;
        let (mut leadership, gate) = lead(plane.admin().config(), settings("forced", "leader")).await?;
        let force = json!({"spec": {"holderIdentity": "forced"}});
        leases(plane)?
            .patch("forced", &PatchParams::default(), &Patch::Merge(force))
            .await?;
        tokio::time::timeout(RENEW_DEADLINE, leadership.lost())
            .await
            .context("notices before its deadline")?;
        ensure!(!gate.open());
        let holder = leases(plane)?
            .get("forced")
            .await?
            .spec
            .and_then(|spec| spec.holder_identity);
        ensure!(holder.as_deref() == Some("forced"), "it does not take the lease back");
        Ok(())
    });
}
