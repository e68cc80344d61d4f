//! Exchanges that keep to the specs, each broken in one place: the checker names it.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod spec_support;

use armsim::{Part, Rule};
use rstest::rstest;
use serde_json::{Value, json};
use spec_support::Exchange;

const NET: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";

fn subnet_put() -> Exchange {
    let path = format!("{NET}/virtualNetworks/v/subnets/n");
    let sent = json!({"properties": {"addressPrefix": "10.0.0.0/24", "privateLinkServiceNetworkPolicies": "disabled", "provisioningState": 1}});
    let answered = json!({"id": path, "name": "n", "type": "Microsoft.Network/virtualNetworks/subnets", "etag": "W/\"1\"",
        "properties": {"addressPrefix": "10.0.0.0/24", "provisioningState": "Updating", "privateLinkServiceNetworkPolicies": "Disabled",
            "delegations": [], "routeTable": {"id": format!("{NET}/routeTables/r")}}});
    Exchange::new("PUT", path, "2024-05-01", sent, 201, answered).with("azure-asyncoperation")
}

fn zone_delete() -> Exchange {
    let path = format!("{NET}/privateDnsZones/z.local");
    Exchange::new("DELETE", path, "2024-06-01", Value::Null, 202, Value::Null).with("location")
}

fn record_put() -> Exchange {
    let path = format!("{NET}/privateDnsZones/z.local/A/%40");
    let records = json!({"ttl": 300, "aRecords": [{"ipv4Address": "10.0.0.1"}]});
    let answered = json!({"id": path, "name": "@", "type": "Microsoft.Network/privateDnsZones/A", "etag": "1", "properties": records});
    Exchange::new("PUT", path, "2024-06-01", json!({"properties": records}), 200, answered)
}

fn group_put() -> Exchange {
    let path = "/subscriptions/s/resourcegroups/g".to_owned();
    let answered = json!({"id": "/subscriptions/s/resourceGroups/g", "location": "westus2", "properties": {"provisioningState": "Succeeded"}});
    Exchange::new(
        "PUT",
        path,
        "2024-07-01",
        json!({"location": "westus2", "tags": {"a": "b"}}),
        201,
        answered,
    )
}

fn zones() -> Exchange {
    let path = "/subscriptions/s/providers/Microsoft.Network/privateDnsZones".to_owned();
    let zone = json!({"id": "/z", "name": "z.local", "location": "global", "properties": {"numberOfRecordSets": 1}});
    Exchange::new("GET", path, "2024-06-01", Value::Null, 200, json!({"value": [zone]}))
}

fn refused() -> Exchange {
    let refusal =
        json!({"error": {"code": "ResourceNotFound", "message": "no", "details": [{"code": "a", "message": "b"}]}});
    Exchange::new(
        "GET",
        format!("{NET}/virtualNetworks/v"),
        "2024-05-01",
        Value::Null,
        404,
        refusal,
    )
}

/// Sets the value at a JSON pointer, or removes it.
fn set(json: &mut Value, pointer: &str, value: Option<Value>) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = json.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => drop(parent.insert(name.to_owned(), value)),
        None => drop(parent.remove(name)),
    }
}

fn sent(exchange: &mut Exchange, pointer: &str, value: Value) {
    set(&mut exchange.sent, pointer, Some(value));
}

fn answered(exchange: &mut Exchange, pointer: &str, value: Value) {
    set(&mut exchange.answered, pointer, Some(value));
}

fn as_it_is(_: &mut Exchange) {}

#[rstest]
#[case::subnet(subnet_put())]
#[case::zone(zone_delete())]
#[case::record(record_put())]
#[case::group(group_put())]
#[case::list(zones())]
#[case::refusal(refused())]
#[case::spelled_otherwise({
    let mut exchange = group_put();
    exchange.path = exchange.path.to_uppercase();
    exchange
})]
fn a_right_exchange_has_no_violation(#[case] exchange: Exchange) {
    let Some(specs) = spec_support::specs() else { return };
    assert_eq!(exchange.check(&specs), []);
}

#[rstest]
#[case::field_misspelled(subnet_put(), |e: &mut Exchange| sent(e, "/properties/adressPrefix", json!("x")), Part::Request, Rule::Unknown, "/properties/adressPrefix")]
#[case::field_in_a_list(record_put(), |e: &mut Exchange| sent(e, "/properties/aRecords", json!([{"ipv4address": "10.0.0.1"}])), Part::Request, Rule::Unknown, "/properties/aRecords/0/ipv4address")]
#[case::type_of_field(record_put(), |e: &mut Exchange| sent(e, "/properties/ttl", json!("300")), Part::Request, Rule::Type, "/properties/ttl")]
#[case::null(record_put(), |e: &mut Exchange| sent(e, "/properties/aRecords", json!(null)), Part::Request, Rule::Type, "/properties/aRecords")]
#[case::type_of_tag(group_put(), |e: &mut Exchange| sent(e, "/tags", json!({"a": 1})), Part::Request, Rule::Type, "/tags/a")]
#[case::value_not_listed(subnet_put(), |e: &mut Exchange| sent(e, "/properties/privateLinkServiceNetworkPolicies", json!("Off")), Part::Request, Rule::Value, "/properties/privateLinkServiceNetworkPolicies")]
#[case::required_field(group_put(), |e: &mut Exchange| set(&mut e.sent, "/location", None), Part::Request, Rule::Missing, "")]
#[case::no_body(group_put(), |e: &mut Exchange| e.sent = Value::Null, Part::Request, Rule::Body, "")]
#[case::a_body(zone_delete(), |e: &mut Exchange| e.sent = json!({}), Part::Request, Rule::Body, "")]
#[case::parameter_unknown(zones(), |e: &mut Exchange| e.query.push_str("&$skip=1"), Part::Request, Rule::Unknown, "$skip")]
#[case::parameter_type(zones(), |e: &mut Exchange| e.query.push_str("&$top=many"), Part::Request, Rule::Type, "$top")]
#[case::name_too_long(group_put(), |e: &mut Exchange| e.path.push_str(&"g".repeat(90)), Part::Request, Rule::Value, "resourceGroupName")]
#[case::precondition(group_put(), |e: &mut Exchange| drop(e.headers.insert("if-match", "1".parse().unwrap())), Part::Request, Rule::Unknown, "if-match")]
#[case::method(zone_delete(), |e: &mut Exchange| e.method = "POST", Part::Request, Rule::Method, "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/z.local")]
#[case::answer_field(subnet_put(), |e: &mut Exchange| answered(e, "/propertys", json!({})), Part::Answer, Rule::Unknown, "/propertys")]
#[case::answer_field_below(subnet_put(), |e: &mut Exchange| answered(e, "/properties/routeTable/properties", json!({"route": []})), Part::Answer, Rule::Unknown, "/properties/routeTable/properties/route")]
#[case::answer_type(subnet_put(), |e: &mut Exchange| answered(e, "/properties/delegations", json!({})), Part::Answer, Rule::Type, "/properties/delegations")]
#[case::answer_value(subnet_put(), |e: &mut Exchange| answered(e, "/properties/provisioningState", json!("Creating")), Part::Answer, Rule::Value, "/properties/provisioningState")]
#[case::answer_value_in_another_case(subnet_put(), |e: &mut Exchange| answered(e, "/properties/privateLinkServiceNetworkPolicies", json!("disabled")), Part::Answer, Rule::Value, "/properties/privateLinkServiceNetworkPolicies")]
#[case::answer_required(group_put(), |e: &mut Exchange| set(&mut e.answered, "/location", None), Part::Answer, Rule::Missing, "")]
#[case::answer_item(zones(), |e: &mut Exchange| answered(e, "/value", json!([{"tag": {}}])), Part::Answer, Rule::Unknown, "/value/0/tag")]
#[case::answer_status(record_put(), |e: &mut Exchange| e.status = 202, Part::Answer, Rule::Status, "")]
#[case::answer_body(zone_delete(), |e: &mut Exchange| e.answered = json!({"a": 1}), Part::Answer, Rule::Body, "")]
#[case::answer_no_body(zones(), |e: &mut Exchange| e.answered = Value::Null, Part::Answer, Rule::Body, "")]
#[case::answer_header_missing(subnet_put(), |e: &mut Exchange| e.answer_headers.clear(), Part::Answer, Rule::Header, "azure-asyncoperation")]
#[case::answer_header_of_a_deletion(zone_delete(), |e: &mut Exchange| e.answer_headers.clear(), Part::Answer, Rule::Header, "azure-asyncoperation or location")]
#[case::answer_header_unasked(group_put().with("location"), as_it_is, Part::Answer, Rule::Header, "location")]
#[case::refusal_unwrapped(refused(), |e: &mut Exchange| e.answered = json!({"code": "a", "message": "b"}), Part::Answer, Rule::Wrapping, "")]
#[case::refusal_field(refused(), |e: &mut Exchange| answered(e, "/error/details", json!([{"kode": "a"}])), Part::Answer, Rule::Unknown, "/error/details/0/kode")]
#[case::refusal_in_words(refused(), |e: &mut Exchange| answered(e, "/error", json!("no")), Part::Answer, Rule::Type, "/error")]
fn a_broken_exchange_is_reported(
    #[case] mut exchange: Exchange,
    #[case] breaks: fn(&mut Exchange),
    #[case] part: Part,
    #[case] rule: Rule,
    #[case] place: &str,
) {
    let Some(specs) = spec_support::specs() else { return };
    breaks(&mut exchange);
    assert_eq!(exchange.check(&specs), [(part, rule, place.to_owned())]);
}

#[test]
fn a_newer_api_version_may_have_more_but_not_other_fields() {
    let Some(specs) = spec_support::specs() else { return };
    let mut exchange = subnet_put();
    exchange.query = "api-version=2025-05-01&$new=1".to_owned();
    answered(&mut exchange, "/properties/newField", json!(1));
    answered(
        &mut exchange,
        "/properties/privateLinkServiceNetworkPolicies",
        json!("NewValue"),
    );
    assert_eq!(exchange.check(&specs), []);
    answered(&mut exchange, "/properties/addressPrefix", json!(["10.0.0.0/24"]));
    let wrong = (Part::Answer, Rule::Type, "/properties/addressPrefix".to_owned());
    assert_eq!(exchange.check(&specs), [wrong]);
}
