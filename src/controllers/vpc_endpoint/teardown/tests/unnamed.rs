//! What nothing names any more.

use super::*;
use crate::aws::owner_tags::CLUSTER_ID_TAG;
use crate::controllers::vpc_endpoint::samples::{CLUSTER_ID, account};

/// Somebody has written other names over those that were recorded.
#[test]
fn endpoint_that_nothing_names_is_found_by_its_tags() {
    let mut sample = Sample::ready();
    sample.lacks(endpoint_slot(SERVICE));
    sample.observes(records_slot(ZONE), Observed::Absent);
    let mut unnamed = endpoint("available");
    unnamed["Id"] = json!("vpce-0fffffffffffffff0");
    unnamed["Tags"] = json!({"AWSEndpointService": "private-router", CLUSTER_ID_TAG: CLUSTER_ID});
    let slot = Slot::further_endpoint(&account(), VPC, "vpce-0fffffffffffffff0");
    sample.shows(slot.clone(), unnamed.clone());
    sample.lists_endpoints(&account(), VPC, vec![unnamed]);
    let decision = teardown(sample.basis()).unwrap();
    assert!(
        verbs(&decision).contains(&(Kind::FurtherEndpoint, Verb::Delete)),
        "{decision:?}"
    );
    assert_eq!(verbs(&decision).last(), Some(&(Kind::SecurityGroup, Verb::Wait)));
    sample.observes(slot, Observed::Absent);
    let decision = teardown(sample.basis()).unwrap();
    assert_eq!(verbs(&decision).last(), Some(&(Kind::SecurityGroup, Verb::Delete)));
}

#[test]
fn nothing_is_released_while_endpoints_cannot_be_listed() {
    let mut sample = Sample::ready();
    for slot in [endpoint_slot(SERVICE), records_slot(ZONE), group_slot()] {
        sample.lacks(slot);
    }
    for asked in sample.facts.lists.endpoints.values_mut() {
        *asked = Err(AwsError::own(Class::Down, "X"));
    }
    let decision = teardown(sample.basis()).unwrap();
    assert!(!decision.nothing_left(), "{decision:?}");
}
