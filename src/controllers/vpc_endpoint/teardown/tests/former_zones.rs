//! Zones of before in a deletion.

use super::*;
use crate::hypershift::aws::intent::FormerZone;

#[test]
fn denied_zone_of_before_holds_up_no_deletion() {
    let mut sample = Sample::ready();
    let former = FormerZone {
        account: ACCOUNT.to_owned(),
        zone_id: "ZAAAAAAAA".to_owned(),
        ..FormerZone::default()
    };
    let intent = CpoIntent {
        former_zones: vec![former],
        ..recorded(&sample)
    };
    sample.records_intent(&intent);
    sample.has_zones(&[
        (ZONE, "example.hypershift.local"),
        ("ZAAAAAAAA", "example.hypershift.local"),
    ]);
    let denied = AwsError {
        status: 403,
        ..AwsError::own(Class::Denied, "AccessDenied")
    };
    sample.observes(records_slot("ZAAAAAAAA"), Observed::ReadFailed(denied));
    for slot in [endpoint_slot(SERVICE), group_slot(), records_slot(ZONE)] {
        sample.observes(slot, Observed::Absent);
    }
    let decision = teardown(sample.basis()).unwrap();
    assert!(decision.nothing_left(), "{decision:?}");
    assert!(
        decision.left_out.iter().any(|text| text.contains("ZAAAAAAAA")),
        "{:?}",
        decision.left_out
    );
}
