//! What happens where a right is missing that nobody asks for by a request of its own.

use anyhow::{Context, ensure};
use e2e::azure_sim::Preset;
use e2e::azure_sim::used::{FRONTEND_JOIN, NETWORK_JOIN, SUBNET_JOIN};
use e2e::hosted_cluster::{HostedCluster, conditions};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::rights::rules;
use e2e::{ControlPlane, TestEnv, eventually, scenario};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use rstest::rstest;
use serde_json::json;

use crate::SOON;

/// The journal does not show what a write needs on the resources that it joins, so each right is removed once.
#[rstest]
#[case::subnet_of_the_link_service(Role::Ho, SUBNET_JOIN, "privateLinkServices", "AzurePLSCreated")]
#[case::frontend_of_the_link_service(Role::Ho, FRONTEND_JOIN, "privateLinkServices", "AzurePLSCreated")]
#[case::subnet_of_the_endpoint(Role::Cpo, SUBNET_JOIN, "privateEndpoints", "AzurePrivateEndpointAvailable")]
#[case::network_of_the_zone_link(Role::Cpo, NETWORK_JOIN, "virtualNetworkLinks", "AzurePrivateDNSAvailable")]
fn without_the_right_to_join_the_path_is_refused(
    #[case] role: Role,
    #[case] action: &str,
    #[case] kind: &str,
    #[case] condition: &str,
) {
    scenario(async {
        let test_env = TestEnv::local_without(Preset::Fast, role, action).await?;
        let _ho = Hyperlink::start(&test_env, Role::Ho, "ho", &[]).await?;
        let _cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", &[]).await?;
        let cluster = HostedCluster::new(&test_env, "unjoined");
        cluster.create(&test_env).await?;
        let client = test_env.client()?;
        eventually("the condition names the refusal", SOON, || async {
            let found = cluster.get_link_service(&client).await?.context("no custom resource")?;
            let all = conditions(&found);
            let published = all.iter().find(|one| one.kind == condition);
            ensure!(
                published.is_some_and(|one| one.status == "False" && one.message.contains("LinkedAuthorizationFailed")),
                "{all:?}"
            );
            Ok(())
        })
        .await?;
        let calls = test_env.oracle().journal(0).await?;
        let written = calls.iter().filter(|call| call.is_write() && call.path.contains(kind));
        let refused: Vec<_> = written.map(|call| (call.status, call.code.as_deref())).collect();
        ensure!(
            !refused.is_empty()
                && refused
                    .iter()
                    .all(|one| *one == (403, Some("LinkedAuthorizationFailed"))),
            "{refused:?}"
        );
        Ok(())
    });
}

/// `hostedcontrolplanes/finalizers update` stands for the right to make objects that block their owner's deletion,
/// where OwnerReferencesPermissionEnforcement is on.
#[rstest]
#[case::without_the_right(false)]
#[case::with_the_right(true)]
fn blocking_the_owners_deletion_takes_a_right(#[case] granted: bool) {
    scenario(async {
        let control_plane = ControlPlane::shared().await?;
        let name = format!("owner-{granted}");
        let account = control_plane.service_account(&name, "cpo").await?;
        let mut rules = rules("role-cpo.yaml")?;
        let is_virtual = |rule: &PolicyRule| {
            rule.resources
                .iter()
                .flatten()
                .any(|resource| resource == "hostedcontrolplanes/finalizers")
        };
        rules.retain(|rule| granted || !is_virtual(rule));
        let subject = json!({"kind": "ServiceAccount", "namespace": name, "name": "cpo"});
        let documents = [
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
                "rules": rules}),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": name}, "subjects": [subject],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}}),
        ];
        control_plane
            .apply_yaml(&documents.map(|one| one.to_string()).join("\n---\n"))
            .await?;
        let created = create_blocking(&account.client()?, &name).await;
        match created {
            Ok(()) => ensure!(granted, "it was created"),
            Err(kube::Error::Api(status)) => ensure!(
                !granted && status.code == 403 && status.message.contains("blockOwnerDeletion"),
                "{status:?}"
            ),
            Err(other) => return Err(other.into()),
        }
        Ok(())
    });
}

async fn create_blocking(client: &kube::Client, namespace: &str) -> kube::Result<()> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "hypershift.openshift.io",
        "v1beta1",
        "AzurePrivateLinkService",
    ));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let network = "/subscriptions/11111111-1111-4111-8111-111111111111/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v";
    let mut object = DynamicObject::new("private-router", &kind).data(json!({"spec": {
        "subscriptionID": "11111111-1111-4111-8111-111111111111", "resourceGroupName": "g", "location": "eastus",
        "guestVNetID": network, "guestSubnetID": format!("{network}/subnets/s")}}));
    // The rights are asked before the owner is looked for.
    object.metadata.owner_references = serde_json::from_value(json!([{
        "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane", "name": "one",
        "uid": "00000000-0000-4000-8000-000000000000", "controller": true, "blockOwnerDeletion": true}]))
    .ok();
    api.create(&PostParams::default(), &object).await.map(drop)
}
