//! What a reconcile reports on the custom resource: conditions and plain status fields. Data, and the pure rules of
//! writing them.

mod patches;

use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value, json};

pub use self::patches::{conditions_patch, fields_patch, status_patch};
use crate::api::prune::{is_known_finalizer, read_message, read_part};
use crate::api::{ConditionType, Reason, Role, Status};
use crate::controllers::contention::PublishedConditions;
use crate::controllers::custom_resource::CustomResource;
use crate::hypershift::conditions::{self, NewCondition};
use crate::hypershift::problem::Problem;

/// The desired conditions and plain fields.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// All conditions of the role.
    pub conditions: Vec<NewCondition>,
    /// `status` fields; null removes one.
    pub fields: Map<String, Value>,
}

impl Report {
    /// The conditions as they are to be stored on the object.
    pub fn dated(&self, cr: &impl CustomResource, now: Timestamp) -> Vec<Condition> {
        conditions::merge(cr.conditions(), self.conditions.clone(), now)
    }

    /// This report without these fields, which the API server rejects: their conditions report that.
    pub fn without<R: CustomResource>(mut self, refused: &[&str], cr: &R) -> Self {
        let generation = cr.condition_generation();
        let refused = refused.iter().filter(|name| self.fields.remove(**name).is_some());
        for name in refused.copied().collect::<Vec<_>>() {
            let text = format!("the API server does not take status.{name}");
            let refused_field = NewCondition::fails(R::condition_of(name), R::ERROR, text, generation);
            self.conditions.retain(|condition| condition.kind != refused_field.kind);
            self.conditions.push(refused_field);
        }
        let is_summary = |condition: &NewCondition| Some(condition.kind) == R::summary_kind();
        if self.conditions.iter().any(is_summary) {
            self.conditions.retain(|condition| !is_summary(condition));
            self.conditions.extend(cr.summary(&self.conditions));
        }
        self
    }
}

/// A condition that does not hold because of a problem.
pub fn fails(kind: ConditionType, problem: &Problem, generation: Option<i64>) -> NewCondition {
    NewCondition {
        class: problem.class,
        ..NewCondition::fails(kind, problem.reason, problem.message.clone(), generation)
    }
}

/// Like [`fails`], for a desired resource; but a True stays while the resource only could not be read. Nothing is known
/// to have changed then, and an outage of the cloud would be reported as one of each cluster.
pub fn fails_unless_unread(cr: &impl CustomResource, kind: ConditionType, problem: &Problem) -> NewCondition {
    let generation = cr.condition_generation();
    let stored = conditions::get(cr.conditions(), kind)
        .filter(|stored| stored.status == Status::True.as_str() && stored.observed_generation == generation);
    match stored.and_then(|stored| Some((Reason::parse(&stored.reason)?, &stored.message))) {
        Some((reason, message)) if problem.unread => NewCondition {
            reason,
            ..NewCondition::holds(kind, message, generation)
        },
        _ => fails(kind, problem, generation),
    }
}

/// The parts of a custom resource whose change needs a reconcile of `role`, as one text.
///
/// The other role's conditions count only for the role that summarises them; the role's own count only where another
/// writer contradicts `published` and it is time to answer. A pruned object, as watches keep it, has the same text.
pub fn fingerprint<R: CustomResource>(cr: &R, role: Role, published: &PublishedConditions, now: Instant) -> String {
    let stored = cr.conditions();
    let sums_up = R::part(role).is_some_and(|part| part.summary.is_some());
    let others = R::PARTS.iter().filter(|part| sums_up && part.role != role);
    let theirs = others
        .flat_map(|part| part.conditions)
        .filter_map(|kind| conditions::get(stored, *kind))
        .map(|c| json!([c.type_, c.status, read_message(&c.reason), read_message(&c.message)]));
    let theirs: Vec<Value> = theirs.collect();
    let meta = cr.meta();
    let annotations = meta.annotations.as_ref();
    let read = R::READ_ANNOTATIONS
        .iter()
        .map(|name| annotations.and_then(|all| all.get(*name)).map(|value| read_part(value)));
    let finalizers = meta.finalizers.iter().flatten().filter(|name| is_known_finalizer(name));
    let shown = cr.status_fields();
    let parts = R::part(role).into_iter();
    let fields = parts.flat_map(|part| part.status_fields.iter().chain(part.read_fields));
    let fields: Vec<&Value> = fields.map(|field| &shown[*field]).collect();
    json!([
        meta.uid,
        meta.generation,
        meta.deletion_timestamp.is_some(),
        finalizers.collect::<Vec<_>>(),
        read.collect::<Vec<_>>(),
        fields,
        cr.is_locked_for_others(role),
        theirs,
        published.heeded(stored, R::conditions_of(role), now),
    ])
    .to_string()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use rstest::rstest;

    use super::*;
    use crate::api::markers::{CPO_FINALIZER, HO_FINALIZER, HO_INTENT};
    use crate::api::{AWSEndpointService, AzurePrivateLinkService};
    use crate::azure::arm::error::ArmError;
    use crate::engine::failure::Class;
    use crate::runtime::prune::Prune;

    #[test]
    fn published_endpoint_service_wakes_the_guests_side_on_aws() {
        let text = |status: Value, role| {
            let cr: AWSEndpointService = serde_json::from_value(json!({
                "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
                "metadata": {"name": "private-router", "namespace": "n", "uid": "u"}, "spec": {}, "status": status}))
            .unwrap();
            fingerprint(&cr, role, &PublishedConditions::default(), Instant::now())
        };
        let published = || json!({"endpointServiceName": "x"});
        assert_ne!(text(json!({}), Role::Cpo), text(published(), Role::Cpo));
        assert_eq!(
            text(json!({}), Role::Ho),
            text(json!({"endpointID": "vpce-1"}), Role::Ho)
        );
    }

    pub(super) fn cr(status: Value) -> AzurePrivateLinkService {
        serde_json::from_value(json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AzurePrivateLinkService",
            "metadata": {"name": "private-router", "namespace": "n", "resourceVersion": "7", "uid": "u", "generation": 1},
            "spec": {"subscriptionID": "s", "resourceGroupName": "g", "location": "eastus", "guestSubnetID": "x", "guestVNetID": "y"},
            "status": status}))
        .unwrap()
    }

    pub(super) fn report() -> Report {
        let condition = NewCondition::fails(ConditionType::AzurePLSCreated, Reason::Provisioning, "wait", Some(1));
        let fields = Map::from_iter([
            ("privateLinkServiceID".to_owned(), json!("id")),
            ("privateLinkServiceAlias".to_owned(), Value::Null),
        ]);
        Report {
            conditions: vec![condition],
            fields,
        }
    }

    #[rstest]
    #[case::request_limit(Class::Throttled, true, "True", 1, "True")]
    #[case::busy(Class::Busy, true, "True", 1, "True")]
    #[case::denied(Class::Denied, false, "True", 1, "True")]
    #[case::out_of_reach(Class::Down, false, "True", 1, "True")]
    #[case::denied_for_long(Class::Denied, true, "True", 1, "False")]
    #[case::out_of_reach_for_long(Class::Down, true, "True", 1, "False")]
    #[case::did_not_hold_before(Class::Down, false, "False", 1, "False")]
    #[case::published_for_another_specification(Class::Throttled, false, "True", 0, "False")]
    fn true_is_kept_while_reads_fail_until_that_lasts(
        #[case] class: Class,
        #[case] lasting: bool,
        #[case] stored: &str,
        #[case] generation: i64,
        #[case] expected: &str,
    ) {
        let kind = ConditionType::AzurePrivateDNSAvailable;
        let stored = json!({"type": kind.as_str(), "status": stored, "reason": "ZoneShadowsBaseDomain", "message": "but",
            "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let cr = cr(json!({"conditions": [stored]}));
        let error = ArmError {
            lasting,
            ..ArmError::own(class, "X")
        };
        let read = Problem::unread(Reason::DNSZoneCreationFailed, "zone", &error);
        let reported = fails_unless_unread(&cr, kind, &read);
        assert_eq!(reported.status.as_str(), expected);
        let stays_true = reported.status == Status::True;
        assert_eq!(
            (reported.reason, reported.message == "but"),
            (
                if stays_true {
                    Reason::ZoneShadowsBaseDomain
                } else {
                    read.reason
                },
                stays_true
            )
        );
        let write = Problem::error(Reason::DNSZoneCreationFailed, "zone", &error);
        assert_eq!(fails_unless_unread(&cr, kind, &write).status, Status::False);
    }

    fn text_of(cr: &AzurePrivateLinkService, role: Role) -> String {
        fingerprint(cr, role, &PublishedConditions::default(), Instant::now())
    }

    #[test]
    fn the_alias_wakes_both_and_the_endpoint_only_its_own_role() {
        let (before, alias, endpoint) = (
            cr(json!({"dnsZoneName": "a.b"})),
            cr(json!({"dnsZoneName": "a.b", "privateLinkServiceAlias": "x"})),
            cr(json!({"dnsZoneName": "a.b", "privateEndpointIP": "10.0.0.1"})),
        );
        assert_ne!(text_of(&before, Role::Cpo), text_of(&alias, Role::Cpo));
        assert_ne!(text_of(&before, Role::Ho), text_of(&alias, Role::Ho));
        assert_ne!(text_of(&before, Role::Cpo), text_of(&endpoint, Role::Cpo));
        assert_eq!(text_of(&before, Role::Ho), text_of(&endpoint, Role::Ho));
    }

    #[rstest]
    #[case::recreated(|cr: &mut AzurePrivateLinkService| cr.metadata.uid = Some("v".into()))]
    #[case::spec(|cr: &mut AzurePrivateLinkService| cr.metadata.generation = Some(2))]
    #[case::finalizers(|cr: &mut AzurePrivateLinkService| cr.metadata.finalizers = Some(vec![CPO_FINALIZER.into()]))]
    #[case::deletion(|cr: &mut AzurePrivateLinkService| cr.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH)))]
    fn change_of_the_object_wakes_both_roles(#[case] change: fn(&mut AzurePrivateLinkService)) {
        let mut after = cr(Value::Null);
        change(&mut after);
        for role in [Role::Ho, Role::Cpo] {
            assert_ne!(text_of(&cr(Value::Null), role), text_of(&after, role));
        }
    }

    #[rstest]
    #[case("internalLoadBalancerID", true)]
    #[case("privateLinkServiceID", true)]
    #[case("privateEndpointID", false)]
    #[case("privateDNSZoneID", false)]
    #[case("baseDomainDNSZoneID", false)]
    #[case("dnsZoneName", false)]
    fn field_of_the_status_wakes_whom_it_concerns(#[case] field: &str, #[case] management: bool) {
        let wakes = |role| text_of(&cr(json!({})), role) != text_of(&cr(json!({field: "x"})), role);
        assert_eq!((wakes(Role::Ho), wakes(Role::Cpo)), (management, true));
    }

    #[test]
    fn own_condition_wakes_only_where_it_is_contradicted() {
        let now = Instant::now();
        let reported = |status: Status, message: &str| {
            let condition = NewCondition {
                status,
                ..NewCondition::holds(ConditionType::AzurePLSCreated, message, Some(1))
            };
            conditions::merge(&[], vec![condition], Timestamp::UNIX_EPOCH)
        };
        let own = reported(Status::True, "ours");
        let mut published = PublishedConditions::default();
        published.written(&[], &own, now);
        let text_of = |all: &[Condition]| fingerprint(&cr(json!({"conditions": all})), Role::Ho, &published, now);
        assert_eq!(text_of(&own), text_of(&reported(Status::True, "theirs")));
        assert_ne!(text_of(&own), text_of(&reported(Status::False, "theirs")));
    }

    #[test]
    fn only_annotations_that_are_read_cause_a_reconcile() {
        let mut other = cr(Value::Null);
        other.metadata.annotations = Some([("example.com/note".to_owned(), "x".to_owned())].into());
        let mut intent = cr(Value::Null);
        intent.metadata.annotations = Some([(crate::api::markers::CPO_INTENT.to_owned(), "{}".to_owned())].into());
        assert_eq!(text_of(&cr(Value::Null), Role::Ho), text_of(&other, Role::Ho));
        assert_ne!(text_of(&cr(Value::Null), Role::Ho), text_of(&intent, Role::Ho));
    }

    #[test]
    fn object_that_is_pruned_is_no_change() {
        let note = "x".repeat(10_000);
        let all = [HO_INTENT, "example.com/note"].map(|name| (name.to_owned(), note.clone()));
        let message = json!({"type": "AzurePLSCreated", "status": "False", "reason": "NotOurs", "message": note,
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let mut whole = cr(json!({"dnsZoneName": "a.b", "conditions": [message]}));
        whole.metadata.annotations = Some(all.into());
        whole.metadata.finalizers = Some(vec![HO_FINALIZER.to_owned(), "example.com/theirs".to_owned()]);
        let mut pruned = whole.clone();
        pruned.prune();
        assert_ne!(whole, pruned);
        for role in [Role::Ho, Role::Cpo] {
            assert_eq!(text_of(&whole, role), text_of(&pruned, role));
        }
    }

    #[test]
    fn conditions_of_the_management_side_wake_the_guests_side() {
        let before = cr(json!({"dnsZoneName": "a.b"}));
        let patch = conditions_patch(&before, &report().dated(&before, Timestamp::UNIX_EPOCH)).unwrap();
        let after = cr(json!({"dnsZoneName": "a.b", "conditions": patch["status"]["conditions"]}));
        assert_ne!(text_of(&before, Role::Cpo), text_of(&after, Role::Cpo));
    }
}
