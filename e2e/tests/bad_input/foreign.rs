//! Resources of others under Hyperlink's names: untouched while the cluster lives and when it is deleted.

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::{HostedCluster, NAMESPACE};
use serde_json::{Value, json};

use e2e::shared_env::{SOON, SharedEnv, patch, situation};

const MANAGEMENT_CLUSTER: &str = "hypershift.openshift.io_management-cluster-id";
const ADOPT_FROM: &str = "hyperlink.hypershift.openshift.io/adopt-from";

fn tags() -> Value {
    json!({"owner": "customer"})
}

/// Fails unless the resource is reported as foreign, stays as it was while the cluster lives and is deleted, and blocks
/// nothing. `more` is foreign too.
async fn stays_untouched(
    shared_env: &SharedEnv,
    cluster: &HostedCluster,
    id: &str,
    condition: &str,
    more: &str,
) -> Result<()> {
    let before = shared_env.observed(id).await?;
    cluster.create(&shared_env.test_env).await?;
    shared_env
        .refuses_all(cluster, &[condition, "AzurePrivateLinkServiceAvailable"], "NotOurs")
        .await?;
    shared_env.has_condition(cluster, condition, "NotOurs").await?;
    ensure!(shared_env.observed(id).await? == before, "{id} was changed");
    cluster.delete(&shared_env.test_env, SOON).await?;
    ensure!(
        shared_env.observed(id).await? == before,
        "{id} was changed by the deletion"
    );
    let writes = shared_env.calls_about(cluster).await?;
    let written = writes
        .iter()
        .find(|call| call.is_write() && call.path.eq_ignore_ascii_case(id));
    ensure!(written.is_none(), "{written:?}");
    shared_env.nothing_is_left_of(cluster, &[id, more]).await
}

/// Puts a resource into Azure, after the resource group that it needs.
async fn put(shared_env: &SharedEnv, cluster: &HostedCluster, id: &str, resource: Value) -> Result<()> {
    let oracle = shared_env.test_env.oracle();
    let location = &shared_env.test_env.azure().location;
    oracle
        .drift_put(&cluster.resource_group(), &json!({"location": location}))
        .await?;
    oracle.drift_put(id, &resource).await
}

#[test]
fn foreign_internal_zone() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "zone-taken");
        let zone = cluster.zones().remove(0);
        put(
            shared_env,
            &cluster,
            &zone,
            json!({"location": "global", "tags": tags()}),
        )
        .await?;
        stays_untouched(shared_env, &cluster, &zone, "AzurePrivateDNSAvailable", &zone).await
    });
}

#[test]
fn foreign_base_domain_zone_with_records() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "base-taken").with_base_domain("taken.example.com");
        let zone = cluster.zones().remove(1);
        put(
            shared_env,
            &cluster,
            &zone,
            json!({"location": "global", "tags": tags()}),
        )
        .await?;
        // One of them has a name that Hyperlink uses.
        for name in ["www", "api-base-taken"] {
            let record = json!({"properties": {"ttl": 60, "aRecords": [{"ipv4Address": "192.0.2.1"}]}});
            put(shared_env, &cluster, &format!("{zone}/A/{name}"), record).await?;
        }
        stays_untouched(shared_env, &cluster, &zone, "AzurePrivateDNSAvailable", &zone).await
    });
}

#[test]
fn foreign_endpoint() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "endpoint-taken");
        let location = &shared_env.test_env.azure().location;
        let vnet = format!("{}-other", cluster.vnet());
        let network = json!({"location": location, "properties": {"addressSpace": {"addressPrefixes": ["10.9.0.0/16"]},
            "subnets": [{"name": "default", "properties": {
                "addressPrefix": "10.9.0.0/24", "privateEndpointNetworkPolicies": "Disabled"}}]}});
        put(shared_env, &cluster, &vnet, network).await?;
        let alias = "theirs.6b1f0a2c-3d4e-4f50-8a61-7b8c9d0e1f22.eastus.azure.privatelinkservice";
        let connection = json!({"name": "theirs", "properties": {"privateLinkServiceId": alias, "groupIds": []}});
        let endpoint = json!({"location": location, "tags": tags(), "properties": {
            "subnet": {"id": format!("{vnet}/subnets/default")},
            "manualPrivateLinkServiceConnections": [connection]}});
        put(shared_env, &cluster, &cluster.endpoint(), endpoint).await?;
        let before = shared_env.observed(&cluster.endpoint()).await?;
        cluster.create(&shared_env.test_env).await?;
        shared_env
            .refuses(&cluster, "AzurePrivateEndpointAvailable", "NotOurs")
            .await?;
        cluster.delete(&shared_env.test_env, SOON).await?;
        ensure!(
            shared_env.observed(&cluster.endpoint()).await? == before,
            "it was changed"
        );
        let nics = format!(
            "{}/providers/Microsoft.Network/networkInterfaces",
            cluster.resource_group()
        );
        shared_env
            .nothing_is_left_of(&cluster, &[&cluster.endpoint(), &vnet, &nics])
            .await
    });
}

/// Changes a resource of the cluster, as somebody else would.
async fn change(
    shared_env: &SharedEnv,
    cluster: &HostedCluster,
    id: &str,
    change: impl FnOnce(&mut Value),
) -> Result<()> {
    let found = shared_env.test_env.oracle().resources(id).await?;
    let mut body = found.first().context("it is not there")?.clone();
    change(&mut body);
    put(shared_env, cluster, id, body).await
}

#[test]
fn service_of_another_management_cluster_needs_adopt_from() {
    situation(async |shared_env| {
        let cluster = shared_env.lives("moved-here").await?;
        let id = cluster.link_service(&shared_env.test_env);
        let stamp = |uid: &str| {
            let uid = uid.to_owned();
            move |body: &mut Value| body["tags"][MANAGEMENT_CLUSTER] = uid.into()
        };
        let other = "77777777-7777-4777-8777-777777777777";
        let own_tag = shared_env.test_env.oracle().resources(&id).await?[0]["tags"][MANAGEMENT_CLUSTER].clone();
        ensure!(own_tag.as_str().is_some_and(|uid| uid != other), "{own_tag}");
        change(shared_env, &cluster, &id, stamp(other)).await?;
        shared_env.refuses(&cluster, "AzurePLSCreated", "NotOurs").await?;
        let hosted = cluster.api(&shared_env.test_env.client()?, "HostedCluster", NAMESPACE);
        let from = |uid: &str| json!({"metadata": {"annotations": {ADOPT_FROM: uid}}});
        patch(&hosted, cluster.name(), from("88888888-8888-4888-8888-888888888888")).await?;
        shared_env.reconciles_again(&cluster).await?;
        shared_env.refuses(&cluster, "AzurePLSCreated", "NotOurs").await?;
        patch(&hosted, cluster.name(), from(other)).await?;
        shared_env.heals(&cluster).await?;
        let restored_tag = shared_env.test_env.oracle().resources(&id).await?[0]["tags"][MANAGEMENT_CLUSTER].clone();
        ensure!(restored_tag == own_tag, "{restored_tag}");
        patch(
            &hosted,
            cluster.name(),
            json!({"metadata": {"annotations": {ADOPT_FROM: null}}}),
        )
        .await?;
        shared_env.reconciles_again(&cluster).await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[test]
fn foreign_link_service() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "service-taken");
        let azure = shared_env.test_env.azure();
        let network = format!(
            "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network",
            azure.management_subscription, azure.management_group
        );
        let balancer = format!("{network}/loadBalancers/theirs");
        let subnet = shared_env.test_env.create_nat_subnet("theirs").await?;
        let frontend = json!({"name": "theirs", "properties": {"privateIPAllocationMethod": "Dynamic",
            "subnet": {"id": format!("{}/subnets/nodes", azure.management_vnet)}}});
        let body = json!({"location": azure.location, "sku": {"name": "Standard"},
            "properties": {"frontendIPConfigurations": [frontend]}});
        put(shared_env, &cluster, &balancer, body).await?;
        let nat = json!({"name": "nat", "properties": {"primary": true, "privateIPAllocationMethod": "Dynamic",
            "privateIPAddressVersion": "IPv4", "subnet": {"id": subnet}}});
        let body = json!({"location": azure.location, "tags": tags(), "properties": {
            "loadBalancerFrontendIpConfigurations": [{"id": format!("{balancer}/frontendIPConfigurations/theirs")}],
            "ipConfigurations": [nat]}});
        let id = cluster.link_service(&shared_env.test_env);
        put(shared_env, &cluster, &id, body).await?;
        let interface = format!("{network}/networkInterfaces/pls-{}", cluster.cluster_id());
        stays_untouched(shared_env, &cluster, &id, "AzurePLSCreated", &interface).await
    });
}
