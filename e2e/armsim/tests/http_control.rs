//! The control API: strict JSON, drift, the journal, the clock, and the state over a restart.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod http_support;

use std::{path::Path, process::Stdio};

use armsim::Options;
use http_support::*;
use jiff::Timestamp;
use reqwest::Method;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

#[rstest]
#[case::seed(Method::PUT, "/seed", json!({"tenant": []}), "tenant")]
#[case::nested_seed(Method::PUT, "/seed", json!({"tenants": [{"id": "t", "principals": [{"client_id": "c", "object_id": "o", "pass": "x"}]}]}), "pass")]
#[case::switch(Method::PUT, "/seed", json!({"switches": {"vnet_bussy": "409"}}), "vnet_bussy")]
#[case::clock(Method::POST, "/clock", json!({"frozen": true}), "frozen")]
#[case::slow_clock(Method::POST, "/clock", json!({"speed": 0}), "speed")]
#[case::faults(Method::PUT, "/faults", json!([{"match": {"paths": "x"}, "do": {}}]), "paths")]
#[case::fault_action(Method::PUT, "/faults", json!([{"match": {}, "do": {"dropp": "before"}}]), "dropp")]
#[case::fault_pattern(Method::PUT, "/faults", json!([{"match": {"path": "("}, "do": {}}]), "regex")]
#[case::service(Method::PUT, "/services", json!({"load_balancer": "x", "frontend": "y", "nam": "z"}), "nam")]
#[case::resource_id(Method::PUT, "/resources/nonsense", json!({"location": "x"}), "nonsense")]
#[case::prefix(Method::GET, "/resources?prefx=x", json!(null), "prefx")]
#[case::journal(Method::GET, "/journal?sinc=1", json!(null), "sinc")]
#[case::reachable(Method::GET, "/reachable?vnet=x", json!(null), "name")]
#[tokio::test]
async fn what_is_not_understood_is_refused_by_name(
    #[case] method: Method,
    #[case] path: &str,
    #[case] body: Value,
    #[case] named: &str,
) {
    let server = start().await;
    let before = server.control(Method::GET, "/resources", None).await;
    let (status, answer) = server.control(method, path, Some(body)).await;
    assert_eq!(status, 400, "{answer}");
    assert!(answer["error"].as_str().unwrap().contains(named), "{answer}");
    assert_eq!(server.control(Method::GET, "/resources", None).await, before);
}

#[tokio::test]
async fn unknown_calls_and_methods_are_refused_by_name() {
    let server = start().await;
    let nowhere = server.control(Method::GET, "/nowhere", None).await;
    assert_eq!(nowhere, (404, json!({"error": "no such control call: /nowhere"})));
    let read_only = server.control(Method::PATCH, "/seed", None).await;
    assert_eq!(read_only, (405, json!({"error": "/seed does not take PATCH"})));
}

#[tokio::test]
async fn resource_changed_through_control_is_shown_by_arm() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    let group = json!({"location": "westus2", "tags": {"drift": "yes"}});
    let (status, _) = server
        .control(Method::PUT, &format!("/resources{GROUP}"), Some(group))
        .await;
    assert_eq!(status, 200);
    let shown = server.get_group(&token).await.json::<Value>().await.unwrap();
    assert_eq!(shown["tags"]["drift"], "yes");
    let (status, listed) = server
        .control(Method::GET, &format!("/resources?prefix={}", VNET.to_uppercase()), None)
        .await;
    assert_eq!((status, listed.as_array().unwrap().len()), (200, 1), "{listed}");
    let vnet = format!("/resources{VNET}");
    assert_eq!(server.control(Method::DELETE, &vnet, None).await.0, 200);
    assert_eq!(server.control(Method::DELETE, &vnet, None).await.0, 404);
    let path = format!("{VNET}?api-version=2024-05-01");
    assert_eq!(
        server.arm(Method::GET, &path, &token).send().await.unwrap().status(),
        404
    );
}

#[tokio::test]
async fn journal_is_read_from_a_number_on_and_cleared() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    for _ in 0..3 {
        server.get_group(&token).await;
    }
    let all = server.journal("").await;
    assert_eq!(all.len(), 3);
    let later = server.journal(&format!("?since={}", all[0]["seq"])).await;
    assert_eq!(later, all[1..], "since is exclusive");
    assert_eq!(server.control(Method::DELETE, "/journal", None).await, (200, json!({})));
    assert!(server.journal("").await.is_empty());
}

#[tokio::test]
async fn frozen_clock_stops_operations_and_advance_ends_them() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    let (status, reading) = server
        .control(Method::POST, "/clock", Some(json!({"freeze": true})))
        .await;
    assert_eq!((status, &reading["frozen"]), (200, &json!(true)));
    let created = server.put_subnet("one", "10.0.1.0/24", &token).send().await.unwrap();
    assert_eq!(created.status(), 201);
    let poll = created.headers()["azure-asyncoperation"].to_str().unwrap().to_owned();
    assert!(poll.starts_with(&server.armsim.arm), "{poll}");
    let state = async || {
        let poll = server.client.get(&poll).bearer_auth(&token).send().await.unwrap();
        poll.json::<Value>().await.unwrap()["status"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(state().await, "InProgress");
    server
        .control(Method::POST, "/clock", Some(json!({"advance_s": 60})))
        .await;
    assert_eq!(state().await, "Succeeded");
    let (_, later) = server.control(Method::POST, "/clock", Some(json!({}))).await;
    let time = |reading: &Value| reading["now"].as_str().unwrap().parse::<Timestamp>().unwrap();
    assert_eq!(time(&later).duration_since(time(&reading)).as_secs(), 60);
}

#[tokio::test]
async fn seed_replaces_everything() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    server.get_group(&token).await;
    server.fault(json!({}), json!({"status": 500})).await;
    server
        .control(
            Method::POST,
            "/clock",
            Some(json!({"freeze": true, "advance_s": 86_400})),
        )
        .await;
    server.control(Method::PUT, "/seed", Some(small_seed())).await;
    assert!(server.journal("").await.is_empty());
    assert_eq!(server.get_group(&token).await.status(), 200, "the fault rule is gone");
    let (_, reading) = server.control(Method::POST, "/clock", Some(json!({}))).await;
    let now: Timestamp = reading["now"].as_str().unwrap().parse().unwrap();
    assert_eq!(reading["frozen"], false);
    assert!(now.duration_since(Timestamp::now()).as_secs() < 60);
}

#[tokio::test]
async fn page_shows_operations_calls_and_resources() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    server
        .control(Method::POST, "/clock", Some(json!({"freeze": true})))
        .await;
    server.put_subnet("one", "10.0.1.0/24", &token).send().await.unwrap();
    let page = async |query: &str| {
        let url = format!("{}/{query}", server.armsim.control);
        let response = server.client.get(url).send().await.unwrap();
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.starts_with("text/html"), "{kind}");
        response.text().await.unwrap()
    };
    let all = page("").await;
    for part in [
        VNET,
        "Operations in flight (1)",
        "PutSubnetOperation",
        "Last calls (1)",
        "Types (3)",
        "Microsoft.Network/virtualNetworks/subnets",
        "Resources (3)",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    let some = page(&format!("?prefix={}/", VNET.to_uppercase())).await;
    assert!(some.contains("Resources (1)") && some.contains("Types (1)"), "{some}");
    assert_eq!(server.control(Method::GET, "/?prefx=x", None).await.0, 400);
}

#[tokio::test]
async fn page_of_ten_thousand_resources_and_calls_stays_short() {
    let server = start().await;
    server.armsim.with_azure(|azure, now| {
        for at in 0..10_000 {
            let id = format!("{GROUP}/providers/Microsoft.Else/things/t{at}");
            azure.put_resource(now, &id, json!({})).unwrap();
        }
    });
    for _ in 0..110 {
        server
            .client
            .get(format!("{}/x", server.armsim.arm))
            .send()
            .await
            .unwrap();
    }
    let page = server
        .client
        .get(&server.armsim.control)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(page.contains("<td>10000</td>") && page.contains("9802 more are not shown"));
    assert_eq!(page.matches("AuthenticationFailed").count(), 100, "the last calls");
    assert!(page.len() < 200_000, "{}", page.len());
}

#[tokio::test]
async fn control_api_is_for_loopback_only() {
    let options = Options {
        control: ([0, 0, 0, 0], 0).into(),
        ..Options::default()
    };
    assert!(
        armsim::Server::start(options)
            .await
            .err()
            .unwrap()
            .to_string()
            .contains("loopback")
    );
}

#[tokio::test]
async fn broken_state_file_is_named_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state.json");
    std::fs::write(&state, "{").unwrap();
    let options = Options {
        state: Some(state.clone()),
        ..Options::default()
    };
    assert!(
        armsim::Server::start(options)
            .await
            .err()
            .unwrap()
            .to_string()
            .contains("state.json")
    );
    assert_eq!(std::fs::read_to_string(&state).unwrap(), "{");
}

/// The real binary, with a client that trusts it.
struct Process {
    child: tokio::process::Child,
    ready: Value,
    client: reqwest::Client,
}

impl Process {
    async fn run(dir: &Path, listen: &str) -> Self {
        let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_armsim"))
            .args(["serve", "--listen", listen, "--random-seed", "7", "--dir"])
            .arg(dir)
            .arg("--state")
            .arg(dir.join("state.json"))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        let ca = std::fs::read(ready["ca"].as_str().unwrap()).unwrap();
        let ca = reqwest::Certificate::from_pem(&ca).unwrap();
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([ca])
            .build()
            .unwrap();
        Self { child, ready, client }
    }

    fn url(&self, address: &str, path: &str) -> String {
        format!("{}{path}", self.ready[address].as_str().unwrap())
    }

    async fn token(&self) -> String {
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", CLIENT),
            ("client_secret", SECRET),
            ("scope", ARM_SCOPE),
        ];
        let url = self.url("authority", &format!("/{TENANT}/oauth2/v2.0/token"));
        let (_, body) = status_and_json(self.client.post(url).form(&form).send().await.unwrap()).await;
        body["access_token"].as_str().unwrap().to_owned()
    }

    async fn terminate(mut self) {
        let pid = self.child.id().unwrap().to_string();
        assert!(
            tokio::process::Command::new("kill")
                .arg(pid)
                .status()
                .await
                .unwrap()
                .success()
        );
        assert!(self.child.wait().await.unwrap().success());
    }
}

#[tokio::test]
async fn ready_line_and_env_file_name_all_addresses() {
    let dir = tempfile::tempdir().unwrap();
    let process = Process::run(dir.path(), "127.0.0.1:0").await;
    let exports = std::fs::read_to_string(dir.path().join("env")).unwrap();
    for (key, variable) in [
        ("arm", "ARM"),
        ("authority", "AUTHORITY"),
        ("control", "CONTROL"),
        ("identity", "IDENTITY"),
        ("ca", "CA"),
    ] {
        let line = format!("export ARMSIM_{variable}='{}'\n", process.ready[key].as_str().unwrap());
        assert!(exports.contains(&line), "{line} {exports}");
    }
    process.terminate().await;
}

#[tokio::test]
async fn operations_in_flight_and_fault_rules_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let first = Process::run(dir.path(), "127.0.0.1:0").await;
    let control = async |process: &Process, method: Method, path: &str, body: Value| {
        let request = process.client.request(method, process.url("control", path)).json(&body);
        assert_eq!(request.send().await.unwrap().status(), 200, "{path}");
    };
    control(&first, Method::PUT, "/seed", small_seed()).await;
    control(&first, Method::POST, "/clock", json!({"freeze": true})).await;
    let rule =
        json!([{"match": {"method": "GET", "path": "/virtualNetworks/vnet$", "from": 2}, "do": {"status": 503}}]);
    control(&first, Method::PUT, "/faults", rule).await;
    let token = first.token().await;
    let vnet = first.url("arm", &format!("{VNET}?api-version=2024-05-01"));
    let get = async |process: &Process, url: &str| process.client.get(url).bearer_auth(&token).send().await.unwrap();
    assert_eq!(get(&first, &vnet).await.status(), 200, "the rule counts from two");
    let subnet = first.url("arm", &format!("{VNET}/subnets/one?api-version=2024-05-01"));
    let put = first.client.put(&subnet).bearer_auth(&token);
    let put = put
        .json(&json!({"properties": {"addressPrefix": "10.0.1.0/24"}}))
        .send()
        .await
        .unwrap();
    let poll = put.headers()["azure-asyncoperation"].to_str().unwrap().to_owned();
    let listen = first.url("arm", "").replace("https://", "");
    first.terminate().await;

    let second = Process::run(dir.path(), &listen).await;
    assert_eq!(get(&second, &vnet).await.status(), 503, "the rule went on counting");
    assert_eq!(get(&second, &vnet).await.status(), 200, "and is used up");
    let status = async |process: &Process| status_and_json(get(process, &poll).await).await.1["status"].clone();
    assert_eq!(status(&second).await, "InProgress");
    control(&second, Method::POST, "/clock", json!({"advance_s": 60})).await;
    assert_eq!(status(&second).await, "Succeeded");
    assert!(!dir.path().join("state.json.partial").exists());
    second.terminate().await;
}

#[tokio::test]
async fn state_trust_and_tokens_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let first = Process::run(dir.path(), "127.0.0.1:0").await;
    let seed = first.client.put(first.url("control", "/seed")).json(&small_seed());
    assert_eq!(seed.send().await.unwrap().status(), 200);
    let token = first.token().await;
    let subnet = first.url("arm", &format!("{VNET}/subnets/one?api-version=2024-05-01"));
    let put = first
        .client
        .put(&subnet)
        .json(&json!({"properties": {"addressPrefix": "10.0.1.0/24"}}));
    assert_eq!(put.bearer_auth(&token).send().await.unwrap().status(), 201);
    let (client, listen) = (first.client.clone(), first.url("arm", "").replace("https://", ""));
    first.terminate().await;

    let second = Process::run(dir.path(), &listen).await;
    let (status, found) = status_and_json(client.get(&subnet).bearer_auth(&token).send().await.unwrap()).await;
    assert_eq!(
        (status, &found["properties"]["addressPrefix"]),
        (200, &json!("10.0.1.0/24"))
    );
    let (_, journal) = status_and_json(client.get(second.url("control", "/journal")).send().await.unwrap()).await;
    assert_eq!(
        journal.as_array().unwrap().len(),
        2,
        "the call before and the call after: {journal}"
    );
    second.terminate().await;
}
