//! The README's examples are run as they stand there.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod face_support;

use std::process::Command;

use armsim::Options;
use face_support::*;

#[tokio::test]
async fn curl_examples_work() {
    let dir = tempfile::tempdir().unwrap();
    let face = start_with(
        Options {
            dir: Some(dir.path().to_owned()),
            ..Options::default()
        },
        None,
    )
    .await;
    let examples = readme_blocks("sh");
    assert_eq!(examples.len(), 5);
    let script = format!(
        "set -eux -o pipefail\n. {}/env\n{}",
        dir.path().display(),
        examples.join("\n")
    );
    let run = tokio::task::spawn_blocking(move || {
        Command::new("timeout")
            .args(["60", "bash", "-c", &script])
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    assert!(
        run.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr)
    );
    let changes = face
        .journal("")
        .await
        .iter()
        .filter(|call| call["changed"] == true)
        .count();
    assert_eq!(changes, 2, "two subnets were put");
}

#[test]
fn every_switch_is_listed() {
    let switches = serde_json::to_value(armsim::Switches::default()).unwrap();
    for name in switches.as_object().unwrap().keys() {
        assert!(
            include_str!("../README.md").contains(&format!("| `{name}` |")),
            "{name}"
        );
    }
}
