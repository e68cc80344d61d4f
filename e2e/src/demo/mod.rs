//! The demo: one private hosted cluster comes up, stays, heals from drift and is deleted, on the real executable, a
//! real API server and the simulated Azure. Each change is printed.

pub mod observed;
pub mod table;
pub mod view;

use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use crate::azure_sim::Preset;
use crate::control_plane::Listens;
use crate::hosted_cluster::{HostedCluster, OAUTH};
use crate::hyperlink::{Hyperlink, Role};
use crate::test_env::TestEnv;
use observed::Observed;
use table::{Row, Table};
use view::View;

/// How often everything is read.
const POLL: Duration = Duration::from_millis(100);

/// How long the phase lasts in which nothing should change.
const QUIET_TIME: Duration = Duration::from_secs(5);

/// Hyperlink has to find drift while people watch, not after the default's minutes. The reads of private DNS that Azure
/// grants in five minutes have to suffice as long as the demo stays.
const RESYNC: &[(&str, &str)] = &[("resync", "5s"), ("record-resync", "5s")];

/// How the demo's cluster publishes its services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// All services by the router.
    #[default]
    Router,
    /// OAuth by a load balancer of its own, and so with a private path of its own.
    OAuth,
}

impl FromStr for Variant {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Self> {
        match word {
            "router" => Ok(Self::Router),
            "oauth" => Ok(Self::OAuth),
            _ => bail!("VARIANT is router or oauth"),
        }
    }
}

/// A running demo.
pub struct Demo {
    test_env: TestEnv,
    ho: Hyperlink,
    cpo: Hyperlink,
    client: kube::Client,
    cluster: HostedCluster,
    patience: Duration,
    view: View,
    observed: Observed,
    table: Table,
}

impl Demo {
    /// Builds what is missing and starts everything.
    ///
    /// # Errors
    ///
    /// A build fails, or something does not come up.
    pub async fn start(preset: Preset, variant: Variant) -> Result<Self> {
        let mut view = View::new();
        view.progress("builds what is missing");
        crate::binaries::executable("hyperlink")?;
        crate::control_plane::programs(Listens::OnLoopback)?;
        view.restart_clock();
        view.heading("The ground");
        view.progress("etcd, kube-apiserver, kube-controller-manager, armsim");
        let test_env = TestEnv::local(preset).await?;
        view.line(&format!("API server  {}", test_env.control_plane().server()));
        view.line(&format!("simulated Azure  {}", test_env.azure().arm));
        view.progress("hyperlink run --role ho, hyperlink run --role cpo");
        let ho = Hyperlink::start(&test_env, Role::Ho, "ho", RESYNC).await?;
        let cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", RESYNC).await?;
        let patience = match preset {
            Preset::Fast => Duration::from_secs(60),
            Preset::Recorded => Duration::from_secs(600),
        };
        for process in [&ho, &cpo] {
            process.ready(patience).await?;
            process.leading(patience).await?;
            let name = process.role().as_str();
            view.line(&format!(
                "hyperlink {name}  leads, process {}, http://{}",
                process.process().pid(),
                process.metrics_address()
            ));
        }
        let mut cluster = HostedCluster::new(&test_env, "first-light").with_base_domain("apps.example.com");
        if variant == Variant::OAuth {
            cluster = cluster.with_oauth_load_balancer();
        }
        let client = test_env.client()?;
        let (observed, table) = (Observed::default(), Table::default());
        Ok(Self {
            test_env,
            ho,
            cpo,
            client,
            cluster,
            patience,
            view,
            observed,
            table,
        })
    }

    /// Plays the cluster's whole life and prints the table.
    ///
    /// # Errors
    ///
    /// A phase does not end in time, or something is left behind.
    pub async fn play(&mut self) -> Result<()> {
        let before = self.test_env.resource_ids().await?;
        self.come_up().await?;
        self.at_rest().await?;
        self.heal_record().await?;
        self.heal_removed("heal: the Private Endpoint is deleted", self.cluster.endpoint())
            .await?;
        self.heal_removed(
            "heal: the Private Link Service is deleted",
            self.cluster.link_service(&self.test_env),
        )
        .await?;
        if self.cluster.services().contains(&OAUTH) {
            self.heal_removed(
                "heal: the endpoint of OAuth is deleted",
                self.cluster.endpoint_of(OAUTH),
            )
            .await?;
        }
        self.delete(&before).await?;
        let rss = |process: &Hyperlink| process.process().peak_rss().unwrap_or_default();
        self.view.progress("");
        self.view.heading("In short");
        self.view
            .note(&self.table.render(&[("ho", rss(&self.ho)), ("cpo", rss(&self.cpo))]));
        Ok(())
    }

    /// Creates the hosted cluster and waits until it is up.
    ///
    /// # Errors
    ///
    /// The cluster does not come up.
    pub async fn come_up(&mut self) -> Result<()> {
        let start = self.begin("up: a private hosted cluster is created").await?;
        self.cluster.create(&self.test_env).await?;
        self.until_up().await?;
        self.end("up", start).await
    }

    async fn at_rest(&mut self) -> Result<()> {
        let start = self
            .begin(&format!(
                "rest: {} s in which nothing should be written",
                QUIET_TIME.as_secs()
            ))
            .await?;
        let since = start.call;
        let end = Instant::now() + QUIET_TIME;
        while Instant::now() < end {
            self.read().await?;
            tokio::time::sleep(POLL).await;
        }
        let writes = self
            .test_env
            .oracle()
            .journal(since)
            .await?
            .iter()
            .filter(|call| call.is_write())
            .count();
        ensure!(writes == 0, "{writes} writes to ARM at rest");
        self.view.line("nothing was written");
        self.end("rest", start).await
    }

    async fn heal_record(&mut self) -> Result<()> {
        let zone = self.cluster.zones().into_iter().next().context("no zone")?;
        let start = self.begin("heal: the record of the API is changed").await?;
        let wrong = json!({"properties": {"ttl": 300, "aRecords": [{"ipv4Address": "10.0.0.250"}]}});
        self.test_env
            .oracle()
            .drift_put(&format!("{zone}/A/api"), &wrong)
            .await?;
        self.until_broken_and_up().await?;
        self.end("heal a record", start).await
    }

    async fn heal_removed(&mut self, heading: &str, id: String) -> Result<()> {
        let start = self.begin(heading).await?;
        self.test_env.oracle().drift_delete(&id).await?;
        self.until_broken_and_up().await?;
        let what = heading.split_once(": the ").map_or(heading, |(_, what)| what);
        self.end(&format!("heal: {what}"), start).await
    }

    async fn delete(&mut self, before: &std::collections::BTreeSet<String>) -> Result<()> {
        let start = self.begin("go: HostedControlPlane and namespace are deleted").await?;
        self.until_deleted().await?;
        self.read().await?;
        let network = [
            self.cluster.resource_group(),
            self.cluster.vnet(),
            self.cluster.subnet(),
        ];
        let network = network.map(|id| id.to_lowercase());
        let left = self.test_env.resource_ids().await?;
        let left: Vec<_> = left
            .into_iter()
            .filter(|id| !before.contains(id) && !network.contains(id))
            .collect();
        ensure!(left.is_empty(), "left behind in Azure: {left:?}");
        self.view
            .line("nothing is left in Azure, no finalizer, and the namespace is gone");
        self.end("go", start).await
    }

    async fn until_deleted(&mut self) -> Result<()> {
        let cluster = self.cluster.clone();
        let mut deleted = std::pin::pin!(cluster.delete(&self.test_env, self.patience));
        loop {
            tokio::select! {
                outcome = &mut deleted => return outcome,
                () = tokio::time::sleep(POLL) => {
                    let now = Observed::read(&self.test_env, &self.client, &self.cluster).await?;
                    show(&self.view, &now, &self.observed);
                    self.view.progress(&format!("{} things are left", now.count()));
                    self.observed = now;
                }
            }
        }
    }

    /// Checks that the drift broke the path, so that healing is not only assumed, and waits until the cluster is up.
    async fn until_broken_and_up(&mut self) -> Result<()> {
        self.read().await?;
        ensure!(!self.observed.is_up(), "the drift did no harm");
        self.until_up().await
    }

    async fn until_up(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.patience;
        loop {
            self.read().await?;
            if self.observed.is_up() {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("not up within {:?}: {}", self.patience, self.observed.lacks());
            }
            for process in [&self.ho, &self.cpo] {
                process.process().check()?;
            }
            self.view.progress(&self.observed.lacks());
            tokio::time::sleep(POLL).await;
        }
    }

    async fn read(&mut self) -> Result<()> {
        let now = Observed::read(&self.test_env, &self.client, &self.cluster).await?;
        show(&self.view, &now, &self.observed);
        self.observed = now;
        Ok(())
    }

    async fn begin(&mut self, heading: &str) -> Result<Start> {
        self.view.heading(heading);
        Ok(Start {
            at: Instant::now(),
            call: self.test_env.oracle().last_call().await?,
        })
    }

    async fn end(&mut self, phase: &str, start: Start) -> Result<()> {
        let time = start.at.elapsed();
        let calls = self.test_env.oracle().journal(start.call).await?;
        let writes = calls.iter().filter(|call| call.is_write()).count();
        self.view.line(&format!("done in {:.1} s", time.as_secs_f64()));
        self.table.push(Row {
            phase: phase.to_owned(),
            time,
            calls: calls.len(),
            writes,
        });
        Ok(())
    }

    /// Brings the cluster up once more and prints how to inspect it.
    ///
    /// # Errors
    ///
    /// The cluster does not come up.
    pub async fn stay(&mut self) -> Result<()> {
        self.come_up().await?;
        self.view.progress("");
        let control = self.test_env.control_url();
        self.view.heading("All of it stays until Ctrl-C. For another terminal:");
        self.view
            .note(&format!("export KUBECONFIG={}", self.test_env.admin().path().display()));
        self.view.note(&format!("export CONTROL={control}"));
        self.view.note(&format!("export HO={}", self.ho.metrics_address()));
        self.view.note(&format!("export CPO={}", self.cpo.metrics_address()));
        self.view.note("To try:");
        self.view.note("  kubectl get azpls -A -o yaml");
        self.view.note(&format!(
            "  curl -X DELETE '{control}/resources{}'   # and see it come back",
            self.cluster.endpoint()
        ));
        let (vnet, name) = (
            self.cluster.vnet(),
            self.cluster.host_names().into_iter().next().unwrap_or_default(),
        );
        self.view
            .note(&format!("  curl '{control}/reachable?vnet={vnet}&name={name}'"));
        Ok(())
    }

    /// Stops both roles as the kubelet would.
    ///
    /// # Errors
    ///
    /// A role does not stop cleanly.
    pub async fn stop(self) -> Result<()> {
        self.ho.stop().await?;
        self.cpo.stop().await
    }
}

/// When a phase began, and the number of the last call before it.
struct Start {
    at: Instant,
    call: u64,
}

fn show(view: &View, now: &Observed, before: &Observed) {
    for change in now.changes_since(before) {
        view.line(&change);
    }
}
