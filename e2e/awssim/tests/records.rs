//! Route 53: atomic batches, changes that take a moment, zones of one name.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::json;
use support::*;

#[test]
fn batch_of_records_is_applied_whole_or_not_at_all() {
    let mut aws = TestAws::default();
    let (one, two) = ("api.one.hypershift.local", "b.one.hypershift.local");
    aws.change(&[("CREATE", one, 300, "x.example"), ("UPSERT", two, 300, "x.example")])
        .ok();
    let count = |aws: &mut TestAws| {
        aws.route53(&consumer(), "GET", &format!("hostedzone/{ZONE}/rrset"), "")
            .ok()
            .values("Type")
            .len()
    };
    assert_eq!(count(&mut aws), 4, "with NS and SOA");
    for bad in [
        ("CREATE", one, 300, "y.example"),
        ("DELETE", one, 301, "x.example"),
        ("DELETE", one, 300, "y.example"),
        ("DELETE", "c.one.hypershift.local", 300, "x.example"),
        ("CREATE", "api.two.hypershift.local", 300, "x.example"),
        ("CREATE", "one.hypershift.local", 300, "x.example"),
    ] {
        let refused = aws.change(&[("DELETE", two, 300, "x.example"), bad]);
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (400, "InvalidChangeBatch"),
            "{bad:?}"
        );
        assert_eq!(count(&mut aws), 4, "{bad:?}");
    }
    aws.change(&[("DELETE", one, 300, "x.example"), ("DELETE", two, 300, "x.example")])
        .ok();
    assert_eq!(count(&mut aws), 2);
}

#[test]
fn change_is_pending_first_and_the_zone_busy() {
    let mut aws = TestAws::with(|seed| seed["switches"]["zone_busy_s"] = json!(0.2));
    let answer = aws
        .change(&[("UPSERT", "api.one.hypershift.local", 300, "x.example")])
        .ok();
    assert_eq!(answer.value("Status"), "PENDING");
    let id = answer.value("Id");
    let busy = aws.change(&[("UPSERT", "api.one.hypershift.local", 300, "y.example")]);
    assert_eq!(busy.code(), "PriorRequestNotComplete");
    aws.advance(0.5);
    aws.change(&[("UPSERT", "api.one.hypershift.local", 300, "y.example")])
        .ok();
    let path = id.trim_start_matches('/').to_owned();
    assert_eq!(
        aws.route53(&consumer(), "GET", &path, "").ok().value("Status"),
        "INSYNC"
    );
    assert_eq!(
        aws.route53(&consumer(), "GET", "hostedzone/Z2", "").code(),
        "NoSuchHostedZone"
    );
}

#[test]
fn zones_of_one_name_are_all_listed() {
    let mut aws = TestAws::with(|seed| {
        let zone = |id: &str, account: &str| {
            let arn = format!("arn:aws:route53:::hostedzone/{id}");
            json!({"id": arn, "account": account, "name": "one.hypershift.local",
                "vpcs": [{"id": OTHER_VPC, "region": REGION}]})
        };
        let resources = seed["resources"].as_array_mut().unwrap();
        resources.extend([zone("Z2", CONSUMER), zone("Z3", PROVIDER)]);
    });
    let first = aws.route53(&consumer(), "GET", "hostedzone?maxitems=1", "").ok();
    assert_eq!(
        (first.values("Id"), first.value("IsTruncated")),
        (vec![format!("/hostedzone/{ZONE}")], "true".to_owned())
    );
    let next = format!("hostedzone?maxitems=1&marker={}", first.value("NextMarker"));
    let second = aws.route53(&consumer(), "GET", &next, "").ok();
    assert_eq!(
        (second.value("Id").as_str(), second.value("IsTruncated").as_str()),
        ("/hostedzone/Z2", "false")
    );
    let by_vpc = format!("hostedzonesbyvpc?vpcid={OTHER_VPC}&vpcregion={REGION}");
    let by_vpc = aws.route53(&consumer(), "GET", &by_vpc, "").ok();
    assert_eq!(by_vpc.values("OwningAccount"), [CONSUMER, PROVIDER]);
}
