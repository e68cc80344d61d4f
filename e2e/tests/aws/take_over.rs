//! A cluster that HyperShift's own controllers have served: both roles change nothing of it, and at rest they hardly
//! call.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::bench::audit::Audit;
use e2e::go_controllers::GoOperator;
use e2e::hosted_cluster::conditions;
use e2e::hyperlink::Role;
use e2e::{eventually, scenario};
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DynamicObject};
use serde_json::Value;

use crate::SOON;
use crate::both::{Both, is_of};

/// What stands for the five minutes of the default of `--resync`.
const FIVE_MINUTES: Duration = Duration::from_secs(5);
/// What stands for the 45 minutes of the default of `--record-resync`.
const RECORD_RESYNC: &str = "45s";
/// How many times five minutes are measured: all records are read once meanwhile.
const TIMES: u32 = 9;
/// The most calls of the CPO role in all that time: two and a half in five minutes.
const MOST_CALLS: usize = 22;
/// Simulated seconds since the cluster is up.
const SERVED_FOR: f64 = 60.0;
/// The Services that both sides create for host names of the guest.
const EXTERNAL: [&str; 2] = ["kube-apiserver-private-external", "oauth-private-external"];

#[test]
fn path_made_by_hypershift_is_taken_over_unchanged() {
    scenario(async {
        let mut both = Both::without_roles("taken", "5s").await?;
        both.cluster.create_objects(&both.env).await?;
        let ho = GoOperator::ho_on_aws(&both.env, &both.cluster, 1)?;
        let cpo = GoOperator::cpo_on_aws(&both.env, &both.cluster, 1).await?;
        both.becomes_available().await?;
        ho.stop().await?;
        cpo.stop().await?;
        // All tags show by now.
        both.env.oracle().advance(SERVED_FOR).await?;
        let (since, before) = (both.env.oracle().last_call().await?, both.in_aws().await?);
        both.record_resync = RECORD_RESYNC;
        both.start_role(Role::Ho).await?;
        both.start_role(Role::Cpo).await?;
        both.has_read_everything(since).await?;
        ensure_at_rest(&both).await?;
        let writes = both.writes(since).await?;
        ensure!(writes.is_empty(), "{writes:?}");
        ensure!(both.in_aws().await? == before, "AWS is not as it was");
        both.ensure_no_denied_call().await?;

        both.cluster.delete(&both.env, SOON).await?;
        both.nothing_is_left().await?;
        both.stop().await
    });
}

/// Fails if the roles write anything, or if CPO calls more often than at most.
async fn ensure_at_rest(both: &Both) -> Result<()> {
    // On a loaded machine the last of what a start writes in Kubernetes may be still to come.
    eventually("nothing is written in Kubernetes", SOON, || async {
        let audit = Audit::begin(both.env.control_plane().audit_log())?;
        tokio::time::sleep(FIVE_MINUTES).await;
        let writes = audit.writes()?;
        ensure!(writes.is_empty(), "{writes:?}");
        Ok(())
    })
    .await?;
    let audit = Audit::begin(both.env.control_plane().audit_log())?;
    let since = both.env.oracle().last_call().await?;
    tokio::time::sleep(FIVE_MINUTES * TIMES).await;
    let calls = both.calls(since).await?;
    let count = |role| calls.iter().filter(|call| is_of(role, call)).count();
    let (ho, cpo) = (count(Role::Ho), count(Role::Cpo));
    println!("in {TIMES} times five minutes: {ho} calls of ho, {cpo} of cpo");
    ensure!(cpo <= MOST_CALLS, "{cpo} calls of cpo");
    let writes = both.writes(since).await?;
    ensure!(writes.is_empty(), "{writes:?}");
    let writes = audit.writes()?;
    ensure!(writes.is_empty(), "{writes:?}");
    Ok(())
}

impl Both {
    /// Everything in AWS, as it is.
    async fn in_aws(&self) -> Result<Vec<Value>> {
        self.env.oracle().resources("arn:").await
    }

    /// Waits until each role has taken over: both have read AWS, and have recorded what they serve, and the Services
    /// for host names are there.
    async fn has_read_everything(&self, since: u64) -> Result<()> {
        let client = self.env.client()?;
        eventually("both roles serve the cluster", SOON, || async {
            let found = self.cluster.get_custom_resource(&client).await?;
            ensure!(found.as_ref().is_some_and(is_served), "{found:?}");
            let services: Api<Service> = Api::namespaced(client.clone(), &self.cluster.control_plane_namespace());
            for name in EXTERNAL {
                services.get(name).await?;
            }
            let calls = self.calls(since).await?;
            let reads = |action| calls.iter().any(|call| call.action() == action);
            ensure!(reads("ListResourceRecordSets") && reads("DescribeVpcEndpointServicePermissions"));
            Ok(())
        })
        .await
    }
}

/// Whether both roles have recorded what they serve, and CPO, which speaks of it in words of its own, has reported it as
/// available.
fn is_served(found: &DynamicObject) -> bool {
    let mut managers = found.metadata.managed_fields.iter().flatten();
    let is_reported = managers
        .any(|one| one.manager.as_deref() == Some("hyperlink-cpo") && one.subresource.as_deref() == Some("status"));
    let annotations = found.metadata.annotations.clone().unwrap_or_default();
    let recorded = ["ho-intent", "cpo-intent"]
        .iter()
        .all(|name| annotations.contains_key(&format!("hyperlink.hypershift.openshift.io/{name}")));
    recorded && is_reported && conditions(found).iter().all(|one| one.status == "True")
}
