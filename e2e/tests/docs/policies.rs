//! The policies of the roles on AWS: what the program can send, what the simulated identities have, and what
//! `docs/aws/permissions.md` says of each action.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use e2e::aws_sim::{ACTIONS_NOT_SENT, OPTIONAL_ACTION, allowed_actions, seed, shipped_policy};
use hyperlink::aws::api::action::Action;
use hyperlink::aws::endpoints::Service;
use regex::Regex;
use serde_json::{Value, json};

/// What HyperShift's operator may do, as its installer writes it. Never longer for our sake.
const OF_HYPERSHIFTS_OPERATOR: [&str; 9] = [
    "ec2:CreateTags",
    "ec2:CreateVpcEndpointServiceConfiguration",
    "ec2:DeleteVpcEndpointServiceConfigurations",
    "ec2:DescribeVpcEndpointConnections",
    "ec2:DescribeVpcEndpointServiceConfigurations",
    "ec2:DescribeVpcEndpointServicePermissions",
    "ec2:ModifyVpcEndpointServicePermissions",
    "ec2:RejectVpcEndpointConnections",
    "elasticloadbalancing:DescribeLoadBalancers",
];
/// What HyperShift's control plane operator may do everywhere, likewise.
const OF_CONTROL_PLANE_OPERATOR: [&str; 15] = [
    "ec2:AuthorizeSecurityGroupEgress",
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:CreateSecurityGroup",
    "ec2:CreateTags",
    "ec2:CreateVpcEndpoint",
    "ec2:DeleteSecurityGroup",
    "ec2:DeleteVpcEndpoints",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcEndpoints",
    "ec2:DescribeVpcs",
    "ec2:ModifyVpcEndpoint",
    "ec2:RevokeSecurityGroupEgress",
    "ec2:RevokeSecurityGroupIngress",
    "route53:ListHostedZones",
];
/// And in the hosted zone of the cluster.
const IN_THE_ZONE: [&str; 2] = ["route53:ChangeResourceRecordSets", "route53:ListResourceRecordSets"];

/// The name of an action in a policy; none of one that needs no policy of the roles.
fn in_policies(action: Action) -> Option<String> {
    let service = match action.service() {
        Service::Ec2 => "ec2",
        Service::LoadBalancing => "elasticloadbalancing",
        Service::Route53 => "route53",
        Service::Sts | Service::InstanceMetadata => return None,
    };
    Some(format!("{service}:{}", action.name()))
}

#[test]
fn policies_allow_what_the_program_can_send() -> Result<()> {
    let mut sent: BTreeSet<String> = Action::ALL.iter().copied().filter_map(in_policies).collect();
    ensure!(sent.remove(OPTIONAL_ACTION), "{OPTIONAL_ACTION} is not sent");
    let mut both = allowed_actions(&shipped_policy("ho")?)?;
    both.append(&mut allowed_actions(&shipped_policy("cpo")?)?);
    for action in ACTIONS_NOT_SENT {
        ensure!(both.remove(action), "no policy allows {action}");
    }
    assert_eq!(both, sent);
    Ok(())
}

/// Which actions a shipped policy allows on which resource.
fn allowed_on(role: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let path = e2e::repository().join(format!("docs/aws/role-{role}.json"));
    let mut policy: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let version = policy["Version"].take();
    ensure!(version == "2012-10-17", "{version}");
    let mut found = BTreeMap::new();
    for rule in policy["Statement"].as_array().context("no rules")? {
        // No condition, no exception: nothing but these three.
        let (resource, actions) = (&rule["Resource"], &rule["Action"]);
        ensure!(
            *rule == json!({"Effect": "Allow", "Action": actions, "Resource": resource}),
            "{rule}"
        );
        let mut actions: Vec<String> = serde_json::from_value(actions.clone())?;
        actions.sort();
        let resource = resource.as_str().context("several resources")?.to_owned();
        ensure!(found.insert(resource.clone(), actions).is_none(), "{resource} twice");
    }
    Ok(found)
}

#[test]
fn shipped_policies_are_hypershifts_own() -> Result<()> {
    let actions = |list: &[&str]| list.iter().copied().map(str::to_owned).collect::<Vec<_>>();
    let everywhere = |list: &[&str]| ("*".to_owned(), actions(list));
    let ho = BTreeMap::from([everywhere(&OF_HYPERSHIFTS_OPERATOR)]);
    assert_eq!(allowed_on("ho")?, ho);
    let zone = "arn:aws:route53:::hostedzone/ZONE-ID".to_owned();
    let cpo = BTreeMap::from([everywhere(&OF_CONTROL_PLANE_OPERATOR), (zone, actions(&IN_THE_ZONE))]);
    assert_eq!(allowed_on("cpo")?, cpo);
    Ok(())
}

#[test]
fn simulated_identities_have_the_shipped_policies() -> Result<()> {
    let seed = seed(&json!([]))?;
    for (role, account) in [("ho", 0), ("cpo", 1)] {
        let account = &seed["accounts"][account];
        for identity in [&account["users"][0], &account["roles"][0]] {
            assert_eq!(identity["policies"], json!([shipped_policy(role)?]), "{identity}");
        }
    }
    Ok(())
}

#[test]
fn every_action_has_a_row_that_explains_it() -> Result<()> {
    let page = std::fs::read_to_string(e2e::repository().join("docs/aws/permissions.md"))?;
    let row = Regex::new(r"(?m)^\| `(\w+:\w+)` \| .{10,} \|$")?;
    let rows = |heading: &str| {
        let (_, rest) = page
            .split_once(&format!("\n## {heading}\n"))
            .context("no such heading")?;
        let section = rest.split("\n## ").next().unwrap_or_default();
        let actions = row.captures_iter(section).map(|found| found[1].to_owned());
        anyhow::Ok(actions.collect::<BTreeSet<_>>())
    };
    assert_eq!(rows("Management side")?, allowed_actions(&shipped_policy("ho")?)?);
    assert_eq!(rows("Guest side")?, allowed_actions(&shipped_policy("cpo")?)?);
    assert_eq!(rows("What more allows")?, BTreeSet::from([OPTIONAL_ACTION.to_owned()]));
    Ok(())
}
