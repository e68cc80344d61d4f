//! Our definition of AWSEndpointService against the real one, key by key, and HyperShift's objects on AWS as they are
//! read.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use hyperlink::api::hypershift::{EndpointAccess, PlatformType};
use hyperlink::api::{AWSEndpointService, HostedCluster, HostedControlPlane, NodePool};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::schema;

/// The definition's name for lists, which the API server derives where it is absent.
const DERIVED: &str = "/names/listKind";

fn documents(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let documents = text.split("\n---\n").map(serde_saphyr::from_str);
    documents
        .collect::<Result<_, _>>()
        .with_context(|| format!("parse {}", path.display()))
}

/// The only object of this kind in a file.
fn object<K: DeserializeOwned>(path: &Path, kind: &str) -> Result<K> {
    let found = documents(path)?.into_iter().find(|document| document["kind"] == kind);
    Ok(serde_json::from_value(found.with_context(|| format!("no {kind}"))?)?)
}

#[test]
fn schemas_on_aws_are_equal_key_by_key() -> Result<()> {
    let Some(directory) = e2e::reference::directory("hypershift-crds") else {
        e2e::scenario::skipped("the real definition of AWSEndpointService is not at hand");
        return Ok(());
    };
    let real = documents(&directory.join("awsendpointservices.crd.yaml"))?.remove(0);
    // Numbers are spelled as Kubernetes' own type has them.
    let real: CustomResourceDefinition = serde_json::from_value(real)?;
    let real = serde_json::to_value(real)?;
    let own = serde_json::to_value(hyperlink::api::aws_crd())?;
    let different = schema::differences(&real["spec"], &own["spec"]);
    let different: Vec<_> = different.iter().filter(|line| !line.starts_with(DERIVED)).collect();
    ensure!(different.is_empty(), "{different:#?}");
    Ok(())
}

#[test]
fn objects_on_aws_are_read() -> Result<()> {
    let Some(samples) = e2e::reference::directory("hypershift-crds/samples") else {
        e2e::scenario::skipped("no sample objects of HyperShift");
        return Ok(());
    };
    let hosted = samples.join("hostedcluster-aws-private.yaml");
    let cluster: HostedCluster = object(&hosted, "HostedCluster")?;
    let plane: HostedControlPlane = object(
        &samples.join("hostedcontrolplane-aws-private.yaml"),
        "HostedControlPlane",
    )?;
    for spec in [cluster.spec, plane.spec] {
        ensure!(spec.platform.kind == Some(PlatformType::Aws), "{spec:?}");
        let aws = spec.aws().context("no platform.aws")?;
        ensure!(aws.access() == EndpointAccess::Private, "{aws:?}");
        ensure!(aws.vpc().is_some() && aws.region.is_some(), "{aws:?}");
        ensure!(aws.roles_ref.control_plane_operator_arn.is_some(), "{aws:?}");
        ensure!(aws.additional_allowed_principals.len() == 1, "{aws:?}");
        ensure!(spec.networking.machine_network.len() == 1, "{spec:?}");
    }
    let pool: NodePool = object(&hosted, "NodePool")?;
    let nodes = pool.spec.platform.aws.context("no platform.aws")?;
    ensure!(nodes.subnet.id.is_some() && !nodes.subnet.has_filters, "{nodes:?}");
    let file = samples.join("awsendpointservice-private-router.yaml");
    let cr: AWSEndpointService = object(&file, "AWSEndpointService")?;
    ensure!(
        cr.spec.resource_tags.len() == 1 && cr.spec.subnet_ids.len() == 1,
        "{cr:?}"
    );
    let status = cr.status.context("no status")?;
    ensure!(
        status.conditions.len() == 2 && status.dns_names.len() == 2,
        "{status:?}"
    );
    Ok(())
}
