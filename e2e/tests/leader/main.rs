//! Leader election on a real API server: races, skewed clocks, cut connections, paused processes, emptied leases.

mod clocks;
mod cut_off;
mod pause;
mod race;
mod skew;
mod test_env;
mod witness;

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use e2e::{ControlPlane, scenario};
use futures::future::try_join_all;
use hyperlink::runtime::leader::{LeaseSettings, LeaseTimes};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use test_env::{DURATION, RENEW_DEADLINE, Standby, blank, lead, leases, make, settings};
use witness::Witness;

#[test]
fn clean_stop_hands_over_at_once() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        blank(plane, "clean-stop").await?;
        // Reading the lease every 6 s would not be fast enough.
        let slow = |identity| LeaseSettings {
            times: LeaseTimes {
                duration: Duration::from_secs(20),
                renew_deadline: Duration::from_secs(15),
                retry: Duration::from_secs(6),
            },
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
            let seconds = spec.lease_duration_seconds.map(i64::from);
            ensure!(seconds == Some(DURATION.as_secs().try_into()?), "{name}: {spec:?}");
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
        let still_leads = tokio::time::timeout(2 * DURATION, leadership.lost()).await.is_err();
        ensure!(still_leads && gate.open(), "the leader keeps the lease");
        fresh.yields_to("leader").await?;
        standby.yields_to("leader").await?;
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
