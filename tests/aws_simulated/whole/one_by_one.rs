//! Subnets of which nothing tells whether AWS takes them: nobody may read their zones, or HyperShift's own management
//! side does not tell in which zones the endpoint service is.

use hyperlink::api::markers::aws::SERVICE_ZONES;
use rstest::rstest;

use super::*;
use crate::strangers::live;

/// The policies of HyperShift before it read subnets.
pub(super) fn without_subnets(seed: &mut Value) {
    let allowed = &mut seed["accounts"][1]["users"][0]["policies"][0]["Statement"][0]["Action"];
    allowed
        .as_array_mut()
        .unwrap()
        .retain(|action| action != "ec2:DescribeSubnets");
}

/// A subnet of the guest in a zone in which the load balancer is not.
pub(super) fn with_unserved_subnet(seed: &mut Value) {
    let subnet = json!({"id": format!("arn:aws:ec2:us-east-1:{GUEST}:subnet/subnet-00000000"), "vpc": "vpc-00000002",
        "cidr": "10.0.6.0/24", "zone_id": "use1-az6"});
    seed["resources"].as_array_mut().unwrap().push(subnet);
}

impl Life {
    /// Gives the cluster workers in one subnet after the other.
    pub(super) fn has_workers_in(&mut self, subnets: &[&str]) {
        let mut pool = self.cluster.get("clusters/nodepools/a").unwrap();
        for subnet in subnets {
            pool["metadata"]["name"] = json!(subnet);
            pool["metadata"]["uid"] = json!(subnet);
            pool["spec"]["platform"]["aws"]["subnet"]["id"] = json!(subnet);
            self.cluster.put(&format!("clusters/nodepools/{subnet}"), pool.clone());
        }
        self.wake();
    }

    pub(super) fn attached(&self) -> String {
        live(&self.aws, "vpc-endpoint")[0]["subnets"].to_string()
    }

    /// Lets HyperShift's own management side go on: it does not tell zones.
    async fn under_hypershifts_own_management_side(&mut self) {
        while !self.holds("AWSEndpointServiceAvailable") {
            self.reconcile_next().await;
        }
        self.without(Role::Ho);
        self.cluster
            .forge(CR, &json!({"metadata": {"annotations": {SERVICE_ZONES: null}}}));
    }
}

#[rstest]
#[case::of_a_zone_that_is_served("subnet-00000003")]
#[case::unknown("subnet-00000009")]
#[tokio::test(start_paused = true)]
async fn subnets_are_added_one_by_one_where_zones_are_denied(#[case] refused: &str) {
    let mut life = Life::with(without_subnets);
    life.has_workers_in(&["subnet-00000002"]);
    life.until_available().await;
    life.run_for(Duration::from_secs(600)).await;
    let attached = life.attached();
    assert!(
        attached.contains("subnet-00000001") && attached.contains("subnet-00000002"),
        "{attached}"
    );
    life.has_workers_in(&[refused]);
    life.aws.clear_journal();
    life.stays_available_for(Duration::from_secs(7_000)).await;
    assert_eq!(life.attached(), attached);
    assert!(life.is_available() && life.is_reachable(), "{:#?}", life.aws.actions());
    let tries = life.calls_of("ModifyVpcEndpoint").len();
    assert!((1..=8).contains(&tries), "{tries} tries in two hours");
    let events = life.cluster.take_events();
    assert!(
        events
            .iter()
            .any(|note| note.contains(&format!("AWS refuses {refused}"))),
        "{events:?}"
    );
}

#[rstest]
#[case::from_the_beginning(true)]
#[case::later(false)]
#[tokio::test(start_paused = true)]
async fn subnet_in_an_unserved_zone_is_left_out(#[case] is_early: bool) {
    let mut life = Life::with(with_unserved_subnet);
    let unserved = ["subnet-00000000"];
    if is_early {
        life.has_workers_in(&unserved);
    }
    life.under_hypershifts_own_management_side().await;
    life.until_available().await;
    if !is_early {
        // As the management side would name it.
        let mut subnets = life.cr().unwrap().spec.subnet_ids;
        subnets.insert(0, unserved[0].to_owned());
        life.cluster.forge(CR, &json!({"spec": {"subnetIDs": subnets}}));
    }
    life.run_for(Duration::from_secs(3_000)).await;
    assert!(
        life.is_available() && life.is_reachable(),
        "{:#}",
        life.cluster.get(CR).unwrap()
    );
    assert!(!life.attached().contains(unserved[0]));
    let tries = life.calls_of("CreateVpcEndpoint").len() + life.calls_of("ModifyVpcEndpoint").len();
    assert!(tries <= 9, "{tries} tries");
    let events = life.cluster.take_events();
    assert!(
        events.iter().any(|note| note.contains("AWS refuses subnet-00000000")),
        "{events:?}"
    );
}
