//! Load balancers are read by name, those of all who ask at about the same time in one call.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use hyperlink_engine::client::Reconcile;
use hyperlink_engine::cloud::Key;
use hyperlink_engine::failure::Class;
use serde_json::Value;

use super::{Calls, shown};
use crate::api::error::AwsError;
use crate::elbv2::{LoadBalancing, MAX_NAMES};
use crate::slot::Slot;

/// For how long a read waits for others that it can be sent with. A load balancer takes minutes to become active.
const JOINED_WITHIN: Duration = Duration::from_secs(1);

/// What was read of each name.
type Answers = HashMap<String, Result<Value, AwsError>>;

/// The names that wait to be sent together; none once they are sent.
type Names = Arc<Mutex<Option<BTreeSet<String>>>>;

/// The reads that wait to be sent together.
#[derive(Default)]
pub(super) struct JoinedReads(Mutex<Option<Waiting>>);

struct Waiting {
    names: Names,
    answers: Shared<BoxFuture<'static, Arc<Answers>>>,
}

impl Waiting {
    fn new(aws: &LoadBalancing, reconcile: Reconcile) -> Self {
        let names: Names = Arc::new(Mutex::new(Some(BTreeSet::new())));
        let (sent, aws) = (Arc::clone(&names), aws.clone());
        // Who asks for a load balancer waits for it.
        let reconcile = reconcile.awaited();
        let answers = async move {
            tokio::time::sleep(JOINED_WITHIN).await;
            let names = locked(&sent).take().unwrap_or_default();
            Arc::new(read_all(&aws, reconcile, names).await)
        };
        Self {
            names,
            answers: answers.boxed().shared(),
        }
    }

    /// Adds a name; whether it is not too late, and there is room.
    fn add(&self, name: &str) -> bool {
        let mut names = locked(&self.names);
        let names = names.as_mut().filter(|names| names.len() < MAX_NAMES);
        names.map(|names| names.insert(name.to_owned())).is_some()
    }
}

impl JoinedReads {
    /// Reads a load balancer together with those that others ask for.
    async fn read(&self, aws: &LoadBalancing, reconcile: Reconcile, name: &str) -> Result<Value, AwsError> {
        let answers = {
            let mut current = locked(&self.0);
            let waiting = current.take().filter(|waiting| waiting.add(name));
            let waiting = waiting.unwrap_or_else(|| {
                let new = Waiting::new(aws, reconcile);
                new.add(name);
                new
            });
            current.insert(waiting).answers.clone()
        };
        let answers = answers.await;
        answers.get(name).cloned().unwrap_or_else(|| Err(AwsError::missing()))
    }
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads load balancers by name. AWS refuses a call as a whole if it does not know one of the names, or takes one for
/// none: it is halved then, until that name is alone.
async fn read_all(aws: &LoadBalancing, reconcile: Reconcile, names: BTreeSet<String>) -> Answers {
    let mut answers = Answers::new();
    let mut open: Vec<Vec<String>> = vec![names.into_iter().collect()];
    while let Some(mut names) = open.pop().filter(|names| !names.is_empty()) {
        match aws.by_name(reconcile, &names).await {
            Ok(found) => {
                let found = found.iter().filter(|one| one.kind.as_deref() == Some("network"));
                answers.extend(found.map(|one| (one.name.clone(), Ok(shown::load_balancer(one)))));
            }
            Err(error) if matches!(error.class, Class::Gone | Class::Invalid) && names.len() > 1 => {
                open.push(names.split_off(names.len() / 2));
                open.push(names);
            }
            Err(error) => answers.extend(names.into_iter().map(|name| (name, Err(error.clone())))),
        }
    }
    answers
}

impl Calls {
    /// Reads the network load balancer of this name.
    pub(super) async fn load_balancer(&self, reconcile: Reconcile, slot: &Slot) -> Result<Value, AwsError> {
        self.joined_reads
            .read(&self.load_balancing, reconcile, slot.name())
            .await
    }
}

#[cfg(test)]
mod tests;
