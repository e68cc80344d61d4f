//! Stand-ins for HyperShift's own controllers of private paths, which are written in Go. They write to Kubernetes and
//! to Azure or AWS what the Go controllers write, in the same form and order. They know nothing of Hyperlink and do not
//! follow its rules.
//!
//! Failures that no other controller can observe are left out. One number divides all intervals of the Go controllers,
//! so that minutes pass in seconds. The times that Azure asks to wait stay, so that a reconcile takes as many polls as
//! in Go.

pub mod arm;
mod aws;
mod cpo;
mod dns;
mod ho;
mod object;
mod observer;
pub(crate) mod queue;

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::BoxFuture;
use kube::api::{Api, DynamicObject};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::aws_cluster::AwsHostedCluster;
use crate::aws_sim::{HO_TWIN, SHARED_ENDPOINTS_ROLE, SHARED_RECORDS_ROLE};
use crate::hosted_cluster::HostedCluster;
use crate::{AwsEnv, TestEnv};
use arm::Arm;

/// A running operator. Dropping this value stops it at once, as the loss of its node would.
#[derive(Debug)]
pub struct GoOperator {
    stop: CancellationToken,
    tasks: Vec<JoinHandle<Result<()>>>,
}

impl GoOperator {
    /// Starts HyperShift's operator, for one cluster. `speed` divides its intervals.
    ///
    /// # Errors
    ///
    /// Azure issues no token for it.
    pub async fn ho(test_env: &TestEnv, cluster: &HostedCluster, speed: u32) -> Result<Self> {
        let clients = ClusterClients::new(test_env, cluster, speed, &test_env.azure().go_ho).await?;
        let stop = CancellationToken::new();
        let operator = ho::Operator::new(test_env, clients);
        let tasks = vec![spawn(&stop, async move { operator.run().await })];
        Ok(Self { stop, tasks })
    }

    /// Starts a cluster's control-plane-operator. `speed` divides its intervals.
    ///
    /// # Errors
    ///
    /// Azure issues no token for it.
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

    /// Starts HyperShift's operator for one cluster on AWS, which calls as [`HO_TWIN`]. `speed` divides five minutes.
    ///
    /// # Errors
    ///
    /// The simulator's certificate cannot be read.
    pub fn ho_on_aws(env: &AwsEnv, cluster: &AwsHostedCluster, speed: u32) -> Result<Self> {
        let operator = aws::HoOperator::new(aws::Clients::new(env, cluster, env.caller(HO_TWIN)?, speed)?);
        let stop = CancellationToken::new();
        let tasks = vec![spawn(&stop, async move { operator.run().await })];
        Ok(Self { stop, tasks })
    }

    /// Starts the control-plane-operator of a cluster on AWS, with a session of [`crate::aws_sim::CPO_ROLE`], or in a
    /// shared VPC with those of its owner's roles. `speed` divides five minutes.
    ///
    /// # Errors
    ///
    /// AWS refuses the session.
    pub async fn cpo_on_aws(env: &AwsEnv, cluster: &AwsHostedCluster, speed: u32) -> Result<Self> {
        let session = env.cpo_session().await?;
        let (endpoints, records) = if cluster.is_in_shared_vpc() {
            let endpoints = session.assume(SHARED_ENDPOINTS_ROLE).await?;
            (endpoints, session.assume(SHARED_RECORDS_ROLE).await?)
        } else {
            (session.clone(), session)
        };
        let clients = aws::Clients::new(env, cluster, endpoints, speed)?.with_records(records);
        let stop = CancellationToken::new();
        let observer = aws::Observer::new(clients.clone());
        let operator = aws::CpoOperator::new(clients);
        let tasks = vec![
            spawn(&stop, async move { observer.run().await }),
            spawn(&stop, async move { operator.run().await }),
        ];
        Ok(Self { stop, tasks })
    }

    /// Starts an operator of other controllers.
    pub(crate) fn of(controllers: Vec<BoxFuture<'static, Result<()>>>) -> Self {
        let stop = CancellationToken::new();
        let tasks = controllers.into_iter().map(|work| spawn(&stop, work)).collect();
        Self { stop, tasks }
    }

    /// Stops the operator, and fails if it has ended before.
    ///
    /// # Errors
    ///
    /// A controller failed or panicked.
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

/// Runs one controller until `stop` is cancelled, which drops whatever it does at that moment.
fn spawn(stop: &CancellationToken, work: impl Future<Output = Result<()>> + Send + 'static) -> JoinHandle<Result<()>> {
    let stop = stop.clone();
    tokio::spawn(async move { stop.run_until_cancelled(work).await.unwrap_or(Ok(())) })
}

/// The clients and settings that all controllers of one cluster share.
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

/// When an object is reconciled again.
enum Next {
    /// With the next event.
    Event,
    /// After this time, before `speed` divides it, or with an event.
    After(Duration),
}

impl Next {
    /// HyperShift's constant `DriftDetectionRequeueInterval`.
    const DRIFT: Self = Self::After(Duration::from_mins(5));
    /// HyperShift's constant `PLSRequeueInterval`.
    const WAIT: Self = Self::After(Duration::from_secs(30));
    /// The requeue after a conflict.
    const CONFLICT: Self = Self::After(Duration::from_secs(1));
}
