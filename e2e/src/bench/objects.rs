//! What many custom resources cost in memory, each in a namespace of its own.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::figures::Figure;
use super::{PATIENCE, ground, mebibytes, start, stop};
use crate::azure_sim::Preset;
use crate::ground::Ground;
use crate::hosted_cluster::{NAMESPACE, ROUTER};
use crate::wait::eventually;

const OBJECTS: usize = 1_000;
/// Writes at the same time.
const AT_ONCE: usize = 16;

/// Measures it.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Vec<Figure>> {
    eprintln!("{OBJECTS} custom resources");
    let ground = ground(preset, &json!({})).await?;
    let client = ground.client()?;
    let made = (0..OBJECTS).map(|number| make(&client, &ground, number));
    stream::iter(made).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    let processes = start(program, &ground, "", &[]).await?;
    let mut figures = Vec::new();
    for hyperlink in &processes {
        eventually("every object has had a pass", PATIENCE, || async {
            let (_, metrics) = hyperlink.page("/metrics").await?;
            let passes: f64 = metrics.lines().filter_map(passes).sum();
            ensure!(passes >= OBJECTS as f64, "{passes} passes");
            Ok(())
        })
        .await?;
        let rss = hyperlink.process().rss().context("no VmRSS")?;
        let name = format!("RSS of {}, {OBJECTS} custom resources", hyperlink.role().as_str());
        figures.push(Figure::new(name, mebibytes(rss), "MiB", 25.0));
    }
    stop(processes).await?;
    Ok(figures)
}

/// The value of a line that counts passes over custom resources.
fn passes(line: &str) -> Option<f64> {
    let (_, value) = line.strip_prefix("hyperlink_passes_total{")?.rsplit_once(' ')?;
    value.parse().ok()
}

async fn make(client: &kube::Client, ground: &Ground, number: usize) -> Result<()> {
    let (cluster, azure) = (format!("object{number}"), ground.azure());
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

async fn create(
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
