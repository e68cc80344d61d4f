//! The partition `aws-cn`: its own ARNs, host names, names of endpoint services, and region of Route 53.

use super::*;

/// Moves the accounts and the resources to China.
pub(crate) fn moved(seed: &mut Value) {
    let text = seed.to_string().replace("us-east-1", "cn-north-1");
    let text = text.replace("arn:aws:", "arn:aws-cn:").replace("use1-az", "cnn1-az");
    *seed = serde_json::from_str(&text).unwrap();
    for account in seed["accounts"].as_array_mut().unwrap() {
        account["partition"] = json!("aws-cn");
    }
}

#[tokio::test(start_paused = true)]
async fn path_in_china_is_created_and_deleted() {
    let mut life = Life::with(moved);
    let empty = life.remains();
    life.until_available().await;
    assert!(life.is_reachable());
    let status = life.cluster.get(CR).unwrap()["status"].clone();
    let service = status["endpointServiceName"].as_str().unwrap();
    assert!(
        service.starts_with("cn.com.amazonaws.vpce.cn-north-1.vpce-svc-"),
        "{service}"
    );
    let names = status["dnsNames"].to_string();
    assert!(!names.contains("amazonaws"), "names in the cluster's own zone: {names}");
    let zones = life.aws.resources_of("route53", "hostedzone/");
    let records = zones[0]["records"].as_array().unwrap();
    let mut targets = records.iter().filter(|record| record["type"] == "CNAME");
    let is_of_china = |record: &Value| {
        record["values"]
            .to_string()
            .contains(".cn-north-1.vpce.amazonaws.com.cn")
    };
    assert!(targets.clone().count() == 2 && targets.all(is_of_china), "{records:?}");
    let services = life.aws.resources("vpc-endpoint-service");
    let principals = services[0]["principals"].to_string();
    let role = format!("arn:aws-cn:iam::{GUEST}:role/cpo");
    assert!(principals.contains(&role), "{principals}");
    life.deleted().await;
    assert_eq!(life.remains(), empty);
    for sent in life.aws.sent() {
        let (url, signed) = (sent["url"].as_str().unwrap(), sent["authorization"].as_str().unwrap());
        let scope = match url.starts_with("https://route53.amazonaws.com.cn/") {
            true => "/cn-northwest-1/route53/",
            false => "/cn-north-1/",
        };
        assert!(
            url.contains(".amazonaws.com.cn/") && signed.contains(scope),
            "{url} {signed}"
        );
    }
}
