//! How much memory role HO needs for many AWSEndpointServices, each in a namespace of its own.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;

use super::super::figures::Figure;
use super::super::objects::{create, reconcile_count};
use super::super::{PATIENCE, mebibytes};
use super::start_ho;
use crate::AwsEnv;
use crate::azure_sim::Preset;
use crate::hosted_cluster::{NAMESPACE, ROUTER};
use crate::wait::eventually;

/// How many custom resources.
const OBJECTS: usize = 1_000;
/// How much memory (MiB) the process may need with them.
const MEMORY: f64 = 35.0;
/// How many writes run at the same time.
const AT_ONCE: usize = 16;

/// Measures a process with many custom resources.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Vec<Figure>> {
    eprintln!("{OBJECTS} custom resources on AWS");
    let env = AwsEnv::local(preset).await?;
    let client = env.client()?;
    let made = (0..OBJECTS).map(|number| make(&client, number));
    stream::iter(made).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    let ho = start_ho(program, &env, "", &[]).await?;
    eventually("every object has had a reconcile", PATIENCE, || async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (_, metrics) = ho.page("/metrics").await?;
        let reconciles: f64 = metrics.lines().filter_map(reconcile_count).sum();
        ensure!(reconciles >= OBJECTS as f64, "{reconciles} reconciles");
        Ok(())
    })
    .await?;
    let rss = mebibytes(ho.process().rss().context("no VmRSS")?);
    ho.stop().await?;
    let name = format!("AWS, RSS of ho, {OBJECTS} custom resources");
    Ok(vec![Figure::new(name, rss, "MiB", MEMORY)])
}

async fn make(client: &kube::Client, number: usize) -> Result<()> {
    let cluster = format!("object{number}");
    let namespace = format!("{NAMESPACE}-{cluster}");
    let object = json!({"metadata": {"name": namespace}});
    create(client, ("", "v1", "Namespace"), None, object).await?;
    let object = json!({
        "metadata": {"name": ROUTER,
            "annotations": {"hypershift.openshift.io/cluster": format!("{NAMESPACE}/{cluster}")}},
        "spec": {"networkLoadBalancerName": format!("a{number:031}"),
            "resourceTags": [{"key": "team", "value": cluster}]},
    });
    let kind = ("hypershift.openshift.io", "v1beta1", "AWSEndpointService");
    create(client, kind, Some(&namespace), object).await
}
