use hyperlink::controllers::preview::{Fact, FieldChange, FinalizerChange, PreviewStep};
use serde_json::Value;

use super::*;
use crate::cli::Object;

const ENDPOINT: &str =
    "/subscriptions/s/resourceGroups/guest/providers/Microsoft.Network/privateEndpoints/private-router-pe";

fn summary(status: &str, reason: &str, message: &str) -> ConditionSummary {
    ConditionSummary {
        status: Some(status.to_owned()),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

fn at_rest() -> Preview {
    let holds = || summary("True", "AzureSuccess", "Private Endpoint is available");
    Preview {
        role: "cpo",
        pending: false,
        unreadable: false,
        lifecycle: "build",
        paused: false,
        problem: None,
        facts: vec![Fact {
            kind: "private_endpoint",
            id: ENDPOINT.to_owned(),
            state: "Succeeded".to_owned(),
        }],
        steps: vec![PreviewStep {
            verb: "keep",
            kind: "private_endpoint",
            id: ENDPOINT.to_owned(),
            why: "as wanted".to_owned(),
            fields: Vec::new(),
        }],
        finalizers: Vec::new(),
        intent: None,
        fields: Vec::new(),
        conditions: vec![ConditionChange {
            kind: "AzurePrivateEndpointAvailable",
            is: Some(holds()),
            would_be: holds(),
        }],
        requeue_after_seconds: Some(290),
        requeue_reason: Some("resync"),
    }
}

fn drifted() -> Preview {
    Preview {
        pending: true,
        steps: vec![PreviewStep {
            verb: "delete",
            kind: "private_endpoint",
            id: ENDPOINT.to_owned(),
            why: "cannot be changed in place: subnet".to_owned(),
            fields: vec!["subnet"],
        }],
        finalizers: vec![FinalizerChange {
            verb: "set",
            kind: "HostedControlPlane",
            finalizer: "hypershift.openshift.io/azure-pls-endpoint-cleanup",
        }],
        intent: Some(json!({"cluster": "example"})),
        fields: vec![FieldChange {
            field: "privateEndpointIP".to_owned(),
            is: json!("10.0.0.5"),
            would_be: Value::Null,
        }],
        conditions: vec![
            ConditionChange {
                kind: "AzurePrivateEndpointAvailable",
                is: Some(summary("True", "AzureSuccess", "Private Endpoint is available")),
                would_be: summary(
                    "False",
                    "Provisioning",
                    "private_endpoint private-router-pe is being replaced",
                ),
            },
            ConditionChange {
                kind: "AzurePrivateDNSAvailable",
                is: None,
                would_be: summary(
                    "False",
                    "WaitingForPrivateEndpoint",
                    "record_set api waits for the endpoint",
                ),
            },
        ],
        requeue_after_seconds: Some(15),
        requeue_reason: Some("read_due"),
        ..at_rest()
    }
}

fn plan(roles: Vec<Preview>) -> Plan {
    Plan {
        object: Object {
            namespace: "clusters-example".to_owned(),
            name: "private-router".to_owned(),
        },
        roles,
    }
}

#[test]
fn ready_and_drifted_side_as_text() {
    let ho = Preview {
        role: "ho",
        ..at_rest()
    };
    insta::assert_snapshot!(plan(vec![ho, drifted()]).text());
}

#[test]
fn ready_and_drifted_side_as_json() {
    let ho = Preview {
        role: "ho",
        ..at_rest()
    };
    insta::assert_snapshot!(plan(vec![ho, drifted()]).json().unwrap());
}

#[test]
fn first_line_names_why_nothing_is_sent() {
    let first = |preview: Preview| {
        let text = plan(vec![preview]).text();
        text.lines().next().unwrap().split_once(": ").unwrap().1.to_owned()
    };
    let paused = Preview {
        paused: true,
        ..at_rest()
    };
    assert_eq!(first(paused), "nothing to do, the cluster is paused");
    let waits = Preview {
        pending: true,
        ..at_rest()
    };
    assert_eq!(first(waits), "build, not settled, nothing to send to Azure");
    let unreadable = Preview {
        unreadable: true,
        ..at_rest()
    };
    assert_eq!(
        first(unreadable),
        "something could not be read, the plan is not complete"
    );
}

#[test]
fn text_of_others_cannot_steer_the_terminal_or_add_lines() {
    let mut forged = at_rest();
    forged.problem = Some(summary("", "InvalidSpec", "x\u{1b}[2J\nname, role ho: nothing to do"));
    forged.conditions[0].is = Some(summary("True", "A", "\n  put everything"));
    let (clean, text) = (plan(vec![at_rest()]).text(), plan(vec![forged]).text());
    assert!(!text.contains('\u{1b}'));
    assert_eq!(text.lines().count(), clean.lines().count() + 1);
}
