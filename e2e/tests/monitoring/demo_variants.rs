//! The demo on AWS, and of role `capz`, which ends by itself.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::process::Program;
use e2e::run_dir::RunDir;
use e2e::{binaries, scenario};

/// Timeout for the whole demo. Before its start it checks that the executables are up to date.
const ALL: Duration = Duration::from_secs(600);

/// Whether the table has a row of a phase with so many writes at least, and these at most. Returns its calls.
fn row(printed: &str, phase: &str, writes: (usize, usize)) -> Result<usize> {
    let line = printed.lines().rfind(|line| line.starts_with(phase));
    let line = line.with_context(|| format!("no {phase}: {printed}"))?;
    // `phase  1.5 s  3  1`
    let fields: Vec<&str> = line.split_whitespace().rev().take(4).collect();
    let [sent, calls, "s", time] = fields[..] else {
        anyhow::bail!("{line}");
    };
    let (time, calls, sent): (f64, usize, usize) = (time.parse()?, calls.parse()?, sent.parse()?);
    ensure!(time >= 0.0, "{line}");
    ensure!((writes.0..=writes.1).contains(&sent), "{line}");
    Ok(calls)
}

/// Plays the demo; returns what it prints.
async fn played(variant: &str) -> Result<String> {
    let dir = RunDir::new(&format!("demo-{variant}"))?;
    let files = dir.path().join("tmp");
    std::fs::create_dir(&files)?;
    Program::new(binaries::executable("demo")?)
        .env("VARIANT", variant)
        .env("PRESET", "fast")
        .env("TMPDIR", &files)
        .output("demo", dir.path(), ALL)
        .await
}

#[test]
fn life_on_aws_is_shown_with_times_and_calls() {
    scenario(async {
        let printed = played("aws").await?;
        let up = row(&printed, "up", (6, 8))?;
        ensure!((6..=40).contains(&up), "{printed}");
        row(&printed, "rest", (0, 0))?;
        for (phase, most) in [
            ("heal a record", 1),
            ("heal: record is deleted", 1),
            ("heal: rule is revoked", 1),
            ("heal: endpoint is deleted", 3),
            ("heal: endpoint service is deleted", 6),
        ] {
            row(&printed, phase, (1, most))?;
        }
        let go = row(&printed, "go", (4, 12))?;
        ensure!(go <= 40, "{printed}");
        ensure!(printed.contains("nothing is left in AWS"), "{printed}");
        Ok(())
    });
}

#[test]
fn lives_of_workload_clusters_are_shown_with_reads_and_writes() {
    scenario(async {
        let printed = played("capz").await?;
        ensure!(printed.contains("ARM calls  Kubernetes writes"), "{printed}");
        let up = row(&printed, "up", (12, 60))?;
        ensure!((1..=40).contains(&up), "{printed}");
        row(&printed, "rest", (0, 0))?;
        row(&printed, "heal: entry is dropped", (1, 20))?;
        row(&printed, "heal: address is removed", (1, 5))?;
        row(&printed, "go", (2, 20))?;
        for line in [
            "name api.wc-1.k8s.example.com from mc  leads to wc-1/kube-apiserver by ",
            "name observability.mc.k8s.example.com from public  leads to mc/gateway by ",
            "condition GSPrivateLinksReady of wc-2  True",
            "entry wc-2-api-privatelink-privateendpoint of mc  is gone",
            "of wc-2 no entry is left",
        ] {
            ensure!(printed.contains(line), "no {line}: {printed}");
        }
        Ok(())
    });
}
