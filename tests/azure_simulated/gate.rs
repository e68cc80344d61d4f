//! The gate: shut, it holds writes and nothing else.

use hyperlink::azure::execute::run;
use hyperlink::azure::plan::{Done, toward};
use hyperlink::azure::resource::Seen;

use crate::sim::{Sim, away};
use crate::wanted::{link_service, record, subnet, zone};

#[tokio::test(start_paused = true)]
async fn shut_gate_holds_writes_and_lets_reads_pass() {
    let mut sim = Sim::new();
    sim.valve.set(0);
    let (_, done) = sim.pass(toward, &subnet()).await;
    assert_eq!((done, sim.calls()), (Done::GateShut, "GET".to_owned()));
    assert_eq!(sim.shown(&subnet().id), None);
    assert!(
        !matches!(sim.look(&subnet()).await, Seen::WriteFailed(_)),
        "nothing was refused"
    );
    sim.valve.set(1);
    sim.bring(&subnet()).await;
    sim.forget_calls();
    sim.restart();
    let (_, done) = sim.pass(away, &subnet()).await;
    assert_eq!((done, sim.calls()), (Done::GateShut, "GET".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn gate_that_shuts_between_two_steps_holds_the_second() {
    let sim = Sim::new();
    sim.valve.set(1);
    let looker = sim.looker();
    let steps = [
        toward(&subnet(), &Seen::Absent),
        toward(&link_service(), &Seen::Absent),
        toward(&zone(), &Seen::Absent),
        away(&record("api"), &Seen::Found(serde_json::json!({}))),
    ];
    let done = run(&steps, &sim.client, &sim.memory, looker.pass).await;
    assert_eq!(done, [Done::Accepted, Done::GateShut, Done::GateShut, Done::GateShut]);
    assert_eq!(sim.calls(), "PUT");
    assert_eq!(sim.azure.world().journal(0).len(), 1);
}
