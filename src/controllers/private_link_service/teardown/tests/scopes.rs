//! Services in other management scopes than the one that the cluster is in.

use super::*;
use crate::controllers::samples::id;

#[rstest]
#[case::recorded(true)]
#[case::record_removed(false)]
fn cluster_that_was_moved_to_another_scope_is_deleted_where_it_is(#[case] recorded: bool) {
    let moved = Settings {
        scope: management_scope("new"),
        other_scopes: vec![management_scope("third"), management_scope("mgmt")],
        ..settings()
    };
    let record = if recorded {
        intent_with(&management(SUBNET))
    } else {
        json!({})
    };
    let decision = run(&deleting(record), &inputs(), &[service(json!([]))], &moved);
    assert_eq!(
        (decision.steps[0].key.group(), &decision.steps[0].verb),
        ("mgmt", &Verb::Delete)
    );
    let gone = run(&deleting(json!({})), &inputs(), &[], &moved);
    assert_eq!((gone.steps[0].key.group(), gone.steps[0].gone()), ("new", true));
}

#[rstest]
#[case::denied(403, "AuthorizationFailed", "mgmt")]
#[case::down_for_now(503, "ServiceUnavailable", "other")]
fn scope_that_cannot_be_read_blocks_no_deletion_for_long(
    #[case] status: u16,
    #[case] code: &str,
    #[case] waits_for: &str,
) {
    let settings = Settings {
        other_scopes: vec![management_scope("other")],
        ..settings()
    };
    let other = id(&management(SERVICE).replace("/mgmt/", "/other/"));
    let custom = deleting(json!({}));
    let first = |error| {
        let facts = Facts {
            reads: [(other.clone(), Observed::ReadFailed(error))].into(),
            ..Facts::default()
        };
        let decide = |facts: &Facts| teardown(&custom, &inputs(), facts, &settings, Timestamp::UNIX_EPOCH);
        let step = decided(facts, &[], decide).0.steps.remove(0);
        (step.key.group().to_owned(), step.gone())
    };
    let error = ArmError::from_json(status, &json!({"error": {"code": code}}), None);
    assert_eq!(first(error.clone()), (waits_for.to_owned(), waits_for == "mgmt"));
    let lasting = ArmError { lasting: true, ..error };
    assert_eq!(first(lasting), ("mgmt".to_owned(), true));
}

#[test]
fn forged_record_in_another_scope_leaves_nothing_behind() {
    let settings = Settings {
        other_scopes: vec![management_scope("other")],
        ..settings()
    };
    let mut forged = deleting(json!({}));
    let elsewhere = management(SERVICE).replace("/mgmt/", "/other/");
    forged.status = serde_json::from_value(json!({"privateLinkServiceID": elsewhere})).unwrap();
    // Each of both ids has to be proven gone.
    let both = [id(&elsewhere), id(&management(SERVICE))];
    let facts = Facts {
        reads: both.map(|id| (id, Observed::Absent)).into(),
        surely_gone: [id(&elsewhere)].into(),
        ..Facts::default()
    };
    let decide = |facts: &Facts| teardown(&forged, &inputs(), facts, &settings, Timestamp::UNIX_EPOCH);
    assert_eq!(decided(facts, &[], decide).0.steps[0].key.group(), "mgmt");
    let decision = run(&forged, &inputs(), &[service(json!([]))], &settings);
    assert_eq!(
        (decision.steps[0].key.group(), &decision.steps[0].verb),
        ("mgmt", &Verb::Delete)
    );
}
