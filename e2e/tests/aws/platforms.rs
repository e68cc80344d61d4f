//! One process of a role for clusters on both clouds.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use e2e::aws_cluster::AwsHostedCluster;
use e2e::aws_sim::{SHARED_ENDPOINTS_ROLE, SHARED_RECORDS_ROLE, share_vpcs};
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::{HostedCluster, NAMESPACE, conditions};
use e2e::hyperlink::{Hyperlink, Role, allow_guest_subscription};
use e2e::{AwsEnv, TestEnv, eventually, scenario};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::SOON;

const FLAGS: [(&str, &str); 2] = [("resync", "3s"), ("record-resync", "3s")];

/// Both clouds, with a cluster on each.
struct Clouds {
    azure: TestEnv,
    aws: AwsEnv,
    on_azure: HostedCluster,
    on_aws: AwsHostedCluster,
}

impl Clouds {
    async fn start(name: &str) -> Result<Self> {
        Self::start_with(name, |_| {}).await
    }

    /// Starts both with a changed seed of the simulated AWS.
    async fn start_with(name: &str, change: impl FnOnce(&mut Value)) -> Result<Self> {
        let azure = TestEnv::local(Preset::Fast).await?;
        let aws = AwsEnv::beside(&azure, Preset::Fast, change).await?;
        Ok(Self {
            on_azure: HostedCluster::new(&azure, &format!("{name}-azure")),
            on_aws: AwsHostedCluster::new(&format!("{name}-aws")),
            azure,
            aws,
        })
    }

    /// Starts a role, with these flags too.
    async fn role(&self, role: Role, name: &str, more: &[(&str, &str)]) -> Result<Hyperlink> {
        let flags = [&FLAGS, more].concat();
        Hyperlink::start_on_both(&self.azure, &self.aws, role, name, &flags).await
    }

    /// Starts role `cpo` for both clusters, each of which has a namespace of its own.
    async fn guest_sides(&self) -> Result<[Hyperlink; 2]> {
        let (on_azure, on_aws) = (
            self.on_azure.control_plane_namespace(),
            self.on_aws.control_plane_namespace(),
        );
        Ok([
            self.role(Role::Cpo, "cpo-azure", &[("namespace", &on_azure)]).await?,
            self.role(Role::Cpo, "cpo-aws", &[("namespace", &on_aws)]).await?,
        ])
    }

    async fn create_on_aws(&self) -> Result<()> {
        self.on_aws.create_objects(&self.aws).await
    }

    async fn is_up_on_azure(&self) -> Result<()> {
        self.on_azure.becomes_available(&self.azure, SOON).await?;
        self.on_azure.becomes_reachable(&self.azure, SOON).await
    }

    async fn is_up_on_aws(&self) -> Result<()> {
        self.on_aws.becomes_available(&self.aws, SOON).await
    }

    /// Deletes both clusters, which have to leave nothing in the clouds.
    async fn delete(&self) -> Result<()> {
        self.on_azure.delete(&self.azure, SOON).await?;
        self.on_aws.delete(&self.aws, SOON).await?;
        for kind in ["vpc-endpoint-service", "vpc-endpoint", "security-group"] {
            let mut left = self.aws.oracle().resources_of(kind).await?;
            // Every VPC has a group that nobody made.
            left.retain(|one| one["name"] != "default");
            ensure!(left.is_empty(), "{left:?}");
        }
        e2e::shared_env::nothing_is_left_of(&self.azure, &self.on_azure, &[]).await
    }
}

#[test]
fn one_process_serves_clusters_on_both_clouds() {
    scenario(async {
        let clouds = Clouds::start("both").await?;
        clouds.aws.install_kinds().await?;
        let ho = clouds.role(Role::Ho, "ho", &[]).await?;
        ho.ready(SOON).await?;
        let guests = clouds.guest_sides().await?;
        clouds.on_azure.create(&clouds.azure).await?;
        clouds.create_on_aws().await?;
        clouds.is_up_on_azure().await?;
        clouds.is_up_on_aws().await?;
        clouds.delete().await?;
        for process in guests.into_iter().chain([ho]) {
            process.stop().await?;
        }
        Ok(())
    });
}

/// The operator's file for a guest side of both. The roles of a shared VPC trust that of the process.
fn file_for_both(clouds: &Clouds) -> Result<PathBuf> {
    let aws = json!({"roleARN": SHARED_ENDPOINTS_ROLE, "recordsRoleARN": SHARED_RECORDS_ROLE,
        "vpcIDs": [clouds.on_aws.vpc()], "hostedZoneIDs": [clouds.on_aws.zone()]});
    let on_aws = json!({"namespace": NAMESPACE, "names": [clouds.on_aws.name()], "aws": aws});
    let mut file = allow_guest_subscription(&clouds.azure);
    file["hostedClusters"]
        .as_array_mut()
        .context("no entries")?
        .push(on_aws);
    let path = clouds.aws.dir().join("allow-scopes-of-both.json");
    std::fs::write(&path, file.to_string())?;
    Ok(path)
}

#[test]
fn one_file_and_one_process_serve_many_on_both_clouds() {
    scenario(async {
        let mut shared = Ok(());
        let mut clouds = Clouds::start_with("many", |seed| shared = share_vpcs(seed)).await?;
        shared?;
        clouds.on_aws = clouds.on_aws.with_shared_vpc();
        clouds.aws.install_kinds().await?;
        let file = file_for_both(&clouds)?;
        let ho = clouds.role(Role::Ho, "ho", &[]).await?;
        let cpo = clouds
            .role(Role::Cpo, "cpo", &[("allow-scopes", &file.to_string_lossy())])
            .await?;
        cpo.ready(SOON).await?;
        clouds.on_azure.create(&clouds.azure).await?;
        clouds.create_on_aws().await?;
        clouds.is_up_on_azure().await?;
        clouds.is_up_on_aws().await?;
        clouds.delete().await?;
        for process in [cpo, ho] {
            process.stop().await?;
        }
        Ok(())
    });
}

#[test]
fn kinds_of_one_cloud_may_come_later() {
    scenario(async {
        let clouds = Clouds::start("later").await?;
        let ho = clouds.role(Role::Ho, "ho", &[]).await?;
        let guests = clouds.guest_sides().await?;
        clouds.on_azure.create(&clouds.azure).await?;
        clouds.is_up_on_azure().await?;
        clouds.aws.install_kinds().await?;
        clouds.create_on_aws().await?;
        clouds.is_up_on_aws().await?;
        clouds.delete().await?;
        for process in guests.into_iter().chain([ho]) {
            process.stop().await?;
        }
        Ok(())
    });
}

#[test]
fn credentials_of_one_cloud_may_be_wrong_at_first() {
    scenario(async {
        let clouds = Clouds::start("keyless").await?;
        clouds.aws.install_kinds().await?;
        let file = clouds.aws.dir().join("credentials-to-correct");
        let unknown = "[default]\naws_access_key_id = AKIANOBODY\naws_secret_access_key = nothing\n";
        std::fs::write(&file, unknown)?;
        let path = file.to_string_lossy();
        let ho = clouds.role(Role::Ho, "ho", &[("aws-credentials-file", &path)]).await?;
        let guests = clouds.guest_sides().await?;
        clouds.on_azure.create(&clouds.azure).await?;
        clouds.is_up_on_azure().await?;
        clouds.create_on_aws().await?;
        eventually("the cluster on AWS waits", SOON, async || {
            let found = clouds
                .on_aws
                .get_custom_resource(&clouds.aws.client()?)
                .await?
                .context("none")?;
            let is_available = conditions(&found).iter().any(|one| one.status == "True");
            ensure!(!is_available, "{} is available", found.name_any());
            Ok(())
        })
        .await?;
        std::fs::copy(&clouds.aws.credentials().ho, &file)?;
        clouds.is_up_on_aws().await?;
        clouds.delete().await?;
        for process in guests.into_iter().chain([ho]) {
            process.stop().await?;
        }
        Ok(())
    });
}

#[test]
fn cluster_on_aws_is_served_without_a_credential_for_azure() {
    scenario(async {
        let clouds = Clouds::start("half").await?;
        clouds.aws.install_kinds().await?;
        let nobody = ("authority", "https://127.0.0.1:9/");
        let ho = clouds.role(Role::Ho, "ho", &[nobody]).await?;
        let cpo = clouds.on_aws.control_plane_namespace();
        let cpo = clouds
            .role(Role::Cpo, "cpo-aws", &[("namespace", &cpo), nobody])
            .await?;
        clouds.create_on_aws().await?;
        clouds.is_up_on_aws().await?;
        clouds.on_aws.delete(&clouds.aws, SOON).await?;
        for process in [ho, cpo] {
            process.stop().await?;
        }
        Ok(())
    });
}
