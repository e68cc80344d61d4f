//! The load balancer is deleted and made again under its name, which it has from the same Service.

use rstest::rstest;

use super::cluster::SERVICE;
use super::*;
use crate::strangers::live;

const HO: &str = "AWSEndpointServiceAvailable";

impl Life {
    /// Replaces the load balancer by another one of its name. Returns the host name of that.
    fn replace_beside(&self) -> String {
        let mut balancer = self.aws.resources_of("elasticloadbalancing", "loadbalancer/").remove(0);
        self.removed(&balancer);
        let (path, _) = balancer["id"].as_str().unwrap().rsplit_once('/').unwrap();
        balancer["id"] = json!(format!("{path}/ffffffffffffffff"));
        let name = hyperlink::hypershift::names::load_balancer(cluster::UID);
        let host = format!("{name}-ffffffffffffffff.elb.us-east-1.amazonaws.com");
        balancer["dns_name"] = json!(host);
        let service = json!({"load_balancer": balancer["id"], "name": "clusters-example/private-router"});
        self.aws.change(balancer, |_| {});
        self.aws.aws().put_service(serde_json::from_value(service).unwrap());
        host
    }
}

/// The cloud provider is late: until the Service has the new host name, nothing vouches for what has the name now.
#[rstest]
#[case::beside_the_service_of_before(false)]
#[tokio::test(start_paused = true)]
async fn load_balancer_replaced_beside_its_service_is_noticed(#[case] is_service_gone: bool) {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    let before = live(&life.aws, "vpc-endpoint-service").remove(0);
    let host = life.replace_beside();
    if is_service_gone {
        life.removed(&before);
    }
    life.wake();
    life.aws.clear_journal();
    life.run_for(Duration::from_secs(1_800)).await;
    let (status, reason, message) = life.condition(HO);
    if is_service_gone {
        assert_eq!(
            (status.as_str(), reason.as_str()),
            ("False", "LoadBalancerNotActive"),
            "{message}"
        );
    }
    assert_eq!(life.calls_of("CreateVpcEndpointServiceConfiguration"), []);
    let calls = life.aws.journal().len();
    assert!(calls <= 140, "{calls} calls");
    let ingress = json!({"status": {"loadBalancer": {"ingress": [{"hostname": host}]}}});
    life.cluster.forge(SERVICE, &ingress);
    life.wake();
    life.run_for(Duration::from_secs(3_600)).await;
    assert!(
        life.is_available() && life.is_reachable(),
        "{:#}",
        life.cluster.get(CR).unwrap()
    );
    let after = live(&life.aws, "vpc-endpoint-service");
    assert!(after.len() == 1 && after[0]["id"] != before["id"], "{after:#?}");
    life.deleted().await;
    assert_eq!(life.remains(), empty);
}
