//! Input that cannot be served: the path has one clear problem, costs few calls, and comes once the input is corrected.

use rstest::rstest;

use super::cluster::{HOSTED, PLANE, SERVICE};
use super::*;

const POOL: &str = "clusters/nodepools/a";
const HO: &str = "AWSEndpointServiceAvailable";
const CPO: &str = "AWSEndpointAvailable";
/// A subnet of the guest's account in another VPC.
const ELSEWHERE: &str = "subnet-00000009";
/// A subnet of another account.
const OF_ANOTHER: &str = "subnet-0000000a";

impl Life {
    /// Status, reason and message of a condition; nothing if there is none.
    pub(super) fn condition(&self, kind: &str) -> (String, String, String) {
        let cr = self.cluster.get(CR).unwrap_or_default();
        let all = cr["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = all.into_iter().find(|one| one["type"] == kind).unwrap_or_default();
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }
}

/// More networks than the cluster's.
fn with_other_networks(seed: &mut Value) {
    let arn = |account: &str, resource: &str| format!("arn:aws:ec2:us-east-1:{account}:{resource}");
    let more = [
        json!({"id": arn(GUEST, "vpc/vpc-00000009"), "cidr": "10.9.0.0/16"}),
        json!({"id": arn(GUEST, &format!("subnet/{ELSEWHERE}")), "vpc": "vpc-00000009", "cidr": "10.9.1.0/24",
            "zone_id": "use1-az1"}),
        json!({"id": arn(MANAGEMENT, "vpc/vpc-0000000a"), "cidr": "10.10.0.0/16"}),
        json!({"id": arn(MANAGEMENT, &format!("subnet/{OF_ANOTHER}")), "vpc": "vpc-0000000a", "cidr": "10.10.1.0/24",
            "zone_id": "use1-az1"}),
    ];
    seed["resources"].as_array_mut().unwrap().extend(more);
}

fn host(name: &str) -> Value {
    ingress(json!([{ "hostname": name }]))
}

fn ingress(points: Value) -> Value {
    json!({"status": {"loadBalancer": {"ingress": points}}})
}

fn subnet(id: &str) -> Value {
    json!({"spec": {"platform": {"aws": {"subnet": {"id": id}}}}})
}

fn aws(platform: Value) -> Value {
    json!({"spec": {"platform": {"aws": platform}}})
}

fn vpc(id: &str) -> Value {
    aws(json!({"cloudProviderConfig": {"vpc": id}}))
}

fn role(arn: &str) -> Value {
    aws(json!({"rolesRef": {"controlPlaneOperatorARN": arn}}))
}

fn network(cidr: &str) -> Value {
    json!({"spec": {"networking": {"machineNetwork": [{"cidr": cidr}]}}})
}

fn balancer(name: &str) -> Value {
    json!({"spec": {"networkLoadBalancerName": name}})
}

/// The input is wrong from the start.
#[rstest]
#[case::classic_load_balancer(&[SERVICE], host("a1-01.us-east-1.elb.amazonaws.com"), HO, "WaitingForLoadBalancer")]
#[case::application_load_balancer(
    &[SERVICE], host("internal-k8s-a-01.us-east-1.elb.amazonaws.com"), HO, "WaitingForLoadBalancer")]
#[case::of_another_region(&[SERVICE], host("a1-01.elb.eu-west-1.amazonaws.com"), HO, "WaitingForLoadBalancer")]
#[case::of_china(&[SERVICE], host("a1-01.elb.cn-north-1.amazonaws.com.cn"), HO, "WaitingForLoadBalancer")]
#[case::of_the_government(&[SERVICE], host("a1-01.elb.us-gov-west-1.amazonaws.com"), HO, "WaitingForLoadBalancer")]
#[case::dot_at_the_end(&[SERVICE], host("a1-01.elb.us-east-1.amazonaws.com."), HO, "WaitingForLoadBalancer")]
#[case::of_another_service(&[SERVICE], host("b2-01.elb.us-east-1.amazonaws.com"), HO, "WaitingForLoadBalancer")]
#[case::empty_host_name(&[SERVICE], host(""), HO, "WaitingForLoadBalancer")]
#[case::address_alone(&[SERVICE], ingress(json!([{"ip": "10.0.0.4"}])), HO, "WaitingForLoadBalancer")]
#[case::no_address(&[SERVICE], ingress(json!([])), HO, "WaitingForLoadBalancer")]
#[case::service_of_nobody(&[SERVICE], json!({"metadata": {"ownerReferences": []}}), HO, "NotOurs")]
#[case::no_name(&[CR], balancer(""), HO, "WaitingForLoadBalancer")]
#[case::longest_name(&[CR], balancer(&"n".repeat(255)), HO, "WaitingForLoadBalancer")]
#[case::name_too_long(&[CR], balancer(&"n".repeat(256)), HO, "WaitingForLoadBalancer")]
#[case::name_of_unicode(&[CR], balancer("bälancer\n&Action=x"), HO, "WaitingForLoadBalancer")]
#[case::subnet_of_another_vpc(&[POOL], subnet(ELSEWHERE), CPO, "NoSubnets")]
#[case::subnet_of_another_account(&[POOL], subnet(OF_ANOTHER), CPO, "NoSubnets")]
#[case::unknown_subnet(&[POOL], subnet("subnet-00000099"), CPO, "NoSubnets")]
#[case::subnet_in_capitals(&[POOL], subnet("SUBNET-00000001"), CPO, "NoSubnets")]
#[case::subnet_of_unicode(&[POOL], subnet("subnet-ü"), CPO, "NoSubnets")]
#[case::empty_subnet(&[POOL], subnet(""), CPO, "NoSubnets")]
#[case::no_role(&[HOSTED, PLANE], role(""), HO, "InvalidSpec")]
#[case::malformed_role(&[HOSTED, PLANE], role("arn:aws:iam::444455556666:role/"), HO, "InvalidSpec")]
#[case::everybody_as_role(&[HOSTED, PLANE], role("*"), HO, "InvalidSpec")]
#[case::role_of_unicode(&[HOSTED, PLANE], role("arn:aws:iam::444455556666:role/ü"), HO, "InvalidSpec")]
#[case::no_vpc(&[PLANE], vpc(""), CPO, "InvalidSpec")]
#[case::vpc_in_capitals(&[PLANE], vpc("VPC-00000002"), CPO, "InvalidSpec")]
#[case::vpc_of_unicode(&[PLANE], vpc("vpc-ü"), CPO, "InvalidSpec")]
#[case::empty_network(&[PLANE], network(""), CPO, "InvalidSpec")]
#[case::malformed_network(&[PLANE], network("10.0.0.0/33"), CPO, "InvalidSpec")]
#[case::network_of_unicode(&[PLANE], network("１０.0.0.0/16"), CPO, "InvalidSpec")]
#[case::another_region(&[HOSTED, PLANE], aws(json!({"region": "eu-west-1"})), CPO, "CloudMismatch")]
#[case::another_platform(&[HOSTED, PLANE], json!({"spec": {"platform": {"type": "None"}}}), CPO, "CloudMismatch")]
#[case::malformed_shared_roles(&[PLANE], aws(json!({"sharedVPC": {"localZoneID": "Z0123456789",
    "rolesRef": {"controlPlaneARN": "x", "ingressARN": "y"}}})), CPO, "InvalidSpec")]
#[case::no_cluster_id(&[HOSTED, PLANE], json!({"spec": {"clusterID": ""}}), CPO, "InvalidSpec")]
#[case::no_infra_id(&[HOSTED, PLANE], json!({"spec": {"infraID": ""}}), CPO, "InvalidSpec")]
#[tokio::test(start_paused = true)]
async fn wrong_input_is_one_clear_false_until_it_is_corrected(
    #[case] keys: &[&str],
    #[case] patch: Value,
    #[case] kind: &str,
    #[case] reason: &str,
) {
    let mut life = Life::with(with_other_networks);
    let empty = life.remains();
    let before: Vec<Value> = keys.iter().map(|key| life.cluster.get(key).unwrap()).collect();
    keys.iter().for_each(|key| life.cluster.forge(key, &patch));
    life.run_for(Duration::from_secs(3_600)).await;
    let (status, found, message) = life.condition(kind);
    assert_eq!((status.as_str(), found.as_str()), ("False", reason), "{message}");
    assert!(!message.is_empty() && message.len() <= 600, "{message}");
    let (calls, requests) = (life.aws.journal().len(), life.cluster.take_requests());
    let writes = requests.iter().filter(|request| request.starts_with("PATCH")).count();
    assert!(calls <= 90 && writes <= 20, "{calls} calls, {writes} writes in an hour");
    for (key, before) in keys.iter().zip(before) {
        let mut corrected = life.cluster.get(key).unwrap();
        for part in ["spec", "status"]
            .into_iter()
            .filter(|part| *key != CR || *part == "spec")
        {
            corrected[part] = before[part].clone();
        }
        corrected["metadata"]["ownerReferences"] = before["metadata"]["ownerReferences"].clone();
        life.cluster.put(key, corrected);
    }
    life.wake();
    life.until_available().await;
    assert!(life.is_reachable());
    life.deleted().await;
    assert_eq!(life.remains(), empty);
}
