//! Stand-ins for HyperShift's own controllers of private paths, the Go ones: what they write to Kubernetes and to Azure, in
//! the same form and order. They know nothing of Hyperlink, and Hyperlink's rules are not theirs.
//!
//! What is left out are their ways to fail that no neighbour can see. Every interval of theirs is divided by one number, so
//! that minutes pass in seconds; what Azure asks them to wait is kept, so that one reconcile takes as many polls as theirs.

pub mod arm;
mod cpo;
mod dns;
mod ho;
mod object;
mod observer;
mod queue;

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::api::{Api, DynamicObject};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::TestEnv;
use crate::hosted_cluster::HostedCluster;
use arm::Arm;

/// A running operator. Dropping it kills it at once, as a lost node would.
#[derive(Debug)]
pub struct GoOperator {
    stop: CancellationToken,
    tasks: Vec<JoinHandle<Result<()>>>,
}

impl GoOperator {
    /// HyperShift's operator, for one cluster. `speed` divides its intervals.
    ///
    /// # Errors
    ///
    /// It gets no token.
    pub async fn ho(test_env: &TestEnv, cluster: &HostedCluster, speed: u32) -> Result<Self> {
        let clients = ClusterClients::new(test_env, cluster, speed, &test_env.azure().go_ho).await?;
        let stop = CancellationToken::new();
        let operator = ho::Operator::new(test_env, clients);
        let tasks = vec![spawn(&stop, async move { operator.run().await })];
        Ok(Self { stop, tasks })
    }

    /// A cluster's control-plane-operator. `speed` divides its intervals.
    ///
    /// # Errors
    ///
    /// It gets no token.
    pub async fn cpo(test_env: &TestEnv, cluster: &HostedCluster, speed: u32) -> Result<Self> {
        let clients = ClusterClients::new(test_env, cluster, speed, &test_env.azure().go_cpo).await?;
        let stop = CancellationToken::new();
        let observer = observer::Observer::new(clients.clone());
        let operator = cpo::Operator::new(clients);
        let tasks = vec![
            spawn(&stop, async move { observer.run().await }),
            spawn(&stop, async move { operator.run().await }),
        ];
        Ok(Self { stop, tasks })
    }

    /// Stops it, and fails if it has not worked to this moment.
    ///
    /// # Errors
    ///
    /// It ended by itself.
    pub async fn stop(mut self) -> Result<()> {
        self.stop.cancel();
        for task in std::mem::take(&mut self.tasks) {
            task.await.context("a Go controller panicked")??;
        }
        Ok(())
    }
}

impl Drop for GoOperator {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Runs one controller until it is told to stop; whatever it is at is dropped then.
fn spawn(stop: &CancellationToken, work: impl Future<Output = Result<()>> + Send + 'static) -> JoinHandle<Result<()>> {
    let stop = stop.clone();
    tokio::spawn(async move { stop.run_until_cancelled(work).await.unwrap_or(Ok(())) })
}

/// What every controller of one cluster works with.
#[derive(Clone)]
struct ClusterClients {
    kube: kube::Client,
    arm: Arm,
    cluster: HostedCluster,
    speed: u32,
}

impl ClusterClients {
    async fn new(
        test_env: &TestEnv,
        cluster: &HostedCluster,
        speed: u32,
        credential: &crate::test_env::Credential,
    ) -> Result<Self> {
        Ok(Self {
            kube: test_env.client()?,
            arm: Arm::connect(test_env.azure(), credential, speed).await?,
            cluster: cluster.clone(),
            speed,
        })
    }

    /// The objects of a kind in the control plane's namespace.
    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let namespace = self.cluster.control_plane_namespace();
        self.cluster.api(&self.kube, kind, &namespace)
    }

    fn link_services(&self) -> Api<DynamicObject> {
        self.api("AzurePrivateLinkService")
    }
}

/// How a pass of the reference ends.
enum Next {
    /// Nothing until an event.
    Event,
    /// After this long of the reference's time, or with an event.
    After(Duration),
}

impl Next {
    /// `DriftDetectionRequeueInterval`
    const DRIFT: Self = Self::After(Duration::from_mins(5));
    /// `PLSRequeueInterval`
    const WAIT: Self = Self::After(Duration::from_secs(30));
    /// What follows a conflict.
    const CONFLICT: Self = Self::After(Duration::from_secs(1));
}
