//! The simulated AWS under load. Each request is signed once, so that the simulator alone has the work of signatures.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;

use super::aws_objects::{Cluster, seed};
use super::client::{Connection, Target};
use super::{BUSY, CLUSTERS, Load};
use crate::aws_sim::{Caller, GUEST_ADMINISTRATOR};
use crate::bench::figures::Figure;

/// A hundred times as many calls a second as moto answers.
const GOAL: f64 = 3300.0;

type Signed = Request<Full<Bytes>>;

/// Measures the simulator under load.
///
/// # Errors
///
/// The simulator does not come up, or a call is refused.
pub async fn run() -> Result<Vec<Figure>> {
    let mut load = Load::start("awssim", &seed(CLUSTERS)?).await?;
    let (address, ca) = (load.printed("aws")?.to_owned(), load.printed("ca")?.to_owned());
    let target = Arc::new(Target::new(&address, ca.as_ref())?);
    let caller = Caller::user(&address, Path::new(&ca), GUEST_ADMINISTRATOR)?;
    let all = || (0..CLUSTERS).map(Cluster);
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for cluster in all() {
        reads.extend(cluster.reads(&caller)?);
    }
    // Each write changes what the one before it has left.
    for value in ["one", "other"] {
        for cluster in all() {
            writes.push(cluster.write(&caller, value)?);
        }
    }
    load.memory("with 500 clusters", false)?;
    for (what, requests) in [("reads", reads), ("writes", writes)] {
        let requests: Arc<[Signed]> = requests.into();
        let busy = |at, until| busy(Arc::clone(&target), Arc::clone(&requests), at, until);
        load.calls(what, GOAL, busy).await?;
    }
    load.memory("after the load", true)?;
    load.idle().await?;
    Ok(load.figures)
}

async fn busy(target: Arc<Target>, requests: Arc<[Signed]>, at: usize, until: Instant) -> Result<Vec<Duration>> {
    let mut connection = Connection::open(target).await?;
    let mut times = Vec::new();
    // Each connection begins elsewhere, so that no two use the same cluster.
    for request in requests.iter().cycle().skip(at * requests.len() / BUSY) {
        let began = Instant::now();
        let (status, answer) = connection.send(request.clone()).await?;
        times.push(began.elapsed());
        ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&answer));
        if Instant::now() >= until {
            break;
        }
    }
    Ok(times)
}
