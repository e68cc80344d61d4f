use hyperlink_engine::client::WriteError;
use rstest::rstest;

use super::*;
use crate::api::sample::{Sample, answer, reconcile, refusal};
use crate::route53::hosted_zone::HostedZone;

fn route53(sample: &Sample) -> Route53 {
    Route53(sample.client.clone())
}

fn zones(id: &str, rest: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><ListHostedZonesResponse xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\">\
         <HostedZones><HostedZone><Id>/hostedzone/{id}</Id><Name>c.hypershift.local.</Name><CallerReference>x\
         </CallerReference><Config><PrivateZone>true</PrivateZone></Config><ResourceRecordSetCount>2\
         </ResourceRecordSetCount></HostedZone></HostedZones><MaxItems>100</MaxItems>{rest}</ListHostedZonesResponse>"
    )
}

#[tokio::test]
async fn zones_are_read_over_all_pages() {
    let first = zones("Z1", "<IsTruncated>true</IsTruncated><NextMarker>Z2</NextMarker>");
    let second = zones("Z2", "<IsTruncated>false</IsTruncated>");
    let sample = Sample::new([answer(200, &first), answer(200, &second)]);
    let found = route53(&sample).hosted_zones(reconcile()).await.unwrap();
    let zone = |id: &str| HostedZone {
        id: id.into(),
        name: "c.hypershift.local".into(),
        private: true,
    };
    assert_eq!(found, [zone("Z1"), zone("Z2")]);
    let base = "GET https://route53.amazonaws.com/2013-04-01/hostedzone?maxitems=100";
    assert_eq!(sample.aws.requests(), [base.to_owned(), format!("{base}&marker=Z2")]);
    let authorization = sample.aws.header(0, "authorization").unwrap();
    assert!(
        authorization.contains("/us-east-1/route53/aws4_request"),
        "{authorization}"
    );
}

const RECORDS: &str = "<ListResourceRecordSetsResponse><ResourceRecordSets>\
    <ResourceRecordSet><Name>\\052.apps.c.hypershift.local.</Name><Type>CNAME</Type><TTL>300</TTL><ResourceRecords>\
    <ResourceRecord><Value>vpce-1.vpce-svc-1.us-east-1.vpce.amazonaws.com</Value></ResourceRecord></ResourceRecords>\
    </ResourceRecordSet><ResourceRecordSet><Name>api.c.hypershift.local.</Name><Type>A</Type><AliasTarget>\
    <DNSName>x.</DNSName></AliasTarget></ResourceRecordSet></ResourceRecordSets>";

fn apps() -> RecordSet {
    RecordSet {
        name: "*.apps.c.hypershift.local".into(),
        kind: "CNAME".into(),
        ttl: Some(300),
        values: vec!["vpce-1.vpce-svc-1.us-east-1.vpce.amazonaws.com".into()],
        set_identifier: None,
    }
}

#[tokio::test]
async fn records_are_read_over_all_pages() {
    let first = format!(
        "{RECORDS}<IsTruncated>true</IsTruncated><NextRecordName>b.</NextRecordName><NextRecordType>TXT\
        </NextRecordType>\
         </ListResourceRecordSetsResponse>"
    );
    let last = "<ListResourceRecordSetsResponse><IsTruncated>false</IsTruncated></ListResourceRecordSetsResponse>";
    let sample = Sample::new([answer(200, &first), answer(200, last)]);
    let found = route53(&sample).records(reconcile(), "Z1").await.unwrap();
    assert_eq!((found.len(), &found[0]), (2, &apps()));
    assert_eq!((found[1].ttl, found[1].values.len()), (None, 0), "an alias");
    let requests = sample.aws.requests();
    assert!(
        requests[1].ends_with("/hostedzone/Z1/rrset?maxitems=300&name=b.&type=TXT"),
        "{requests:?}"
    );
}

#[rstest]
#[case::there("*.apps.c.hypershift.local", true)]
#[case::with_a_dot("*.apps.c.hypershift.local.", true)]
#[case::later_name("a.c.hypershift.local", false)]
#[tokio::test]
async fn only_records_of_the_name_are_found(#[case] name: &str, #[case] there: bool) {
    let sample = Sample::answering(&format!("{RECORDS}</ListResourceRecordSetsResponse>"));
    let found = route53(&sample).records_named(reconcile(), "Z1", &[name]).await;
    assert_eq!(found, Ok(there.then(apps).into_iter().collect()));
    assert!(sample.aws.requests()[0].contains("maxitems=300&name="));
}

#[tokio::test]
async fn names_beside_each_other_are_read_in_one_request() {
    let names = ["*.apps.c.hypershift.local", "api.c.hypershift.local"];
    let last = format!("{RECORDS}</ListResourceRecordSetsResponse>");
    let sample = Sample::answering(&last);
    let found = route53(&sample).records_named(reconcile(), "Z1", &names).await.unwrap();
    let found: Vec<&str> = found.iter().map(|record| record.name.as_str()).collect();
    assert_eq!(
        found,
        ["api.c.hypershift.local", "*.apps.c.hypershift.local"],
        "whatever their type"
    );
    let requests = sample.aws.requests();
    assert!(
        requests.len() == 1 && requests[0].contains("name=api.c.hypershift.local"),
        "{requests:?}"
    );
}

#[tokio::test]
async fn name_beyond_the_first_page_has_a_request_of_its_own() {
    let names = ["*.apps.c.hypershift.local", "api.c.hypershift.local"];
    let more = "<IsTruncated>true</IsTruncated><NextRecordName>app.c.</NextRecordName>";
    let first = format!("<ListResourceRecordSetsResponse>{more}</ListResourceRecordSetsResponse>");
    let last = format!("{RECORDS}</ListResourceRecordSetsResponse>");
    let sample = Sample::new([answer(200, &first), answer(200, &last)]);
    let found = route53(&sample).records_named(reconcile(), "Z1", &names).await;
    assert_eq!(found, Ok(vec![apps()]));
    assert_eq!(sample.aws.requests().len(), 2);
}

const ACCEPTED: &str = "<ChangeResourceRecordSetsResponse><ChangeInfo><Id>/change/C1</Id><Status>PENDING</Status>\
    </ChangeInfo></ChangeResourceRecordSetsResponse>";

#[tokio::test]
async fn changes_are_one_batch_with_escaped_values() {
    let sample = Sample::answering(ACCEPTED);
    let deleted = RecordSet {
        name: "api.c.hypershift.local".into(),
        values: vec!["<&>".into()],
        set_identifier: Some("a".into()),
        ..apps()
    };
    let changes = [(ChangeKind::Upsert, apps()), (ChangeKind::Delete, deleted)];
    let changes = changes.map(|(kind, records)| Change { kind, records });
    let calls = route53(&sample);
    let sent = calls.change_records(reconcile(), "/hostedzone/Z1", &changes);
    assert_eq!(sent.await, Ok(()));
    assert_eq!(
        sample.aws.requests(),
        ["POST https://route53.amazonaws.com/2013-04-01/hostedzone/Z1/rrset/ \
            <?xml version=\"1.0\" encoding=\"UTF-8\"?>\
          <ChangeResourceRecordSetsRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><ChangeBatch>\
          <Changes>\
          <Change><Action>UPSERT</Action><ResourceRecordSet><Name>*.apps.c.hypershift.local</Name><Type>CNAME</Type>\
          <TTL>300</TTL><ResourceRecords><ResourceRecord><Value>vpce-1.vpce-svc-1.us-east-1.vpce.amazonaws.com</Value>\
          </ResourceRecord></ResourceRecords></ResourceRecordSet></Change>\
          <Change><Action>DELETE</Action><ResourceRecordSet><Name>api.c.hypershift.local</Name><Type>CNAME</Type>\
          <SetIdentifier>a</SetIdentifier><TTL>300</TTL><ResourceRecords><ResourceRecord><Value>&lt;&amp;&gt;</Value>\
          </ResourceRecord></ResourceRecords></ResourceRecordSet></Change>\
          </Changes></ChangeBatch></ChangeResourceRecordSetsRequest>"]
    );
}

#[tokio::test]
async fn refused_batch_is_outdated() {
    use hyperlink_engine::failure::Failure;
    let body = "<InvalidChangeBatch><Messages><Message>not found</Message></Messages></InvalidChangeBatch>";
    let sample = Sample::new([answer(400, body)]);
    let sent = route53(&sample).change_records(reconcile(), "Z1", &[]).await;
    let Err(WriteError::Failed(error)) = sent else {
        panic!("{sent:?}")
    };
    assert_eq!((error.class, error.is_outdated()), (Class::Invalid, true));
}

#[rstest]
#[case("")]
#[case("..")]
#[case("Z1/../Z2")]
#[case("Z1?x")]
#[case("ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ")]
#[tokio::test]
async fn what_is_no_zone_id_is_not_sent(#[case] id: &str) {
    let sample = Sample::new([refusal(500, "InternalError")]);
    let error = route53(&sample).records(reconcile(), id).await.unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (Class::Invalid, "InvalidZoneId"));
    assert!(sample.aws.requests().is_empty());
}

#[tokio::test]
async fn missing_zone_is_gone() {
    let body = "<ErrorResponse><Error><Type>Sender</Type><Code>NoSuchHostedZone</Code></Error></ErrorResponse>";
    let sample = Sample::new([answer(404, body)]);
    let error = route53(&sample).records(reconcile(), "Z1").await.unwrap_err();
    assert_eq!(error.class, Class::Gone);
}
