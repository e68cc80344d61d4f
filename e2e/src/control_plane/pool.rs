//! Control planes that the tests of one process use one after another. To start one takes ten seconds of a core, to
//! clear one nearly nothing.

use std::fs::OpenOptions;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use tokio::time::timeout;

use super::ControlPlane;
use super::stored::Revisions;
use crate::crds::Platform;
use crate::wait::eventually;

const NAMESPACES: &str = "/registry/namespaces/";
const CRDS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";
/// What the API server keeps for itself, and may create and delete at any time.
const ITS_OWN: [&str; 4] = [
    "/registry/apiregistration.k8s.io/",
    "/registry/flowschemas/",
    "/registry/leases/kube-system/apiserver-",
    "/registry/prioritylevelconfigurations/",
];
/// How long clearing one takes at most.
const CLEARING: Duration = Duration::from_secs(10);

/// Those that this process lends; those that nobody else holds are free.
static ALL: Mutex<Vec<Arc<ControlPlane>>> = Mutex::new(Vec::new());

impl ControlPlane {
    /// A control plane on loopback that has HyperShift's CRDs for clusters on one cloud and nothing else, and that the
    /// next caller gets when all clones are dropped.
    ///
    /// # Errors
    ///
    /// As [`ControlPlane::start`].
    pub async fn lent(platform: Platform) -> Result<Arc<Self>> {
        while let Some(free) = free(platform) {
            match timeout(CLEARING, free.clear()).await.context("clearing it").flatten() {
                Ok(()) => return Ok(free),
                // A test has broken it, or has changed what every test needs.
                Err(error) => {
                    eprintln!("a control plane is not used again: {error:#}");
                    all().retain(|one| !Arc::ptr_eq(one, &free));
                }
            }
        }
        let new = Arc::new(Self::start_on(platform).await?);
        all().push(Arc::clone(&new));
        Ok(new)
    }

    /// Deletes everything that has come since the start, and empties the audit log.
    async fn clear(&self) -> Result<()> {
        self.check()?;
        let now = self.etcd.revisions(&self.pki).await?;
        ensure_kept(&self.initial, &now)?;
        // Without its namespace, nobody creates the ServiceAccount `default` again.
        let added = now.into_keys().filter(|key| !self.initial.contains_key(key));
        let added = added.filter(|key| !is_its_own(key));
        let (namespaces, others): (Vec<_>, Vec<_>) = added.partition(|key| key.starts_with(NAMESPACES));
        self.etcd.delete(&self.pki, &namespaces).await?;
        self.shows_no_other_namespace().await?;
        self.etcd.delete(&self.pki, &others).await?;
        OpenOptions::new().write(true).open(self.audit_log())?.set_len(0)?;
        Ok(())
    }

    async fn shows_no_other_namespace(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client()?);
        eventually("only the first namespaces", CLEARING, || async {
            let shown = namespaces.list(&ListParams::default()).await?;
            let other = shown.iter().map(ResourceExt::name_any);
            let mut other = other.filter(|name| !self.initial.contains_key(&format!("{NAMESPACES}{name}")));
            ensure!(other.next().is_none());
            Ok(())
        })
        .await
    }
}

/// Fails if something is gone that was there at the start, or a CRD has changed.
fn ensure_kept(initial: &Revisions, now: &Revisions) -> Result<()> {
    let gone = initial.keys().find(|key| !now.contains_key(*key) && !is_its_own(key));
    ensure!(gone.is_none(), "{gone:?} is gone");
    ensure!(crds(initial).eq(crds(now)), "the CRDs have changed");
    Ok(())
}

fn crds(all: &Revisions) -> impl Iterator<Item = (&String, &String)> {
    all.iter().filter(|(key, _)| key.starts_with(CRDS))
}

fn is_its_own(key: &str) -> bool {
    ITS_OWN.iter().any(|prefix| key.starts_with(prefix))
}

fn free(platform: Platform) -> Option<Arc<ControlPlane>> {
    let all = all();
    let free = all
        .iter()
        .find(|one| one.platform == platform && Arc::strong_count(one) == 1);
    free.map(Arc::clone)
}

fn all() -> MutexGuard<'static, Vec<Arc<ControlPlane>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}
