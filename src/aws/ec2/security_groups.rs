//! Security groups and their rules for incoming traffic.

use hyperlink_engine::client::{Execution, Reconcile, WriteError};

use super::tags::{self, Tags, with_new_tags};
use super::{Ec2, Selection, deleted, done, page};
use crate::api::action::Action;
use crate::api::error::AwsError;
use crate::api::pages::Page;
use crate::api::request::ServiceRequest;
use crate::wire::form::Form;
use crate::wire::xml::{Element, Malformed};

/// A security group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityGroup {
    /// `sg-…`
    pub id: String,
    /// Its name, of which there is one in a network.
    pub name: String,
    /// The network that it is in.
    pub vpc_id: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// Its rules for incoming traffic from ranges of addresses, one for each range. Those from groups and prefix lists
    /// are left out.
    pub ingress: Vec<Rule>,
    /// Its tags.
    pub tags: Tags,
}

/// A rule for traffic from a range of addresses. EC2 shows the ranges of one protocol and ports together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// `tcp`, `udp`, a number, or `-1` for all.
    pub protocol: String,
    /// The first and the last port; none for all.
    pub ports: Option<(i32, i32)>,
    /// The range, IPv4 or IPv6.
    pub cidr: String,
    /// Its description, which does not tell rules apart.
    pub description: Option<String>,
}

/// A security group to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSecurityGroup {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The network that it is in.
    pub vpc_id: String,
    /// Its tags.
    pub tags: Tags,
}

impl Ec2 {
    /// Creates a security group; its id.
    ///
    /// # Errors
    /// AWS's, or the gate is shut. `InvalidGroup.Duplicate`: the network has one of this name.
    pub async fn create_security_group(
        &self,
        reconcile: Reconcile,
        new: &NewSecurityGroup,
    ) -> Result<String, WriteError<AwsError>> {
        let form = Form::default()
            .with("GroupName", &new.name)
            .with("GroupDescription", &new.description)
            .with("VpcId", &new.vpc_id);
        let form = with_new_tags(form, "security-group", &new.tags);
        let request = ServiceRequest::query(Action::CreateSecurityGroup, &form);
        self.0.write(reconcile, request, |root| root.required("groupId")).await
    }

    /// Lists security groups of the account.
    ///
    /// # Errors
    /// AWS's.
    pub async fn security_groups(
        &self,
        reconcile: Reconcile,
        selection: &Selection,
    ) -> Result<Vec<SecurityGroup>, AwsError> {
        let action = Action::DescribeSecurityGroups;
        self.list(reconcile, action, ("GroupId", selection), groups).await
    }

    /// Adds rules for incoming traffic.
    ///
    /// # Errors
    /// AWS's, or the gate is shut. `InvalidPermission.Duplicate`: one of them is there already.
    pub async fn authorize_ingress(
        &self,
        reconcile: Reconcile,
        group_id: &str,
        rules: &[Rule],
    ) -> Result<(), WriteError<AwsError>> {
        self.change_ingress(reconcile, Action::AuthorizeSecurityGroupIngress, group_id, rules)
            .await
    }

    /// Removes rules for incoming traffic.
    ///
    /// # Errors
    /// AWS's, or the gate is shut.
    pub async fn revoke_ingress(
        &self,
        reconcile: Reconcile,
        group_id: &str,
        rules: &[Rule],
    ) -> Result<(), WriteError<AwsError>> {
        self.change_ingress(reconcile, Action::RevokeSecurityGroupIngress, group_id, rules)
            .await
    }

    async fn change_ingress(
        &self,
        reconcile: Reconcile,
        action: Action,
        group_id: &str,
        rules: &[Rule],
    ) -> Result<(), WriteError<AwsError>> {
        let mut form = Form::default().with("GroupId", group_id);
        for (index, rule) in rules.iter().enumerate() {
            form = with_rule(form, index + 1, rule);
        }
        self.0
            .write(reconcile, ServiceRequest::query(action, &form), done)
            .await
    }

    /// Deletes a security group.
    ///
    /// # Errors
    /// AWS's, or the gate is shut. `DependencyViolation`: a network interface still uses it.
    pub async fn delete_security_group(
        &self,
        reconcile: Reconcile,
        id: &str,
    ) -> Result<Execution, WriteError<AwsError>> {
        let form = Form::default().with("GroupId", id);
        let request = ServiceRequest::query(Action::DeleteSecurityGroup, &form);
        let sent = self.0.write(reconcile, request, done).await;
        deleted(sent, Execution::Complete)
    }
}

/// The form with a rule as a permission of its own.
fn with_rule(form: Form, number: usize, rule: &Rule) -> Form {
    let prefix = format!("IpPermissions.{number}");
    let (list, field) = if rule.cidr.contains(':') {
        ("Ipv6Ranges", "CidrIpv6")
    } else {
        ("IpRanges", "CidrIp")
    };
    let mut form = form
        .with(format!("{prefix}.IpProtocol"), &rule.protocol)
        .with(format!("{prefix}.{list}.1.{field}"), &rule.cidr);
    if let Some((first, last)) = rule.ports {
        form = form
            .with(format!("{prefix}.FromPort"), first.to_string())
            .with(format!("{prefix}.ToPort"), last.to_string());
    }
    if let Some(description) = &rule.description {
        form = form.with(format!("{prefix}.{list}.1.Description"), description);
    }
    form
}

fn groups(root: &Element) -> Result<Page<SecurityGroup>, Malformed> {
    page(root, "securityGroupInfo", |item| {
        let mut ingress = Vec::new();
        for permission in item.items("ipPermissions", "item") {
            ingress.extend(rules(permission)?);
        }
        Ok(SecurityGroup {
            id: item.required("groupId")?,
            name: item.required("groupName")?,
            vpc_id: item.optional("vpcId"),
            description: item.optional("groupDescription"),
            ingress,
            tags: tags::tags(item)?,
        })
    })
}

/// The rules that EC2 shows as one permission.
fn rules(permission: &Element) -> Result<Vec<Rule>, Malformed> {
    let protocol = permission.required("ipProtocol")?;
    let ports = (permission.number("fromPort")?, permission.number("toPort")?);
    let ports = match ports {
        (Some(first), Some(last)) => Some((first, last)),
        _ => None,
    };
    let mut rules = Vec::new();
    for (list, field) in [("ipRanges", "cidrIp"), ("ipv6Ranges", "cidrIpv6")] {
        for range in permission.items(list, "item") {
            rules.push(Rule {
                protocol: protocol.clone(),
                ports,
                cidr: range.required(field)?,
                description: range.optional("description"),
            });
        }
    }
    Ok(rules)
}

#[cfg(test)]
mod tests;
