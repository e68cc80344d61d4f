//! The test environment that the tests of a test program share. Each test has clusters and namespaces of its own.

use std::future::Future;

use anyhow::Result;
use tokio::sync::OnceCell;

use super::CapzEnv;
use crate::azure_sim::Preset;
use crate::shared_env::run;

/// Simulated seconds after which Azure's request budgets suffice for one more test.
const REFILL: u32 = 300;

/// Runs one test on the shared environment, in which no Hyperlink runs.
pub fn situation<F: Future<Output = Result<()>>>(test: impl FnOnce(&'static CapzEnv) -> F) {
    static SHARED_ENV: OnceCell<CapzEnv> = OnceCell::const_new();
    run(async {
        let env = SHARED_ENV.get_or_try_init(|| CapzEnv::local(Preset::Fast)).await?;
        env.advance(REFILL).await?;
        test(env).await
    });
}
