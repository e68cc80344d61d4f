//! Settings that cannot work: one message with all problems, exit code 2, before anything starts.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::process::Program;
use rstest::rstest;

/// Runs the executable with only these flags and variables; returns its exit code and its log.
async fn outcome(flags: &[(&str, &str)], variables: &[(&str, &str)]) -> Result<(Option<i32>, String)> {
    let dir = e2e::run_dir::RunDir::new("settings")?;
    let mut program = Program::new(e2e::binaries::executable("hyperlink")?)
        .without_our_environment()
        .arg("run");
    for (flag, value) in flags {
        program = program.flag(flag, value);
    }
    for (name, value) in variables {
        program = program.env(name, value);
    }
    let process = program.spawn("hyperlink", dir.path())?;
    let status = process.wait(Duration::from_secs(20)).await?;
    Ok((status.code(), std::fs::read_to_string(process.log())?))
}

#[test]
fn missing_and_contradictory_settings_are_all_reported_at_once() {
    e2e::scenario(async {
        let flags = [
            ("role", "ho"),
            ("arm-endpoint", "http://management.example.com"),
            ("authority", "http://login.example.com"),
            ("lease-duration", "5s"),
            ("lease-renew-deadline", "10s"),
            ("nat-address-pool", "10.0.0.0/28"),
            ("nat-prefix-length", "24"),
        ];
        let variables = [
            ("AZURE_CREDENTIALS_FILE", "/nowhere"),
            ("AZURE_PLS_CLIENT_ID", "client"),
        ];
        let (code, log) = outcome(&flags, &variables).await?;
        ensure!(code == Some(2), "{code:?}: {log}");
        for word in [
            "--arm-endpoint",
            "--authority",
            "--lease-renew-deadline",
            "--nat-address-pool",
            "two credentials",
            "--resource-group",
            "--lease-namespace",
        ] {
            ensure!(log.contains(word), "{word} is not told: {log}");
        }
        ensure!(
            !log.contains("\"started\"") && !log.contains("started "),
            "it started: {log}"
        );
        Ok(())
    });
}

#[rstest]
#[case::of_arm("arm-endpoint", "http://management.example.com")]
#[case::of_arm_by_address("arm-endpoint", "http://192.0.2.1")]
#[case::of_the_authority("authority", "http://login.example.com")]
#[case::that_only_resembles_loopback("arm-endpoint", "http://127.0.0.1.example.com")]
fn plain_http_endpoint_is_refused(#[case] flag: &str, #[case] url: &str) {
    e2e::scenario(async {
        let flags = [
            ("role", "cpo"),
            ("namespace", "clusters-example"),
            ("credential", "azure-cli"),
            ("lease-namespace", "hyperlink"),
            ("audience", "https://management.azure.com"),
            (flag, url),
        ];
        let (code, log) = outcome(&flags, &[]).await?;
        ensure!(code == Some(2), "{code:?}: {log}");
        let lines: Vec<_> = log.lines().filter(|line| line.contains("--")).collect();
        ensure!(lines.len() == 1 && lines[0].contains(&format!("--{flag}")), "{log}");
        Ok(())
    });
}
