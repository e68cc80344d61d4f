//! Several endpoints to one endpoint service: which one is kept, and what becomes of the others.

use serde_json::Value;

use super::{Basis, Building, Stop, owned};
use crate::api::AWSEndpointService;
use crate::aws::body::{state, text};
use crate::aws::cloud::{Aws, Observed};
use crate::aws::kinds::Kind;
use crate::aws::kinds::further_endpoint::FurtherEndpoint;
use crate::aws::kinds::records::Records;
use crate::aws::kinds::vpc_endpoint::{VpcEndpoint, all_shown, dns_name, is_lost};
use crate::aws::slot::Slot;
use crate::controllers::aws::{Needs, Step};
use crate::engine::cloud::Cloud;
use crate::engine::plan::ensure_absent;
use crate::engine::resource::Owned;
use crate::hypershift::aws::intent::CpoIntent;
use crate::runtime::event::{Event, What};

/// The id of the endpoint that is kept where AWS shows several of the cluster's: the one to which the records lead, if
/// it is available, because resolvers know it for minutes after a change; else the one that the status shows; else that
/// which is recorded; else the one to which the records lead. One that has failed is kept only if no other is
/// available. None leaves the choice to the endpoints' states and ages.
pub(super) fn kept(
    basis: Basis<'_>,
    recorded: &CpoIntent,
    desired: &VpcEndpoint,
    records: Option<Records>,
) -> Result<Option<String>, Needs> {
    let observed = basis.facts.read(Kind::VpcEndpoint, &desired.slot)?;
    let own: Vec<&Value> = observed.found().into_iter().flat_map(all_shown).collect();
    let own: Vec<&Value> = own.into_iter().filter(|body| desired.is_owned(body)).collect();
    if own.len() < 2 {
        return Ok(None);
    }
    let is_available = |body: &&Value| state(body) == "available";
    let is_usable = |body: &&Value| !is_lost(body) && state(body) != "deleting";
    let usable = match own.iter().any(&is_available) {
        true => own.into_iter().filter(is_usable).collect(),
        false => own,
    };
    let served = match records {
        Some(records) => served_by_records(basis, &usable, records)?,
        None => None,
    };
    let named = [shown_id(basis.cr), recorded.endpoint_id.as_deref()];
    let named = named.into_iter().flatten();
    let with_id = |id: &str| usable.iter().copied().find(|body| Aws::instance(body) == id);
    let kept = served
        .filter(is_available)
        .or_else(|| named.filter_map(with_id).next())
        .or(served);
    Ok(kept.map(|body| Aws::instance(body).to_owned()))
}

/// The endpoint to which the records lead.
fn served_by_records<'a>(
    basis: Basis<'_>,
    own: &[&'a Value],
    mut records: Records,
) -> Result<Option<&'a Value>, Needs> {
    let Observed::Found(current) = basis.facts.read(Kind::Records, &records.slot)? else {
        return Ok(None);
    };
    Ok(own.iter().copied().find(|body| {
        records.target = dns_name(body).unwrap_or_default().to_owned();
        records.lead_to_target(current)
    }))
}

fn shown_id(cr: &AWSEndpointService) -> Option<&str> {
    cr.status.as_ref()?.endpoint_id.as_deref()
}

impl Building<'_> {
    /// Adds the steps that delete the cluster's further endpoints, once the path leads through the one that is kept,
    /// and reports those that stay.
    pub(super) fn delete_further(&mut self, slot: &Slot) -> Result<(), Stop> {
        let Self { basis, guest, .. } = *self;
        let decision = &mut self.decision;
        let mut steps = decision.steps.iter();
        let own = steps.find(|step| step.key == *slot).and_then(Step::ready);
        let records = decision.step(Kind::Records);
        let Some(own) = own
            .filter(|_| records.is_none_or(|step| step.ready().is_some()))
            .map(Aws::instance)
        else {
            return Ok(());
        };
        let own = own.to_owned();
        let Observed::Found(current) = basis.facts.read(Kind::VpcEndpoint, slot)? else {
            return Ok(());
        };
        let (mut deleted, mut stay) = (Vec::new(), Vec::new());
        for further in all_shown(current).filter(|body| Aws::instance(body) != own && state(body) != "deleting") {
            let id = Aws::instance(further);
            let desired = FurtherEndpoint {
                slot: Slot::further_endpoint(&guest.account, &guest.vpc, id),
                service_name: text(further, "ServiceName").to_owned(),
                owner_tags: owned::endpoint_of(basis, guest, "").owner_tags,
            };
            if !desired.is_owned(further) {
                stay.push(format!(
                    "endpoint {id} beside {own} stays: nothing proves that it is this cluster's"
                ));
                continue;
            }
            let step = ensure_absent(&desired, basis.facts.read(Kind::FurtherEndpoint, &desired.slot)?);
            if step.gone() {
                continue;
            }
            match step.why.error() {
                Some(error) => stay.push(format!("endpoint {id} beside {own} is not deleted yet: {error}")),
                None => deleted.push(format!(
                    "endpoint {id} beside {own} is being deleted: the cluster has one too many"
                )),
            }
            decision.steps.push(step);
        }
        for (topic, what, reports) in [
            ("further endpoints", What::Deleted, deleted),
            ("further endpoints that stay", What::Refused, stay),
        ] {
            let event = (!reports.is_empty()).then(|| Event::new(what, reports.join("; ")));
            decision.standing.push((topic, event));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::super::build;
    use super::*;
    use crate::api::Reason;
    use crate::aws::api::error::AwsError;
    use crate::aws::owner_tags::CLUSTER_ID_TAG;
    use crate::controllers::aws::{Decision, Outcome};
    use crate::controllers::vpc_endpoint::samples::{
        CLUSTER_ID, DNS_NAME, ENDPOINT, SERVICE, Sample, VPC, ZONE, account, endpoint, endpoint_slot, records,
        records_slot,
    };
    use crate::controllers::vpc_endpoint::status::after_build;
    use crate::engine::failure::Class;
    use crate::engine::plan::Verb;

    const SECOND: &str = "vpce-0fffffffffffffff0";
    const SECOND_NAME: &str = "vpce-0fffffffffffffff0-a.vpce-svc-0123456789abcdef0.us-east-1.vpce.amazonaws.com";

    /// A second endpoint with these tags.
    fn second(tags: &Value) -> Value {
        let mut body = endpoint("available");
        body["Id"] = json!(SECOND);
        body["DnsNames"] = json!([SECOND_NAME]);
        body["Tags"] = tags.clone();
        body
    }

    fn own_tags() -> Value {
        json!({"AWSEndpointService": "private-router", CLUSTER_ID_TAG: CLUSTER_ID})
    }

    fn further_slot(id: &str) -> Slot {
        Slot::further_endpoint(&account(), VPC, id)
    }

    /// A path, and the second endpoint, which AWS shows first.
    fn with_second(tags: &Value) -> Sample {
        let mut sample = Sample::ready();
        let mut shown = second(tags);
        shown["Candidates"] = json!([endpoint("available")]);
        sample.shows(endpoint_slot(SERVICE), shown);
        sample.shows(further_slot(SECOND), second(tags));
        sample
    }

    /// The same where both are certainly the cluster's, in these states: the one in the status, and the second.
    fn with_own_second(states: [&str; 2]) -> Sample {
        let mut sample = Sample::ready();
        let (mut first, mut shown) = (endpoint(states[0]), second(&own_tags()));
        first["Tags"] = own_tags();
        shown["State"] = json!(states[1]);
        sample.shows(further_slot(ENDPOINT), first.clone());
        sample.shows(further_slot(SECOND), shown.clone());
        shown["Candidates"] = json!([first]);
        sample.shows(endpoint_slot(SERVICE), shown);
        sample
    }

    fn deleted(decision: &Decision) -> Vec<&Slot> {
        let deletes = decision.steps.iter().filter(|step| step.verb == Verb::Delete);
        deletes.map(|step| &step.key).collect()
    }

    fn note(decision: &Decision) -> String {
        let about = decision
            .standing
            .iter()
            .filter(|(topic, _)| topic.starts_with("further endpoints"));
        let notes = about.filter_map(|(_, event)| Some(event.as_ref()?.note.as_str()));
        notes.collect()
    }

    #[test]
    fn endpoint_too_many_is_deleted_beside_the_one_in_the_status() {
        let sample = with_second(&own_tags());
        let decision = build(sample.basis()).unwrap();
        assert_eq!(deleted(&decision), [&further_slot(SECOND)]);
        assert!(
            note(&decision).contains(SECOND) && note(&decision).contains("one too many"),
            "{}",
            note(&decision)
        );
        let outcome = |step: &Step| {
            if step.writes() {
                Outcome::Accepted
            } else {
                Outcome::Nothing
            }
        };
        let outcomes: Vec<Outcome> = decision.steps.iter().map(outcome).collect();
        let report = after_build(&sample.cr, &decision, &outcomes);
        assert_eq!(report.conditions[0].reason, Reason::AWSSuccess, "{report:?}");
        assert_eq!(report.fields["endpointID"], ENDPOINT);
    }

    #[test]
    fn endpoint_without_the_owners_mark_is_only_reported() {
        let sample = with_second(&json!({"AWSEndpointService": "private-router"}));
        let decision = build(sample.basis()).unwrap();
        assert_eq!(deleted(&decision), Vec::<&Slot>::new());
        assert!(note(&decision).contains("stays"), "{}", note(&decision));
    }

    /// Resolvers know the name of the endpoint that serves for minutes.
    #[rstest]
    #[case::beside_an_available_one("available")]
    #[case::beside_a_pending_one("pending")]
    fn endpoint_that_serves_is_kept_whatever_the_status_shows(#[case] other: &str) {
        let mut sample = with_own_second([other, "available"]);
        sample.shows(records_slot(ZONE), records(SECOND_NAME));
        let decision = build(sample.basis()).unwrap();
        assert_eq!(deleted(&decision), [&further_slot(ENDPOINT)]);
        assert!(!decision.step(Kind::Records).unwrap().writes(), "{decision:?}");
    }

    #[rstest]
    #[case::pending("pending")]
    #[case::rejected("rejected")]
    fn nothing_is_deleted_before_the_records_lead_elsewhere(#[case] state: &str) {
        let mut sample = with_own_second(["available", state]);
        sample.shows(records_slot(ZONE), records(SECOND_NAME));
        let decision = build(sample.basis()).unwrap();
        assert_eq!(deleted(&decision), Vec::<&Slot>::new());
        assert!(decision.step(Kind::Records).unwrap().writes(), "{decision:?}");
    }

    #[rstest]
    #[case::first(DNS_NAME, SECOND)]
    #[case::second(SECOND_NAME, ENDPOINT)]
    fn without_a_status_the_records_decide_which_is_kept(#[case] target: &str, #[case] expected: &str) {
        let mut sample = with_own_second(["available", "available"]);
        sample.cr.status.as_mut().unwrap().endpoint_id = None;
        sample.has_zones(&[(ZONE, "example.hypershift.local")]);
        sample.shows(records_slot(ZONE), records(target));
        assert_eq!(deleted(&build(sample.basis()).unwrap()), [&further_slot(expected)]);
    }

    #[test]
    fn endpoint_whose_deletion_fails_is_reported_to_stay() {
        let mut sample = with_second(&own_tags());
        let denied = AwsError::own(Class::Denied, "UnauthorizedOperation");
        sample.observes(further_slot(SECOND), Observed::DeleteFailed(denied));
        let decision = build(sample.basis()).unwrap();
        assert!(note(&decision).contains("is not deleted yet"), "{}", note(&decision));
    }

    #[test]
    fn one_that_is_gone_meanwhile_needs_nothing() {
        let mut sample = with_second(&own_tags());
        sample.observes(further_slot(SECOND), Observed::Absent);
        let decision = build(sample.basis()).unwrap();
        assert!(decision.steps.iter().all(|step| step.ready().is_some()), "{decision:?}");
        assert_eq!(note(&decision), "");
    }
}
