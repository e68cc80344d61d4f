//! The situation that no list of load balancers can be read.

use super::*;

fn unlisted() -> Facts {
    let error = ArmError::own(Class::Down, "Http503");
    Facts {
        lists: Lists {
            frontends: [((settings().scope.subscription, Some("mgmt".to_owned())), Err(error))].into(),
            ..Lists::default()
        },
        ..Facts::default()
    }
}

/// The load balancer that the status shows, with a frontend of this name.
fn balancer(name: &str) -> (String, Value) {
    let at = management("loadBalancers/lb");
    let body = json!({"id": at, "properties": {"frontendIPConfigurations": [{
        "id": format!("{at}/frontendIPConfigurations/{name}"), "name": name, "properties": {
            "privateIPAddress": "10.224.0.4", "subnet": {"id": management("virtualNetworks/v/subnets/lb")}}}]}});
    (at, body)
}

/// Decides under matching by address, which only a list can prove.
fn run_unlisted(shown: &str, world: &[(String, Value)]) -> (Decision, Vec<String>) {
    let cr = cr(json!({"internalLoadBalancerID": shown}), json!({}));
    let settings = Settings {
        frontend_match: FrontendMatch::Address,
        ..settings()
    };
    let decide = |facts: &Facts| build(&cr, &inputs(), facts, &settings, &[]);
    let ((decision, _), asked) = decided(unlisted(), world, decide);
    (decision, asked)
}

#[test]
fn list_of_load_balancers_that_fails_stops_no_repair() {
    let name = FRONTEND.rsplit('/').next().unwrap();
    let world = [balancer(name), subnet()];
    let (decision, asked) = run_unlisted(&management("loadBalancers/lb"), &world);
    assert_eq!(decision.problem, None);
    assert_eq!(asked, ["lb", "infra-pls-nat", "pls-id"]);
    assert_eq!(decision.step(Kind::PrivateLinkService).unwrap().why, Why::Absent);
}

#[test]
fn forged_load_balancer_of_another_service_proves_nothing() {
    let reason = |shown: &str, name: &str| {
        let (decision, asked) = run_unlisted(shown, &[balancer(name), subnet()]);
        (decision.problem.map(|problem| problem.reason), asked)
    };
    let failed = Some(Reason::ILBLookupFailed);
    let shown = management("loadBalancers/lb");
    let others = "a6f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1";
    assert_eq!(reason(&shown, others), (failed, vec!["lb".to_owned()]));
    assert_eq!(reason(&shown, "any"), (failed, vec!["lb".to_owned()]));
    let elsewhere = crate::controllers::samples::guest("loadBalancers/lb");
    assert_eq!(reason(&elsewhere, others), (failed, Vec::new()), "no call");
}

#[test]
fn list_that_lacks_a_load_balancer_that_is_there_is_no_outage() {
    let run = |name: &str, held: bool| {
        let cr = cr(
            json!({"internalLoadBalancerID": management("loadBalancers/lb")}),
            json!({}),
        );
        let facts = Facts {
            lists: Lists {
                held_frontends: held,
                ..Lists::default()
            },
            ..Facts::default()
        };
        let world = [balancer(name), subnet()];
        let ((decision, _), asked) = decided(facts, &world, |facts| build(&cr, &inputs(), facts, &settings(), &[]));
        (
            decision.problem.map(|problem| problem.reason),
            asked.contains(&"new lb".to_owned()),
        )
    };
    let (own, others) = (FRONTEND.rsplit('/').next().unwrap(), "a6f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1");
    let waits = Some(Reason::WaitingForLoadBalancer);
    assert_eq!(run(own, false), (None, true));
    assert_eq!(run(others, false), (waits, true), "the status is forged");
    assert_eq!(run(own, true), (waits, false), "the namespace has had its share");
}

#[test]
fn unreadable_load_balancers_are_no_absence() {
    let resource = cr(Value::Null, json!({}));
    let ((decision, _), _) = decided(unlisted(), &[], |facts| {
        build(&resource, &inputs(), facts, &settings(), &[])
    });
    assert_eq!(decision.problem.map(|p| p.reason), Some(Reason::ILBLookupFailed));
}
