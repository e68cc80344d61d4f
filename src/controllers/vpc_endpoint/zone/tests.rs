use rstest::rstest;

use super::*;
use crate::aws::api::error::AwsError;
use crate::aws::slot::Scope;
use crate::controllers::aws::{Decision, Outcome, Step};
use crate::controllers::vpc_endpoint::plan::{self, build};
use crate::controllers::vpc_endpoint::samples::{
    ACCOUNT, DNS_NAME, SERVICE, Sample, VPC, ZONE, account, endpoint, group, records, records_slot,
};
use crate::controllers::vpc_endpoint::{status, teardown};
use crate::engine::failure::Class;
use crate::engine::plan::Verb;

const OLD: &str = "Z2AAAAAAAAA";
const NAMES: [&str; 2] = ["*.apps.example.hypershift.local", "api.example.hypershift.local"];

/// Zones with these ids and the name of the cluster's.
fn all_named(ids: &[&str]) -> Vec<HostedZone> {
    let zones = ids.iter().map(|id| HostedZone {
        id: (*id).to_owned(),
        name: "example.hypershift.local".to_owned(),
        private: true,
    });
    zones.collect()
}

/// What is found for the sample among these zones of the role's account.
fn found(sample: &mut Sample, zones: &[&str]) -> Result<String, Stop> {
    let account = sample.guest().zone_account.clone();
    sample.shows_zones(&account, all_named(zones), 2);
    let recorded = CpoIntent {
        zone_id: Some("ZRECORDED".to_owned()),
        ..CpoIntent::of(&sample.guest().identity)
    };
    find(
        sample.basis(),
        sample.guest(),
        &recorded,
        &["api.example.hypershift.local"],
        None,
    )
}

#[test]
fn zones_outside_of_the_file_are_passed_over() {
    let mut sample = Sample::new().among_many();
    sample.cr.status.as_mut().unwrap().dns_zone_id = Some("ZSHOWN".to_owned());
    assert_eq!(found(&mut sample, &["ZOTHER", ZONE]).unwrap(), ZONE);
    let mut alone = Sample::new();
    assert_eq!(found(&mut alone, &[ZONE]).unwrap(), "ZRECORDED");
}

#[test]
fn only_zone_outside_of_the_file_is_named() {
    let mut sample = Sample::new().among_many();
    let Err(Stop::Blocked(problem)) = found(&mut sample, &["ZOTHER"]) else {
        panic!("not refused");
    };
    let expected = "hosted zone example.hypershift.local is outside of the allowed scopes; hostedZoneIDs lacks ZOTHER";
    assert_eq!(
        (problem.reason, problem.message.as_str()),
        (Reason::ScopeNotAllowed, expected)
    );
}

/// What was recorded when the records were in another zone, of this account.
fn recorded_in(zone: &str, account: &str) -> CpoIntent {
    CpoIntent {
        account: ACCOUNT.to_owned(),
        zone_account: account.to_owned(),
        region: "us-east-1".to_owned(),
        vpc: VPC.to_owned(),
        zone_id: Some(zone.to_owned()),
        record_names: NAMES.map(str::to_owned).to_vec(),
        ..CpoIntent::of(&Sample::new().guest().identity)
    }
}

/// The zones in which the decision deletes records.
fn cleared(decision: &Decision) -> Vec<&str> {
    let steps = decision.steps.iter();
    let deletes = steps.filter(|step| step.kind == Kind::Records && step.verb == Verb::Delete);
    deletes.filter_map(|step| step.key.container()).collect()
}

fn zones_of_before(decision: &Decision) -> Vec<String> {
    let intent: CpoIntent = serde_json::from_str(decision.intent.as_deref().unwrap()).unwrap();
    intent.former_zones.into_iter().map(|zone| zone.zone_id).collect()
}

/// Another zone is given for the records, which are in both.
fn moved() -> Sample {
    let mut sample = Sample::ready();
    sample.records_intent(&recorded_in(OLD, ACCOUNT));
    sample.inputs.guest.as_mut().unwrap().zone = Some(ZONE.to_owned());
    sample.shows(records_slot(OLD), records(DNS_NAME));
    sample
}

#[test]
fn records_in_the_zone_of_before_are_deleted_and_then_forgotten() {
    let mut sample = moved();
    let decision = build(sample.basis()).unwrap();
    assert_eq!(
        (cleared(&decision), zones_of_before(&decision)),
        (vec![OLD], vec![OLD.to_owned()])
    );
    let intent: CpoIntent = serde_json::from_str(decision.intent.as_deref().unwrap()).unwrap();
    assert_eq!(intent.zone_id.as_deref(), Some(ZONE));
    sample.records_intent(&intent);
    assert_eq!(cleared(&build(sample.basis()).unwrap()), [OLD], "it stays recorded");
    assert_eq!(cleared(&teardown::teardown(sample.basis()).unwrap()), [ZONE, OLD]);
    sample.observes(records_slot(OLD), Observed::Absent);
    let decision = build(sample.basis()).unwrap();
    assert_eq!(zones_of_before(&decision), [OLD], "one read may be behind");
    assert!(cleared(&decision).is_empty() && !decision.forgets);
    sample.lacks(records_slot(OLD));
    let decision = build(sample.basis()).unwrap();
    assert!(cleared(&decision).is_empty() && zones_of_before(&decision).is_empty());
    assert!(decision.forgets, "it is recorded again, though nothing is written");
    let steps = decision.steps.iter().filter(|step| step.key.container() == Some(OLD));
    assert_eq!(steps.count(), 0, "nothing is to be done there any more");
}

/// Both custom resources of a cluster may have had records of one name there.
#[test]
fn absence_outlasts_the_same_shown_beside_other_names() {
    let other = Slot::records(&account(), OLD, &NAMES[1..]);
    let outdates = |sample: &Sample, is_absent| {
        let decision = build(sample.basis()).unwrap();
        plan::outdates_records(&decision.steps, &other, is_absent)
    };
    let mut sample = moved();
    assert!(
        outdates(&sample, true) && outdates(&sample, false),
        "a delete is under way"
    );
    let denied = AwsError::own(Class::Denied, "AccessDenied");
    sample.observes(records_slot(OLD), Observed::ReadFailed(denied));
    sample.has_zones(&[(ZONE, "example.hypershift.local"), (OLD, "example.hypershift.local")]);
    let any = outdates(&sample, true) || outdates(&sample, false);
    assert!(!any, "nothing was observed");
    sample.observes(records_slot(OLD), Observed::Absent);
    assert!(!outdates(&sample, true) && outdates(&sample, false));
}

/// The policies name one zone, so that a read of one that is gone is denied.
#[test]
fn zone_that_is_denied_and_in_no_list_is_gone() {
    let denied = || Observed::ReadFailed(AwsError::own(Class::Denied, "AccessDenied"));
    let mut sample = moved();
    sample.observes(records_slot(OLD), denied());
    sample.has_zones(&[(ZONE, "example.hypershift.local")]);
    let decision = build(sample.basis()).unwrap();
    assert!(zones_of_before(&decision).is_empty() && decision.left_out.is_empty());
    sample.records_intent(&recorded_in(OLD, ACCOUNT));
    sample.inputs.guest.as_mut().unwrap().zone = None;
    sample.cr.status.as_mut().unwrap().dns_zone_id = None;
    let intent = recorded_in(OLD, ACCOUNT);
    assert_eq!(
        find(sample.basis(), sample.guest(), &intent, &NAMES, None).unwrap(),
        ZONE
    );
    sample.has_zones(&[(ZONE, "example.hypershift.local"), (OLD, "example.hypershift.local")]);
    assert_eq!(
        find(sample.basis(), sample.guest(), &intent, &NAMES, None).unwrap(),
        OLD
    );
}

/// The list may be behind, or lack a page.
#[test]
fn zone_that_is_denied_and_in_one_list_no_more_may_be_there() {
    let mut sample = moved();
    let denied = AwsError::own(Class::Denied, "AccessDenied");
    sample.observes(records_slot(OLD), Observed::ReadFailed(denied));
    sample.shows_zones(&account(), all_named(&[ZONE]), 1);
    let decision = build(sample.basis()).unwrap();
    assert_eq!(
        (zones_of_before(&decision), decision.left_out.len()),
        (vec![OLD.to_owned()], 1)
    );
    let intent = recorded_in(OLD, ACCOUNT);
    sample.records_intent(&intent);
    sample.inputs.guest.as_mut().unwrap().zone = None;
    assert_eq!(
        find(sample.basis(), sample.guest(), &intent, &NAMES, None).unwrap(),
        OLD
    );
    let decision = teardown::teardown(sample.basis()).unwrap();
    let waits = |step: &&Step| step.key.container() == Some(OLD) && step.verb == Verb::Wait;
    assert_eq!(decision.steps.iter().filter(waits).count(), 1, "{decision:?}");
}

#[test]
fn refused_write_alone_makes_no_zone_forgotten() {
    let mut sample = moved();
    let refused = AwsError::own(Class::Gone, "NoSuchHostedZone");
    sample.observes(records_slot(OLD), Observed::WriteFailed(refused));
    sample.has_zones(&[(ZONE, "example.hypershift.local"), (OLD, "example.hypershift.local")]);
    assert_eq!(zones_of_before(&build(sample.basis()).unwrap()), [OLD]);
    sample.has_zones(&[(ZONE, "example.hypershift.local")]);
    assert!(zones_of_before(&build(sample.basis()).unwrap()).is_empty());
}

/// Both answers may be behind, so that another zone is used, and this one is not forgotten.
#[test]
fn zone_in_which_nothing_is_found_any_more_stays_recorded() {
    let mut sample = Sample::ready();
    sample.cr.status.as_mut().unwrap().dns_zone_id = Some(OLD.to_owned());
    sample.records_intent(&recorded_in(OLD, ACCOUNT));
    sample.observes(records_slot(OLD), Observed::Absent);
    sample.has_zones(&[(ZONE, "example.hypershift.local")]);
    let decision = build(sample.basis()).unwrap();
    let intent: CpoIntent = serde_json::from_str(decision.intent.as_deref().unwrap()).unwrap();
    assert_eq!(intent.zone_id.as_deref(), Some(ZONE));
    assert_eq!(zones_of_before(&decision), [OLD]);
    sample.lacks(records_slot(OLD));
    assert!(zones_of_before(&build(sample.basis()).unwrap()).is_empty());
}

#[test]
fn records_in_a_zone_of_another_account_are_deleted() {
    let other = "999900001111";
    let mut sample = Sample::ready();
    sample.records_intent(&recorded_in(OLD, other));
    let slot = Slot::records(&Scope::own(other, "us-east-1"), OLD, &NAMES);
    sample.shows(slot.clone(), records(DNS_NAME));
    let decision = build(sample.basis()).unwrap();
    assert!(
        decision.steps.iter().any(|step| step.key == slot && step.writes()),
        "{decision:?}"
    );
}

#[test]
fn records_of_others_in_the_zone_of_before_stay() {
    let mut sample = moved();
    sample.shows(
        records_slot(OLD),
        records("vpce-1-b.vpce-svc-2.us-east-1.vpce.amazonaws.com"),
    );
    let decision = build(sample.basis()).unwrap();
    assert!(cleared(&decision).is_empty() && zones_of_before(&decision).is_empty());
}

#[test]
fn records_in_a_zone_that_the_file_lacks_are_reported() {
    let mut sample = Sample::ready().among_many();
    let account = sample.guest().zone_account.clone();
    sample.records_intent(&recorded_in(OLD, ACCOUNT));
    let name = "example-x7k2p-vpce-private-router";
    sample.shows(Slot::security_group(&account, VPC, name), group());
    sample.shows(Slot::vpc_endpoint(&account, VPC, SERVICE), endpoint("available"));
    sample.shows(Slot::records(&account, ZONE, &NAMES), records(DNS_NAME));
    let decision = build(sample.basis()).unwrap();
    let lack = "what was recorded is outside of the allowed scopes; hostedZoneIDs lacks";
    let names = NAMES.join(", ");
    let expected = format!("records {names} may stay in hosted zone {OLD}: {lack} {OLD}");
    assert_eq!(decision.left_out, [expected]);
    assert_eq!(zones_of_before(&decision), [OLD]);
    let intent: CpoIntent = serde_json::from_str(decision.intent.as_deref().unwrap()).unwrap();
    sample.records_intent(&intent);
    let decision = teardown::teardown(sample.basis()).unwrap();
    assert!(decision.problem.is_none(), "{decision:?}");
    assert_eq!(cleared(&decision), [ZONE], "all else is deleted");
    let is_named = decision.left_out.first().is_some_and(|text| text.contains(OLD));
    assert!(is_named, "{:?}", decision.left_out);
}

#[test]
fn path_holds_whatever_becomes_of_the_zone_of_before() {
    let sample = moved();
    let decision = build(sample.basis()).unwrap();
    let denied = AwsError::own(Class::Denied, "AccessDenied");
    let outcome = |step: &Step| match step.writes() {
        true => Outcome::Failed(denied.clone()),
        false => Outcome::Nothing,
    };
    let outcomes: Vec<Outcome> = decision.steps.iter().map(outcome).collect();
    let report = status::after_build(&sample.cr, &decision, &outcomes);
    assert_eq!(report.conditions[0].reason, Reason::AWSSuccess, "{report:?}");
}

/// A read of a zone that is gone shows what a read of an empty one shows.
#[rstest]
#[case::there(&[ZONE, "Z2AAAAAAAAA"], ZONE)]
#[case::gone(&["Z2AAAAAAAAA"], "Z2AAAAAAAAA")]
fn list_tells_whether_a_zone_without_records_is_there(#[case] zones: &[&str], #[case] expected: &str) {
    let mut sample = Sample::ready();
    sample.observes(records_slot(ZONE), Observed::Absent);
    let zones: Vec<(&str, &str)> = zones.iter().map(|id| (*id, "example.hypershift.local")).collect();
    sample.has_zones(&zones);
    let names = ["api.example.hypershift.local", "*.apps.example.hypershift.local"];
    let recorded = CpoIntent {
        zone_id: Some(ZONE.to_owned()),
        ..CpoIntent::of(&sample.guest().identity)
    };
    let found = find(sample.basis(), sample.guest(), &recorded, &names, None);
    assert_eq!(found.unwrap(), expected);
}
