//! What kept a path from being as it should ends in AWS itself: the path follows, without a change in Kubernetes.

use hyperlink::api::markers::aws::SERVICE_ZONES;
use rstest::rstest;

use super::one_by_one::{with_unserved_subnet, without_subnets};
use super::*;
use crate::strangers::live;

/// A subnet of the guest in a zone in which the load balancer is not.
const UNSERVED: &str = "subnet-00000000";
/// A subnet that does not exist at first.
const NEW: &str = "subnet-00000009";
/// The longest until what AWS has refused, or not known, is tried again: a quarter of an hour, and the call itself.
const LONGEST: Duration = Duration::from_secs(16 * 60);

/// A subnet of the management side in the zone that the load balancer lacks.
fn with_third_zone(seed: &mut Value) {
    with_unserved_subnet(seed);
    let subnet = json!({"id": format!("arn:aws:ec2:us-east-1:{MANAGEMENT}:subnet/subnet-m6"), "vpc": "vpc-1",
        "cidr": "10.8.6.0/24", "zone_id": "use1-az6"});
    seed["resources"].as_array_mut().unwrap().push(subnet);
}

impl Life {
    /// Lets the load balancer have a subnet in one more zone.
    fn load_balancer_gets(&self, subnet: &str) {
        self.change_load_balancer(|body| body["subnets"].as_array_mut().unwrap().push(json!(subnet)));
    }

    fn published_zones(&self) -> String {
        let cr = self.cluster.get(CR).unwrap();
        let zones = &cr["metadata"]["annotations"][SERVICE_ZONES];
        zones.as_str().unwrap_or_default().to_owned()
    }

    /// Reconciles until the endpoint is in this subnet, for this long at most, in which the path holds.
    async fn until_attached(&mut self, subnet: &str, longest: Duration) {
        let end = Instant::now() + longest;
        while !self.attached().contains(subnet) {
            assert!(Instant::now() < end, "never in {subnet}: {:#?}", self.aws.actions());
            self.stays_available_for(Duration::from_secs(1)).await;
        }
    }
}

/// The management side notices the zone with its next read, and the guest's side goes by what that publishes.
#[tokio::test(start_paused = true)]
async fn subnet_is_attached_once_the_load_balancer_is_in_its_zone() {
    let mut life = Life::with(with_third_zone);
    life.has_workers_in(&[UNSERVED]);
    life.until_available().await;
    life.stays_available_for(Duration::from_secs(3_600)).await;
    assert!(!life.attached().contains(UNSERVED) && !life.published_zones().contains("use1-az6"));
    life.load_balancer_gets("subnet-m6");
    life.until_attached(UNSERVED, LONGEST).await;
    assert!(life.published_zones().contains("use1-az6"));
    life.until_available().await;
    assert!(life.is_reachable());
}

/// AWS does not know it at first: where zones may be read it is left out, else AWS refuses it.
#[rstest]
#[case::unknown(|_: &mut Value| {}, "is not in the VPC of the cluster")]
#[case::refused(without_subnets, "AWS refuses subnet-00000009")]
#[tokio::test(start_paused = true)]
async fn subnet_that_comes_into_being_is_attached(#[case] rights: fn(&mut Value), #[case] left_out: &str) {
    let mut life = Life::with(rights);
    life.until_available().await;
    life.has_workers_in(&[NEW]);
    life.stays_available_for(Duration::from_secs(3_600)).await;
    let events = life.cluster.take_events();
    assert!(events.iter().any(|note| note.contains(left_out)), "{events:?}");
    let subnet = json!({"id": format!("arn:aws:ec2:us-east-1:{GUEST}:subnet/{NEW}"), "vpc": "vpc-00000002",
        "cidr": "10.0.9.0/24", "zone_id": "use1-az2"});
    life.aws.change(subnet, |_| {});
    life.until_attached(NEW, LONGEST).await;
    assert!(life.is_reachable());
}

/// Somebody accepts the connection by hand: it is the same endpoint.
#[tokio::test(start_paused = true)]
async fn endpoint_that_is_accepted_is_kept() {
    let mut life = Life::new();
    life.until_available().await;
    let before = live(&life.aws, "vpc-endpoint").remove(0);
    life.put_into_state("vpc-endpoint", "pendingAcceptance");
    life.comes_to("EndpointNotAccepted", 0).await;
    life.run_for(Duration::from_secs(3_600)).await;
    life.aws.clear_journal();
    life.put_into_state("vpc-endpoint", "available");
    let came = Instant::now();
    life.until_available().await;
    assert!(came.elapsed() <= LONGEST, "{:?}", came.elapsed());
    assert!(life.is_reachable());
    let after = live(&life.aws, "vpc-endpoint");
    assert_eq!((after.len(), &after[0]["id"]), (1, &before["id"]));
    assert!(
        before["id"]
            .as_str()
            .unwrap()
            .ends_with(life.shown("endpointID").as_str().unwrap())
    );
    assert_eq!(life.aws.writes(), Vec::<String>::new());
}

/// There is no endpoint at first, and nobody names another subnet.
#[tokio::test(start_paused = true)]
async fn path_comes_once_the_load_balancer_has_a_zone_in_common() {
    let mut life = Life::with(with_third_zone);
    let pool = json!({"spec": {"platform": {"aws": {"subnet": {"id": UNSERVED}}}}});
    life.cluster.forge("clusters/nodepools/a", &pool);
    while life.condition("AWSEndpointAvailable").1 != "NoCommonZone" {
        assert!(life.aws.elapsed() < 3_600, "{:#}", life.cluster.get(CR).unwrap());
        life.reconcile_next().await;
    }
    life.run_for(Duration::from_secs(3_600)).await;
    assert!(!life.is_available());
    life.load_balancer_gets("subnet-m6");
    let came = Instant::now();
    life.until_available().await;
    assert!(came.elapsed() <= LONGEST, "{:?}", came.elapsed());
    assert!(life.is_reachable() && life.attached().contains(UNSERVED));
}
