//! Laws that hold over any sequence of calls: tokens, uniqueness, atomic batches, states that only move forward,
//! nothing lost over a restart. `PROPTEST_CASES` tries that many sequences.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::Value;
use support::*;

/// One step of a sequence. Numbers choose among the things that are there.
#[derive(Clone, Debug)]
enum Step {
    CreateService {
        balancer: bool,
        token: Option<u8>,
    },
    DeleteService(usize),
    CreateEndpoint {
        service: usize,
        subnets: Vec<usize>,
        token: Option<u8>,
    },
    ModifyEndpoint {
        endpoint: usize,
        add: usize,
        remove: Option<usize>,
    },
    DeleteEndpoint(usize),
    Reject(usize),
    CreateGroup(u8),
    Authorize {
        group: usize,
        cidrs: Vec<u8>,
    },
    DeleteGroup(usize),
    Change(Vec<(u8, u8, u8)>),
    Advance(u16),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let token = || proptest::option::of(0..3_u8);
    prop_oneof![
        (any::<bool>(), token()).prop_map(|(balancer, token)| Step::CreateService { balancer, token }),
        any::<usize>().prop_map(Step::DeleteService),
        (any::<usize>(), proptest::collection::vec(0..4_usize, 0..3), token()).prop_map(|(service, subnets, token)| {
            Step::CreateEndpoint {
                service,
                subnets,
                token,
            }
        }),
        (any::<usize>(), 0..4_usize, proptest::option::of(0..4_usize))
            .prop_map(|(endpoint, add, remove)| Step::ModifyEndpoint { endpoint, add, remove }),
        any::<usize>().prop_map(Step::DeleteEndpoint),
        any::<usize>().prop_map(Step::Reject),
        (0..3_u8).prop_map(Step::CreateGroup),
        (any::<usize>(), proptest::collection::vec(0..4_u8, 1..4))
            .prop_map(|(group, cidrs)| Step::Authorize { group, cidrs }),
        any::<usize>().prop_map(Step::DeleteGroup),
        proptest::collection::vec((0..3_u8, 0..3_u8, 0..2_u8), 1..4).prop_map(Step::Change),
        (0..1500_u16).prop_map(Step::Advance),
        Just(Step::Restart),
    ]
}

/// How far a state is: it never returns to an earlier one.
fn rank(state: &str) -> u8 {
    match state {
        "Pending" | "pendingAcceptance" => 0,
        "pending" => 1,
        "Available" | "available" => 2,
        "rejected" | "failed" | "Failed" => 3,
        "Deleting" | "deleting" => 4,
        "deleted" => 5,
        other => panic!("unknown state {other}"),
    }
}

/// The simulated AWS and what was observed of it.
#[derive(Default)]
struct Run {
    aws: TestAws,
    states: BTreeMap<String, u8>,
    gone: BTreeSet<String>,
    tokens: BTreeMap<String, String>,
}

impl Run {
    fn kept(&mut self) -> Vec<Value> {
        let now = self.aws.now;
        self.aws.aws.resources(now, "")
    }

    fn ids(&mut self, kind: &str) -> Vec<String> {
        let part = format!(":{kind}/");
        let of = |thing: &Value| {
            thing["id"]
                .as_str()
                .and_then(|id| Some(id.split_once(&part)?.1.to_owned()))
        };
        self.kept().iter().filter_map(of).collect()
    }

    fn pick(&mut self, kind: &str, number: usize) -> String {
        let ids = self.ids(kind);
        ids.get(number % ids.len().max(1))
            .cloned()
            .unwrap_or_else(|| "none".to_owned())
    }

    /// A call either succeeds or leaves everything as it was.
    fn ec2(&mut self, keys: &Keys, action: &str, params: &[(String, String)]) -> Answered {
        let before = self.kept();
        let params: Vec<(&str, &str)> = params
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        let answer = self.aws.ec2(keys, action, &params);
        if answer.status != 200 {
            assert_eq!(
                self.kept(),
                before,
                "{action} was refused and changed something: {}",
                answer.body
            );
        }
        let changed = self.aws.aws.journal(0).last().unwrap().changed;
        assert_eq!(changed, self.kept() != before, "{action}: what the journal has of it");
        answer
    }

    /// The same token never makes two things.
    fn created(&mut self, answer: &Answered, action: &str, token: Option<u8>, member: &str) {
        if let (200, Some(token)) = (answer.status, token) {
            let id = answer.value(member);
            let first = self
                .tokens
                .entry(format!("{action} {token}"))
                .or_insert_with(|| id.clone());
            assert_eq!(*first, id, "{action} with token {token}");
        }
    }

    fn create_endpoint(&mut self, service: usize, subnets: &[usize], token: Option<u8>) {
        let service = self.pick("vpc-endpoint-service", service);
        self.aws.ec2(
            &provider(),
            "ModifyVpcEndpointServicePermissions",
            &[("ServiceId", service.as_str()), ("AddAllowedPrincipals.1", "*")],
        );
        let name = format!("com.amazonaws.vpce.{REGION}.{service}");
        let mut params = pairs(&[("VpcEndpointType", "Interface"), ("VpcId", VPC), ("ServiceName", &name)]);
        for (at, subnet) in subnets.iter().enumerate() {
            params.push((format!("SubnetId.{}", at + 1), SUBNETS[*subnet].to_owned()));
        }
        params.extend(token.map(|token| ("ClientToken".to_owned(), format!("t{token}"))));
        let answer = self.ec2(&consumer(), "CreateVpcEndpoint", &params);
        self.created(&answer, "CreateVpcEndpoint", token, "vpcEndpointId");
    }

    fn change(&mut self, changes: &[(u8, u8, u8)]) {
        let names = [
            "a.one.hypershift.local",
            "b.one.hypershift.local",
            "*.one.hypershift.local",
        ];
        let changes: Vec<(&str, &str, u32, &str)> = changes
            .iter()
            .map(|(action, name, value)| {
                let action = ["CREATE", "UPSERT", "DELETE"][usize::from(*action)];
                (
                    action,
                    names[usize::from(*name)],
                    300,
                    ["x.example", "y.example"][usize::from(*value)],
                )
            })
            .collect();
        let mut model = self.records();
        let fits = changes.iter().all(|(action, name, _, value)| {
            let known = model.get(*name).cloned();
            match (*action, known) {
                ("CREATE", Some(_)) | ("DELETE", None) => false,
                ("DELETE", Some(known)) => known == *value && model.remove(*name).is_some(),
                _ => model
                    .insert((*name).to_owned(), (*value).to_owned())
                    .is_none_or(|_| true),
            }
        });
        let before = self.records();
        let answer = self.aws.change(&changes);
        assert_eq!(answer.status == 200, fits, "{changes:?}: {}", answer.body);
        assert_eq!(self.records(), if fits { model } else { before }, "{changes:?}");
    }

    /// CNAMEs of the zone by name, without the dot at the end.
    fn records(&mut self) -> BTreeMap<String, String> {
        let kept = self.kept();
        let zone = kept.iter().find(|thing| thing["records"].is_array()).unwrap();
        let records = zone["records"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|record| record["type"] == "CNAME");
        let text = |value: &Value| value.as_str().unwrap().trim_end_matches('.').to_owned();
        records
            .map(|record| (text(&record["name"]), text(&record["values"][0])))
            .collect()
    }

    fn authorize(&mut self, group: usize, cidrs: &[u8]) {
        let id = self.pick("security-group", group);
        let mut params = pairs(&[("GroupId", &id), ("IpPermissions.1.IpProtocol", "-1")]);
        for (at, cidr) in cidrs.iter().enumerate() {
            params.push((
                format!("IpPermissions.1.IpRanges.{}.CidrIp", at + 1),
                format!("10.{cidr}.0.0/16"),
            ));
        }
        self.ec2(&consumer(), "AuthorizeSecurityGroupIngress", &params);
    }

    fn restart(&mut self) {
        let before = self.kept();
        let saved = serde_json::to_string(&self.aws.aws).unwrap();
        self.aws.aws = serde_json::from_str(&saved).unwrap();
        assert_eq!(self.kept(), before);
        assert_eq!(serde_json::to_string(&self.aws.aws).unwrap(), saved);
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::CreateService { balancer, token } => {
                let arn = if *balancer { BALANCER } else { BALANCER_TWO };
                let mut params = pairs(&[("NetworkLoadBalancerArn.1", arn), ("AcceptanceRequired", "false")]);
                params.extend(token.map(|token| ("ClientToken".to_owned(), format!("t{token}"))));
                let action = "CreateVpcEndpointServiceConfiguration";
                let answer = self.ec2(&provider(), action, &params);
                self.created(&answer, action, *token, "serviceId");
            }
            Step::DeleteService(number) => {
                let id = self.pick("vpc-endpoint-service", *number);
                let action = "DeleteVpcEndpointServiceConfigurations";
                self.ec2(&provider(), action, &pairs(&[("ServiceId.1", &id)]));
            }
            Step::CreateEndpoint {
                service,
                subnets,
                token,
            } => self.create_endpoint(*service, subnets, *token),
            Step::ModifyEndpoint { endpoint, add, remove } => {
                let id = self.pick("vpc-endpoint", *endpoint);
                let mut params = pairs(&[("VpcEndpointId", &id), ("AddSubnetId.1", SUBNETS[*add])]);
                params.extend(remove.map(|at| ("RemoveSubnetId.1".to_owned(), SUBNETS[at].to_owned())));
                let answer = self.aws.ec2(&consumer(), "ModifyVpcEndpoint", &borrowed(&params));
                assert!([200, 400].contains(&answer.status), "{}", answer.body);
            }
            Step::DeleteEndpoint(number) => {
                let id = self.pick("vpc-endpoint", *number);
                self.ec2(&consumer(), "DeleteVpcEndpoints", &pairs(&[("VpcEndpointId.1", &id)]));
            }
            Step::Reject(number) => {
                let (service, id) = (self.pick("vpc-endpoint-service", 0), self.pick("vpc-endpoint", *number));
                let params = pairs(&[("ServiceId", &service), ("VpcEndpointId.1", &id)]);
                self.ec2(&provider(), "RejectVpcEndpointConnections", &params);
            }
            Step::CreateGroup(name) => {
                let name = format!("group{name}");
                let params = pairs(&[("GroupName", &name), ("GroupDescription", "d"), ("VpcId", VPC)]);
                self.ec2(&consumer(), "CreateSecurityGroup", &params);
            }
            Step::Authorize { group, cidrs } => self.authorize(*group, cidrs),
            Step::DeleteGroup(number) => {
                let id = self.pick("security-group", *number);
                self.ec2(&consumer(), "DeleteSecurityGroup", &pairs(&[("GroupId", &id)]));
            }
            Step::Change(changes) => self.change(changes),
            Step::Advance(ms) => self.aws.advance(f64::from(*ms) / 1000.0),
            Step::Restart => self.restart(),
        }
    }

    /// What holds at any time.
    fn check(&mut self) {
        let kept = self.kept();
        let of = |kind: &str| {
            let part = format!(":{kind}/");
            kept.iter()
                .filter(move |thing| thing["id"].as_str().unwrap().contains(&part))
        };
        let mut balancers = BTreeSet::new();
        for service in of("vpc-endpoint-service") {
            assert!(
                balancers.insert(service["load_balancers"].to_string()),
                "one service per load balancer"
            );
        }
        let mut names = BTreeSet::new();
        for group in of("security-group") {
            assert!(
                names.insert((group["vpc"].to_string(), group["name"].to_string())),
                "one group of a name"
            );
        }
        let mut addresses = BTreeSet::new();
        for interface in of("network-interface") {
            let address = (interface["subnet"].to_string(), interface["address"].to_string());
            assert!(addresses.insert(address), "one interface of an address");
            for group in interface["groups"].as_array().unwrap() {
                let id = group.as_str().unwrap();
                assert!(
                    of("security-group").any(|known| known["id"].as_str().unwrap().ends_with(id)),
                    "{id} is gone"
                );
            }
        }
        let mut listed = BTreeSet::new();
        for thing in of("vpc-endpoint").chain(of("vpc-endpoint-service")) {
            let id = thing["id"].as_str().unwrap().to_owned();
            let now = rank(thing["state"].as_str().unwrap());
            let before = self.states.insert(id.clone(), now).unwrap_or(0);
            assert!(now >= before, "{id} went back: {thing}");
            assert!(!self.gone.contains(&id), "{id} returned");
            listed.insert(id);
        }
        self.gone
            .extend(self.states.keys().filter(|id| !listed.contains(*id)).cloned());
    }
}

fn pairs(params: &[(&str, &str)]) -> Vec<(String, String)> {
    params
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn borrowed(params: &[(String, String)]) -> Vec<(&str, &str)> {
    params
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        ..ProptestConfig::with_cases(std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64))
    })]

    #[test]
    fn laws_hold_over_any_sequence(steps in proptest::collection::vec(step(), 1..60)) {
        let mut run = Run::default();
        for step in &steps {
            run.take(step);
            run.check();
        }
    }

    #[test]
    fn equal_calls_give_equal_answers(steps in proptest::collection::vec(step(), 1..30)) {
        let (mut one, mut two) = (Run::default(), Run::default());
        for step in &steps {
            one.take(step);
            two.take(step);
        }
        prop_assert_eq!(serde_json::to_string(&one.aws.aws).unwrap(), serde_json::to_string(&two.aws.aws).unwrap());
    }
}
