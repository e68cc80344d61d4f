//! The load balancer is deleted and made again under its name, which it has from the same Service.

use rstest::rstest;

use super::cluster::SERVICE;
use super::*;
use crate::strangers::live;

const HO: &str = "AWSEndpointServiceAvailable";

impl Life {
    /// Replaces the load balancer by another one of its name. Returns the host name of that.
    pub(super) fn replace_load_balancer(&self) -> String {
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

    /// Gives the Service this host name: there are a service and a path of its own, in place of this service.
    async fn is_replaced_whole(&mut self, host: &str, before: &Value, empty: &[String]) {
        let ingress = json!({"status": {"loadBalancer": {"ingress": [{"hostname": host}]}}});
        self.cluster.forge(SERVICE, &ingress);
        self.wake();
        self.run_for(Duration::from_secs(3_600)).await;
        assert!(
            self.is_available() && self.is_reachable(),
            "{:#}",
            self.cluster.get(CR).unwrap()
        );
        let after = live(&self.aws, "vpc-endpoint-service");
        assert!(after.len() == 1 && after[0]["id"] != before["id"], "{after:#?}");
        self.deleted().await;
        assert_eq!(self.remains(), empty);
    }
}

/// The cloud provider is late: until the Service has the new host name, nothing vouches for what has the name now.
#[rstest]
#[case::without_the_service_of_before(true)]
#[case::beside_the_service_of_before(false)]
#[tokio::test(start_paused = true)]
async fn load_balancer_of_another_host_name_is_waited_for(#[case] is_service_gone: bool) {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    let before = live(&life.aws, "vpc-endpoint-service").remove(0);
    let host = life.replace_load_balancer();
    if is_service_gone {
        life.removed(&before);
    } else {
        // AWS is believed to keep the load balancer of a service that was published, or that was read just now.
        life.cluster
            .forge(CR, &json!({"status": {"endpointServiceName": null}}));
        life.restart(Role::Ho);
    }
    life.wake();
    life.aws.clear_journal();
    life.run_for(Duration::from_secs(1_800)).await;
    let (status, reason, message) = life.condition(HO);
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "LoadBalancerNotActive"),
        "{message}"
    );
    assert_eq!(life.calls_of("CreateVpcEndpointServiceConfiguration"), []);
    let calls = life.aws.journal().len();
    assert!(calls <= 140, "{calls} calls");
    life.is_replaced_whole(&host, &before, &empty).await;
}

/// A service that was published is not searched again: the ids in the ARN and in the host name tell that it is
/// another's.
#[tokio::test(start_paused = true)]
async fn load_balancer_replaced_beside_its_service_is_noticed() {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    let before = live(&life.aws, "vpc-endpoint-service").remove(0);
    let host = life.replace_load_balancer();
    life.wake();
    life.aws.clear_journal();
    life.run_for(Duration::from_secs(1_800)).await;
    assert_eq!(life.calls_of("CreateVpcEndpointServiceConfiguration"), []);
    let calls = life.aws.journal().len();
    assert!(calls <= 140, "{calls} calls");
    life.is_replaced_whole(&host, &before, &empty).await;
}
