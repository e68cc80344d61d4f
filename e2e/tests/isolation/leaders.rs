//! A leader for all namespaces beside one for a single namespace: it ignores what the operator excludes, and nothing
//! else.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::{CPO_CLIENT, HO_CLIENT};
use e2e::go_controllers::GoOperator;
use e2e::hosted_cluster::{HostedCluster, NAMESPACE, conditions};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::shared_env::{ALL, SOON, alone, calls_about};
use e2e::test_env::Credential;
use e2e::{TestEnv, eventually, roles};
use hyperlink::api::{self, AzurePrivateLinkService};
use serde_json::json;

pub(crate) const FLAGS: [(&str, &str); 5] = [
    ("lease-duration", "5s"),
    ("lease-renew-deadline", "4s"),
    ("lease-retry", "500ms"),
    ("resync", "2s"),
    ("record-resync", "2s"),
];

/// A process for one namespace, with its lease there, as HyperShift's control plane operator has it.
async fn scoped(test_env: &TestEnv, cluster: &HostedCluster) -> Result<Hyperlink> {
    let namespace = cluster.control_plane_namespace();
    let own = [
        ("namespace", namespace.as_str()),
        ("lease-namespace", namespace.as_str()),
    ];
    let flags = [&FLAGS[..], &own].concat();
    let program = e2e::binaries::executable("hyperlink")?;
    let (access, identity) = (test_env.admin().path(), &test_env.azure().cpo_twin);
    Hyperlink::start_as(&program, test_env, Role::Cpo, "cpo-scoped", access, identity, &flags).await
}

/// Deletes a record in Azure, and returns the client id that restores it.
pub(crate) async fn repaired_by(test_env: &TestEnv, cluster: &HostedCluster) -> Result<String> {
    let record = format!("{}/A/api", cluster.zones()[0]);
    let since = test_env.oracle().last_call().await?;
    test_env.oracle().drift_delete(&record).await?;
    eventually("the record is back", SOON, || async {
        ensure!(!test_env.oracle().resources(&record).await?.is_empty(), "it is not");
        Ok(())
    })
    .await?;
    let calls = test_env.oracle().journal(since).await?;
    let put = calls
        .iter()
        .find(|call| call.is_write() && call.path.eq_ignore_ascii_case(&record));
    put.and_then(|call| call.principal.clone()).context("nobody put it")
}

/// Writes leases of both roles in a namespace and renews them, as only their holder could.
async fn forge_leases(test_env: &TestEnv, namespace: &str) -> Result<()> {
    loop {
        for role in ["ho", "cpo"] {
            let now = jiff::Timestamp::now();
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"namespace": namespace, "name": format!("hyperlink-{role}")},
                "spec": {"holderIdentity": "forged", "leaseDurationSeconds": 3600, "renewTime": format!("{now:.6}")}});
            test_env.apply_yaml(&lease.to_string()).await?;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[test]
fn forged_lease_of_a_tenant_switches_nothing_off() {
    alone(async |test_env| {
        let _ho = Hyperlink::start(&test_env, Role::Ho, "ho", &FLAGS).await?;
        let _cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", &FLAGS).await?;
        let cluster = HostedCluster::new(&test_env, "forging");
        cluster.create_namespaces(&test_env).await?;
        let namespace = cluster.control_plane_namespace();
        let served = async {
            cluster.create(&test_env).await?;
            cluster.becomes_available(&test_env, SOON).await?;
            repaired_by(&test_env, &cluster).await
        };
        tokio::select! {
            forged = forge_leases(&test_env, &namespace) => forged,
            by = served => {
                let by = by?;
                ensure!(by == CPO_CLIENT, "{by}");
                Ok(())
            }
        }
    });
}

#[test]
fn namespace_is_left_alone_while_the_operator_excludes_it() {
    alone(async |test_env| {
        let Credential::WorkloadIdentity { client: twin, .. } = &test_env.azure().cpo_twin else {
            anyhow::bail!("the twin is not federated");
        };
        let (mine, other) = (
            HostedCluster::new(&test_env, "mine"),
            HostedCluster::new(&test_env, "other"),
        );
        let file = test_env.dir().join("excluding.json");
        let exclude = |excluded: &[String]| -> Result<()> {
            let scopes = [&mine, &other].map(HostedCluster::resource_group);
            let text = json!({"excludeNamespaces": excluded, "hostedClusters": [{"namespace": NAMESPACE, "scopes": scopes,
                "additionalAllowedSubscriptions": [e2e::hosted_cluster::ADDITIONAL_SUBSCRIPTION]}]});
            let new = file.with_extension("new");
            std::fs::write(&new, text.to_string())?;
            Ok(std::fs::rename(new, &file)?)
        };
        exclude(&[])?;
        let path = file.to_string_lossy();
        let _ho = Hyperlink::start(&test_env, Role::Ho, "ho", &FLAGS).await?;
        let flags = [&FLAGS[..], &[("allow-scopes", &*path)]].concat();
        let cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", &flags).await?;
        for cluster in [&mine, &other] {
            cluster.create(&test_env).await?;
        }
        for cluster in [&mine, &other] {
            cluster.becomes_available(&test_env, SOON).await?;
        }
        ensure!(repaired_by(&test_env, &mine).await? == CPO_CLIENT);

        exclude(&[mine.control_plane_namespace()])?;
        eventually("it is excluded", SOON, || async {
            let (status, text) = cpo.page("/readyz").await?;
            ensure!(status == 200 && text.contains("1 namespaces excluded"), "{text}");
            Ok(())
        })
        .await?;
        let own_process = scoped(&test_env, &mine).await?;
        ensure!(repaired_by(&test_env, &mine).await? == *twin);
        ensure!(repaired_by(&test_env, &other).await? == CPO_CLIENT);
        mine.becomes_available(&test_env, SOON).await?;

        drop(own_process);
        exclude(&[])?;
        ensure!(repaired_by(&test_env, &mine).await? == CPO_CLIENT);
        mine.becomes_reachable(&test_env, SOON).await
    });
}

/// Waits until all conditions of a cluster are True.
async fn all_hold(test_env: &TestEnv, cluster: &HostedCluster) -> Result<()> {
    let client = test_env.client()?;
    eventually("all conditions are True", SOON, async || {
        let found = cluster.get_link_service(&client).await?.context("no custom resource")?;
        let all = conditions(&found);
        let hold = all.iter().filter(|one| one.status == "True");
        ensure!(hold.count() == ALL.len(), "{all:?}");
        Ok(())
    })
    .await
}

#[test]
fn cluster_that_is_not_moved_yet_stays_true_while_excluded() {
    alone(async |test_env| {
        let (moved, theirs) = (
            HostedCluster::new(&test_env, "moved"),
            HostedCluster::new(&test_env, "not-yet"),
        );
        let _ho = Hyperlink::start(&test_env, Role::Ho, "ho", &FLAGS).await?;
        theirs.create(&test_env).await?;
        let go_cpo = GoOperator::cpo(&test_env, &theirs, 50).await?;
        all_hold(&test_env, &theirs).await?;

        let file = test_env.dir().join("moved.json");
        let entry = json!({"namespace": NAMESPACE, "names": ["moved"], "scopes": [moved.resource_group()],
            "additionalAllowedSubscriptions": [e2e::hosted_cluster::ADDITIONAL_SUBSCRIPTION]});
        let text = json!({"hostedClusters": [entry], "excludeNamespaces": [theirs.control_plane_namespace()]});
        std::fs::write(&file, text.to_string())?;
        let path = file.to_string_lossy();
        let flags = [&FLAGS[..], &[("allow-scopes", &*path)]].concat();
        let _cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", &flags).await?;
        // By the time Hyperlink has built a whole path, it would have reconciled the other cluster many times.
        let served = async {
            moved.create(&test_env).await?;
            moved.becomes_available(&test_env, SOON).await
        };
        let client = test_env.client()?;
        let watched = async {
            loop {
                let found = theirs.get_link_service(&client).await?.context("no custom resource")?;
                let refused: Vec<_> = conditions(&found)
                    .into_iter()
                    .filter(|one| one.reason == "ScopeNotAllowed")
                    .collect();
                ensure!(refused.is_empty(), "{refused:?}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            refused = watched => return refused,
            served = served => served?,
        }
        all_hold(&test_env, &theirs).await?;
        go_cpo.stop().await
    });
}

/// How many conditions of the private path a HostedCluster has.
async fn summed_up(test_env: &TestEnv, cluster: &HostedCluster) -> Result<usize> {
    let api = cluster.api(&test_env.client()?, "HostedCluster", NAMESPACE);
    let all = conditions(&api.get(cluster.name()).await?);
    let of_the_path = |kind: &str| {
        AzurePrivateLinkService::CONDITIONS
            .iter()
            .any(|one| one.as_str() == kind)
    };
    Ok(all.iter().filter(|one| of_the_path(&one.kind)).count())
}

/// Waits until a new cluster that nobody excludes is served and summed up. By then a process that would touch another
/// cluster has done so.
async fn another_is_served(test_env: &TestEnv, name: &str) -> Result<()> {
    let cluster = HostedCluster::new(test_env, name);
    cluster.create(test_env).await?;
    cluster.becomes_available(test_env, SOON).await?;
    eventually("it is summed up", SOON, || async {
        let count = summed_up(test_env, &cluster).await?;
        ensure!(count == AzurePrivateLinkService::CONDITIONS.len(), "{count}");
        Ok(())
    })
    .await
}

#[test]
fn flag_excludes_a_namespace_from_all_controllers_of_both_roles() {
    alone(async |test_env| {
        roles::install_aggregation(test_env.control_plane(), "ho").await?;
        let mine = HostedCluster::new(&test_env, "mine");
        let namespace = mine.control_plane_namespace();
        let excluding = [&FLAGS[..], &[("exclude-namespace", namespace.as_str())]].concat();
        let summing_up = [&excluding[..], &[("aggregate-conditions", "true")]].concat();
        let _ho = Hyperlink::start(&test_env, Role::Ho, "ho", &summing_up).await?;
        let _cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", &excluding).await?;
        let client = test_env.client()?;
        mine.create(&test_env).await?;
        another_is_served(&test_env, "first").await?;
        // The observer does not make it.
        ensure!(mine.get_link_service(&client).await?.is_none(), "it is made");

        // A process of its own makes it, and its changes reach the watches of all processes.
        let _scoped = scoped(&test_env, &mine).await?;
        eventually("it is made and reported", SOON, || async {
            let made = mine.get_link_service(&client).await?.context("it is not made")?;
            ensure!(!conditions(&made).is_empty(), "{made:?}");
            Ok(())
        })
        .await?;
        another_is_served(&test_env, "second").await?;
        let made = mine.get_link_service(&client).await?.context("it is gone")?;
        let managers = made.metadata.managed_fields.iter().flatten();
        let by_ho = managers.filter(|entry| entry.manager.as_deref() == Some(api::Role::Ho.field_manager()));
        ensure!(by_ho.count() == 0, "the management side wrote it: {made:?}");
        ensure!(summed_up(&test_env, &mine).await? == 0, "the HostedCluster is written");
        let calls = calls_about(&test_env, &mine, 0).await?;
        let shared = [HO_CLIENT, CPO_CLIENT];
        let asked = calls
            .iter()
            .filter(|call| call.principal.as_deref().is_some_and(|by| shared.contains(&by)));
        ensure!(asked.count() == 0, "{calls:?}");
        Ok(())
    });
}
