//! A cluster on AWS, its custom resource, and what AWS shows of it, for the tests of the controller.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::inputs::EndpointServiceInputs;
use super::plan::Basis;
use super::settings::Settings;
use crate::api::markers::aws::HO_FINALIZER;
use crate::api::{AWSEndpointService, NodePool};
use crate::aws::api::error::AwsError;
use crate::aws::cloud::Observed;
use crate::aws::region::Region;
use crate::aws::slot::{Scope, Slot};
use crate::controllers::aws::Facts;
use crate::controllers::aws::lists::ServicesOf;
use crate::hypershift::aws::load_balancer_name::{NlbMatch, ServiceFacts};
use crate::hypershift::aws::principals;
use crate::hypershift::aws::subnet_ids::KarpenterList;
use crate::hypershift::identity::{DeletedCluster, Identity};

pub(super) const ACCOUNT: &str = "111122223333";
pub(super) const ROLE: &str = "arn:aws:iam::444455556666:role/path/cpo";
pub(super) const PRINCIPAL: &str = "arn:aws:iam::444455556666:role/cpo";
pub(super) const NAME: &str = "aa1b2c3d4e5f60718293a4b5c6d7e8f9";
pub(super) const HOST: &str = "aa1b2c3d4e5f60718293a4b5c6d7e8f9-0123456789abcdef.elb.us-east-1.amazonaws.com";
pub(super) const SERVICE_ID: &str = "vpce-svc-0123456789abcdef0";
pub(super) const SERVICE_NAME: &str = "com.amazonaws.vpce.us-east-1.vpce-svc-0123456789abcdef0";
pub(super) const CLUSTER_ID: &str = "5f2c6c2e-8a3c-4a7e-9a0e-0d6b3c1f7a11";

/// What a decision is made from, all of it.
pub(super) struct Sample {
    pub(super) cr: AWSEndpointService,
    pub(super) inputs: EndpointServiceInputs,
    pub(super) facts: Facts,
    pub(super) settings: Settings,
}

impl Sample {
    /// A new custom resource of a cluster about whom AWS shows nothing yet.
    pub(super) fn new() -> Self {
        let identity = identity();
        let aws = serde_json::from_value(json!({"rolesRef": {"controlPlaneOperatorARN": ROLE}})).unwrap();
        Self {
            cr: serde_json::from_value(json!({
                "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
                "metadata": {"name": "private-router", "namespace": "clusters-example", "uid": "cr-uid"},
                "spec": {"networkLoadBalancerName": NAME, "resourceTags": [{"key": "team", "value": "x"}]},
            }))
            .unwrap(),
            inputs: EndpointServiceInputs {
                deleted_cluster: DeletedCluster::Of(identity.clone()),
                identity: Ok(identity),
                cluster: Some("clusters/example".to_owned()),
                hosted_cluster: None,
                paused: None,
                paused_until: None,
                service: Some(ServiceFacts {
                    uid: "a1b2c3d4-e5f6-0718-293a-4b5c6d7e8f90".to_owned(),
                    owned: true,
                    host_names: vec![HOST.to_owned()],
                }),
                unwanted: None,
                principals: principals::desired(&aws),
                node_pools: vec![pool("a", "subnet-0000000b"), pool("b", "subnet-0000000a")],
                karpenter: KarpenterList::Absent,
                load_balancer_claimed: false,
                named_by_others: BTreeSet::new(),
            },
            facts: Facts::default(),
            settings: Settings {
                account: account(),
                region: Region::parse("us-east-1").unwrap(),
                infrastructure: Some("mgmt".to_owned()),
                nlb_match: NlbMatch::Uid,
            },
        }
    }

    /// The same, held by the role, with an endpoint service that has all that is desired.
    pub(super) fn ready() -> Self {
        let mut sample = Self::new();
        sample.cr.metadata.finalizers = Some(vec![HO_FINALIZER.to_owned()]);
        sample.cr.status = serde_json::from_value(json!({"endpointServiceName": SERVICE_NAME})).unwrap();
        sample.shows(service(), endpoint_service(NAME));
        let principals = Slot::allowed_principals(&service());
        sample.shows(principals, json!({"AllowedPrincipals": [PRINCIPAL]}));
        sample
    }

    /// AWS shows this of a slot.
    pub(super) fn shows(&mut self, slot: Slot, body: Value) {
        self.observes(slot, Observed::Found(body));
    }

    /// This was observed of a slot just now.
    pub(super) fn observes(&mut self, slot: Slot, observed: Observed) {
        self.facts.fresh_reads.insert(slot.clone());
        self.facts.reads.insert(slot, observed);
    }

    /// AWS lists these endpoint services with the tag of the cluster.
    pub(super) fn lists(&mut self, services: Result<Vec<Value>, AwsError>) {
        let of = ServicesOf {
            scope: account(),
            cluster_id: CLUSTER_ID.to_owned(),
        };
        self.facts.lists.endpoint_services.insert(of, services);
    }

    pub(super) fn basis(&self) -> Basis<'_> {
        Basis {
            cr: &self.cr,
            inputs: &self.inputs,
            facts: &self.facts,
            settings: &self.settings,
        }
    }
}

pub(super) fn identity() -> Identity {
    Identity {
        name: "example".to_owned(),
        cluster_id: CLUSTER_ID.to_owned(),
        infra_id: "example-x7k2p".to_owned(),
    }
}

pub(super) fn account() -> Scope {
    Scope::own(ACCOUNT, "us-east-1")
}

pub(super) fn service() -> Slot {
    Slot::endpoint_service(&account(), NAME)
}

pub(super) fn arn(name: &str) -> String {
    format!("arn:aws:elasticloadbalancing:us-east-1:{ACCOUNT}:loadbalancer/net/{name}/0123456789abcdef")
}

/// The load balancer in a state.
pub(super) fn load_balancer(state: &str) -> Value {
    json!({"Id": arn(NAME), "Name": NAME, "State": state, "DNSName": HOST})
}

/// The endpoint service of a load balancer, as HyperShift's own controllers make it.
pub(super) fn endpoint_service(load_balancer: &str) -> Value {
    json!({"Id": SERVICE_ID, "ServiceName": SERVICE_NAME, "State": "Available", "AcceptanceRequired": false,
        "NetworkLoadBalancerArns": [arn(load_balancer)], "ZoneIds": ["use1-az1", "use1-az2"],
        "Region": "us-east-1", "Tags": {"kubernetes.io/cluster/mgmt": "owned", "team": "x"}})
}

fn pool(name: &str, subnet: &str) -> NodePool {
    serde_json::from_value(json!({"metadata": {"name": name, "namespace": "clusters"},
        "spec": {"clusterName": "example", "platform": {"type": "AWS", "aws": {"subnet": {"id": subnet}}}}}))
    .unwrap()
}
