//! The simulated Azure, run from its image.

use std::os::unix::fs::chown;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::process::Program;
use e2e::run_dir::RunDir;
use e2e::scenario;
use serde_json::{Value, json};

use crate::pod::{Pod, is_restricted};
use e2e::node::images::{self, ARMSIM};

const SOON: Duration = Duration::from_secs(60);

#[test]
fn armsim_serves_from_its_image_and_keeps_its_state() {
    scenario(async {
        let Some(built) = images::built(ARMSIM)? else {
            return Ok(());
        };
        let Some(pod) = Pod::new(&built)? else { return Ok(()) };
        // As a volume with an fsGroup.
        chown(pod.volume(), Some(65532), Some(65532))?;
        let group = "/subscriptions/sub/resourceGroups/rg";
        let seed = json!({"subscriptions": [{"id": "sub", "tenant": "t1"}], "tenants": [{"id": "t1", "principals": []}],
            "resources": [{"id": group, "location": "westus2"}]});
        let http = reqwest::Client::new();
        let logs = RunDir::new("armsim-image")?;
        for life in ["first", "second"] {
            let program = Program::new(pod.command()).without_our_environment().arg("serve");
            let program = program.flag("dir", "/volume").flag("state", "/volume/state.json");
            let armsim = program.spawn(life, logs.path())?;
            let control = armsim
                .until("armsim is up", SOON, async || {
                    let addresses: Value = serde_json::from_str(&std::fs::read_to_string(armsim.out())?)?;
                    Ok(addresses["control"].as_str().context("no control face")?.to_owned())
                })
                .await?;
            is_restricted(&armsim)?;
            if life == "first" {
                let answer = http.put(format!("{control}/seed")).json(&seed).send().await?;
                ensure!(answer.status().is_success(), "{}", answer.text().await?);
            }
            let resources: Result<Value, _> = http.get(format!("{control}/resources")).send().await?.json().await;
            ensure!(resources?[0]["id"] == group, "{life}: the seed is not there");
            armsim.signal("TERM")?;
            ensure!(armsim.wait(SOON).await?.success(), "{}", armsim.log_tail());
        }
        Ok(())
    });
}
