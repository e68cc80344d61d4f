//! How many subscriptions a service can be shown to.

use super::*;

fn allowing(more: usize) -> AzurePrivateLinkService {
    let mut allowing = cr(Value::Null, json!({}));
    let ids = (0..more).map(|n| format!("44444444-4444-4444-8444-{n:012}"));
    allowing.spec.additional_allowed_subscriptions = Some(ids.collect());
    allowing
}

fn shown_to(decision: &Decision) -> usize {
    match &decision.step(Kind::LinkService).unwrap().verb {
        Verb::Put(body) => body["properties"]["visibility"]["subscriptions"]
            .as_array()
            .unwrap()
            .len(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn as_many_subscriptions_as_azure_takes_are_allowed() {
    let (decision, _) = run(&allowing(99), &around(), &[subnet()]);
    assert_eq!(shown_to(&decision), 100);
}

#[test]
fn one_subscription_too_many_is_a_problem_and_no_call() {
    let (decision, asked) = run(&allowing(100), &around(), &[subnet()]);
    let problem = decision.problem.unwrap();
    assert_eq!(
        (problem.reason, problem.message.as_str()),
        (
            Reason::PLSCreationFailed,
            "101 subscriptions are allowed, the guest's own included; Azure takes 100"
        )
    );
    assert_eq!((decision.steps, asked), (Vec::new(), Vec::new()));
}

#[test]
fn subscription_named_twice_or_in_other_case_or_the_guests_own_counts_once() {
    let mut twice = allowing(99);
    let list = twice.spec.additional_allowed_subscriptions.as_mut().unwrap();
    let guest = crate::controllers::samples::GUEST.to_ascii_uppercase();
    list.extend([list[0].to_ascii_uppercase(), guest]);
    let (decision, _) = run(&twice, &around(), &[subnet()]);
    assert_eq!(shown_to(&decision), 100);
}
