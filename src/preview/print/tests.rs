use std::time::Duration;

use crate::api::{AzurePrivateLinkService, Reason, Role};
use crate::azure::arm::id::ResourceId;
use crate::azure::kinds::Kind;
use crate::azure::plan::Why;
use crate::capz::entry::Position;
use crate::controllers::azure::{Decision, Preview};
use crate::controllers::capz::preview::{EntryChange, UnclaimedEntry};
use crate::controllers::preview::FieldChange;
use crate::engine::plan::Verb;
use crate::hypershift::problem::Problem;
use crate::preview::Object;
use crate::runtime::requeue::Requeue;
use serde_json::Value;

use super::*;

const ENDPOINT: &str =
    "/subscriptions/s/resourceGroups/guest/providers/Microsoft.Network/privateEndpoints/private-router-pe";

fn summary(status: &str, reason: &str, message: &str) -> ConditionSummary {
    ConditionSummary {
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

fn decision(verb: Verb, why: Why) -> Decision {
    let step = Step {
        verb,
        why,
        ..Step::needs(Kind::PrivateEndpoint, ResourceId::parse(ENDPOINT).unwrap(), "")
    };
    Decision {
        steps: vec![step],
        ..Decision::default()
    }
}

fn at_rest() -> Preview {
    let holds = || summary("True", "AzureSuccess", "Private Endpoint is available");
    let fact = Fact {
        kind: "private_endpoint",
        id: ENDPOINT.to_owned(),
        state: "Succeeded".to_owned(),
    };
    let mut at_rest = Preview::new(Role::Cpo, Lifecycle::Build, vec![fact]);
    at_rest.decision = decision(Verb::Keep, Why::UpToDate);
    at_rest.conditions = vec![ConditionChange {
        kind: "AzurePrivateEndpointAvailable",
        is: Some(holds()),
        would_be: Some(holds()),
    }];
    at_rest.add_requeue(Requeue::new(Duration::from_secs(290), Requeue::RESYNC));
    at_rest
}

fn drifted() -> Preview {
    Preview {
        pending: true,
        decision: decision(Verb::Delete, Why::Replace(vec!["subnet"])),
        finalizers: vec![FinalizerChange {
            verb: "set",
            kind: "HostedControlPlane".into(),
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
                would_be: Some(summary(
                    "False",
                    "Provisioning",
                    "private_endpoint private-router-pe is being replaced",
                )),
            },
            ConditionChange {
                kind: "AzurePrivateDNSAvailable",
                is: None,
                would_be: Some(summary(
                    "False",
                    "WaitingForPrivateEndpoint",
                    "record_set api waits for the endpoint",
                )),
            },
        ],
        requeue_after_seconds: Some(15),
        requeue_reason: Some("read_due"),
        ..at_rest()
    }
}

fn plan(roles: Vec<Preview>) -> Plan {
    let object = Object {
        namespace: "clusters-example".to_owned(),
        name: "private-router".to_owned(),
    };
    let mut cr = AzurePrivateLinkService::new(&object.name, Default::default());
    cr.metadata.namespace = Some(object.namespace.clone());
    let roles = roles.iter().map(|preview| RolePlan::of(&cr, preview).unwrap());
    Plan {
        roles: roles.collect(),
        object,
    }
}

#[test]
fn ready_and_drifted_side_as_text() {
    let ho = Preview {
        role: Role::Ho,
        ..at_rest()
    };
    insta::assert_snapshot!(plan(vec![ho, drifted()]).text());
}

#[test]
fn ready_and_drifted_side_as_json() {
    let ho = Preview {
        role: Role::Ho,
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
    let mut paused = at_rest();
    paused.decision.paused = true;
    assert_eq!(first(paused), "nothing to do, the cluster is paused");
    let waits = Preview {
        pending: true,
        ..at_rest()
    };
    assert_eq!(first(waits), "build, in progress, nothing to send to Azure");
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
    let message = "x\u{1b}[2J\nname, role ho: nothing to do";
    forged.decision.problem = Some(Problem::new(Reason::InvalidSpec, message));
    forged.conditions[0].is = Some(summary("True", "A", "\n  put everything"));
    let (clean, text) = (plan(vec![at_rest()]).text(), plan(vec![forged]).text());
    assert!(!text.contains('\u{1b}'));
    assert_eq!(text.lines().count(), clean.lines().count() + 1);
}

fn cluster_preview() -> ClusterPreview {
    let service = "/subscriptions/s/resourceGroups/wc/providers/Microsoft.Network/privateLinkServices/link";
    let mut preview = ClusterPreview::new(Lifecycle::Build);
    preview.pending = true;
    preview.add_fact("AzureCluster", "org/mc", "Internal");
    preview.add_fact("private_endpoint", ENDPOINT, "private endpoint e is not there yet");
    preview.entries = vec![EntryChange {
        verb: "repair",
        azure_cluster: "org/mc".to_owned(),
        name: "e".to_owned(),
        private_link_service: Some(service.to_owned()),
        fields: vec!["location", "manualApproval"],
    }];
    preview.ledger = vec![FieldChange {
        field: "e".to_owned(),
        is: Value::Null,
        would_be: json!("org/wc/uid"),
    }];
    preview.conditions = vec![ConditionChange {
        kind: "GSPrivateLinksReady",
        is: Some(summary("True", "", "all there")),
        would_be: Some(summary(
            "False",
            "WaitingForEndpoint",
            "private endpoint e is not there yet",
        )),
    }];
    preview.add_requeue(Some(Requeue::new(Duration::from_secs(5), Requeue::READ_DUE)));
    preview
}

fn cluster_plan(preview: &ClusterPreview) -> Plan {
    let (namespace, name) = ("org".to_owned(), "wc".to_owned());
    let of = ClusterRef {
        namespace: namespace.clone(),
        name: name.clone(),
    };
    Plan {
        roles: vec![RolePlan::of_cluster(&of, preview).unwrap()],
        object: Object { namespace, name },
    }
}

#[test]
fn workload_cluster_as_text_and_json() {
    let plan = cluster_plan(&cluster_preview());
    insta::assert_snapshot!(format!("{}{}", plan.text(), plan.json().unwrap()));
}

#[test]
fn name_of_an_entry_cannot_end_the_command_for_a_shell() {
    let name = "x'; rm -rf /; '";
    let mut preview = cluster_preview();
    let removal = crate::capz::patch::removal(Position { subnet: 0, entry: 1 }, name);
    preview.unclaimed = vec![UnclaimedEntry {
        name: name.to_owned(),
        removal,
    }];
    let text = cluster_plan(&preview).text();
    let command = text.lines().find_map(|line| line.split_once("kubectl ")).unwrap().1;
    assert_eq!(command.matches('\'').count(), 2, "{command}");
    assert!(command.contains(r"x\u0027; rm"), "{command}");
}
