//! Recorded ids that are wrong or forged, resources of others, and answers that repeat a write for ever.

use std::time::Duration;

use hyperlink::aws::body::text;
use hyperlink::aws::client_token::ClientToken;
use hyperlink::aws::cloud::Aws;
use hyperlink::aws::kinds::Kind;
use hyperlink::aws::kinds::endpoint_connections::EndpointConnections;
use hyperlink::aws::kinds::records::ReleasedRecords;
use hyperlink::aws::kinds::vpc_endpoint::dns_name;
use hyperlink::aws::slot::Slot;
use hyperlink::engine::client::Reconcile;
use hyperlink::engine::cloud::Cloud;
use hyperlink::engine::plan::{ensure_absent, ensure_present};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::desired::{
    GUEST, MANAGEMENT, ZONE, allowed_principals, endpoint_service, load_balancer, records, scope, vpc_endpoint,
};
use crate::life::Path;
use crate::process::Process;
use crate::sim::{SimTransport, fault};

const OTHERS_ARN: &str = "arn:aws:elasticloadbalancing:us-east-1:111122223333:loadbalancer/net/others/77aa6c495c0c9188";
const OTHERS_SERVICE: &str = "vpce-svc-0123456789abcdef0";

fn service_arn(id: &str) -> String {
    format!("arn:aws:ec2:us-east-1:{MANAGEMENT}:vpc-endpoint-service/{id}")
}

/// A load balancer and an endpoint service of another cluster in the same account.
fn put_others(aws: &SimTransport) {
    let now = aws.now();
    let lb = json!({"id": OTHERS_ARN, "vpc": "vpc-1", "subnets": ["subnet-m1", "subnet-m2"], "state": "active"});
    aws.aws().put_resource(now, OTHERS_ARN, lb).unwrap();
    let service = json!({"id": service_arn(OTHERS_SERVICE), "load_balancers": [OTHERS_ARN], "state": "Available",
        "acceptance_required": false, "principals": [{"arn": format!("arn:aws:iam::{GUEST}:root")}], "tags": {}});
    aws.aws()
        .put_resource(now, &service_arn(OTHERS_SERVICE), service)
        .unwrap();
}

pub(crate) fn live(aws: &SimTransport, kind: &str) -> Vec<Value> {
    let mut all = aws.resources(kind);
    all.retain(|body| !["deleted", "deleting"].contains(&text(body, "state").to_ascii_lowercase().as_str()));
    all
}

pub(crate) fn zone(aws: &SimTransport) -> Value {
    let now = aws.now();
    let mut all = aws.aws().resources(now, "arn:aws:route53:");
    all.retain(|body| body["id"].as_str().unwrap().contains(ZONE));
    all.remove(0)
}

pub(crate) fn record_values(aws: &SimTransport, name: &str) -> Vec<String> {
    let zone = zone(aws);
    let records = zone["records"].as_array().cloned().unwrap_or_default();
    let fits = |record: &&Value| {
        let shown = record["name"].as_str().unwrap().replace("\\052", "*");
        shown.trim_end_matches('.') == name && record["type"] == "CNAME"
    };
    let found = records.iter().find(fits).cloned().unwrap_or_default();
    let values = found["values"].as_array().cloned().unwrap_or_default();
    values.iter().map(|value| value.as_str().unwrap().to_owned()).collect()
}

pub(crate) fn set_record(aws: &SimTransport, name: &str, value: &str) {
    aws.change(zone(aws), |zone| {
        let records = zone["records"].as_array_mut().unwrap();
        records.retain(|record| {
            let shown = record["name"].as_str().unwrap().replace("\\052", "*");
            shown.trim_end_matches('.') != name
        });
        records.push(json!({"name": name, "type": "CNAME", "ttl": 300, "values": [value]}));
    });
}

fn connections() -> EndpointConnections {
    EndpointConnections {
        slot: Slot::endpoint_connections(&endpoint_service().owned.slot),
    }
}

pub(crate) fn token(text: &str) -> ClientToken {
    ClientToken::new(text).unwrap()
}

/// A tenant has written another cluster's endpoint service into the status.
#[tokio::test(start_paused = true)]
async fn principals_of_a_foreign_service_are_not_written_by_a_recorded_id() {
    let aws = SimTransport::new();
    put_others(&aws);
    let ho = Process::ho(&aws);
    ho.note_recorded(&endpoint_service().owned.slot, OTHERS_SERVICE);
    // The read that should decide does not get through.
    aws.set_faults(&fault(
        "DescribeVpcEndpointServiceConfigurations",
        1,
        &json!({"status": 503, "code": "Unavailable"}),
    ));
    let service = endpoint_service();
    ho.reconcile(&service, |observed| ensure_present(&service, observed))
        .await;
    let principals = allowed_principals();
    ho.reconcile(&principals, |observed| ensure_present(&principals, observed))
        .await;
    assert_eq!(aws.writes(), Vec::<String>::new(), "written to {OTHERS_SERVICE}");
}

#[tokio::test(start_paused = true)]
async fn connections_of_a_foreign_service_are_not_rejected_by_a_recorded_id() {
    let path = Path::made().await;
    // What is the path of this test's cluster belongs to another one now: its load balancer has another name.
    let id = Aws::instance(&path.service).to_owned();
    let slot = Slot::endpoint_service(&scope(MANAGEMENT), "mine");
    let mine = EndpointConnections {
        slot: Slot::endpoint_connections(&slot),
    };
    let ho = Process::ho(&path.aws);
    ho.note_recorded(&slot, &id);
    path.aws.clear_journal();
    ho.reconcile(&mine, |observed| ensure_absent(&mine, observed)).await;
    assert_eq!(path.aws.writes(), Vec::<String>::new(), "another cluster's connection");
}

#[tokio::test(start_paused = true)]
async fn service_is_deleted_though_a_wrong_id_is_recorded() {
    let path = Path::made().await;
    put_others(&path.aws);
    path.deleted_by_cpo().await;
    let ho = Process::ho(&path.aws);
    ho.released(&endpoint_service(), Some(OTHERS_SERVICE)).await;
    let left = live(&path.aws, "vpc-endpoint-service");
    let own = left.iter().filter(|body| !text(body, "id").ends_with(OTHERS_SERVICE));
    assert_eq!(own.count(), 0, "said to be gone: {left:#?}");
}

#[tokio::test(start_paused = true)]
async fn endpoint_is_deleted_though_a_wrong_id_is_recorded() {
    let path = Path::made().await;
    let cpo = Process::cpo(&path.aws);
    let endpoint = vpc_endpoint(path.service_name(), Aws::instance(&path.group), &[]);
    cpo.released(&endpoint, Some("vpce-0123456789abcdef0")).await;
    let left = live(&path.aws, "vpc-endpoint");
    assert!(left.is_empty(), "said to be gone: {left:#?}");
}

#[tokio::test(start_paused = true)]
async fn wrong_recorded_id_makes_no_second_endpoint() {
    let path = Path::made().await;
    let cpo = Process::cpo(&path.aws);
    let mut desired = vpc_endpoint(
        path.service_name(),
        Aws::instance(&path.group),
        &["subnet-1", "subnet-2"],
    );
    // It was made by HyperShift's own controller: nobody has its token.
    desired.client_token = token("own");
    cpo.note_recorded(&desired.slot, "vpce-0123456789abcdef0");
    cpo.present(&desired).await;
    assert_eq!(live(&path.aws, "vpc-endpoint").len(), 1);
}

/// "Gone" is said without a single call, while a connection is live.
#[tokio::test(start_paused = true)]
async fn connections_of_a_service_whose_id_is_not_known_are_not_gone() {
    let path = Path::made().await;
    let ho = Process::ho(&path.aws);
    let connections = connections();
    let (step, _) = ho
        .reconcile(&connections, |observed| ensure_absent(&connections, observed))
        .await;
    assert!(!step.gone(), "nothing was read: {step:?}");
}

#[tokio::test(start_paused = true)]
async fn further_endpoints_are_shown_by_every_read() {
    let path = Path::made().await;
    let mut body = path.aws.resources("vpc-endpoint").remove(0);
    body["id"] = json!(format!(
        "arn:aws:ec2:us-east-1:{GUEST}:vpc-endpoint/vpce-0aaaaaaaaaaaaaaaa"
    ));
    path.aws.change(body, |_| {});
    let cpo = Process::cpo(&path.aws);
    let desired = vpc_endpoint(
        path.service_name(),
        Aws::instance(&path.group),
        &["subnet-1", "subnet-2"],
    );
    for _ in 0..2 {
        let observed = cpo.observe(Reconcile::begin(), Kind::VpcEndpoint, &desired.slot).await;
        let shown = observed.found().unwrap();
        assert_eq!(shown["Candidates"].as_array().map(Vec::len), Some(1), "{shown}");
        cpo.forget(&desired.slot);
    }
}

#[tokio::test(start_paused = true)]
async fn service_with_a_second_load_balancer_does_not_count_as_gone() {
    let path = Path::made().await;
    put_others(&path.aws);
    let now = path.aws.now();
    path.aws.aws().delete_resource(now, &service_arn(OTHERS_SERVICE));
    path.deleted_by_cpo().await;
    let service = path.aws.resources("vpc-endpoint-service").remove(0);
    path.aws.change(service, |body| {
        body["load_balancers"].as_array_mut().unwrap().push(json!(OTHERS_ARN))
    });
    let ho = Process::ho(&path.aws);
    let left_to_others = ho.released(&endpoint_service(), None).await;
    let left = live(&path.aws, "vpc-endpoint-service");
    assert!(left_to_others || left.is_empty(), "said to be gone: {left:#?}");
}

pub(crate) fn released_records(path: &Path) -> ReleasedRecords {
    let name = dns_name(&path.endpoint).unwrap().to_owned();
    ReleasedRecords {
        slot: records(&name).slot,
        endpoint_names: vec![name],
        endpoint_ids: Vec::new(),
        service_ids: Vec::new(),
    }
}

/// The service was there before: its create was repeated with the same token by a new process.
#[tokio::test(start_paused = true)]
async fn principals_of_a_service_that_a_token_has_found_are_read() {
    let aws = SimTransport::with(|seed| seed["switches"] = json!({"describe_lag_s": 60}));
    let ho = Process::ho(&aws);
    ho.ready(Kind::LoadBalancer, &load_balancer()).await;
    let service = endpoint_service();
    ho.reconcile(&service, |observed| ensure_present(&service, observed))
        .await;
    for service in aws.resources("vpc-endpoint-service") {
        aws.change(service, |body| {
            body["principals"] = json!([{"arn": "*"}]);
        });
    }
    let ho = Process::ho(&aws);
    ho.present(&service).await;
    ho.present(&allowed_principals()).await;
    let service = aws.resources("vpc-endpoint-service").remove(0);
    let arns: Vec<&str> = service["principals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|principal| text(principal, "arn"))
        .collect();
    assert!(!arns.contains(&"*"), "as desired, it is said: {arns:?}");
}

/// The tags are right and more: nothing is to be tagged, however often the other call of the put is refused.
#[tokio::test(start_paused = true)]
async fn refused_modify_of_a_service_repeats_no_other_write() {
    let path = Path::made().await;
    for service in path.aws.resources("vpc-endpoint-service") {
        path.aws.change(service, |body| {
            body["acceptance_required"] = json!(true);
            body["tags"]["team"] = json!("x");
        });
    }
    path.aws.clear_journal();
    let ho = Process::ho(&path.aws);
    let service = endpoint_service();
    for _ in 0..20 {
        ho.reconcile(&service, |observed| ensure_present(&service, observed))
            .await;
        sleep(Duration::from_secs(600)).await;
    }
    let journal = path.aws.journal();
    let tagged = journal
        .iter()
        .filter(|entry| entry.path.ends_with("CreateTags"))
        .count();
    assert_eq!(tagged, 0);
}

/// DescribeSubnets is denied: zones are not known.
#[tokio::test(start_paused = true)]
async fn subnets_of_unknown_zones_are_added_one_by_one() {
    let mut path = Path::made().await;
    let mut desired = vpc_endpoint(path.service_name(), Aws::instance(&path.group), &["subnet-1"]);
    path.endpoint = path.cpo.present(&desired).await;
    desired.subnets = ["subnet-1", "subnet-2", "subnet-3"].map(str::to_owned).into();
    desired.zones.clear();
    for _ in 0..60 {
        path.cpo
            .reconcile(&desired, |observed| ensure_present(&desired, observed))
            .await;
        sleep(Duration::from_secs(60)).await;
    }
    let endpoint = path.aws.resources("vpc-endpoint").remove(0);
    assert!(
        endpoint["subnets"].as_array().unwrap().contains(&json!("subnet-2")),
        "{endpoint}"
    );
}

#[tokio::test(start_paused = true)]
async fn service_is_adopted_though_a_wrong_id_is_recorded() {
    let path = Path::made().await;
    let ho = Process::ho(&path.aws);
    let mut service = endpoint_service();
    // It was made by HyperShift's own controller: nobody has its token.
    service.client_token = token("own");
    for _ in 0..20 {
        ho.note_recorded(&service.owned.slot, OTHERS_SERVICE);
        let (step, _) = ho
            .reconcile(&service, |observed| ensure_present(&service, observed))
            .await;
        if step.ready().is_some() {
            return;
        }
        sleep(Duration::from_secs(60)).await;
    }
    panic!(
        "not adopted: {:#?}",
        path.aws.journal().iter().rev().take(6).collect::<Vec<_>>()
    );
}
