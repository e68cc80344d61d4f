//! A tenant who wants an endpoint service of the management account to stay: nothing names it any more, or somebody
//! connects to it again and again.

use hyperlink::api::markers::aws::HO_FINALIZER;
use hyperlink::aws::kinds::vpc_endpoint::VpcEndpoint;
use rstest::rstest;

use super::cluster::{CLUSTER_ID, NAMESPACE, SERVICE};
use super::*;
use crate::desired::{scope, vpc_endpoint};
use crate::principals::count;
use crate::strangers::{live, token};

const OTHER: &str = "clusters-example/awsendpointservices/kube-apiserver-private";
const OTHER_ARN: &str = "arn:aws:elasticloadbalancing:us-east-1:111122223333:loadbalancer/net/other/77aa6c495c0c9188";
const OTHER_SERVICE: &str = "arn:aws:ec2:us-east-1:111122223333:vpc-endpoint-service/vpce-svc-0123456789abcdef0";

impl Life {
    /// A tenant takes the guest's side out of the way, and the custom resource is deleted.
    fn deleted_without_the_guests_side(&self, more: &Value) {
        self.cluster.forge(CR, more);
        let own = json!({"metadata": {"finalizers": [HO_FINALIZER],
            "annotations": {"hyperlink.hypershift.openshift.io/cpo-intent": null}}});
        self.cluster.forge(CR, &own);
        self.cluster.delete_at(CR, &Timestamp::now().to_string());
    }

    fn services(&self) -> Vec<Value> {
        live(&self.aws, "vpc-endpoint-service")
    }
}

#[rstest]
#[case::intent("{}")]
#[case::intent_of_nothing("")]
#[tokio::test(start_paused = true)]
async fn service_that_the_tenant_hides_is_deleted(#[case] intent: &str) {
    let mut life = Life::new();
    life.until_available().await;
    life.cluster.remove(SERVICE);
    life.deleted_without_the_guests_side(&json!({"spec": {"networkLoadBalancerName": "junk"},
        "metadata": {"annotations": {"hyperlink.hypershift.openshift.io/ho-intent": intent}}}));
    life.aws.clear_journal();
    life.cluster.take_events();
    life.run_for(Duration::from_secs(3_600)).await;
    assert!(life.cr().is_none(), "{:#}", life.cluster.get(CR).unwrap());
    assert_eq!(life.services(), Vec::<Value>::new());
    let calls = life.aws.actions();
    assert!(calls.len() <= 30, "{} calls: {calls:#?}", calls.len());
    let events = life.cluster.take_events();
    assert!(
        events.iter().any(|note| note == "nothing of ours is left in AWS"),
        "{events:?}"
    );
}

/// The cluster's tag is on the endpoint services of both its custom resources.
#[rstest]
#[case::of_the_other_custom_resource(Some("other"), false)]
#[case::of_the_other_ones_service(Some("of-before"), true)]
#[case::of_nobody(None, false)]
#[tokio::test(start_paused = true)]
async fn tagged_service_stays_only_if_the_other_one_has_it(#[case] named: Option<&str>, #[case] is_reported: bool) {
    let mut life = Life::new();
    life.until_available().await;
    let now = life.aws.now();
    let balancer = json!({"id": OTHER_ARN, "vpc": "vpc-1", "subnets": ["subnet-m1", "subnet-m2"], "state": "active"});
    let tags = json!({"kubernetes.io/cluster/mgmt": "owned", "hypershift.openshift.io/cluster-id": CLUSTER_ID});
    let service = json!({"id": OTHER_SERVICE, "load_balancers": [OTHER_ARN], "state": "Available",
        "acceptance_required": false, "principals": [], "tags": tags});
    life.aws.aws().put_resource(now, OTHER_ARN, balancer).unwrap();
    life.aws.aws().put_resource(now, OTHER_SERVICE, service).unwrap();
    let metadata = json!({"name": "kube-apiserver-private", "namespace": NAMESPACE, "uid": "other",
        "finalizers": [HO_FINALIZER]});
    if let Some(named) = named {
        let mut other = life.cluster.get(CR).unwrap();
        other["metadata"] = metadata.clone();
        other["spec"]["networkLoadBalancerName"] = json!(named);
        life.cluster.put(OTHER, other);
    }
    if is_reported {
        let host_name = "other-77aa6c495c0c9188.elb.us-east-1.amazonaws.com";
        let status = json!({"loadBalancer": {"ingress": [{"hostname": host_name}]}});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "status": status});
        life.cluster
            .put("clusters-example/services/kube-apiserver-private", service);
    }
    life.deleted().await;
    let left: Vec<Value> = life
        .services()
        .into_iter()
        .map(|service| service["id"].clone())
        .collect();
    let expected: &[&str] = if named.is_some() { &[OTHER_SERVICE] } else { &[] };
    assert_eq!(left, expected);
}

#[tokio::test(start_paused = true)]
async fn nobody_connects_any_more_once_connections_are_rejected() {
    let mut life = Life::new();
    life.until_available().await;
    let tenant = crate::process::Process::cpo(&life.aws);
    let name = life.cr().unwrap().status.unwrap().endpoint_service_name.unwrap();
    let groups = life.aws.resources("security-group");
    let own = groups.iter().find(|group| group["name"] != "default").unwrap();
    let group = own["id"].as_str().unwrap().rsplit('/').next().unwrap();
    let endpoint = |number: u32| VpcEndpoint {
        slot: hyperlink::aws::slot::Slot::vpc_endpoint(&scope(GUEST), "vpc-00000002", &name),
        client_token: token(&format!("of-the-tenant-{number}")),
        ..vpc_endpoint(&name, group, &[])
    };
    assert!(tenant.connects(&endpoint(1)).await, "he may until then");
    life.cluster.take_events();
    life.deleted_without_the_guests_side(&json!({}));
    while count(&life.aws, "/RejectVpcEndpointConnections") == 0 {
        life.reconcile_next().await;
    }
    assert!(!tenant.connects(&endpoint(2)).await);
    life.run_for(Duration::from_secs(600)).await;
    assert!(life.cr().is_none(), "{:#}", life.cluster.get(CR).unwrap());
    assert_eq!(life.services(), Vec::<Value>::new());
    let changes = count(&life.aws, "/ModifyVpcEndpointServicePermissions");
    assert_eq!(changes, 2, "one when it was made, one when it went");
    let events = life.cluster.take_events();
    assert!(!events.iter().any(|note| note.contains("repaired")), "{events:?}");
}
