//! Our definition of AzurePrivateLinkService is the real one: side by side on a real API server,
//! the real one under its own group and ours under another, the schemas are equal and both give
//! the same verdict on every object and update of the table in `cases` and `text_fields`.

#![expect(clippy::expect_used, reason = "a mistake in the table is a failure of the test")]

mod aws;
mod case;
mod cases;
mod schema;
mod text_fields;

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::{Context, Result, bail, ensure};
use case::{Case, Verb, apply, full};
use e2e::{ControlPlane, scenario};
use hyperlink::api::hypershift::{PlatformType, PrivateType, Topology};
use hyperlink::api::{AzurePrivateLinkService, HostedCluster, HostedControlPlane};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

const REAL_GROUP: &str = "hypershift.openshift.io";
const OUR_GROUP: &str = "conformance.hyperlink.example";

/// Whether the real definition is at hand; says that the test is skipped if not.
fn real_definition_is_there() -> bool {
    let there = e2e::reference::directory("hypershift-crds").is_some();
    if !there {
        e2e::scenario::skipped("the real definition of AzurePrivateLinkService is not at hand");
    }
    there
}

/// Puts our definition beside the real one, which the control plane has already.
async fn install_own_definition(client: &kube::Client) -> Result<()> {
    let mut definition = serde_json::to_value(hyperlink::api::crd())?;
    definition["metadata"]["name"] = json!(format!("azureprivatelinkservices.{OUR_GROUP}"));
    definition["spec"]["group"] = json!(OUR_GROUP);
    e2e::crds::install_one(client, serde_json::from_value(definition)?).await
}

async fn stored_definition(client: &kube::Client, group: &str) -> Result<Value> {
    let kind = ApiResource::erase::<CustomResourceDefinition>(&());
    let definitions: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let stored = definitions.get(&format!("azureprivatelinkservices.{group}")).await?;
    Ok(stored.data["spec"].clone())
}

#[test]
fn schemas_are_equal_key_by_key() {
    if !real_definition_is_there() {
        return;
    }
    scenario(async {
        let client = ControlPlane::shared().await?.client()?;
        install_own_definition(&client).await?;
        let real = stored_definition(&client, REAL_GROUP).await?;
        let own = stored_definition(&client, OUR_GROUP).await?;
        let different = schema::differences(&real, &own);
        ensure!(different.is_empty(), "{}", different.join("\n"));
        Ok(())
    });
}

/// How the API server answered.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// Accepted, and these are the spec and the status that it stored.
    Accepted([Value; 2]),
    /// Refused as invalid: the fields, each with the machine-readable cause.
    Refused(BTreeSet<(String, String)>),
}

impl Verdict {
    fn of(answer: kube::Result<DynamicObject>) -> Result<Self> {
        match answer {
            Ok(object) => Ok(Verdict::Accepted(
                ["spec", "status"].map(|part| object.data[part].clone()),
            )),
            Err(kube::Error::Api(refusal)) if refusal.code == 422 => {
                let causes = refusal.details.map(|details| details.causes).unwrap_or_default();
                let causes = causes.into_iter().map(|cause| (cause.field, cause.reason));
                Ok(Verdict::Refused(causes.collect()))
            }
            Err(other) => Err(other.into()),
        }
    }

    /// Whether it is the verdict that the table expects.
    fn is_expected_by(&self, case: &Case) -> bool {
        match (self, &case.refused_at) {
            (Verdict::Accepted(_), None) => true,
            (Verdict::Refused(causes), Some(field)) => causes.iter().any(|(at, _)| at == field),
            _ => false,
        }
    }
}

/// One of the two definitions, with a namespace for its objects.
struct Side {
    kind: ApiResource,
    objects: Api<DynamicObject>,
}

impl Side {
    fn new(client: &kube::Client, group: &str, namespace: &str) -> Self {
        let kind = GroupVersionKind::gvk(group, "v1beta1", "AzurePrivateLinkService");
        let kind = ApiResource::from_gvk_with_plural(&kind, "azureprivatelinkservices");
        let objects = Api::namespaced_with(client.clone(), namespace, &kind);
        Side { kind, objects }
    }

    async fn judge(&self, name: &str, case: &Case) -> Result<Verdict> {
        let params = PostParams::default();
        let mut content = full();
        if case.verb == Verb::Create {
            apply(&case.edits, &mut content);
            return Verdict::of(self.objects.create(&params, &self.object(name, &content)).await);
        }
        apply(&case.before, &mut content);
        let mut stored = self.objects.create(&params, &self.object(name, &content)).await?;
        if case.verb == Verb::Status && !case.before.is_empty() {
            stored.data = content.clone();
            stored = self.objects.replace_status(name, &params, &stored).await?;
        }
        apply(&case.edits, &mut content);
        stored.data = content;
        Verdict::of(match case.verb {
            Verb::Status => self.objects.replace_status(name, &params, &stored).await,
            _ => self.objects.replace(name, &params, &stored).await,
        })
    }

    fn object(&self, name: &str, content: &Value) -> DynamicObject {
        DynamicObject::new(name, &self.kind).data(content.clone())
    }
}

async fn namespace(client: &kube::Client, name: &str) -> Result<()> {
    let body = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &body)
        .await?;
    Ok(())
}

#[test]
fn both_give_the_same_verdict_on_every_object_and_update() {
    if !real_definition_is_there() {
        return;
    }
    scenario(async {
        let client = ControlPlane::shared().await?.client()?;
        install_own_definition(&client).await?;
        namespace(&client, "verdicts").await?;
        let real = Side::new(&client, REAL_GROUP, "verdicts");
        let own = Side::new(&client, OUR_GROUP, "verdicts");
        let cases = cases::cases();
        let mut wrong = Vec::new();
        for (number, case) in cases.iter().enumerate() {
            let name = format!("case-{number}");
            let real_verdict = real.judge(&name, case).await.with_context(|| case.name.clone())?;
            let own_verdict = own.judge(&name, case).await.with_context(|| case.name.clone())?;
            if real_verdict != own_verdict {
                wrong.push(format!(
                    "{}:\n  real {real_verdict:?}\n  ours {own_verdict:?}",
                    case.name
                ));
            } else if !own_verdict.is_expected_by(case) {
                wrong.push(format!(
                    "{}: both {own_verdict:?}, expected {:?}",
                    case.name, case.refused_at
                ));
            }
        }
        let refused = cases.iter().filter(|case| case.refused_at.is_some()).count();
        let total = cases.len();
        // Past the test harness, which swallows the output of tests that pass.
        writeln!(
            std::io::stderr(),
            "\n{total} cases: {} to accept, {refused} to refuse",
            total - refused
        )?;
        ensure!(total >= 60, "only {total} cases");
        if !wrong.is_empty() {
            bail!("{} of {total} cases differ:\n{}", wrong.len(), wrong.join("\n"));
        }
        // Hyperlink has to be able to read whatever the API server admits: one unreadable object would stop the whole
        // watch.
        let readable: Api<AzurePrivateLinkService> = Api::namespaced(client, "verdicts");
        ensure!(!readable.list(&ListParams::default()).await?.items.is_empty());
        Ok(())
    });
}

#[test]
fn hosted_clusters_and_control_planes_are_read() {
    let Some(samples) = e2e::reference::directory("hypershift-crds/samples") else {
        return e2e::scenario::skipped("no sample objects of HyperShift");
    };
    scenario(async move {
        let control_plane = ControlPlane::shared().await?;
        for file in ["hostedcluster-private.yaml", "hostedcontrolplane-private.yaml"] {
            let text = std::fs::read_to_string(samples.join(file))?;
            control_plane
                .apply_yaml(&without_node_pools(&text))
                .await
                .context(file)?;
        }
        let client = control_plane.client()?;
        let clusters: Api<HostedCluster> = Api::namespaced(client.clone(), "clusters");
        let planes: Api<HostedControlPlane> = Api::namespaced(client, "clusters-example");
        let specs = [clusters.get("example").await?.spec, planes.get("example").await?.spec];
        for spec in specs {
            ensure!(spec.infra_id.as_deref() == Some("example-x7k2p"), "{spec:?}");
            ensure!(spec.services.len() == 4, "{spec:?}");
            ensure!(spec.platform.kind == Some(PlatformType::Azure), "{spec:?}");
            let azure = spec.platform.azure.context("no platform.azure")?;
            ensure!(azure.topology == Some(Topology::Private), "{azure:?}");
            let private = azure.private.context("no platform.azure.private")?;
            ensure!(private.kind == Some(PrivateType::PrivateLink), "{private:?}");
            ensure!(private.private_link.nat_subnet_id.is_some(), "{private:?}");
        }
        Ok(())
    });
}

/// A sample without its NodePools, of which the control plane has no definition.
fn without_node_pools(text: &str) -> String {
    let documents = text
        .split("\n---\n")
        .filter(|document| !document.contains("kind: NodePool"));
    documents.collect::<Vec<_>>().join("\n---\n")
}
