//! The simulated AWS, and the steps as calls, each with what has to come of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Step;
use super::support::*;

/// The security groups that the consumer may change.
const GROUP: &str = "222222222222:security-group";

/// The simulated AWS and what was observed of it.
#[derive(Default)]
pub(super) struct Run {
    pub(super) aws: TestAws,
    pub(super) states: BTreeMap<String, u8>,
    pub(super) gone: BTreeSet<String>,
    tokens: BTreeMap<String, Create>,
}

/// A call that has created something, with a client token.
#[derive(Clone)]
struct Create {
    keys: Keys,
    action: &'static str,
    params: Vec<(String, String)>,
    /// The element of the answer that has the id.
    member: &'static str,
    id: String,
}

impl Run {
    pub(super) fn kept(&mut self) -> Vec<Value> {
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

    /// A call that creates something. The same token never makes two things.
    fn create(&mut self, mut create: Create, token: Option<u8>) {
        create
            .params
            .extend(token.map(|token| ("ClientToken".to_owned(), format!("t{token}"))));
        let answer = self.ec2(&create.keys, create.action, &create.params);
        if let (200, Some(token)) = (answer.status, token) {
            create.id = answer.value(create.member);
            let (id, action) = (create.id.clone(), create.action);
            let first = self.tokens.entry(format!("{action} {token}")).or_insert(create);
            assert_eq!(first.id, id, "{action} with token {token}");
        }
    }

    fn create_service(&mut self, balancer: bool, token: Option<u8>) {
        let arn = if balancer { BALANCER } else { BALANCER_TWO };
        let create = Create {
            keys: provider(),
            action: "CreateVpcEndpointServiceConfiguration",
            params: pairs(&[("NetworkLoadBalancerArn.1", arn), ("AcceptanceRequired", "false")]),
            member: "serviceId",
            id: String::new(),
        };
        self.create(create, token);
    }

    fn create_endpoint(&mut self, service: usize, subnets: &[usize], token: Option<u8>) {
        let service = self.pick("vpc-endpoint-service", service);
        let everybody = pairs(&[("ServiceId", &service), ("AddAllowedPrincipals.1", "*")]);
        self.ec2(&provider(), "ModifyVpcEndpointServicePermissions", &everybody);
        let name = format!("com.amazonaws.vpce.{REGION}.{service}");
        let mut params = pairs(&[("VpcEndpointType", "Interface"), ("VpcId", VPC), ("ServiceName", &name)]);
        for (at, subnet) in subnets.iter().enumerate() {
            params.push((format!("SubnetId.{}", at + 1), SUBNETS[*subnet].to_owned()));
        }
        let create = Create {
            keys: consumer(),
            action: "CreateVpcEndpoint",
            params,
            member: "vpcEndpointId",
            id: String::new(),
        };
        self.create(create, token);
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

    /// The networks that a group lets in.
    fn networks(&mut self, group: &str) -> BTreeSet<String> {
        let rules = self.member(group, "ingress");
        let rules = rules.as_array().into_iter().flatten();
        rules
            .filter_map(|rule| rule["source"]["ipv4"].as_str().map(str::to_owned))
            .collect()
    }

    /// A member of the thing with this id; null if there is none.
    fn member(&mut self, id: &str, name: &str) -> Value {
        let end = format!("/{id}");
        let mut found = self.kept().into_iter();
        let found = found.find(|thing| thing["id"].as_str().unwrap().ends_with(&end));
        found.map_or(Value::Null, |thing| thing[name].clone())
    }

    /// Authorizes or revokes rules: all of them, or none if one does not fit.
    fn change_rules(&mut self, action: &str, group: usize, cidrs: &[u8]) {
        let id = self.pick(GROUP, group);
        let mut params = pairs(&[("GroupId", &id), ("IpPermissions.1.IpProtocol", "-1")]);
        let networks: Vec<String> = cidrs.iter().map(|cidr| format!("10.{cidr}.0.0/16")).collect();
        for (network, at) in networks.iter().zip(1..) {
            params.push((format!("IpPermissions.1.IpRanges.{at}.CidrIp"), network.clone()));
        }
        let (before, asked) = (self.networks(&id), BTreeSet::from_iter(networks.iter().cloned()));
        let is_new = action.starts_with("Authorize");
        let fits = asked.len() == networks.len() && asked.iter().all(|one| before.contains(one) != is_new);
        let after = match is_new {
            true => &before | &asked,
            false => &before - &asked,
        };
        let answer = self.ec2(&consumer(), action, &params);
        let expected = fits && id != "none";
        assert_eq!(answer.status == 200, expected, "{action} {asked:?}: {}", answer.body);
        assert_eq!(self.networks(&id), if expected { after } else { before }, "{action}");
    }

    /// Adds and removes principals. Who is both removed and added is allowed in the end.
    fn permit(&mut self, service: usize, add: &[u8], remove: &[u8]) {
        let id = self.pick("vpc-endpoint-service", service);
        let arn = |number: &u8| format!("arn:aws:iam::{number:012}:root");
        let mut params = pairs(&[("ServiceId", &id)]);
        for (list, numbers) in [("AddAllowedPrincipals", add), ("RemoveAllowedPrincipals", remove)] {
            let named = numbers.iter().zip(1..);
            params.extend(named.map(|(number, at)| (format!("{list}.{at}"), arn(number))));
        }
        let mut expected: BTreeSet<String> = self.principals(&id).into_iter().collect();
        let answer = self.ec2(&provider(), "ModifyVpcEndpointServicePermissions", &params);
        if answer.status == 200 {
            expected.retain(|known| !remove.iter().any(|number| arn(number) == *known));
            expected.extend(add.iter().map(arn));
        }
        let mut found = self.principals(&id);
        found.sort_unstable();
        assert_eq!(found, Vec::from_iter(expected), "{params:?}: {}", answer.body);
    }

    fn principals(&mut self, service: &str) -> Vec<String> {
        let found = self.member(service, "principals");
        let found = found.as_array().into_iter().flatten();
        found.map(|one| one["arn"].as_str().unwrap().to_owned()).collect()
    }

    /// Adds tags, all of them or none: one key is AWS's own, and none may come twice.
    fn tag(&mut self, kind: usize, thing: usize, tags: &[(u8, u8)]) {
        const KEYS: [&str; 4] = ["a", "b", "c", "aws:d"];
        let kind = [GROUP, "vpc-endpoint", "vpc-endpoint-service"][kind];
        let keys = if kind.ends_with("service") {
            provider()
        } else {
            consumer()
        };
        let id = self.pick(kind, thing);
        let mut params = pairs(&[("ResourceId.1", &id)]);
        for ((key, value), at) in tags.iter().zip(1..) {
            params.push((format!("Tag.{at}.Key"), KEYS[usize::from(*key)].to_owned()));
            params.push((format!("Tag.{at}.Value"), value.to_string()));
        }
        let distinct: BTreeSet<u8> = tags.iter().map(|(key, _)| *key).collect();
        let fits = id != "none" && distinct.len() == tags.len() && !distinct.contains(&3);
        let mut expected = self.member(&id, "tags");
        let answer = self.ec2(&keys, "CreateTags", &params);
        assert_eq!(answer.status == 200, fits, "{params:?}: {}", answer.body);
        for (key, value) in tags.iter().filter(|_| fits) {
            expected[KEYS[usize::from(*key)]] = value.to_string().into();
        }
        assert_eq!(self.member(&id, "tags"), expected, "{params:?}");
    }

    fn restart(&mut self) {
        let before = self.kept();
        let saved = serde_json::to_string(&self.aws.aws).unwrap();
        self.aws.aws = serde_json::from_str(&saved).unwrap();
        assert_eq!(self.kept(), before);
        assert_eq!(serde_json::to_string(&self.aws.aws).unwrap(), saved);
        let tokens: Vec<Create> = self.tokens.values().cloned().collect();
        for create in tokens {
            self.repeat(&create);
        }
    }

    /// A client token gives what it has made, for as long as that is there.
    fn repeat(&mut self, create: &Create) {
        let state = self.member(&create.id, "state");
        if state
            .as_str()
            .is_none_or(|state| state.to_lowercase().starts_with("delet"))
        {
            return;
        }
        let answer = self.ec2(&create.keys, create.action, &create.params).ok();
        assert_eq!(answer.value(create.member), create.id, "{}", create.action);
        assert!(!self.aws.aws.journal(0).last().unwrap().changed, "{}", create.action);
    }

    /// Takes a step.
    pub(super) fn take(&mut self, step: &Step) {
        match step {
            Step::CreateService { balancer, token } => self.create_service(*balancer, *token),
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
                let answer = self.ec2(&consumer(), "ModifyVpcEndpoint", &params);
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
            Step::Authorize { group, cidrs } => self.change_rules("AuthorizeSecurityGroupIngress", *group, cidrs),
            Step::Revoke { group, cidrs } => self.change_rules("RevokeSecurityGroupIngress", *group, cidrs),
            Step::Permit { service, add, remove } => self.permit(*service, add, remove),
            Step::Tag { kind, thing, tags } => self.tag(*kind, *thing, tags),
            Step::DeleteGroup(number) => {
                let id = self.pick(GROUP, *number);
                self.ec2(&consumer(), "DeleteSecurityGroup", &pairs(&[("GroupId", &id)]));
            }
            Step::Change(changes) => self.change(changes),
            Step::Advance(ms) => self.aws.advance(f64::from(*ms) / 1000.0),
            Step::Restart => self.restart(),
        }
    }
}

fn pairs(params: &[(&str, &str)]) -> Vec<(String, String)> {
    params
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}
