//! The dashboard on the running demo, by a Prometheus with the configuration of the quick start: each variable offers
//! what exists, and each panel has something to show for every choice.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use e2e::kubeconfig::Access;
use e2e::process::{Process, Program, is_running};
use e2e::run_dir::RunDir;
use e2e::shared_env::SOON;
use e2e::{binaries, eventually, repository, scenario};
use hyperlink::api::AzurePrivateLinkService;
use jiff::Timestamp;
use kube::Api;
use regex::Regex;
use reqwest::Method;
use serde_json::{Value, json};

use crate::dashboard::{Choice, Dashboard, Query};
use crate::prometheus::Prometheus;

/// Timeout for the demo's start, before which it checks that the executables are up to date.
const START: Duration = Duration::from_secs(300);

/// Timeout for a whole life of a cluster.
const LIFE: Duration = Duration::from_secs(240);

/// How often Prometheus scrapes, by the quick start.
const STEP: &str = "2s";

/// Grafana's rate interval for that: four scrapes.
const RATE: &str = "8s";

const CONTROL_PLANE: &str = "clusters-first-light";

const ENDPOINT: &str = "privateEndpoints";
const LINK_SERVICE: &str = "privateLinkServices";

/// Number of calls to which a lasting fault applies.
const ALWAYS: u32 = 1_000_000;

/// Queries that may give nothing but zero, and why.
const AT_REST: [(&str, &str, &str); 3] = [
    ("Without a leader", "A", "each role has one from the start"),
    ("Work", "A", "no pass has to wait with one cluster"),
    ("Work", "B", "a pass may begin and end between two scrapes"),
];

/// Panels that stay empty for a job, and why.
const ONE_SIDED: [(&str, &str, &str); 2] = [
    ("Time to available, median", "hyperlink-ho", "the guest's side sums up"),
    ("Time to available", "hyperlink-ho", "the guest's side sums up"),
];

/// What the metrics of AWS begin with: the demo has Azure alone.
pub(crate) const OF_AWS: &str = "hyperlink_aws_";

/// What the metrics of role `capz` begin with, which the demo does not run.
pub(crate) const OF_CAPZ: &str = "hyperlink_capz_";

/// Queries of the present that are empty while the faults last, and why.
const NOT_NOW: [(&str, &str, &str); 1] = [("State", "B", "the cluster stays")];

#[test]
fn every_panel_shows_the_running_demo() {
    scenario(async {
        let demo = Demo::start().await?;
        let begin = Timestamp::now().as_second();
        let prometheus = demo.watched().await?;
        demo.stays().await?;
        demo.recreate_custom_resource(&prometheus).await?;
        demo.suffer(&prometheus).await?;
        let dashboard = Dashboard::read()?;
        let jobs = ["hyperlink-cpo", "hyperlink-ho"];
        for choice in [
            Choice::All,
            Choice::These(&jobs[..1]),
            Choice::These(&jobs[1..]),
            Choice::These(&jobs),
        ] {
            shows_all(&dashboard, &prometheus, begin, choice).await?;
        }
        drop(prometheus);
        demo.end().await
    });
}

/// Opens the dashboard with this choice of the jobs.
async fn shows_all(dashboard: &Dashboard, prometheus: &Prometheus, begin: i64, choice: Choice<'_>) -> Result<()> {
    let now = Timestamp::now().as_second();
    let (mut chosen, offers) = dashboard.choose(prometheus, (begin, now), choice).await?;
    ensure!(offers["job"] == ["hyperlink-cpo", "hyperlink-ho"], "{offers:?}");
    ensure!(offers["control_plane"] == [CONTROL_PLANE], "{offers:?}");
    ensure!(offers.len() == 2, "another variable: {offers:?}");
    chosen.insert("__range".into(), format!("{}s", now - begin));
    chosen.insert("__rate_interval".into(), RATE.into());
    let queries = dashboard.queries(&chosen)?;
    ensure!(queries.len() > 35, "{} queries", queries.len());
    for query in &queries {
        let named = |list: &[(&str, &str, &str)], name: &str| {
            list.iter().any(|(panel, is, _)| *panel == query.panel && *is == name)
        };
        let is_one_sided = matches!(choice, Choice::These([only]) if named(&ONE_SIDED, only));
        let is_of_others = [OF_AWS, OF_CAPZ].iter().any(|name| query.text.contains(name));
        let empty = is_one_sided || is_of_others;
        let may_be_zero = empty || named(&AT_REST, &query.name);
        eventually(&format!("{choice:?}: {query:?} shows what it should"), SOON, || async {
            let life = over_the_life(prometheus, query, begin).await?;
            ensure!(life.is_empty() == empty, "over the life: {life:?}");
            ensure!(
                may_be_zero || life.iter().any(|value| *value != 0.0),
                "over the life: {life:?}"
            );
            if query.instant && !empty {
                let present = prometheus.get("query", &[("query", &query.text)]).await?;
                let is_none = numbers(&present).is_empty();
                ensure!(is_none == named(&NOT_NOW, &query.name), "at present: {present}");
            }
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// All numbers that a query has given since `begin`.
pub(crate) async fn over_the_life(prometheus: &Prometheus, query: &Query, begin: i64) -> Result<Vec<f64>> {
    let (from, to) = (begin.to_string(), Timestamp::now().as_second().to_string());
    let range = [
        ("query", query.text.as_str()),
        ("start", &from),
        ("end", &to),
        ("step", STEP),
    ];
    Ok(numbers(&prometheus.get("query_range", &range).await?))
}

/// Waits until a comparison holds.
async fn becomes(prometheus: &Prometheus, comparison: &str) -> Result<()> {
    eventually(comparison, SOON, || async {
        let found = prometheus.get("query", &[("query", comparison)]).await?;
        ensure!(!numbers(&found).is_empty(), "{found}");
        Ok(())
    })
    .await
}

/// The numbers of an answer that can be drawn: a quantile of nothing is no number.
fn numbers(data: &Value) -> Vec<f64> {
    let series = data["result"].as_array().into_iter().flatten();
    let samples = series.flat_map(|one| match &one["values"] {
        Value::Array(several) => several.iter().collect::<Vec<_>>(),
        _ => vec![&one["value"]],
    });
    let values = samples.filter_map(|sample| sample[1].as_str()?.parse::<f64>().ok());
    values.filter(|value| value.is_finite()).collect()
}

/// A demo as `make demo KEEP=1` starts it.
struct Demo {
    process: Process,
    /// Its temporary files.
    files: PathBuf,
    dir: RunDir,
}

impl Demo {
    /// Returns when both roles lead.
    async fn start() -> Result<Self> {
        let dir = RunDir::new("watch")?;
        let files = dir.path().join("tmp");
        std::fs::create_dir(&files)?;
        let process = Program::new(binaries::executable("demo")?)
            .env("KEEP", "1")
            .env("PRESET", "fast")
            .env("TMPDIR", &files)
            .spawn("demo", dir.path())?;
        let demo = Self { process, files, dir };
        for role in ["ho", "cpo"] {
            demo.prints(&format!(r"hyperlink {role}  leads, process (\d+), http://(\S+)"), START)
                .await?;
        }
        Ok(demo)
    }

    /// Waits until it prints a line of this form, and returns the captures.
    async fn prints(&self, line: &str, timeout: Duration) -> Result<Vec<String>> {
        let line = Regex::new(line)?;
        self.process
            .until(&format!("the demo says {line}"), timeout, async || {
                let printed = std::fs::read_to_string(self.process.out())?;
                let found = line.captures(&printed).with_context(|| printed.clone())?;
                Ok(found
                    .iter()
                    .skip(1)
                    .flatten()
                    .map(|part| part.as_str().to_owned())
                    .collect())
            })
            .await
    }

    /// Process and address of a role.
    async fn role(&self, role: &str) -> Result<(u32, String)> {
        let line = format!(r"hyperlink {role}  leads, process (\d+), http://(\S+)");
        let captures = self.prints(&line, START).await?;
        let [process, address] = captures.as_slice() else {
            bail!("{captures:?}")
        };
        Ok((process.parse()?, address.clone()))
    }

    /// A Prometheus as the quick start has it; where it listens is its own.
    async fn watched(&self) -> Result<Prometheus> {
        let script = format!("{}echo \"$WATCH\"", watch_it()?);
        let mut shell = Command::new("sh");
        shell
            .args(["-euc", &script])
            .current_dir(repository())
            .env("TMPDIR", self.dir.path());
        for (name, role) in [("HO", "ho"), ("CPO", "cpo")] {
            shell.env(name, self.role(role).await?.1);
        }
        let output = shell.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let watch = PathBuf::from(String::from_utf8(output.stdout)?.trim());
        let prometheus = Prometheus::start(self.dir.path(), &watch.join("prometheus.yml")).await?;
        becomes(&prometheus, "sum(up{app=\"hyperlink\"}) == 2").await?;
        Ok(prometheus)
    }

    /// Waits until it has played the life, and the cluster is up once more.
    async fn stays(&self) -> Result<()> {
        for (name, role) in [("HO", "ho"), ("CPO", "cpo")] {
            let exported = self.exported(name).await?;
            ensure!(exported == self.role(role).await?.1, "{exported}");
        }
        Ok(())
    }

    /// The value of a variable that it exports at its end.
    async fn exported(&self, name: &str) -> Result<String> {
        let captures = self.prints(&format!(r"(?m)^export {name}=(.+)$"), LIFE).await?;
        captures.into_iter().next().context("nothing is exported")
    }

    /// A request to the control server of the simulated Azure.
    async fn control(&self, method: Method, path: &str, body: Value) -> Result<Value> {
        let url = format!("{}{path}", self.exported("CONTROL").await?);
        let answer = reqwest::Client::new().request(method, url).json(&body).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        ensure!(status.is_success(), "{path}: {status}: {text}");
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    /// Sets fault rules: method, kind of the resource, number of calls, and the answer to them.
    async fn faults(&self, rules: &[(&str, &str, u32, Value)]) -> Result<()> {
        let rule = |(method, kind, times, answer): &(&str, &str, u32, Value)| {
            let call = json!({"method": method, "path": format!("/{kind}/"), "times": times});
            json!({"match": call, "do": answer})
        };
        let rules: Vec<_> = rules.iter().map(rule).collect();
        self.control(Method::PUT, "/faults", json!(rules)).await.map(drop)
    }

    /// Deletes the cluster's only resource of this kind.
    async fn delete_only(&self, kind: &str) -> Result<()> {
        let all = self.control(Method::GET, "/resources", Value::Null).await?;
        let ids = all
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| one["id"].as_str());
        let of_kind = format!("/{kind}/");
        let is_one = |id: &&str| id.rsplit_once(&of_kind).is_some_and(|(_, name)| !name.contains('/'));
        let ids: Vec<_> = ids.filter(is_one).collect();
        let [id] = ids.as_slice() else { bail!("{ids:?}") };
        self.control(Method::DELETE, &format!("/resources{id}"), Value::Null)
            .await
            .map(drop)
    }

    /// Deletes the custom resource, which is then recreated. Azure deletes the endpoint only after both roles have
    /// reported.
    async fn recreate_custom_resource(&self, prometheus: &Prometheus) -> Result<()> {
        let hangs = json!({"operation": "hang"});
        self.faults(&[("DELETE", ENDPOINT, ALWAYS, hangs)]).await?;
        let access = Access::read(Path::new(&self.exported("KUBECONFIG").await?), None).await?;
        let api = Api::<AzurePrivateLinkService>::namespaced(access.client()?, CONTROL_PLANE);
        api.delete("private-router", &Default::default()).await?;
        becomes(prometheus, "count(hyperlink_object_deletion_age_seconds > 0) == 2").await?;
        self.faults(&[]).await?;
        self.delete_only(ENDPOINT).await?;
        becomes(prometheus, "sum(hyperlink_object_available) == 2").await
    }

    /// Throttles reads, and deletes the endpoint and the Private Link Service, whose creation then never completes.
    async fn suffer(&self, prometheus: &Prometheus) -> Result<()> {
        let throttled = json!({"status": 429, "code": "TooManyRequests", "headers": {"Retry-After": "1"}});
        let hangs = json!({"operation": "hang"});
        let rules = [ENDPOINT, LINK_SERVICE].map(|kind| {
            // More than one scrape sees, or there would be no rate.
            let reads = ("GET", kind, 5, throttled.clone());
            [reads, ("PUT", kind, ALWAYS, hangs.clone())]
        });
        self.faults(rules.as_flattened()).await?;
        for (kind, label) in [(ENDPOINT, "private_endpoint"), (LINK_SERVICE, "private_link_service")] {
            self.delete_only(kind).await?;
            let under_way = format!("hyperlink_arm_operations_in_flight{{kind=\"{label}\"}} > 0");
            becomes(prometheus, &under_way).await?;
        }
        Ok(())
    }

    /// Ends the demo by Ctrl-C; fails if a process still runs or a file is left.
    async fn end(self) -> Result<()> {
        let processes = [self.role("ho").await?.0, self.role("cpo").await?.0];
        self.process.signal("INT")?;
        let status = self.process.wait(SOON).await?;
        ensure!(status.success(), "{status}");
        eventually("nothing is left", SOON, || async {
            let left = names_in(&self.files)?;
            ensure!(left.is_empty(), "{left:?}");
            let running: Vec<_> = processes.iter().filter(|process| is_running(**process)).collect();
            ensure!(running.is_empty(), "processes {running:?} run");
            Ok(())
        })
        .await
    }
}

fn names_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir)?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// The commands of the quick start that write the configuration.
fn watch_it() -> Result<String> {
    let document = std::fs::read_to_string(repository().join("docs/quickstart.md"))?;
    let (_, section) = document.split_once("Watch it\n").context("no section")?;
    let (_, block) = section.split_once("```sh\n").context("no commands")?;
    Ok(block.split_once("```").context("no end of the commands")?.0.to_owned())
}
