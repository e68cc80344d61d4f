//! Servers that cannot be reached: the process stays up, reports which one it waits for, and continues when it answers.

use std::future::Future;
use std::net::SocketAddr;

use anyhow::{Context, Result, anyhow, ensure};
use e2e::azure_sim::Preset;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::kubeconfig::Access;
use e2e::test_env::Credential;
use e2e::{TestEnv, eventually, roles};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams};
use tokio::sync::OnceCell;

use crate::wire::{Nobody, Way};
use e2e::shared_env::{SOON, alone, leases, no_secret_in, run};

/// Waits until `/readyz` fails and its line about `item` is one that RUNBOOK.md quotes; the process has to stay alive.
async fn waits_for(process: &Hyperlink, item: &str) -> Result<()> {
    let what = format!("it waits for {item}");
    process
        .process()
        .until(&what, SOON, async || {
            let (status, text) = process.page("/readyz").await?;
            let mut red = text
                .lines()
                .filter(|line| line.starts_with("[-]") && line.contains(item));
            let tried = !text.contains(&format!("{item}: not tried yet"));
            ensure!(status == 503 && tried, "{status}: {text}");
            e2e::runbook::quotes_line("readyz", red.next().with_context(|| text.clone())?)
        })
        .await?;
    ensure!(process.page("/livez").await?.0 == 200, "it is not alive");
    Ok(())
}

async fn becomes_ready(process: &Hyperlink) -> Result<()> {
    process.ready(SOON).await?;
    process.process().check()?;
    no_secret_in(process)
}

/// Runs a test in an environment that several share: each has a process of its own, and changes nothing that another
/// one needs. A process that does not lead is ready too.
fn in_shared_test_env<F: Future<Output = Result<()>>>(test: impl FnOnce(&'static TestEnv) -> F) {
    static TEST_ENV: OnceCell<TestEnv> = OnceCell::const_new();
    run(async {
        let test_env = TEST_ENV
            .get_or_try_init(|| async {
                let test_env = TestEnv::local(Preset::Fast).await?;
                leases(&test_env).await?;
                anyhow::Ok(test_env)
            })
            .await?;
        test(test_env).await
    });
}

fn address_of(url: &str) -> Result<SocketAddr> {
    let url = url::Url::parse(url)?;
    url.socket_addrs(|| None)?.pop().context("no address")
}

#[test]
fn token_endpoint_refuses() {
    alone(async |test_env| {
        let Credential::SecretFile { path } = &test_env.azure().ho else {
            return Err(anyhow!("not a file"));
        };
        let good = std::fs::read_to_string(path)?;
        std::fs::write(path, good.replace(e2e::azure_sim::HO_SECRET, "wrong-Secret"))?;
        let ho = Hyperlink::start(&test_env, Role::Ho, "ho", &[]).await?;
        waits_for(&ho, "azure token").await?;
        let log = std::fs::read_to_string(ho.process().log())?;
        ensure!(!log.contains("wrong-Secret"), "the secret is in the log");
        ensure!(
            !ho.page("/readyz").await?.1.contains("wrong-Secret"),
            "the secret is on the page"
        );
        std::fs::write(path, good)?;
        becomes_ready(&ho).await
    });
}

#[test]
fn arm_refuses_connections() {
    in_shared_test_env(async |test_env| {
        let nobody = Nobody::bind()?;
        let flags = [("arm-endpoint", format!("https://{}", nobody.address()?))];
        let cpo = start(test_env, Role::Cpo, "cpo-refused", &flags).await?;
        waits_for(&cpo, "azure resource manager").await?;
        let _way = Way::open_at(nobody, address_of(&test_env.azure().arm)?)?;
        becomes_ready(&cpo).await
    });
}

#[test]
fn arm_is_a_black_hole() {
    in_shared_test_env(async |test_env| {
        let way = Way::black_hole(address_of(&test_env.azure().arm)?).await?;
        let flags = [("arm-endpoint", format!("https://{}", way.address()))];
        let cpo = start(test_env, Role::Cpo, "cpo-in-the-dark", &flags).await?;
        waits_for(&cpo, "azure resource manager").await?;
        way.open();
        becomes_ready(&cpo).await
    });
}

#[test]
fn custom_resource_definition_is_not_installed() {
    alone(async |test_env| {
        let client = test_env.client()?;
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let name = "azureprivatelinkservices.hypershift.openshift.io";
        let mut definition = definitions.get(name).await?;
        definitions.delete(name, &DeleteParams::default()).await?;
        eventually("the definition is gone", SOON, || async {
            ensure!(definitions.get_opt(name).await?.is_none(), "it is there");
            Ok(())
        })
        .await?;
        let ho = Hyperlink::start(&test_env, Role::Ho, "ho", &[]).await?;
        let cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", &[]).await?;
        waits_for(&ho, "custom resource definition").await?;
        waits_for(&cpo, "custom resource definition").await?;
        definition.metadata.resource_version = None;
        definition.metadata.uid = None;
        definition.metadata.managed_fields = None;
        definition.status = None;
        e2e::crds::install_one(&client, serde_json::from_value(serde_json::to_value(definition)?)?).await?;
        becomes_ready(&ho).await?;
        becomes_ready(&cpo).await
    });
}

#[test]
fn api_server_is_not_reachable_at_the_start() {
    in_shared_test_env(async |test_env| {
        let nobody = Nobody::bind()?;
        let control_plane = test_env.control_plane();
        let token = control_plane.token(roles::NAMESPACE, "ho", None).await?;
        let admin: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(test_env.admin().path())?)?;
        let ca = admin["clusters"][0]["cluster"]["certificate-authority-data"]
            .as_str()
            .context("no CA")?;
        let ca = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, ca)?;
        let path = test_env.dir().join("nowhere.kubeconfig");
        let ca = String::from_utf8(ca)?;
        let address = format!("https://{}", nobody.address()?);
        Access::write(&path, &address, &ca, "ho", &token).await?;
        let flags = [("kubeconfig", path.display().to_string())];
        let ho = start(test_env, Role::Ho, "ho-nowhere", &flags).await?;
        waits_for(&ho, "kubernetes (ho)").await?;
        let _way = Way::open_at(nobody, address_of(control_plane.server())?)?;
        becomes_ready(&ho).await
    });
}

async fn start(test_env: &TestEnv, role: Role, name: &str, flags: &[(&str, String)]) -> Result<Hyperlink> {
    let flags: Vec<_> = flags.iter().map(|(flag, value)| (*flag, value.as_str())).collect();
    Hyperlink::start(test_env, role, name, &flags).await
}
