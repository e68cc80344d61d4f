//! Rules of security groups: read one by one, shown merged by protocol and ports, as EC2 does.

use std::collections::BTreeMap;

use ipnet::{Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use crate::wire::error::AwsError;
use crate::wire::params::Params;
use crate::wire::xml::{Xml, list, text};

/// One rule of one source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    #[serde(default)]
    pub(crate) id: String,
    /// `tcp`, `udp`, `icmp`, a number, or `-1` for all.
    pub(crate) protocol: String,
    #[serde(default)]
    pub(crate) ports: Option<(i32, i32)>,
    pub(crate) source: Source,
    #[serde(default)]
    pub(crate) description: Option<String>,
}

/// First and last port; none where all are covered.
type Ports = Option<(i32, i32)>;

/// Where traffic comes from, or where it leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    Ipv4(Ipv4Net),
    Ipv6(Ipv6Net),
    Group(String),
}

impl Rule {
    /// Whether two rules are one to EC2: the description does not count.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.protocol, self.ports, &self.source) == (&other.protocol, other.ports, &other.source)
    }
}

/// Reads `IpPermissions.1.…`.
pub(crate) fn read(params: &Params) -> Result<Vec<Rule>, AwsError> {
    let mut rules: Vec<Rule> = Vec::new();
    for permission in params.structures("IpPermissions") {
        for rule in of_permission(&permission)? {
            if rules.iter().any(|known| known.is_same(&rule)) {
                let message = "The same permission must not appear multiple times";
                return Err(AwsError::bad("InvalidParameterValue", message));
            }
            rules.push(rule);
        }
    }
    match rules.is_empty() {
        true => Err(AwsError::missing("ipPermissions")),
        false => Ok(rules),
    }
}

fn of_permission(permission: &Params) -> Result<Vec<Rule>, AwsError> {
    let protocol = match permission.required("IpProtocol")? {
        "6" => "tcp".to_owned(),
        "17" => "udp".to_owned(),
        "1" => "icmp".to_owned(),
        other => other.to_ascii_lowercase(),
    };
    let ports = ports(permission, &protocol)?;
    let rule = |source, from: &Params| {
        let description = from.text("Description").map(str::to_owned);
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || " ._-:/()#,@[]+=&;{}!$*".contains(letter);
        if let Some(text) = description
            .as_deref()
            .filter(|text| text.len() > 255 || !text.chars().all(allowed))
        {
            return Err(AwsError::invalid_value(text, "description"));
        }
        Ok(Rule {
            id: String::new(),
            protocol: protocol.clone(),
            ports,
            source,
            description,
        })
    };
    let mut rules = Vec::new();
    for range in permission.structures("IpRanges") {
        let cidr = range.required("CidrIp")?;
        let net: Ipv4Net = cidr.parse().map_err(|_| malformed(cidr))?;
        rules.push(rule(Source::Ipv4(net.trunc()), &range)?);
    }
    for range in permission.structures("Ipv6Ranges") {
        let cidr = range.required("CidrIpv6")?;
        let net: Ipv6Net = cidr.parse().map_err(|_| malformed(cidr))?;
        rules.push(rule(Source::Ipv6(net.trunc()), &range)?);
    }
    for pair in permission.structures("Groups") {
        rules.push(rule(Source::Group(pair.required("GroupId")?.to_owned()), &pair)?);
    }
    Ok(rules)
}

fn malformed(cidr: &str) -> AwsError {
    AwsError::bad("InvalidParameterValue", format!("CIDR block {cidr} is malformed"))
}

fn ports(permission: &Params, protocol: &str) -> Result<Option<(i32, i32)>, AwsError> {
    let (from, to) = (permission.number("FromPort")?, permission.number("ToPort")?);
    match (protocol, from, to) {
        ("-1", _, _) => Ok(None),
        ("tcp" | "udp", Some(from), Some(to)) if 0 <= from && from <= to && to <= 65_535 => Ok(Some((from, to))),
        ("tcp" | "udp", _, _) => {
            let message = format!("Invalid value for portRange. Must specify both from and to ports with {protocol}.");
            Err(AwsError::bad("InvalidParameterValue", message))
        }
        (_, Some(from), Some(to)) => Ok(Some((from, to))),
        ("icmp", _, _) => Ok(Some((-1, -1))),
        (number, _, _) if number.parse::<u8>().is_ok() => Ok(None),
        (other, _, _) => Err(AwsError::invalid_value(other, "IP protocol")),
    }
}

/// Rules as describe shows them: one permission for all sources of one protocol and ports.
pub(crate) fn show(name: &str, rules: &[Rule], account: &str) -> Xml {
    let mut merged: BTreeMap<(&str, Ports), Vec<&Rule>> = BTreeMap::new();
    for rule in rules {
        merged.entry((&rule.protocol, rule.ports)).or_default().push(rule);
    }
    list(
        name,
        "item",
        merged
            .into_iter()
            .map(|((protocol, ports), rules)| permission(protocol, ports, &rules, account)),
    )
}

fn permission(protocol: &str, ports: Option<(i32, i32)>, rules: &[&Rule], account: &str) -> Vec<Xml> {
    let mut shown = vec![text("ipProtocol", protocol)];
    if let Some((from, to)) = ports {
        shown.extend([text("fromPort", from), text("toPort", to)]);
    }
    let (mut groups, mut ipv4, mut ipv6) = (Vec::new(), Vec::new(), Vec::new());
    for rule in rules {
        let description = rule
            .description
            .as_ref()
            .map(|description| text("description", description));
        let (to, mut item) = match &rule.source {
            Source::Group(id) => (&mut groups, vec![text("groupId", id), text("userId", account)]),
            Source::Ipv4(net) => (&mut ipv4, vec![text("cidrIp", net)]),
            Source::Ipv6(net) => (&mut ipv6, vec![text("cidrIpv6", net)]),
        };
        item.extend(description);
        to.push(item);
    }
    shown.extend([
        list("groups", "item", groups),
        list("ipRanges", "item", ipv4),
        list("ipv6Ranges", "item", ipv6),
    ]);
    shown.push(list("prefixListIds", "item", []));
    shown
}

/// A rule as revoke shows it: without its owner, and with a bare id of a group.
pub(crate) fn show_revoked(rule: &Rule, group: &str, account: &str, egress: bool) -> Vec<Xml> {
    let mut shown = show_one(rule, group, account, egress);
    shown.retain(|member| member.name != "groupOwnerId" && member.name != "referencedGroupInfo");
    if let Source::Group(id) = &rule.source {
        shown.push(text("referencedGroupId", id));
    }
    shown
}

/// A rule as authorize shows it.
pub(crate) fn show_one(rule: &Rule, group: &str, account: &str, egress: bool) -> Vec<Xml> {
    let (from, to) = rule.ports.unwrap_or((-1, -1));
    let mut shown = vec![
        text("securityGroupRuleId", &rule.id),
        text("groupId", group),
        text("groupOwnerId", account),
        text("isEgress", egress),
        text("ipProtocol", &rule.protocol),
        text("fromPort", from),
        text("toPort", to),
    ];
    shown.push(match &rule.source {
        Source::Ipv4(net) => text("cidrIpv4", net),
        Source::Ipv6(net) => text("cidrIpv6", net),
        Source::Group(id) => crate::wire::xml::group("referencedGroupInfo", vec![text("groupId", id)]),
    });
    shown.extend(
        rule.description
            .as_ref()
            .map(|description| text("description", description)),
    );
    shown
}
