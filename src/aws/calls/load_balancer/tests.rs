use futures::future::join_all;

use super::*;
use crate::api::sample::{Sample, answer, reconcile, refusal};
use crate::slot::Scope;

fn balancers(names: &[&str]) -> String {
    let members = names.iter().map(|name| {
        format!(
            "<member><LoadBalancerArn>arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/{name}/50dc\
             </LoadBalancerArn><LoadBalancerName>{name}</LoadBalancerName><Type>network</Type><State><Code>active\
             </Code></State></member>"
        )
    });
    format!(
        "<DescribeLoadBalancersResponse><DescribeLoadBalancersResult><LoadBalancers>{}</LoadBalancers>\
         </DescribeLoadBalancersResult></DescribeLoadBalancersResponse>",
        members.collect::<String>()
    )
}

/// Reads these load balancers at the same time. Returns whether each was found, or the code of the error.
async fn read(sample: &Sample, names: &[&str]) -> Vec<Result<String, String>> {
    let calls = Calls::new(&sample.client);
    let scope = Scope::own("123456789012", "us-east-1");
    let slots: Vec<Slot> = names.iter().map(|name| Slot::load_balancer(&scope, name)).collect();
    let reads = slots.iter().map(|slot| calls.load_balancer(reconcile(), slot));
    let found = join_all(reads).await.into_iter();
    found
        .map(|one| {
            one.map(|body| body["Name"].as_str().unwrap().to_owned())
                .map_err(|error| error.code.to_string())
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_share_one_call() {
    let sample = Sample::answering(&balancers(&["a", "b", "c"]));
    let found = read(&sample, &["a", "b", "c", "a"]).await;
    assert_eq!(found, ["a", "b", "c", "a"].map(|name| Ok(name.to_owned())));
    assert!(sample.form().contains("Names.member.3=c"), "{}", sample.form());
}

#[tokio::test(start_paused = true)]
async fn load_balancer_that_is_gone_hides_no_other() {
    let gone = || refusal(400, "LoadBalancerNotFound");
    let sample = Sample::new([
        gone(),
        answer(200, &balancers(&["a", "b"])),
        gone(),
        gone(),
        answer(200, &balancers(&["d"])),
    ]);
    let found = read(&sample, &["a", "b", "c", "d"]).await;
    let missing = Err("LoadBalancerNotFound".to_owned());
    assert_eq!(found, [Ok("a".into()), Ok("b".into()), missing, Ok("d".into())]);
    assert_eq!(sample.aws.requests().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn name_that_aws_refuses_hides_no_other() {
    let sample = Sample::new([
        refusal(400, "ValidationError"),
        refusal(400, "ValidationError"),
        answer(200, &balancers(&["b"])),
    ]);
    let found = read(&sample, &["b", "a-name-that-is-none"]).await;
    assert_eq!(found, [Ok("b".into()), Err("ValidationError".to_owned())]);
    assert_eq!(sample.aws.requests().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn more_than_one_call_takes_are_sent_in_two() {
    let names: Vec<String> = (0..25).map(|number| format!("lb{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let sample = Sample::new([
        answer(200, &balancers(&names[..20])),
        answer(200, &balancers(&names[20..])),
    ]);
    let found = read(&sample, &names).await;
    assert!(found.iter().all(Result::is_ok), "{found:?}");
    assert_eq!(sample.aws.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn failed_call_fails_for_each_who_waits() {
    let sample = Sample::new([refusal(403, "AccessDenied")]);
    let found = read(&sample, &["a", "b"]).await;
    assert_eq!(found, vec![Err("AccessDenied".to_owned()); 2]);
}

#[tokio::test(start_paused = true)]
async fn load_balancer_of_another_kind_is_not_there() {
    let other = balancers(&["a"]).replace(">network<", ">application<");
    let found = read(&Sample::answering(&other), &["a"]).await;
    assert!(found[0].is_err());
}
