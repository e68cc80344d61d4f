//! The benchmark on AWS: one hosted cluster's life, many custom resources, and many clusters of one account at once.

mod crowd;
mod life;
mod objects;

use std::path::Path;

use anyhow::{Context, Result};

use super::{Report, SOON};
use crate::AwsEnv;
use crate::aws_cluster::AwsHostedCluster;
use crate::azure_sim::Preset;
use crate::hyperlink::aws::lease;
use crate::hyperlink::{Hyperlink, Role};

/// Measures one cluster's life, then many custom resources.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Report> {
    let mut report = life::run(preset, program).await?;
    report.figures.extend(objects::run(preset, program).await?);
    Ok(report)
}

/// Measures many clusters of one account at once.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run_crowd(preset: Preset, program: &Path) -> Result<Report> {
    crowd::run(preset, program).await
}

/// Starts role HO, and waits until it leads.
async fn start_ho(program: &Path, env: &AwsEnv, suffix: &str, flags: &[(&str, &str)]) -> Result<Hyperlink> {
    start(program, env, (Role::Ho, &format!("ho{suffix}")), None, flags).await
}

/// Starts role CPO for one cluster, and waits until it leads.
async fn start_cpo(
    program: &Path,
    env: &AwsEnv,
    cluster: &AwsHostedCluster,
    suffix: &str,
    flags: &[(&str, &str)],
) -> Result<Hyperlink> {
    let name = format!("cpo-{}{suffix}", cluster.name());
    let namespace = cluster.control_plane_namespace();
    start(program, env, (Role::Cpo, &name), Some(&namespace), flags).await
}

async fn start(
    program: &Path,
    env: &AwsEnv,
    (role, name): (Role, &str),
    namespace: Option<&str>,
    flags: &[(&str, &str)],
) -> Result<Hyperlink> {
    env.create_lease(&lease(role, namespace)).await?;
    let namespace = namespace.map(|namespace| ("namespace", namespace));
    let flags: Vec<_> = namespace.into_iter().chain(flags.iter().copied()).collect();
    let process = Hyperlink::start_program_on_aws(program, env, role, name, &flags).await?;
    process.ready(SOON).await?;
    process.leading(SOON).await?;
    Ok(process)
}

/// How many resources there are in AWS that a role has created: endpoint services, endpoints, security groups, records.
async fn created(env: &AwsEnv) -> Result<usize> {
    let mut created = 0;
    for resource in env.oracle().resources("arn:").await? {
        let arn = resource["id"].as_str().context("a resource without an id")?;
        let records = resource["records"].as_array().into_iter().flatten();
        created += records.filter(|record| record["type"] == "CNAME").count();
        let is_group = arn.contains(":security-group/") && resource["name"] != "default";
        let is_live = |kind| arn.contains(kind) && resource["state"] != "deleted";
        created += usize::from(is_group || is_live(":vpc-endpoint/") || is_live(":vpc-endpoint-service/"));
    }
    Ok(created)
}
