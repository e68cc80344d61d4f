//! Security groups: create, describe, delete.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::rule::{self, Rule, Source};
use super::vpc::long_ago;
use super::{is_well_formed, next_token};
use crate::engine::call::{Answered, Call};
use crate::engine::filter::Filters;
use crate::engine::page::page;
use crate::engine::tags::{self, Tags};
use crate::wire::error::AwsError;
use crate::wire::xml::{Xml, list, text};

/// A security group.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecurityGroup {
    #[serde(default)]
    pub(crate) account: String,
    #[serde(default)]
    pub(crate) region: String,
    pub(crate) vpc: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) ingress: Vec<Rule>,
    #[serde(default)]
    pub(crate) egress: Vec<Rule>,
    #[serde(default)]
    pub(crate) tags: Tags,
    #[serde(default = "long_ago")]
    pub(crate) created: Timestamp,
}

impl Call<'_> {
    /// A security group of the caller's.
    pub(super) fn group(&self, id: &str) -> Result<&SecurityGroup, AwsError> {
        if !is_well_formed(id, "sg") {
            let message = format!("Invalid id: \"{id}\" (expecting \"sg-...\")");
            return Err(AwsError::bad("InvalidGroupId.Malformed", message));
        }
        let found = self
            .state
            .groups
            .get(id)
            .filter(|group| self.is_here(&group.account, &group.region));
        found.ok_or_else(|| {
            let message = format!("The security group '{id}' does not exist");
            AwsError::bad("InvalidGroup.NotFound", message)
        })
    }
}

/// The rule that every new group has: all traffic out.
pub(crate) fn usual_egress(id: String) -> Rule {
    Rule {
        id,
        protocol: "-1".to_owned(),
        ports: None,
        source: Source::Ipv4(ipnet::Ipv4Net::default()),
        description: None,
    }
}

pub(super) fn create(call: &mut Call<'_>) -> Answered {
    call.params
        .only(&["GroupName", "GroupDescription", "VpcId", "TagSpecification"])?;
    let name = call.params.required("GroupName")?.to_owned();
    let description = call.params.required("GroupDescription")?.to_owned();
    let vpc = call.params.required("VpcId")?.to_owned();
    let tags = tags::specified(&call.params, "security-group")?;
    let owner = call
        .state
        .vpcs
        .get(&vpc)
        .map_or(call.account(), |vpc| &vpc.account)
        .to_owned();
    let new = call.arn("security-group/*");
    call.authorize(&[call.arn_in(&owner, &format!("vpc/{vpc}")), new])?;
    call.allow_tags(&tags, "security-group/*")?;
    call.vpc(&vpc)?;
    check_words(&name, &description)?;
    let mut known = call.state.groups.values();
    if known.any(|group| group.vpc == vpc && group.name == name && group.account == call.caller.account) {
        let message = format!("The security group '{name}' already exists for VPC '{vpc}'");
        return Err(AwsError::bad("InvalidGroup.Duplicate", message));
    }
    let here = call
        .state
        .groups
        .values()
        .filter(|group| call.is_here(&group.account, &group.region))
        .count();
    if here >= call.quotas().security_groups {
        let message = "The maximum number of security groups has been reached.";
        return Err(AwsError::bad("SecurityGroupLimitExceeded", message));
    }
    let id = call.state.new_id("sg");
    let egress = vec![usual_egress(call.state.new_id("sgr"))];
    let group = SecurityGroup {
        account: call.caller.account.clone(),
        region: call.region.clone(),
        vpc,
        name,
        description,
        ingress: vec![],
        egress,
        tags,
        created: call.now,
    };
    let shown = tags::show(&group.tags);
    let arn = call.arn(&format!("security-group/{id}"));
    call.state.groups.insert(id.clone(), group);
    call.changed = true;
    let mut answer = vec![text("return", true), text("groupId", id)];
    answer.extend([shown, text("securityGroupArn", arn)]);
    Ok(answer)
}

fn check_words(name: &str, description: &str) -> Result<(), AwsError> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || " ._-:/()#,@[]+=&;{}!$*".contains(letter);
    if name.len() > 255 || name.starts_with("sg-") || name == "default" || !name.chars().all(allowed) {
        return Err(AwsError::invalid_value(name, "GroupName"));
    }
    match description.len() > 255 || !description.chars().all(allowed) {
        true => Err(AwsError::invalid_value(description, "GroupDescription")),
        false => Ok(()),
    }
}

pub(super) fn describe(call: &mut Call<'_>) -> Answered {
    call.params
        .only(&["GroupId", "GroupName", "Filter", "MaxResults", "NextToken"])?;
    call.authorize(&["*".to_owned()])?;
    let filters = Filters::read(
        &call.params,
        &["group-id", "group-name", "vpc-id", "owner-id", "description", "tag-key"],
    )?;
    let asked = call.params.list("GroupId");
    for id in &asked {
        let created = call.group(id)?.created;
        if !call.shows(created) {
            let message = format!("The security group '{id}' does not exist");
            return Err(AwsError::bad("InvalidGroup.NotFound", message));
        }
    }
    let mut shown = Vec::new();
    let is_asked = |id: &str| asked.is_empty() || asked.contains(&id);
    for (id, group) in call.state.groups.iter().filter(|(id, _)| is_asked(id)) {
        let tags = call.shown_tags(&group.tags, group.created);
        let values = |name: &str| {
            vec![match name {
                "group-id" => id.clone(),
                "group-name" => group.name.clone(),
                "vpc-id" => group.vpc.clone(),
                "owner-id" => group.account.clone(),
                _ => group.description.clone(),
            }]
        };
        let is_shown = call.is_here(&group.account, &group.region) && call.shows(group.created);
        if is_shown && filters.hit(&tags, values) {
            shown.push((id.clone(), show(call, id, group, &tags)));
        }
    }
    let (shown, next) = page(&call.params, shown)?;
    Ok([list("securityGroupInfo", "item", shown)]
        .into_iter()
        .chain(next_token(next))
        .collect())
}

fn show(call: &Call<'_>, id: &str, group: &SecurityGroup, tags: &Tags) -> Vec<Xml> {
    vec![
        text("ownerId", &group.account),
        text("groupId", id),
        text("groupName", &group.name),
        text("groupDescription", &group.description),
        text("vpcId", &group.vpc),
        text("securityGroupArn", call.arn(&format!("security-group/{id}"))),
        rule::show("ipPermissions", &group.ingress, &group.account),
        rule::show("ipPermissionsEgress", &group.egress, &group.account),
        tags::show(tags),
    ]
}

pub(super) fn delete(call: &mut Call<'_>) -> Answered {
    call.params.only(&["GroupId"])?;
    let id = call.params.required("GroupId")?.to_owned();
    call.authorize(&[call.arn(&format!("security-group/{id}"))])?;
    let name = call.group(&id)?.name.clone();
    if name == "default" {
        let message = "the specified group: \"default\" name cannot be deleted by a user";
        return Err(AwsError::bad("CannotDelete", message));
    }
    let refers = |rule: &Rule| rule.source == Source::Group(id.clone());
    let others = call.state.groups.iter().filter(|(other, _)| **other != id);
    let referred = others
        .into_iter()
        .any(|(_, group)| group.ingress.iter().chain(&group.egress).any(refers));
    let used = call
        .state
        .interfaces
        .values()
        .any(|interface| interface.groups.contains(&id));
    if used || referred {
        let message = format!("resource {id} has a dependent object");
        return Err(AwsError::bad("DependencyViolation", message));
    }
    call.state.groups.remove(&id);
    call.changed = true;
    Ok(vec![text("return", true), text("groupId", id)])
}
