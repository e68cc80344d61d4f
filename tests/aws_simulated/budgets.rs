//! Many clusters in one account: AWS takes so many calls of an action in a time.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use hyperlink::aws::api::error::TOO_MANY_UNANSWERED;
use hyperlink::aws::body::text;
use hyperlink::aws::cloud::Aws;
use hyperlink::aws::kinds::Kind;
use hyperlink::aws::kinds::security_group::SecurityGroup;
use hyperlink::aws::kinds::vpc_endpoint::VpcEndpoint;
use hyperlink::aws::slot::Slot;
use hyperlink::engine::client::Reconcile;
use hyperlink::engine::failure::CALL_BUDGET_EXHAUSTED;
use hyperlink::engine::plan::{Outcome, ensure_present};
use hyperlink::engine::resource::Observed;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::desired::{GUEST, allowed_principals, endpoint_service, load_balancer, scope, security_group, vpc_endpoint};
use crate::process::Process;
use crate::sim::{SimTransport, fault};
use crate::strangers::{live, token};

const CLUSTERS: usize = 100;

/// A network of each cluster, and its endpoint.
fn endpoints(aws: &SimTransport, service_name: &str) -> Vec<VpcEndpoint> {
    let arn = |kind: &str, id: &str| format!("arn:aws:ec2:us-east-1:{GUEST}:{kind}/{id}");
    let put = |id: String, body: Value| {
        let now = aws.now();
        aws.aws().put_resource(now, &id, body).unwrap();
    };
    for number in 0..CLUSTERS {
        let (vpc, subnet) = (format!("vpc-{number}a"), format!("subnet-{number}a"));
        put(arn("vpc", &vpc), json!({"id": arn("vpc", &vpc), "cidr": "10.0.0.0/16"}));
        let body = json!({"id": arn("subnet", &subnet), "vpc": vpc, "cidr": "10.0.1.0/24", "zone_id": "use1-az1"});
        put(arn("subnet", &subnet), body);
    }
    let groups = aws.resources("security-group");
    let of_cluster = |number| {
        let vpc = format!("vpc-{number}a");
        let group = groups.iter().find(|group| group["vpc"] == vpc.as_str()).unwrap();
        let group = text(group, "id").rsplit('/').next().unwrap();
        VpcEndpoint {
            slot: Slot::vpc_endpoint(&scope(GUEST), &vpc, service_name),
            subnets: BTreeSet::from([format!("subnet-{number}a")]),
            client_token: token(&format!("token-{number}")),
            ..vpc_endpoint(service_name, group, &[])
        }
    };
    (0..CLUSTERS).map(of_cluster).collect()
}

fn refused(aws: &SimTransport) -> usize {
    let journal = aws.journal();
    let refused = journal
        .iter()
        .filter(|entry| entry.code.as_deref() == Some("RequestLimitExceeded"));
    refused.count()
}

#[tokio::test(start_paused = true)]
async fn hundred_endpoints_are_created_without_a_refused_call() {
    let aws = SimTransport::new();
    let (ho, cpo) = (Process::ho(&aws), Process::cpo(&aws));
    ho.ready(Kind::LoadBalancer, &load_balancer()).await;
    let service = ho.present(&endpoint_service()).await;
    ho.present(&allowed_principals()).await;
    sleep(Duration::from_secs(60)).await;
    let desired = endpoints(&aws, text(&service, "ServiceName"));
    let began = Instant::now();
    let made = join_all(desired.iter().map(|desired| cpo.present(desired)));
    let group = security_group();
    let beside = async {
        sleep(Duration::from_secs(60)).await;
        let began = Instant::now();
        let read = cpo.observe(Reconcile::begin(), Kind::SecurityGroup, &group.slot).await;
        assert_eq!(read, Observed::Absent);
        assert!(began.elapsed() < Duration::from_secs(1), "a read was held up");
    };
    tokio::join!(made, beside);
    assert_eq!(live(&aws, "vpc-endpoint").len(), CLUSTERS);
    assert_eq!(refused(&aws), 0);
    // 4 at once, and then one in 3⅓ s; an endpoint takes 60 s.
    assert!(began.elapsed() <= Duration::from_secs(450), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn budget_that_others_use_too_refuses_few_calls() {
    let aws = SimTransport::with(|seed| {
        seed["throttle"] = json!({"actions": {"CreateVpcEndpoint": {"bucket": 2.0, "per_s": 0.1}}});
    });
    let (ho, cpo) = (Process::ho(&aws), Process::cpo(&aws));
    ho.ready(Kind::LoadBalancer, &load_balancer()).await;
    let service = ho.present(&endpoint_service()).await;
    ho.present(&allowed_principals()).await;
    sleep(Duration::from_secs(60)).await;
    let desired = endpoints(&aws, text(&service, "ServiceName"));
    let rounds = desired.iter().take(20).map(async |desired| {
        for _ in 0..400 {
            let (step, _) = cpo
                .reconcile(desired, |observed| ensure_present(desired, observed))
                .await;
            if step.ready().is_some() {
                return;
            }
            cpo.wait(&desired.slot).await;
        }
        panic!("not ready");
    });
    join_all(rounds).await;
    assert_eq!(live(&aws, "vpc-endpoint").len(), 20);
    assert!(refused(&aws) <= 24, "{} refused", refused(&aws));
}

#[tokio::test(start_paused = true)]
async fn writes_without_an_answer_hold_up_no_read() {
    let aws = SimTransport::new();
    aws.set_faults(&fault("/CreateSecurityGroup$", 99, &json!({"delay_ms": 600_000})));
    let cpo = Process::cpo(&aws);
    let groups: Vec<SecurityGroup> = (0..20)
        .map(|number| SecurityGroup {
            slot: Slot::security_group(&scope(GUEST), "vpc-2", &format!("group-{number}")),
            ..security_group()
        })
        .collect();
    let writes = groups
        .iter()
        .map(|group| cpo.reconcile(group, |observed| ensure_present(group, observed)));
    let beside = async {
        sleep(Duration::from_secs(10)).await;
        let (began, group) = (Instant::now(), security_group());
        let read = cpo.observe(Reconcile::begin(), Kind::SecurityGroup, &group.slot).await;
        (read, began.elapsed())
    };
    let (written, (read, took)) = tokio::join!(join_all(writes), beside);
    assert_eq!((read, took.as_secs()), (Observed::Absent, 0));
    let is_crowd =
        |outcome: &Outcome<Aws>| matches!(outcome, Outcome::Failed(error) if error.code == TOO_MANY_UNANSWERED);
    assert_eq!(written.iter().filter(|(_, outcome)| is_crowd(outcome)).count(), 4);
}

#[tokio::test(start_paused = true)]
async fn caller_in_a_loop_uses_up_no_budget_of_another() {
    let (aws, desired) = (SimTransport::new(), endpoint_service());
    let ho = Process::ho(&aws);
    ho.ready(Kind::LoadBalancer, &load_balancer()).await;
    ho.present(&desired).await;
    aws.clear_journal();
    let slot = &desired.owned.slot;
    let read_by = async |caller: &str| {
        let reconcile = Reconcile::begin().on_behalf_of(caller);
        ho.observe(reconcile, Kind::EndpointService, slot).await
    };
    let mut last = Observed::Absent;
    for _ in 0..120 {
        ho.forget(slot);
        last = read_by("clusters-junk").await;
        sleep(Duration::from_millis(500)).await;
    }
    let calls = aws.journal().len();
    assert!((12..=30).contains(&calls), "{calls} calls in a minute");
    assert!(matches!(last, Observed::ReadFailed(error) if error.code == CALL_BUDGET_EXHAUSTED));
    let metrics = ho.metrics.render().unwrap();
    let series = "hyperlink_aws_call_budget_exhausted_total{kind=\"endpoint_service\"} ";
    let counted = metrics.lines().find_map(|line| line.strip_prefix(series)).unwrap();
    assert!(counted.parse::<u64>().unwrap() >= 10, "{counted} of 120 reads");
    assert!(matches!(read_by("clusters-example").await, Observed::Found(_)));
}
