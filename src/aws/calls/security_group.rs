//! Security groups are read by name and VPC. A new one gets its rules by a call of its own.

use hyperlink_engine::client::{Reconcile, WriteError, WriteTarget};
use hyperlink_engine::cloud::Key;
use serde_json::{Value, json};

use super::endpoint_service::with_tags;
use super::{Calls, Written, put_to, shown};
use crate::api::error::AwsError;
use crate::body::{tags, text};
use crate::cloud::Aws;
use crate::ec2::{NewSecurityGroup, Rule, Selection, filter};
use crate::kinds::security_group::{IngressRule, RULE_DESCRIPTION, RuleChange};
use crate::slot::Slot;

impl Calls {
    /// Reads a security group.
    pub(super) async fn security_group(&self, reconcile: Reconcile, slot: &Slot) -> Result<Value, AwsError> {
        let vpc = slot.container().unwrap_or_default();
        let filters = vec![filter("group-name", slot.name()), filter("vpc-id", vpc)];
        let found = self
            .ec2
            .security_groups(reconcile, &Selection::Filters(filters))
            .await?;
        // The filter takes wildcards.
        let found = found
            .iter()
            .find(|group| group.name == slot.name() && group.vpc_id.as_deref() == Some(vpc));
        found.map(shown::security_group).ok_or_else(AwsError::missing)
    }

    /// Creates a security group, or changes what differs.
    pub(super) async fn put_security_group(
        &self,
        reconcile: Reconcile,
        target: WriteTarget<'_, Aws>,
        body: &Value,
    ) -> Written {
        let found = match target.found {
            Some(found) => {
                if with_tags(found, body) != tags(found) {
                    self.ec2
                        .create_tags(reconcile, &self.id_of(target)?, &tags(body))
                        .await?;
                }
                found.clone()
            }
            None => {
                let new = NewSecurityGroup {
                    name: text(body, "GroupName").to_owned(),
                    description: text(body, "Description").to_owned(),
                    vpc_id: text(body, "VpcId").to_owned(),
                    tags: tags(body),
                };
                let id = self.ec2.create_security_group(reconcile, &new).await?;
                json!({"Id": id, "GroupName": new.name, "VpcId": new.vpc_id, "Rules": []})
            }
        };
        self.change_rules(reconcile, &found, body).await?;
        let mut changed = found.clone();
        changed["Tags"] = json!(with_tags(&found, body));
        changed["Rules"] = body["Rules"].clone();
        Ok(put_to(changed))
    }

    /// Opens before it closes.
    async fn change_rules(
        &self,
        reconcile: Reconcile,
        found: &Value,
        body: &Value,
    ) -> Result<(), WriteError<AwsError>> {
        let id = text(found, "Id");
        let change = RuleChange::between(Some(found), body);
        let (authorized, revoked): (Vec<Rule>, Vec<Rule>) = (
            change.authorized.iter().map(sent).collect(),
            change.revoked.iter().map(sent).collect(),
        );
        if !authorized.is_empty() {
            self.ec2.authorize_ingress(reconcile, id, &authorized).await?;
        }
        if !revoked.is_empty() {
            self.ec2.revoke_ingress(reconcile, id, &revoked).await?;
        }
        Ok(())
    }
}

fn sent(rule: &IngressRule) -> Rule {
    let port = i32::from(rule.port);
    Rule {
        protocol: "tcp".to_owned(),
        ports: Some((port, port)),
        cidr: rule.range.to_string(),
        description: Some(RULE_DESCRIPTION.to_owned()),
    }
}
