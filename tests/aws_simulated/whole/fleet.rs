//! Several clusters under one process of each role, whose reconciles run beside each other.

use std::cell::{Cell, RefCell};

use futures::future::join_all;

use super::cluster::{CLUSTER_ID, HOSTED, PLANE, SERVICE, UID};
use super::*;
use crate::desired::{SECRET, ZONE, seed};

const REGION: &str = "us-east-1";
/// The process' own identity, which may assume roles and do nothing else.
const BASE: &str = "arn:aws:iam::111122223333:user/base";
const POOL: &str = "clusters/nodepools/a";
/// How often a worker checks whether it has something to do.
const TICK: Duration = Duration::from_secs(1);

/// One of the clusters. What belongs to it alone follows from its name and number.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) number: usize,
    pub(super) account: String,
    pub(super) vpc: String,
    subnet: String,
}

impl Member {
    /// A cluster with an account, and the number of a VPC in it.
    pub(super) fn new(name: &str, number: usize, account: &str, vpc: usize) -> Self {
        Self {
            name: name.to_owned(),
            number,
            account: account.to_owned(),
            vpc: format!("vpc-{vpc:08x}"),
            subnet: format!("subnet-{vpc:08x}"),
        }
    }

    fn uid(&self) -> String {
        format!("{:08x}{}", self.number, &UID[8..])
    }

    pub(super) fn cluster_id(&self) -> String {
        format!("{:08x}{}", self.number, &CLUSTER_ID[8..])
    }

    pub(super) fn balancer(&self) -> String {
        hyperlink::hypershift::names::load_balancer(&self.uid())
    }

    fn balancer_arn(&self) -> String {
        let name = self.balancer();
        let number = self.number;
        format!("arn:aws:elasticloadbalancing:{REGION}:{MANAGEMENT}:loadbalancer/net/{name}/{number:016x}")
    }

    pub(super) fn zone(&self) -> String {
        format!("Z{:010}", self.number)
    }

    fn role(&self) -> String {
        format!("arn:aws:iam::{}:role/cpo-{}", self.account, self.name)
    }

    /// Who calls AWS for its guest's side, as the journal names it.
    pub(super) fn session(&self) -> String {
        format!("arn:aws:sts::{}:assumed-role/cpo-{}/hyperlink", self.account, self.name)
    }

    /// The key of one of its objects, from that of the sample cluster.
    pub(super) fn key(&self, sample: &str) -> String {
        match sample {
            POOL => format!("clusters/nodepools/{}", self.name),
            _ => sample.replace("example", &self.name),
        }
    }

    /// An object of the sample cluster as one of this.
    fn own(&self, sample: &Value, host_name: &str) -> Value {
        let text = sample.to_string();
        let text = text.replace(UID, &self.uid()).replace(CLUSTER_ID, &self.cluster_id());
        let text = text.replace("role/cpo", &format!("role/cpo-{}", self.name));
        let text = text.replace("example", &self.name).replace(GUEST, &self.account);
        let text = text
            .replace("vpc-00000002", &self.vpc)
            .replace("subnet-00000001", &self.subnet);
        let text = text.replace(&hyperlink::hypershift::names::load_balancer(UID), &self.balancer());
        let mut object: Value = serde_json::from_str(&text.replace("HOST", host_name)).unwrap();
        for uid in ["hc", "hcp", "cr", "pool"] {
            if object["metadata"]["uid"] == uid {
                object["metadata"]["uid"] = json!(format!("{uid}-{}", self.name));
            }
        }
        if let Some(owner) = object["metadata"]["ownerReferences"].get_mut(0) {
            owner["uid"] = json!(format!("hcp-{}", self.name));
        }
        if object["kind"] == "NodePool" {
            object["metadata"]["name"] = json!(self.name);
        }
        object
    }

    /// What is there of it from the start: its load balancer, network and hosted zone.
    fn resources(&self, resources: &mut Vec<Value>) {
        let arn = |resource: String| format!("arn:aws:ec2:{REGION}:{}:{resource}", self.account);
        let vpc = &self.vpc;
        let is_vpc = |known: &Value| known["id"].as_str().unwrap().ends_with(vpc.as_str());
        if !resources.iter().any(is_vpc) {
            resources.push(json!({"id": arn(format!("vpc/{vpc}")), "cidr": "10.0.0.0/16"}));
            resources.push(
                json!({"id": arn(format!("subnet/{}", self.subnet)), "vpc": vpc, "cidr": "10.0.1.0/24",
                "zone_id": "use1-az1"}),
            );
        }
        resources.push(
            json!({"id": self.balancer_arn(), "vpc": "vpc-1", "subnets": ["subnet-m1", "subnet-m2"],
            "state": "provisioning"}),
        );
        resources.push(
            json!({"id": format!("arn:aws:route53:::hostedzone/{}", self.zone()), "account": self.account,
            "name": format!("{}.hypershift.local", self.name), "vpcs": [{"id": vpc, "region": REGION}]}),
        );
    }

    /// Its entry in the file of allowed scopes.
    fn entry(&self) -> Value {
        let aws = json!({"roleARN": self.role(), "vpcIDs": [self.vpc], "hostedZoneIDs": [self.zone()]});
        json!({"namespace": "clusters", "names": [self.name], "aws": aws})
    }
}

/// The guests' account, with a user for all clusters in it.
fn guest_account(seed: &Value, members: &[Member]) -> Value {
    let mut account = seed["accounts"][1].clone();
    let zones: Vec<String> = members
        .iter()
        .map(|member| format!("arn:aws:route53:::hostedzone/{}", member.zone()))
        .collect();
    account["users"][0]["policies"][0]["Statement"][2]["Resource"] = json!(zones);
    account["roles"] = json!([]);
    account
}

/// The accounts, with a role for each cluster that the base identity may assume.
fn accounts(seed: &mut Value, members: &[Member]) {
    let guests = seed["accounts"][1]["users"][0]["policies"].to_string();
    let assumes = json!({"Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}]});
    let base = json!({"name": "base", "access_key_id": "AKIABASE", "secret_access_key": SECRET, "policies": [assumes]});
    let mut all = vec![seed["accounts"][0].clone()];
    all[0]["users"].as_array_mut().unwrap().push(base);
    all.push(guest_account(seed, members));
    for member in members {
        let policies: Value = serde_json::from_str(&guests.replace(ZONE, &member.zone())).unwrap();
        let role = json!({"name": format!("cpo-{}", member.name), "trusted": [BASE], "policies": policies});
        match all.iter_mut().find(|account| account["id"] == member.account.as_str()) {
            Some(account) => account["roles"].as_array_mut().unwrap().push(role),
            None => all.push(json!({"id": member.account, "roles": [role]})),
        }
    }
    seed["accounts"] = json!(all);
}

fn simulated(members: &[Member]) -> Arc<SimTransport> {
    SimTransport::with(|whole| {
        let mut seed = seed();
        accounts(&mut seed, members);
        let mut resources = seed["resources"].as_array().cloned().unwrap();
        let of_management = format!(":ec2:{REGION}:{MANAGEMENT}:");
        resources.retain(|body| body["id"].as_str().unwrap().contains(&of_management));
        members.iter().for_each(|member| member.resources(&mut resources));
        let service = |member: &Member| {
            json!({"load_balancer": member.balancer_arn(),
            "name": format!("clusters-{}/private-router", member.name)})
        };
        seed["services"] = members.iter().map(service).collect();
        seed["resources"] = json!(resources);
        *whole = seed;
    })
}

/// When a custom resource is due for a role, and how it was then.
struct Due {
    /// 0 of role `ho`, 1 of role `cpo`.
    process: usize,
    key: String,
    at: Cell<Instant>,
    last_fingerprint: RefCell<String>,
    /// The resource version that was last compared.
    version: RefCell<Value>,
}

/// Clusters with a process of each role.
pub(super) struct Fleet {
    pub(super) aws: Arc<SimTransport>,
    pub(super) cluster: Arc<Cluster>,
    processes: [Process; 2],
    allowed: Allowed,
    due: Vec<Due>,
    pub(super) nlb_match: NlbMatch,
    began: Instant,
}

impl Fleet {
    /// The process of role `cpo` is one for many: the operator's file names roles and scopes.
    pub(super) fn new(members: &[Member]) -> Self {
        let entries: Vec<Value> = members.iter().map(Member::entry).collect();
        let file = json!({"hostedClusters": entries}).to_string();
        let file = Arc::new(AllowedScopes::parse(&file).unwrap());
        let mut fleet = Self::calling_as(members, ("AKIABASE", MANAGEMENT));
        fleet.allowed = Some(tokio::sync::watch::channel(file).1);
        fleet
    }

    /// The process of role `cpo` does what control planes say, with the keys of a user in the guests' account.
    pub(super) fn without_file(members: &[Member]) -> Self {
        Self::calling_as(members, ("AKIACPO", GUEST))
    }

    fn calling_as(members: &[Member], caller: (&str, &str)) -> Self {
        let aws = simulated(members);
        let samples = Cluster::new("HOST", &aws.region);
        let cluster = Arc::new(Cluster::default());
        let ho = Process::new(Role::Ho, &aws, &cluster);
        let cpo = Process::calling_as(caller, Role::Cpo, &aws, &cluster);
        let mut fleet = Self {
            aws,
            cluster,
            processes: [ho, cpo],
            allowed: None,
            due: Vec::new(),
            nlb_match: NlbMatch::Uid,
            began: Instant::now(),
        };
        for member in members {
            let host_name = fleet.host_name(member);
            for sample in [HOSTED, PLANE, POOL, SERVICE, CR] {
                let object = member.own(&samples.get(sample).unwrap(), &host_name);
                fleet.cluster.put(&member.key(sample), object);
            }
            fleet.serve(&member.key(CR));
        }
        fleet
    }

    /// Lets both roles reconcile this custom resource from now on.
    pub(super) fn serve(&mut self, key: &str) {
        let due = |process: usize| Due {
            process,
            key: key.to_owned(),
            at: Cell::new(Instant::now()),
            last_fingerprint: RefCell::default(),
            version: RefCell::default(),
        };
        self.due.extend([0, 1].map(due));
    }

    /// Lets both roles reconcile everything at once.
    pub(super) fn wake(&self) {
        self.due.iter().for_each(|due| due.at.set(Instant::now()));
    }

    pub(super) fn load_balancer(&self, member: &Member) -> Value {
        let all = self.aws.resources_of("elasticloadbalancing", "loadbalancer/");
        let mut own = all
            .into_iter()
            .filter(|body| body["id"] == member.balancer_arn().as_str());
        own.next().unwrap()
    }

    pub(super) fn host_name(&self, member: &Member) -> String {
        self.load_balancer(member)["dns_name"].as_str().unwrap().to_owned()
    }

    /// Status, reason and message of a condition.
    pub(super) fn condition(&self, key: &str, kind: &str) -> [String; 3] {
        let cr = self.cluster.get(key).unwrap_or_default();
        let all = cr["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = all.into_iter().find(|one| one["type"] == kind).unwrap_or_default();
        ["status", "reason", "message"].map(|field| found[field].as_str().unwrap_or_default().to_owned())
    }

    pub(super) fn is_available(&self, key: &str) -> bool {
        let kinds = ["AWSEndpointServiceAvailable", "AWSEndpointAvailable"];
        kinds.iter().all(|kind| self.condition(key, kind)[0] == "True")
    }

    pub(super) fn is_reachable(&self, member: &Member) -> bool {
        let name = format!("api.{}.hypershift.local", member.name);
        let question = Question {
            vpc: &member.vpc,
            name: &name,
            from: None,
            port: None,
        };
        self.aws.aws().reachable(self.aws.now(), &question).ok
    }

    /// Reconciles until this is so, or for this long; returns whether it is so.
    pub(super) async fn run_until(&self, longest: Duration, is_so: impl Fn(&Self) -> bool) -> bool {
        let (end, stop) = (Instant::now() + longest, Cell::new(false));
        let watched = async {
            while !is_so(self) && Instant::now() < end {
                tokio::time::sleep(TICK).await;
            }
            stop.set(true);
        };
        let workers = join_all(self.due.iter().map(|due| self.work(due, &stop)));
        tokio::join!(watched, workers);
        is_so(self)
    }

    /// Reconciles until the path of a cluster is there; returns the time since the start.
    pub(super) async fn until_available(&self, member: &Member) -> Duration {
        let (key, available) = (member.key(CR), Cell::new(None));
        let is_so = |fleet: &Self| {
            let is_available = fleet.is_available(&key);
            if is_available && available.get().is_none() {
                available.set(Some(fleet.began.elapsed()));
            }
            is_available
        };
        let comes = self.run_until(Duration::from_secs(3_600), is_so).await;
        assert!(comes, "{:#}", self.cluster.get(&key).unwrap_or_default());
        available.get().unwrap()
    }

    /// Reconciles one custom resource with one role whenever that is due.
    async fn work(&self, due: &Due, stop: &Cell<bool>) {
        while !stop.get() {
            if let Some(found) = self.cluster.get(&due.key) {
                self.reconcile_if_due(due, found).await;
            }
            tokio::time::sleep(TICK).await;
        }
    }

    async fn reconcile_if_due(&self, due: &Due, found: Value) {
        let version = due.version.replace(found["metadata"]["resourceVersion"].clone());
        let is_due = due.at.get() <= Instant::now();
        if !is_due && version == *due.version.borrow() {
            return;
        }
        let cr: AWSEndpointService = serde_json::from_value(found).unwrap();
        let process = &self.processes[due.process];
        let is_changed = *due.last_fingerprint.borrow() != process.fingerprint(&cr);
        if is_changed || is_due {
            self.reconcile(due, cr, !is_changed).await;
        }
    }

    async fn reconcile(&self, due: &Due, cr: AWSEndpointService, by_time: bool) {
        let process = &self.processes[due.process];
        let cx = &process.cx;
        let wait = match process.role {
            Role::Ho => {
                let controller = ho(cx, &self.aws.region, self.nlb_match).await;
                reconcile(&controller, cx, cr, by_time).await
            }
            Role::Cpo | Role::Capz => {
                let controller = VpcEndpointController {
                    region: self.aws.region.clone(),
                    serves_many: self.allowed.is_some(),
                    allowed: self.allowed.clone(),
                };
                reconcile(&controller, cx, cr, by_time).await
            }
        };
        due.at.set(Instant::now() + wait.unwrap_or(Duration::from_secs(1)));
        let after = self.cluster.get(&due.key).map(|cr| serde_json::from_value(cr).unwrap());
        let after = after.map(|cr| process.fingerprint(&cr));
        *due.last_fingerprint.borrow_mut() = after.unwrap_or_default();
    }
}
