//! The life of a resource in a cloud that names it itself.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::Reconcile;
use super::execute;
use super::inventory::Inventory;
use super::plan::{Change, Outcome, Verb, ensure_absent, ensure_present};
use super::read::Reader;
use super::resource::{Difference, Owned, Resource};
use super::sample::{FakeClient, Key, Kind, ObservationCache, Observed, Sample, Step};

#[derive(Debug)]
struct Desired(Key);

impl Owned<Sample> for Desired {
    fn kind(&self) -> Kind {
        Kind::Guarded
    }

    fn key(&self) -> &Key {
        &self.0
    }

    fn is_owned(&self, current: &Value) -> bool {
        current["owner"] == "us"
    }
}

impl Resource<Sample> for Desired {
    fn differs(&self, current: &Value) -> Vec<Difference> {
        let differs = current["size"] != 1;
        differs.then(|| Difference::of("size")).into_iter().collect()
    }

    fn body(&self, _: Option<&Value>) -> Value {
        json!({"owner": "us", "size": 1})
    }
}

struct Run {
    client: FakeClient,
    observations: ObservationCache,
    inventory: Inventory<Sample>,
    desired: Desired,
}

impl Run {
    fn new() -> Self {
        Self {
            client: FakeClient::default(),
            observations: ObservationCache::new(Duration::from_secs(300), Duration::from_secs(300)),
            inventory: Inventory::default(),
            desired: Desired(Key::of("a")),
        }
    }

    /// Reads, decides and executes once, after whatever wait the read before asked for.
    async fn reconcile(&self, decide: fn(&Desired, &Observed) -> Step) -> (Step, Outcome<Sample>) {
        tokio::time::advance(Duration::from_secs(10)).await;
        let reader = Reader {
            client: &self.client,
            observations: &self.observations,
            inventory: &self.inventory,
            reconcile: Reconcile::begin(),
        };
        let observed = reader.read(Kind::Guarded, &self.desired.0).await;
        let step = decide(&self.desired, &observed);
        let steps = [step];
        let outcomes = execute::run(&steps, &self.client, &self.observations, reader.reconcile).await;
        let [step] = steps;
        (step, outcomes.into_iter().next().unwrap())
    }
}

fn present(desired: &Desired, observed: &Observed) -> Step {
    ensure_present(desired, observed)
}

fn absent(desired: &Desired, observed: &Observed) -> Step {
    ensure_absent(desired, observed)
}

#[tokio::test(start_paused = true)]
async fn resource_lives_in_a_cloud_that_names_it_itself() {
    let run = Run::new();
    let (_, accepted) = run.reconcile(present).await;
    assert_eq!(accepted, Outcome::Accepted);
    assert_eq!(run.client.calls(), ["get a", "put a New"]);

    let (waiting, _) = run.reconcile(present).await;
    assert_eq!(waiting.verb, Verb::Wait);
    assert_eq!(run.client.calls(), ["get a", "poll a"]);

    let (ready, reached) = run.reconcile(present).await;
    assert_eq!(ready.ready().unwrap()["given_id"], "i-0");
    assert_eq!(reached, Outcome::Reached(Change::Created));
    assert_eq!(run.client.calls(), ["get a", "poll a", "get a"]);

    let (_, unchanged) = run.reconcile(present).await;
    assert_eq!(unchanged, Outcome::Nothing);
    assert_eq!(run.client.calls(), Vec::<String>::new());

    run.reconcile(absent).await;
    assert_eq!(run.client.calls(), ["delete a i-0 Unchanged(\"i-0\")"]);
    for _ in 0..2 {
        run.reconcile(absent).await;
    }
    let (gone, _) = run.reconcile(absent).await;
    assert!(gone.gone());
}
