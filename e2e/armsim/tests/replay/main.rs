//! What `armsim replay` reads, what it notices, and what it prints.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::process::Command;

use armsim::replay::{Explained, Line, Verdict, replay};
use rstest::rstest;
use serde_json::{Value, json};

mod explained;

const GO_VCR: &str = include_str!("../recordings/go-vcr.yaml");
const OTHERS: &str = include_str!("../recordings/other-services.yaml");

fn play(text: &str) -> Vec<Line> {
    replay("fixture", text, &mut Explained::default()).unwrap()
}

/// The differences of all exchanges, a line each.
fn differences(text: &str) -> String {
    let lines = play(text);
    let found = lines.iter().flat_map(|line| &line.differences);
    found.map(|finding| format!("{}\n", finding.difference)).collect()
}

#[rstest]
#[case::go_vcr_in_two_documents(GO_VCR, 1)]
#[case::vcrpy_with_gzip_in_base64(include_str!("../recordings/vcrpy.yaml"), 1)]
#[case::vcrpy_in_json(include_str!("../recordings/vcrpy.json"), 1)]
#[case::ruby(include_str!("../recordings/ruby.yaml"), 1)]
#[case::powershell_with_paths_only(include_str!("../recordings/powershell.json"), 0)]
#[case::test_proxy_with_bodies_as_json(include_str!("../recordings/test-proxy.json"), 1)]
fn every_form_is_read(#[case] text: &str, #[case] identity: usize) {
    let lines = play(text);
    let count = |verdict| lines.iter().filter(|line| line.verdict == verdict).count();
    let printed: Vec<String> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(
        (count(Verdict::Same), count(Verdict::Skipped)),
        (10, identity),
        "{}",
        printed.join("\n")
    );
    // The zone and its group were there before the recording began.
    assert_eq!(lines.iter().map(|line| line.seeded.len()).sum::<usize>(), 2);
}

#[rstest]
#[case::status("code: 412", "code: 409", "status: recorded 409, ours 412")]
#[case::value(
    "\"provisioningState\":\"Succeeded\"",
    "\"provisioningState\":\"Failed\"",
    "properties.provisioningState: recorded Failed"
)]
#[case::number(
    "\"maxNumberOfRecordSets\":25000",
    "\"maxNumberOfRecordSets\":9",
    "maxNumberOfRecordSets: recorded 9, ours 25000"
)]
#[case::missing_key(
    "\"isAutoRegistered\":false",
    "\"isAutoRegistered\":false,\"colour\":\"red\"",
    "properties.colour: missing"
)]
#[case::extra_key(
    ",\"isAutoRegistered\":false",
    "",
    "properties.isAutoRegistered: only ours has it: false"
)]
#[case::type_of_value(
    "\"isAutoRegistered\":false",
    "\"isAutoRegistered\":\"false\"",
    "isAutoRegistered: recorded \"false\", ours false"
)]
#[case::error_code(
    "\"code\":\"PreconditionFailed\"",
    "\"code\":\"Conflict\"",
    "code: recorded Conflict, ours PreconditionFailed"
)]
#[case::retry_after(
    "Retry-After:\n      - '30'",
    "Retry-After:\n      - '15'",
    "retry-after: recorded 15, ours 30"
)]
#[case::header_form("ETag:\n      - a710bbd9", "ETag:\n      - W/a710bbd9", "etag: recorded W/a710bbd9")]
#[case::polling_path("/privateDnsOperationStatuses/", "/operations/", "azure-asyncoperation: recorded")]
#[case::outcome_of_a_poll(
    "{\"status\":\"Succeeded\"}",
    "{\"status\":\"Canceled\"}",
    "status: recorded Canceled, ours "
)]
#[case::etag_that_stays(
    "\"etag\":\"b2c4e1d0-8c7d-459f-8dad-cc4f534a9f81",
    "\"etag\":\"a710bbd9-8c7d-459f-8dad-cc4f534a9f80",
    "etag: recorded "
)]
fn every_difference_is_noticed(#[case] recorded: &str, #[case] altered: &str, #[case] expected: &str) {
    assert!(GO_VCR.contains(recorded), "{recorded}");
    let found = differences(&GO_VCR.replace(recorded, altered));
    assert!(found.contains(expected), "{found}");
}

#[test]
fn words_are_no_reason_to_differ() {
    let lines = play(&GO_VCR.replace("has been modified (etag mismatch)", "was touched"));
    let noted = lines.iter().find(|line| !line.differences.is_empty()).unwrap();
    assert_eq!(noted.verdict, Verdict::Same);
    assert!(
        noted
            .to_string()
            .contains("message: text: recorded The Record set api was touched.")
    );
}

#[test]
fn other_services_are_skipped_and_stood_in_for() {
    let lines = play(OTHERS);
    let printed: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let printed = printed.join("\n");
    let verdicts: Vec<Verdict> = lines.iter().map(|line| line.verdict).collect();
    assert_eq!(
        verdicts,
        [[Verdict::Skipped; 4].as_slice(), &[Verdict::Same; 6]].concat(),
        "{printed}"
    );
    for expected in [
        "not simulated: Microsoft.Storage/storageAccounts",
        "not simulated: Microsoft.Resources/deployments",
        // Only referred to; made by the deployment.
        "seeded /subscriptions/0b1f6471-1bf0-4dda-aec3-111111111111/resourceGroups/mixed/providers/Microsoft.Storage/storageAccounts/files",
        "seeded /subscriptions/0b1f6471-1bf0-4dda-aec3-111111111111/resourceGroups/mixed/providers/Microsoft.Network/virtualNetworks/net/subnets/ends",
        "seeded /subscriptions/0b1f6471-1bf0-4dda-aec3-111111111111/resourceGroups/mixed/providers/Microsoft.Network/loadBalancers/front",
    ] {
        assert!(printed.contains(expected), "{expected} is not in\n{printed}");
    }
}

#[test]
fn what_belongs_to_a_cloud_or_directory_is_compared_by_its_form() {
    let subscription = include_str!("../recordings/subscription.yaml");
    let lines = play(subscription);
    let printed: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let count = |verdict| lines.iter().filter(|line| line.verdict == verdict).count();
    assert_eq!(
        (count(Verdict::Same), count(Verdict::Skipped)),
        (8, 1),
        "{}",
        printed.join("\n")
    );
    let altered = differences(&subscription.replace(
        "\"registrationState\": \"Registered\"",
        "\"registrationState\": \"Gone\"",
    ));
    assert!(
        altered.contains("registrationState: recorded Gone, ours Registered"),
        "{altered}"
    );
    let altered = differences(&subscription.replace("\"displayName\"", "\"colour\""));
    assert!(altered.contains("value[].colour: missing"), "{altered}");
}

#[test]
fn a_reason_explains_what_it_names_and_nothing_else() {
    let altered = GO_VCR.replace("code: 412", "code: 409");
    let rule = "- {exchange: PUT privateDnsZones, difference: '^status', reason: because}\n";
    let mut explained = Explained::parse(&format!("{rule}- {{before: 2000-01-01, reason: too old}}")).unwrap();
    let lines = replay("fixture", &altered, &mut explained).unwrap();
    let found = lines.iter().find(|line| line.verdict == Verdict::Explained).unwrap();
    assert_eq!(found.exchange, 6);
    assert!(found.to_string().contains("explained: because"));
    assert_eq!(explained.unused(), ["too old"]);
    let mut other = Explained::parse("- {cassette: elsewhere, reason: because}").unwrap();
    let lines = replay("fixture", &altered, &mut other).unwrap();
    assert!(lines.iter().any(|line| line.verdict == Verdict::Differs));
    assert!(Explained::parse("- {reson: typing}").is_err());
}

#[rstest]
#[case::something_else("hello: world", "no recording")]
#[case::no_text_at_all("", "no recording")]
#[case::broken_json("{\"Entries\": [", "neither YAML nor JSON")]
#[case::no_status(
    "interactions: [{request: {method: GET, url: 'https://x/'}, response: {}}]",
    "exchange 1: the status is missing"
)]
fn what_is_no_recording_is_refused(#[case] text: &str, #[case] expected: &str) {
    let error = replay("fixture", text, &mut Explained::default()).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn the_command_fails_when_something_differs() {
    let dir = tempfile::tempdir().unwrap();
    let altered = dir.path().join("altered.yaml");
    std::fs::write(&altered, GO_VCR.replace("code: 412", "code: 409")).unwrap();
    let fine = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings/go-vcr.yaml");
    for (file, code) in [(fine, 0), (altered.to_str().unwrap(), 1)] {
        let run = Command::new(env!("CARGO_BIN_EXE_armsim"))
            .args(["replay", "--json", file])
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(code));
        let lines: Vec<Value> = String::from_utf8(run.stdout)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 12);
        assert_eq!(lines[11]["counts"]["differs"], code);
        assert_eq!(lines[5]["verdict"], if code == 0 { "same" } else { "differs" });
    }
}

const GROUP: &str = "/subscriptions/0b1f6471-1bf0-4dda-aec3-111111111111/resourceGroups/mixed";

fn exchange(method: &str, id: &str, sent: &Value, (status, got): (u16, &Value)) -> Value {
    json!({
        "request": {"method": method, "uri": format!("https://management.azure.com{id}?api-version=2021-08-01"),
            "headers": {}, "body": sent.to_string()},
        "response": {"status": {"code": status}, "headers": {}, "body": {"string": got.to_string()}},
    })
}

fn cassette(exchanges: &[Value]) -> String {
    json!({ "version": 1, "interactions": exchanges }).to_string()
}

/// This exchange, answered at that time.
fn dated(mut exchange: Value, date: &str) -> Value {
    exchange["response"]["headers"] = json!({"Date": [date]});
    exchange
}

#[rstest]
#[case::before("Tue, 05 Mar 2019 09:04:01 GMT", Verdict::Explained)]
#[case::after("Wed, 05 Jun 2019 09:04:01 GMT", Verdict::Differs)]
fn what_was_not_shown_in_an_era_is_explained_in_it(#[case] date: &str, #[case] verdict: Verdict) {
    let zone = format!("{GROUP}/providers/Microsoft.Network/privateDnsZones/example.com");
    let record = format!("{zone}/A/www");
    let sent = json!({"properties": {"ttl": 60, "aRecords": [{"ipv4Address": "10.0.0.4"}]}});
    let got = json!({"id": record, "name": "www", "type": "Microsoft.Network/privateDnsZones/A",
        "etag": "5d6a4c3b-7e0a-4d51-b7a5-0c6f2b0f6d12",
        "properties": {"fqdn": "www.example.com.", "ttl": 60, "aRecords": [{"ipv4Address": "10.0.0.4"}]}});
    let group =
        json!({"id": GROUP, "name": "mixed", "location": "eastus", "properties": {"provisioningState": "Succeeded"}});
    let lines = play(&cassette(&[
        dated(exchange("PUT", &record, &sent, (201, &got)), date),
        dated(exchange("GET", GROUP, &Value::Null, (200, &group)), date),
    ]));
    assert_eq!(
        (lines[0].verdict, lines[1].verdict),
        (verdict, verdict),
        "{}\n{}",
        lines[0],
        lines[1]
    );
}

#[test]
fn page_of_another_size_is_a_part_of_the_whole_list() {
    let id = |name: &str| format!("{GROUP}/providers/Microsoft.Network/natGateways/{name}");
    let got = |name: &str| {
        json!({"id": id(name), "name": name, "type": "Microsoft.Network/natGateways", "location": "eastus",
            "etag": "W/\"5d6a4c3b-7e0a-4d51-b7a5-0c6f2b0f6d12\"", "sku": {"name": "Standard"},
            "properties": {"provisioningState": "Succeeded", "idleTimeoutInMinutes": 4,
                "resourceGuid": "5d6a4c3b-7e0a-4d51-b7a5-0c6f2b0f6d13"}})
    };
    let list = format!("{GROUP}/providers/Microsoft.Network/natGateways");
    let next = format!("https://management.azure.com{list}?api-version=2021-08-01&%24skipToken=Zm9v");
    let mut second = exchange("GET", &list, &Value::Null, (200, &json!({"value": [got("b")]})));
    second["request"]["uri"] = json!(next);
    let first = json!({"value": [got("a")], "nextLink": next});
    let first = exchange("GET", &list, &Value::Null, (200, &first));
    let lines = play(&cassette(&[first, second]));
    let verdicts: Vec<_> = lines.iter().map(|line| line.verdict).collect();
    let printed: Vec<_> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(verdicts, [Verdict::Same, Verdict::Same], "{}", printed.join("\n"));
}

#[test]
fn letters_of_an_id_in_another_case_are_a_difference() {
    let id = format!("{GROUP}/providers/Microsoft.Network/networkSecurityGroups/nsg");
    let got = json!({"id": id.replace("/nsg", "/NSG"), "name": "NSG"});
    let lines = play(&cassette(&[exchange("GET", &id, &Value::Null, (200, &got))]));
    assert!(lines[0].to_string().contains("id: recorded"), "{}", lines[0]);
    assert!(lines[0].to_string().contains("name: text"), "{}", lines[0]);
}

#[test]
fn records_of_java_are_read_and_their_writes_skipped() {
    let id = format!("{GROUP}/providers/Microsoft.Network/natGateways/nat");
    let local = format!("http://localhost:1234{id}?api-version=2021-08-01");
    let poll = "http://localhost:1234/subscriptions/s/providers/Microsoft.Network/locations/eastus/operations/o?api-version=2021-08-01";
    let body = json!({"id": id, "name": "nat", "location": "eastus"}).to_string();
    let record = json!({"networkCallRecords": [
        {"Method": "PUT", "Uri": local, "Headers": {"User-Agent": "x"},
            "Response": {"StatusCode": "201", "Body": body, "azure-asyncoperation": poll, "retry-after": "10"}},
        {"Method": "GET", "Uri": poll, "Headers": {}, "Response": {"StatusCode": "200", "Body": "{\"status\":\"Succeeded\"}"}},
        {"Method": "GET", "Uri": local, "Headers": {}, "Response": {"StatusCode": "200", "Body": body}},
    ], "variables": []});
    let lines = play(&record.to_string());
    let reasons: Vec<_> = lines
        .iter()
        .map(|line| line.reason.as_deref().unwrap_or_default())
        .collect();
    assert_eq!(
        reasons,
        [
            "what was sent is not recorded",
            "the operation of a call that is not played",
            ""
        ]
    );
    assert_eq!(lines[2].simulated, Some(200), "{}", lines[2]);
}

#[test]
fn unreadable_file_is_reported_and_the_others_are_played() {
    let dir = tempfile::tempdir().unwrap();
    let [broken, good] = ["broken.yaml", "good.yaml"].map(|name| dir.path().join(name));
    std::fs::write(&broken, "hello: world").unwrap();
    std::fs::write(&good, GO_VCR).unwrap();
    for (json, files) in [(false, vec![&broken, &good]), (true, vec![&good, &broken])] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_armsim"));
        command.arg("replay").args(json.then_some("--json")).args(files);
        let output = command.output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(
            printed.contains("no recording: neither") && printed.contains("same"),
            "{printed}"
        );
    }
}

#[test]
fn session_records_are_played_in_the_order_of_their_time() {
    let id = format!("{GROUP}/providers/Microsoft.Network/natGateways/nat");
    let entry = |method: &str, second: u8, status: u16, got: Value| {
        json!({"RequestUri": format!("{id}?api-version=2021-08-01"), "EncodedRequestUri": "", "RequestMethod": method,
            "RequestBody": json!({"location": "eastus", "sku": {"name": "Standard"}}).to_string(), "RequestHeaders": {},
            "ResponseHeaders": {"Date": [format!("Tue, 23 Jul 2019 09:04:{second:02} GMT")]},
            "ResponseBody": got.to_string(), "StatusCode": status})
    };
    let record = json!({"Entries": [
        entry("GET", 1, 404, json!({"error": {"code": "ResourceNotFound", "message": "Gone."}})),
        entry("GET", 20, 200, json!({})),
        entry("PUT", 5, 201, json!({})),
    ]});
    let lines = play(&record.to_string());
    let played: Vec<_> = lines
        .iter()
        .map(|line| (line.method.as_str(), line.simulated))
        .collect();
    assert_eq!(played, [("GET", Some(404)), ("PUT", Some(201)), ("GET", Some(200))]);
    let seeded: Vec<_> = lines.iter().flat_map(|line| &line.seeded).collect();
    assert_eq!(seeded, [GROUP]);
}
