//! The simulated Azure under load.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;

use super::client::{Connection, Target};
use super::objects::{self, Cluster, seed};
use super::{BUSY, CLUSTERS, Load};
use crate::bench::figures::Figure;

/// How many connections are open at the same time.
const OPEN: usize = 1000;

/// Measures the simulator under load.
///
/// # Errors
///
/// The simulator does not come up, or a call is refused.
pub async fn run() -> Result<Vec<Figure>> {
    const MIXED: [Kind; 6] = [Kind::Read, Kind::Read, Kind::Read, Kind::Read, Kind::Read, Kind::Write];
    let mut load = Load::start("armsim", &seed(CLUSTERS)).await?;
    let mut target = Target::new(load.printed("arm")?, load.printed("ca")?.as_ref())?;
    target.authorization = format!("Bearer {}", token(&target).await?);
    let target = Arc::new(target);
    load.memory("with 500 clusters", false)?;
    for (what, goal, kinds) in [
        ("reads", 5000.0, &[Kind::Read][..]),
        ("writes", 1000.0, &[Kind::Write]),
        ("reads and writes", 6000.0, &MIXED),
    ] {
        load.calls(what, goal, |at, until| busy(Arc::clone(&target), kinds, at, until))
            .await?;
    }
    load.memory("after the load", true)?;
    crowd(&mut load, &target).await?;
    load.idle().await?;
    Ok(load.figures)
}

#[derive(Clone, Copy)]
enum Kind {
    Read,
    Write,
}

/// Opens many connections, makes one call on each at the same time, and holds them open.
async fn crowd(load: &mut Load, target: &Arc<Target>) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    setrlimit(Resource::Nofile, Rlimit { current, ..limit })?;
    eprintln!("armsim, {OPEN} connections");
    let mut open = Vec::new();
    for _ in 0..OPEN {
        open.push(Connection::open(Arc::clone(target)).await?);
    }
    let calls = open.iter_mut().enumerate().map(|(at, connection)| async move {
        connection
            .good("GET", &Cluster(at % CLUSTERS).read(at), Bytes::new())
            .await
    });
    let answered = futures::future::join_all(calls).await;
    let good = answered.iter().filter(|answer| answer.is_ok()).count();
    load.figures.push(Figure::at_least(
        "armsim, connections at once, all answered",
        good as f64,
        "",
        OPEN as f64,
    ));
    load.memory("with 1000 connections", true)
}

async fn token(target: &Target) -> Result<String> {
    let (tenant, client, secret) = (objects::TENANT, objects::CLIENT, objects::SECRET);
    let mut connection = Connection::open(Arc::new(target.clone())).await?;
    let form = format!(
        "grant_type=client_credentials&client_id={client}&client_secret={secret}&scope=https%3A%2F%2Fmanagement.azure.com%2F.default"
    );
    let path = format!("/{tenant}/oauth2/v2.0/token");
    let answer: Value = serde_json::from_slice(&connection.good("POST", &path, form.into()).await?)?;
    Ok(answer["access_token"].as_str().context("a token")?.to_owned())
}

async fn busy(target: Arc<Target>, kinds: &'static [Kind], at: usize, until: Instant) -> Result<Vec<Duration>> {
    let mut connection = Connection::open(target).await?;
    let mut times = Vec::new();
    let mut writes = 0;
    for round in 0.. {
        // Connections with adjacent numbers never use the same cluster.
        let cluster = Cluster((round * BUSY + at) % CLUSTERS);
        let (method, path, body) = match kinds[round % kinds.len()] {
            Kind::Read => ("GET", cluster.read(round), Bytes::new()),
            Kind::Write => {
                writes += 1;
                let (path, body) = cluster.write(writes);
                ("PUT", path, Bytes::from(body.to_string()))
            }
        };
        let began = Instant::now();
        connection.good(method, &path, body).await?;
        times.push(began.elapsed());
        if Instant::now() >= until {
            break;
        }
    }
    Ok(times)
}
