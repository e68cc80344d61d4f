//! What the chart renders from each set of values: it equals a golden file, and the real API server accepts it, knows
//! every field and admits the pods to a restricted namespace. `INSTA_UPDATE=always` rewrites the golden files.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use e2e::helm::{Helm, chart};
use e2e::{ControlPlane, repository, scenario};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams, ValidationDirective};
use kube::discovery::{Scope, pinned_kind};
use rstest::rstest;
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

fn render(case: &str, release: &str, namespace: &str, more: &[&str]) -> Result<String> {
    let (chart, values) = (chart(), values(case));
    let (chart, values) = (chart.to_string_lossy(), values.to_string_lossy());
    // In no case's values: whoever installs has to give it.
    let image = "--set=image.repository=registry.example.com/hyperlink";
    let own = [
        "template",
        release,
        &chart,
        image,
        "--namespace",
        namespace,
        "--values",
        &values,
    ];
    Helm::new(None)?.run(&[&own, more].concat())
}

fn documents(rendered: &str) -> Result<Vec<Value>> {
    Ok(serde_saphyr::from_multiple(rendered)?)
}

#[rstest]
#[case::example_ho_managed_identity("ho-managed-identity", "hyperlink-ho", "hypershift")]
#[case::example_ho_credentials_secret("ho-credentials-secret", "hyperlink-ho", "hypershift")]
#[case::example_cpo_one_control_plane("cpo-one-control-plane", "hyperlink", "clusters-example")]
#[case::example_cpo_many("cpo-many", "cpo", "hyperlink")]
#[case::example_ho_aws_keys("ho-aws-keys", "hyperlink-ho", "hypershift")]
#[case::example_ho_aws_web_identity("ho-aws-web-identity", "hyperlink-ho", "hypershift")]
#[case::example_ho_aws_instance_role("ho-aws-instance-role", "hyperlink-ho", "hypershift")]
#[case::example_cpo_aws_one_control_plane("cpo-aws-one-control-plane", "hyperlink", "clusters-example")]
#[case::example_cpo_aws_many("cpo-aws-many", "cpo", "hyperlink")]
#[case::example_capz("capz-reference-defaults", "hyperlink-capz", "giantswarm")]
#[case::capz_one_namespace("capz-one-namespace", "capz", "hyperlink")]
#[case::both_roles("both-roles", "hyperlink", "hyperlink")]
#[case::both_platforms("both-platforms", "hyperlink", "hyperlink")]
#[case::aws_private_endpoints("aws-private-endpoints", "ho", "hyperlink")]
#[case::aws_shards("aws-shards", "ho", "hyperlink")]
#[case::ho_one_namespace("ho-one-namespace", "ho", "hyperlink")]
#[case::cpo_one_namespace_elsewhere("cpo-one-namespace-elsewhere", "example", "hyperlink")]
#[case::ho_management_scopes("ho-management-scopes", "ho", "hyperlink")]
#[case::cpo_shards("cpo-shards", "cpo", "hyperlink")]
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
        let rendered = render(case, release, namespace, &[])?;
        insta::with_settings!({snapshot_path => "golden", prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!(case, rendered);
        });
        let client = with_monitoring_kinds().await?.client()?;
        let objects = documents(&rendered)?;
        ensure!(!objects.is_empty(), "nothing is rendered");
        fits_together(&objects)?;
        for object in objects {
            if object["kind"] == "Deployment" {
                is_admitted(&client, case, &object["spec"]["template"]).await?;
            }
            dry_run(&client, object).await?;
        }
        Ok(())
    });
}

/// Fails unless the program listens on the ports of probes and scrapes, and selectors select the release's own pods.
fn fits_together(objects: &[Value]) -> Result<()> {
    let deployments = objects.iter().filter(|object| object["kind"] == "Deployment");
    let pods: Vec<&Value> = deployments.map(|one| &one["spec"]["template"]).collect();
    ensure!(!pods.is_empty(), "no Deployment");
    for pod in &pods {
        ports_fit(pod)?;
    }
    for object in objects {
        let of_service = object["spec"].get("selector").filter(|_| object["kind"] == "Service");
        let selectors = ["/spec/selector/matchLabels", "/spec/podSelector/matchLabels"];
        let selectors = selectors
            .iter()
            .filter_map(|path| object.pointer(path))
            .chain(of_service);
        for selector in selectors.filter_map(Value::as_object) {
            let selects = |pod: &&Value| {
                let labels = &pod["metadata"]["labels"];
                selector.iter().all(|(label, value)| labels[label] == *value)
            };
            ensure!(pods.iter().any(selects), "{object}");
        }
    }
    Ok(())
}

fn ports_fit(pod: &Value) -> Result<()> {
    let containers = pod["spec"]["containers"].as_array().context("no containers")?;
    let container = containers.iter().find(|one| one["name"] == "hyperlink");
    let container = container.context("no container of ours")?;
    let listed = |list: &str| container[list].as_array().cloned().unwrap_or_default();
    let opened = |name: &Value| {
        let found = listed("ports").into_iter().find(|port| port["name"] == *name);
        found.map(|port| port["containerPort"].to_string())
    };
    let bound = |flag: &str| {
        listed("args").into_iter().find_map(|argument| {
            let port = argument.as_str()?.strip_prefix(&format!("--{flag}=0.0.0.0:"))?;
            Some(port.to_owned())
        })
    };
    ensure!(opened(&json!("https-metrics")) == bound("metrics-bind"), "{container}");
    for (probe, path) in [("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
        let asked = &container[probe]["httpGet"];
        ensure!(asked["path"] == path, "{probe}: {asked}");
        ensure!(opened(&asked["port"]) == bound("probe-bind"), "{probe}: {container}");
        ensure!(bound("probe-bind").is_some(), "{container}");
    }
    Ok(())
}

/// Has the API server admit a pod to a namespace in which pods have to be restricted.
async fn is_admitted(client: &kube::Client, case: &str, template: &Value) -> Result<()> {
    let namespace = format!("restricted-{case}");
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let objects = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}),
    ];
    let control_plane = ControlPlane::shared().await?;
    let objects = objects.map(|object| object.to_string()).join("\n---\n");
    control_plane.apply_yaml(&objects).await?;
    let mut pod: Pod = serde_json::from_value(template.clone())?;
    pod.metadata.name = Some("pod".to_owned());
    // The release's ServiceAccounts are not in this namespace.
    let spec = pod.spec.as_mut().context("no spec")?;
    spec.service_account_name = None;
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    pods.create(&dry_run, &pod).await.map(drop).context("a pod")
}

/// Alerts and dashboard are in no golden file: they have tests of their own, and change for other reasons.
#[test]
fn alerts_and_dashboard_are_the_files() {
    scenario(async {
        let file = |name: &str| {
            let text = std::fs::read_to_string(chart().join("files").join(name))?;
            let [placeholder, given] = ["hyperlink.example/RUNBOOK.md", "wiki.example.com/hyperlink.md"];
            ensure!(text.contains(placeholder), "{name} links to nothing");
            let text = text.replace(placeholder, given);
            ensure!(
                !text.contains("hyperlink.example"),
                "{name}: a link that nobody can follow"
            );
            Ok(text)
        };
        let more = [
            "--set=metrics.prometheusRule.enabled=true,metrics.prometheusRule.labels.release=prometheus",
            "--set=metrics.runbookUrl=https://wiki.example.com/hyperlink.md",
            "--set=metrics.dashboard.enabled=true",
        ];
        let rendered = render("ho-managed-identity", "ho", "hyperlink", &more)?;
        let objects = documents(&rendered)?;
        let of_kind = |kind: &str, name: &str| {
            let mut found = objects
                .iter()
                .filter(|object| object["kind"] == kind && object["metadata"]["name"] == name);
            found.next().cloned().with_context(|| format!("no {kind} {name}"))
        };
        let rule = of_kind("PrometheusRule", "ho-hyperlink")?;
        ensure!(rule["spec"] == serde_saphyr::from_str::<Value>(&file("alerts.yaml")?)?);
        ensure!(rule["metadata"]["labels"]["release"] == "prometheus");
        let client = with_monitoring_kinds().await?.client()?;
        dry_run(&client, rule).await?;
        let map = of_kind("ConfigMap", "ho-hyperlink-dashboard")?;
        ensure!(map["metadata"]["labels"]["grafana_dashboard"] == "1");
        let text = map["data"]["hyperlink.json"].as_str().context("no dashboard")?;
        ensure!(serde_json::from_str::<Value>(text)? == serde_json::from_str::<Value>(&file("dashboard.json")?)?);
        dry_run(&client, map).await
    });
}

/// The shared control plane with the definitions of the Prometheus Operator.
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

/// Has the API server validate the object, unknown fields refused, without storing it.
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
    let accepted = api.patch(&name, &strict, &Patch::Apply(&object)).await;
    accepted.map(drop).with_context(|| format!("{} {name}", kind.kind))
}
