//! Things by their ARNs, in JSON: what the seed and the control calls read and put.

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::preset::Phase;
use super::state::State;
use crate::ec2::rule::Rule;
use crate::ec2::security_group::{SecurityGroup, usual_egress};
use crate::elbv2::LoadBalancer;
use crate::route53::zone::HostedZone;

/// An ARN, apart.
struct Arn {
    partition: String,
    region: String,
    account: String,
    kind: String,
    id: String,
}

impl Arn {
    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.splitn(6, ':').collect();
        let ["arn", partition, _, region, account, resource] = parts[..] else {
            return None;
        };
        let (kind, id) = resource.split_once('/')?;
        let [partition, region, account, kind, id] = [partition, region, account, kind, id].map(str::to_owned);
        Some(Self {
            partition,
            region,
            account,
            kind,
            id,
        })
    }
}

/// All things, each with its ARN as `id`, in the order of their ARNs.
pub(crate) fn all(state: &State) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let mut add = |kind: &str, id: &str, (account, region): (&str, &str), value: Value| {
        let arn = format!("arn:{}:ec2:{region}:{account}:{kind}/{id}", state.partition(account));
        found.push((arn, value));
    };
    for (id, it) in &state.vpcs {
        add("vpc", id, (&it.account, &it.region), json!(it));
    }
    for (id, it) in &state.subnets {
        add("subnet", id, (&it.account, &it.region), json!(it));
    }
    for (id, it) in &state.groups {
        add("security-group", id, (&it.account, &it.region), json!(it));
    }
    for (id, it) in &state.interfaces {
        add("network-interface", id, (&it.account, &it.region), json!(it));
    }
    for (id, it) in &state.endpoint_services {
        add("vpc-endpoint-service", id, (&it.account, &it.region), json!(it));
    }
    for (id, it) in &state.endpoints {
        add("vpc-endpoint", id, (&it.account, &it.region), json!(it));
    }
    for (arn, it) in &state.load_balancers {
        found.push((arn.clone(), json!(it)));
    }
    for (id, it) in &state.zones {
        found.push((
            format!("arn:{}:route53:::hostedzone/{id}", state.partition(&it.account)),
            json!(it),
        ));
    }
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    for (arn, value) in &mut found {
        value["id"] = json!(arn);
    }
    found
}

fn read<T: DeserializeOwned>(body: Value) -> Result<T, String> {
    serde_json::from_value(body).map_err(|error| error.to_string())
}

/// Creates or replaces a thing. What refers to others may come before them.
pub(crate) fn put(state: &mut State, now: Timestamp, id: &str, mut body: Value) -> Result<(), String> {
    let arn = Arn::parse(id).ok_or("`id` must be an ARN")?;
    let members = body.as_object_mut().ok_or("a resource is an object")?;
    members.remove("id");
    if arn.kind != "hostedzone" {
        if state
            .account(&arn.account)
            .is_none_or(|account| account.partition != arn.partition)
        {
            return Err(format!("account {} of {} is unknown", arn.account, arn.partition));
        }
        members.insert("account".to_owned(), json!(arn.account));
        members.insert("region".to_owned(), json!(arn.region));
    }
    let key = arn.id.clone();
    match arn.kind.as_str() {
        "vpc" => {
            state.vpcs.insert(key, read(body)?);
            default_group(state, &arn);
        }
        "subnet" => insert(&mut state.subnets, key, body)?,
        "security-group" => {
            let mut group: SecurityGroup = read(body)?;
            number_rules(state, &mut group);
            state.groups.insert(key, group);
        }
        "network-interface" => insert(&mut state.interfaces, key, body)?,
        "vpc-endpoint-service" => insert(&mut state.endpoint_services, key, body)?,
        "vpc-endpoint" => insert(&mut state.endpoints, key, body)?,
        "loadbalancer" => {
            let balancer = load_balancer(state, now, &arn, read(body)?)?;
            state.load_balancers.insert(id.to_owned(), balancer);
        }
        "hostedzone" => {
            let mut zone: HostedZone = read(body)?;
            if state.account(&zone.account).is_none() {
                return Err(format!("account {} is unknown", zone.account));
            }
            zone.normalize();
            state.zones.insert(key, zone);
        }
        other => return Err(format!("`{other}` is not simulated")),
    }
    Ok(())
}

fn insert<T: DeserializeOwned + Serialize>(
    to: &mut std::collections::BTreeMap<String, T>,
    key: String,
    body: Value,
) -> Result<(), String> {
    to.insert(key, read(body)?);
    Ok(())
}

/// Every VPC has a group of this name.
fn default_group(state: &mut State, arn: &Arn) {
    if state
        .groups
        .values()
        .any(|group| group.vpc == arn.id && group.name == "default")
    {
        return;
    }
    let id = state.new_id("sg");
    let group = SecurityGroup {
        account: arn.account.clone(),
        region: arn.region.clone(),
        vpc: arn.id.clone(),
        name: "default".to_owned(),
        description: "default VPC security group".to_owned(),
        ingress: vec![],
        egress: vec![usual_egress(state.new_id("sgr"))],
        tags: Default::default(),
        created: Timestamp::UNIX_EPOCH,
    };
    state.groups.insert(id, group);
}

fn number_rules(state: &mut State, group: &mut SecurityGroup) {
    let new = |rule: &&mut Rule| rule.id.is_empty();
    for rule in group.ingress.iter_mut().chain(&mut group.egress).filter(new) {
        rule.id = state.new_id("sgr");
    }
}

/// Fills in what the ARN says, and when the load balancer becomes active.
fn load_balancer(state: &State, now: Timestamp, arn: &Arn, mut balancer: LoadBalancer) -> Result<LoadBalancer, String> {
    let name = arn.id.strip_prefix("net/").and_then(|rest| rest.split_once('/'));
    let (name, hash) = name.ok_or("a load balancer's ARN ends in loadbalancer/net/NAME/HASH")?;
    balancer.name = name.to_owned();
    if balancer.dns_name.is_empty() {
        let domain = crate::ec2::endpoint_service::dns_suffix(&arn.partition);
        balancer.dns_name = format!("{name}-{hash}.elb.{}.{domain}", arn.region);
    }
    if balancer.state == "provisioning" && balancer.next.is_none() {
        balancer.created = now;
        balancer.next = Some((now + state.preset.lasts(Phase::Provisioning), "active".to_owned()));
    }
    Ok(balancer)
}

/// Removes a thing, an endpoint with its network interfaces; whether it was there.
pub(crate) fn delete(state: &mut State, id: &str) -> bool {
    let Some(arn) = Arn::parse(id) else {
        return false;
    };
    let key = &arn.id;
    match arn.kind.as_str() {
        "vpc" => state.vpcs.remove(key).is_some(),
        "subnet" => state.subnets.remove(key).is_some(),
        "security-group" => state.groups.remove(key).is_some(),
        "network-interface" => state.interfaces.remove(key).is_some(),
        "vpc-endpoint-service" => state.endpoint_services.remove(key).is_some(),
        "vpc-endpoint" => {
            state.interfaces.retain(|_, interface| interface.endpoint != *key);
            state.endpoints.remove(key).is_some()
        }
        "loadbalancer" => state.load_balancers.remove(id).is_some(),
        "hostedzone" => state.zones.remove(key).is_some(),
        _ => false,
    }
}

/// The hash that AWS gives a load balancer: 16 hexadecimal digits.
pub fn load_balancer_hash(name: &str) -> String {
    Sha256::digest(name.as_bytes())
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
