//! Which namespaces this process serves now: a leader of all of them leaves some to processes of their own.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;

/// The namespaces that a process serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Territory {
    /// It is not known which are led by others, so none.
    Unknown,
    /// All but these.
    AllBut(Arc<BTreeSet<String>>),
}

impl Territory {
    fn has(&self, namespace: &str) -> bool {
        match self {
            Self::Unknown => false,
            Self::AllBut(others) => !others.contains(namespace),
        }
    }
}

/// What is served, now and later.
#[derive(Debug, Clone)]
pub struct Served(Option<watch::Receiver<Territory>>);

impl Served {
    /// Whatever the process watches, for good.
    pub fn everything() -> Self {
        Self(None)
    }

    /// What `territory` says.
    pub fn within(territory: watch::Receiver<Territory>) -> Self {
        Self(Some(territory))
    }

    /// Does `work` while the namespace is served. None if it is not, or not any more: the work is dropped where it stands.
    pub async fn during<T>(&self, namespace: &str, work: impl Future<Output = T>) -> Option<T> {
        let Some(mut territory) = self.0.clone() else {
            return Some(work.await);
        };
        if !territory.borrow_and_update().has(namespace) {
            return None;
        }
        tokio::select! {
            // Whoever decides what is served has ended: nothing is any more.
            _ = territory.wait_for(|now| !now.has(namespace)) => None,
            done = work => Some(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_but(others: &[&str]) -> Territory {
        Territory::AllBut(Arc::new(others.iter().map(|one| (*one).to_owned()).collect()))
    }

    #[tokio::test]
    async fn work_is_done_only_where_nobody_else_leads() {
        let (told, territory) = watch::channel(Territory::Unknown);
        let served = Served::within(territory);
        assert_eq!(served.during("a", async { 1 }).await, None);
        told.send_replace(all_but(&["b"]));
        assert_eq!(served.during("a", async { 1 }).await, Some(1));
        assert_eq!(served.during("b", async { 1 }).await, None);
        assert_eq!(Served::everything().during("b", async { 1 }).await, Some(1));
    }

    #[tokio::test]
    async fn work_is_dropped_when_another_leads_the_namespace_and_goes_on_elsewhere() {
        let (told, territory) = watch::channel(all_but(&[]));
        let served = Served::within(territory);
        let (lost, kept) = tokio::join!(
            served.during("a", std::future::pending::<()>()),
            served.during("b", async {
                told.send_replace(all_but(&["a"]));
                tokio::task::yield_now().await;
            })
        );
        assert_eq!((lost, kept), (None, Some(())));
    }

    #[tokio::test]
    async fn nothing_is_served_once_nobody_tells() {
        let (told, territory) = watch::channel(all_but(&[]));
        let served = Served::within(territory);
        drop(told);
        assert_eq!(served.during("a", std::future::pending::<()>()).await, None);
    }
}
