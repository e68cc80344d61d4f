//! The calls to all accounts that a process calls, as the identity that the decision has named.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use hyperlink_engine::call_budget::CallBudgets;
use hyperlink_engine::client::{Accepted, CloudClient, Condition, OperationState, Reconcile, WriteError, WriteTarget};
use hyperlink_engine::failure::Class;
use hyperlink_engine::gate::Gate;
use serde_json::Value;
use tokio::time::Instant;

use super::Calls;
use crate::api::client::{Client, Connection};
use crate::api::error::{AwsError, NO_ROLE, OTHER_REGION};
use crate::body::Tags;
use crate::cloud::{AccountList, Aws, NoOperation};
use crate::credentials::SessionCache;
use crate::kinds::Kind;
use crate::role_arn::RoleArn;
use crate::route53::hosted_zone::HostedZone;
use crate::slot::{Scope, Slot};

/// The name of the process' sessions in the audit log of an account.
pub const SESSION_NAME: &str = "hyperlink";

/// The most identities that are remembered, whose sessions and ids are had again: whoever may name roles may name them
/// without end.
const MOST_CALLERS: usize = 2_000;

/// The calls by account and identity.
pub struct Accounts {
    connection: Connection,
    sessions: SessionCache,
    own: Arc<str>,
    gate: Arc<dyn Gate>,
    call_budgets: Arc<CallBudgets>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    calls: HashMap<Scope, Arc<Calls>>,
    /// The sessions of roles, which all who assume one share.
    roles: HashMap<RoleArn, SessionCache>,
}

impl Accounts {
    /// Calls as the process' own identity, whose `sessions` these are and whose account is `own`, and as the roles that
    /// this identity assumes. Writes are sent only while `gate` is open.
    pub fn new(connection: Connection, sessions: SessionCache, own: &str, gate: Arc<dyn Gate>) -> Self {
        Self {
            connection,
            sessions,
            own: own.into(),
            gate,
            call_budgets: Arc::default(),
            known: Mutex::default(),
        }
    }

    /// Returns these accounts with other call budgets.
    #[must_use]
    pub fn with_call_budgets(self, budgets: CallBudgets) -> Self {
        Self {
            call_budgets: Arc::new(budgets),
            ..self
        }
    }

    /// The process' own account.
    pub fn own(&self) -> &str {
        &self.own
    }

    /// The calls to an account. Another one than the process' own is not called without a role, none by a role of
    /// another one, and none in another region than that of the process.
    pub fn calls(&self, scope: &Scope) -> Result<Arc<Calls>, AwsError> {
        let caller = scope.role.as_ref().map_or(&*self.own, RoleArn::account);
        if caller != scope.account {
            return Err(AwsError::own(Class::Denied, NO_ROLE));
        }
        if scope.region != self.connection.endpoints().region().name() {
            return Err(AwsError::own(Class::Denied, OTHER_REGION));
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(calls) = known.calls.get(scope) {
            return Ok(Arc::clone(calls));
        }
        if known.calls.len() >= MOST_CALLERS {
            known.calls.retain(|scope, _| scope.role.is_none());
            known.roles.clear();
        }
        let sessions = match &scope.role {
            Some(role) => known
                .roles
                .entry(role.clone())
                .or_insert_with(|| self.of_role(role))
                .clone(),
            None => self.sessions.clone(),
        };
        let account = scope.account.as_str();
        let client = Client::new(
            self.connection.clone(),
            Arc::new(sessions),
            account,
            Arc::clone(&self.gate),
        );
        let calls = Calls::new(&client).with_call_budgets(Arc::clone(&self.call_budgets));
        let calls = Arc::new(calls);
        known.calls.insert(scope.clone(), Arc::clone(&calls));
        Ok(calls)
    }

    fn of_role(&self, role: &RoleArn) -> SessionCache {
        let base = Arc::new(self.sessions.clone());
        SessionCache::of_role(self.connection.clone(), base, role.clone(), SESSION_NAME)
    }

    /// The subnets that AWS has refused lately for the endpoint in a slot, each with AWS's code, and an empty id if it
    /// has refused several together.
    pub fn refused_subnets(&self, slot: &Slot) -> BTreeMap<String, String> {
        let calls = self.calls(slot.scope());
        calls.map(|calls| calls.refused_subnets(slot)).unwrap_or_default()
    }

    /// Notes the id of the resource in a slot, as it was recorded. A read decides whether it is right.
    pub fn note_recorded(&self, slot: &Slot, id: &str) {
        if let Ok(calls) = self.calls(slot.scope()) {
            calls.note_recorded(slot, id);
        }
    }

    /// The endpoints of the VPC that has most of those that count for AWS's quota; none while none were counted lately.
    pub fn most_endpoints_of_a_vpc(&self) -> Option<usize> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = known.calls.values().filter_map(|calls| calls.most_endpoints_of_a_vpc());
        counts.max()
    }

    /// The requests a second to Route 53 in the account that gets most, over the last minute.
    pub fn route53_requests_per_second(&self) -> f64 {
        self.connection.route53_rate().most(Instant::now())
    }

    /// Lists the hosted zones of an account.
    ///
    /// # Errors
    /// AWS's, or no role is known for the account.
    pub async fn hosted_zones(&self, reconcile: Reconcile, scope: &Scope) -> Result<Vec<HostedZone>, AwsError> {
        self.calls(scope)?.hosted_zones(reconcile).await
    }

    /// The endpoint services of an account with this tag.
    ///
    /// # Errors
    /// AWS's, no role is known for the account, or the caller has asked too often.
    pub async fn tagged_services(
        &self,
        reconcile: Reconcile,
        scope: &Scope,
        tag: (&str, &str),
    ) -> Result<Vec<Value>, AwsError> {
        self.calls(scope)?.tagged_services(reconcile, &scope.region, tag).await
    }

    /// The endpoints of a VPC with these tags.
    ///
    /// # Errors
    /// AWS's, no role is known for the account, or the caller has asked too often about this VPC.
    pub async fn tagged_endpoints(
        &self,
        reconcile: Reconcile,
        scope: &Scope,
        vpc: &str,
        tags: &Tags,
    ) -> Result<Vec<Value>, AwsError> {
        self.calls(scope)?.tagged_endpoints(reconcile, vpc, tags).await
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::api::sample::{self, FakeAws, TestGate, connection};

    const OWN: &str = "111122223333";

    fn accounts() -> Accounts {
        let aws = FakeAws::new([]);
        let connection = connection(&aws, &Arc::new(sample::Calls::default()));
        let sessions = SessionCache::of_profile(connection.clone(), "/nowhere".into(), SESSION_NAME);
        Accounts::new(connection, sessions, OWN, Arc::new(TestGate(AtomicBool::new(true))))
    }

    fn role(name: &str) -> RoleArn {
        RoleArn::parse(&format!("arn:aws:iam::444455556666:role/{name}")).unwrap()
    }

    fn denied(accounts: &Accounts, scope: &Scope) -> bool {
        let refused = accounts.calls(scope).err();
        refused.is_some_and(|error| error.class == Class::Denied && error.code == "NoRoleForAccount")
    }

    #[test]
    fn account_is_called_by_its_own_identities_alone() {
        let accounts = accounts();
        assert!(accounts.calls(&Scope::own(OWN, "us-east-1")).is_ok());
        assert!(accounts.calls(&Scope::of_role(role("a"), "us-east-1")).is_ok());
        assert!(denied(&accounts, &Scope::own("444455556666", "us-east-1")));
        let of_another = Scope {
            role: Some(role("a")),
            ..Scope::own(OWN, "us-east-1")
        };
        assert!(denied(&accounts, &of_another));
    }

    #[test]
    fn roles_named_without_end_are_not_all_remembered() {
        let accounts = accounts();
        let own = accounts.calls(&Scope::own(OWN, "us-east-1")).unwrap();
        for number in 0..=2 * MOST_CALLERS {
            let scope = Scope::of_role(role(&number.to_string()), "us-east-1");
            assert!(accounts.calls(&scope).is_ok());
        }
        assert!(accounts.known.lock().unwrap().calls.len() <= MOST_CALLERS);
        assert!(Arc::ptr_eq(
            &accounts.calls(&Scope::own(OWN, "us-east-1")).unwrap(),
            &own
        ));
    }

    #[test]
    fn recorded_region_of_another_process_is_not_called() {
        let refused = accounts().calls(&Scope::own(OWN, "eu-west-1")).err();
        assert!(refused.is_some_and(|error| error.code == "OtherRegion"));
    }

    #[test]
    fn calls_are_shared_by_those_who_assume_one_role() {
        let accounts = accounts();
        let of = |name: &str| accounts.calls(&Scope::of_role(role(name), "us-east-1")).unwrap();
        assert!(Arc::ptr_eq(&of("a"), &of("a")));
        assert!(!Arc::ptr_eq(&of("a"), &of("b")), "in one account");
    }
}
