//! One private cluster's life on the program of the image, as restricted as a pod can be.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::{self, Hyperlink, Role};
use e2e::pki::Authority;
use e2e::test_env::Credential;
use e2e::{TestEnv, roles, scenario};

use crate::pod::{Pod, is_restricted};
use e2e::node::images::{self, HYPERLINK};

const SOON: Duration = Duration::from_secs(120);

/// Intervals at which ready resources are read.
pub(crate) const RESYNC: [(&str, &str); 2] = [("resync", "2s"), ("record-resync", "2s")];

#[test]
fn private_cluster_lives_on_the_image() {
    scenario(async {
        let Some(built) = images::built(HYPERLINK)? else {
            return Ok(());
        };
        let (Some(ho_pod), Some(cpo_pod)) = (Pod::new(&built)?, Pod::new(&built)?) else {
            return Ok(());
        };
        let test_env = TestEnv::local(Preset::Fast).await?;
        let ca = believes_the_system_alone(&test_env, &ho_pod)?;
        let ho = start(&test_env, &ho_pod, Role::Ho, &test_env.azure().ho, &ca).await?;
        let ca = cpo_pod.put(ca_file(&test_env)?)?;
        let cpo = start(&test_env, &cpo_pod, Role::Cpo, &test_env.azure().cpo, &ca).await?;
        is_restricted(ho.process())?;
        is_restricted(cpo.process())?;
        lives_and_is_deleted(&test_env, "imaged").await?;
        ho.stop().await?;
        cpo.stop().await
    });
}

/// Adds the authority of the simulated Azure to the certificates of the image, as operators with an authority of their
/// own do. Returns another authority for the flag, so that the program has to use the certificates of the image.
fn believes_the_system_alone(test_env: &TestEnv, pod: &Pod) -> Result<PathBuf> {
    let certificates = pod.image().root.join("etc/ssl/certs/ca-certificates.crt");
    let mut certificates = OpenOptions::new().append(true).open(certificates)?;
    certificates.write_all(&std::fs::read(ca_file(test_env)?)?)?;
    let other = Authority::new(&pod.volume())?;
    Ok(Path::new("/volume").join(other.file().file_name().context("no file")?))
}

fn ca_file(test_env: &TestEnv) -> Result<&Path> {
    let file = test_env.azure().ca_file.as_deref();
    file.context("the simulated Azure has a CA of its own")
}

async fn start(test_env: &TestEnv, pod: &Pod, role: Role, credential: &Credential, ca: &Path) -> Result<Hyperlink> {
    let account = test_env
        .control_plane()
        .service_account(roles::NAMESPACE, role.as_str());
    let kubeconfig = pod.put(account.await?.path())?;
    let credential = match credential {
        Credential::SecretFile { path } => Credential::SecretFile { path: pod.put(path)? },
        Credential::WorkloadIdentity {
            tenant,
            client,
            token_file,
        } => Credential::WorkloadIdentity {
            tenant: tenant.clone(),
            client: client.clone(),
            token_file: pod.put(token_file)?,
        },
    };
    let scopes = pod.volume().join("allow-scopes.json");
    std::fs::write(scopes, hyperlink::allow_guest_subscription(test_env).to_string())?;
    let ca = ca.to_string_lossy();
    let mut flags = vec![("ca-file", &*ca)];
    flags.extend(RESYNC);
    if role == Role::Cpo {
        flags.push(("allow-scopes", "/volume/allow-scopes.json"));
    }
    Hyperlink::start_as(
        pod.command(),
        test_env,
        role,
        role.as_str(),
        &kubeconfig,
        &credential,
        &flags,
    )
    .await
}

/// Fails unless a cluster becomes available, is repaired and is deleted, and leaves nothing behind.
pub(crate) async fn lives_and_is_deleted(test_env: &TestEnv, name: &str) -> Result<()> {
    let before = test_env.resource_ids().await?;
    let cluster = HostedCluster::new(test_env, name).with_base_domain("apps.example.com");
    cluster.create(test_env).await?;
    cluster.becomes_available(test_env, SOON).await?;
    cluster.becomes_reachable(test_env, SOON).await?;
    test_env.oracle().drift_delete(&cluster.endpoint()).await?;
    cluster.becomes_reachable(test_env, SOON).await?;
    cluster.delete(test_env, SOON).await?;
    let mut left = test_env.resource_ids().await?;
    left.retain(|id| !before.contains(id));
    for id in [cluster.resource_group(), cluster.vnet(), cluster.subnet()] {
        ensure!(left.remove(&id.to_lowercase()), "{id} is gone");
    }
    ensure!(left.is_empty(), "left behind: {left:?}");
    Ok(())
}
