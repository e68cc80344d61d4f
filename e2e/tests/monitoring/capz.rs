//! Alerts of role `capz`: on workload clusters, on identities, and on writes of the management cluster. They fire while
//! the cause lasts, and no longer.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::Preset;
use e2e::capz_cluster::{CapzCluster, LoadBalancer};
use e2e::capz_controllers::{CONDITION, Capz, ReferenceOperator, Settings};
use e2e::capz_env::TENANT;
use e2e::hyperlink::Hyperlink;
use e2e::runbook::{quotes_line, quotes_samples_of};
use e2e::shared_env::SOON;
use e2e::{CapzEnv, eventually, scenario};
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::dashboard::{Chosen, Dashboard};
use crate::demo::{OF_CAPZ, over_the_life};
use crate::processes::has_logged;
use crate::rules::{all_resolve, fire, resolve};
use crate::watched::Watched;

/// Length of a minute of the rules in this test: a patch that fails is tried again after 8 s at first.
const MINUTE: Duration = Duration::from_secs(1);

const MANAGEMENT: &str = "org-giantswarm";
const WORKLOAD: &str = "org-acme";

/// The policy by which the API server refuses changes of the management cluster's spec.
const POLICY: &str = "nobody-writes-the-management-cluster";

/// A management cluster that Hyperlink serves, and a CAPZ that does nothing yet.
struct Fleet {
    env: CapzEnv,
    capz: Capz,
    management: CapzCluster,
    hyperlink: Hyperlink,
    watched: Watched,
}

impl Fleet {
    /// Hyperlink leads once the other operator does not any more.
    async fn start() -> Result<Self> {
        let env = CapzEnv::local(Preset::Fast).await?;
        let management = CapzCluster::management(MANAGEMENT, "mc", LoadBalancer::Public);
        management.create(&env).await?;
        let capz = Capz::start(&env, &[MANAGEMENT, WORKLOAD], Settings::FORK).await?;
        capz.pause();
        let reference = ReferenceOperator::new(&env, &management).await?;
        let holder = "azure-private-endpoint-operator-5d8f7c9b6-x2k4q_3f1c";
        reference.renew_lease(&env, MANAGEMENT, holder).await?;
        let resync = [("resync", "10s")];
        let hyperlink = Hyperlink::start_capz(&env, &management, &[MANAGEMENT], "capz", &resync).await?;
        waits_for_the_lease(&hyperlink).await?;
        reference.delete_lease(&env, MANAGEMENT).await?;
        hyperlink.leading(SOON).await?;
        let watched = Watched::start(env.dir(), MINUTE).await?;
        watched.scrapes("capz", &[("capz-0", &hyperlink)])?;
        watched.sees(1).await?;
        Ok(Self {
            env,
            capz,
            management,
            hyperlink,
            watched,
        })
    }

    /// Creates a private workload cluster, whose Private Link Service is there for Hyperlink, if it `has_links`.
    async fn create(&self, name: &str, has_links: bool) -> Result<CapzCluster> {
        let cluster = CapzCluster::workload(WORKLOAD, name, LoadBalancer::Internal);
        cluster.create(&self.env).await?;
        if has_links {
            cluster
                .set_conditions(&self.env, &[("PrivateLinksReady", "True")])
                .await?;
        }
        Ok(cluster)
    }

    /// Waits until an alert fires as its entry quotes it, beside the samples that this quotes.
    async fn fires(&self, alert: &str) -> Result<()> {
        fire(&self.watched.prometheus, &[alert]).await?;
        quotes_samples_of(alert, &[self.hyperlink.page("/metrics").await?.1])
    }

    /// Sets the tenant of the management cluster's identity.
    async fn set_tenant(&self, tenant: &str) -> Result<()> {
        let identities = self.management.identities(&self.env.client()?);
        let patch = Patch::Merge(json!({"spec": {"tenantID": tenant}}));
        identities
            .patch(self.management.name(), &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }
}

/// Waits until `/readyz` names who holds the other operator's lease, as the entry quotes it.
async fn waits_for_the_lease(hyperlink: &Hyperlink) -> Result<()> {
    let line = eventually("it waits for the lease", SOON, || async {
        let (status, page) = hyperlink.page("/readyz").await?;
        let line = page.lines().find(|line| line.contains(" leads by lease "));
        ensure!(status != 200, "{page}");
        Ok(line.context(page.clone())?.to_owned())
    });
    quotes_line("Lease of azure-private-endpoint-operator", &line.await?)
}

/// The entry of this name, by which CAPZ would make a private endpoint for somebody else.
fn foreign_entry(fleet: &Fleet, cluster: &CapzCluster) -> Value {
    let name = format!("{}-privateendpoint", cluster.links()[0].name());
    fleet.management.entry(&name, "theirs", &cluster.link_service("theirs"))
}

/// Has the API server refuse each change of the management cluster's spec.
async fn refuse_writes(fleet: &Fleet) -> Result<()> {
    let about = json!({"name": POLICY});
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": about, "spec": {"matchConstraints": {"resourceRules": [{
            "apiGroups": ["infrastructure.cluster.x-k8s.io"], "apiVersions": ["*"], "operations": ["UPDATE"],
            "resources": ["azureclusters"]}]},
            "validations": [{"expression": "object.metadata.name != 'mc'"}]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": about, "spec": {"policyName": POLICY, "validationActions": ["Deny"]}});
    fleet.env.apply_yaml(&format!("{policy}\n---\n{binding}")).await?;
    writes_are_refused(fleet, true).await
}

async fn allow_writes(fleet: &Fleet) -> Result<()> {
    let client = fleet.env.client()?;
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client);
    bindings.delete(POLICY, &DeleteParams::default()).await?;
    policies.delete(POLICY, &DeleteParams::default()).await?;
    writes_are_refused(fleet, false).await
}

/// Waits until the API server refuses changes of the management cluster's spec, or takes them.
async fn writes_are_refused(fleet: &Fleet, refused: bool) -> Result<()> {
    let dry_run = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let change = Patch::Merge(json!({"metadata": {"labels": {"example.com/write": "1"}}}));
    let api = fleet.management.azure_clusters(&fleet.env.client()?);
    eventually(&format!("writes are refused: {refused}"), SOON, || async {
        let written = api.patch(fleet.management.name(), &dry_run, &change).await;
        ensure!(written.is_err() == refused, "{written:?}");
        Ok(())
    })
    .await
}

#[test]
fn alerts_fire_while_clusters_have_no_path_and_no_longer() {
    scenario(async {
        let fleet = Fleet::start().await?;
        let begin = Timestamp::now().as_second();
        let usual = fleet.create("usual", true).await?;
        let taken = CapzCluster::workload(WORKLOAD, "taken", LoadBalancer::Internal);
        let foreign = foreign_entry(&fleet, &taken);
        fleet.management.add_entry(&fleet.env, &foreign).await?;
        let taken = fleet.create("taken", true).await?;
        let late = fleet.create("late", false).await?;
        for alert in ["HyperlinkWorkloadClusterNotReady", "HyperlinkPrivateEndpointTaken"] {
            fleet.fires(alert).await?;
        }
        fleet.set_tenant(&format!("{TENANT}/../x")).await?;
        fleet.fires("HyperlinkIdentityRefused").await?;
        fleet.set_tenant(TENANT).await?;

        refuse_writes(&fleet).await?;
        let refused = fleet.create("refused", true).await?;
        fleet.fires("HyperlinkManagementClusterNotWritten").await?;
        has_logged(&fleet.hyperlink, &["reconcile failed"])?;
        allow_writes(&fleet).await?;
        resolve(&fleet.watched.prometheus, &["HyperlinkManagementClusterNotWritten"]).await?;

        let name = foreign["name"].as_str().context("no name")?;
        fleet.management.remove_entry(&fleet.env, name).await?;
        fleet.capz.resume();
        for cluster in [&usual, &taken, &late, &refused] {
            eventually(&format!("{} is ready", cluster.name()), SOON, || {
                cluster.has_true(&fleet.env, CONDITION)
            })
            .await?;
        }
        all_resolve(&fleet.watched.prometheus).await?;
        row_of_capz_shows_all(&fleet, begin).await?;
        fleet.hyperlink.stop().await?;
        fleet.capz.stop().await
    });
}

/// Fails unless each panel of the dashboard's row for Cluster API has shown something since `begin`.
async fn row_of_capz_shows_all(fleet: &Fleet, begin: i64) -> Result<()> {
    let chosen = [
        ("job", ".*"),
        // None is there to choose.
        ("control_plane", ""),
        ("__range", "15s"),
        ("__rate_interval", "15s"),
    ];
    let chosen: Chosen = chosen.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let mut queries = Dashboard::read()?.queries(&chosen)?;
    // CAPZ leaves nothing behind here.
    queries.retain(|query| query.text.contains(OF_CAPZ) && !query.text.contains("left_behind"));
    ensure!(queries.len() == 5, "{queries:?}");
    for query in queries {
        let shown = over_the_life(&fleet.watched.prometheus, &query, begin).await?;
        ensure!(shown.iter().any(|value| *value != 0.0), "{query:?} shows {shown:?}");
    }
    Ok(())
}
