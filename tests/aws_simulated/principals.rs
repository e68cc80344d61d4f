//! Principals that AWS does not take, or shows in another way.

use std::collections::BTreeSet;
use std::time::Duration;

use hyperlink::aws::kinds::Kind;
use hyperlink::engine::plan::{Outcome, ensure_present};
use serde_json::{Value, json};

use crate::desired::{GUEST, allowed_principals, endpoint_service, load_balancer};
use crate::process::Process;
use crate::sim::{SimTransport, fault};

pub(crate) fn count(aws: &SimTransport, action: &str) -> usize {
    let journal = aws.journal();
    journal.iter().filter(|entry| entry.path.ends_with(action)).count()
}

fn allowed(aws: &SimTransport) -> BTreeSet<String> {
    let service = aws.resources("vpc-endpoint-service").remove(0);
    let principals = service["principals"].as_array().cloned().unwrap_or_default();
    let arns = principals.iter().filter_map(|principal| principal["arn"].as_str());
    arns.map(str::to_owned).collect()
}

fn arn(name: &str) -> String {
    format!("arn:aws:iam::{GUEST}:{name}")
}

/// An endpoint service with the principals that a person has put there.
async fn service_with(present: &[&str]) -> (std::sync::Arc<SimTransport>, Process) {
    let aws = SimTransport::new();
    let ho = Process::ho(&aws);
    ho.ready(Kind::LoadBalancer, &load_balancer()).await;
    ho.present(&endpoint_service()).await;
    let service = aws.resources("vpc-endpoint-service").remove(0);
    let present: Vec<Value> = present.iter().map(|arn| json!({ "arn": arn })).collect();
    aws.change(service, |body| body["principals"] = json!(present));
    aws.clear_journal();
    (aws, ho)
}

/// Reconciles the principals for so long, each time that they are due; how often that failed.
async fn failures(ho: &Process, arns: &[String], hours: u64) -> usize {
    let mut desired = allowed_principals();
    desired.arns.extend(arns.iter().cloned());
    let began = tokio::time::Instant::now();
    let mut failed = 0;
    while began.elapsed() < Duration::from_secs(hours * 3_600) {
        let (step, outcome) = ho
            .reconcile(&desired, |observed| ensure_present(&desired, observed))
            .await;
        failed += usize::from(matches!(outcome, Outcome::Failed(_)) || step.why.error().is_some());
        ho.wait(&desired.slot).await;
    }
    failed
}

#[tokio::test(start_paused = true)]
async fn good_principals_are_allowed_beside_a_bad_one() {
    let (aws, ho) = service_with(&["*"]).await;
    let failed = failures(&ho, &[arn("group/bad"), arn("root"), arn("user/x")], 3).await;
    let good = BTreeSet::from([arn("user/cpo"), arn("root"), arn("user/x")]);
    assert_eq!(allowed(&aws), good);
    assert!(failed > 0, "the bad one is reported");
    let writes = count(&aws, "ModifyVpcEndpointServicePermissions");
    assert!(writes <= 12, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn many_bad_principals_take_a_bounded_number_of_calls() {
    let (aws, ho) = service_with(&[]).await;
    let bad: Vec<String> = (0..25).map(|number| arn(&format!("group/{number}"))).collect();
    failures(&ho, &bad, 3).await;
    assert_eq!(allowed(&aws), BTreeSet::from([arn("user/cpo")]));
    let writes = count(&aws, "ModifyVpcEndpointServicePermissions");
    assert!(writes <= 160, "{writes} writes");
}

/// A role that was just created is not known everywhere yet.
#[tokio::test(start_paused = true)]
async fn principal_that_is_refused_at_first_is_soon_allowed() {
    let (aws, ho) = service_with(&[]).await;
    let refused = json!({"status": 400, "code": "InvalidParameter"});
    aws.set_faults(&fault("/ModifyVpcEndpointServicePermissions$", 2, &refused));
    let began = tokio::time::Instant::now();
    ho.present(&allowed_principals()).await;
    let took = began.elapsed().as_secs();
    assert!(took <= 300, "{took} s");
}

#[tokio::test(start_paused = true)]
async fn principal_whose_role_is_gone_is_not_written_at_each_read() {
    let (aws, ho) = service_with(&[&arn("role/gone")]).await;
    failures(&ho, &[arn("role/gone")], 6).await;
    assert!(allowed(&aws).contains(&arn("user/cpo")));
    let writes = count(&aws, "ModifyVpcEndpointServicePermissions");
    assert!((1..=7).contains(&writes), "{writes} writes");
}
