//! The hosted zone of the cluster: gone, replaced, or another one than before.

use rstest::rstest;

use super::drifted::with_more_rights;
use super::*;
use crate::desired::ZONE;
use crate::sim::fault;

impl Life {
    /// The calls of an hour.
    async fn calls_at_rest(&mut self) -> usize {
        self.aws.clear_journal();
        self.run_for(Duration::from_secs(3_600)).await;
        self.aws.journal().len()
    }

    pub(super) fn hosted_zone(&self) -> Value {
        self.aws.resources_of("route53", "hostedzone/").remove(0)
    }
}

/// S10 and "a zone that goes and comes back under another id".
#[tokio::test(start_paused = true)]
async fn zone_that_comes_back_under_another_id_gets_the_records() {
    let mut life = Life::with(with_more_rights);
    let mut zone = life.hosted_zone();
    life.until_available().await;
    life.removed(&life.hosted_zone());
    life.run_for(Duration::from_secs(3_600)).await;
    assert!(
        !life.is_available() && !life.is_reachable(),
        "{:#}",
        life.cluster.get(CR).unwrap()
    );
    let calls = life.aws.journal().len();
    zone["id"] = json!("arn:aws:route53:::hostedzone/Z9999999999");
    life.aws.change(zone, |_| {});
    life.until_available().await;
    assert!(life.is_reachable());
    assert_eq!(life.shown("dnsZoneID"), "Z9999999999");
    assert!(calls <= 140, "{calls} calls in an hour without a zone");
}

/// The cluster's zone was another one before, which has the records too, also where reads do not show them at first.
#[rstest]
#[case::shown(0)]
#[case::shown_by_a_later_read(1)]
#[tokio::test(start_paused = true)]
async fn records_in_a_zone_of_before_are_deleted_and_it_is_forgotten(#[case] empty_answers: u64) {
    const INTENT: &str = "hyperlink.hypershift.openshift.io/cpo-intent";
    let mut life = Life::with(with_more_rights);
    life.until_available().await;
    let before = life.calls_at_rest().await;
    let mut old = life.hosted_zone();
    old["id"] = json!("arn:aws:route53:::hostedzone/Z9999999999");
    life.aws.change(old, |_| {});
    let recorded = life.cluster.get(CR).unwrap()["metadata"]["annotations"][INTENT].clone();
    let mut intent: Value = serde_json::from_str(recorded.as_str().unwrap()).unwrap();
    intent["formerZones"] = json!([{"account": GUEST, "dnsZoneID": "Z9999999999"}]);
    let forged = json!({"metadata": {"annotations": {INTENT: intent.to_string()}}});
    life.cluster.forge(CR, &forged);
    let empty = json!({"status": 200, "body": "<ListResourceRecordSetsResponse><ResourceRecordSets/>\
        <IsTruncated>false</IsTruncated></ListResourceRecordSetsResponse>"});
    life.aws
        .set_faults(&fault("/ListResourceRecordSets$", empty_answers, &empty));
    life.run_for(Duration::from_secs(600)).await;
    assert!(life.is_available());
    let zones = life.aws.resources_of("route53", "hostedzone/");
    let records = |id: &str| {
        let zone = zones.iter().find(|zone| zone["id"].as_str().unwrap().ends_with(id));
        zone.unwrap()["records"].to_string().matches("vpce-svc-").count()
    };
    assert_eq!((records("Z9999999999"), records(ZONE)), (0, 2));
    assert_eq!(
        life.cluster.get(CR).unwrap()["metadata"]["annotations"][INTENT],
        recorded
    );
    let after = life.calls_at_rest().await;
    assert!(
        after <= before,
        "{after} calls in an hour, {before} before: it is read for ever"
    );
}

#[tokio::test(start_paused = true)]
async fn path_whose_zone_is_gone_is_deleted() {
    let mut life = Life::new();
    life.until_available().await;
    life.removed(&life.hosted_zone());
    life.deleted().await;
    assert_eq!(life.remains(), Vec::<String>::new());
}

/// The policies name the zone that came in its place.
#[tokio::test(start_paused = true)]
async fn path_whose_zone_is_gone_and_denied_is_deleted() {
    let mut life = Life::new();
    life.until_available().await;
    life.removed(&life.hosted_zone());
    let denied = json!({"status": 403, "code": "AccessDenied"});
    let rule = fault("/ListResourceRecordSets$", 1_000_000, &denied);
    life.aws.set_faults(&rule);
    life.deleted().await;
    assert_eq!(life.remains(), Vec::<String>::new());
}

/// The second one of the name came before the path, and goes.
#[tokio::test(start_paused = true)]
async fn path_comes_once_one_of_two_zones_of_a_name_is_gone() {
    let mut life = Life::with(with_more_rights);
    let mut second = life.hosted_zone();
    second["id"] = json!("arn:aws:route53:::hostedzone/Z9999999999");
    life.aws.change(second.clone(), |_| {});
    life.comes_to("AmbiguousHostedZone", 0).await;
    life.removed(&second);
    life.until_available().await;
    assert!(life.is_reachable());
    assert_eq!(life.shown("dnsZoneID"), ZONE);
}

#[tokio::test(start_paused = true)]
async fn zone_searched_for_without_end_costs_few_lists() {
    let mut life = Life::with(with_more_rights);
    let zone = life.hosted_zone();
    life.removed(&zone);
    life.comes_to("HostedZoneNotFound", 0).await;
    life.aws.clear_journal();
    for _ in 0..120 {
        let cr = life.cr().unwrap();
        life.reconcile_with(1, cr).await;
        sleep_until(Instant::now() + Duration::from_millis(500)).await;
    }
    let lists = life.calls_of("ListHostedZones").len();
    assert!((1..=4).contains(&lists), "{lists} lists in a minute");
    life.aws.change(zone, |_| {});
    let came = Instant::now();
    life.until_available().await;
    assert!(came.elapsed() <= Duration::from_secs(120), "{:?}", came.elapsed());
}

/// A list that decisions need fails for an hour: it is read as seldom as its error demands, and works again then.
#[rstest]
#[case::zones("ListHostedZones", 503, "Unavailable", 40)]
#[case::zones_denied("ListHostedZones", 403, "AccessDenied", 10)]
#[case::subnets("DescribeSubnets", 503, "Unavailable", 40)]
#[tokio::test(start_paused = true)]
async fn list_that_fails_is_read_ever_less_often(
    #[case] action: &str,
    #[case] status: u16,
    #[case] code: &str,
    #[case] most: usize,
) {
    let mut life = Life::new();
    let failing = json!({"status": status, "code": code});
    life.aws.set_faults(&fault(&format!("/{action}$"), 1_000_000, &failing));
    life.run_for(Duration::from_secs(3_600)).await;
    let reads = life.calls_of(action).len();
    assert!((5..=most).contains(&reads), "{reads} in an hour");
    let (status, _, message) = life.condition("AWSEndpointAvailable");
    assert!(status == "False" && message.contains(code), "{status} {message}");
    life.aws.set_faults(&json!([]));
    let again = Instant::now();
    life.until_available().await;
    assert!(again.elapsed() <= Duration::from_secs(900), "{:?}", again.elapsed());
}
