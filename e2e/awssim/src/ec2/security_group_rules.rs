//! Authorize and revoke: all rules of a call or none.

use super::rule::{self, Rule, Source};
use crate::engine::call::{Answered, Call};
use crate::wire::error::AwsError;
use crate::wire::xml::{list, text};

pub(super) fn authorize(call: &mut Call<'_>, egress: bool) -> Answered {
    call.params.only(&["GroupId", "IpPermissions"])?;
    let id = call.params.required("GroupId")?.to_owned();
    call.authorize(&[call.arn(&format!("security-group/{id}"))])?;
    let group = call.group(&id)?;
    let known = if egress { &group.egress } else { &group.ingress };
    let rules = rule::read(&call.params)?;
    let duplicate = rules.iter().find(|rule| known.iter().any(|known| known.is_same(rule)));
    let error = duplicate.map(|rule| {
        let message = format!("the specified rule \"{}\" already exists", words(rule));
        AwsError::bad("InvalidPermission.Duplicate", message)
    });
    if call.state.switches.authorize_is_atomic
        && let Some(error) = error
    {
        return Err(error);
    }
    for rule in &rules {
        if let Source::Group(other) = &rule.source {
            call.group(other)?;
        }
    }
    let new: Vec<Rule> = rules
        .into_iter()
        .filter(|rule| !known.iter().any(|known| known.is_same(rule)))
        .collect();
    if known.len() + new.len() > call.quotas().rules_per_group {
        let message = "The maximum number of rules per security group has been reached.";
        return Err(AwsError::bad("RulesPerSecurityGroupLimitExceeded", message));
    }
    let mut shown = Vec::new();
    for mut rule in new {
        rule.id = call.state.new_id("sgr");
        shown.push(rule::show_one(&rule, &id, &call.caller.account, egress));
        if let Some(group) = call.state.groups.get_mut(&id) {
            let rules = if egress { &mut group.egress } else { &mut group.ingress };
            rules.push(rule);
            call.changed = true;
        }
    }
    match error {
        Some(error) => Err(error),
        None => Ok(vec![text("return", true), list("securityGroupRuleSet", "item", shown)]),
    }
}

pub(super) fn revoke(call: &mut Call<'_>, egress: bool) -> Answered {
    call.params.only(&["GroupId", "IpPermissions"])?;
    let id = call.params.required("GroupId")?.to_owned();
    call.authorize(&[call.arn(&format!("security-group/{id}"))])?;
    let group = call.group(&id)?;
    let known = if egress { &group.egress } else { &group.ingress };
    let rules = rule::read(&call.params)?;
    if let Some(missing) = rules.iter().find(|rule| !known.iter().any(|known| known.is_same(rule))) {
        let message = format!(
            "The specified rule does not exist in this security group: {}",
            words(missing)
        );
        return Err(AwsError::bad("InvalidPermission.NotFound", message));
    }
    let account = call.caller.account.clone();
    let Some(group) = call.state.groups.get_mut(&id) else {
        return Ok(vec![]);
    };
    let known = if egress { &mut group.egress } else { &mut group.ingress };
    let (revoked, kept) = known
        .drain(..)
        .partition(|known| rules.iter().any(|rule| rule.is_same(known)));
    *known = kept;
    call.changed = true;
    let revoked: Vec<Rule> = revoked;
    let shown = revoked
        .iter()
        .map(|rule| rule::show_revoked(rule, &id, &account, egress));
    Ok(vec![
        text("return", true),
        list("revokedSecurityGroupRuleSet", "item", shown),
    ])
}

/// A rule in EC2's words.
fn words(rule: &Rule) -> String {
    let peer = match &rule.source {
        Source::Ipv4(net) => net.to_string(),
        Source::Ipv6(net) => net.to_string(),
        Source::Group(id) => id.clone(),
    };
    let (from, to) = rule.ports.unwrap_or((-1, -1));
    format!(
        "peer: {peer}, {}, from port: {from}, to port: {to}, ALLOW",
        rule.protocol.to_uppercase()
    )
}
