//! Security groups are read by name and VPC, and by id where that does not show the one that is known. A new one gets
//! its rules by a call of its own.

use hyperlink_engine::client::{Execution, Reconcile, WriteError, WriteTarget};
use hyperlink_engine::cloud::Key;
use serde_json::{Value, json};

use super::endpoint_service::is_no_such_id;
use super::{Calls, Written, accepted, put_to, shown};
use crate::api::error::AwsError;
use crate::body::{tags, text};
use crate::cloud::Aws;
use crate::ec2::{NewSecurityGroup, Rule, Selection, filter};
use crate::kinds::security_group::{IngressRule, RULE_DESCRIPTION, RuleChange};
use crate::slot::Slot;

/// AWS's code for a call after which a group would have more rules than it may have.
const TOO_MANY_RULES: &str = "RulesPerSecurityGroupLimitExceeded";

/// AWS's code for a rule that the group has already.
const RULE_EXISTS: &str = "InvalidPermission.Duplicate";

impl Calls {
    /// Reads a security group.
    pub(super) async fn security_group(&self, reconcile: Reconcile, slot: &Slot) -> Result<Value, AwsError> {
        let vpc = slot.container().unwrap_or_default();
        let filters = vec![filter("group-name", slot.name()), filter("vpc-id", vpc)];
        let mut found = self
            .ec2
            .security_groups(reconcile, &Selection::Filters(filters))
            .await?;
        // The filter takes wildcards.
        found.retain(|group| group.name == slot.name() && group.vpc_id.as_deref() == Some(vpc));
        // It may be behind.
        if let Some(id) = self.ids.known(slot).filter(|_| found.is_empty()) {
            match self.ec2.security_groups(reconcile, &Selection::id(&id)).await {
                Ok(by_id) => found = by_id,
                Err(error) if is_no_such_id(&error) => {}
                Err(error) => return Err(error),
            }
            found.retain(|group| group.name == slot.name() && group.vpc_id.as_deref() == Some(vpc));
        }
        let group = found.first().ok_or_else(AwsError::missing)?;
        let mut body = shown::security_group(group);
        self.note_tags(slot, &mut body)?;
        Ok(body)
    }

    /// Creates a security group, or changes what differs.
    pub(super) async fn put_security_group(
        &self,
        reconcile: Reconcile,
        target: WriteTarget<'_, Aws>,
        body: &Value,
    ) -> Written {
        let Some(found) = target.found else {
            return self.create_security_group(reconcile, body).await;
        };
        let is_changed = self.change_rules(reconcile, found, body).await?;
        let mut changed = found.clone();
        changed["Tags"] = json!(self.add_tags(reconcile, (found, body), is_changed).await?);
        changed["Rules"] = body["Rules"].clone();
        Ok(put_to(changed))
    }

    /// Creates a security group with its rules. Without its rules it is created even so: the next put reports why.
    async fn create_security_group(&self, reconcile: Reconcile, body: &Value) -> Written {
        let new = NewSecurityGroup {
            name: text(body, "GroupName").to_owned(),
            description: text(body, "Description").to_owned(),
            vpc_id: text(body, "VpcId").to_owned(),
            tags: tags(body),
        };
        let id = self.ec2.create_security_group(reconcile, &new).await?;
        let mut created = json!({"Id": id, "GroupName": new.name, "VpcId": new.vpc_id, "Tags": new.tags, "Rules": []});
        if self.change_rules(reconcile, &created, body).await.is_err() {
            return Ok(accepted(Some(created), Execution::Running));
        }
        created["Rules"] = body["Rules"].clone();
        Ok(put_to(created))
    }

    /// Opens before it closes, unless the group has no room for all. Returns whether there was anything to change.
    async fn change_rules(
        &self,
        reconcile: Reconcile,
        found: &Value,
        body: &Value,
    ) -> Result<bool, WriteError<AwsError>> {
        let id = text(found, "Id");
        let change = RuleChange::between(Some(found), body);
        let (authorized, revoked): (Vec<Rule>, Vec<Rule>) = (
            change.authorized.iter().map(sent).collect(),
            change.revoked.iter().map(sent).collect(),
        );
        let mut is_open = authorized.is_empty();
        if !is_open {
            match self.authorize(reconcile, id, &authorized).await {
                Err(WriteError::Failed(error)) if error.code == TOO_MANY_RULES && !revoked.is_empty() => {}
                other => {
                    other?;
                    is_open = true;
                }
            }
        }
        if !revoked.is_empty() {
            self.ec2.revoke_ingress(reconcile, id, &revoked).await?;
        }
        if !is_open {
            self.authorize(reconcile, id, &authorized).await?;
        }
        Ok(!change.is_empty())
    }

    /// Adds rules. AWS refuses them all if one is there, which a read that is behind does not show.
    async fn authorize(&self, reconcile: Reconcile, id: &str, rules: &[Rule]) -> Result<(), WriteError<AwsError>> {
        let is_there = |error: &AwsError| error.code == RULE_EXISTS;
        match self.ec2.authorize_ingress(reconcile, id, rules).await {
            Err(WriteError::Failed(error)) if is_there(&error) => {}
            other => return other,
        }
        for rule in rules.iter().filter(|_| rules.len() > 1) {
            match self
                .ec2
                .authorize_ingress(reconcile, id, std::slice::from_ref(rule))
                .await
            {
                Err(WriteError::Failed(error)) if is_there(&error) => {}
                other => other?,
            }
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
