//! Steps that Azure refuses or has not completed: each condition names its step, in the words of RUNBOOK.md.

use anyhow::Result;
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, NAMESPACE};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::roles;
use e2e::shared_env::{SOON, SharedEnv, ensure_condition, run};
use futures::future::try_join_all;
use serde_json::{Value, json};

const ENDPOINT: &str = "AzurePrivateEndpointAvailable";
const DNS: &str = "AzurePrivateDNSAvailable";
const SERVICE: &str = "AzurePLSCreated";
const BALANCER: &str = "AzureInternalLoadBalancerAvailable";

/// A fault rule: Azure denies every call of this method to a path that ends like this.
fn denied(method: &str, path: &str) -> Value {
    answered(method, path, 403, "AuthorizationFailed")
}

fn answered(method: &str, path: &str, status: u16, code: &str) -> Value {
    let path = format!("{}$", path.replace('.', "\\.").replace('*', "\\*"));
    json!({"match": {"method": method, "path": path, "times": 1_000_000},
        "do": {"status": status, "code": code, "message": "as the test wants it"}})
}

/// A cluster, Azure's faults, and the reasons that conditions then have.
struct Case {
    cluster: HostedCluster,
    faults: Vec<Value>,
    reasons: Vec<(&'static str, &'static str)>,
}

/// Runs all cases at once, then removes all faults.
async fn play(shared_env: &SharedEnv, cases: Vec<Case>) -> Result<()> {
    let faults: Vec<&Value> = cases.iter().flat_map(|case| &case.faults).collect();
    shared_env.faults(json!(faults)).await?;
    try_join_all(cases.iter().map(|case| case.cluster.create(&shared_env.test_env))).await?;
    let checks = cases.iter().flat_map(|case| {
        case.reasons
            .iter()
            .map(|(kind, reason)| shared_env.has_condition(&case.cluster, kind, reason))
    });
    try_join_all(checks).await?;
    shared_env.faults(json!([])).await
}

fn zone(cluster: &HostedCluster, index: usize) -> String {
    cluster.zones().swap_remove(index)
}

/// A fault rule: Azure denies the link of this name to one of the cluster's zones.
fn unlinked(index: usize, name: &'static str) -> impl Fn(&HostedCluster) -> Value {
    move |cluster| {
        denied(
            "PUT",
            &format!("{}/virtualNetworkLinks/private-router-{name}", zone(cluster, index)),
        )
    }
}

#[test]
fn denied_step_of_the_guests_side_has_its_own_reason() {
    run(async {
        let shared_env = SharedEnv::start().await?;
        let private = |name: &str| HostedCluster::new(&shared_env.test_env, name);
        let public = |name: &str| private(name).with_base_domain(&format!("{name}.example.com"));
        let case = |cluster: HostedCluster, part: &dyn Fn(&HostedCluster) -> Value, reason| Case {
            faults: vec![part(&cluster)],
            reasons: vec![(DNS, reason)],
            cluster,
        };
        let endpoint = private("endpoint-denied");
        let unread = private("endpoint-unread");
        let cases = vec![
            case(
                private("zone-denied"),
                &|c| denied("PUT", &zone(c, 0)),
                "DNSZoneCreationFailed",
            ),
            case(
                private("link-denied"),
                &unlinked(0, "vnet-link"),
                "VNetLinkCreationFailed",
            ),
            case(
                private("record-denied"),
                &|c| denied("PUT", &format!("{}/A/api", zone(c, 0))),
                "ARecordCreationFailed",
            ),
            case(
                public("base-denied"),
                &|c| denied("PUT", &zone(c, 1)),
                "BaseDomainDNSZoneCreationFailed",
            ),
            case(
                public("base-unlinked"),
                &unlinked(1, "basedomain-vnet-link"),
                "BaseDomainVNetLinkCreationFailed",
            ),
            case(
                public("base-empty"),
                &|c| denied("PUT", &format!("{}/A/api-base-empty", zone(c, 1))),
                "BaseDomainARecordCreationFailed",
            ),
            Case {
                faults: vec![denied("PUT", &endpoint.endpoint())],
                reasons: vec![
                    (ENDPOINT, "PrivateEndpointCreationFailed"),
                    (DNS, "WaitingForPrivateEndpoint"),
                ],
                cluster: endpoint,
            },
            Case {
                faults: vec![denied("GET", &unread.endpoint())],
                reasons: vec![(ENDPOINT, "PrivateEndpointGetFailed")],
                cluster: unread,
            },
        ];
        play(&shared_env, cases).await
    });
}

#[test]
fn each_state_of_a_management_side_step_has_its_own_reason() {
    run(async {
        let shared_env = SharedEnv::start().await?;
        let named = |name: &str| HostedCluster::new(&shared_env.test_env, name);
        let own = |cluster: &HostedCluster| cluster.link_service(&shared_env.test_env);
        let (refused, locked, slow) = (named("service-denied"), named("service-locked"), named("service-slow"));
        let hangs =
            json!({"match": {"method": "PUT", "path": own(&slow), "times": 1_000_000}, "do": {"operation": "hang"}});
        let cases = vec![
            Case {
                faults: vec![denied("PUT", &own(&refused))],
                reasons: vec![
                    (SERVICE, "PLSCreationFailed"),
                    (ENDPOINT, "WaitingForPrivateLinkService"),
                ],
                cluster: refused,
            },
            Case {
                faults: vec![answered("PUT", &own(&locked), 409, "ScopeLocked")],
                reasons: vec![(SERVICE, "ScopeLocked")],
                cluster: locked,
            },
            Case {
                faults: vec![hangs],
                reasons: vec![(SERVICE, "Provisioning")],
                cluster: slow,
            },
        ];
        play(&shared_env, cases).await?;

        let changed = named("service-changed");
        changed.create(&shared_env.test_env).await?;
        shared_env.heals(&changed).await?;
        shared_env.has_condition(&changed, SERVICE, "AzureSuccess").await?;
        shared_env.faults(json!([denied("PUT", &own(&changed))])).await?;
        let mut body = shared_env.test_env.oracle().resources(&own(&changed)).await?.remove(0);
        body["properties"]["enableProxyProtocol"] = json!(true);
        shared_env.test_env.oracle().drift_put(&own(&changed), &body).await?;
        shared_env.has_condition(&changed, SERVICE, "PLSUpdateFailed").await?;

        let hangs =
            json!({"match": {"method": "DELETE", "path": own(&changed), "times": 1}, "do": {"operation": "hang"}});
        shared_env.faults(json!([hangs])).await?;
        let client = shared_env.test_env.client()?;
        let crs = changed.api(&client, "AzurePrivateLinkService", &changed.control_plane_namespace());
        crs.delete("private-router", &Default::default()).await?;
        shared_env.has_condition(&changed, SERVICE, "Deleting").await
    });
}

#[test]
fn load_balancer_that_is_not_there_or_there_twice() {
    run(async {
        let shared_env = SharedEnv::start().await?;
        let cluster = HostedCluster::new(&shared_env.test_env, "unbalanced");
        let lists = |balancers: Value| {
            json!([{"match": {"method": "GET", "path": "/loadBalancers$", "times": 1_000_000},
                "do": {"status": 200, "body": {"value": balancers}}}])
        };
        shared_env.faults(lists(json!([]))).await?;
        cluster.create(&shared_env.test_env).await?;
        shared_env
            .has_condition(&cluster, BALANCER, "WaitingForLoadBalancer")
            .await?;
        let azure = shared_env.test_env.azure();
        let id = format!(
            "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network/loadBalancers/",
            azure.management_subscription, azure.management_group
        );
        let one = shared_env.test_env.oracle().resources(&id).await?.remove(0);
        let again: Value =
            serde_json::from_str(&one.to_string().replace("/loadBalancers/", "/loadBalancers/copy-of-"))?;
        shared_env.faults(lists(json!([one, again]))).await?;
        shared_env
            .has_condition(&cluster, BALANCER, "AmbiguousLoadBalancer")
            .await?;
        // A problem that a person has to solve is read less often: another cluster asks at once.
        shared_env.faults(json!([denied("GET", "/loadBalancers")])).await?;
        let unlisted = HostedCluster::new(&shared_env.test_env, "unlisted");
        unlisted.create(&shared_env.test_env).await?;
        shared_env.has_condition(&unlisted, BALANCER, "ILBLookupFailed").await
    });
}

#[test]
fn another_zone_of_the_name_is_linked_to_the_network() {
    e2e::shared_env::situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "twice-linked");
        cluster.create_guest_network(&shared_env.test_env).await?;
        let group = format!("{}-other", cluster.resource_group());
        let zone = zone(&cluster, 0).replace(&cluster.resource_group(), &group);
        let link = json!({"location": "global", "properties": {
            "virtualNetwork": {"id": cluster.vnet()}, "registrationEnabled": false}});
        let oracle = shared_env.test_env.oracle();
        oracle
            .drift_put(&group, &json!({"location": shared_env.test_env.azure().location}))
            .await?;
        oracle.drift_put(&zone, &json!({"location": "global"})).await?;
        oracle
            .drift_put(&format!("{zone}/virtualNetworkLinks/theirs"), &link)
            .await?;
        cluster.create(&shared_env.test_env).await?;
        shared_env.has_condition(&cluster, DNS, "VNetLinkedToOtherZone").await?;
        oracle.drift_delete(&zone).await?;
        cluster.delete(&shared_env.test_env, SOON).await
    });
}

#[test]
fn zone_that_hides_public_names() {
    e2e::shared_env::situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "shadow").with_base_domain("shadow.example.com");
        cluster.create(&shared_env.test_env).await?;
        shared_env.has_condition(&cluster, DNS, "ZoneShadowsBaseDomain").await?;
        cluster.delete(&shared_env.test_env, SOON).await
    });
}

#[test]
fn process_with_other_settings_than_the_service_was_made_with() {
    run(async {
        let SharedEnv { test_env, ho, cpo } = SharedEnv::start().await?;
        let cluster = HostedCluster::new(&test_env, "moved");
        cluster.create(&test_env).await?;
        cluster.becomes_available(&test_env, SOON).await?;
        ho.stop().await?;
        roles::install_aggregation(test_env.control_plane(), "ho").await?;
        let group = format!(
            "/subscriptions/{}/resourceGroups/new-rg",
            test_env.azure().management_subscription
        );
        let location = json!({"location": test_env.azure().location});
        test_env.oracle().drift_put(&group, &location).await?;
        let flags = [
            ("resync", "3s"),
            ("resource-group", "new-rg"),
            ("aggregate-conditions", "true"),
        ];
        let ho = Hyperlink::start(&test_env, Role::Ho, "ho-elsewhere", &flags).await?;
        let shared_env = SharedEnv { test_env, ho, cpo };
        shared_env
            .has_condition(&cluster, SERVICE, "ConfigurationChanged")
            .await?;
        let client = shared_env.test_env.client()?;
        let hosted = cluster.api(&client, "HostedCluster", NAMESPACE);
        eventually("the HostedCluster says so too", SOON, || async {
            ensure_condition(&hosted.get(cluster.name()).await?, SERVICE, "AzureError")
        })
        .await?;

        let SharedEnv { test_env, ho, cpo } = shared_env;
        ho.stop().await?;
        let cloud = [("resync", "3s"), ("cloud", "AzureUSGovernmentCloud")];
        let ho = Hyperlink::start(&test_env, Role::Ho, "ho-in-another-cloud", &cloud).await?;
        let shared_env = SharedEnv { test_env, ho, cpo };
        shared_env.has_condition(&cluster, SERVICE, "CloudMismatch").await
    });
}
