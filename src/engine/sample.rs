//! A small cloud for the engine's own tests. It names its resources itself, when they are created, as Azure does not.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{self, Accepted, Condition, Execution, OperationState, Reconcile, WriteError, WriteTarget};
use super::cloud::{self, Cloud, ResourceKind};
use super::failure::{Class, Failure};
use super::kind_rules::{KindRules, ListRules, WriteTimes};
use super::resource::Progress;
use super::{observation_cache, plan, resource};

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample;

pub(crate) type Observed = resource::Observed<Sample>;
pub(crate) type Step = plan::Step<Sample>;
pub(crate) type ObservationCache = observation_cache::ObservationCache<Sample>;
pub(crate) type Operation = observation_cache::Operation<Sample>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Whose creation and deletion hold only for what was read.
    Guarded,
    /// Without special rules.
    Plain,
    /// Whose writes are queued in the parent.
    Queued,
    /// That only the parent shows.
    Shown,
}

const PLAIN: KindRules<Sample> = KindRules::DEFAULT;
const GUARDED: KindRules<Sample> = KindRules {
    create_if_new: true,
    delete_if_unchanged: true,
    in_force: |body| body["idle"] != true,
    list: Some(ListRules {
        of: (),
        min_served: 2,
        rows: None,
        suffices: None,
    }),
    ..PLAIN
};
const QUEUED: KindRules<Sample> = KindRules {
    queued_in_parent: Some(WriteTimes {
        put: Duration::from_secs(3),
        delete: Duration::from_secs(10),
    }),
    ..PLAIN
};
const SHOWN: KindRules<Sample> = KindRules {
    shown_by_parent: true,
    ..PLAIN
};

impl ResourceKind<Sample> for Kind {
    fn label(self) -> &'static str {
        "sample"
    }

    fn rules(self) -> &'static KindRules<Sample> {
        match self {
            Kind::Guarded => &GUARDED,
            Kind::Plain => &PLAIN,
            Kind::Queued => &QUEUED,
            Kind::Shown => &SHOWN,
        }
    }
}

/// Names, outermost first, with slashes between them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key(String);

impl Key {
    pub(crate) fn of(path: &str) -> Self {
        Self(path.to_owned())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl cloud::Key for Key {
    fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    fn parent(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(parent, _)| Self::of(parent))
    }

    fn is_in(&self, other: &Self) -> bool {
        self.0.strip_prefix(&other.0).is_some_and(|rest| rest.starts_with('/'))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Error {
    class: Class,
    code: &'static str,
    retry_after: Option<Duration>,
    pub(crate) lasting: bool,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code)
    }
}

impl Failure for Error {
    fn own(class: Class, code: &'static str) -> Self {
        Self {
            class,
            code,
            retry_after: None,
            lasting: false,
        }
    }

    fn is_unsent(&self) -> bool {
        self.class() == Class::Throttled && self.status() == 0
    }

    fn is_of_caller(&self) -> bool {
        false
    }

    fn is_lasting(&self) -> bool {
        self.lasting
    }

    fn is_lock(&self) -> bool {
        false
    }

    fn is_outdated(&self) -> bool {
        false
    }

    fn missing() -> Self {
        Self::own(Class::Gone, "Missing")
    }

    fn class(&self) -> Class {
        self.class
    }

    fn status(&self) -> u16 {
        0
    }

    fn code(&self) -> &str {
        self.code
    }

    fn text(&self) -> &str {
        ""
    }

    /// Three seconds, then twice as long each time.
    fn delay(&self, failures: u32) -> Duration {
        self.retry_after.unwrap_or(Duration::from_secs(3 << (failures - 1)))
    }

    fn with_retry_after(self, wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            ..self
        }
    }

    fn with_lasting(self, lasting: bool) -> Self {
        Self { lasting, ..self }
    }
}

/// The one list: of all that is guarded.
#[derive(Debug)]
pub(crate) struct Everything;

impl cloud::List<Key> for Everything {
    fn address(&self) -> String {
        String::new()
    }

    fn shows(&self, _: &Key) -> bool {
        true
    }
}

impl Cloud for Sample {
    type Kind = Kind;
    type Key = Key;
    type Error = Error;
    type OperationId = u32;
    type ListScope = ();
    type List = Everything;

    const NAME: &'static str = "the cloud";
    const PROGRESS_FIELD: &'static str = "state";
    const VERSION_FIELD: &'static str = "given_id";
    const PAGE: usize = 2;

    fn state(body: &Value) -> Option<&str> {
        body[Self::PROGRESS_FIELD].as_str()
    }

    fn progress(body: &Value) -> Progress {
        match Self::state(body) {
            Some("failed") => Progress::Failed,
            Some("busy") => Progress::InProgress,
            Some("deleting") => Progress::Deleting,
            _ => Progress::Ready,
        }
    }

    fn instance(body: &Value) -> &str {
        body[Self::VERSION_FIELD].as_str().unwrap_or_default()
    }

    /// What exists under a given id does not change its owner: the id is version enough.
    fn version(body: &Value) -> Option<&str> {
        body[Self::VERSION_FIELD].as_str()
    }

    fn key_of(row: &Value) -> Option<Key> {
        row["name"].as_str().map(Key::of)
    }

    fn kind_of(_: &Key) -> Option<Kind> {
        Some(Kind::Plain)
    }

    fn list(_: Kind, _: &Key, (): ()) -> Option<Everything> {
        Some(Everything)
    }
}

/// A cloud in memory. Each operation ends when it is polled for the second time.
#[derive(Debug, Default)]
pub(crate) struct FakeClient(Mutex<Stored>);

#[derive(Debug, Default)]
struct Stored {
    resources: HashMap<Key, Value>,
    /// What is to be stored when an operation ends, and whether it was polled.
    operations: Vec<(Key, Option<Value>, bool)>,
    calls: Vec<String>,
}

impl FakeClient {
    /// The calls since the last question, in order.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().calls)
    }

    fn write(&self, call: String, key: &Key, result: Option<Value>) -> Accepted<Sample> {
        let mut stored = self.0.lock().unwrap();
        stored.calls.push(call);
        stored.operations.push((key.clone(), result, false));
        Accepted {
            shown: None,
            execution: Execution::Running,
            retry_after: None,
            operation: Some(u32::try_from(stored.operations.len() - 1).unwrap()),
        }
    }
}

impl client::CloudClient<Sample> for FakeClient {
    async fn get(&self, _: Reconcile, _: Kind, key: &Key) -> Result<Value, Error> {
        let mut stored = self.0.lock().unwrap();
        stored.calls.push(format!("get {key}"));
        stored.resources.get(key).cloned().ok_or_else(Error::missing)
    }

    async fn list(&self, _: Reconcile, _: Kind, _: &Everything) -> Result<Vec<Value>, Error> {
        Ok(self.0.lock().unwrap().resources.values().cloned().collect())
    }

    async fn put(
        &self,
        _: Reconcile,
        target: WriteTarget<'_, Sample>,
        body: &Value,
        condition: &Condition,
    ) -> Result<Accepted<Sample>, WriteError<Error>> {
        let mut created = body.clone();
        created["name"] = json!(target.key.to_string());
        created["given_id"] = json!(format!("i-{}", self.0.lock().unwrap().operations.len()));
        Ok(self.write(format!("put {} {condition:?}", target.key), target.key, Some(created)))
    }

    async fn delete(
        &self,
        _: Reconcile,
        target: WriteTarget<'_, Sample>,
        condition: &Condition,
    ) -> Result<Accepted<Sample>, WriteError<Error>> {
        let given_id = target.found.map_or("", Sample::instance);
        let call = format!("delete {} {given_id} {condition:?}", target.key);
        Ok(self.write(call, target.key, None))
    }

    async fn poll(&self, _: Reconcile, _: Kind, key: &Key, operation: &u32) -> Result<OperationState<Error>, Error> {
        let mut stored = self.0.lock().unwrap();
        stored.calls.push(format!("poll {key}"));
        let (of, result, polled) = stored.operations[*operation as usize].clone();
        stored.operations[*operation as usize].2 = true;
        if !polled {
            return Ok(OperationState::Running(None));
        }
        match result {
            Some(body) => stored.resources.insert(of, body),
            None => stored.resources.remove(&of),
        };
        Ok(OperationState::Succeeded)
    }
}
