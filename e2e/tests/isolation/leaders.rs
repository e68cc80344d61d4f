//! A leader of all namespaces and that of a single one: never on the same namespace, and nobody is forgotten.

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::CPO_CLIENT;
use e2e::ground::{Call, Credential};
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::site::{SOON, alone};
use e2e::{Ground, eventually};

const FLAGS: [(&str, &str); 5] = [
    ("lease-duration", "5s"),
    ("lease-renew-deadline", "4s"),
    ("lease-retry", "500ms"),
    ("resync", "2s"),
    ("record-resync", "2s"),
];

/// A process for one namespace, with its lease there, as HyperShift's control plane operator has it.
async fn scoped(ground: &Ground, cluster: &HostedCluster) -> Result<Hyperlink> {
    let namespace = cluster.control_plane_namespace();
    let own = [
        ("namespace", namespace.as_str()),
        ("lease-namespace", namespace.as_str()),
    ];
    let flags = [&FLAGS[..], &own].concat();
    let program = e2e::binaries::executable("hyperlink")?;
    let (access, identity) = (ground.admin().path(), &ground.azure().cpo_twin);
    Hyperlink::start_as(&program, ground, Role::Cpo, "cpo-scoped", access, identity, &flags).await
}

/// Removes a record behind everybody's back and says who brings it back.
async fn repaired_by(ground: &Ground, cluster: &HostedCluster) -> Result<String> {
    let record = format!("{}/A/api", cluster.zones()[0]);
    let since = ground.oracle().last_call().await?;
    ground.oracle().drift_delete(&record).await?;
    eventually("the record is back", SOON, || async {
        ensure!(!ground.oracle().resources(&record).await?.is_empty(), "it is not");
        Ok(())
    })
    .await?;
    let calls = ground.oracle().journal(since).await?;
    let put = calls
        .iter()
        .find(|call| call.is_write() && call.path.eq_ignore_ascii_case(&record));
    put.and_then(|call| call.principal.clone()).context("nobody put it")
}

async fn left_alone(hyperlink: &Hyperlink, namespaces: usize) -> Result<()> {
    let line = format!("hyperlink_namespaces_left_alone{{role=\"cpo\"}} {namespaces}");
    eventually(&line, SOON, || async {
        let (_, metrics) = hyperlink.page("/metrics").await?;
        ensure!(metrics.lines().any(|one| one == line), "{metrics}");
        Ok(())
    })
    .await
}

/// Who called about a cluster, each turn once.
fn turns(calls: &[Call], cluster: &HostedCluster) -> Vec<String> {
    let mut turns: Vec<String> = Vec::new();
    let group = cluster.resource_group().to_lowercase();
    for call in calls.iter().filter(|call| call.path.to_lowercase().starts_with(&group)) {
        let who = call.principal.clone().unwrap_or_default();
        if turns.last() != Some(&who) {
            turns.push(who);
        }
    }
    turns
}

#[test]
fn leader_of_all_leaves_a_namespace_to_its_own_leader_and_takes_it_back() {
    alone(async |ground| {
        let Credential::WorkloadIdentity { client: twin, .. } = &ground.azure().cpo_twin else {
            anyhow::bail!("the twin is not federated");
        };
        let _ho = Hyperlink::start(&ground, Role::Ho, "ho", &FLAGS).await?;
        let cpo = Hyperlink::start(&ground, Role::Cpo, "cpo", &FLAGS).await?;
        let (mine, other) = (
            HostedCluster::new(&ground, "mine"),
            HostedCluster::new(&ground, "other"),
        );
        for cluster in [&mine, &other] {
            cluster.create(&ground).await?;
        }
        for cluster in [&mine, &other] {
            cluster.becomes_available(&ground, SOON).await?;
        }
        left_alone(&cpo, 0).await?;
        let since = ground.oracle().last_call().await?;
        ensure!(repaired_by(&ground, &mine).await? == CPO_CLIENT);

        let scoped = scoped(&ground, &mine).await?;
        left_alone(&cpo, 1).await?;
        let (status, text) = cpo.page("/readyz").await?;
        ensure!(status == 200 && text.contains("namespaces (cpo): all but 1"), "{text}");
        ensure!(repaired_by(&ground, &mine).await? == *twin);
        ensure!(repaired_by(&ground, &other).await? == CPO_CLIENT);
        mine.becomes_available(&ground, SOON).await?;

        // It is killed, and its lease runs out.
        drop(scoped);
        left_alone(&cpo, 0).await?;
        ensure!(repaired_by(&ground, &mine).await? == CPO_CLIENT);
        mine.becomes_reachable(&ground, SOON).await?;
        let calls = ground.oracle().journal(since).await?;
        let turns = turns(&calls, &mine);
        ensure!(
            turns == [CPO_CLIENT, twin, CPO_CLIENT],
            "they worked at the same time: {turns:?}"
        );
        Ok(())
    });
}
