//! The simulated clouds, run from their images.

use std::os::unix::fs::chown;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::process::Program;
use e2e::run_dir::RunDir;
use e2e::scenario;
use rstest::rstest;
use serde_json::{Value, json};

use crate::pod::{Pod, is_restricted};
use e2e::node::images::{self, ARMSIM, AWSSIM};

const SOON: Duration = Duration::from_secs(60);

/// A seed with one resource, and the id of that.
fn azure() -> (Value, &'static str) {
    let group = "/subscriptions/sub/resourceGroups/rg";
    let seed = json!({"subscriptions": [{"id": "sub", "tenant": "t1"}], "tenants": [{"id": "t1", "principals": []}],
        "resources": [{"id": group, "location": "westus2"}]});
    (seed, group)
}

fn aws() -> (Value, &'static str) {
    let zone = "arn:aws:route53:::hostedzone/Z1";
    let seed = json!({"accounts": [{"id": "111111111111"}],
        "resources": [{"id": zone, "account": "111111111111", "name": "one.example"}]});
    (seed, zone)
}

#[rstest]
#[case::armsim(ARMSIM, azure())]
#[case::awssim(AWSSIM, aws())]
fn simulator_serves_from_its_image_and_keeps_its_state(
    #[case] image: &str,
    #[case] (seed, resource): (Value, &'static str),
) {
    scenario(async {
        let Some(built) = images::built(image)? else {
            return Ok(());
        };
        let Some(pod) = Pod::new(&built)? else { return Ok(()) };
        // As a volume with an fsGroup.
        chown(pod.volume(), Some(65532), Some(65532))?;
        let http = reqwest::Client::new();
        let logs = RunDir::new("simulator-image")?;
        for life in ["first", "second"] {
            let program = Program::new(pod.command()).without_our_environment().arg("serve");
            let program = program.flag("dir", "/volume").flag("state", "/volume/state.json");
            let simulator = program.spawn(life, logs.path())?;
            let control = simulator
                .until("the simulator is up", SOON, async || {
                    let addresses: Value = serde_json::from_str(&std::fs::read_to_string(simulator.out())?)?;
                    Ok(addresses["control"].as_str().context("no control face")?.to_owned())
                })
                .await?;
            is_restricted(&simulator)?;
            if life == "first" {
                let answer = http.put(format!("{control}/seed")).json(&seed).send().await?;
                ensure!(answer.status().is_success(), "{}", answer.text().await?);
            }
            let resources: Result<Value, _> = http.get(format!("{control}/resources")).send().await?.json().await;
            ensure!(resources?[0]["id"] == resource, "{life}: the seed is not there");
            simulator.signal("TERM")?;
            ensure!(simulator.wait(SOON).await?.success(), "{}", simulator.log_tail());
        }
        Ok(())
    });
}
