//! How much memory many custom resources need, each in a namespace of its own, and how much processor time a start.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::figures::Figure;
use super::{PATIENCE, mebibytes, start, stop, test_env};
use crate::azure_sim::Preset;
use crate::hosted_cluster::{NAMESPACE, ROUTER};
use crate::hyperlink::Hyperlink;
use crate::test_env::TestEnv;
use crate::wait::eventually;

/// How many custom resources.
const SIZES: [usize; 4] = [1_000, 5_000, 10_000, 50_000];
/// How much memory (MiB) a process may need for each thousand of them.
const MEMORY: f64 = 25.0;
/// How much processor time (s) a start may need for each thousand of them.
const PROCESSOR: f64 = 1.0;
/// The time between two scrapes, as in the chart's monitors. Each costs as much processor time as many reconciles.
const SCRAPES: Duration = Duration::from_secs(30);
/// How many writes run at the same time.
const AT_ONCE: usize = 16;

/// Measures processes with many custom resources.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Vec<Figure>> {
    let test_env = test_env(preset, &json!({})).await?;
    let client = test_env.client()?;
    let (mut figures, mut existing) = (Vec::new(), 0);
    for objects in SIZES {
        eprintln!("{objects} custom resources");
        let made = (existing..objects).map(|number| make(&client, &test_env, number));
        stream::iter(made).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        existing = objects;
        let processes = start(program, &test_env, &format!("-{objects}"), &[]).await?;
        for hyperlink in &processes {
            figures.extend(measured(hyperlink, objects).await?);
        }
        stop(processes).await?;
    }
    Ok(figures)
}

async fn measured(hyperlink: &Hyperlink, objects: usize) -> Result<[Figure; 6]> {
    let reconciles = eventually("every object has had a reconcile", PATIENCE, || async {
        tokio::time::sleep(SCRAPES).await;
        let (_, metrics) = hyperlink.page("/metrics").await?;
        let reconciles: f64 = metrics.lines().filter_map(reconcile_count).sum();
        ensure!(reconciles >= objects as f64, "{reconciles} reconciles");
        Ok(reconciles)
    })
    .await?;
    let rss = hyperlink.process().rss().context("no VmRSS")?;
    let processor = || hyperlink.process().processor_time().context("no times");
    let of_start = processor()?;
    let thousands = objects as f64 / 1_000.0;
    let began = Instant::now();
    let (_, metrics) = hyperlink.page("/metrics").await?;
    let elapsed = began.elapsed().as_secs_f64() * 1_000.0;
    let of_page = (processor()? - of_start).as_secs_f64() * 1_000.0;
    let name = |what: &str| format!("{what} of {}, {objects} custom resources", hyperlink.role());
    Ok([
        Figure::new(name("RSS"), mebibytes(rss), "MiB", MEMORY * thousands),
        Figure::new(
            name("processor time of a start"),
            of_start.as_secs_f64(),
            "s",
            PROCESSOR * thousands,
        ),
        // A start that lasts longer than a round of resync has more than one for each.
        Figure::without_goal(
            name("processor time for 1,000 reconciles"),
            of_start.as_secs_f64() * 1_000.0 / reconciles,
            "s",
        ),
        Figure::without_goal(name("page of metrics"), mebibytes(metrics.len() as u64), "MiB"),
        Figure::without_goal(name("time for a page of metrics"), elapsed, "ms"),
        Figure::without_goal(name("processor time for a page of metrics"), of_page, "ms"),
    ])
}

/// The value of a line of metrics that counts reconciles of custom resources.
pub(super) fn reconcile_count(line: &str) -> Option<f64> {
    let (_, value) = line.strip_prefix("hyperlink_reconcile_total{")?.rsplit_once(' ')?;
    value.parse().ok()
}

async fn make(client: &kube::Client, test_env: &TestEnv, number: usize) -> Result<()> {
    let (cluster, azure) = (format!("object{number}"), test_env.azure());
    let namespace = format!("{NAMESPACE}-{cluster}");
    create(
        client,
        ("", "v1", "Namespace"),
        None,
        json!({"metadata": {"name": namespace}}),
    )
    .await?;
    let network = format!(
        "/subscriptions/{}/resourceGroups/{cluster}/providers/Microsoft.Network/virtualNetworks/{cluster}",
        azure.guest_subscription
    );
    let object = json!({
        "metadata": {"name": ROUTER,
            "annotations": {"hypershift.openshift.io/cluster": format!("{NAMESPACE}/{cluster}")}},
        "spec": {"subscriptionID": azure.guest_subscription, "resourceGroupName": cluster, "location": azure.location,
            "loadBalancerIP": "10.224.0.4", "baseDomain": format!("{cluster}.example.com"),
            "guestVNetID": network, "guestSubnetID": format!("{network}/subnets/default")},
    });
    let kind = ("hypershift.openshift.io", "v1beta1", "AzurePrivateLinkService");
    create(client, kind, Some(&namespace), object).await
}

pub(super) async fn create(
    client: &kube::Client,
    (group, version, kind): (&str, &str, &str),
    namespace: Option<&str>,
    object: Value,
) -> Result<()> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let mut object: DynamicObject = serde_json::from_value(object)?;
    object.types = Some(kube::core::TypeMeta {
        api_version: resource.api_version,
        kind: resource.kind,
    });
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}
