//! Policies that allow less than HyperShift's own: AWS's managed policy lets a role tag what it creates, and only then.

use hyperlink::aws::owner_tags::CLUSTER_ID_TAG;
use rstest::rstest;

use super::cluster::PLANE;
use super::*;
use crate::lost::groups;
use crate::strangers::live;

const NETWORK: &str = "10.0.0.0/16";
const NEW_NETWORK: &str = "10.2.0.0/16";
const NEW_SUBNET: &str = "subnet-00000002";

/// Tags in a create alone, as AWS's `ROSAControlPlaneOperatorPolicy` allows them.
fn tags_in_creates(seed: &mut Value) {
    let allowed = &mut seed["accounts"][1]["users"][0]["policies"][0]["Statement"];
    let allowed = allowed.as_array_mut().unwrap();
    let actions = allowed[0]["Action"].as_array_mut().unwrap();
    actions.retain(|action| action != "ec2:CreateTags");
    let creates = json!(["CreateVpcEndpoint", "CreateSecurityGroup"]);
    allowed.push(json!({"Effect": "Allow", "Action": "ec2:CreateTags", "Resource": "*",
        "Condition": {"StringEquals": {"ec2:CreateAction": creates}}}));
}

impl Life {
    /// The endpoint and its group.
    fn guests_side(&self) -> [Value; 2] {
        [live(&self.aws, "vpc-endpoint").remove(0), groups(&self.aws).remove(0)]
    }

    /// A path as HyperShift's own controllers leave it, without the owner's tag, to a new process.
    async fn adopted(change: fn(&mut Value)) -> Self {
        let mut life = Self::with(change);
        life.until_available().await;
        for body in life.guests_side() {
            life.aws.change(body, |body| {
                body["tags"].as_object_mut().unwrap().remove(CLUSTER_ID_TAG);
            });
        }
        life.restart(Role::Cpo);
        life.run_for(Duration::from_secs(600)).await;
        assert!(life.is_available());
        life.aws.clear_journal();
        life
    }

    /// Gives the cluster these machine networks.
    fn has_networks(&mut self, networks: &[&str]) {
        let networks: Vec<Value> = networks.iter().map(|cidr| json!({ "cidr": cidr })).collect();
        self.cluster
            .forge(PLANE, &json!({"spec": {"networking": {"machineNetwork": networks}}}));
        self.wake();
    }

    /// Gives the cluster workers in a subnet of another zone.
    fn has_workers_in_another_zone(&mut self) {
        let mut pool = self.cluster.get("clusters/nodepools/a").unwrap();
        pool["metadata"]["name"] = json!("b");
        pool["metadata"]["uid"] = json!("pool-b");
        pool["spec"]["platform"]["aws"]["subnet"]["id"] = json!(NEW_SUBNET);
        self.cluster.put("clusters/nodepools/b", pool);
        self.wake();
    }
}

#[rstest]
#[case::hypershifts_own(|_: &mut Value| {}, true)]
#[case::of_aws(tags_in_creates, false)]
#[tokio::test(start_paused = true)]
async fn adopted_path_follows_its_cluster(#[case] policy: fn(&mut Value), #[case] may_tag: bool) {
    let mut life = Life::adopted(policy).await;
    life.has_networks(&[NETWORK, NEW_NETWORK]);
    life.run_for(Duration::from_secs(300)).await;
    let [_, group] = life.guests_side();
    assert!(group["ingress"].to_string().contains(NEW_NETWORK), "{group}");
    life.has_workers_in_another_zone();
    life.run_for(Duration::from_secs(600)).await;
    let [endpoint, group] = life.guests_side();
    assert!(endpoint["subnets"].to_string().contains(NEW_SUBNET), "{endpoint}");
    assert!(life.is_available() && life.is_reachable());
    let is_marked = [&endpoint, &group].map(|body| body["tags"][CLUSTER_ID_TAG].is_string());
    assert_eq!(is_marked, [may_tag; 2]);
    // With each of the two changes once.
    assert_eq!(life.calls_of("CreateTags").len(), 2, "{:#?}", life.aws.actions());
    life.run_for(Duration::from_secs(3_600)).await;
    assert_eq!(life.calls_of("CreateTags").len(), 2, "tried again");
}

/// Tags that cannot be added are reported, and keep no rule from being changed.
#[tokio::test(start_paused = true)]
async fn path_whose_new_tags_are_denied_lets_new_networks_in() {
    let mut life = Life::with(tags_in_creates);
    let empty = life.remains();
    life.until_available().await;
    let team = json!({"spec": {"resourceTags": [{"key": "team", "value": "payments"}]}});
    life.cluster.forge(CR, &team);
    life.run_for(Duration::from_secs(600)).await;
    let (status, reason, message) = life.condition("AWSEndpointAvailable");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "SecurityGroupFailed"));
    assert!(message.contains("UnauthorizedOperation"), "{message}");
    life.aws.clear_journal();
    life.has_networks(&[NETWORK, NEW_NETWORK]);
    life.run_for(Duration::from_secs(1_800)).await;
    let [_, group] = life.guests_side();
    assert!(group["ingress"].to_string().contains(NEW_NETWORK), "{group}");
    let tries = life.calls_of("CreateTags").len();
    assert!((1..=6).contains(&tries), "{tries} tries in half an hour");
    life.deleted().await;
    assert_eq!(life.remains(), empty);
}
