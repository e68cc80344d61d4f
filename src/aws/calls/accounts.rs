//! The calls to all accounts that a process calls, each as an identity of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hyperlink_engine::client::{Accepted, CloudClient, Condition, OperationState, Reconcile, WriteError, WriteTarget};
use hyperlink_engine::failure::Class;
use hyperlink_engine::gate::Gate;
use serde_json::Value;

use super::Calls;
use crate::account_roles::AccountRoles;
use crate::api::client::{Client, Connection};
use crate::api::error::AwsError;
use crate::cloud::{AccountList, Aws, NoOperation};
use crate::credentials::SessionCache;
use crate::kinds::Kind;
use crate::role_arn::RoleArn;
use crate::route53::hosted_zone::HostedZone;
use crate::slot::{Scope, Slot};

/// The name of the process' sessions in the audit log of an account.
pub const SESSION_NAME: &str = "hyperlink";

/// The calls by account.
pub struct Accounts {
    connection: Connection,
    sessions: SessionCache,
    own: Arc<str>,
    gate: Arc<dyn Gate>,
    known: Mutex<HashMap<String, (AccountRoles, Arc<Calls>)>>,
}

impl Accounts {
    /// Calls the process' own account as its own identity, whose `sessions` these are. Writes are sent only while `gate`
    /// is open.
    pub fn new(connection: Connection, sessions: SessionCache, own: &str, gate: Arc<dyn Gate>) -> Self {
        Self {
            connection,
            sessions,
            own: own.into(),
            gate,
            known: Mutex::default(),
        }
    }

    /// The process' own account.
    pub fn own(&self) -> &str {
        &self.own
    }

    /// Sets which roles are assumed in an account from now on.
    pub fn assume(&self, account: &str, roles: AccountRoles) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(account).is_none_or(|(current, _)| *current != roles) {
            let calls = self.calls_as(account, &roles);
            known.insert(account.to_owned(), (roles, calls));
        }
    }

    /// The calls to an account. Another one than the process' own is not called without a role.
    pub fn calls(&self, scope: &Scope) -> Result<Arc<Calls>, AwsError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, calls)) = known.get(&scope.account) {
            return Ok(Arc::clone(calls));
        }
        if scope.account != *self.own {
            return Err(AwsError::own(Class::Denied, "NoRoleForAccount"));
        }
        let calls = self.calls_as(&scope.account, &AccountRoles::default());
        known.insert(scope.account.clone(), (AccountRoles::default(), Arc::clone(&calls)));
        Ok(calls)
    }

    fn calls_as(&self, account: &str, roles: &AccountRoles) -> Arc<Calls> {
        let client = |role: &Option<RoleArn>| {
            let base = Arc::new(self.sessions.clone());
            let sessions = match role {
                Some(role) => Arc::new(SessionCache::of_role(
                    self.connection.clone(),
                    base,
                    role.clone(),
                    SESSION_NAME,
                )),
                None => base,
            };
            Client::new(self.connection.clone(), sessions, account, Arc::clone(&self.gate))
        };
        Arc::new(Calls::new(&client(&roles.endpoints), client(&roles.records)))
    }

    /// Notes the id of the resource in a slot, as it was recorded. A read decides whether it is right.
    pub fn note_recorded(&self, slot: &Slot, id: &str) {
        if let Ok(calls) = self.calls(slot.scope()) {
            calls.note_recorded(slot, id);
        }
    }

    /// Lists the hosted zones of an account.
    ///
    /// # Errors
    /// AWS's, or no role is known for the account.
    pub async fn hosted_zones(&self, reconcile: Reconcile, scope: &Scope) -> Result<Vec<HostedZone>, AwsError> {
        self.calls(scope)?.hosted_zones(reconcile).await
    }

    /// The ids of the zones of these subnets, by subnet. Those that AWS does not know have none.
    ///
    /// # Errors
    /// AWS's, or no role is known for the account.
    pub async fn zones_of_subnets(
        &self,
        reconcile: Reconcile,
        scope: &Scope,
        subnets: &[String],
        vpc: &str,
    ) -> Result<HashMap<String, String>, AwsError> {
        self.calls(scope)?.zones_of_subnets(reconcile, subnets, vpc).await
    }
}

impl CloudClient<Aws> for Accounts {
    async fn get(&self, reconcile: Reconcile, kind: Kind, slot: &Slot) -> Result<Value, AwsError> {
        self.calls(slot.scope())?.get(reconcile, kind, slot).await
    }

    async fn list(&self, reconcile: Reconcile, kind: Kind, list: &AccountList) -> Result<Vec<Value>, AwsError> {
        self.calls(&list.scope)?.list(reconcile, kind, list).await
    }

    async fn put(
        &self,
        reconcile: Reconcile,
        target: WriteTarget<'_, Aws>,
        body: &Value,
        condition: &Condition,
    ) -> Result<Accepted<Aws>, WriteError<AwsError>> {
        let calls = self.calls(target.key.scope())?;
        calls.put(reconcile, target, body, condition).await
    }

    async fn delete(
        &self,
        reconcile: Reconcile,
        target: WriteTarget<'_, Aws>,
        condition: &Condition,
    ) -> Result<Accepted<Aws>, WriteError<AwsError>> {
        let calls = self.calls(target.key.scope())?;
        calls.delete(reconcile, target, condition).await
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
