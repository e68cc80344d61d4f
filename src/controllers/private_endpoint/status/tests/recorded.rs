//! What the status records of Azure.

use super::*;

#[test]
fn foreign_endpoint_is_never_recorded() {
    let report = report(|steps, _| (steps[0].verb, steps[0].why) = (Verb::Refuse, Why::NotOurs));
    assert_eq!(reasons(&report)[0], "NotOurs");
    assert_eq!(report.fields["privateEndpointID"], Value::Null);
}

#[test]
fn foreign_zone_is_never_recorded_and_its_name_neither() {
    let report = report(|steps, _| (steps[1].verb, steps[1].why) = (Verb::Refuse, Why::NotOurs));
    assert_eq!(reasons(&report)[1], "NotOurs");
    assert_eq!(report.fields["privateDNSZoneID"], Value::Null);
    assert_eq!(
        report.fields["dnsZoneName"],
        Value::Null,
        "HyperShift's own operator deletes by it"
    );
}

#[test]
fn zone_that_is_absent_is_taken_off_the_record() {
    let report = report(|steps, _| {
        (steps[5].verb, steps[5].why, steps[5].found) = (Verb::Put(Value::Null), Why::Absent, None);
    });
    assert_eq!(report.fields["baseDomainDNSZoneID"], Value::Null);
    assert_eq!(report.fields["dnsZoneName"], "example.hypershift.local");
}

#[test]
fn internal_zone_is_named_on_the_custom_resource_of_oauth_too() {
    let (mut decision, mut names) = ready();
    names.zones.remove(0);
    decision.steps.drain(1..5);
    let outcomes = vec![Outcome::Nothing; decision.steps.len()];
    let report = after_build(&resource(), &decision, &names, &outcomes);
    assert_eq!(report.fields["dnsZoneName"], "example.hypershift.local");
    assert!(!report.fields.contains_key("privateDNSZoneID"));
}

#[test]
fn zone_that_hides_public_names_is_reported_with_success() {
    let (decision, mut names) = ready();
    names.shadowing = Some("apps.example.com".into());
    let outcomes = vec![Outcome::Nothing; decision.steps.len()];
    let report = after_build(&resource(), &decision, &names, &outcomes);
    assert_eq!(
        reasons(&report),
        ["AzureSuccess", "ZoneShadowsBaseDomain", "AzureSuccess"]
    );
    assert!(report.conditions.iter().all(|c| c.status == Status::True));
}

#[test]
fn ids_are_recorded_in_the_casing_that_the_definition_demands() {
    let mut odd = resource();
    odd.spec.guest_vnet_id = odd.spec.guest_vnet_id.replace("resourceGroups", "resourcegroups");
    odd.spec.subscription_id = odd.spec.subscription_id.to_uppercase();
    let desired = desired_resources(&odd, &identity(), &[]).unwrap();
    for id in [
        &desired.endpoint.id,
        &desired.zones[0].zone.id,
        &desired.zones[1].zone.id,
    ] {
        let (text, group) = (id.to_string(), &odd.spec.resource_group_name);
        let subscription = odd.spec.subscription_id.to_lowercase();
        let prefix =
            format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/private");
        assert!(text.starts_with(&prefix), "{text}");
    }
}
