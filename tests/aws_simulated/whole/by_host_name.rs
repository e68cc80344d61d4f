//! `--nlb-match hostname`: load balancers that the AWS Load Balancer Controller has named.

use super::cluster::SERVICE;
use super::fleet::{Fleet, Member};
use super::*;

const NAME: &str = "k8s-clusters-privater-db6fee3a62";
const HO: &str = "AWSEndpointServiceAvailable";

#[tokio::test(start_paused = true)]
async fn balancer_of_the_controller_has_a_whole_life() {
    let mut life = Life::with(|seed| {
        let of_uid = hyperlink::hypershift::names::load_balancer(cluster::UID);
        *seed = serde_json::from_str(&seed.to_string().replace(&of_uid, NAME)).unwrap();
    });
    life.nlb_match = NlbMatch::Hostname;
    life.cluster
        .forge(CR, &json!({"spec": {"networkLoadBalancerName": NAME}}));
    let empty = life.remains();
    life.until_available().await;
    assert!(life.is_reachable());
    life.restart(Role::Ho);
    life.aws.clear_journal();
    life.run_for(Duration::from_secs(3_600)).await;
    assert_eq!(life.aws.writes(), [""; 0]);
    let calls = life.aws.journal().len();
    assert!(calls <= 60, "{calls} calls in an hour at rest");
    life.deleted().await;
    assert_eq!(life.remains(), empty);
}

/// Without the flag its name proves nothing.
#[tokio::test(start_paused = true)]
async fn balancer_of_the_controller_is_refused_by_its_uid() {
    let mut life = Life::with(|seed| {
        let of_uid = hyperlink::hypershift::names::load_balancer(cluster::UID);
        *seed = serde_json::from_str(&seed.to_string().replace(&of_uid, NAME)).unwrap();
    });
    life.cluster
        .forge(CR, &json!({"spec": {"networkLoadBalancerName": NAME}}));
    life.run_for(Duration::from_secs(1_800)).await;
    assert_eq!(life.condition(HO).1, "NotOurs");
    assert!(life.aws.resources("vpc-endpoint-service").is_empty());
}

const YOUNGER: &str = "2026-01-02T00:00:00Z";

/// A second custom resource of the cluster, younger, whose Service reports the load balancer of the first.
fn second_of(fleet: &mut Fleet, member: &Member) -> String {
    for sample in [SERVICE, CR] {
        let mut object = fleet.cluster.get(&member.key(sample)).unwrap();
        let uid = object["metadata"]["uid"].as_str().unwrap();
        object["metadata"]["uid"] = json!(format!("{uid}-2"));
        object["metadata"]["name"] = json!("kube-apiserver-private");
        object["metadata"]["creationTimestamp"] = json!(YOUNGER);
        let key = member.key(sample).replace("private-router", "kube-apiserver-private");
        fleet.cluster.put(&key, object);
    }
    let key = member.key(CR).replace("private-router", "kube-apiserver-private");
    fleet.serve(&key);
    key
}

/// The custom resource of another cluster, younger, whose Service reports the load balancer of the first one's.
fn of_another(fleet: &mut Fleet, (member, other): (&Member, &Member)) -> String {
    let ingress = json!([{"hostname": fleet.host_name(member)}]);
    let status = json!({"status": {"loadBalancer": {"ingress": ingress}}});
    fleet.cluster.forge(&other.key(SERVICE), &status);
    let younger = json!({"metadata": {"creationTimestamp": YOUNGER},
        "spec": {"networkLoadBalancerName": member.balancer()}});
    fleet.cluster.forge(&other.key(CR), &younger);
    other.key(CR)
}

/// One load balancer can have one endpoint service. The younger one gets it once the older one is gone.
#[rstest::rstest]
#[tokio::test(start_paused = true)]
async fn younger_of_two_with_one_balancer_waits_for_the_older(#[values(false, true)] is_of_another: bool) {
    let member = Member::new("example", 1, GUEST, 1);
    let other = Member::new("other", 2, GUEST, 2);
    let mut fleet = Fleet::new(&[member.clone(), other.clone()]);
    fleet.nlb_match = NlbMatch::Hostname;
    let younger = match is_of_another {
        true => of_another(&mut fleet, (&member, &other)),
        false => second_of(&mut fleet, &member),
    };
    fleet.until_available(&member).await;
    fleet.aws.clear_journal();
    fleet.run_until(Duration::from_secs(3_600), |_| false).await;
    assert_eq!(fleet.condition(&younger, HO)[1], "AmbiguousLoadBalancer");
    assert!(fleet.is_available(&member.key(CR)) && fleet.is_reachable(&member));
    let calls = fleet.aws.journal().len();
    assert!(calls <= 200, "{calls} calls in an hour");
    let older = member.key(CR);
    fleet.cluster.delete_at(&older, &Timestamp::now().to_string());
    let is_served = |fleet: &Fleet| fleet.cluster.get(&older).is_none() && fleet.is_available(&younger);
    let comes = fleet.run_until(Duration::from_secs(3_600), is_served).await;
    assert!(comes, "{:#}", fleet.cluster.get(&younger).unwrap());
    let services = fleet.aws.resources("vpc-endpoint-service");
    let live = services
        .iter()
        .filter(|body| body["state"] == "Available" && body.to_string().contains(&member.balancer()));
    assert_eq!(live.count(), 1);
}
