//! The README's examples are run as they stand there.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod http_support;

use std::process::Command;

use armsim::Options;
use http_support::*;

#[tokio::test]
async fn curl_examples_work() {
    let dir = tempfile::tempdir().unwrap();
    let server = start_with(
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
    let changes = server
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

#[test]
fn every_part_of_a_seed_and_of_a_fault_rule_is_listed() {
    let readme = include_str!("../README.md");
    let seed = json(&armsim::Seed::default());
    let quotas = json(&armsim::Quotas::default());
    let throttle = json(&armsim::ThrottleSeed::default());
    let named = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for name in [named(&seed), named(&throttle)].concat() {
        assert!(readme.contains(&format!("\"{name}\"")), "{name}");
    }
    for name in named(&quotas) {
        assert!(readme.contains(&format!("`{name}`")), "{name}");
    }
    let refusal = armsim::parse_faults(br#"[{"match": {}, "do": {"nothing": 1}}]"#);
    let refusal = refusal.unwrap_err().to_string();
    let keys: Vec<&str> = refusal.split('`').skip(3).step_by(2).collect();
    assert!(keys.len() >= 13, "{refusal}");
    for key in keys {
        assert!(readme.contains(&format!("`{key}`")), "{key}");
    }
}

fn json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap()
}
