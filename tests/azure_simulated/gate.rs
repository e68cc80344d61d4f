//! The gate: a shut one holds back writes and nothing else.

use hyperlink::azure::cloud::Observed;
use hyperlink::azure::plan::Outcome;
use hyperlink::engine::execute::run;
use hyperlink::engine::plan::ensure_present;

use crate::desired::{link_service, record, subnet, zone};
use crate::sim::{Sim, ensure_absent};

#[tokio::test(start_paused = true)]
async fn shut_gate_holds_writes_and_admits_reads() {
    let mut sim = Sim::new();
    sim.valve.set(0);
    let (_, outcome) = sim.reconcile(ensure_present, &subnet()).await;
    assert_eq!((outcome, sim.calls()), (Outcome::GateShut, "GET".to_owned()));
    assert_eq!(sim.shown(&subnet().id), None);
    assert!(
        !matches!(sim.read(&subnet()).await, Observed::WriteFailed(_)),
        "nothing was refused"
    );
    sim.valve.set(1);
    sim.until_present(&subnet()).await;
    sim.forget_calls();
    sim.restart();
    let (_, outcome) = sim.reconcile(ensure_absent, &subnet()).await;
    assert_eq!((outcome, sim.calls()), (Outcome::GateShut, "GET".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn gate_that_shuts_between_two_steps_holds_the_second() {
    let sim = Sim::new();
    sim.valve.set(1);
    let reader = sim.reader();
    let steps = [
        ensure_present(&subnet(), &Observed::Absent),
        ensure_present(&link_service(), &Observed::Absent),
        ensure_present(&zone(), &Observed::Absent),
        ensure_absent(&record("api"), &Observed::Found(serde_json::json!({}))),
    ];
    let outcomes = run(&steps, &sim.client, &sim.observations, reader.reconcile).await;
    assert_eq!(
        outcomes,
        [
            Outcome::Accepted,
            Outcome::GateShut,
            Outcome::GateShut,
            Outcome::GateShut
        ]
    );
    assert_eq!(sim.calls(), "PUT");
    assert_eq!(sim.azure.world().journal(0).len(), 1);
}
