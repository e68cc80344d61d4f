//! The form of AWS's ids, of which many come from where anybody in the control plane's namespace can write. Pure.

use crate::api::AWSEndpointService;
use crate::aws::kinds::Kind;
use crate::aws::region::{Partition, Region};
use crate::aws::slot::Slot;
use crate::engine::cloud::Key;

/// Whether this is an id of a kind, which `kind` begins, as `subnet` does `subnet-0123456789abcdef0`.
pub fn is_id(kind: &str, text: &str) -> bool {
    let digits = text.strip_prefix(kind).and_then(|rest| rest.strip_prefix('-'));
    let is_hex = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    digits.is_some_and(|digits| (8..=32).contains(&digits.len()) && digits.bytes().all(is_hex))
}

/// Whether this is the id of a hosted zone.
pub fn is_zone_id(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
    (2..=32).contains(&text.len()) && text.starts_with('Z') && text.chars().all(allowed)
}

/// Whether this is the number of an account.
pub fn is_account(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// The id in the name of an endpoint service of this region.
///
/// Format: <https://docs.aws.amazon.com/vpc/latest/privatelink/create-endpoint-service.html>
pub fn service_id<'a>(service_name: &'a str, region: &Region) -> Option<&'a str> {
    let id = service_name.strip_prefix(&service_name_start(region))?;
    is_id("vpce-svc", id).then_some(id)
}

/// The name of the endpoint service with this id.
pub fn service_name(id: &str, region: &Region) -> String {
    format!("{}{id}", service_name_start(region))
}

fn service_name_start(region: &Region) -> String {
    let domain = match region.partition() {
        Partition::Aws | Partition::UsGov => "com.amazonaws",
        Partition::China => "cn.com.amazonaws",
    };
    format!("{domain}.vpce.{}.", region.name())
}

/// The end of the DNS names of endpoints, without a leading dot.
pub fn endpoint_suffix(partition: Partition) -> String {
    format!("vpce.{}", partition.dns_suffix())
}

/// The id that the status shows of what fills a slot.
pub fn id_in_status<'a>(cr: &'a AWSEndpointService, slot: &Slot) -> Option<&'a str> {
    let status = cr.status.as_ref()?;
    let service = status.endpoint_service_name.as_deref();
    match slot.kind() {
        Kind::EndpointService if slot.name() == cr.spec.network_load_balancer_name => service?.rsplit('.').next(),
        Kind::VpcEndpoint if Some(slot.name()) == service => status.endpoint_id.as_deref(),
        Kind::SecurityGroup => status.security_group_id.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("subnet", "subnet-0123456789abcdef0", true)]
    #[case("subnet", "subnet-01234567", true)]
    #[case("vpce-svc", "vpce-svc-0123456789abcdef0", true)]
    #[case("vpce", "vpce-svc-0123456789abcdef0", false)]
    #[case("subnet", "subnet-", false)]
    #[case("subnet", "subnet-0123456789ABCDEF0", false)]
    #[case("subnet", "subnet-01234567&Action=x", false)]
    #[case("subnet", "sg-0123456789abcdef0", false)]
    #[case("subnet", "subnet-0123456789abcdef00123456789abcdef0", false)]
    #[case("subnet", "", false)]
    fn id_is_its_kind_and_hex_digits(#[case] kind: &str, #[case] text: &str, #[case] expected: bool) {
        assert_eq!(is_id(kind, text), expected);
    }

    #[rstest]
    #[case("Z0123456789ABCDEFGHIJ", true)]
    #[case("Z", false)]
    #[case("/hostedzone/Z0123456789", false)]
    #[case("Z01/../../x", false)]
    #[case("z0123456789", false)]
    #[case("", false)]
    fn id_of_a_zone_leads_nowhere_else_in_a_path(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(is_zone_id(text), expected);
    }

    #[rstest]
    #[case("us-east-1", "com.amazonaws.vpce.us-east-1.vpce-svc-0123456789abcdef0")]
    #[case("cn-north-1", "cn.com.amazonaws.vpce.cn-north-1.vpce-svc-0123456789abcdef0")]
    fn id_of_a_service_is_in_its_name(#[case] region: &str, #[case] name: &str) {
        let region = Region::parse(region).unwrap();
        let id = service_id(name, &region).unwrap();
        assert_eq!(id, "vpce-svc-0123456789abcdef0");
        assert_eq!(service_name(id, &region), name);
    }

    #[rstest]
    #[case::other_region("com.amazonaws.vpce.us-west-2.vpce-svc-0123456789abcdef0")]
    #[case::service_of_aws("com.amazonaws.us-east-1.s3")]
    #[case::id_alone("vpce-svc-0123456789abcdef0")]
    #[case::other_kind("com.amazonaws.vpce.us-east-1.vpce-0123456789abcdef0")]
    #[case::further_part("com.amazonaws.vpce.us-east-1.x.vpce-svc-0123456789abcdef0")]
    #[case::empty("")]
    fn name_of_another_form_has_no_id(#[case] name: &str) {
        assert_eq!(service_id(name, &Region::parse("us-east-1").unwrap()), None);
    }

    #[test]
    fn account_has_twelve_digits() {
        assert!(is_account("012345678901"));
        assert!(
            !["", "12345678901", "0123456789012", "12345678901x"]
                .into_iter()
                .any(is_account)
        );
        assert_eq!(endpoint_suffix(Partition::China), "vpce.amazonaws.com.cn");
    }
}
