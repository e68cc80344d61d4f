//! Alerts on a cluster on AWS, and on AWS's answers: they fire while the cause lasts, and no longer.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::aws_cluster::AwsHostedCluster;
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::ROUTER;
use e2e::hyperlink::aws::lease;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::runbook::quotes_samples_of;
use e2e::shared_env::SOON;
use e2e::{AwsEnv, eventually, scenario};
use jiff::Timestamp;
use serde_json::json;

use crate::dashboard::{Choice, Dashboard};
use crate::demo::{OF_AWS, over_the_life};
use crate::processes::has_logged;
use crate::prometheus::Prometheus;
use crate::rules::{all_resolve, fire, firing, resolve};
use crate::watched::Watched;

/// Length of a minute of the rules in this test: a session is asked for each half minute.
const MINUTE: Duration = Duration::from_secs(2);

const ON_CALLS: [&str; 3] = [
    "HyperlinkAWSDenied",
    "HyperlinkAWSThrottled",
    "HyperlinkSessionExpiring",
];

#[test]
fn alerts_fire_while_aws_refuses_calls_and_no_longer() {
    scenario(async {
        let env = AwsEnv::local(Preset::Fast).await?;
        let cluster = AwsHostedCluster::new("alarmed");
        let namespace = cluster.control_plane_namespace();
        env.create_lease(&lease(Role::Ho, None)).await?;
        env.create_lease(&lease(Role::Cpo, Some(&namespace))).await?;
        let throttled = json!({"status": 400, "code": "Throttling", "message": "Rate exceeded"});
        let rule = json!({"match": {"path": "/GetCallerIdentity$", "times": 1_000_000}, "do": throttled});
        env.oracle().faults(&json!([rule])).await?;
        let (credentials, token_file) = with_another_token(&env)?;
        let credentials = credentials.to_string_lossy();
        let of_cpo = [
            ("namespace", namespace.as_str()),
            ("aws-credentials-file", &credentials),
        ];
        let ho = Hyperlink::start_on_aws(&env, Role::Ho, "ho", &[]).await?;
        let cpo = Hyperlink::start_on_aws(&env, Role::Cpo, "cpo", &of_cpo).await?;
        let begin = Timestamp::now().as_second();
        let watched = Watched::start(env.dir(), MINUTE).await?;
        watched.scrapes("ho", &[("ho-0", &ho)])?;
        watched.scrapes("cpo", &[("cpo-0", &cpo)])?;
        watched.sees(2).await?;

        fire(&watched.prometheus, &ON_CALLS).await?;
        let pages = [ho.page("/metrics").await?.1, cpo.page("/metrics").await?.1];
        ON_CALLS.iter().try_for_each(|alert| quotes_samples_of(alert, &pages))?;
        has_logged(&cpo, &["no new session"])?;
        env.oracle().faults(&json!([])).await?;
        resolve(&watched.prometheus, &["HyperlinkAWSThrottled"]).await?;

        cluster.create(&env).await?;
        path_is_not_available(&watched, &namespace).await?;
        std::fs::copy(token_of_cpo(&env)?, token_file)?;
        all_resolve(&watched.prometheus).await?;
        cluster.becomes_reachable(&env, SOON).await?;
        row_of_aws_shows_all(&watched.prometheus, begin).await?;
        ho.stop().await?;
        cpo.stop().await
    });
}

/// Fails unless each panel of the dashboard's row for AWS has shown something since `begin`.
async fn row_of_aws_shows_all(prometheus: &Prometheus, begin: i64) -> Result<()> {
    let dashboard = Dashboard::read()?;
    let now = Timestamp::now().as_second();
    let (mut chosen, _) = dashboard.choose(prometheus, (begin, now), Choice::All).await?;
    chosen.extend(["__range", "__rate_interval"].map(|name| (name.to_owned(), "15s".to_owned())));
    let mut queries = dashboard.queries(&chosen)?;
    // One cluster is too few for a call to be held back.
    queries.retain(|query| query.text.contains(OF_AWS) && query.panel != "AWS: calls held back");
    ensure!(queries.len() == 6, "{queries:?}");
    for query in queries {
        let shown = over_the_life(prometheus, &query, begin).await?;
        ensure!(shown.iter().any(|value| *value != 0.0), "{query:?} shows {shown:?}");
    }
    Ok(())
}

/// The file with the token of the CPO role.
fn token_of_cpo(env: &AwsEnv) -> Result<PathBuf> {
    let profile = std::fs::read_to_string(&env.credentials().cpo_role)?;
    let file = profile
        .lines()
        .find_map(|line| line.strip_prefix("web_identity_token_file = "));
    Ok(file.context(profile.clone())?.into())
}

/// A credentials file like that of the CPO role, with another token that AWS does not accept; and the token's file.
fn with_another_token(env: &AwsEnv) -> Result<(PathBuf, PathBuf)> {
    let profile = std::fs::read_to_string(&env.credentials().cpo_role)?;
    let (credentials, token) = (env.dir().join("credentials-refused"), env.dir().join("token-refused"));
    let good = token_of_cpo(env)?;
    let refused = profile.replace(&*good.to_string_lossy(), &token.to_string_lossy());
    std::fs::write(&credentials, refused)?;
    std::fs::write(&token, "no token")?;
    Ok((credentials, token))
}

/// Waits until the cluster's path has an alert of its own.
async fn path_is_not_available(watched: &Watched, namespace: &str) -> Result<()> {
    let expected = [("platform", "aws"), ("control_plane", namespace), ("name", ROUTER)];
    eventually("the path has an alert", SOON, || async {
        let all = firing(&watched.prometheus).await?;
        let of_path = all.iter().filter(|alert| alert.name == "HyperlinkNotAvailable");
        let labels: Vec<_> = of_path.map(|alert| &alert.labels).collect();
        let [labels] = labels.as_slice() else {
            anyhow::bail!("{all:?}")
        };
        for (label, value) in expected {
            ensure!(labels.get(label).is_some_and(|is| is == value), "{labels:?}");
        }
        Ok(())
    })
    .await
}
