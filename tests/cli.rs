//! The built binary as a person at a shell or a kubelet uses it. The environment has only what a test sets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Longer than anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn hyperlink(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperlink"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

fn output(arguments: &[&str]) -> Output {
    hyperlink(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn wrong_settings_are_all_in_one_message_with_exit_code_2() {
    let line = [
        "run",
        "--role",
        "ho",
        "--lease-retry",
        "20s",
        "--nat-address-pool",
        "10.1.0.0/29",
    ];
    let output = output(&line);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    let messages: Vec<&str> = text(&output.stderr).lines().collect();
    assert_eq!(messages[0], "hyperlink: cannot start, 6 problems with the settings:");
    let starts = [
        "  --lease-retry (20s) must be shorter than",
        "  --lease-namespace (or HYPERLINK_LEASE_NAMESPACE) is missing",
        "  no credential: ",
        "  --subscription (or AZURE_SUBSCRIPTION_ID) is missing",
        "  --resource-group (or AZURE_RESOURCE_GROUP) is missing",
        "  --nat-address-pool 10.1.0.0/29 has no room",
    ];
    assert_eq!(messages.len(), starts.len() + 1, "{messages:#?}");
    for (line, start) in messages[1..].iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn wrong_settings_start_nothing() {
    // The port is in use: a process that serves before the settings are checked fails with exit code 1.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let output = output(&["run", "--metrics-bind", &address]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--role (or HYPERLINK_ROLE) is missing"));
}

#[test]
fn process_that_finds_no_kubeconfig_ends_with_exit_code_1() {
    let settings = ["--role", "cpo", "--namespace", "x", "--credential", "azure-cli"];
    for line in [
        &["run", "--lease-namespace", "x", "--metrics-bind", "127.0.0.1:0"][..],
        &["plan", "x/y"],
    ] {
        let output = hyperlink(line).args(settings).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{line:?}");
        let messages = text(&output.stderr);
        assert!(
            messages.contains("no Kubernetes API server is configured"),
            "{messages}"
        );
    }
}

#[test]
fn unreadable_value_is_refused_with_what_to_write() {
    let output = output(&["run", "--role", "ho", "--resync", "soon"]);
    assert_eq!(output.status.code(), Some(2));
    let first = text(&output.stderr).lines().next();
    let message = "error: invalid value 'soon' for '--resync <DURATION> (or HYPERLINK_RESYNC)': not a duration: write 90s, 5m or 1h30m";
    assert_eq!(first, Some(message));
}

#[test]
fn an_unknown_flag_is_a_wrong_use() {
    let output = output(&["run", "--frobnicate"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--frobnicate"));
}

#[test]
fn version_and_crd_are_printed_without_any_setting() {
    let version = output(&["version"]);
    assert_eq!(version.status.code(), Some(0));
    let start = format!("hyperlink {} (", env!("CARGO_PKG_VERSION"));
    assert!(text(&version.stdout).starts_with(&start));

    let crd = output(&["crd"]);
    assert_eq!(crd.status.code(), Some(0));
    assert!(text(&crd.stdout).contains("name: azureprivatelinkservices.hypershift.openshift.io"));
}

#[test]
fn plan_that_cannot_be_made_is_never_mistaken_for_steps_pending() {
    for line in [
        &["plan"][..],
        &["plan", "no-slash"],
        &["plan", "a/b/c"],
        &["plan", "a/b", "--frobnicate"],
        &["plan", "a/b", "--lease-namespace", "x"],
        &["plan", "a/b", "--resync", "soon", "--credential", "azure-cli"],
        &["plan", "a/b", "--credential", "azure-cli", "--namespace", "other"],
    ] {
        let output = output(line);
        assert_eq!(output.status.code(), Some(1), "{line:?}");
        assert_eq!(text(&output.stdout), "", "{line:?}");
        assert_ne!(text(&output.stderr), "", "{line:?}");
    }
    let help = output(&["plan", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).contains("Exit codes: 0 nothing to do"));
}

#[test]
fn wrong_command_is_never_mistaken_for_steps_pending() {
    for line in [&["plna", "a/b"][..], &["--frobnicate", "plan", "a/b"], &[]] {
        assert_eq!(output(line).status.code(), Some(1), "{line:?}");
    }
}

/// Checks that a JSON log has no line of another form, whatever ends the process.
fn ends_with_json(command: &mut Command, code: i32, message: &str) {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code));
    let lines = text(&output.stderr).lines();
    let lines: Vec<serde_json::Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!(last["level"], "ERROR", "{last}");
    assert!(last["timestamp"].is_string(), "{last}");
    assert!(last["message"].as_str().unwrap().contains(message), "{last}");
}

#[test]
fn wrong_settings_are_json_where_the_log_is() {
    let missing = "  --role (or HYPERLINK_ROLE) is missing";
    ends_with_json(&mut hyperlink(&["run", "--log-format", "json"]), 2, missing);
    ends_with_json(hyperlink(&["run"]).env("HYPERLINK_LOG_FORMAT", "json"), 2, missing);
    let line = [
        "plan",
        "a/b",
        "--log-format=json",
        "--nat-prefix-length",
        "24",
        "--role=ho",
    ];
    ends_with_json(&mut hyperlink(&line), 1, "  --resource-group ");
    let line = ["plan", "a/b", "--log-format=json", "--resync", "soon"];
    ends_with_json(
        &mut hyperlink(&line),
        1,
        "invalid value 'soon' for '--resync <DURATION> (or HYPERLINK_RESYNC)'",
    );
    let mut variable = hyperlink(&["run", "--log-format=json"]);
    ends_with_json(
        variable.env("HYPERLINK_RESYNC", "soon"),
        2,
        "for '--resync <DURATION> (or HYPERLINK_RESYNC)'",
    );
}

#[test]
fn wrong_command_line_is_json_where_the_log_is() {
    for line in [
        &["run", "--log-format", "json", "--frobnicate"][..],
        &["run", "--frobnicate", "--log-format=json"],
    ] {
        ends_with_json(&mut hyperlink(line), 2, "--frobnicate");
    }
    let mut line = hyperlink(&["run", "--frobnicate"]);
    ends_with_json(line.env("HYPERLINK_LOG_FORMAT", "json"), 2, "--frobnicate");
    ends_with_json(
        &mut hyperlink(&["plan", "--log-format", "json", "--frobnicate"]),
        1,
        "--frobnicate",
    );
}

#[test]
fn failure_is_json_where_the_log_is() {
    let mut kubeconfig = tempfile::NamedTempFile::new().unwrap();
    write!(kubeconfig, "{NOWHERE}").unwrap();
    let line = ["plan", "a/b", "--credential", "azure-cli", "--log-format", "json"];
    ends_with_json(hyperlink(&line).env("KUBECONFIG", kubeconfig.path()), 1, "Kubernetes");
}

#[test]
fn plan_without_an_api_server_fails() {
    let mut kubeconfig = tempfile::NamedTempFile::new().unwrap();
    write!(kubeconfig, "{NOWHERE}").unwrap();
    let mut command = hyperlink(&["plan", "a/b", "--credential", "azure-cli"]);
    let output = command.env("KUBECONFIG", kubeconfig.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("Kubernetes"), "{}", text(&output.stderr));
}

/// A process that ends with the test, also when that panics.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn started_process_answers_probes_logs_json_and_stops() {
    let line = [
        "run",
        "--role",
        "cpo",
        "--credential",
        "azure-cli",
        "--namespace",
        "one",
        "--metrics-bind",
        "127.0.0.1:0",
        "--log-format",
        "json",
    ];
    // A kubeconfig that leads nowhere: a process without an API server keeps running and reports it.
    let mut kubeconfig = tempfile::NamedTempFile::new().unwrap();
    write!(kubeconfig, "{NOWHERE}").unwrap();
    let mut command = hyperlink(&line);
    command.env("KUBECONFIG", kubeconfig.path()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().unwrap());

    let log = lines(running.0.stderr.take().unwrap());
    let first = log.recv_timeout(PATIENCE).unwrap();
    let first: serde_json::Value = serde_json::from_str(&first).unwrap();
    let address = first["address"].as_str().unwrap();
    assert!(get(address, "/livez").starts_with("HTTP/1.1 200 "));
    assert!(get(address, "/readyz").starts_with("HTTP/1.1 503 "));
    assert!(get(address, "/metrics").contains("hyperlink_build_info"));

    let pid = running.0.id().to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    // The log ends with the process.
    let mut rest = Vec::new();
    let end = loop {
        match log.recv_timeout(PATIENCE) {
            Ok(line) => rest.push(line),
            Err(end) => break end,
        }
    };
    assert_eq!(end, RecvTimeoutError::Disconnected, "still running: {rest:#?}");
    assert_eq!(running.0.wait().unwrap().code(), Some(0), "{rest:#?}");
}

/// The lines of a log as they arrive.
fn lines(log: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            // The receiver is gone: the test is over.
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

const NOWHERE: &str = "\
apiVersion: v1
kind: Config
current-context: nowhere
clusters: [{name: nowhere, cluster: {server: 'http://127.0.0.1:9'}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
users: [{name: nobody, user: {}}]
";

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
