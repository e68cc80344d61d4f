//! Candidates that see the same expired lease at once.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use e2e::{ControlPlane, patient, scenario};
use futures::future::{join_all, try_join_all};
use hyperlink::runtime::leader::{Elector, LeaseSettings, LeaseTimes, Standing};
use kube_leader_election::{LeaseLock, LeaseLockResult};
use tokio_util::sync::CancellationToken;

use crate::test_env::{SOON, bare, expired, leases, make, settings};

#[test]
fn candidates_racing_for_an_expired_lease_yield_one_leader() {
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
        // Long times: nobody fails to renew only because so many run here at once.
        let settings = LeaseSettings {
            times: LeaseTimes {
                duration: Duration::from_secs(15),
                renew_deadline: Duration::from_secs(10),
                retry: Duration::from_secs(2),
            },
            ..settings(name, &identity)
        };
        let elector = Elector::new(plane.admin().config(), settings)?;
        let (gate, standing) = (elector.gate(), elector.standing());
        candidates.push((identity, gate, standing, tokio::spawn(elector.lead(stop.clone()))));
    }
    let standings = candidates.iter_mut().map(|(identity, _, standing, _)| async {
        let is_decided = |standing: &Standing| match standing {
            Standing::Leading => true,
            Standing::Standby { holder } => holder.as_ref().is_some_and(|holder| holder != "gone"),
            _ => false,
        };
        let standing = tokio::time::timeout(patient(SOON), standing.wait_for(is_decided))
            .await??
            .clone();
        anyhow::Ok((identity.clone(), standing))
    });
    let standings = try_join_all(standings)
        .await
        .with_context(|| format!("{name} does not settle"))?;
    let leaders: Vec<_> = standings
        .iter()
        .filter(|(_, standing)| *standing == Standing::Leading)
        .collect();
    let [(winner, _)] = leaders[..] else {
        bail!("{name} has {} leaders: {standings:?}", leaders.len())
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
