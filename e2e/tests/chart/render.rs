//! What the chart renders of each set of values: compared with a golden file, and taken by the real API server, which knows every
//! field. `INSTA_UPDATE=always` writes the golden files anew.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use e2e::helm::{Helm, chart};
use e2e::{ControlPlane, repository, scenario};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::discovery::{Scope, pinned_kind};
use rstest::rstest;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// Where the values of a case are: the examples of the chart are cases too.
fn values(case: &str) -> PathBuf {
    let example = chart().join(format!("examples/{case}.yaml"));
    if example.is_file() {
        example
    } else {
        repository().join(format!("e2e/tests/chart/cases/{case}.yaml"))
    }
}

pub(crate) fn render(case: &str, release: &str, namespace: &str) -> Result<String> {
    Helm::new(None)?.run(&[
        "template",
        release,
        &chart().to_string_lossy(),
        "--namespace",
        namespace,
        // Of no case: it has to be given by whoever installs.
        "--set",
        "image.repository=registry.example.com/hyperlink",
        "--values",
        &values(case).to_string_lossy(),
    ])
}

#[rstest]
#[case::example_ho_managed_identity("ho-managed-identity", "hyperlink-ho", "hypershift")]
#[case::example_ho_credentials_secret("ho-credentials-secret", "hyperlink-ho", "hypershift")]
#[case::example_cpo_one_control_plane("cpo-one-control-plane", "hyperlink", "clusters-example")]
#[case::example_cpo_many("cpo-many", "cpo", "hyperlink")]
#[case::both_roles("both-roles", "hyperlink", "hyperlink")]
#[case::ho_one_namespace("ho-one-namespace", "ho", "hyperlink")]
#[case::cpo_one_namespace_elsewhere("cpo-one-namespace-elsewhere", "example", "hyperlink")]
#[case::image_by_digest("image-by-digest", "named", "hyperlink")]
#[case::network_closed("network-closed", "ho", "hyperlink")]
#[case::switched_off("switched-off", "cpo", "hyperlink")]
#[case::extras("extras", "cpo", "clusters-example")]
#[case::crd_installed("crd-installed", "ho", "hyperlink")]
#[case::private_cloud("private-cloud", "ho", "hyperlink")]
#[case::metrics_by_service("metrics-by-service", "ho", "hyperlink")]
#[case::metrics_by_pod("metrics-by-pod", "cpo", "hyperlink")]
fn render_is_the_golden_one_and_the_api_server_takes_it(
    #[case] case: &str,
    #[case] release: &str,
    #[case] namespace: &str,
) {
    scenario(async {
        let rendered = render(case, release, namespace)?;
        insta::with_settings!({snapshot_path => "golden", prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!(case, rendered);
        });
        let client = with_monitoring_kinds().await?.client()?;
        let mut taken = 0;
        for document in serde_yaml_ng::Deserializer::from_str(&rendered) {
            let object = Value::deserialize(document)?;
            if !object.is_null() {
                dry_run(&client, object).await?;
                taken += 1;
            }
        }
        ensure!(taken > 0, "nothing is rendered");
        Ok(())
    });
}

/// The shared control plane with what the Prometheus Operator would have brought.
async fn with_monitoring_kinds() -> Result<&'static ControlPlane> {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let control_plane = ControlPlane::shared().await?;
    let install = async || {
        let client = control_plane.client()?;
        for kind in ["servicemonitors", "podmonitors", "prometheusrules"] {
            let file = repository().join(format!("e2e/fixtures/prometheus-operator/{kind}.crd.yaml"));
            e2e::crds::install_file(&client, &file).await?;
        }
        anyhow::Ok(())
    };
    INSTALLED.get_or_try_init(install).await?;
    Ok(control_plane)
}

/// Has the API server take the object, unknown fields refused, and keep nothing of it.
async fn dry_run(client: &kube::Client, object: Value) -> Result<()> {
    let object: DynamicObject = serde_json::from_value(object)?;
    let name = object.metadata.name.clone().context("no name")?;
    let types = object.types.clone().context("no kind")?;
    let (kind, capabilities) = pinned_kind(client, &(&types).try_into()?).await?;
    let api: Api<DynamicObject> = match (capabilities.scope, &object.metadata.namespace) {
        (Scope::Cluster, None) => Api::all_with(client.clone(), &kind),
        (Scope::Namespaced, Some(namespace)) => {
            let namespaces: Api<Namespace> = Api::all(client.clone());
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            let apply = PatchParams::apply("e2e");
            namespaces.patch(namespace, &apply, &Patch::Apply(body)).await?;
            Api::namespaced_with(client.clone(), namespace, &kind)
        }
        (scope, namespace) => anyhow::bail!("{} {name} is {scope:?} and says {namespace:?}", kind.kind),
    };
    let strict = PatchParams {
        dry_run: true,
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply("e2e").force()
    };
    let taken = api.patch(&name, &strict, &Patch::Apply(&object)).await;
    taken.map(drop).with_context(|| format!("{} {name}", kind.kind))
}
