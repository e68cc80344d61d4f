//! Least privilege, measured: what the roles of Hyperlink use in a whole life is what the shipped role files grant,
//! verb by verb in Kubernetes and action by action in Azure.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use e2e::azure_sim::{CPO_CLIENT, HO_CLIENT, Preset, shipped_actions};
use e2e::ground::Call;
use e2e::hosted_cluster::{HostedCluster, NAMESPACE, conditions};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::{ControlPlane, Ground, eventually, repository, roles, scenario};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use rstest::rstest;
use serde::Deserialize;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);

/// `group/resource verb`
type Right = String;

#[test]
fn rights_used_in_a_whole_life_are_the_rights_granted() {
    scenario(async {
        let ground = Ground::local(Preset::Fast).await?;
        whole_life(&ground).await?;
        let audited = audit(ground.control_plane())?;
        let calls = ground.oracle().journal(0).await?;
        let mut wrong = Vec::new();
        for (role, client) in [(Role::Ho, HO_CLIENT), (Role::Cpo, CPO_CLIENT)] {
            let mut granted = granted_rights(role)?;
            if role == Role::Cpo {
                // Never a request of its own: see the last test.
                ensure!(granted.remove("hypershift.openshift.io/hostedcontrolplanes/finalizers update"));
            }
            wrong.extend(differences("Kubernetes", role, &used_rights(&audited, role)?, &granted));
            let granted = shipped_actions(role.as_str())?.into_iter().collect();
            wrong.extend(differences("Azure", role, &used_actions(&calls, client)?, &granted));
        }
        ensure!(wrong.is_empty(), "{wrong:#?}");
        Ok(())
    });
}

/// Comes up with everything of its own, stands by, takes over, is repaired, comes back, goes.
async fn whole_life(ground: &Ground) -> Result<()> {
    let flags = [("resync", "1s"), ("record-resync", "1s")];
    let of_ho = [
        flags[0],
        flags[1],
        ("aggregate-conditions", "true"),
        ("metrics-secure", "true"),
        ("probe-bind", "127.0.0.1:0"),
    ];
    roles::install_aggregation(ground.control_plane()).await?;
    roles::install_metrics(ground.control_plane(), "ho").await?;
    let first = Hyperlink::start(ground, Role::Ho, "ho", &of_ho).await?;
    let cpo = Hyperlink::start(ground, Role::Cpo, "cpo", &flags).await?;
    first.ready(SOON).await?;
    cpo.ready(SOON).await?;
    read_metrics(ground, &first).await?;
    let cluster = HostedCluster::new(ground, "whole").with_base_domain("apps.example.com");
    fail_first_zone(ground).await?;
    cluster.create(ground).await?;
    cluster.becomes_available(ground, SOON).await?;
    cluster.becomes_reachable(ground, SOON).await?;
    all_is_well(ground, &cluster).await?;

    let second = Hyperlink::start(ground, Role::Ho, "ho-2", &of_ho).await?;
    let third = Hyperlink::start(ground, Role::Cpo, "cpo-2", &flags).await?;
    second.ready(SOON).await?;
    third.ready(SOON).await?;
    take_over(ground, first, "hyperlink-ho").await?;
    take_over(ground, cpo, "hyperlink-cpo").await?;

    let record = format!("{}/A/api", cluster.zones()[0]);
    for drifted in [record, cluster.endpoint(), cluster.link_service(ground)] {
        ground.oracle().drift_delete(&drifted).await?;
        comes_back(ground, &drifted).await?;
        cluster.becomes_available(ground, SOON).await?;
        cluster.becomes_reachable(ground, SOON).await?;
    }
    follow_host_names(ground, &cluster).await?;
    connect_somebody_else(ground, &cluster).await?;
    // The zone stays for it, without ours.
    let record = json!({"properties": {"ttl": 60, "aRecords": [{"ipv4Address": "192.0.2.1"}]}});
    ground
        .oracle()
        .drift_put(&format!("{}/A/www", cluster.zones()[1]), &record)
        .await?;
    cluster.delete(ground, SOON).await?;
    second.stop().await?;
    third.stop().await
}

/// Prometheus comes by.
async fn read_metrics(ground: &Ground, hyperlink: &Hyperlink) -> Result<()> {
    let token = roles::metrics_reader(ground.control_plane(), "prometheus").await?;
    // Its certificate is its own: nobody could trust it.
    let http = reqwest::Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .build()?;
    let url = format!("https://{}/metrics", hyperlink.metrics_address());
    let answer = http.get(url).bearer_auth(token).send().await?;
    ensure!(answer.status() == 200, "{}", answer.text().await?);
    Ok(())
}

/// The HostedCluster tells what the custom resource does.
async fn all_is_well(ground: &Ground, cluster: &HostedCluster) -> Result<()> {
    let api = cluster.api(&ground.client()?, "HostedCluster", NAMESPACE);
    eventually("the HostedCluster says that all is well", SOON, || async {
        let all = conditions(&api.get(cluster.name()).await?);
        let well = all
            .iter()
            .filter(|one| one.status == "True" && one.message == "All is well");
        ensure!(well.count() == 5, "{all:?}");
        Ok(())
    })
    .await
}

/// The first zone's operation ends badly. Only the operation's own URL tells why.
async fn fail_first_zone(ground: &Ground) -> Result<()> {
    let rule = json!([{"match": {"method": "PUT", "path": "/privateDnsZones/[^/]+$"}, "do": {"operation": "fail"}}]);
    let url = format!("{}/faults", ground.control_url());
    reqwest::Client::new()
        .put(url)
        .json(&rule)
        .send()
        .await?
        .error_for_status()?;
    Ok(())
}

/// A host name is changed, then given up.
async fn follow_host_names(ground: &Ground, cluster: &HostedCluster) -> Result<()> {
    let client = ground.client()?;
    for host in [Some("api-whole.new.example.com"), None] {
        cluster.publish(&client, "APIServer", host).await?;
        eventually(&format!("{host:?} is published"), SOON, || async {
            let service = cluster.get_service(&client, "kube-apiserver-private-external").await?;
            let annotations = service
                .and_then(|service| service.metadata.annotations)
                .unwrap_or_default();
            let published = annotations.get("external-dns.alpha.kubernetes.io/hostname");
            ensure!(published.map(String::as_str) == host, "{annotations:?}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Another endpoint connects to the service, and does not go when the cluster goes.
async fn connect_somebody_else(ground: &Ground, cluster: &HostedCluster) -> Result<()> {
    let service = ground.oracle().resources(&cluster.link_service(ground)).await?;
    let alias = &service.first().context("no service")?["properties"]["alias"];
    let connection = json!({"name": "theirs", "properties": {"privateLinkServiceId": alias, "groupIds": []}});
    let endpoint = json!({"location": ground.azure().location, "properties": {
        "subnet": {"id": cluster.subnet()}, "manualPrivateLinkServiceConnections": [connection]}});
    let id = cluster.endpoint().replace("private-router-pe", "theirs");
    ground.oracle().drift_put(&id, &endpoint).await
}

/// Stops the leader and waits until the standby holds the lease.
async fn take_over(ground: &Ground, leader: Hyperlink, lease: &str) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(ground.client()?, roles::NAMESPACE);
    let holder =
        async || -> Result<Option<String>> { Ok(leases.get(lease).await?.spec.and_then(|spec| spec.holder_identity)) };
    let before = holder().await?;
    leader.stop().await?;
    eventually(&format!("a standby holds {lease}"), SOON, || async {
        let now = holder().await?.filter(|now| !now.is_empty());
        ensure!(now.is_some() && now != before, "{now:?}");
        Ok(())
    })
    .await
}

async fn comes_back(ground: &Ground, id: &str) -> Result<()> {
    eventually(&format!("{id} is there again"), SOON, || async {
        let found = ground.oracle().resources(id).await?;
        ensure!(!found.is_empty(), "it is not");
        Ok(())
    })
    .await
}

/// One request in the API server's audit log.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Audited {
    verb: String,
    #[serde(rename = "requestURI")]
    uri: String,
    user: User,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct ResponseStatus {
    code: Option<u16>,
    #[serde(default)]
    message: String,
}

impl ResponseStatus {
    /// Whether a right was missing. What goes takes nothing new, whoever asks.
    fn refused(&self) -> bool {
        matches!(self.code, Some(401 | 403)) && !self.message.contains("because it is being terminated")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectRef {
    #[serde(default)]
    api_group: String,
    resource: String,
    #[serde(default)]
    subresource: String,
}

fn audit(control_plane: &ControlPlane) -> Result<Vec<Audited>> {
    let text = std::fs::read_to_string(control_plane.audit_log())?;
    // The last line may be half written.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).context("an audit line"))
        .collect()
}

/// What a role asked for. Nothing of it was refused.
fn used_rights(audited: &[Audited], role: Role) -> Result<BTreeSet<Right>> {
    let account = format!("system:serviceaccount:{}:{}", roles::NAMESPACE, role.as_str());
    let mut used = BTreeSet::new();
    for request in audited.iter().filter(|request| request.user.username == account) {
        ensure!(
            !request.response_status.as_ref().is_some_and(ResponseStatus::refused),
            "refused: {} {}",
            request.verb,
            request.uri
        );
        let object = request
            .object_ref
            .as_ref()
            .with_context(|| format!("no resource: {}", request.uri))?;
        // What one may oneself, everybody may ask.
        if object.resource == "selfsubjectaccessreviews" {
            continue;
        }
        used.insert(right(
            &object.api_group,
            &object.resource,
            &object.subresource,
            &request.verb,
        ));
    }
    Ok(used)
}

fn right(group: &str, resource: &str, subresource: &str, verb: &str) -> Right {
    let slash = if subresource.is_empty() { "" } else { "/" };
    format!("{group}/{resource}{slash}{subresource} {verb}")
}

fn granted_rights(role: Role) -> Result<BTreeSet<Right>> {
    let mut granted = BTreeSet::new();
    let more: &[&str] = match role {
        Role::Ho => &["role-ho-aggregate.yaml", "role-metrics.yaml"],
        Role::Cpo => &[],
    };
    let own = format!("role-{}.yaml", role.as_str());
    for file in [&own, "role-lease.yaml"].iter().chain(more) {
        for rule in rules(file)? {
            for group in rule.api_groups.iter().flatten() {
                for resource in rule.resources.iter().flatten() {
                    granted.extend(rule.verbs.iter().map(|verb| right(group, resource, "", verb)));
                }
            }
        }
    }
    Ok(granted)
}

fn rules(file: &str) -> Result<Vec<PolicyRule>> {
    let text = std::fs::read_to_string(repository().join("charts/hyperlink/files").join(file))?;
    let mut role: Value = serde_yaml_ng::from_str(&text)?;
    Ok(serde_json::from_value(role["rules"].take())?)
}

/// The actions that a caller needed: those of the calls themselves and of the resources that they join. Nothing was
/// refused.
fn used_actions(calls: &[Call], client: &str) -> Result<BTreeSet<String>> {
    let mut used = BTreeSet::new();
    for call in calls.iter().filter(|call| call.principal.as_deref() == Some(client)) {
        ensure!(
            !matches!(call.status, 401 | 403),
            "refused: {} {}",
            call.method,
            call.path
        );
        // The URL of a Microsoft.Network operation is signed, which is all that it takes.
        if call.resource_kind == "Microsoft.Network/locations/operations" {
            continue;
        }
        let verb = match call.method.as_str() {
            "GET" | "HEAD" => "read",
            "PUT" | "PATCH" => "write",
            "DELETE" => "delete",
            other => return Err(anyhow!("{other} {}", call.path)),
        };
        used.insert(format!("{}/{verb}", call.resource_kind));
        if call.query.contains("networkInterfaces") {
            // What an expanded read shows is the interface itself.
            used.insert("Microsoft.Network/networkInterfaces/read".to_owned());
        }
        if verb == "write" {
            used.extend(joins(&call.resource_kind).iter().map(|action| (*action).to_owned()));
        }
    }
    Ok(used)
}

const SUBNET_JOIN: &str = "Microsoft.Network/virtualNetworks/subnets/join/action";
const NETWORK_JOIN: &str = "Microsoft.Network/virtualNetworks/join/action";
const FRONTEND_JOIN: &str = "Microsoft.Network/loadBalancers/frontendIPConfigurations/join/action";

/// What a write needs on the resources that its body refers to.
fn joins(kind: &str) -> &'static [&'static str] {
    match kind {
        "Microsoft.Network/privateLinkServices" => &[SUBNET_JOIN, FRONTEND_JOIN],
        "Microsoft.Network/privateEndpoints" => &[SUBNET_JOIN],
        "Microsoft.Network/privateDnsZones/virtualNetworkLinks" => &[NETWORK_JOIN],
        _ => &[],
    }
}

/// What is used and not granted, or granted and not used.
fn differences(of: &str, role: Role, used: &BTreeSet<String>, granted: &BTreeSet<String>) -> Vec<String> {
    let said = |what: &'static str| move |right: &String| format!("{of}, {}: {what}: {right}", role.as_str());
    let missing = used.difference(granted).map(said("used, not granted"));
    missing
        .chain(granted.difference(used).map(said("granted, not used")))
        .collect()
}

const GROUP: &str = "services-rg";

/// The identities have their rights on groups and not on subscriptions: the guest side's on that of the cluster, the management side's
/// on two, as the load balancer and its network are in another one than the services.
async fn with_rights_on_groups(ground: &Ground, cluster: &HostedCluster) -> Result<()> {
    let azure = ground.azure();
    let keys = ground.control_plane().token_keys().await?;
    let mut world = e2e::azure_sim::world(&keys, None, &json!({}), &json!({}))?;
    let subscription = format!("/subscriptions/{}", azure.management_subscription);
    let group = |name: &str| format!("{subscription}/resourceGroups/{name}");
    let resources = world["resources"].as_array_mut().context("no resources")?;
    resources.push(json!({"id": group(GROUP), "location": azure.location}));
    let guest = format!("/subscriptions/{}", azure.guest_subscription);
    on_groups(&mut world, Role::Cpo, &guest, &[cluster.resource_group()])?;
    let groups = [GROUP, &azure.management_group].map(group);
    on_groups(&mut world, Role::Ho, &subscription, &groups)?;
    let url = format!("{}/seed", ground.control_url());
    let seeded = reqwest::Client::new().put(url).json(&world).send().await?;
    seeded.error_for_status().map(drop).map_err(Into::into)
}

/// Puts these in the place of the subscription on which a role is assigned.
fn on_groups(world: &mut Value, role: Role, subscription: &str, groups: &[String]) -> Result<()> {
    let shipped = json!(shipped_actions(role.as_str())?);
    let roles = world["roles"].as_array_mut().context("no roles")?;
    let own = roles
        .iter()
        .position(|role| role["scope"] == subscription && role["actions"] == shipped);
    let own = roles.remove(own.context("no role of ours")?);
    for group in groups {
        let mut role = own.clone();
        role["scope"] = group.as_str().into();
        roles.push(role);
    }
    Ok(())
}

#[test]
fn rights_on_groups_are_enough_where_the_load_balancers_group_is_named() {
    scenario(async {
        let ground = Ground::local(Preset::Fast).await?;
        let cluster = HostedCluster::new(&ground, "grouped");
        with_rights_on_groups(&ground, &cluster).await?;
        let azure = ground.azure();
        let nodes = format!(
            "/subscriptions/{}/resourceGroups/{}",
            azure.management_subscription, azure.management_group
        );
        let flags = [("resource-group", GROUP), ("also-manage", nodes.as_str())];
        let _ho = Hyperlink::start(&ground, Role::Ho, "ho", &flags).await?;
        let _cpo = Hyperlink::start(&ground, Role::Cpo, "cpo", &[]).await?;
        cluster.create(&ground).await?;
        cluster.becomes_available(&ground, SOON).await?;
        cluster.becomes_reachable(&ground, SOON).await?;
        cluster.delete(&ground, SOON).await?;
        // Nothing was refused.
        let calls = ground.oracle().journal(0).await?;
        for client in [HO_CLIENT, CPO_CLIENT] {
            ensure!(!used_actions(&calls, client)?.is_empty(), "{client} asked for nothing");
        }
        Ok(())
    });
}

/// The journal does not show what a write needs on the resources that it joins, so each is taken away once.
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
        let ground = Ground::local_without(Preset::Fast, role, action).await?;
        let _ho = Hyperlink::start(&ground, Role::Ho, "ho", &[]).await?;
        let _cpo = Hyperlink::start(&ground, Role::Cpo, "cpo", &[]).await?;
        let cluster = HostedCluster::new(&ground, "unjoined");
        cluster.create(&ground).await?;
        let client = ground.client()?;
        eventually("the condition names the refusal", SOON, || async {
            let found = cluster.get_link_service(&client).await?.context("no custom resource")?;
            let all = conditions(&found);
            let said = all.iter().find(|one| one.kind == condition);
            ensure!(
                said.is_some_and(|one| one.status == "False" && one.message.contains("LinkedAuthorizationFailed")),
                "{all:?}"
            );
            Ok(())
        })
        .await?;
        let calls = ground.oracle().journal(0).await?;
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

/// `hostedcontrolplanes/finalizers update` stands for the right to make objects that block their owner's deletion, where
/// OwnerReferencesPermissionEnforcement is on.
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
