//! What the kubelet does for a running Pod: it restarts a process that hangs, and delivers changed files.

use anyhow::ensure;
use e2e::eventually;
use e2e::node::{self, images::HYPERLINK};
use serde_json::json;

use crate::pods::{HOME, Pods, SOON, cpo, ho};

#[test]
fn leader_that_hangs_is_replaced_and_restarted() {
    node::scenario(&[HYPERLINK], async |cluster| {
        let installed = cluster.installed();
        let pods = Pods::install(cluster, &ho(installed)?, &cpo(installed)?).await?;
        let leader = pods.leader("ho").await?;
        pods.signal(&leader, "STOP").await?;
        pods.leader_other_than("ho", &leader).await?;
        let terminated = pods
            .restarted(&leader, 1)
            .await?
            .last_state
            .and_then(|state| state.terminated);
        ensure!(
            terminated.as_ref().is_some_and(|end| end.exit_code == 137),
            "{terminated:?}"
        );
        let of_the_pod = format!("--field-selector=reason=Killing,involvedObject.name={leader}");
        let events = [
            "--namespace",
            HOME,
            "get",
            "events",
            &of_the_pod,
            "--output=jsonpath={.items[*].message}",
        ];
        let why = pods.kubectl.run(&events)?;
        ensure!(why.contains("failed liveness probe"), "{why:?}");
        Ok(())
    });
}

#[test]
fn changed_scopes_are_acted_on_without_a_restart() {
    node::scenario(&[HYPERLINK], async |cluster| {
        let installed = cluster.installed();
        let mut values = cpo(installed)?;
        let pods = Pods::install(cluster, &ho(installed)?, &values).await?;
        let before = pods.of("cpo").await?;
        let excluded = "clusters-elsewhere";
        values["allowScopes"]["excludeNamespaces"] = json!([excluded]);
        installed.install("cpo", &values)?;
        for pod in before.keys() {
            let path = format!("/api/v1/namespaces/{HOME}/pods/{pod}:8081/proxy/readyz");
            eventually("the change has arrived", SOON, || async {
                let page = pods.kubectl.run(&["get", "--raw", &path])?;
                let line = page.lines().find(|line| line.contains("allowed scopes"));
                ensure!(line.is_some_and(|line| line.contains("1 namespace")), "{line:?}");
                Ok(())
            })
            .await?;
            let container = pods.container(pod).await?;
            ensure!(container.restart_count == 0, "{container:?}");
        }
        ensure!(pods.of("cpo").await?.keys().eq(before.keys()), "other Pods");
        Ok(())
    });
}
