//! A path whose deletion AWS denies for ever: it waits, and a person may abandon what is left.

use hyperlink::api::markers::ABANDON;
use rstest::rstest;

use super::cluster::Reported;
use super::many::{Many, entry};
use super::*;
use crate::sim::fault;

const ALWAYS: u64 = 1_000_000;
/// The UID of the custom resource.
const UID: &str = "cr";

impl Life {
    fn annotated(&self, value: &str) {
        let annotations = json!({"metadata": {"annotations": {ABANDON: value}}});
        self.cluster.forge(CR, &annotations);
    }

    /// What there is of the path beside this.
    fn added_to(&self, empty: &[String]) -> Vec<String> {
        let mut remains = self.remains();
        remains.retain(|id| !empty.contains(id));
        remains
    }

    /// Annotates with this value, which does not count: the message then ends with why not, if that is for this role.
    async fn is_not_abandoned_by(&mut self, value: &str, condition: &str, why: Option<&str>) {
        self.annotated(value);
        self.run_for(Duration::from_secs(900)).await;
        assert!(self.cr().is_some(), "{value} counts");
        let (status, reason, message) = self.condition(condition);
        assert_eq!(
            (status.as_str(), reason.as_str()),
            ("False", "DeletionFailed"),
            "{value}"
        );
        let complaint = why.map(|why| format!("; the annotation {ABANDON} does not count: {why}"));
        let is_reported = match &complaint {
            Some(complaint) => message.ends_with(complaint),
            None => !message.contains("annotation"),
        };
        assert!(is_reported, "{value}: {message}");
    }

    /// Annotates with the right value: the custom resource goes. Returns the note of the Event, of which there is one
    /// on each object.
    async fn is_abandoned_by(&mut self, value: &str) -> String {
        self.cluster.take_reported();
        self.annotated(value);
        self.run_for(Duration::from_secs(60)).await;
        assert!(self.cr().is_none(), "{:#}", self.cluster.get(CR).unwrap());
        let mut events = self.cluster.take_reported();
        events.retain(|event| event.reason == "Abandoned");
        let on_cr: Vec<&Reported> = events
            .iter()
            .filter(|event| event.regarding == "AWSEndpointService")
            .collect();
        assert_eq!(on_cr.len(), 1, "{events:#?}");
        let is_same = |event: &Reported| event.kind == "Warning" && event.note == on_cr[0].note;
        assert!(events.len() <= 2 && events.iter().all(is_same), "{events:#?}");
        on_cr[0].note.clone()
    }
}

/// [W7g] on AWS: the denied action is named, and only the annotation for this object and role releases.
#[rstest]
#[case::endpoint_service(
    "ho",
    "DeleteVpcEndpointServiceConfigurations",
    "AWSEndpointServiceAvailable",
    ":vpc-endpoint-service/"
)]
#[case::security_group("cpo", "DeleteSecurityGroup", "AWSEndpointAvailable", ":security-group/")]
#[tokio::test(start_paused = true)]
async fn denied_deletion_is_abandoned_by_a_word_alone(
    #[case] role: &str,
    #[case] action: &str,
    #[case] condition: &str,
    #[case] kind: &str,
) {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    let denied = json!({"status": 403, "code": "UnauthorizedOperation"});
    life.aws.set_faults(&fault(&format!("/{action}$"), ALWAYS, &denied));
    // The management side waits for the guest's no longer.
    let long_ago = Timestamp::now() - jiff::SignedDuration::from_mins(11);
    life.cluster.delete_at(CR, &long_ago.to_string());
    life.run_for(Duration::from_secs(1_800)).await;
    assert!(life.cr().is_some(), "released though AWS denies the deletion");
    let (status, reason, message) = life.condition(condition);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "DeletionFailed"));
    assert!(message.ends_with(&format!(" for ec2:{action}")), "{message}");
    let left = life.added_to(&empty);
    assert!(left.len() == 1 && left[0].contains(kind), "{left:?}");
    let other = if role == "ho" { "cpo" } else { "ho" };
    let of_another = format!("another/{role}/the account is closed");
    let why = "it does not begin with the uid of this object";
    life.is_not_abandoned_by(&of_another, condition, Some(why)).await;
    let of_no_role = format!("{UID}/admin/the account is closed");
    life.is_not_abandoned_by(&of_no_role, condition, Some("it names no role, ho or cpo"))
        .await;
    let without_reason = format!("{UID}/{role}/");
    life.is_not_abandoned_by(&without_reason, condition, Some("it gives no reason"))
        .await;
    let of_the_other = format!("{UID}/{other}/the account is closed");
    life.is_not_abandoned_by(&of_the_other, condition, None).await;
    let note = life
        .is_abandoned_by(&format!("{UID}/{role}/the account is closed"))
        .await;
    let (_, id) = left[0].rsplit_once('/').unwrap();
    let begin = format!("abandoned in AWS (the account is closed): {id} ");
    assert!(note.starts_with(&begin), "{note}");
    let forwards = note.ends_with("an endpoint service that is abandoned still forwards");
    assert_eq!(forwards, role == "ho", "{note}");
    assert_eq!(life.added_to(&empty), left);
}

/// Nobody can even read what is there: the role that the process assumes is gone, and the last session is over.
#[tokio::test(start_paused = true)]
async fn guests_side_without_a_session_is_abandoned() {
    let mut many = Many::new(&entry());
    let life = &mut many.life;
    let empty = life.remains();
    life.until_available().await;
    let mut left = life.added_to(&empty);
    let denied = json!({"status": 403, "code": "AccessDenied"});
    life.aws.set_faults(&fault("/AssumeRole$", ALWAYS, &denied));
    life.run_for(Duration::from_secs(7_200)).await;
    let shown = life.cr().unwrap().status.unwrap();
    life.cluster.delete_at(CR, &Timestamp::now().to_string());
    life.run_for(Duration::from_secs(1_800)).await;
    assert!(life.cr().is_some(), "released though nothing could be deleted");
    let (status, reason, message) = life.condition("AWSEndpointAvailable");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "DeletionFailed"));
    assert!(message.contains("NoSession"), "{message}");
    let note = life.is_abandoned_by(&format!("{UID}/cpo/the account is closed")).await;
    for id in [shown.endpoint_id, shown.security_group_id] {
        let id = id.unwrap();
        assert!(note.contains(&format!("{id} ")), "{id}: {note}");
    }
    // The management side has deleted its own.
    left.retain(|id| !id.contains(":vpc-endpoint-service/"));
    assert_eq!(life.added_to(&empty), left);
    assert_eq!(left.len(), 4, "endpoint, group and two records: {left:#?}");
}
