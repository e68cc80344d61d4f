//! Hundreds of clusters at once on one load balancer: in one guest subscription and in ten, each with a NAT subnet of its
//! own, which Azure makes one after another, and with one NAT subnet for all.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use super::crowd::{Crowd, clusters, nat_subnet, with_nat_subnet};
use super::figures::Figure;
use super::{Report, count};
use crate::azure_sim::{Preset, guest_subscriptions};

/// How long Azure's request budgets may keep 500 clusters of one subscription waiting.
const BUDGETS: Duration = Duration::from_secs(3_600);

/// Clusters that are created at once.
#[derive(Clone, Copy)]
struct Case {
    clusters: usize,
    /// How many guest subscriptions they lie in.
    subscriptions: usize,
    one_nat_subnet: bool,
    /// When the last one should be available, in seconds.
    goal: Option<f64>,
}

const CASES: [Case; 4] = [
    Case {
        clusters: 100,
        subscriptions: 1,
        one_nat_subnet: false,
        goal: Some(360.0),
    },
    Case {
        clusters: 100,
        subscriptions: 1,
        one_nat_subnet: true,
        goal: Some(120.0),
    },
    Case {
        clusters: 500,
        subscriptions: 1,
        one_nat_subnet: true,
        goal: None,
    },
    Case {
        clusters: 500,
        subscriptions: 10,
        one_nat_subnet: true,
        goal: None,
    },
];

/// Measures each case in a test environment of its own.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Report> {
    let mut figures = Vec::new();
    for case in CASES {
        figures.extend(case.measure(preset, program).await?);
    }
    Ok(Report::of(figures))
}

impl Case {
    async fn measure(self, preset: Preset, program: &Path) -> Result<Vec<Figure>> {
        let number = self.clusters;
        // Each cluster has two private DNS zones.
        let quotas = json!({"pls_per_load_balancer": number, "zones": 2 * number});
        let crowd = Crowd::start(preset, program, &quotas).await?;
        let guests = guest_subscriptions();
        let guests = guests.iter().take(self.subscriptions).cycle();
        let mut all = clusters(crowd.test_env(), "hundreds", number);
        all = all
            .into_iter()
            .zip(guests)
            .map(|(one, guest)| one.in_subscription(guest))
            .collect();
        if self.one_nat_subnet {
            all = with_nat_subnet(all, &nat_subnet(crowd.test_env()).await?);
        }
        eprintln!("{}", self.name("all"));
        let since = crowd.test_env().oracle().last_call().await?;
        let times = crowd.bring_up_within(&all, number, BUDGETS).await?;
        let calls = crowd.test_env().oracle().journal(since).await?;
        let memory = crowd.memory()?;
        crowd.stop().await?;
        let last = times.last().copied().context("no cluster")?;
        let last_name = self.name("last one available");
        let mut figures = vec![
            match self.goal {
                Some(goal) => Figure::new(last_name, last, "s", goal),
                None => Figure::without_goal(last_name, last, "s"),
            },
            Figure::without_goal(self.name("median"), times[times.len() / 2], "s"),
            Figure::without_goal(self.name("ARM calls each"), calls.len() as f64 / number as f64, "calls"),
            Figure::without_goal(
                self.name("throttled"),
                count(&calls, |call| call.status == 429),
                "calls",
            ),
        ];
        let rss = |(role, rss)| Figure::without_goal(self.name(&format!("RSS of {role}")), rss, "MiB");
        figures.extend(memory.into_iter().map(rss));
        Ok(figures)
    }

    fn name(self, what: &str) -> String {
        let nat = if self.one_nat_subnet {
            "one NAT subnet"
        } else {
            "own NAT subnets"
        };
        format!(
            "{} clusters at once, guest subscriptions: {}, {nat}, {what}",
            self.clusters, self.subscriptions
        )
    }
}
