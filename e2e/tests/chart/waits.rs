//! What an installation lacks: its pod stays up, is not ready, and reports the reason on `/readyz`, in its log and by
//! an Event.

use anyhow::{Context, Result, ensure};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::installed::{HOME, Installed, SECRET};
use e2e::shared_env::SOON;
use e2e::{eventually, scenario};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::life::installed;

const DEFINITION: &str = "azureprivatelinkservices.hypershift.openshift.io";

/// Waits until the process is not ready because of `what`, and has reported that on `/readyz`, in its log and by an
/// Event.
async fn reports_not_ready(installed: &Installed, process: &Hyperlink, pod: &str, what: &str) -> Result<()> {
    let events: Api<Event> = Api::namespaced(installed.test_env.client()?, HOME);
    process
        .process()
        .until(&format!("{pod} says {what:?}"), SOON, async || {
            let (status, page) = process.page("/readyz").await?;
            ensure!(
                status == 503 && page.contains(&format!("[-] {what}")),
                "{status}: {page}"
            );
            let log = std::fs::read_to_string(process.process().log())?;
            ensure!(log.contains(&format!("waiting for {what}")), "the log does not say it");
            let found = events.list(&kube::api::ListParams::default()).await?;
            let not_ready = found.items.iter().filter(|event| {
                let about = event.regarding.as_ref().and_then(|object| object.name.as_deref());
                about == Some(pod) && event.reason.as_deref() == Some("NotReady")
            });
            let notes: Vec<_> = not_ready.filter_map(|event| event.note.as_deref()).collect();
            ensure!(notes.iter().any(|note| note.contains(what)), "no Event: {notes:?}");
            Ok(())
        })
        .await?;
    ensure!(process.page("/livez").await?.0 == 200, "it is not alive");
    Ok(())
}

/// Removes a right from the release's role; returns the rules as they were.
async fn without_services(roles: &Api<ClusterRole>, name: &str) -> Result<Value> {
    let rules = serde_json::to_value(roles.get(name).await?.rules.context("no rules")?)?;
    let mut fewer = rules.clone();
    let all = fewer.as_array_mut().context("no rules")?;
    all.retain(|rule| rule["resources"] != json!(["services"]));
    ensure!(fewer != rules, "no rule about services in {rules}");
    put_rules(roles, name, &fewer).await?;
    Ok(rules)
}

async fn put_rules(roles: &Api<ClusterRole>, name: &str, rules: &Value) -> Result<()> {
    let patch = Patch::Merge(json!({"rules": rules}));
    roles.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

#[test]
fn missing_right_and_wrong_tenant_are_reported_until_corrected() {
    scenario(async {
        let installed = installed().await?;
        let client = installed.test_env.client()?;
        installed.install("lacks", &installed.ho()?)?;
        let roles: Api<ClusterRole> = Api::all(client.clone());
        let role = format!("lacks-hyperlink.{HOME}");
        let rules = without_services(&roles, &role).await?;

        let secrets: Api<Secret> = Api::namespaced(client, HOME);
        let data = secrets.get(SECRET).await?.data.context("no data")?;
        let right = String::from_utf8(data["credentials"].0.clone())?;
        let wrong = right.replace(
            &installed.test_env.azure().tenant,
            "99999999-9999-4999-8999-999999999999",
        );
        ensure!(wrong != right, "no tenant in the file");
        let file = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": HOME, "name": "elsewhere"},
            "stringData": {"credentials": wrong}});
        installed.test_env.control_plane().apply_yaml(&file.to_string()).await?;
        let mut values = installed.ho()?;
        values["azure"]["secret"]["name"] = "elsewhere".into();
        installed.install("elsewhere", &values)?;

        let lacks = installed.run("lacks", "lacks-0", Role::Ho).await?;
        let pod = installed.pod("elsewhere", "elsewhere-0").await?;
        let elsewhere = pod.start(Role::Ho, installed.test_env.dir()).await?;
        let lack = "rights (ho): missing: services get, list, watch (oauth-openshift, private-router)";
        reports_not_ready(&installed, &lacks, "lacks-0", lack).await?;
        let refused = "azure token: the token endpoint refused the credential (AADSTS90002); check the tenant id";
        reports_not_ready(&installed, &elsewhere, "elsewhere-0", refused).await?;

        put_rules(&roles, &role, &rules).await?;
        std::fs::write(pod.mounted("/etc/azure-provider")?.join("credentials"), right)?;
        lacks.ready(SOON).await?;
        elsewhere.ready(SOON).await
    });
}

#[test]
fn missing_definition_is_reported_until_it_is_installed() {
    scenario(async {
        let installed = installed().await?;
        let definitions: Api<CustomResourceDefinition> = Api::all(installed.test_env.client()?);
        definitions.delete(DEFINITION, &DeleteParams::default()).await?;
        eventually("the definition is gone", SOON, || async {
            ensure!(definitions.get_opt(DEFINITION).await?.is_none(), "it is there");
            Ok(())
        })
        .await?;
        installed.install("ho", &installed.ho()?)?;
        let ho = installed.run("ho", "ho-0", Role::Ho).await?;
        let what = format!("custom resource definition (ho): {DEFINITION} is not installed");
        reports_not_ready(&installed, &ho, "ho-0", &what).await?;

        // The chart can bring it.
        let mut values = installed.ho()?;
        values["crds"] = json!({"install": true});
        installed.install("definition", &values)?;
        ho.ready(SOON).await
    });
}
