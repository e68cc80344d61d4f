//! The whole life of a cluster under both roles, with the real controllers: Kubernetes is a table, AWS is simulated.

use std::sync::Arc;
use std::time::Duration;

use awssim::Question;
use hyperlink::api::{AWSEndpointService, Role};
use hyperlink::aws::calls::accounts::Accounts;
use hyperlink::aws::region::Region;
use hyperlink::aws::slot::Scope;
use hyperlink::controllers::aws::access::{AwsContext, Context};
use hyperlink::controllers::endpoint_service::EndpointServiceController;
use hyperlink::controllers::endpoint_service::settings::Settings;
use hyperlink::controllers::reconciler::CustomResourceReconciler;
use hyperlink::controllers::report::fingerprint;
use hyperlink::controllers::vpc_endpoint::VpcEndpointController;
use hyperlink::engine::observation_cache::ObservationCache;
use hyperlink::hypershift::aws::load_balancer_name::NlbMatch;
use hyperlink::hypershift::cluster_index::ClusterIndex;
use hyperlink::hypershift::node_pools::NodePools;
use hyperlink::hypershift::scopes::AllowedScopes;
use hyperlink::metrics::Metrics;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use self::cluster::{CR, Cluster};
use crate::desired::{GUEST, LOAD_BALANCER, MANAGEMENT};
use crate::process::{Identity, Valve};
use crate::sim::SimTransport;

mod abandoned;
mod answers;
mod at_rest;
mod bodies;
mod by_host_name;
pub(crate) mod cluster;
mod connections;
mod corrected;
mod drifted;
mod endless;
mod fleet;
mod forged;
mod forged_at_once;
mod gone;
mod group_in_use;
mod healed;
mod killed;
mod last_subnet;
mod lives;
mod many;
mod odd_input;
mod one_by_one;
mod orders;
pub(crate) mod partitions;
mod paused;
mod policies;
mod reasons;
mod replaced_balancer;
mod reported;
mod restarted;
mod rewritten;
mod sessions;
mod shown_late;
mod states;
mod stripped;
mod stuck;
mod switched;
mod tokens;
mod unnamed;
mod victim;
mod zones;

/// What the operator's file allows, where there is one.
type Allowed = Option<Receiver<Arc<AllowedScopes>>>;

/// The process of one role: its context, and when it is due.
struct Process {
    role: Role,
    cx: Context,
    due: Instant,
    /// The fingerprint of the custom resource at the end of the last reconcile.
    last_fingerprint: String,
    /// Whether it reconciles no more.
    is_ended: bool,
    _identity: Identity,
}

impl Process {
    fn new(role: Role, aws: &Arc<SimTransport>, cluster: &Arc<Cluster>) -> Self {
        let caller = match role {
            Role::Ho => ("AKIAHO", MANAGEMENT),
            Role::Cpo | Role::Capz => ("AKIACPO", GUEST),
        };
        Self::calling_as(caller, role, aws, cluster)
    }

    /// A process with the access key of a user in this account.
    fn calling_as((key, account): (&str, &str), role: Role, aws: &Arc<SimTransport>, cluster: &Arc<Cluster>) -> Self {
        let identity = Identity::of(aws, key);
        let (connection, sessions) = (identity.connection.clone(), identity.sessions.clone());
        let accounts = Accounts::new(connection, sessions, account, Arc::new(Valve::default()));
        let resync = Duration::from_secs(300);
        let cloud = AwsContext::new(accounts, ObservationCache::new(resync, Duration::from_secs(2_700)));
        let metrics = Arc::new(Metrics::new("1", "c").unwrap());
        Self {
            role,
            cx: Context::new(role, "test", cluster.client(), cloud, metrics, resync),
            due: Instant::now(),
            last_fingerprint: String::new(),
            is_ended: false,
            _identity: identity,
        }
    }

    /// The part of the custom resource whose change starts a reconcile.
    fn fingerprint(&self, cr: &AWSEndpointService) -> String {
        let published = self.cx.published.of(cr.metadata.uid.as_deref().unwrap_or_default());
        fingerprint(cr, self.role, &published, Instant::now().into_std())
    }
}

/// A cluster with the processes of both roles.
pub(crate) struct Life {
    pub(crate) aws: Arc<SimTransport>,
    pub(crate) cluster: Arc<Cluster>,
    processes: [Process; 2],
    allowed: Allowed,
    nlb_match: NlbMatch,
}

/// The seed of the other tests, with names that pass every check.
fn renamed(seed: &mut Value) {
    let name = hyperlink::hypershift::names::load_balancer(cluster::UID);
    let text = seed.to_string().replace(LOAD_BALANCER, &name);
    let text = text.replace("subnet-1", "subnet-00000001");
    let text = text.replace("subnet-2", "subnet-00000002");
    let text = text.replace("subnet-3", "subnet-00000003");
    *seed = serde_json::from_str(&text.replace("vpc-2", "vpc-00000002")).unwrap();
    seed["accounts"][1]["roles"] = json!([{"name": "cpo"}]);
}

async fn ho(cx: &Context, region: &Region, nlb_match: NlbMatch) -> EndpointServiceController {
    EndpointServiceController {
        settings: Settings {
            account: Scope {
                account: MANAGEMENT.to_owned(),
                region: region.name().to_owned(),
                role: None,
            },
            region: region.clone(),
            infrastructure: Some("mgmt".to_owned()),
            nlb_match,
        },
        cluster_index: Arc::new(
            ClusterIndex::read::<AWSEndpointService>(&cx.runtime.kube)
                .await
                .unwrap(),
        ),
        node_pools: Arc::new(NodePools::read(&cx.runtime.kube).await.unwrap()),
    }
}

async fn reconcile<R: CustomResourceReconciler<Object = AWSEndpointService>>(
    reconciler: &R,
    cx: &Context,
    cr: AWSEndpointService,
    by_time: bool,
) -> Option<Duration> {
    let (inputs, _) = reconciler.inputs(cx, &cr).await.ok()?;
    let at_rest = match by_time {
        true => {
            let correlation = Uuid::new_v4();
            reconciler.reconcile_at_rest(cx, correlation, cr.clone(), &inputs).await
        }
        false => None,
    };
    let outcome = match at_rest {
        Some(outcome) => outcome,
        None => reconciler.reconcile(cx, Uuid::new_v4(), cr, &inputs).await.ok()?,
    };
    // After that only a change needs a reconcile.
    let never = Duration::from_secs(86_400);
    Some(if outcome.released { never } else { outcome.requeue.after })
}

impl Life {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// With a changed seed.
    pub(crate) fn with(change: impl FnOnce(&mut Value)) -> Self {
        let aws = SimTransport::with(|seed| {
            renamed(seed);
            change(seed);
        });
        let balancers = aws.resources_of("elasticloadbalancing", "loadbalancer/");
        let host_name = balancers[0]["dns_name"].as_str().unwrap().to_owned();
        let cluster = Cluster::new(&host_name, &aws.region);
        let processes = [Role::Ho, Role::Cpo].map(|role| Process::new(role, &aws, &cluster));
        Self {
            aws,
            cluster,
            processes,
            allowed: None,
            nlb_match: NlbMatch::Uid,
        }
    }

    /// The custom resource.
    pub(crate) fn cr(&self) -> Option<AWSEndpointService> {
        self.cluster.get(CR).map(|found| serde_json::from_value(found).unwrap())
    }

    /// The process that reconciles next: one that observes a change, else the one that is due first.
    async fn next(&self, cr: &AWSEndpointService) -> usize {
        let changed = |process: &Process| !process.is_ended && process.last_fingerprint != process.fingerprint(cr);
        if let Some(at) = self.processes.iter().position(changed) {
            return at;
        }
        let at = usize::from(self.processes[1].due < self.processes[0].due);
        sleep_until(self.processes[at].due).await;
        at
    }

    /// One reconcile. Returns the wait until the next one, unless this one failed.
    async fn reconcile_at(&self, at: usize, cr: AWSEndpointService) -> Option<Duration> {
        let process = &self.processes[at];
        if !process.cx.resources.serves(&cr) {
            return Some(Duration::from_secs(3_600));
        }
        // Only time has caused it.
        let by_time = process.last_fingerprint == process.fingerprint(&cr);
        match process.role {
            Role::Ho => {
                let controller = ho(&process.cx, &self.aws.region, self.nlb_match).await;
                reconcile(&controller, &process.cx, cr, by_time).await
            }
            Role::Cpo | Role::Capz => {
                let region = self.aws.region.clone();
                let controller = VpcEndpointController {
                    region,
                    serves_many: self.allowed.is_some(),
                    allowed: self.allowed.clone(),
                };
                reconcile(&controller, &process.cx, cr, by_time).await
            }
        }
    }

    /// Reconciles where one is due next.
    pub(crate) async fn reconcile_next(&mut self) {
        let cr = self.cr().unwrap();
        let at = self.next(&cr).await;
        self.reconcile_with(at, cr).await;
    }

    /// Reconciles with one of the processes, and notes when that is due again.
    async fn reconcile_with(&mut self, at: usize, cr: AWSEndpointService) {
        let wait = self.reconcile_at(at, cr).await;
        let fingerprint = self.cr().map(|cr| self.processes[at].fingerprint(&cr));
        let process = &mut self.processes[at];
        process.due = Instant::now() + wait.unwrap_or(Duration::from_secs(1));
        process.last_fingerprint = fingerprint.unwrap_or_default();
    }

    /// Lets both roles reconcile at once, as after a change beside the custom resource.
    pub(crate) fn wake(&mut self) {
        self.processes
            .iter_mut()
            .for_each(|process| process.due = Instant::now());
    }

    /// Reconciles for this long, or until the custom resource is gone.
    pub(crate) async fn run_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while self.cr().is_some() && Instant::now() < end {
            self.reconcile_next().await;
        }
    }

    /// Ends the process of a role and starts another one, which reconciles when the first one would have.
    pub(crate) fn restart(&mut self, role: Role) {
        let cr = self.cr();
        let process = &mut self.processes[usize::from(role == Role::Cpo)];
        let due = process.due;
        *process = Process::new(role, &self.aws, &self.cluster);
        process.due = due;
        process.last_fingerprint = cr.map(|cr| process.fingerprint(&cr)).unwrap_or_default();
    }

    /// Lets no process of a role reconcile any more.
    pub(crate) fn without(&mut self, role: Role) {
        let process = &mut self.processes[usize::from(role == Role::Cpo)];
        process.due = Instant::now() + Duration::from_secs(86_400);
        process.is_ended = true;
    }

    /// Whether a condition of the custom resource is True.
    pub(crate) fn holds(&self, kind: &str) -> bool {
        let cr = self.cluster.get(CR).unwrap_or_default();
        let mut all = cr["status"]["conditions"].as_array().into_iter().flatten();
        all.any(|one| one["type"] == kind && one["status"] == "True")
    }

    pub(crate) fn is_available(&self) -> bool {
        self.holds("AWSEndpointServiceAvailable") && self.holds("AWSEndpointAvailable")
    }

    /// Reconciles until both conditions are True.
    pub(crate) async fn until_available(&mut self) {
        let end = Instant::now() + Duration::from_secs(3_600);
        while !self.is_available() {
            assert!(
                Instant::now() < end,
                "never: {:#}",
                self.cluster.get(CR).unwrap_or_default()
            );
            self.reconcile_next().await;
        }
    }

    /// Reconciles for this long, in which both conditions stay True.
    pub(crate) async fn stays_available_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.reconcile_next().await;
            assert!(
                self.is_available(),
                "{:#}",
                self.cluster.get(CR).unwrap_or_default()["status"]
            );
        }
    }

    /// Deletes the custom resource, and reconciles until it is gone.
    pub(crate) async fn deleted(&mut self) {
        self.cluster.delete_at(CR, &Timestamp::now().to_string());
        self.run_for(Duration::from_secs(7_200)).await;
        assert!(
            self.cr().is_none(),
            "never gone: {:#}",
            self.cluster.get(CR).unwrap_or_default()
        );
    }

    /// Whether a worker of the guest reaches the API server.
    pub(crate) fn is_reachable(&self) -> bool {
        let question = Question {
            vpc: "vpc-00000002",
            name: crate::desired::API,
            from: None,
            port: None,
        };
        self.aws.aws().reachable(self.aws.now(), &question).ok
    }

    /// What there is of the path in AWS.
    pub(crate) fn remains(&self) -> Vec<String> {
        let kinds = ["vpc-endpoint", "vpc-endpoint-service", "security-group"];
        let all = kinds.iter().flat_map(|kind| self.aws.resources(kind));
        let is_trace = |body: &Value| {
            body["state"]
                .as_str()
                .is_some_and(|state| state.eq_ignore_ascii_case("deleted"))
        };
        let there = all.filter(|body| body["name"] != "default" && !is_trace(body));
        let mut remains: Vec<String> = there.map(|body| body["id"].as_str().unwrap().to_owned()).collect();
        let zones = self.aws.resources_of("route53", "hostedzone/");
        let records = zones
            .iter()
            .flat_map(|zone| zone["records"].as_array().cloned().unwrap_or_default());
        let own = records.filter(|record| record["type"] == "CNAME");
        remains.extend(own.map(|record| record.to_string()));
        remains
    }
}
