//! What the control-plane-operator deletes on AWS: endpoint, then security group, then records.

use std::time::Duration;

use anyhow::{Result, bail};
use kube::api::DynamicObject;
use reqwest::Method;

use super::cpo::{Operator, record};
use super::{Parameters, accept};
use crate::aws_sim::{all_inner, inner};
use crate::go_controllers::Next;
use crate::go_controllers::object::text;

/// How long a deletion waits for AWS.
const BUSY: Next = Next::After(Duration::from_secs(5));

impl Operator {
    /// When to go on, or nothing if all is gone.
    pub(super) async fn delete(&self, cr: &DynamicObject) -> Result<Option<Next>> {
        if self.endpoint_remains(cr).await? || self.group_remains(cr).await? {
            return Ok(Some(BUSY));
        }
        self.delete_records(cr).await?;
        Ok(None)
    }

    async fn endpoint_remains(&self, cr: &DynamicObject) -> Result<bool> {
        let id = text(cr, "/status/endpointID");
        if id.is_empty() {
            return Ok(false);
        }
        let parameters = Parameters::default().with("VpcEndpointId.1", id);
        self.clients.accepted("DeleteVpcEndpoints", &parameters).await?;
        let found = self.clients.ec2("DescribeVpcEndpoints", &parameters).await?;
        if found.code.as_deref() == Some("InvalidVpcEndpointId.NotFound") {
            return Ok(false);
        }
        Ok(accept(found)?.text("vpcEndpointId").is_some())
    }

    async fn group_remains(&self, cr: &DynamicObject) -> Result<bool> {
        let id = text(cr, "/status/securityGroupID");
        if id.is_empty() {
            return Ok(false);
        }
        let parameters = Parameters::default().with("GroupId", id);
        let deleted = self.clients.ec2("DeleteSecurityGroup", &parameters).await?;
        match deleted.code.as_deref() {
            None | Some("InvalidGroup.NotFound") => Ok(false),
            Some("DependencyViolation") => Ok(true),
            Some(code) => bail!("{code}"),
        }
    }

    /// Whatever they hold.
    async fn delete_records(&self, cr: &DynamicObject) -> Result<()> {
        let zone = text(cr, "/status/dnsZoneID");
        let names = cr.data["status"]["dnsNames"].as_array().cloned().unwrap_or_default();
        if zone.is_empty() || names.is_empty() {
            return Ok(());
        }
        let path = format!("/hostedzone/{zone}/rrset");
        let found = self.clients.records.route53(Method::GET, &path, "").await?;
        if found.code.as_deref() == Some("NoSuchHostedZone") {
            return Ok(());
        }
        let found = accept(found)?;
        for one in all_inner(&found.body, "ResourceRecordSet") {
            let shown = inner(one, "Name").unwrap_or_default().replace("\\052", "*");
            let name = shown.trim_end_matches('.');
            if names.iter().any(|one| one == name) && inner(one, "Type") == Some("CNAME") {
                let value = inner(one, "Value").unwrap_or_default();
                accept(self.change(zone, &record("DELETE", name, value)).await?)?;
            }
        }
        Ok(())
    }
}
