//! The life of a resource in a cloud that names it itself.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::Reconcile;
use super::execute;
use super::inventory::Inventory;
use super::plan::{Change, Outcome, Verb, Why, ensure_absent, ensure_present};
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

    fn own_part<'a>(&self, current: &'a Value) -> Cow<'a, Value> {
        match current.get("own") {
            Some(own) => Cow::Owned(own.clone()),
            None => Cow::Borrowed(current),
        }
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

#[test]
fn what_is_not_in_force_is_repaired_deleted_or_waited_for() {
    let desired = Desired(Key::of("a"));
    let idle = |size: u32| Observed::Found(json!({"owner": "us", "size": size, "idle": true}));
    assert_eq!(present(&desired, &idle(1)).verb, Verb::Wait);
    assert!(matches!(present(&desired, &idle(2)).verb, Verb::Put(_)));
    assert_eq!(absent(&desired, &idle(1)).verb, Verb::Delete);
}

#[test]
fn only_the_own_part_is_decided_about_and_deleted() {
    let desired = Desired(Key::of("a"));
    let own = json!({"owner": "us", "size": 1});
    let shared = Observed::Found(json!({"owner": "them", "own": own}));
    assert_eq!(present(&desired, &shared).ready(), Some(&own));
    let step = absent(&desired, &shared);
    assert_eq!((step.verb, step.why), (Verb::Delete, Why::PartUnwanted));
    assert_eq!(step.found, Some(own));
    let foreign = Observed::Found(json!({"owner": "them"}));
    assert!(absent(&desired, &foreign).left());
}

#[tokio::test(start_paused = true)]
async fn resource_of_which_others_have_a_part_stays_and_is_left() {
    let run = Run::new();
    let shared = Observed::Found(json!({"owner": "them", "own": {"owner": "us", "size": 1}}));
    let step = absent(&run.desired, &shared);
    execute::run(&[step], &run.client, &run.observations, Reconcile::begin()).await;
    assert!(
        run.observations.operation(&run.desired.0).is_none(),
        "it is not being deleted"
    );
    assert!(!run.observations.is_deleted(&run.desired.0));
}
