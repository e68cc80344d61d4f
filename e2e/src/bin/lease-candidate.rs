//! A candidate for a lease that prints each time its gate is open. It is a process of its own, so that tests can stop
//! and continue it.
//!
//! `lease-candidate KUBECONFIG NAMESPACE LEASE IDENTITY DURATION_MS RENEW_DEADLINE_MS RETRY_MS` asks the gate every
//! millisecond. It prints `open T` when the gate is open, where T is when it asked (microseconds of the wall clock). It
//! exits with 1 when it has lost the lease.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use e2e::kubeconfig::Access;
use hyperlink::runtime::leader::{Elector, LeaderGate, LeaseSettings, LeaseTimes};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<ExitCode> {
    e2e::scenario::install_tls_provider();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kubeconfig, namespace, name, identity, times @ ..] = args.as_slice() else {
        bail!("usage: lease-candidate KUBECONFIG NAMESPACE LEASE IDENTITY DURATION_MS RENEW_DEADLINE_MS RETRY_MS")
    };
    let times: Vec<_> = times
        .iter()
        .map(|ms| ms.parse().map(Duration::from_millis))
        .collect::<Result<_, _>>()?;
    let [duration, renew_deadline, retry] = times[..] else {
        bail!("three times are needed")
    };
    let settings = LeaseSettings {
        name: name.clone(),
        namespace: namespace.clone(),
        identity: identity.clone(),
        shared: false,
        times: LeaseTimes {
            duration,
            renew_deadline,
            retry,
        },
    };
    let elector = Elector::new(Access::read(Path::new(kubeconfig), None).await?.config(), settings)?;
    let gate = elector.gate();
    std::thread::spawn(move || ask(&gate));
    let mut leadership = elector.lead(CancellationToken::new()).await.context("not stopped")?;
    leadership.lost().await;
    Ok(ExitCode::from(1))
}

/// Asks the gate on a thread of its own, so that it does not depend on what the runtime notices, and when.
fn ask(gate: &LeaderGate) {
    loop {
        let asked = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if gate.open() {
            println!("open {}", asked.as_micros());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
