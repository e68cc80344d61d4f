//! Input that is odd and right, or of which only a part can be served: the path comes, and is not written for ever.

use rstest::rstest;

use super::cluster::{HOSTED, PLANE, SERVICE};
use super::*;
use crate::strangers::live;

const ALIAS: &str = "elb.us-east-1.amazonaws.com";

fn service(cluster: &Cluster, change: fn(&str) -> Value) {
    let service = cluster.get(SERVICE).unwrap();
    let host = service["status"]["loadBalancer"]["ingress"][0]["hostname"]
        .as_str()
        .unwrap();
    let ingress = change(host);
    cluster.forge(SERVICE, &json!({"status": {"loadBalancer": {"ingress": ingress}}}));
}

fn both(cluster: &Cluster, spec: &Value) {
    for key in [HOSTED, PLANE] {
        cluster.forge(key, &json!({ "spec": spec }));
    }
}

fn networks(cluster: &Cluster, cidrs: &[&str]) {
    let list: Vec<Value> = cidrs.iter().map(|cidr| json!({ "cidr": cidr })).collect();
    both(cluster, &json!({"networking": {"machineNetwork": list}}));
}

fn tags(cluster: &Cluster, pairs: &[(&str, &str)]) {
    let list: Vec<Value> = pairs
        .iter()
        .map(|(key, value)| json!({"key": key, "value": value}))
        .collect();
    cluster.forge(CR, &json!({"spec": {"resourceTags": list}}));
}

fn most_tags(cluster: &Cluster) {
    let keys: Vec<String> = (0..25).map(|at| format!("{at:0>128}")).collect();
    let value = "v".repeat(256);
    tags(
        cluster,
        &keys
            .iter()
            .map(|key| (key.as_str(), value.as_str()))
            .collect::<Vec<_>>(),
    );
}

fn pools(cluster: &Cluster, subnets: &[String]) {
    for (at, subnet) in subnets.iter().enumerate() {
        let mut pool = cluster.get("clusters/nodepools/a").unwrap();
        pool["metadata"]["name"] = json!(format!("b{at}"));
        pool["spec"]["platform"]["aws"]["subnet"]["id"] = json!(subnet);
        cluster.put(&format!("clusters/nodepools/b{at}"), pool);
    }
}

/// Subnets of which AWS knows none.
fn unknown_subnets(cluster: &Cluster, count: usize) {
    pools(
        cluster,
        &(1..=count).map(|at| format!("subnet-f{at:07}")).collect::<Vec<_>>(),
    );
}

fn principals(cluster: &Cluster, arns: &[&str]) {
    both(
        cluster,
        &json!({"platform": {"aws": {"additionalAllowedPrincipals": arns}}}),
    );
}

#[rstest]
#[case::host_name_in_capitals(|c: &Cluster| service(c, |host| json!([{"hostname": host.to_uppercase()}])))]
#[case::two_ingresses(|c: &Cluster| service(c, |host| json!([{"ip": "10.0.0.4"}, {"hostname": host}])))]
#[case::first_of_two_load_balancers(|c: &Cluster| service(c, |host| json!([{"hostname": host},
    {"hostname": format!("b2-01.{ALIAS}")}])))]
#[case::second_of_two_load_balancers(|c: &Cluster| service(c, |host| json!([{"hostname": format!("b2-01.{ALIAS}")},
    {"hostname": host}])))]
#[case::equal_networks(|c: &Cluster| networks(c, &["10.0.0.0/16", "10.0.0.0/16"]))]
#[case::overlapping_networks(|c: &Cluster| networks(c, &["10.0.0.0/16", "10.0.0.0/8", "10.0.1.0/24"]))]
#[case::equal_but_for_host_bits(|c: &Cluster| networks(c, &["10.0.0.0/16", "10.0.3.7/16"]))]
#[case::networks_of_both_families(|c: &Cluster| networks(c, &["10.0.0.0/16", "fd00::/48", "FD00:0::/48"]))]
#[case::repeated_tags(|c: &Cluster| tags(c, &[("team", "a"), ("team", "b"), ("Team", "c")]))]
#[case::colliding_tags(|c: &Cluster| tags(c, &[("Name", "mine"), ("AWSEndpointService", "mine"),
    ("kubernetes.io/cluster/example-x7k2p", "shared"), ("kubernetes.io/cluster/mgmt", "shared"),
    ("hypershift.openshift.io/cluster-id", "another"), ("aws:forbidden", "x"), ("AWS:forbidden", "x")]))]
#[case::most_tags(most_tags)]
#[case::nine_unknown_subnets(|c: &Cluster| unknown_subnets(c, 9))]
#[case::ten_unknown_subnets(|c: &Cluster| unknown_subnets(c, 10))]
#[case::strange_subnets(|c: &Cluster| pools(c, &["", "ü", "subnet-", "SUBNET-00000001", "*"].map(str::to_owned)))]
#[case::odd_principals(|c: &Cluster| principals(c, &["*", "", "ü", "arn:aws:iam::444455556666:user/cpo",
    "arn:aws:iam::444455556666:role/*", "arn:gcp:iam::444455556666:root", "444455556666"]))]
#[case::role_with_a_path(|c: &Cluster| both(c, &json!({"platform": {"aws": {"rolesRef":
    {"controlPlaneOperatorARN": format!("arn:aws:iam::{GUEST}:role/a/b/cpo")}}}})))]
#[case::cluster_id_in_capitals(|c: &Cluster| both(c, &json!({"clusterID": cluster::CLUSTER_ID.to_uppercase()})))]
#[case::infra_id_in_capitals(|c: &Cluster| both(c, &json!({"infraID": "EXAMPLE-X7K2P"})))]
#[case::access_that_is_new(|c: &Cluster| both(c, &json!({"platform": {"aws": {"endpointAccess": "Moon"}}})))]
#[tokio::test(start_paused = true)]
async fn odd_input_has_a_path_that_is_not_written_for_ever(#[case] change: fn(&Cluster)) {
    let mut life = Life::new();
    let empty = life.remains();
    change(&life.cluster);
    life.run_for(Duration::from_secs(1_200)).await;
    assert!(life.is_reachable(), "{:#}", life.cluster.get(CR).unwrap());
    assert!(life.is_available(), "{:#}", life.cluster.get(CR).unwrap());
    life.aws.clear_journal();
    life.run_for(Duration::from_secs(3_600)).await;
    assert_eq!(life.aws.writes(), Vec::<String>::new());
    life.deleted().await;
    assert_eq!(life.remains(), empty);
}

/// AWS knows a zone, or does not, and a single read tells which; nothing is read of subnets that the endpoint is in.
#[tokio::test(start_paused = true)]
async fn zone_of_a_single_subnet_is_read_once() {
    let mut life = Life::new();
    life.until_available().await;
    assert_eq!(life.calls_of("DescribeSubnets").len(), 1);
    life.run_for(Duration::from_secs(7_200)).await;
    assert_eq!(life.calls_of("DescribeSubnets").len(), 1);
}

/// AWS lets a load balancer go only once its endpoint service is gone. The Service has the new host name later.
#[tokio::test(start_paused = true)]
async fn load_balancer_replaced_under_its_name_has_its_own_service() {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    let before = live(&life.aws, "vpc-endpoint-service").remove(0);
    let mut balancer = life.aws.resources_of("elasticloadbalancing", "loadbalancer/").remove(0);
    life.removed(&balancer);
    life.removed(&before);
    let arn = balancer["id"].as_str().unwrap();
    let (path, _) = arn.rsplit_once('/').unwrap();
    balancer["id"] = json!(format!("{path}/ffffffffffffffff"));
    let name = hyperlink::hypershift::names::load_balancer(cluster::UID);
    let host = format!("{name}-ffffffffffffffff.{ALIAS}");
    balancer["dns_name"] = json!(host);
    let service = json!({"load_balancer": balancer["id"], "name": "clusters-example/private-router"});
    life.aws.change(balancer, |_| {});
    life.aws.aws().put_service(serde_json::from_value(service).unwrap());
    life.cluster.forge(
        SERVICE,
        &json!({"status": {"loadBalancer": {"ingress": [{"hostname": host}]}}}),
    );
    life.wake();
    life.run_for(Duration::from_secs(3_600)).await;
    assert!(
        life.is_available() && life.is_reachable(),
        "{:#}",
        life.cluster.get(CR).unwrap()
    );
    let after = live(&life.aws, "vpc-endpoint-service");
    assert!(after.len() == 1 && after[0]["id"] != before["id"], "{after:?}");
    life.deleted().await;
    assert_eq!(life.remains(), empty);
}
