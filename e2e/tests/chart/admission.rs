//! Who may set the annotations that leave resources behind in Azure or disconnect a cluster, on the real API server.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::helm::{Helm, chart};
use e2e::{ControlPlane, eventually, scenario};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);
const NAMESPACE: &str = "clusters-example";
const ABANDON: &str = "hyperlink.hypershift.openshift.io/abandon";
const ADOPT: &str = "hyperlink.hypershift.openshift.io/adopt-from";
const REPLACE: &str = "hyperlink.hypershift.openshift.io/allow-replace";

fn resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(
        "hypershift.openshift.io",
        "v1beta1",
        "AzurePrivateLinkService",
    ))
}

fn link_service(name: &str, annotations: Value) -> Result<DynamicObject> {
    let network = "/subscriptions/11111111-1111-4111-8111-111111111111/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v";
    Ok(serde_json::from_value(json!({
        "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AzurePrivateLinkService",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations},
        "spec": {"subscriptionID": "11111111-1111-4111-8111-111111111111", "resourceGroupName": "g", "location": "eastus",
            "guestVNetID": network, "guestSubnetID": format!("{network}/subnets/s")}}))?)
}

/// An account with every verb on HyperShift's group in the control plane's namespace, as its operator has.
async fn somebody(control_plane: &ControlPlane, name: &str) -> Result<Api<DynamicObject>> {
    let access = control_plane.service_account(NAMESPACE, name).await?;
    grant(control_plane, name, NAMESPACE, "hypershift.openshift.io", "*", &["*"]).await?;
    Ok(Api::namespaced_with(access.client()?, NAMESPACE, &resource()))
}

/// Gives the account `name` the verbs on annotations in a namespace.
async fn may(control_plane: &ControlPlane, name: &str, namespace: &str, verbs: &[&str]) -> Result<()> {
    grant(
        control_plane,
        name,
        namespace,
        "hyperlink.hypershift.openshift.io",
        "annotations",
        verbs,
    )
    .await
}

async fn grant(
    control_plane: &ControlPlane,
    name: &str,
    namespace: &str,
    group: &str,
    resource: &str,
    verbs: &[&str],
) -> Result<()> {
    let about = json!({"namespace": namespace, "name": format!("{name}-{resource}").replace('*', "all")});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": about,
        "rules": [{"apiGroups": [group], "resources": [resource], "verbs": verbs}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": about,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": about["name"]},
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": name}]});
    control_plane
        .apply_yaml(&format!("{role}\n---\n{binding}"))
        .await
        .map(drop)
}

async fn annotate(api: &Api<DynamicObject>, annotations: Value) -> kube::Result<DynamicObject> {
    let patch = json!({"metadata": {"annotations": annotations}});
    api.patch("private-router", &PatchParams::default(), &Patch::Merge(patch))
        .await
}

/// Fails unless the policy, and nobody else, has refused it because this verb is missing.
fn refused(outcome: kube::Result<DynamicObject>, verb: &str) -> Result<()> {
    let error = outcome.err().context("it is taken")?;
    let kube::Error::Api(status) = error else {
        return Err(error.into());
    };
    let words = format!("may be set by those alone who have the verb {verb} on");
    ensure!(
        status.code == 403 && status.message.contains("ValidatingAdmissionPolicy") && status.message.contains(&words),
        "{status:?}"
    );
    Ok(())
}

/// A tenant may create HostedClusters, but not with the annotation that adopts another management cluster's resources.
async fn adopted_by_those_alone_who_have_the_verb(control_plane: &ControlPlane) -> Result<()> {
    let hosted = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "hypershift.openshift.io",
        "v1beta1",
        "HostedCluster",
    ));
    let service = |name: &str| json!({"service": name, "servicePublishingStrategy": {"type": "Route"}});
    let services = ["APIServer", "OAuthServer", "Konnectivity", "Ignition"].map(service);
    let from = |name: &str, annotations: Value| -> Result<DynamicObject> {
        Ok(serde_json::from_value(json!({
            "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedCluster",
            "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations},
            "spec": {"platform": {"type": "None"}, "pullSecret": {"name": "pull"}, "release": {"image": "example.com/release:4.22.0"},
                "services": services}}))?)
    };
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    somebody(control_plane, "tenant").await?;
    somebody(control_plane, "adopts").await?;
    may(control_plane, "adopts", NAMESPACE, &["adopt-from"]).await?;
    let of = async |name: &str| -> Result<Api<DynamicObject>> {
        let access = control_plane.service_account(NAMESPACE, name).await?;
        Ok(Api::namespaced_with(access.client()?, NAMESPACE, &hosted))
    };
    let (tenant, adopts) = (of("tenant").await?, of("adopts").await?);
    let moved = from("moved", json!({ADOPT: "5e1f0a3c-7b2d-4c68-9e14-2a6d8f0b4c35"}))?;
    refused(tenant.create(&dry, &moved).await, "adopt-from")?;
    for allowed in [
        tenant.create(&dry, &from("plain", json!({}))?).await,
        adopts.create(&dry, &moved).await,
    ] {
        let refused = allowed.err().map(|error| error.to_string());
        ensure!(refused.is_none(), "{refused:?}");
    }
    Ok(())
}

#[test]
fn annotations_are_set_by_those_alone_who_have_the_verb() {
    scenario(async {
        // A control plane of its own: the policy of another test's release would hide that this one has none.
        let control_plane = ControlPlane::start().await?;
        let helm = Helm::new(Some(control_plane.kubeconfig_path()))?;
        let install = [
            "install",
            "ho",
            &chart().to_string_lossy(),
            "--namespace=hypershift",
            "--create-namespace",
            "--values",
            &chart().join("examples/ho-managed-identity.yaml").to_string_lossy(),
            "--set=image.repository=registry.example.com/hyperlink",
        ]
        .map(str::to_owned);
        helm.run(&install)?;
        let operator = somebody(&control_plane, "control-plane-operator").await?;
        let one = somebody(&control_plane, "abandons").await?;
        let both = somebody(&control_plane, "does-both").await?;
        let elsewhere = somebody(&control_plane, "elsewhere").await?;
        may(&control_plane, "abandons", NAMESPACE, &["abandon"]).await?;
        may(&control_plane, "does-both", NAMESPACE, &["abandon", "allow-replace"]).await?;
        may(&control_plane, "elsewhere", "default", &["abandon", "allow-replace"]).await?;
        let admin: Api<DynamicObject> = Api::namespaced_with(control_plane.client()?, NAMESPACE, &resource());
        admin
            .create(&PostParams::default(), &link_service("private-router", json!({}))?)
            .await?;

        // A policy takes a moment to be known.
        eventually("the operator is refused", SOON, || async {
            refused(
                annotate(&operator, json!({ABANDON: "uid/cpo/because"})).await,
                "abandon",
            )
        })
        .await?;
        refused(annotate(&operator, json!({REPLACE: "true"})).await, "allow-replace")?;
        let born_with_it = link_service("oauth-openshift", json!({ABANDON: "uid/ho/because"}))?;
        refused(operator.create(&PostParams::default(), &born_with_it).await, "abandon")?;
        refused(
            annotate(&elsewhere, json!({ABANDON: "uid/cpo/because"})).await,
            "abandon",
        )?;
        // The operator may do what it has to do.
        annotate(&operator, json!({"hyperlink.hypershift.openshift.io/cpo-intent": "{}"})).await?;

        annotate(&one, json!({ABANDON: "uid/cpo/because"})).await?;
        refused(annotate(&one, json!({REPLACE: "true"})).await, "allow-replace")?;
        annotate(&both, json!({REPLACE: "true"})).await?;

        // An annotation that stays as it is needs no right; a changed one does.
        annotate(&operator, json!({"example.com/other": "x"})).await?;
        annotate(&operator, json!({ABANDON: "uid/cpo/because"})).await?;
        refused(annotate(&operator, json!({ABANDON: "uid/ho/because"})).await, "abandon")?;
        annotate(&operator, json!({ABANDON: null, REPLACE: null})).await?;
        adopted_by_those_alone_who_have_the_verb(&control_plane).await?;
        annotate(&admin, json!({ABANDON: "uid/ho/because", REPLACE: "true"})).await?;
        Ok(())
    });
}
