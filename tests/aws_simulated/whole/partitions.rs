//! The partitions `aws-cn` and `aws-us-gov`: their own ARNs, host names, names of endpoint services, and regions of
//! Route 53.

use rstest::rstest;

use super::*;

/// Moves the accounts and the resources to China.
pub(crate) fn moved_to_china(seed: &mut Value) {
    moved_to(seed, "aws-cn", "cn-north-1", "cnn1");
}

/// Moves the accounts and the resources to the region of GovCloud in which Route 53 is not.
pub(crate) fn moved_to_govcloud(seed: &mut Value) {
    moved_to(seed, "aws-us-gov", "us-gov-east-1", "usge1");
}

fn moved_to(seed: &mut Value, partition: &str, region: &str, zones: &str) {
    let text = seed.to_string().replace("us-east-1", region);
    let text = text.replace("arn:aws:", &format!("arn:{partition}:"));
    *seed = serde_json::from_str(&text.replace("use1-az", &format!("{zones}-az"))).unwrap();
    for account in seed["accounts"].as_array_mut().unwrap() {
        account["partition"] = json!(partition);
    }
}

/// The names in a partition.
struct Names {
    partition: &'static str,
    region: &'static str,
    /// What the name of each endpoint service begins with, before the region.
    service: &'static str,
    /// What host names end in.
    suffix: &'static str,
    /// The host of Route 53, and the region that its requests are signed for.
    route53: (&'static str, &'static str),
}

const CHINA: Names = Names {
    partition: "aws-cn",
    region: "cn-north-1",
    service: "cn.com.amazonaws.vpce",
    suffix: "amazonaws.com.cn",
    route53: ("route53.amazonaws.com.cn", "cn-northwest-1"),
};

const GOVCLOUD: Names = Names {
    partition: "aws-us-gov",
    region: "us-gov-east-1",
    service: "com.amazonaws.vpce",
    suffix: "amazonaws.com",
    route53: ("route53.us-gov.amazonaws.com", "us-gov-west-1"),
};

#[rstest]
#[case::china(moved_to_china, CHINA)]
#[case::govcloud(moved_to_govcloud, GOVCLOUD)]
#[tokio::test(start_paused = true)]
async fn path_in_another_partition_is_created_and_deleted(#[case] moved: fn(&mut Value), #[case] names: Names) {
    let Names { region, suffix, .. } = names;
    let mut life = Life::with(moved);
    let empty = life.remains();
    life.until_available().await;
    assert!(life.is_reachable());
    let service = life.shown("endpointServiceName");
    let begin = format!("{}.{region}.vpce-svc-", names.service);
    assert!(service.as_str().unwrap().starts_with(&begin), "{service}");
    let shown = life.shown("dnsNames").to_string();
    assert!(!shown.contains("amazonaws"), "names in the cluster's own zone: {shown}");
    let zone = life.hosted_zone();
    let records = zone["records"].as_array().unwrap();
    let mut targets = records.iter().filter(|record| record["type"] == "CNAME");
    let end = format!(".{region}.vpce.{suffix}\"]");
    let is_of_region = |record: &Value| record["values"].to_string().replace(".\"", "\"").ends_with(&end);
    assert!(targets.clone().count() == 2 && targets.all(is_of_region), "{records:?}");
    let principals = life.aws.resources("vpc-endpoint-service")[0]["principals"].to_string();
    let role = format!("arn:{}:iam::{GUEST}:role/cpo", names.partition);
    assert!(principals.contains(&role), "{principals}");
    life.deleted().await;
    assert_eq!(life.remains(), empty);
    let (route53, signed_for) = names.route53;
    let begin = format!("https://{route53}/");
    let mut of_route53 = 0;
    for sent in life.aws.sent() {
        let (url, signed) = (sent["url"].as_str().unwrap(), sent["authorization"].as_str().unwrap());
        let scope = match url.starts_with(&begin) {
            true => format!("/{signed_for}/route53/"),
            false => format!("/{region}/"),
        };
        of_route53 += usize::from(url.starts_with(&begin));
        assert!(
            url.contains(&format!(".{suffix}/")) && signed.contains(&scope),
            "{url} {signed}"
        );
    }
    assert!(of_route53 > 0, "nothing was sent to {route53}");
}
