//! A whole life, and what each role asked for in it.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::used::used_actions;
use e2e::azure_sim::{CPO_CLIENT, HO_CLIENT, Preset, shipped_actions};
use e2e::hosted_cluster::{HostedCluster, NAMESPACE, conditions};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::rights::{audit, used_rights};
use e2e::shared_env::control;
use e2e::{TestEnv, eventually, roles, scenario};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::SOON;
use crate::granted::granted_rights;

/// The Services that publish the host names of API and OAuth.
const EXTERNAL: [&str; 2] = ["kube-apiserver-private-external", "oauth-private-external"];

#[test]
fn rights_used_in_a_whole_life_are_the_rights_granted() {
    scenario(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        whole_life(&test_env).await?;
        let audited = audit(test_env.control_plane())?;
        let calls = test_env.oracle().journal(0).await?;
        let mut wrong = Vec::new();
        for (role, client) in [(Role::Ho, HO_CLIENT), (Role::Cpo, CPO_CLIENT)] {
            let mut granted = granted_rights(role)?;
            if role == Role::Cpo {
                // Never a request of its own: see `blocking_the_owners_deletion_takes_a_right`.
                ensure!(granted.remove("hypershift.openshift.io/hostedcontrolplanes/finalizers update"));
            }
            wrong.extend(differences(
                "Kubernetes",
                role,
                &used_rights(&audited, role.as_str())?,
                &granted,
            ));
            let granted = shipped_actions(role.as_str())?.into_iter().collect();
            wrong.extend(differences("Azure", role, &used_actions(&calls, client)?, &granted));
        }
        ensure!(wrong.is_empty(), "{wrong:#?}");
        Ok(())
    });
}

/// Creates clusters with all that they can have, hands over, repairs what was deleted or changed, and deletes the
/// clusters.
async fn whole_life(test_env: &TestEnv) -> Result<()> {
    let flags = [("resync", "1s"), ("record-resync", "1s")];
    let of_ho = [
        flags[0],
        flags[1],
        ("aggregate-conditions", "true"),
        ("metrics-secure", "true"),
        ("probe-bind", "127.0.0.1:0"),
    ];
    roles::install_aggregation(test_env.control_plane(), "ho").await?;
    roles::install_metrics(test_env.control_plane(), "ho").await?;
    let first = Hyperlink::start(test_env, Role::Ho, "ho", &of_ho).await?;
    let cpo = Hyperlink::start(test_env, Role::Cpo, "cpo", &flags).await?;
    first.ready(SOON).await?;
    cpo.ready(SOON).await?;
    read_metrics(test_env, &first).await?;
    let cluster = HostedCluster::new(test_env, "whole").with_base_domain("apps.example.com");
    fail_first_zone(test_env).await?;
    cluster.create(test_env).await?;
    cluster.becomes_available(test_env, SOON).await?;
    cluster.becomes_reachable(test_env, SOON).await?;
    all_is_well(test_env, &cluster).await?;

    let second = Hyperlink::start(test_env, Role::Ho, "ho-2", &of_ho).await?;
    let third = Hyperlink::start(test_env, Role::Cpo, "cpo-2", &flags).await?;
    second.ready(SOON).await?;
    third.ready(SOON).await?;
    take_over(test_env.client()?, first, "hyperlink-ho").await?;
    take_over(test_env.client()?, cpo, "hyperlink-cpo").await?;

    let record = format!("{}/A/api", cluster.zones()[0]);
    for drifted in [record, cluster.endpoint(), cluster.link_service(test_env)] {
        test_env.oracle().drift_delete(&drifted).await?;
        comes_back(test_env, &drifted).await?;
        cluster.becomes_available(test_env, SOON).await?;
        cluster.becomes_reachable(test_env, SOON).await?;
    }
    follow_host_names(test_env, &cluster).await?;
    connect_somebody_else(test_env, &cluster).await?;
    // The zone stays for this record, without Hyperlink's own.
    let record = json!({"properties": {"ttl": 60, "aRecords": [{"ipv4Address": "192.0.2.1"}]}});
    test_env
        .oracle()
        .drift_put(&format!("{}/A/www", cluster.zones()[1]), &record)
        .await?;
    let own_oauth = HostedCluster::new(test_env, "own-oauth").with_oauth_load_balancer();
    own_oauth.create(test_env).await?;
    own_oauth.becomes_available(test_env, SOON).await?;
    tokio::try_join!(cluster.delete(test_env, SOON), own_oauth.delete(test_env, SOON))?;
    second.stop().await?;
    third.stop().await
}

/// Reads the metrics, as Prometheus does.
async fn read_metrics(test_env: &TestEnv, hyperlink: &Hyperlink) -> Result<()> {
    let token = roles::metrics_reader(test_env.control_plane(), "prometheus").await?;
    // The program made the certificate itself: no client could trust it.
    let http = reqwest::Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .build()?;
    let url = format!("https://{}/metrics", hyperlink.metrics_address());
    let answer = http.get(url).bearer_auth(token).send().await?;
    ensure!(answer.status() == 200, "{}", answer.text().await?);
    Ok(())
}

/// Waits until the HostedCluster reports what the custom resource does.
async fn all_is_well(test_env: &TestEnv, cluster: &HostedCluster) -> Result<()> {
    let api = cluster.api(&test_env.client()?, "HostedCluster", NAMESPACE);
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

/// Has the operation of the first zone fail. Only the operation's own URL has the reason.
async fn fail_first_zone(test_env: &TestEnv) -> Result<()> {
    let rule = json!([{"match": {"method": "PUT", "path": "/privateDnsZones/[^/]+$"}, "do": {"operation": "fail"}}]);
    control(test_env, reqwest::Method::PUT, "/faults", rule).await
}

/// Somebody else changes where the host names lead, and Hyperlink repairs it. Then the control plane withdraws the
/// names, that of the API after a change.
async fn follow_host_names(test_env: &TestEnv, cluster: &HostedCluster) -> Result<()> {
    let client = test_env.client()?;
    let services: Api<Service> = Api::namespaced(client.clone(), &cluster.control_plane_namespace());
    for name in EXTERNAL {
        let leads_to = async || -> Result<Option<String>> {
            let service = cluster.get_service(&client, name).await?;
            Ok(service.and_then(|service| service.spec?.external_name))
        };
        let right = leads_to().await?.context("it leads nowhere")?;
        let wrong = Patch::Merge(json!({"spec": {"externalName": "192.0.2.1"}}));
        services.patch(name, &PatchParams::default(), &wrong).await?;
        eventually(&format!("{name} leads to {right} again"), SOON, || async {
            let now = leads_to().await?;
            ensure!(now.as_ref() == Some(&right), "{now:?}");
            Ok(())
        })
        .await?;
    }
    let changes = [
        ("APIServer", EXTERNAL[0], Some("api-whole.new.example.com")),
        ("APIServer", EXTERNAL[0], None),
        ("OAuthServer", EXTERNAL[1], None),
    ];
    for (of, name, host) in changes {
        cluster.publish(&client, of, host).await?;
        eventually(&format!("{name} publishes {host:?}"), SOON, || async {
            let service = cluster.get_service(&client, name).await?;
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

/// Connects another endpoint to the service, which stays when the cluster is deleted.
async fn connect_somebody_else(test_env: &TestEnv, cluster: &HostedCluster) -> Result<()> {
    let service = test_env.oracle().resources(&cluster.link_service(test_env)).await?;
    let alias = &service.first().context("no service")?["properties"]["alias"];
    let connection = json!({"name": "theirs", "properties": {"privateLinkServiceId": alias, "groupIds": []}});
    let endpoint = json!({"location": test_env.azure().location, "properties": {
        "subnet": {"id": cluster.subnet()}, "manualPrivateLinkServiceConnections": [connection]}});
    let id = cluster.endpoint().replace("private-router-pe", "theirs");
    test_env.oracle().drift_put(&id, &endpoint).await
}

/// Stops the leader and waits until the standby holds the lease.
pub(crate) async fn take_over(client: kube::Client, leader: Hyperlink, lease: &str) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(client, roles::NAMESPACE);
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

async fn comes_back(test_env: &TestEnv, id: &str) -> Result<()> {
    eventually(&format!("{id} is there again"), SOON, || async {
        let found = test_env.oracle().resources(id).await?;
        ensure!(!found.is_empty(), "it is not");
        Ok(())
    })
    .await
}

/// What is used and not granted, or granted and not used.
pub(crate) fn differences(of: &str, role: Role, used: &BTreeSet<String>, granted: &BTreeSet<String>) -> Vec<String> {
    let finding = |what: &'static str| move |right: &String| format!("{of}, {}: {what}: {right}", role.as_str());
    let missing = used.difference(granted).map(finding("used, not granted"));
    missing
        .chain(granted.difference(used).map(finding("granted, not used")))
        .collect()
}
