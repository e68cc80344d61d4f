//! A simulated AWS with a small seed, its time, and a client that signs as AWS's own signer does.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "each test binary uses a part of it, and a test that cannot go on fails"
)]

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use awssim::{Answer, Preset, Seed, SimulatedAws};
use bytes::Bytes;
use http::Request;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// Owns load balancers and endpoint services.
pub const PROVIDER: &str = "111111111111";
/// Owns VPCs and zones.
pub const CONSUMER: &str = "222222222222";
pub const REGION: &str = "us-east-1";
pub const VPC: &str = "vpc-0aaaaaaaaaaaaaaaa";
pub const OTHER_VPC: &str = "vpc-0bbbbbbbbbbbbbbbb";
/// Subnets in zones 1, 2, 1 and 3; the load balancers have zones 1 and 2.
pub const SUBNETS: [&str; 4] = [
    "subnet-0aaaaaaaaaaaaaaa1",
    "subnet-0aaaaaaaaaaaaaaa2",
    "subnet-0aaaaaaaaaaaaaaa3",
    "subnet-0aaaaaaaaaaaaaaa4",
];
pub const BALANCER: &str = "arn:aws:elasticloadbalancing:us-east-1:111111111111:loadbalancer/net/aone/0123456789abcdef";
pub const BALANCER_TWO: &str =
    "arn:aws:elasticloadbalancing:us-east-1:111111111111:loadbalancer/net/atwo/0123456789abcde0";
pub const ZONE: &str = "Z0000000000000000001";
pub const ROLE: &str = "arn:aws:iam::222222222222:role/cpo";

/// Who signs.
#[derive(Clone, Debug)]
pub struct Keys {
    pub id: String,
    pub secret: String,
    pub token: Option<String>,
}

pub fn keys(id: &str) -> Keys {
    Keys {
        id: id.to_owned(),
        secret: format!("secret of {id}"),
        token: None,
    }
}

pub fn provider() -> Keys {
    keys("AKIAPROVIDER")
}

pub fn consumer() -> Keys {
    keys("AKIACONSUMER")
}

fn user(name: &str, key: &str, allowed: Value) -> Value {
    json!({"name": name, "access_key_id": key, "secret_access_key": format!("secret of {key}"),
        "policies": [{"Version": "2012-10-17", "Statement": allowed}]})
}

fn vpc_parts() -> Vec<Value> {
    let arn = |resource: &str| format!("arn:aws:ec2:{REGION}:{CONSUMER}:{resource}");
    let mut resources = vec![
        json!({"id": arn(&format!("vpc/{VPC}")), "cidr": "10.0.0.0/16"}),
        json!({"id": arn(&format!("vpc/{OTHER_VPC}")), "cidr": "10.1.0.0/16"}),
    ];
    for (at, (id, zone)) in SUBNETS
        .iter()
        .zip(["use1-az1", "use1-az2", "use1-az1", "use1-az3"])
        .enumerate()
    {
        let cidr = format!("10.0.{at}.0/24");
        resources.push(json!({"id": arn(&format!("subnet/{id}")), "vpc": VPC, "cidr": cidr, "zone_id": zone}));
    }
    resources
}

pub fn seed() -> Value {
    let all = json!([{"Effect": "Allow", "Action": "*", "Resource": "*"}]);
    let reads = json!([{"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"}]);
    let arn = |resource: &str| format!("arn:aws:ec2:{REGION}:{PROVIDER}:{resource}");
    let vpc = "vpc-0cccccccccccccccc";
    let mut resources = vpc_parts();
    resources.push(json!({"id": arn(&format!("vpc/{vpc}")), "cidr": "10.9.0.0/16"}));
    let subnets = ["subnet-0ccccccccccccccc1", "subnet-0ccccccccccccccc2"];
    for (at, id) in subnets.iter().enumerate() {
        let zone = format!("use1-az{}", at + 1);
        let cidr = format!("10.9.{at}.0/24");
        resources.push(json!({"id": arn(&format!("subnet/{id}")), "vpc": vpc, "cidr": cidr, "zone_id": zone}));
    }
    for balancer in [BALANCER, BALANCER_TWO] {
        resources.push(json!({"id": balancer, "vpc": vpc, "subnets": subnets, "state": "active"}));
    }
    resources.push(
        json!({"id": format!("arn:aws:route53:::hostedzone/{ZONE}"), "account": CONSUMER,
        "name": "one.hypershift.local", "vpcs": [{"id": VPC, "region": REGION}]}),
    );
    json!({
        "accounts": [
            {"id": PROVIDER, "users": [user("ho", "AKIAPROVIDER", all.clone()), user("reader", "AKIAREADER", reads)]},
            {"id": CONSUMER, "users": [user("cpo", "AKIACONSUMER", all.clone())],
             "roles": [{"name": "cpo", "path": "/a/b/", "trusted": ["arn:aws:iam::222222222222:root"],
                "policies": [{"Statement": all}]}]},
        ],
        "resources": resources,
        "services": [{"load_balancer": BALANCER, "name": "ns/private-router"}],
        "throttle": {"enabled": false},
        "switches": {"describe_lag_s": 0.0, "tag_lag_s": 0.0, "zone_busy_s": 0.0},
    })
}

/// A simulated AWS and its time.
pub struct TestAws {
    pub aws: SimulatedAws,
    pub now: Timestamp,
}

/// What was answered.
#[derive(Debug)]
pub struct Answered {
    pub status: u16,
    pub body: String,
}

impl Answered {
    /// The text of the first element of this name.
    pub fn value(&self, name: &str) -> String {
        self.values(name)
            .into_iter()
            .next()
            .unwrap_or_else(|| panic!("no {name} in {}", self.body))
    }

    /// The texts of all elements of this name.
    pub fn values(&self, name: &str) -> Vec<String> {
        let (start, end) = (format!("<{name}>"), format!("</{name}>"));
        let parts = self.body.split(start.as_str()).skip(1);
        parts
            .map(|part| part.split(end.as_str()).next().unwrap().to_owned())
            .collect()
    }

    pub fn code(&self) -> String {
        self.values("Code")
            .into_iter()
            .chain(self.values("code"))
            .next()
            .unwrap_or_default()
    }

    pub fn ok(self) -> Self {
        assert_eq!(self.status, 200, "{}", self.body);
        self
    }
}

impl Default for TestAws {
    fn default() -> Self {
        Self::with(|_| {})
    }
}

impl TestAws {
    /// With a changed seed.
    pub fn with(change: impl FnOnce(&mut Value)) -> Self {
        Self::of(Preset::Fast, change)
    }

    pub fn of(preset: Preset, change: impl FnOnce(&mut Value)) -> Self {
        let mut json = seed();
        change(&mut json);
        let now: Timestamp = "2026-11-27T00:00:00Z".parse().unwrap();
        let mut aws = SimulatedAws::new(preset, 7);
        aws.seed(now, Seed::parse(json.to_string().as_bytes()).unwrap())
            .unwrap();
        Self { aws, now }
    }

    pub fn advance(&mut self, seconds: f64) {
        self.now += SignedDuration::from_millis((seconds * 1000.0) as i64);
    }

    /// A query call.
    pub fn call(&mut self, keys: &Keys, service: &str, action: &str, params: &[(&str, &str)]) -> Answered {
        let request = self.query(keys, service, action, params);
        self.send(&request)
    }

    pub fn ec2(&mut self, keys: &Keys, action: &str, params: &[(&str, &str)]) -> Answered {
        self.call(keys, "ec2", action, params)
    }

    /// A signed query request.
    pub fn query(&self, keys: &Keys, service: &str, action: &str, params: &[(&str, &str)]) -> Request<Bytes> {
        let version = match service {
            "ec2" => "2016-11-15",
            "sts" => "2011-06-15",
            _ => "2015-12-01",
        };
        let body = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("Action", action)
            .append_pair("Version", version)
            .extend_pairs(params)
            .finish();
        let uri = format!("https://{service}.{REGION}.amazonaws.com/");
        signed(keys, (service, REGION), self.now, "POST", &uri, body)
    }

    /// A call of Route 53.
    pub fn route53(&mut self, keys: &Keys, method: &str, path: &str, body: &str) -> Answered {
        let uri = format!("https://route53.amazonaws.com/2013-04-01/{path}");
        let request = signed(keys, ("route53", "us-east-1"), self.now, method, &uri, body.to_owned());
        self.send(&request)
    }

    /// A batch of changes: action, name, TTL, value.
    pub fn change(&mut self, changes: &[(&str, &str, u32, &str)]) -> Answered {
        let changes: String = changes
            .iter()
            .map(|(action, name, ttl, value)| {
                format!(
                    "<Change><Action>{action}</Action><ResourceRecordSet><Name>{name}</Name><Type>CNAME</Type>\
                     <TTL>{ttl}</TTL><ResourceRecords><ResourceRecord><Value>{value}</Value></ResourceRecord>\
                     </ResourceRecords></ResourceRecordSet></Change>"
                )
            })
            .collect();
        let body = format!(
            "<ChangeResourceRecordSetsRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><ChangeBatch>\
             <Changes>{changes}</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>"
        );
        self.route53(&consumer(), "POST", &format!("hostedzone/{ZONE}/rrset/"), &body)
    }

    pub fn send(&mut self, request: &Request<Bytes>) -> Answered {
        let Answer { response, .. } = self.aws.handle(self.now, request);
        Answered {
            status: response.status().as_u16(),
            body: String::from_utf8(response.body().to_vec()).unwrap(),
        }
    }

    /// An endpoint service that the consumer's role and user may connect to, ready; returns its id.
    pub fn service(&mut self) -> String {
        let create = "CreateVpcEndpointServiceConfiguration";
        let params = [("NetworkLoadBalancerArn.1", BALANCER), ("AcceptanceRequired", "false")];
        let id = self.ec2(&provider(), create, &params).ok().value("serviceId");
        self.service_allowing(&id)
    }

    /// Lets the consumer's account connect to an endpoint service, which is accepted at once and ready then.
    pub fn service_allowing(&mut self, id: &str) -> String {
        let accept = [("ServiceId", id), ("AcceptanceRequired", "false")];
        self.ec2(&provider(), "ModifyVpcEndpointServiceConfiguration", &accept)
            .ok();
        let allow = [
            ("ServiceId", id),
            ("AddAllowedPrincipals.1", "arn:aws:iam::222222222222:root"),
        ];
        self.ec2(&provider(), "ModifyVpcEndpointServicePermissions", &allow)
            .ok();
        self.advance(1.0);
        id.to_owned()
    }

    /// A call that creates an endpoint.
    pub fn create_endpoint(&mut self, service: &str, params: &[(&str, &str)]) -> Answered {
        let name = format!("com.amazonaws.vpce.{REGION}.{service}");
        let mut all = vec![
            ("VpcEndpointType", "Interface"),
            ("VpcId", VPC),
            ("ServiceName", name.as_str()),
        ];
        all.extend(params);
        self.ec2(&consumer(), "CreateVpcEndpoint", &all)
    }

    /// A security group of the VPC; returns its id.
    pub fn group(&mut self, name: &str) -> String {
        let params = [
            ("GroupName", name),
            ("GroupDescription", "VPC endpoint security group"),
            ("VpcId", VPC),
        ];
        self.ec2(&consumer(), "CreateSecurityGroup", &params)
            .ok()
            .value("groupId")
    }

    /// An endpoint in the first subnet with a group of its own, available; returns both ids.
    pub fn endpoint(&mut self, service: &str) -> (String, String) {
        let group = self.group("one");
        let params = [("SubnetId.1", SUBNETS[0]), ("SecurityGroupId.1", group.as_str())];
        let id = self.create_endpoint(service, &params).ok().value("vpcEndpointId");
        self.advance(1.0);
        (id, group)
    }

    /// The state of an endpoint as its owner sees it; empty when it is not listed.
    pub fn endpoint_state(&mut self, id: &str) -> String {
        let answer = self.ec2(&consumer(), "DescribeVpcEndpoints", &[("VpcEndpointId.1", id)]);
        answer.values("state").into_iter().next().unwrap_or_default()
    }
}

/// A request that AWS's own signer has signed.
pub fn signed(
    keys: &Keys,
    (service, region): (&str, &str),
    now: Timestamp,
    method: &str,
    uri: &str,
    body: String,
) -> Request<Bytes> {
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header("content-type", "application/x-www-form-urlencoded; charset=utf-8")
        .body(Bytes::from(body))
        .unwrap();
    let identity = Credentials::new(&keys.id, &keys.secret, keys.token.clone(), None, "test").into();
    let settings = SigningSettings::default();
    let params = SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(service)
        .time(now.into())
        .settings(settings)
        .build()
        .unwrap()
        .into();
    let headers = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
    let signable = SignableRequest::new(method, uri, headers, SignableBody::Bytes(request.body().as_ref())).unwrap();
    let (instructions, _) = sign(signable, &params).unwrap().into_parts();
    instructions.apply_to_request_http1x(&mut request);
    request
}
