//! What nothing names any more.

use super::*;
use crate::controllers::vpc_endpoint::samples::account;

/// Somebody has written other names over those that were recorded, or the cluster was moved.
#[test]
fn endpoint_that_nothing_names_stays_and_is_reported() {
    let mut sample = Sample::ready();
    for slot in [endpoint_slot(SERVICE), records_slot(ZONE), group_slot()] {
        sample.lacks(slot);
    }
    let mut unnamed = endpoint("available");
    unnamed["Id"] = json!("vpce-0fffffffffffffff0");
    unnamed["ServiceName"] = json!("com.amazonaws.vpce.us-east-1.vpce-svc-0aaaaaaaaaaaaaaaa");
    sample.lists_endpoints(&account(), VPC, vec![unnamed]);
    let decision = teardown(sample.basis()).unwrap();
    assert!(decision.nothing_left(), "{decision:?}");
    let left = decision.left_out.join("; ");
    assert!(
        left.contains("vpce-0fffffffffffffff0") && left.contains("vpce-svc-0aaaaaaaaaaaaaaaa"),
        "{left}"
    );
}

#[test]
fn endpoints_that_cannot_be_listed_are_reported() {
    let mut sample = Sample::ready();
    for slot in [endpoint_slot(SERVICE), records_slot(ZONE), group_slot()] {
        sample.lacks(slot);
    }
    for asked in sample.facts.lists.endpoints.values_mut() {
        *asked = Err(AwsError::own(Class::Down, "X"));
    }
    let decision = teardown(sample.basis()).unwrap();
    assert!(decision.left_out[0].contains(VPC), "{decision:?}");
}
