use rstest::rstest;

use super::*;
use crate::arm::id::ResourceId;
use crate::kinds::Kind;

const PLS: &str = "/subscriptions/AAAA/resourcegroups/Mgmt/providers/microsoft.network/privatelinkservices/pls-1";

#[test]
fn fixed_segments_get_their_documented_casing() {
    let id = ResourceId::parse(PLS).unwrap();
    assert_eq!(
        id.to_string(),
        "/subscriptions/aaaa/resourceGroups/Mgmt/providers/Microsoft.Network/privateLinkServices/pls-1"
    );
}

#[test]
fn ids_that_differ_in_case_only_are_equal_and_hash_alike() {
    let (a, b) = (
        ResourceId::parse(PLS).unwrap(),
        ResourceId::parse(&PLS.to_uppercase().replace("/SUB", "/sub")).unwrap(),
    );
    assert_eq!(a, b);
    assert_eq!(std::collections::HashSet::from([a, b]).len(), 1);
}

#[rstest]
#[case::ascii("KEY", "key", true)]
#[case::letters_beyond_ascii("GRÖẞE", "größe", true)]
#[case::letter_that_resembles_ascii("\u{212a}ey", "key", false)]
#[case::letter_whose_lower_case_is_two("\u{130}d", "id", false)]
#[case::two_letters_for_one("gross", "groß", false)]
fn names_are_the_same_when_their_lower_case_is(#[case] a: &str, #[case] b: &str, #[case] expected: bool) {
    assert_eq!(
        (same(a, b), same(b, a), lower(a) == lower(b)),
        (expected, expected, expected)
    );
    let id = |group| ResourceId::parse(&PLS.replace("Mgmt", group)).unwrap();
    let ids = std::collections::HashSet::from([id(a), id(b)]);
    assert_eq!((id(a) == id(b), ids.len() == 1), (expected, expected));
}

#[rstest]
#[case::letters_and_digits_of_any_script("größe-企业_٣(x).y", true)]
#[case::longest(&"ü".repeat(90), true)]
#[case::too_long(&"u".repeat(91), false)]
#[case::nothing("", false)]
#[case::dot_at_the_end("g.", false)]
#[case::dots("..", false)]
#[case::what_a_url_reads_otherwise("%2e", false)]
#[case::other_signs("a*b", false)]
fn group_has_a_name_that_azure_takes(#[case] name: &str, #[case] expected: bool) {
    assert_eq!(is_group_name(name), expected);
    let id = ResourceId::parse(&PLS.replace("Mgmt", name));
    assert_eq!(
        id.map(|id| id.group().to_owned()).ok().as_deref(),
        expected.then_some(name)
    );
}

#[test]
fn an_id_that_does_not_parse_is_an_error() {
    for bad in [
        "",
        "/",
        "pls",
        "/subscriptions/a",
        "/subscriptions/a/resourceGroups/g/providers/Microsoft.Network",
        "/subscriptions/a/resourceGroups/g/providers/Microsoft.Network/privateLinkServices",
        "/subscriptions/a/resourceGroups/g/providers/Microsoft.Network/privateLinkServices/",
        "/subscriptions/a/resourceGroups/../providers/Microsoft.Network/privateLinkServices/x",
        "/subscriptions/a/resourceGroups/g/providers/Microsoft.Network/privateLinkServices/x?y=z",
        "/subscriptions/a/resourceGroups/g/providers/Microsoft.Network/privateLinkServices/x%2fy",
        "https://evil/subscriptions/a/resourceGroups/g/providers/Microsoft.Network/privateLinkServices/x",
    ] {
        assert!(ResourceId::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn an_id_of_another_kind_is_refused() {
    assert_eq!(
        ResourceId::parse_as(Kind::PrivateEndpoint, PLS),
        Err(IdError::OtherKind("private_endpoint"))
    );
}

#[test]
fn name_of_80_characters_is_accepted_and_one_of_81_is_refused() {
    let subscription = SubscriptionId::parse("s").unwrap();
    let make = |n: usize| ResourceId::new(Kind::PrivateLinkService, &subscription, "g", &[&"x".repeat(n)]);
    assert!(make(80).is_ok());
    assert_eq!(make(81), Err(IdError::NameTooLong(80)));
}

#[test]
fn parents_and_children_meet() {
    let vnet =
        ResourceId::parse("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v").unwrap();
    let subnet = vnet.child(Kind::Subnet, "nat").unwrap();
    assert!(subnet.is_in(&vnet) && !vnet.is_in(&subnet) && !vnet.is_in(&vnet));
    assert_eq!(subnet.parent(), Some(vnet));
    assert_eq!(subnet.name(), "nat");
}

#[test]
fn regions_compare_without_case_and_spaces() {
    assert_eq!(location("East US 2"), "eastus2");
}
