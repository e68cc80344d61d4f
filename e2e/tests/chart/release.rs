//! A release's life on the real API server: installed, upgraded from an older render, rolled back, uninstalled; and a
//! second one of the same role beside it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::helm::{Helm, chart};
use e2e::{ControlPlane, eventually, repository, scenario};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::discovery::{Discovery, verbs};
use rstest::rstest;
use serde_json::json;

const SOON: Duration = Duration::from_secs(60);

/// A release with the values of an example in a namespace.
struct Release<'a> {
    helm: Helm,
    control_plane: &'a ControlPlane,
    example: &'static str,
    namespace: &'static str,
}

impl<'a> Release<'a> {
    async fn new(example: &'static str, namespace: &'static str) -> Result<Release<'a>> {
        let control_plane = ControlPlane::shared().await?;
        Ok(Release {
            helm: Helm::new(Some(control_plane.kubeconfig_path()))?,
            control_plane,
            example,
            namespace,
        })
    }

    /// `helm VERB NAME` with the chart and the values of an example.
    fn with_chart(&self, verb: &str, name: &str, more: &[&str]) -> Result<String> {
        let (chart, values) = (chart(), chart().join(format!("examples/{}.yaml", self.example)));
        let (chart, values) = (chart.to_string_lossy(), values.to_string_lossy());
        let image = "--set=image.repository=registry.example.com/hyperlink";
        self.run(&[&[verb, name, &chart, image, "--values", &values], more].concat())
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        let namespace = ["--namespace", self.namespace, "--create-namespace"];
        let takes_both = matches!(arguments.first(), Some(&"install" | &"upgrade"));
        let namespace = if takes_both { &namespace[..] } else { &namespace[..2] };
        self.helm.run(&[arguments, namespace].concat())
    }

    /// The arguments of the program in the release's Deployment.
    async fn arguments(&self, name: &str) -> Result<Vec<String>> {
        let deployments: Api<Deployment> = Api::namespaced(self.control_plane.client()?, self.namespace);
        let spec = deployments.get(name).await?.spec.context("no spec")?;
        let pod = spec.template.spec.context("no pod")?;
        let container = pod.containers.into_iter().next().context("no container")?;
        container.args.context("no arguments")
    }

    /// Kind and name of everything that has the release's label, everywhere.
    async fn objects(&self, name: &str) -> Result<BTreeSet<String>> {
        let client = self.control_plane.client()?;
        let labelled = ListParams::default().labels(&format!("app.kubernetes.io/instance={name}"));
        let mut found = BTreeSet::new();
        for group in Discovery::new(client.clone()).run().await?.groups() {
            for (kind, capabilities) in group.recommended_resources() {
                if !capabilities.supports_operation(verbs::LIST) {
                    continue;
                }
                let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
                for object in api.list(&labelled).await?.items {
                    let namespace = object.metadata.namespace.unwrap_or_default();
                    // Two releases of one name in two namespaces are two.
                    if [self.namespace, ""].contains(&namespace.as_str()) {
                        found.insert(format!("{} {}", kind.kind, object.metadata.name.unwrap_or_default()));
                    }
                }
            }
        }
        Ok(found)
    }

    fn leases(&self) -> Result<Api<Lease>> {
        Ok(Api::namespaced(self.control_plane.client()?, self.namespace))
    }
}

async fn holder(leases: &Api<Lease>) -> Result<Option<String>> {
    let lease = leases.get("hyperlink-ho").await?;
    Ok(lease.spec.and_then(|spec| spec.holder_identity))
}

/// Takes the chart's Lease, as the program does.
async fn hold(leases: &Api<Lease>) -> Result<()> {
    let held = json!({"spec": {"holderIdentity": "the-leader", "leaseDurationSeconds": 15}});
    leases
        .patch("hyperlink-ho", &PatchParams::default(), &Patch::Merge(held))
        .await
        .map(drop)
        .map_err(Into::into)
}

#[test]
fn older_release_is_upgraded_rolled_back_and_uninstalled() {
    scenario(async {
        let release = Release::new("ho-managed-identity", "upgraded").await?;
        let older = repository().join("e2e/tests/chart/older");
        release.run(&["install", "hyperlink-ho", &older.to_string_lossy()])?;
        let before = release.arguments("hyperlink-ho").await?;
        hold(&release.leases()?).await?;

        release.with_chart("upgrade", "hyperlink-ho", &["--set=settings.resync=7m"])?;
        let now = release.arguments("hyperlink-ho").await?;
        ensure!(now.contains(&"--resync=7m".to_owned()) && now != before, "{now:?}");
        let holder_now = holder(&release.leases()?).await?;
        ensure!(
            holder_now.as_deref() == Some("the-leader"),
            "an upgrade took the lease: {holder_now:?}"
        );

        release.run(&["rollback", "hyperlink-ho", "1"])?;
        ensure!(release.arguments("hyperlink-ho").await? == before);
        release.with_chart("upgrade", "hyperlink-ho", &[])?;
        ensure!(
            release
                .arguments("hyperlink-ho")
                .await?
                .contains(&"--resync=5m".to_owned())
        );

        let objects = release.objects("hyperlink-ho").await?;
        for expected in [
            "Deployment hyperlink-ho",
            "Lease hyperlink-ho",
            "NetworkPolicy hyperlink-ho",
            "ValidatingAdmissionPolicy hyperlink-ho.upgraded",
            "ClusterRole hyperlink-ho.upgraded",
        ] {
            ensure!(objects.contains(expected), "no {expected} in {objects:?}");
        }
        release.run(&["uninstall", "hyperlink-ho"])?;
        eventually("nothing is left", SOON, || async {
            let left = release.objects("hyperlink-ho").await?;
            ensure!(left.is_empty(), "{left:?}");
            Ok(())
        })
        .await
    });
}

#[rstest]
#[case::management_side_with_a_secret("ho-credentials-secret", "by-secret", &["ClusterRole hyperlink.by-secret", "Lease hyperlink-ho"], &["Role hyperlink.by-secret"])]
#[case::guest_side_of_many("cpo-many", "of-many", &["ClusterRole hyperlink.of-many", "ConfigMap hyperlink-allow-scopes"], &["Role hyperlink.of-many"])]
#[case::guest_side_of_many_on_aws("cpo-aws-many", "of-many-aws", &["ClusterRole hyperlink.of-many-aws", "ConfigMap hyperlink-allow-scopes", "Lease hyperlink-cpo-aws"], &["Role hyperlink.of-many-aws"])]
#[case::clusters_of_cluster_api("capz-reference-defaults", "of-capz", &["ClusterRole hyperlink.of-capz", "Lease hyperlink-capz"], &["ValidatingAdmissionPolicy hyperlink.of-capz"])]
#[case::guest_side_of_one(
    "cpo-one-control-plane",
    "clusters-example",
    &["Role hyperlink.clusters-example", "RoleBinding hyperlink.clusters-example", "Lease hyperlink-cpo"],
    &["ClusterRole hyperlink.clusters-example", "ValidatingAdmissionPolicy hyperlink.clusters-example"]
)]
fn example_is_installed_upgraded_rolled_back_and_uninstalled(
    #[case] example: &'static str,
    #[case] namespace: &'static str,
    #[case] expected: &[&str],
    #[case] unexpected: &[&str],
) {
    scenario(async {
        let release = Release::new(example, namespace).await?;
        release.with_chart("install", "hyperlink", &[])?;
        let before = release.arguments("hyperlink").await?;
        release.with_chart("upgrade", "hyperlink", &["--set=settings.resync=7m"])?;
        let now = release.arguments("hyperlink").await?;
        ensure!(now.contains(&"--resync=7m".to_owned()) && now != before, "{now:?}");
        release.run(&["rollback", "hyperlink", "1"])?;
        ensure!(release.arguments("hyperlink").await? == before);
        let objects = release.objects("hyperlink").await?;
        let is_there = |one: &&&str| objects.contains(**one);
        ensure!(
            expected.iter().all(|one| is_there(&one)),
            "not all of {expected:?}: {objects:?}"
        );
        ensure!(
            !unexpected.iter().any(|one| is_there(&one)),
            "one of {unexpected:?}: {objects:?}"
        );
        release.run(&["uninstall", "hyperlink"])?;
        eventually("nothing is left", SOON, || async {
            let left = release.objects("hyperlink").await?;
            ensure!(left.is_empty(), "{left:?}");
            Ok(())
        })
        .await
    });
}

#[test]
fn second_installation_of_a_role_leaves_the_lease_to_the_first() {
    scenario(async {
        let release = Release::new("ho-managed-identity", "twice").await?;
        release.with_chart("install", "first", &["--set=admissionPolicy.enabled=false"])?;
        hold(&release.leases()?).await?;
        release.with_chart("install", "second", &["--set=admissionPolicy.enabled=false"])?;
        release.with_chart("upgrade", "second", &["--set=admissionPolicy.enabled=false"])?;
        ensure!(holder(&release.leases()?).await?.as_deref() == Some("the-leader"));
        let objects = release.objects("second").await?;
        ensure!(
            !objects.contains("Lease hyperlink-ho"),
            "it has the lease of the first: {objects:?}"
        );
        // Both name the same lease, the one of their namespace.
        ensure!(release.arguments("first-hyperlink").await? == release.arguments("second-hyperlink").await?);
        release.run(&["uninstall", "second"])?;
        ensure!(
            holder(&release.leases()?).await?.as_deref() == Some("the-leader"),
            "it took the lease along"
        );
        release.run(&["uninstall", "first"]).map(drop)
    });
}
