//! Two tenants on one management cluster: what one of them claims of the other's is refused, and costs it nothing.

use std::collections::BTreeSet;
use std::slice;

use anyhow::{Result, ensure};
use e2e::capz_cluster::{CapzCluster, IdentityType, LoadBalancer, PrivateLink};
use e2e::capz_controllers::CONDITION;
use e2e::capz_env::{
    CAPZ_CLIENT, CERTIFICATE_CLIENT, DNS_CLIENT, FEDERATED_CLIENT, MANAGED_CLIENT, OTHER_TENANT, OTHER_TENANT_CLIENT,
    OTHER_TENANT_SUBSCRIPTION, SECRET_CLIENT, TENANT, TokenRequest, WORKLOAD,
};
use e2e::hyperlink::Hyperlink;
use e2e::test_env::Call;
use e2e::{eventually, scenario};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::bad_input::has_reason;
use crate::fleet::{Fleet, NAMESPACE, entry, gateway};
use crate::take_over::always_reachable;
use crate::{SOON, becomes_true};

/// The namespaces of the tenants.
const FIRST: &str = "tenant-first";
const SECOND: &str = "tenant-second";

/// A cluster of the second tenant, with its own identity in its own subscription.
fn of_second(name: &str, load_balancer: LoadBalancer) -> CapzCluster {
    CapzCluster::workload(SECOND, name, load_balancer)
        .in_subscription(OTHER_TENANT_SUBSCRIPTION)
        .with_identity(json!({"spec": {"tenantID": OTHER_TENANT, "clientID": OTHER_TENANT_CLIENT}}))
}

/// Clusters of the second tenant that claim what is the first tenant's, each with the reason that it shows.
fn claims(victim: &CapzCluster) -> [(CapzCluster, &'static str); 5] {
    let named = |name: &str| of_second(name, LoadBalancer::Internal);
    let link = PrivateLink::new(victim.links()[0].name());
    let in_its_group = |cluster: CapzCluster| {
        let group = victim.resource_group_name();
        cluster.in_subscription(WORKLOAD).in_resource_group(group)
    };
    let identity = json!({"spec": {"identityRef": {"name": victim.name(), "namespace": FIRST}}});
    let secret = json!({"spec": {"clientSecret": {"name": victim.secret_name(), "namespace": FIRST}}});
    let with_secret = CapzCluster::workload(SECOND, "secret", LoadBalancer::Internal)
        .in_subscription(OTHER_TENANT_SUBSCRIPTION)
        .with_identity_type(IdentityType::ServicePrincipal);
    [
        (named("identity").with_azure_cluster(identity), "IdentityNotAllowed"),
        (with_secret.with_identity(secret), "IdentityMissing"),
        (named("link").with_private_links(slice::from_ref(&link)), "NameConflict"),
        (in_its_group(named("group")).with_private_links(&[link]), "NameConflict"),
        (in_its_group(named("subscription")), "AzureDenied"),
    ]
}

/// All that is the first tenant's in Kubernetes, to the letter.
async fn state(fleet: &Fleet, victim: &CapzCluster) -> Result<Value> {
    let object = victim.get(&fleet.env).await?;
    Ok(
        json!({"entry": fleet.entry_text(&entry(victim)).await?, "record": fleet.ledger().await?[entry(victim)],
        "spec": object.data["spec"], "conditions": object.data["status"]["conditions"],
        "finalizers": object.finalizers(), "annotations": object.annotations()}),
    )
}

/// A public cluster of the second tenant, which is connected to the gateway by its own identity. The part of its CAPZ,
/// which has rights there alone, is played by hand.
async fn connect_second(fleet: &Fleet) -> Result<CapzCluster> {
    let (env, management) = (&fleet.env, &fleet.management);
    let own = of_second("own", LoadBalancer::Public);
    own.create(env).await?;
    let name = gateway(&own, management);
    eventually("its entry is there", SOON, || async {
        let names = own.entry_names(env).await?;
        ensure!(names.contains(&name), "{names:?}");
        Ok(())
    })
    .await?;
    let service = management.link_service(&management.gateway_link());
    let endpoint = json!({"location": own.location(), "properties": {
        "subnet": {"id": own.node_subnet()},
        "privateLinkServiceConnections": [{"name": name, "properties": {"privateLinkServiceId": service}}]}});
    env.oracle().drift_put(&own.endpoint(&name), &endpoint).await?;
    becomes_true(env, &own, CONDITION).await?;
    Ok(own)
}

/// The second tenant does what it can; the first one's cluster is as before at every stage.
async fn attack(fleet: &Fleet, victim: &CapzCluster) -> Result<()> {
    let env = &fleet.env;
    let before = state(fleet, victim).await?;
    let same = async |when: &str| {
        let after = state(fleet, victim).await?;
        ensure!(after == before, "{when}: {after} is not {before}");
        Ok(())
    };
    let own = connect_second(fleet).await?;
    let claims = claims(victim);
    for (cluster, _) in &claims {
        cluster.create_objects(env).await?;
    }
    for (cluster, reason) in &claims {
        has_reason(fleet, cluster, reason).await?;
    }
    same("beside the claims").await?;
    fleet.has_entries(&[entry(victim)]).await?;
    own.has_true(env, CONDITION).await?;
    for cluster in claims.iter().map(|(cluster, _)| cluster).chain([&own]) {
        cluster.delete(env, SOON).await?;
    }
    same("after the claims").await
}

/// Whether a call is for something in this subscription.
fn is_in(call: &Call, subscription: &str) -> bool {
    let path = call.path.to_ascii_lowercase();
    path.starts_with(&format!("/subscriptions/{subscription}/"))
}

fn calls_by<'a>(calls: &'a [Call], client: &str) -> Vec<&'a Call> {
    let by = |call: &&Call| call.principal.as_deref() == Some(client);
    calls.iter().filter(by).collect()
}

/// Fails if one tenant's identity has been used for the other's resources, or where it is not known.
async fn identities_are_kept_apart(fleet: &Fleet) -> Result<()> {
    let calls = fleet.env.oracle().journal(0).await?;
    for client in [FEDERATED_CLIENT, SECRET_CLIENT, CERTIFICATE_CLIENT, MANAGED_CLIENT] {
        let mut abroad = calls_by(&calls, client);
        abroad.retain(|call| is_in(call, OTHER_TENANT_SUBSCRIPTION));
        ensure!(abroad.is_empty(), "{abroad:?}");
    }
    // Whoever claims to lie in a subscription is read there, by its own identity, which Azure does not know there.
    let mut answered = calls_by(&calls, OTHER_TENANT_CLIENT);
    ensure!(answered.iter().all(|call| call.method == "GET"), "{answered:?}");
    answered.retain(|call| call.status != 401);
    ensure!(!answered.is_empty(), "the second tenant's identity is not used");
    let abroad = answered.iter().find(|call| !is_in(call, OTHER_TENANT_SUBSCRIPTION));
    ensure!(abroad.is_none(), "{abroad:?}");

    let own =
        [CAPZ_CLIENT, DNS_CLIENT, FEDERATED_CLIENT, SECRET_CLIENT].map(|client| TokenRequest::new(TENANT, client));
    let own = own
        .into_iter()
        .chain([TokenRequest::new(OTHER_TENANT, OTHER_TENANT_CLIENT)]);
    let (expected, asked) = (BTreeSet::from_iter(own), fleet.env.token_requests().await?);
    ensure!(asked == expected, "{asked:?} is not {expected:?}");
    Ok(())
}

#[test]
fn tenant_gets_nothing_by_naming_what_is_anothers() {
    scenario(async {
        let fleet = Fleet::across(&[FIRST]).await?;
        let (env, management) = (&fleet.env, &fleet.management);
        management
            .create_gateway(env, &[WORKLOAD, OTHER_TENANT_SUBSCRIPTION])
            .await?;
        let victim = CapzCluster::workload(FIRST, "victim", LoadBalancer::Internal);
        let victim = victim.with_identity_type(IdentityType::ServicePrincipal);
        victim.create(env).await?;
        let all = [NAMESPACE, FIRST, SECOND];
        fleet.create_namespace(SECOND).await?;
        let hyperlink = Hyperlink::start_capz(env, management, &all, "first", &[("resync", "10s")]).await?;
        fleet.is_connected(&victim).await?;
        tokio::select! {
            failed = always_reachable(&fleet, slice::from_ref(&victim)) => failed?,
            done = attack(&fleet, &victim) => done?,
        }
        fleet.is_connected(&victim).await?;
        identities_are_kept_apart(&fleet).await?;
        fleet.only_reads().await?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}
