//! What else is computed at each scrape: long-running operations, the token for Azure, the session for AWS, repeated
//! changes, memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use prometheus::Result;
use prometheus::core::Collector;

use super::at_scrape::{AtScrape, Sample};
use super::capz::ObserveFleet;
use super::changes::Recent;
use super::objects::{CountQuotas, ListObjects};
use super::{Metrics, locked};
use crate::api::Platform;
use crate::aws::credentials::SessionState;
use crate::azure::arm::auth::TokenState;
use crate::azure::kinds::Kind;
use crate::engine::observation_cache::UnderWay;

type ReadToken = Box<dyn Fn() -> TokenState + Send + Sync>;
type ReadSession = Box<dyn Fn() -> SessionState + Send + Sync>;
type ReadOperations = Box<dyn Fn() -> BTreeMap<Kind, UnderWay> + Send + Sync>;

/// Where the state is read.
#[derive(Default)]
pub(super) struct Sources {
    pub(super) objects: Mutex<BTreeMap<Platform, ListObjects>>,
    pub(super) quotas_of_aws: Mutex<Option<CountQuotas>>,
    pub(super) fleet: Mutex<Option<ObserveFleet>>,
    pub(super) recent: Recent,
    operations: Mutex<Vec<ReadOperations>>,
    token: Mutex<Option<ReadToken>>,
    session: Mutex<Option<ReadSession>>,
}

struct ScrapedState {
    /// Of every kind, once a role has begun.
    operations: BTreeMap<&'static str, UnderWay>,
    token: TokenState,
    /// None in a process without AWS.
    session: Option<SessionState>,
    most_changes: BTreeMap<&'static str, usize>,
    memory: Option<f64>,
}

pub(super) fn gauges(sources: Arc<Sources>) -> Result<impl Collector> {
    AtScrape::new(move || Some(sources.read()))
        .gauge(
            "hyperlink_arm_operations_in_flight",
            "Long-running operations in Azure that this process started and whose end it has not observed.",
            &["kind"],
            |state| by_kind(&state.operations, |all| all.count as f64),
        )?
        .gauge(
            "hyperlink_arm_operation_oldest_age_seconds",
            "Age of the oldest long-running operation in flight; 0 when there is none.",
            &["kind"],
            |state| by_kind(&state.operations, |all| all.oldest.as_secs_f64()),
        )?
        .gauge(
            "hyperlink_token_age_seconds",
            "Age of the Azure token in use; absent before the first one.",
            &[],
            |state| if_known(state.token.age.map(|age| age.as_secs_f64())),
        )?
        .gauge(
            "hyperlink_token_expires_in_seconds",
            "How long the Azure token in use is still valid; 0 when it has expired, absent before the first one.",
            &[],
            |state| if_known(state.token.left.map(|left| left.as_secs_f64())),
        )?
        .gauge(
            "hyperlink_aws_session_expires_in_seconds",
            "How long the session for AWS in use is still valid; 0 without one, absent for keys that do not expire.",
            &[],
            |state| if_known(state.session.as_ref().and_then(left_of_session)),
        )?
        .gauge(
            "hyperlink_changes_of_one_resource",
            "How often the resource that Hyperlink changed most was changed within the last hour; 0 when none was.",
            &["kind"],
            |state| by_kind(&state.most_changes, |most| *most as f64),
        )?
        .gauge(
            "process_resident_memory_bytes",
            "Resident memory; absent where the system does not show it.",
            &[],
            |state| if_known(state.memory),
        )
}

impl Sources {
    fn read(&self) -> ScrapedState {
        let mut operations = BTreeMap::new();
        for read in locked(&self.operations).iter() {
            let under_way = read();
            for kind in Kind::ALL {
                let all: &mut UnderWay = operations.entry(kind.label()).or_default();
                *all = all.and(under_way.get(&kind).copied().unwrap_or_default());
            }
        }
        ScrapedState {
            operations,
            token: locked(&self.token).as_ref().map(|read| read()).unwrap_or_default(),
            session: locked(&self.session).as_ref().map(|read| read()),
            most_changes: self.recent.most(),
            memory: resident_memory(),
        }
    }
}

fn by_kind<T>(values: &BTreeMap<&'static str, T>, number: fn(&T) -> f64) -> Vec<Sample<'static>> {
    let samples = values.iter().map(|(kind, value)| (vec![*kind], number(value)));
    samples.collect()
}

fn if_known(value: Option<f64>) -> Vec<Sample<'static>> {
    value.map(|value| (Vec::new(), value)).into_iter().collect()
}

/// Seconds; none for keys that do not expire.
fn left_of_session(session: &SessionState) -> Option<f64> {
    match (session.age, session.left) {
        (Some(_), None) => None,
        (_, left) => Some(left.unwrap_or_default().as_secs_f64()),
    }
}

impl Metrics {
    /// Sets the function that reads the session for AWS at each scrape. It must be quick and must not block.
    pub fn read_session_with(&self, read: impl Fn() -> SessionState + Send + Sync + 'static) {
        *locked(&self.sources.session) = Some(Box::new(read));
    }

    /// Sets the function that reads the token in use at each scrape. It must be quick and must not block.
    pub fn read_token_with(&self, read: impl Fn() -> TokenState + Send + Sync + 'static) {
        *locked(&self.sources.token) = Some(Box::new(read));
    }

    /// Adds a function that reads operations under way at each scrape; all of them are added up. It must be quick and
    /// must not block.
    pub fn read_operations_with(&self, read: impl Fn() -> BTreeMap<Kind, UnderWay> + Send + Sync + 'static) {
        locked(&self.sources.operations).push(Box::new(read));
    }
}

/// `VmRSS` of proc(5), in bytes.
fn resident_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}
