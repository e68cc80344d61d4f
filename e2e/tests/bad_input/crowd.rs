//! A tenant tries, with the rights of its control plane's operator, to exhaust the processes that serve all clusters:
//! by many objects, by objects of the largest size, by endless changes. Another tenant is not affected.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::{HostedCluster, ROUTER, conditions};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::shared_env::{SOON, SharedEnv, alone, calls_about};
use e2e::tenant::{LARGEST_ANNOTATION, Tenant, time_of_repair};
use e2e::{TestEnv, eventually};
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

/// Interval at which ready resources are read. A repair begins with such a read.
const RESYNC: Duration = Duration::from_secs(3);
/// What a repair may take beyond [`RESYNC`] on a busy machine. The benchmark has the exact goal.
const SLACK: Duration = Duration::from_secs(30);
/// Bytes by which a process may grow. The benchmark has the exact goal.
const GROWTH: u64 = 48 << 20;

/// Both roles, another tenant's cluster, and the tenant whose own path is available.
struct Crowded {
    shared_env: SharedEnv,
    other_tenant: HostedCluster,
    cluster: HostedCluster,
    tenant: Tenant,
    available_since: Value,
    memory: [u64; 2],
}

impl Crowded {
    async fn start(test_env: TestEnv) -> Result<Self> {
        let flags = [("resync", "3s")];
        let ho = Hyperlink::start(&test_env, Role::Ho, "ho", &flags).await?;
        let cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", &[("resync", "8s")]).await?;
        let shared_env = SharedEnv { test_env, ho, cpo };
        let other_tenant = shared_env.lives("neighbour").await?;
        let cluster = shared_env.lives("crowded").await?;
        let tenant = Tenant::of(&shared_env.test_env, &cluster).await?;
        let available_since = available_since(&shared_env, &other_tenant).await?;
        let memory = memory(&shared_env)?;
        Ok(Self {
            shared_env,
            other_tenant,
            cluster,
            tenant,
            available_since,
            memory,
        })
    }

    /// Creates `number` custom resources. Of those of one second the name decides which is older, so those that are to
    /// be served are created in an earlier second.
    async fn crowd(&self, number: usize, bytes: usize) -> Result<()> {
        let test_env = &self.shared_env.test_env;
        self.tenant.junk(test_env, 0..7, bytes).await?;
        let last = Timestamp::now().as_second();
        let api = self.tenant.hypershift("AzurePrivateLinkService");
        eventually("eight are served", SOON, || async {
            let served = served(&api).await?;
            ensure!(served.len() == 8, "{served:?}");
            ensure!(Timestamp::now().as_second() > last, "it is the same second");
            Ok(())
        })
        .await?;
        self.tenant.junk(test_env, 7..number, bytes).await
    }

    /// Fails unless the other tenant's cluster stays available, is repaired in time and is in the metrics, and both
    /// processes lead and have not grown too much.
    async fn other_tenant_is_unaffected(&self) -> Result<()> {
        let test_env = &self.shared_env.test_env;
        let since = available_since(&self.shared_env, &self.other_tenant).await?;
        ensure!(since == self.available_since, "available since {since}");
        self.other_tenant_gets_no_extra_calls().await?;
        for _ in 0..3 {
            let elapsed = time_of_repair(test_env, &self.other_tenant, SOON).await?;
            ensure!(elapsed <= RESYNC + SLACK, "repaired after {elapsed:?}");
            // A repair shows in the conditions while it is under way.
            self.shared_env.heals(&self.other_tenant).await?;
        }
        let labels = "platform=\"azure\",control_plane=\"clusters-neighbour\",name=\"private-router\"";
        let series = format!("hyperlink_object_available{{{labels}}} 1");
        for process in [&self.shared_env.ho, &self.shared_env.cpo] {
            process.leading(SOON).await?;
            // The watch of a process delivers a condition after the process wrote it, behind the writes of all others.
            eventually("the neighbour is in the metrics", SOON, || async {
                let (_, metrics) = process.page("/metrics").await?;
                ensure!(metrics.lines().any(|line| line == series), "no series of the neighbour");
                Ok(())
            })
            .await?;
        }
        for (before, now) in self.memory.into_iter().zip(memory(&self.shared_env)?) {
            let grown = now.saturating_sub(before);
            ensure!(grown <= GROWTH, "a process has grown by {} KiB", grown >> 10);
        }
        Ok(())
    }

    /// Fails unless the other tenant's ready cluster is read about as often as the settings say, and not written.
    async fn other_tenant_gets_no_extra_calls(&self) -> Result<()> {
        let oracle = self.shared_env.test_env.oracle();
        self.shared_env.heals(&self.other_tenant).await?;
        let (since, began) = (oracle.last_call().await?, Instant::now());
        self.shared_env.reconciles_again(&self.other_tenant).await?;
        // Some reconciles wait for the concurrency limit, and two come close together.
        let rounds = 2 * (began.elapsed().as_secs() / RESYNC.as_secs() + 1);
        let calls = calls_about(&self.shared_env.test_env, &self.other_tenant, since).await?;
        let written = calls.iter().find(|call| call.is_write());
        ensure!(written.is_none(), "{written:?}");
        let mut reads: BTreeMap<String, u64> = BTreeMap::new();
        for call in calls {
            *reads.entry(call.path).or_default() += 1;
        }
        let often = reads.iter().find(|(_, times)| **times > rounds);
        ensure!(often.is_none(), "in {rounds} rounds: {often:?}");
        Ok(())
    }

    /// Of the tenant's custom resources no more than eight have conditions or series.
    async fn only_eight_are_served(&self) -> Result<()> {
        let api = self.tenant.hypershift("AzurePrivateLinkService");
        let served = served(&api).await?;
        ensure!(served.contains(&ROUTER.to_owned()), "{served:?}");
        ensure!(served.len() <= 8, "{served:?}");
        for process in [&self.shared_env.ho, &self.shared_env.cpo] {
            let (_, metrics) = process.page("/metrics").await?;
            let names = metrics.lines().filter_map(|line| line.split_once("name=\"junk-"));
            let mut names: Vec<_> = names.filter_map(|(_, rest)| rest.split('"').next()).collect();
            names.sort_unstable();
            names.dedup();
            ensure!(names.len() < 8, "series of {names:?}");
        }
        Ok(())
    }

    /// Waits until each role has published exactly one Event about the custom resources that it does not serve.
    async fn one_event_reports_the_unserved(&self) -> Result<()> {
        let client = self.shared_env.test_env.client()?;
        let api: Api<Event> = Api::namespaced(client, &self.cluster.control_plane_namespace());
        eventually("one Event of each role tells of the rest", SOON, || async {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            for event in api.list(&ListParams::default()).await? {
                if event.reason.as_deref() == Some("NotServed") {
                    let note = event.note.unwrap_or_default();
                    ensure!(note.ends_with("are not served: only the 8 oldest are"), "{note}");
                    *counts
                        .entry(event.reporting_controller.unwrap_or_default())
                        .or_default() += 1;
                }
            }
            let once = ["hyperlink-cpo", "hyperlink-ho"].map(|role| (role.to_owned(), 1));
            ensure!(counts == BTreeMap::from(once), "{counts:?}");
            Ok(())
        })
        .await
    }
}

async fn available_since(shared_env: &SharedEnv, cluster: &HostedCluster) -> Result<Value> {
    let found = cluster.get_link_service(&shared_env.test_env.client()?).await?;
    let found = found.context("no custom resource")?;
    let all = found.data["status"]["conditions"].as_array().context("no conditions")?;
    let whole = all.iter().find(|one| one["type"] == "AzurePrivateLinkServiceAvailable");
    let whole = whole.context("no summary")?;
    ensure!(whole["status"] == "True", "{whole}");
    Ok(whole["lastTransitionTime"].clone())
}

fn memory(shared_env: &SharedEnv) -> Result<[u64; 2]> {
    let of = |process: &Hyperlink| process.process().rss().context("a process is gone");
    Ok([of(&shared_env.ho)?, of(&shared_env.cpo)?])
}

/// Names of the custom resources that have conditions.
async fn served(api: &Api<DynamicObject>) -> Result<Vec<String>> {
    let mut served = Vec::new();
    let mut params = ListParams::default().limit(20);
    loop {
        let page = api.list(&params).await?;
        let with = page.items.iter().filter(|one| !conditions(one).is_empty());
        served.extend(with.filter_map(|one| one.metadata.name.clone()));
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(served);
        }
    }
}

#[test]
fn two_hundred_large_custom_resources_harm_no_other_tenant() {
    alone(async |test_env| {
        let crowded = Crowded::start(test_env).await?;
        crowded.crowd(200, LARGEST_ANNOTATION).await?;
        crowded.other_tenant_is_unaffected().await?;
        crowded.one_event_reports_the_unserved().await?;
        crowded.only_eight_are_served().await
    });
}

#[test]
fn two_thousand_objects_of_a_tenant_harm_no_other_tenant() {
    alone(async |test_env| {
        let crowded = Crowded::start(test_env).await?;
        let tenant = &crowded.tenant;
        crowded.crowd(1200, 1024).await?;
        let labels = json!({"hypershift.openshift.io/azure-pls-external-private-svc": "true"});
        let services = (0..500).map(|n| {
            json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": format!("junk-{n}"), "labels": labels, "annotations": {"example.com/junk": "x".repeat(8192)}},
                "spec": {"type": "ExternalName", "externalName": "x.example.com"}})
        });
        tenant.create_all(tenant.api("", "v1", "Service"), services).await?;
        let found = tenant
            .hypershift("HostedControlPlane")
            .get(crowded.cluster.name())
            .await?;
        let planes = (0..300).map(|n| {
            json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
                "metadata": {"name": format!("junk-{n}"), "annotations": {"example.com/junk": "x".repeat(8192)}},
                "spec": found.data["spec"]})
        });
        tenant
            .create_all(tenant.hypershift("HostedControlPlane"), planes)
            .await?;
        crowded.other_tenant_is_unaffected().await?;
        crowded.one_event_reports_the_unserved().await?;
        crowded.only_eight_are_served().await
    });
}

#[test]
fn custom_resources_that_come_and_go_harm_no_other_tenant() {
    alone(async |test_env| {
        let crowded = Crowded::start(test_env).await?;
        let waiting = async || {
            let (_, metrics) = crowded.shared_env.ho.page("/metrics").await?;
            let series = "hyperlink_reconcile_total{controller=\"private_link_service\",result=\"waiting\"} ";
            let value = metrics.lines().find_map(|line| line.strip_prefix(series));
            Ok::<u64, anyhow::Error>(value.unwrap_or("0").parse()?)
        };
        let (before, began) = (waiting().await?, Instant::now());
        let lanes = crowded.tenant.create_and_delete(&crowded.shared_env.test_env, 9);
        crowded.other_tenant_is_unaffected().await?;
        drop(lanes);
        // Eight at once, then one in five seconds; and those of the other tenant's repairs.
        let (reconciles, most) = (waiting().await? - before, 8 + began.elapsed().as_secs() / 5 + 30);
        ensure!(reconciles <= most, "{reconciles} passes, of {most}");
        crowded.one_event_reports_the_unserved().await?;
        let namespace = crowded.shared_env.test_env.hosted_clusters().to_owned();
        let events: Api<Event> = Api::namespaced(crowded.shared_env.test_env.client()?, &namespace);
        let events = events.list(&ListParams::default()).await?;
        let refusals = events
            .iter()
            .filter(|event| event.reason.as_deref() == Some("Refused"))
            .count();
        ensure!(refusals <= 25, "{refusals} Events on the HostedCluster");
        Ok(())
    });
}

#[test]
fn object_changed_100_times_a_second_harms_no_other_tenant() {
    alone(async |test_env| {
        let crowded = Crowded::start(test_env).await?;
        let tenant = &crowded.tenant;
        let custom = || tenant.hypershift("AzurePrivateLinkService");
        let intent = |n: u64| {
            json!({"metadata": {"annotations": {"hyperlink.hypershift.openshift.io/cpo-intent": format!("{{\"n\":{n}}}"),
                "example.com/junk": n.to_string()}}})
        };
        let note = |n: u64| json!({"metadata": {"annotations": {"example.com/junk": n.to_string()}}});
        let planes = tenant.hypershift("HostedControlPlane");
        let _changes = [
            tenant.changes(custom(), ROUTER, 100, intent),
            tenant.changes(planes, crowded.cluster.name(), 100, note),
            tenant.changes(tenant.api("", "v1", "Service"), ROUTER, 100, note),
        ];
        crowded.other_tenant_is_unaffected().await
    });
}

/// A forged status of the tenant's custom resource: ids of the other tenant's resources, and as many and as large
/// conditions as the definition allows.
fn forged_status(crowded: &Crowded) -> Value {
    let (other_tenant, test_env) = (&crowded.other_tenant, &crowded.shared_env.test_env);
    let condition = |n: usize| {
        json!({"type": format!("Junk{n}"), "status": "True", "reason": "Junk", "message": "x".repeat(32 * 1024),
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    json!({"status": {
        "privateEndpointID": other_tenant.endpoint(),
        "privateDNSZoneID": other_tenant.zones()[0],
        "baseDomainDNSZoneID": other_tenant.zones()[1],
        "privateLinkServiceID": other_tenant.link_service(test_env),
        "conditions": (0..10).map(condition).collect::<Vec<_>>()}})
}

#[test]
fn everything_forged_and_oversized_harms_no_other_tenant() {
    alone(async |test_env| {
        let crowded = Crowded::start(test_env).await?;
        let tenant = &crowded.tenant;
        let custom = tenant.hypershift("AzurePrivateLinkService");
        let forged = Patch::Merge(forged_status(&crowded));
        custom.patch_status(ROUTER, &PatchParams::default(), &forged).await?;
        let large = json!({"metadata": {"annotations": {
            "hyperlink.hypershift.openshift.io/ho-intent": "x".repeat(LARGEST_ANNOTATION / 2),
            "example.com/junk": "x".repeat(LARGEST_ANNOTATION / 4)}}});
        let planes = tenant.hypershift("HostedControlPlane");
        let services = tenant.api("", "v1", "Service");
        for (api, name) in [
            (&custom, ROUTER),
            (&planes, crowded.cluster.name()),
            (&services, ROUTER),
        ] {
            api.patch(name, &PatchParams::default(), &Patch::Merge(&large)).await?;
        }
        let secret = |n: usize| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("junk-{n}")},
                "stringData": {"junk": "x".repeat(700 * 1024)}})
        };
        tenant
            .create_all(tenant.api("", "v1", "Secret"), (0..20).map(secret))
            .await?;
        let namespace = crowded.cluster.control_plane_namespace();
        let names = ["hyperlink-ho", "hyperlink-cpo", "hyperlink-cpo-junk"].map(str::to_owned);
        let names = names.into_iter().chain([format!("hyperlink-cpo-{namespace}")]);
        let lease = |name: String| {
            let now = Timestamp::now();
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
                "spec": {"holderIdentity": "tenant", "leaseDurationSeconds": 3600, "renewTime": format!("{now:.6}")}})
        };
        let leases = tenant.api("coordination.k8s.io", "v1", "Lease");
        tenant.create_all(leases, names.map(lease)).await?;
        crowded.other_tenant_is_unaffected().await?;
        crowded.only_eight_are_served().await
    });
}

/// `managedFields`, which nobody reads, may be nested as deep as its writer likes, and the API server stores it. A
/// parser that limits the depth fails on it, and so on the whole page of a list.
#[test]
fn object_that_is_nested_too_deep_stops_no_watch() {
    alone(async |test_env| {
        let mut crowded = Crowded::start(test_env).await?;
        let custom = crowded.tenant.hypershift("AzurePrivateLinkService");
        let spec = custom.get(ROUTER).await?.data["spec"].clone();
        let deep = (0..200).fold(json!({}), |inner, _| json!({"f:a": inner}));
        let fields = json!({"manager": "x", "operation": "Update", "time": "2026-01-01T00:00:00Z",
            "apiVersion": "hypershift.openshift.io/v1beta1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": deep}});
        let object = json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AzurePrivateLinkService",
            "metadata": {"name": "a-first", "managedFields": [fields]}, "spec": spec});
        // The answer is nested as deep, so this client cannot read it either.
        let made = custom
            .create(&PostParams::default(), &serde_json::from_value(object)?)
            .await;
        ensure!(matches!(made, Ok(_) | Err(kube::Error::SerdeError(_))), "{made:?}");
        // New processes take over, as in each update; they have to list.
        let flags = [("resync", "3s")];
        let shared_env = &mut crowded.shared_env;
        let ho = Hyperlink::start(&shared_env.test_env, Role::Ho, "ho-again", &flags).await?;
        std::mem::replace(&mut shared_env.ho, ho).stop().await?;
        let cpo = Hyperlink::start(&shared_env.test_env, Role::Cpo, "cpo-again", &[("resync", "8s")]).await?;
        std::mem::replace(&mut shared_env.cpo, cpo).stop().await?;
        for process in [&shared_env.ho, &shared_env.cpo] {
            eventually("its controllers run", SOON, || async {
                let (code, page) = process.page("/readyz?verbose").await?;
                ensure!(code == 200 && page.contains("running"), "{page}");
                Ok(())
            })
            .await?;
        }
        crowded.memory = memory(&crowded.shared_env)?;
        crowded.other_tenant_is_unaffected().await
    });
}
