use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::markers::CPO_INTENT;
use crate::api::markers::aws::{CPO_FINALIZER, HO_FINALIZER};
use crate::aws::api::error::AwsError;
use crate::aws::cloud::Observed;
use crate::aws::kinds::Kind;
use crate::aws::slot::{Scope, Slot};
use crate::controllers::aws::Step;
use crate::controllers::aws::lists::ListNeed;
use crate::controllers::endpoint_service::reports;
use crate::controllers::endpoint_service::samples::{
    CLUSTER_ID, NAME, Sample, account, endpoint_service, identity, service,
};
use crate::controllers::facts::Need;
use crate::engine::cloud::Key as _;
use crate::engine::failure::Class;
use crate::engine::plan::{Verb, Why};
use crate::hypershift::aws::load_balancer_name::NlbMatch;
use crate::runtime::event::What;

const DELETED: &str = "2026-01-01T00:00:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn soon() -> Timestamp {
    at("2026-01-01T00:00:10Z")
}

fn deleted(finalizers: &[&str]) -> Sample {
    let mut sample = Sample::ready();
    sample.cr.metadata.deletion_timestamp = serde_json::from_value(json!(DELETED)).unwrap();
    sample.cr.metadata.finalizers = Some(finalizers.iter().map(ToString::to_string).collect());
    sample.observes(Slot::endpoint_connections(&service()), Observed::Absent);
    sample.lists(Ok(Vec::new()));
    sample
}

/// An endpoint service with the cluster's tag.
fn marked(load_balancer: &str) -> Value {
    let mut body = endpoint_service(load_balancer);
    body["Tags"]["hypershift.openshift.io/cluster-id"] = json!(CLUSTER_ID);
    body
}

/// A deletion in which all that is named is gone, because what names the endpoint service was changed.
fn deleted_as_junk() -> Sample {
    let mut sample = deleted(&[HO_FINALIZER]);
    sample.inputs.service = None;
    sample.cr.spec.network_load_balancer_name = "junk".to_owned();
    let junk = Slot::endpoint_service(&account(), "junk");
    sample.observes(junk.clone(), Observed::Absent);
    sample.facts.surely_gone.insert(junk);
    sample.shows(service(), marked(NAME));
    sample.lists(Ok(vec![marked(NAME)]));
    sample
}

fn record(sample: &mut Sample, intent: &HoIntent) {
    sample
        .cr
        .annotations_mut()
        .insert(HO_INTENT.to_owned(), intent::write(intent));
}

fn verbs(decision: &Decision) -> Vec<(Kind, Verb)> {
    decision
        .steps
        .iter()
        .map(|step| (step.kind, step.verb.clone()))
        .collect()
}

#[test]
fn service_is_deleted_after_its_connections_are_rejected() {
    let mut sample = deleted(&[HO_FINALIZER]);
    sample.shows(
        Slot::endpoint_connections(&service()),
        json!({"EndpointIds": ["vpce-1"]}),
    );
    let decision = teardown(sample.basis(), soon()).unwrap();
    // First nobody may connect any more, or the next connection comes while this one is rejected.
    let expected = [
        (Kind::AllowedPrincipals, Verb::Put(json!({"AllowedPrincipals": []}))),
        (Kind::EndpointConnections, Verb::Delete),
        (Kind::EndpointService, Verb::Wait),
    ];
    assert_eq!(verbs(&decision), expected);
    assert_eq!(decision.steps[0].why, Why::Unwanted, "no drift is repaired");
    sample.observes(Slot::endpoint_connections(&service()), Observed::Absent);
    let decision = teardown(sample.basis(), soon()).unwrap();
    let expected = [
        (Kind::EndpointConnections, Verb::Keep),
        (Kind::EndpointService, Verb::Delete),
    ];
    assert_eq!(verbs(&decision), expected);
}

#[test]
fn connections_are_read_just_before_the_service_is_deleted() {
    let mut sample = deleted(&[HO_FINALIZER]);
    let connections = Slot::endpoint_connections(&service());
    sample.facts.fresh_reads.remove(&connections);
    let needs = teardown(sample.basis(), soon()).unwrap_err();
    assert_eq!(needs, [Need::FreshRead(Kind::EndpointConnections, connections)]);
}

#[rstest]
#[case::denied(Class::Denied, Verb::Delete)]
#[case::down(Class::Down, Verb::Wait)]
fn aws_decides_where_nobody_may_read_the_connections(#[case] class: Class, #[case] expected: Verb) {
    let mut sample = deleted(&[HO_FINALIZER]);
    let unread = Observed::ReadFailed(AwsError::own(class, "X"));
    sample.observes(Slot::endpoint_connections(&service()), unread);
    let decision = teardown(sample.basis(), soon()).unwrap();
    let expected = [
        (Kind::EndpointConnections, Verb::Wait),
        (Kind::EndpointService, expected),
    ];
    assert_eq!(verbs(&decision), expected);
}

#[test]
fn guests_side_is_waited_for_but_not_for_ever() {
    let sample = deleted(&[HO_FINALIZER, CPO_FINALIZER]);
    let decision = teardown(sample.basis(), soon()).unwrap();
    assert!(decision.steps.is_empty());
    assert_eq!(
        decision.requeue.map(|requeue| requeue.after),
        Some(Duration::from_secs(290))
    );
    let late = teardown(sample.basis(), at("2026-01-01T00:05:00Z")).unwrap();
    assert!(late.steps.iter().any(Step::writes));
}

#[test]
fn guests_side_is_waited_for_without_its_finalizer() {
    let mut sample = deleted(&[HO_FINALIZER]);
    sample
        .cr
        .annotations_mut()
        .insert(CPO_INTENT.to_owned(), "{}".to_owned());
    assert!(teardown(sample.basis(), soon()).unwrap().steps.is_empty());
}

#[rstest]
#[case::service_is_gone(|sample: &mut Sample| sample.inputs.service = None)]
#[case::service_of_another_uid(|sample: &mut Sample| sample.inputs.service.as_mut().unwrap().uid = "x".into())]
fn unmarked_service_of_nobody_known_is_left(#[case] change: fn(&mut Sample)) {
    let mut sample = deleted(&[HO_FINALIZER]);
    change(&mut sample);
    sample.observes(Slot::endpoint_service(&account(), "ax"), Observed::Absent);
    let decision = teardown(sample.basis(), soon()).unwrap();
    assert!(!decision.steps.iter().any(Step::writes), "{:?}", decision.steps);
    assert!(decision.nothing_left(), "a person is told, and the object may go");
}

#[test]
fn marked_service_is_deleted_without_its_kubernetes_service() {
    let mut sample = deleted(&[HO_FINALIZER]);
    sample.inputs.service = None;
    sample.shows(service(), marked(NAME));
    let decision = teardown(sample.basis(), soon()).unwrap();
    assert!(decision.steps.iter().any(|step| step.verb == Verb::Delete));
}

#[test]
fn service_that_nothing_names_is_searched_and_deleted() {
    let mut sample = deleted_as_junk();
    let decision = teardown(sample.basis(), soon()).unwrap();
    assert!(!decision.nothing_left());
    let deleted = decision.steps.iter().find(|step| step.verb == Verb::Delete);
    assert_eq!(deleted.map(|step| &step.key), Some(&service()));
    sample.facts.lists.endpoint_services.clear();
    let needs = teardown(sample.basis(), soon()).unwrap_err();
    assert!(matches!(needs.as_slice(), [Need::List(ListNeed::EndpointServices(_))]));
}

#[test]
fn services_are_searched_only_before_the_release() {
    let mut sample = deleted_as_junk();
    sample.facts.surely_gone.clear();
    sample.facts.lists.endpoint_services.clear();
    let decision = teardown(sample.basis(), soon()).unwrap();
    assert_eq!(verbs(&decision), [(Kind::EndpointService, Verb::Keep)]);
    sample.cr.metadata.name = Some("junk".to_owned());
    record(
        &mut sample,
        &HoIntent {
            load_balancer: "junk".into(),
            ..HoIntent::of(&identity())
        },
    );
    sample
        .facts
        .surely_gone
        .insert(Slot::endpoint_service(&account(), "junk"));
    assert!(
        teardown(sample.basis(), soon()).unwrap().nothing_left(),
        "nothing was made for it"
    );
}

#[rstest]
#[case::of_the_other_custom_resource(|sample: &mut Sample| sample.inputs.named_by_others.extend([NAME.to_owned()]))]
#[case::of_another_management_cluster(|sample: &mut Sample| sample.settings.infrastructure = Some("other".into()))]
#[case::in_another_region(|sample: &mut Sample| {
    let mut body = marked(NAME);
    body["Region"] = json!("eu-west-1");
    sample.lists(Ok(vec![body]));
})]
fn listed_service_that_is_not_its_own_is_not_touched(#[case] change: fn(&mut Sample)) {
    let mut sample = deleted_as_junk();
    change(&mut sample);
    let decision = teardown(sample.basis(), soon()).unwrap();
    assert_eq!(verbs(&decision), [(Kind::EndpointService, Verb::Keep)]);
}

#[test]
fn nothing_is_released_while_services_cannot_be_listed() {
    let mut sample = deleted_as_junk();
    sample.lists(Err(AwsError::own(Class::Down, "Unavailable")));
    let decision = teardown(sample.basis(), soon()).unwrap();
    assert!(!decision.nothing_left() && decision.requeue.is_some());
    assert_eq!(
        decision.problem.map(|problem| problem.reason),
        Some(Reason::DeletionFailed)
    );
}

/// Of a load balancer that the Service reports, and whose endpoint service has no tag of a cluster.
#[rstest]
#[case::its_own(NAME, false, true)]
#[case::that_an_older_one_has(NAME, true, false)]
#[case::beside_its_own("junk", false, false)]
fn host_name_vouches_only_for_what_it_may_have(#[case] spec: &str, #[case] is_claimed: bool, #[case] is_deleted: bool) {
    let mut sample = deleted(&[HO_FINALIZER]);
    sample.settings.nlb_match = NlbMatch::Hostname;
    sample.cr.spec.network_load_balancer_name = spec.to_owned();
    sample.inputs.load_balancer_claimed = is_claimed;
    sample.observes(Slot::endpoint_service(&account(), "junk"), Observed::Absent);
    let decision = teardown(sample.basis(), soon()).unwrap();
    let deleted = decision.steps.iter().any(|step| step.verb == Verb::Delete);
    assert_eq!(deleted, is_deleted, "{:?}", decision.steps);
}

#[test]
fn owner_of_the_kubernetes_service_may_be_gone() {
    let mut sample = deleted(&[HO_FINALIZER]);
    sample.inputs.service.as_mut().unwrap().owned = false;
    let decision = teardown(sample.basis(), soon()).unwrap();
    assert!(decision.steps.iter().any(|step| step.verb == Verb::Delete));
}

#[rstest]
#[case::in_the_spec(|sample: &mut Sample| sample.cr.spec.network_load_balancer_name = "victim".into())]
#[case::in_the_intent(|sample: &mut Sample| record(sample, &HoIntent { load_balancer: "victim".into(), ..HoIntent::of(&identity()) }))]
#[case::among_those_of_before(|sample: &mut Sample| record(sample, &HoIntent { former_load_balancers: vec!["victim".into()], ..HoIntent::of(&identity()) }))]
#[case::in_the_host_names(|sample: &mut Sample| sample.inputs.service.as_mut().unwrap().host_names = vec!["victim-01.elb.us-east-1.amazonaws.com".into()])]
fn forged_name_deletes_nothing_of_another(#[case] forge: fn(&mut Sample)) {
    let mut sample = deleted(&[HO_FINALIZER]);
    let victim = Slot::endpoint_service(&account(), "victim");
    sample.shows(victim.clone(), endpoint_service("victim"));
    forge(&mut sample);
    let decision = teardown(sample.basis(), soon()).unwrap();
    let touched = decision.steps.iter().find(|step| step.writes() && step.key == victim);
    assert!(touched.is_none(), "{touched:?}");
    assert!(decision.steps.iter().any(|step| step.key == victim && step.left()));
}

#[rstest]
#[case::of_another(DeletedCluster::OfAnother)]
#[case::unknown(DeletedCluster::Unknown)]
fn nothing_is_deleted_for_a_cluster_that_is_not_known(#[case] cluster: DeletedCluster) {
    let mut sample = deleted(&[HO_FINALIZER]);
    sample.inputs.identity = Err(Problem::new(Reason::IdentityMismatch, "x"));
    sample.inputs.deleted_cluster = cluster;
    let decision = teardown(sample.basis(), soon()).unwrap();
    assert!(decision.steps.is_empty() && decision.nothing_left());
    let events = reports::last_events(&sample.inputs, &decision);
    assert!(events.iter().all(|event| event.what == What::Released), "{events:?}");
}

#[test]
fn guests_side_is_waited_for_whosever_it_is() {
    let mut sample = deleted(&[HO_FINALIZER]);
    sample.inputs.identity = Err(Problem::new(Reason::IdentityMismatch, "x"));
    sample.inputs.deleted_cluster = DeletedCluster::Unknown;
    sample
        .cr
        .annotations_mut()
        .insert(CPO_INTENT.to_owned(), "{}".to_owned());
    let decision = teardown(sample.basis(), soon()).unwrap();
    let after = decision.requeue.map(|requeue| requeue.after);
    assert!(decision.paused && !decision.nothing_left() && after == Some(Duration::from_secs(590)));
    let decision = teardown(sample.basis(), at("2026-01-01T00:10:00Z")).unwrap();
    assert!(decision.nothing_left() && decision.left_out.len() == 1);
}

/// The process has the keys of another account, say.
#[test]
fn what_was_recorded_elsewhere_is_not_taken_for_gone() {
    let mut sample = deleted_as_junk();
    let elsewhere = Scope::own("999988887777", "us-east-1");
    let recorded = HoIntent {
        account: elsewhere.account.clone(),
        region: elsewhere.region.clone(),
        load_balancer: NAME.to_owned(),
        ..HoIntent::of(&identity())
    };
    record(&mut sample, &recorded);
    let there = Slot::endpoint_service(&elsewhere, NAME);
    let refused = AwsError::own(Class::Denied, "NoRoleForAccount");
    sample.observes(there.clone(), Observed::ReadFailed(refused));
    let decision = teardown(sample.basis(), soon()).unwrap();
    assert!(!decision.nothing_left());
    assert!(decision.steps.iter().any(|step| step.key == there && !step.writes()));
    let here = decision.steps.iter().find(|step| step.verb == Verb::Delete);
    assert!(here.is_some_and(|step| step.key == service()), "{:?}", decision.steps);
}

#[test]
fn what_is_no_name_of_a_load_balancer_is_not_searched() {
    let mut sample = deleted(&[HO_FINALIZER]);
    let junk = "x\n&Action=DeleteEverything";
    sample.cr.spec.network_load_balancer_name = junk.into();
    let recorded = HoIntent {
        load_balancer: "y".repeat(33),
        former_load_balancers: vec![String::new(), "-".to_owned()],
        ..HoIntent::of(&identity())
    };
    record(&mut sample, &recorded);
    let decision = teardown(sample.basis(), soon()).unwrap();
    let searched: BTreeSet<&str> = decision.steps.iter().map(|step| step.key.name()).collect();
    assert_eq!(searched, BTreeSet::from([NAME]), "that of the Service");
}

#[test]
fn forged_intent_makes_no_more_reads_than_a_real_one() {
    let mut sample = deleted(&[HO_FINALIZER]);
    let forged = HoIntent {
        former_load_balancers: (0..10_000).map(|at| format!("a{at}")).collect(),
        ..HoIntent::of(&identity())
    };
    record(&mut sample, &forged);
    assert!(load_balancers(sample.basis()).len() <= MOST_FORMER + 2);
}

#[test]
fn custom_resource_of_an_earlier_version_names_what_may_stay() {
    let mut sample = deleted(&[HO_FINALIZER]);
    sample.cr.metadata.name = Some("router-clusters-example".to_owned());
    sample.inputs.service = None;
    let decision = teardown(sample.basis(), soon()).unwrap();
    let events = reports::last_events(&sample.inputs, &decision);
    assert!(
        events
            .iter()
            .any(|event| event.note.contains("vpce-svc-") && event.note.contains(NAME)),
        "{events:?}"
    );
    assert!(events.iter().all(|event| event.what == What::Released), "{events:?}");
}

/// HyperShift deletes the control plane before the custom resource.
#[test]
fn owned_service_vouches_by_its_host_name_without_a_control_plane() {
    let mut sample = deleted(&[HO_FINALIZER]);
    sample.settings.nlb_match = NlbMatch::Hostname;
    let identity = sample.inputs.identity.clone().unwrap();
    sample.inputs.identity = Err(Problem::new(Reason::HostedControlPlaneNotFound, "x"));
    sample.inputs.deleted_cluster = DeletedCluster::Of(identity);
    let decision = teardown(sample.basis(), soon()).unwrap();
    assert!(
        decision.steps.iter().any(|step| step.verb == Verb::Delete),
        "{:?}",
        decision.steps
    );
}
