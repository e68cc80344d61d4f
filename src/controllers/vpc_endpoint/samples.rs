//! A guest on AWS, its custom resource, and what AWS shows of it, for the tests of the controller.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use kube::ResourceExt;
use serde_json::{Value, json};

use super::inputs::{Guest, Vouched, VpcEndpointInputs};
use super::plan::Basis;
use crate::api::markers::CPO_INTENT;
use crate::api::markers::aws::CPO_FINALIZER;
use crate::api::{AWSEndpointService, HostedControlPlane};
use crate::aws::cloud::Observed;
use crate::aws::kinds::vpc_endpoint::CUSTOM_RESOURCE_TAG;
use crate::aws::owner_tags::CLUSTER_ID_TAG;
use crate::aws::region::Region;
use crate::aws::route53::hosted_zone::HostedZone;
use crate::aws::slot::{Scope, Slot};
use crate::controllers::aws::Facts;
use crate::controllers::aws::lists::{EndpointsOf, SubnetsIn, ZoneLists};
use crate::hypershift::aws::intent::CpoIntent;
use crate::hypershift::aws::scopes::Access;
use crate::hypershift::intent;
use crate::hypershift::scopes::AllowedScopes;

pub(super) const ACCOUNT: &str = "444455556666";
pub(super) const ROLE: &str = "arn:aws:iam::444455556666:role/hyperlink-example";
pub(super) const VPC: &str = "vpc-0123456789abcdef0";
pub(super) const SERVICE: &str = "com.amazonaws.vpce.us-east-1.vpce-svc-0123456789abcdef0";
pub(super) const ENDPOINT: &str = "vpce-0123456789abcdef0";
pub(super) const DNS_NAME: &str = "vpce-0123456789abcdef0-abc.vpce-svc-0123456789abcdef0.us-east-1.vpce.amazonaws.com";
pub(super) const GROUP: &str = "sg-0123456789abcdef0";
pub(super) const ZONE: &str = "Z0123456789ABCDEFGHIJ";
pub(super) const CLUSTER_ID: &str = "5f2c6c2e-8a3c-4a7e-9a0e-0d6b3c1f7a11";

/// What a decision is made from, all of it.
pub(super) struct Sample {
    pub(super) cr: AWSEndpointService,
    pub(super) inputs: VpcEndpointInputs,
    pub(super) facts: Facts,
    region: Region,
}

/// The control plane, with this in `spec.platform.aws` besides.
pub(super) fn control_plane(aws: &Value) -> HostedControlPlane {
    let mut platform = json!({"region": "us-east-1", "endpointAccess": "Private", "cloudProviderConfig": {"vpc": VPC}});
    for (name, value) in aws.as_object().unwrap() {
        platform[name] = value.clone();
    }
    serde_json::from_value(
        json!({"metadata": {"name": "example", "namespace": "clusters-example"}, "spec": {
        "clusterID": CLUSTER_ID, "infraID": "example-x7k2p",
        "networking": {"machineNetwork": [{"cidr": "10.0.0.0/16"}]},
        "services": [{"service": "APIServer", "servicePublishingStrategy": {"type": "Route"}}],
        "platform": {"type": "AWS", "aws": platform}}}),
    )
    .unwrap()
}

/// A process with the identity of the guest's own account.
pub(super) fn own() -> Access {
    Access::AsNamed(ACCOUNT.to_owned())
}

/// A process for many control planes, whose file allows the sample's guest and has its role.
pub(super) fn allowed() -> Access {
    let aws = json!({"roleARN": ROLE, "vpcIDs": [VPC], "hostedZoneIDs": [ZONE]});
    let file = json!({"hostedClusters": [{"namespace": "clusters", "names": ["example"], "aws": aws}]});
    AllowedScopes::parse(&file.to_string())
        .unwrap()
        .on_aws("clusters-example", Some("example"))
}

impl Sample {
    /// The same before a process for many control planes.
    pub(super) fn among_many(mut self) -> Self {
        self.inputs.access = allowed();
        self.inputs.guest = Guest::of(&control_plane(&json!({})), &allowed(), &self.region);
        self
    }

    /// A custom resource whose endpoint service is published, about whose guest AWS shows nothing yet.
    pub(super) fn new() -> Self {
        let region = Region::parse("us-east-1").unwrap();
        let mut sample = Self {
            cr: serde_json::from_value(json!({
                "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
                "metadata": {"name": "private-router", "namespace": "clusters-example", "uid": "cr-uid"},
                "spec": {"networkLoadBalancerName": "a1", "subnetIDs": ["subnet-0000000a", "subnet-0000000b"]},
                "status": {"endpointServiceName": SERVICE},
            }))
            .unwrap(),
            inputs: VpcEndpointInputs {
                guest: Guest::of(&control_plane(&json!({})), &own(), &region),
                access: own(),
                vouched: Vouched::default(),
                refused_subnets: Default::default(),
                is_unwanted: false,
                paused: None,
                paused_until: None,
            },
            facts: Facts::default(),
            region,
        };
        sample.lists_endpoints(&account(), VPC, Vec::new());
        sample
    }

    /// The endpoints of a VPC that have the custom resource's tags.
    pub(super) fn lists_endpoints(&mut self, scope: &Scope, vpc: &str, bodies: Vec<Value>) {
        let tags = [(CUSTOM_RESOURCE_TAG, "private-router"), (CLUSTER_ID_TAG, CLUSTER_ID)];
        let asked = EndpointsOf {
            scope: scope.clone(),
            vpc: vpc.to_owned(),
            tags: tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        };
        self.facts.lists.endpoints.insert(asked, Ok(Arc::new(bodies)));
    }

    /// The same with all of HyperShift's own making, which shows it in the status.
    pub(super) fn ready() -> Self {
        let mut sample = Self::new();
        sample.cr.metadata.finalizers = Some(vec![CPO_FINALIZER.to_owned()]);
        sample.cr.status = serde_json::from_value(json!({"endpointServiceName": SERVICE, "endpointID": ENDPOINT,
            "securityGroupID": GROUP, "dnsZoneID": ZONE,
            "dnsNames": ["api.example.hypershift.local", "*.apps.example.hypershift.local"]}))
        .unwrap();
        sample.shows(group_slot(), group());
        sample.shows(endpoint_slot(SERVICE), endpoint("available"));
        sample.shows(records_slot(ZONE), records(DNS_NAME));
        sample
    }

    pub(super) fn shows(&mut self, slot: Slot, body: Value) {
        self.observes(slot, Observed::Found(body));
    }

    pub(super) fn observes(&mut self, slot: Slot, observed: Observed) {
        self.facts.reads.insert(slot, observed);
    }

    /// The hosted zones of the account, as one list after the other shows them.
    pub(super) fn has_zones(&mut self, zones: &[(&str, &str)]) {
        let zones = zones.iter().map(|(id, name)| HostedZone {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            private: true,
        });
        self.shows_zones(&account(), zones.collect(), 2);
    }

    /// So many lists have shown these hosted zones.
    pub(super) fn shows_zones(&mut self, account: &Scope, zones: Vec<HostedZone>, lists: usize) {
        let now = Instant::now();
        let once = ZoneLists::after(None, zones.clone(), now);
        let shown = if lists < 2 {
            once
        } else {
            ZoneLists::after(Some(&once), zones, now)
        };
        self.facts
            .lists
            .hosted_zones
            .insert(account.clone(), Ok(Arc::new(shown)));
    }

    /// AWS shows for so long that a resource is not there that this is certain.
    pub(super) fn lacks(&mut self, slot: Slot) {
        self.facts.surely_gone.insert(slot.clone());
        self.observes(slot, Observed::Absent);
    }

    /// The zones of the subnets that are named or attached.
    pub(super) fn has_subnets(&mut self, zones: &[(&str, &str)], asked: &[&str]) {
        let question = SubnetsIn {
            scope: account(),
            vpc: VPC.to_owned(),
            subnets: asked.iter().map(|id| (*id).to_owned()).collect(),
        };
        let zones: HashMap<String, String> = zones
            .iter()
            .map(|(id, zone)| ((*id).to_owned(), (*zone).to_owned()))
            .collect();
        self.facts.lists.subnet_zones.insert(question, Ok(zones));
    }

    pub(super) fn records_intent(&mut self, recorded: &CpoIntent) {
        self.cr
            .annotations_mut()
            .insert(CPO_INTENT.to_owned(), intent::write(recorded));
    }

    pub(super) fn guest(&self) -> &Guest {
        self.inputs.guest.as_ref().unwrap()
    }

    pub(super) fn basis(&self) -> Basis<'_> {
        Basis {
            cr: &self.cr,
            inputs: &self.inputs,
            facts: &self.facts,
            region: &self.region,
        }
    }
}

pub(super) fn account() -> Scope {
    Scope::own(ACCOUNT, "us-east-1")
}

pub(super) fn group_slot() -> Slot {
    Slot::security_group(&account(), VPC, "example-x7k2p-vpce-private-router")
}

pub(super) fn endpoint_slot(service: &str) -> Slot {
    Slot::vpc_endpoint(&account(), VPC, service)
}

pub(super) fn records_slot(zone: &str) -> Slot {
    let names = ["api.example.hypershift.local", "*.apps.example.hypershift.local"];
    Slot::records(&account(), zone, &names)
}

/// The security group, as HyperShift's own controllers make it.
pub(super) fn group() -> Value {
    json!({"Id": GROUP, "GroupName": "example-x7k2p-vpce-private-router", "VpcId": VPC,
        "Tags": {"kubernetes.io/cluster/example-x7k2p": "owned", "Name": "example-x7k2p-vpce-private-router"},
        "Rules": [{"Protocol": "tcp", "FromPort": 443, "ToPort": 443, "Range": "10.0.0.0/16",
            "Description": "Control plane service"}]})
}

/// The endpoint in a state, as HyperShift's own controllers make it.
pub(super) fn endpoint(state: &str) -> Value {
    json!({"Id": ENDPOINT, "ServiceName": SERVICE, "VpcId": VPC, "State": state, "GroupIds": [GROUP],
        "SubnetIds": ["subnet-0000000a", "subnet-0000000b"], "DnsNames": [DNS_NAME],
        "Tags": {"AWSEndpointService": "private-router"}})
}

/// Both records, to this name.
pub(super) fn records(target: &str) -> Value {
    let record = json!({"Type": "CNAME", "TTL": 300, "Values": [target]});
    json!({"Records": {"api.example.hypershift.local": record, "*.apps.example.hypershift.local": record}})
}
