//! A cluster's path from nothing to nothing.

use std::sync::Arc;
use std::time::Duration;

use hyperlink::aws::body::text;
use hyperlink::aws::cloud::Aws;
use hyperlink::aws::kinds::Kind;
use hyperlink::aws::kinds::endpoint_connections::EndpointConnections;
use hyperlink::aws::kinds::records::ReleasedRecords;
use hyperlink::aws::kinds::vpc_endpoint::dns_name;
use hyperlink::aws::slot::Slot;
use hyperlink::aws::sts::caller_account;
use hyperlink::engine::cloud::Cloud;
use hyperlink::engine::plan::{Verb, ensure_absent};
use serde_json::{Value, json};

use crate::desired::{
    API, APPS, GUEST, MANAGEMENT, allowed_principals, endpoint_service, load_balancer, records, security_group,
    vpc_endpoint,
};
use crate::process::{Identity, Process};
use crate::sim::SimTransport;

/// Two processes, and the path that they have made.
pub(crate) struct Path {
    pub(crate) aws: Arc<SimTransport>,
    pub(crate) ho: Process,
    pub(crate) cpo: Process,
    pub(crate) service: Value,
    pub(crate) group: Value,
    pub(crate) endpoint: Value,
}

impl Path {
    pub(crate) async fn made() -> Self {
        let aws = SimTransport::new();
        let (ho, cpo) = (Process::ho(&aws), Process::cpo(&aws));
        Self::made_by(aws, ho, cpo).await
    }

    pub(crate) async fn made_by(aws: Arc<SimTransport>, ho: Process, cpo: Process) -> Self {
        ho.ready(Kind::LoadBalancer, &load_balancer()).await;
        let service = ho.present(&endpoint_service()).await;
        ho.present(&allowed_principals()).await;
        let group = cpo.present(&security_group()).await;
        let name = text(&service, "ServiceName");
        let desired = vpc_endpoint(name, Aws::instance(&group), &["subnet-1", "subnet-2"]);
        let endpoint = cpo.present(&desired).await;
        cpo.present(&records(dns_name(&endpoint).unwrap())).await;
        Self {
            aws,
            ho,
            cpo,
            service,
            group,
            endpoint,
        }
    }

    pub(crate) fn service_name(&self) -> &str {
        text(&self.service, "ServiceName")
    }

    /// Makes all resources as desired again, all read anew.
    pub(crate) async fn repaired(&mut self) {
        let service = endpoint_service();
        self.ho.forget(&service.owned.slot);
        self.service = self.ho.present(&service).await;
        let principals = allowed_principals();
        self.ho.forget(&principals.slot);
        self.ho.present(&principals).await;
        let group = security_group();
        self.cpo.forget(&group.slot);
        self.group = self.cpo.present(&group).await;
        let endpoint = vpc_endpoint(
            self.service_name(),
            Aws::instance(&self.group),
            &["subnet-1", "subnet-2"],
        );
        self.cpo.forget(&endpoint.slot);
        self.endpoint = self.cpo.present(&endpoint).await;
        let records = records(dns_name(&self.endpoint).unwrap());
        self.cpo.forget(&records.slot);
        self.cpo.present(&records).await;
    }

    /// Deletes everything, in the order of the two roles.
    pub(crate) async fn deleted(&self) {
        let name = dns_name(&self.endpoint).unwrap().to_owned();
        let released = ReleasedRecords {
            slot: records(&name).slot,
            endpoint_names: vec![name],
            endpoint_ids: Vec::new(),
            service_ids: Vec::new(),
        };
        let endpoint = vpc_endpoint(self.service_name(), Aws::instance(&self.group), &[]);
        self.cpo.absent(&released).await;
        self.cpo.absent(&endpoint).await;
        self.cpo.absent(&security_group()).await;
        let connections = EndpointConnections {
            slot: Slot::endpoint_connections(&endpoint_service().owned.slot),
        };
        self.ho.absent(&connections).await;
        self.ho.absent(&endpoint_service()).await;
    }

    /// Deletes what the role in the guest's account has.
    pub(crate) async fn deleted_by_cpo(&self) {
        let endpoint = vpc_endpoint(self.service_name(), Aws::instance(&self.group), &[]);
        self.cpo.absent(&endpoint).await;
        self.cpo.absent(&security_group()).await;
        tokio::time::sleep(Duration::from_secs(120)).await;
    }

    pub(crate) fn assert_reachable(&self) {
        for name in [API, "console.apps.example.hypershift.local"] {
            let answer = self.aws.reachable(name);
            assert!(answer.ok, "{name}: {answer:?}");
        }
    }

    pub(crate) fn assert_nothing_left(&self) {
        for kind in ["vpc-endpoint", "vpc-endpoint-service"] {
            let left = self.aws.resources(kind);
            let left: Vec<&Value> = left
                .iter()
                .filter(|body| !text(body, "state").eq_ignore_ascii_case("deleted"))
                .collect();
            assert!(left.is_empty(), "{left:?}");
        }
        let groups = self.aws.resources("security-group");
        assert!(groups.iter().all(|group| group["name"] == "default"), "{groups:?}");
        assert!(!self.aws.reachable(API).ok && !self.aws.reachable(APPS).ok);
    }
}

#[tokio::test(start_paused = true)]
async fn path_is_created_with_as_few_calls_as_it_needs() {
    let path = Path::made().await;
    path.assert_reachable();
    let journal = path.aws.journal();
    let writes = path.aws.writes();
    assert_eq!(
        writes,
        [
            "/ec2/CreateVpcEndpointServiceConfiguration",
            "/ec2/ModifyVpcEndpointServicePermissions",
            "/ec2/CreateSecurityGroup",
            "/ec2/AuthorizeSecurityGroupIngress",
            "/ec2/CreateVpcEndpoint",
            "/route53/ChangeResourceRecordSets",
        ]
    );
    let mut refused = journal.iter().filter_map(|entry| entry.code.as_deref());
    assert!(refused.all(|code| code == "LoadBalancerNotFound"), "{journal:#?}");
    assert!(journal.len() <= 28, "{} calls: {journal:#?}", journal.len());
    // The load balancer takes 150 s, the endpoint 30 s and 60 s.
    assert!(path.aws.elapsed() <= 270, "{} s: {journal:#?}", path.aws.elapsed());
}

#[tokio::test(start_paused = true)]
async fn ready_path_is_read_without_a_write() {
    let mut path = Path::made().await;
    path.aws.clear_journal();
    path.repaired().await;
    assert_eq!(path.aws.writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn another_process_adopts_the_path_without_a_write() {
    let Path { aws, .. } = Path::made().await;
    aws.clear_journal();
    let (ho, cpo) = (Process::ho(&aws), Process::cpo(&aws));
    let path = Path::made_by(aws, ho, cpo).await;
    assert_eq!(path.aws.writes(), Vec::<String>::new());
    path.assert_reachable();
}

#[tokio::test(start_paused = true)]
async fn everything_is_deleted_in_bounded_calls() {
    let path = Path::made().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    path.aws.clear_journal();
    path.deleted().await;
    path.assert_nothing_left();
    let journal = path.aws.journal();
    // That the endpoint and the group are gone is read by filter and by id.
    assert!(journal.len() <= 24, "{} calls: {journal:#?}", journal.len());
}

#[tokio::test(start_paused = true)]
async fn live_connection_is_rejected_before_its_service_is_deleted() {
    let path = Path::made().await;
    let connections = EndpointConnections {
        slot: Slot::endpoint_connections(&endpoint_service().owned.slot),
    };
    let (step, _) = path
        .ho
        .reconcile(&connections, |observed| ensure_absent(&connections, observed))
        .await;
    assert_eq!(step.verb, Verb::Delete);
    path.deleted().await;
    path.assert_nothing_left();
    let writes = path.aws.writes();
    assert!(
        writes.contains(&"/ec2/RejectVpcEndpointConnections".to_owned()),
        "{writes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn endpoint_that_was_deleted_by_hand_comes_back() {
    let mut path = Path::made().await;
    let endpoints = path.aws.resources("vpc-endpoint");
    let now = path.aws.now();
    path.aws
        .aws()
        .delete_resource(now, endpoints[0]["id"].as_str().unwrap());
    let before = Aws::instance(&path.endpoint).to_owned();
    // Its first token is spent: the next create has another.
    path.cpo.forget(&vpc_endpoint(path.service_name(), "", &[]).slot);
    let mut desired = vpc_endpoint(
        path.service_name(),
        Aws::instance(&path.group),
        &["subnet-1", "subnet-2"],
    );
    desired.client_token = hyperlink::aws::client_token::ClientToken::new("second-token").unwrap();
    path.endpoint = path.cpo.present(&desired).await;
    assert_ne!(Aws::instance(&path.endpoint), before);
    path.repaired().await;
    path.assert_reachable();
}

#[tokio::test(start_paused = true)]
async fn what_others_changed_is_repaired() {
    let mut path = Path::made().await;
    for service in path.aws.resources("vpc-endpoint-service") {
        path.aws.change(service, |body| body["principals"] = json!([]));
    }
    for group in path.aws.resources("security-group") {
        if group["name"] != "default" {
            path.aws.change(group, |body| body["ingress"] = json!([]));
        }
    }
    assert!(!path.aws.reachable(API).ok);
    path.aws.clear_journal();
    path.repaired().await;
    path.assert_reachable();
    let writes = path.aws.writes();
    assert_eq!(
        writes,
        [
            "/ec2/ModifyVpcEndpointServicePermissions",
            "/ec2/AuthorizeSecurityGroupIngress"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn subnet_of_one_zone_is_swapped_call_by_call() {
    let mut path = Path::made().await;
    path.aws.clear_journal();
    let desired = vpc_endpoint(
        path.service_name(),
        Aws::instance(&path.group),
        &["subnet-3", "subnet-2"],
    );
    path.endpoint = path.cpo.present(&desired).await;
    assert_eq!(path.aws.writes(), ["/ec2/ModifyVpcEndpoint", "/ec2/ModifyVpcEndpoint"]);
    assert!(path.aws.journal().iter().all(|entry| entry.code.is_none()));
    path.assert_reachable();
}

#[tokio::test(start_paused = true)]
async fn process_learns_whose_account_it_calls() {
    let aws = SimTransport::new();
    for (key, account) in [("AKIAHO", MANAGEMENT), ("AKIACPO", GUEST)] {
        let user = Identity::of(&aws, key);
        let found = caller_account(&user.connection, &user.sessions).await;
        assert_eq!(found.unwrap(), account);
    }
    let stranger = Identity::of(&aws, "AKIAX");
    let refused = caller_account(&stranger.connection, &stranger.sessions)
        .await
        .unwrap_err();
    assert_eq!(refused.code, "InvalidClientTokenId");
    assert!(aws.writes().is_empty());
}
