//! What is sent, held against the models of the services.

use std::collections::BTreeSet;
use std::time::Duration;

use hyperlink::aws::api::action::Action;
use hyperlink::aws::endpoints::Service;
use rstest::rstest;

use super::every_request::send_all;
use super::*;
use crate::whole::Life;
use crate::whole::partitions::{moved_to_china, moved_to_govcloud};

/// A region of each partition, and one whose Route 53 is signed for another.
const REGIONS: [&str; 5] = [
    "us-east-1",
    "eu-west-1",
    "cn-north-1",
    "cn-northwest-1",
    "us-gov-east-1",
];

/// What is wrong with these requests, and the actions that they are of; none without Python.
fn held_against_the_models(sent: &[Value]) -> Option<(Vec<Value>, BTreeSet<String>)> {
    let (wrong, right): (Vec<_>, Vec<_>) = by_python("sent.py", sent)?
        .into_iter()
        .partition(|line| line["wrong"].is_string());
    let actions = right.iter().map(|line| line["action"].as_str().unwrap().to_owned());
    Some((wrong, actions.collect()))
}

/// Every action with all that its request may hold, further pages too, in every partition: its parameters, their forms,
/// the host, and the region that it is signed for.
#[tokio::test]
async fn requests_of_every_action_are_as_the_models_say() {
    let mut sent = Vec::new();
    for region in REGIONS {
        sent.extend(send_all(region).await);
    }
    let Some((wrong, actions)) = held_against_the_models(&sent) else {
        println!("SKIPPED: no python3");
        return;
    };
    assert!(wrong.is_empty(), "{wrong:#?}");
    let known = Action::ALL.iter();
    let known = known.filter(|action| action.service() != Service::InstanceMetadata);
    let known: BTreeSet<String> = known.map(|action| action.name().to_owned()).collect();
    assert_eq!(actions, known);
}

#[rstest]
#[case::anywhere(|_: &mut Value| {})]
#[case::china(moved_to_china)]
#[case::govcloud(moved_to_govcloud)]
#[tokio::test(start_paused = true)]
async fn requests_of_a_whole_life_are_as_the_models_say(#[case] place: fn(&mut Value)) {
    let mut life = Life::with(place);
    life.until_available().await;
    life.run_for(Duration::from_secs(3_600)).await;
    life.deleted().await;
    let sent = life.aws.sent();
    let Some((wrong, actions)) = held_against_the_models(&sent) else {
        println!("SKIPPED: no python3");
        return;
    };
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(actions.len() >= 17, "{actions:?}");
}

/// What the tests above rely on: a request that breaks a model is told.
#[test]
fn request_that_no_model_describes_is_refused() {
    let form = |url: &str, scope: &str, body: &str| json!({"region": "us-east-1", "method": "POST", "url": url, "authorization": format!("Credential=A/1/{scope}/aws4_request"), "body": body});
    let ec2 = |body: &str| form("https://ec2.us-east-1.amazonaws.com/", "us-east-1/ec2", body);
    let broken = [
        ec2("Action=DescribeVpcs&Version=2016-11-15&VpcIds.1=vpc-1"),
        ec2("Action=DescribeVpcs&Version=2016-11-15&VpcId.2=vpc-1"),
        ec2("Action=DescribeVpcs&Version=2015-11-15"),
        ec2("Action=CreateVpcEndpoint&Version=2016-11-15&ServiceName=s"),
        ec2("Action=DescribeVpcs&Version=2016-11-15&DryRun=yes"),
        form(
            "https://ec2.us-east-1.amazonaws.com/",
            "us-east-2/ec2",
            "Action=DescribeVpcs&Version=2016-11-15",
        ),
        form(
            "https://route53.us-east-1.amazonaws.com/2013-04-01/hostedzone/Z1/rrset/",
            "us-east-1/route53",
            "",
        ),
    ];
    let Some((wrong, _)) = held_against_the_models(&broken) else {
        println!("SKIPPED: no python3");
        return;
    };
    assert_eq!(wrong.len(), broken.len(), "{wrong:#?}");
}
