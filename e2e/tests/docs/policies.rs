//! The policies of the roles on AWS: what the program can send, what the simulated identities have, and what
//! `docs/aws/permissions.md` says of each action.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::aws_sim::{seed, shipped_policy};
use hyperlink::aws::api::action::Action;
use hyperlink::aws::endpoints::Service;
use regex::Regex;
use serde_json::{Value, json};

/// What the program can send and works without.
const OPTIONAL: &str = "ec2:ModifyVpcEndpointServiceConfiguration";
/// What HyperShift's policies allow and the program never sends.
const NOT_SENT: [&str; 2] = ["ec2:AuthorizeSecurityGroupEgress", "ec2:RevokeSecurityGroupEgress"];

/// The actions that a policy allows.
fn allowed(policy: &Value) -> Result<BTreeSet<String>> {
    let rules = policy["Statement"].as_array().context("no rules")?;
    let actions = rules.iter().map(|rule| {
        ensure!(rule["Effect"] == "Allow", "{rule}");
        let actions: Vec<String> = serde_json::from_value(rule["Action"].clone())?;
        Ok(actions)
    });
    Ok(actions.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

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
    ensure!(sent.remove(OPTIONAL), "{OPTIONAL} is not sent");
    let mut both = allowed(&shipped_policy("ho")?)?;
    both.append(&mut allowed(&shipped_policy("cpo")?)?);
    for action in NOT_SENT {
        ensure!(both.remove(action), "no policy allows {action}");
    }
    assert_eq!(both, sent);
    Ok(())
}

#[test]
fn records_are_allowed_in_the_clusters_zone_alone() -> Result<()> {
    let path = e2e::repository().join("docs/aws/role-cpo.json");
    let policy: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let zone = &policy["Statement"][1];
    assert_eq!(zone["Resource"], "arn:aws:route53:::hostedzone/ZONE-ID");
    let actions = json!(["route53:ChangeResourceRecordSets", "route53:ListResourceRecordSets"]);
    assert_eq!(zone["Action"], actions);
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
    assert_eq!(rows("Management side")?, allowed(&shipped_policy("ho")?)?);
    assert_eq!(rows("Guest side")?, allowed(&shipped_policy("cpo")?)?);
    assert_eq!(rows("What more allows")?, BTreeSet::from([OPTIONAL.to_owned()]));
    Ok(())
}
