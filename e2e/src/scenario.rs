//! How a test of this crate runs: its runtime, its TLS provider, and how it fails or is skipped.

use std::future::Future;
use std::io::Write;
use std::sync::Once;

use crate::run_dir::OfTest;

/// Runs one test to its end and panics with the whole chain of causes if it fails.
///
/// The panic makes [`crate::run_dir`] keep the logs, so tests return their errors to this function and not to the test
/// harness.
///
/// # Panics
///
/// When the test fails.
pub fn scenario<F: Future<Output = anyhow::Result<()>>>(test: F) {
    install_tls_provider();
    let _of_test = OfTest::begin();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(test),
        Err(error) => Err(error.into()),
    };
    if let Err(error) = outcome {
        panic!("{error:#}");
    }
}

/// Installs the TLS provider of the whole process. kube and reqwest panic without one.
pub fn install_tls_provider() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // This fails only if a provider is installed already.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    });
}

/// Reports that the running test is skipped, in the form that `.ci/run` counts: once per test.
///
/// The line goes directly to standard error, because the test harness hides the output of tests that succeed.
pub fn skipped(reason: &str) {
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: {reason}");
}
