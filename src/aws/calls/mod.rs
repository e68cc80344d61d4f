//! The engine's calls, as AWS takes them. Each kind has a file here: what reads, changes and deletes it.

pub mod accounts;
mod connections;
mod endpoint_service;
mod given_ids;
mod load_balancer;
mod networks;
mod principals;
mod records;
mod security_group;
mod sent_changes;
mod sent_principals;
mod shown;
mod tags;
mod vpc_endpoint;
pub mod vpc_usage;

use std::collections::BTreeMap;
use std::sync::Arc;

use hyperlink_engine::call_budget::{CallBudgets, Exhausted};
use hyperlink_engine::client::{
    Accepted, CloudClient, Condition, Execution, OperationState, Reconcile, WriteError, WriteTarget,
};
use hyperlink_engine::cloud::Cloud;
use hyperlink_engine::failure::{CALL_BUDGET_EXHAUSTED, Class};
use hyperlink_engine::resource::Progress;
use serde_json::Value;
use tokio::time::Instant;

use crate::api::client::Client;
use crate::api::error::AwsError;
use crate::body::text;
use crate::client_token::ClientToken;
use crate::cloud::{AccountList, Aws, NoOperation};
use crate::ec2::Ec2;
use crate::elbv2::LoadBalancing;
use crate::kinds::Kind;
use crate::kinds::endpoint_service::slot_of;
use crate::route53::Route53;
use crate::slot::Slot;
use endpoint_service::DeniedChange;
use given_ids::GivenIds;
use load_balancer::JoinedReads;
use sent_changes::SentChanges;
use sent_principals::SentPrincipals;
use vpc_usage::VpcUsage;

/// The code of a call that no kind of this slot takes.
const UNSUPPORTED: &str = "UnsupportedCall";

/// The code of a call about an endpoint service that no read has shown yet.
const SERVICE_NOT_READ: &str = "EndpointServiceNotRead";

/// The answer to a write.
type Written = Result<Accepted<Aws>, WriteError<AwsError>>;

/// The calls to one account and region, as one identity.
pub struct Calls {
    ec2: Ec2,
    load_balancing: LoadBalancing,
    route53: Route53,
    ids: GivenIds,
    denied_change: DeniedChange,
    sent_changes: SentChanges,
    sent_principals: SentPrincipals,
    joined_reads: JoinedReads,
    vpc_usage: VpcUsage,
    call_budgets: Arc<CallBudgets>,
}

impl Calls {
    /// Calls all services by `client`.
    pub fn new(client: &Client) -> Self {
        Self {
            ec2: Ec2(client.clone()),
            load_balancing: LoadBalancing(client.clone()),
            route53: Route53(client.clone()),
            ids: GivenIds::default(),
            denied_change: DeniedChange::default(),
            sent_changes: SentChanges::default(),
            sent_principals: SentPrincipals::default(),
            joined_reads: JoinedReads::default(),
            vpc_usage: VpcUsage::default(),
            call_budgets: Arc::default(),
        }
    }

    /// Returns these calls with the call budgets that others use, too.
    #[must_use]
    pub(crate) fn with_call_budgets(self, call_budgets: Arc<CallBudgets>) -> Self {
        Self { call_budgets, ..self }
    }

    /// Notes the id of the resource in a slot, as it was recorded. A read decides whether it is right.
    pub fn note_recorded(&self, slot: &Slot, id: &str) {
        self.ids.note_recorded(slot, id, Instant::now());
    }

    /// The subnets that AWS has refused lately for the endpoint in a slot, each with AWS's code, and an empty id if it
    /// has refused several together.
    pub fn refused_subnets(&self, slot: &Slot) -> BTreeMap<String, String> {
        self.sent_changes.refused(slot, Instant::now())
    }

    /// The endpoints of the VPC that has most of those that count for AWS's quota; none while none were counted lately.
    pub fn most_endpoints_of_a_vpc(&self) -> Option<usize> {
        self.vpc_usage.most(Instant::now())
    }

    async fn read(&self, reconcile: Reconcile, slot: &Slot) -> Result<Value, AwsError> {
        match slot.kind() {
            Kind::LoadBalancer => self.load_balancer(reconcile, slot).await,
            Kind::EndpointService => self.endpoint_service(reconcile, slot).await,
            Kind::AllowedPrincipals => self.allowed_principals(reconcile, slot).await,
            Kind::EndpointConnections => self.endpoint_connections(reconcile, slot).await,
            Kind::SecurityGroup => self.security_group(reconcile, slot).await,
            Kind::VpcEndpoint => self.vpc_endpoint(reconcile, slot).await,
            Kind::FurtherEndpoint => self.further_endpoint(reconcile, slot).await,
            Kind::Records => self.records(reconcile, slot).await,
        }
    }
}

impl CloudClient<Aws> for Calls {
    async fn get(&self, reconcile: Reconcile, _: Kind, slot: &Slot) -> Result<Value, AwsError> {
        self.within_call_budget(reconcile, slot)?;
        let read = self.read(reconcile, slot).await;
        match &read {
            // The slot has the id as its name.
            Ok(_) if slot.kind() == Kind::FurtherEndpoint => {}
            Ok(body) => self.ids.note_shown(slot, Aws::instance(body)),
            Err(error) if error.class == Class::Gone => self.ids.note_missed(slot, Instant::now()),
            Err(_) => {}
        }
        read
    }

    async fn list(&self, reconcile: Reconcile, kind: Kind, list: &AccountList) -> Result<Vec<Value>, AwsError> {
        match kind {
            Kind::EndpointService => {
                let rows = self.endpoint_services(reconcile, &list.scope.region).await?;
                let ids = rows
                    .iter()
                    .filter_map(|row| Some((slot_of(row)?, Aws::instance(row).to_owned())));
                self.ids.note_listed(ids.collect());
                Ok(rows)
            }
            _ => Err(unsupported()),
        }
    }

    /// Preconditions are AWS's own: it creates nothing over what is there, and changes what has this id.
    async fn put(&self, reconcile: Reconcile, target: WriteTarget<'_, Aws>, body: &Value, _: &Condition) -> Written {
        self.within_call_budget(reconcile, target.key)?;
        let written = match target.kind {
            Kind::EndpointService => self.put_endpoint_service(reconcile, target, body).await,
            Kind::AllowedPrincipals => self.put_principals(reconcile, target, body).await,
            Kind::SecurityGroup => self.put_security_group(reconcile, target, body).await,
            Kind::VpcEndpoint => self.put_vpc_endpoint(reconcile, target, body).await,
            Kind::Records => self.put_records(reconcile, target, body).await,
            Kind::LoadBalancer | Kind::EndpointConnections | Kind::FurtherEndpoint => Err(unsupported().into()),
        };
        if let Ok(Accepted { shown: Some(body), .. }) = &written {
            self.ids.note_shown(target.key, Aws::instance(body));
        }
        written
    }

    async fn delete(&self, reconcile: Reconcile, target: WriteTarget<'_, Aws>, _: &Condition) -> Written {
        self.within_call_budget(reconcile, target.key)?;
        let execution = match target.kind {
            Kind::EndpointService => {
                let id = self.id_of(target)?;
                self.ec2.delete_endpoint_service(reconcile, &id).await?
            }
            Kind::EndpointConnections => self.reject_connections(reconcile, target).await?,
            Kind::SecurityGroup => {
                let id = self.id_of(target)?;
                let execution = self.ec2.delete_security_group(reconcile, &id).await?;
                if execution == Execution::Complete {
                    self.ids.forget(target.key);
                }
                execution
            }
            Kind::VpcEndpoint | Kind::FurtherEndpoint => {
                let id = self.id_of(target)?;
                self.vpc_usage.forget(target.key.container().unwrap_or_default());
                self.ec2.delete_endpoint(reconcile, &id).await?
            }
            Kind::Records => self.delete_records(reconcile, target).await?,
            Kind::LoadBalancer | Kind::AllowedPrincipals => return Err(unsupported().into()),
        };
        Ok(accepted(None, execution))
    }

    async fn poll(
        &self,
        _: Reconcile,
        _: Kind,
        _: &Slot,
        operation: &NoOperation,
    ) -> Result<OperationState<AwsError>, AwsError> {
        match *operation {}
    }
}

impl Calls {
    /// Takes a call from the caller's budget for this resource. Who names others' resources uses up none of theirs.
    fn within_call_budget(&self, reconcile: Reconcile, slot: &Slot) -> Result<(), AwsError> {
        let kind = slot.kind();
        // One that no read has shown: all that a caller may name share a budget.
        let may_be_named = matches!(kind, Kind::LoadBalancer | Kind::EndpointService | Kind::VpcEndpoint);
        let is_searched = may_be_named && self.ids.shown(slot).is_none();
        let name = if is_searched { String::new() } else { slot.to_string() };
        let address = format!("{:x} {} {name}", reconcile.caller, kind.label());
        self.take_call(kind.rules().shared, &address).map_err(|exhausted| {
            self.ec2.0.note_call_budget_exhausted(kind);
            if exhausted.is_new {
                tracing::error!(kind = kind.label(), id = %slot, "call budget exhausted: not sent");
            }
            not_sent(exhausted)
        })
    }

    /// Takes a call from the call budget of what has this address.
    fn take_call(&self, shared: bool, address: &str) -> Result<(), Exhausted> {
        self.call_budgets.take(shared, address, Instant::now())
    }

    /// The id of what a write goes to: of what was read, so that nothing that came in its place is written.
    fn id_of(&self, target: WriteTarget<'_, Aws>) -> Result<String, AwsError> {
        let read = target.found.map(Aws::instance).filter(|id| !id.is_empty());
        read.map(str::to_owned).ok_or_else(AwsError::missing)
    }

    /// The id of the endpoint service that this slot is about, as a read of the service or a list has shown it.
    fn service_id(&self, slot: &Slot) -> Result<String, AwsError> {
        let service = slot.service().ok_or_else(unsupported)?;
        let id = self.ids.shown_anywhere(service);
        id.ok_or_else(|| AwsError::own(Class::Busy, SERVICE_NOT_READ))
    }
}

/// The error of a call that the call budget does not allow.
fn not_sent(exhausted: Exhausted) -> AwsError {
    AwsError {
        retry_after: Some(exhausted.wait),
        ..AwsError::own(Class::Throttled, CALL_BUDGET_EXHAUSTED)
    }
}

fn unsupported() -> AwsError {
    AwsError::own(Class::Invalid, UNSUPPORTED)
}

/// The token in the body of a resource to create.
fn client_token(body: &Value) -> Result<ClientToken, AwsError> {
    let token = ClientToken::new(text(body, "ClientToken"));
    token.ok_or_else(|| AwsError::own(Class::Invalid, "InvalidClientToken"))
}

/// The answer to a write, after which the resource looks like this.
fn put_to(body: Value) -> Accepted<Aws> {
    let execution = match Aws::progress(&body) {
        Progress::Ready => Execution::Complete,
        _ => Execution::Running,
    };
    accepted(Some(body), execution)
}

fn accepted(shown: Option<Value>, execution: Execution) -> Accepted<Aws> {
    Accepted {
        shown,
        execution,
        retry_after: None,
        operation: None,
    }
}

#[cfg(test)]
mod tests;
