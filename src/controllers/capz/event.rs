//! Which Events the role writes: one for each change of an entry, one when a problem begins that a person has to solve.
//! Pure.

use crate::api::ClusterRef;
use crate::capz::entry::Change;
use crate::capz::reason::{Problem, Reason, Severity};
use crate::runtime::event::{Event, What};

/// The Event for a change of an entry of this AzureCluster.
pub(super) fn changed(change: &Change, of: &ClusterRef) -> Event {
    let entry = format!("private endpoint {} of AzureCluster {of}", change.name());
    match change {
        Change::Add { .. } => Event::new(What::Created, format!("the entry for {entry} is added")),
        Change::Repair { fields, .. } => {
            let fields: Vec<&str> = fields.iter().map(|field| field.as_str()).collect();
            let note = format!("the entry for {entry} is repaired: {}", fields.join(", "));
            Event::new(What::Repaired, note)
        }
        Change::Remove { .. } => Event::new(What::Deleted, format!("the entry for {entry} is removed")),
    }
}

/// The Event for a problem; none where time alone helps.
pub(super) fn trouble(problem: &Problem) -> Option<Event> {
    let what = match (problem.reason, problem.reason.severity()) {
        (_, Severity::Info) => return None,
        (Reason::AzureDenied, _) => What::Denied,
        _ => What::Refused,
    };
    Some(Event::new(what, problem.message.clone()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::azure::arm::id::ResourceId;
    use crate::capz::entry::{DesiredEntry, Field, Position};

    const SERVICE: &str = "/subscriptions/s/resourceGroups/wc/providers/Microsoft.Network/privateLinkServices/l";

    #[test]
    fn change_of_an_entry_is_an_event() {
        let entry = DesiredEntry {
            name: "e".to_owned(),
            location: None,
            connection: "c".to_owned(),
            service: ResourceId::parse(SERVICE).unwrap(),
            request_message: None,
        };
        let at = Position { subnet: 0, entry: 0 };
        let fields = vec![Field::Location, Field::ManualApproval];
        let repair = Change::Repair {
            at,
            entry: entry.clone(),
            fields,
        };
        let name = "e".to_owned();
        let of = ClusterRef {
            namespace: "org".to_owned(),
            name: "mc".to_owned(),
        };
        let events =
            [Change::Add { subnet: 0, entry }, repair, Change::Remove { at, name }].map(|change| changed(&change, &of));
        let expected = [
            (What::Created, "is added"),
            (What::Repaired, "is repaired: location, manualApproval"),
            (What::Deleted, "is removed"),
        ];
        for (event, (what, text)) in events.iter().zip(expected) {
            let note = format!("the entry for private endpoint e of AzureCluster org/mc {text}");
            assert_eq!((event.what, &event.note), (what, &note));
        }
    }

    #[rstest]
    #[case::throttled(Reason::AzureThrottled, None)]
    #[case::not_there_yet(Reason::WaitingForEndpoint, None)]
    #[case::denied(Reason::AzureDenied, Some(What::Denied))]
    #[case::conflict(Reason::NameConflict, Some(What::Refused))]
    fn problem_that_a_person_solves_is_an_event(#[case] reason: Reason, #[case] expected: Option<What>) {
        let event = trouble(&Problem::new(reason, "why"));
        assert_eq!(event.as_ref().map(|event| event.what), expected);
        assert!(event.is_none_or(|event| event.note == "why"));
    }
}
