//! Platform `aws`: HyperShift's private clusters on AWS.

mod cpo;
mod ho;
mod management_cluster;

use std::sync::Arc;

use anyhow::bail;
use kube::core::ApiResource;

use super::Foundation;
use crate::api::{AWSEndpointService, Role};
use crate::aws::api::client::Connection;
use crate::aws::calls::accounts::Accounts;
use crate::aws::credentials::SessionCache;
use crate::aws::slot::Scope as Account;
use crate::config::{Aws, Config};
use crate::controllers::aws::access::{AwsContext, Context};
use crate::engine::call_budget::CallBudgets;
use crate::engine::observation_cache::ObservationCache;
use crate::http::ReadinessItem;
use crate::preview::{Object, RolePlan};
use crate::runtime::watch::Scope;

/// How AWS is reached, and as whom.
#[derive(Clone)]
pub struct AwsConnection {
    /// The settings.
    pub settings: Arc<Aws>,
    /// What all identities share.
    pub connection: Connection,
    /// The sessions of the process' own identity.
    pub sessions: SessionCache,
}

const NOT_HERE: &str = "role capz is for platform azure alone";

/// What a role has learned before it leads.
#[derive(Debug)]
pub struct Prepared {
    /// The account of the process' own identity.
    account: String,
    /// The name of the management cluster's infrastructure, where it has one, for role `ho`.
    infrastructure: Option<String>,
}

pub(super) fn resource() -> ApiResource {
    ApiResource::erase::<AWSEndpointService>(&())
}

pub(super) fn rights(role: Role, config: &Config) -> Vec<&'static str> {
    match role {
        Role::Ho => vec![ho::RIGHTS],
        Role::Cpo => cpo::rights(config),
        Role::Capz => Vec::new(),
    }
}

pub(super) async fn prepare(role: Role, aws: &AwsConnection, kube: &kube::Client, item: &ReadinessItem) -> Prepared {
    management_cluster::wait_for(role, aws, kube, item).await
}

pub(super) async fn run(
    foundation: &Foundation<'_>,
    aws: &AwsConnection,
    prepared: Prepared,
    scope: Scope,
) -> anyhow::Result<()> {
    match foundation.role {
        Role::Ho => ho::run(foundation, aws, prepared, scope).await,
        Role::Cpo => cpo::run(foundation, aws, prepared, scope).await,
        Role::Capz => bail!(NOT_HERE),
    }
}

pub(super) async fn dry_run(
    foundation: &Foundation<'_>,
    aws: &AwsConnection,
    object: &Object,
) -> anyhow::Result<RolePlan> {
    let prepared = management_cluster::read(foundation.role, aws, &foundation.kube).await?;
    match foundation.role {
        Role::Ho => ho::dry_run(foundation, aws, prepared, object).await,
        Role::Cpo => cpo::dry_run(foundation, aws, prepared, object).await,
        Role::Capz => bail!(NOT_HERE),
    }
}

/// What the reconciles of a role work with; `account` is that of the process' own identity.
fn context(foundation: &Foundation<'_>, aws: &AwsConnection, account: &str) -> Context {
    let intervals = &foundation.config.intervals;
    let gate = Arc::clone(&foundation.gate);
    let accounts = Accounts::new(aws.connection.clone(), aws.sessions.clone(), account, gate)
        .with_call_budgets(CallBudgets::for_resync(intervals.resync));
    let observations = ObservationCache::new(intervals.resync, intervals.record_resync);
    foundation.context(AwsContext::new(accounts, observations))
}

/// The account and region of the management cluster.
fn management_account(aws: &AwsConnection, prepared: &Prepared) -> Account {
    Account::own(&prepared.account, aws.settings.endpoints.region().name())
}
