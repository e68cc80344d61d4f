//! The test environment for clusters on AWS that most tests of a test program share, each with a hosted cluster of its
//! own.

use std::future::Future;

use anyhow::{Result, ensure};
use tokio::sync::OnceCell;

use super::AwsEnv;
use crate::aws_cluster::AwsHostedCluster;
use crate::aws_sim;
use crate::azure_sim::Preset;
use crate::hyperlink::{Hyperlink, Role};
use crate::shared_env::{SOON, run};

/// How often Hyperlink reads ready resources again.
const FLAGS: [(&str, &str); 1] = [("resync", "3s")];

/// Simulated seconds after which AWS's request budgets suffice for one more test.
const REFILL: f64 = 60.0;

/// A test environment in which the HO role runs.
#[derive(Debug)]
pub struct SharedAwsEnv {
    /// The control plane and the simulated AWS.
    pub env: AwsEnv,
    /// The process of the HO role.
    pub ho: Hyperlink,
}

impl SharedAwsEnv {
    /// Starts an environment and the HO role in it.
    ///
    /// # Errors
    ///
    /// A build fails, or something does not come up.
    pub async fn start() -> Result<Self> {
        let env = AwsEnv::local(Preset::Fast).await?;
        env.create_leases().await?;
        let ho = Hyperlink::start_on_aws(&env, Role::Ho, "ho", &FLAGS).await?;
        Ok(Self { env, ho })
    }

    /// Creates a cluster and waits until its endpoint service is available.
    ///
    /// # Errors
    ///
    /// It is not in time; the error holds the conditions.
    pub async fn lives(&self, name: &str) -> Result<AwsHostedCluster> {
        let cluster = AwsHostedCluster::new(name);
        cluster.create(&self.env).await?;
        cluster.gets_endpoint_service(&self.env, SOON).await?;
        Ok(cluster)
    }

    /// Fails if the log holds a secret of an identity, a session token or a signature.
    ///
    /// # Errors
    ///
    /// It does; the error has the line.
    pub fn no_secret_in_log(&self) -> Result<()> {
        let log = std::fs::read_to_string(self.ho.process().log())?;
        let secret = aws_sim::HO.secret();
        let words = [secret.as_str(), "eyJ", "AWS4-HMAC-SHA256", "SessionToken"];
        let found = log.lines().find(|line| words.iter().any(|word| line.contains(word)));
        ensure!(found.is_none(), "a secret in the log: {found:?}");
        Ok(())
    }
}

/// Runs one test on the shared environment, and then checks that the log holds no secret.
pub fn situation<F: Future<Output = Result<()>>>(test: impl FnOnce(&'static SharedAwsEnv) -> F) {
    static SHARED_ENV: OnceCell<SharedAwsEnv> = OnceCell::const_new();
    run(async {
        let shared_env = SHARED_ENV.get_or_try_init(SharedAwsEnv::start).await?;
        shared_env.env.oracle().advance(REFILL).await?;
        test(shared_env).await?;
        shared_env.no_secret_in_log()
    });
}
