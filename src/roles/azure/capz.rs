//! Role `capz`: private endpoints for clusters made by Cluster API on Azure.

use std::sync::Arc;

use anyhow::Context as _;

use super::{AzureConnection, Prepared};
use crate::api::ClusterRef;
use crate::config::Config;
use crate::controllers::capz::reference_lease::{LeaseObserver, NAME};
use crate::controllers::capz::{self, IdentitySettings, Settings, cluster_api};
use crate::controllers::context::recorder;
use crate::http::ReadinessItem;
use crate::preview::{Object, RolePlan};
use crate::roles::Foundation;
use crate::runtime::Runtime;
use crate::runtime::rate::Rates;
use crate::runtime::retry::Retries;
use crate::runtime::watch::Scope;

const RIGHTS: &str = include_str!("../../../charts/hyperlink/files/role-capz.yaml");
const RIGHTS_TO_PAUSE: &str = include_str!("../../../charts/hyperlink/files/role-capz-gates.yaml");

const RIGHTS_TO_DELETE: &str = include_str!("../../../charts/hyperlink/files/role-capz-delete.yaml");

pub(super) fn rights(config: &Config) -> Vec<&'static str> {
    let has_gates = config.capz.as_ref().is_some_and(|own| !own.gates.is_empty());
    [RIGHTS]
        .into_iter()
        .chain(has_gates.then_some(RIGHTS_TO_PAUSE))
        .collect()
}

/// The file with the rights that are needed in one namespace alone, and that namespace.
pub(in crate::roles) fn local_rights(config: &Config) -> Option<(&'static str, &str)> {
    let own = config.capz.as_ref().filter(|own| own.deletes_dropped)?;
    Some((RIGHTS_TO_DELETE, &own.management.namespace))
}

/// Chooses the version of Cluster API, and waits until no other operator leads.
pub(super) async fn prepare(kube: &kube::Client, item: &ReadinessItem) {
    while let Err(error) = cluster_api::choose(kube).await {
        item.waiting(&format!("the versions of Cluster API cannot be read: {error}"));
        tokio::time::sleep(LeaseObserver::EVERY).await;
    }
    let mut observer = LeaseObserver::default();
    loop {
        match observer.holder(kube).await {
            Ok(None) => return item.ready(),
            Ok(Some(holder)) => item.waiting(&leads(&holder)),
            Err(error) => item.waiting(&format!("lease {NAME} cannot be read: {error}")),
        }
        tokio::time::sleep(LeaseObserver::EVERY).await;
    }
}

fn leads(holder: &str) -> String {
    format!("{holder} leads by lease {NAME}")
}

pub(super) async fn run(
    foundation: &Foundation<'_>,
    azure: &AzureConnection,
    prepared: Prepared,
    scope: Scope,
) -> anyhow::Result<()> {
    let (settings, identities) = settings(foundation, azure)?;
    let runtimes = [0; 3].map(|_| runtime(foundation));
    let show = |holder: Option<&str>| {
        let item = prepared.other_operator.as_ref();
        match (item, holder) {
            (Some(item), Some(holder)) => item.waiting(&leads(holder)),
            (Some(item), None) => item.ready(),
            (None, _) => {}
        }
    };
    Ok(capz::run(runtimes, settings, identities, scope, show).await?)
}

pub(super) async fn dry_run(
    foundation: &Foundation<'_>,
    azure: &AzureConnection,
    object: &Object,
) -> anyhow::Result<RolePlan> {
    let (settings, identities) = settings(foundation, azure)?;
    let object = ClusterRef {
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    };
    let only = foundation.config.scope.namespace.clone();
    cluster_api::choose(&foundation.kube).await?;
    let preview = capz::dry_run(runtime(foundation), settings, identities, only, &object).await?;
    let preview = preview.with_context(|| format!("there is no AzureCluster {object}"))?;
    Ok(RolePlan::of_cluster(&object, &preview)?)
}

fn settings(foundation: &Foundation<'_>, azure: &AzureConnection) -> anyhow::Result<(Settings, IdentitySettings)> {
    let own = foundation.config.capz.as_ref().context("role capz has no settings")?;
    let settings = Settings {
        management: own.management.clone(),
        cloud: azure.settings.cloud_name,
        gates: own.gates.clone(),
        deletes_dropped: own.deletes_dropped,
    };
    let identities = IdentitySettings {
        cloud: azure.settings.cloud.clone(),
        http: azure.http.clone(),
        gate: Arc::clone(&foundation.gate),
        federated_token_file: own.federated_token_file.clone(),
    };
    Ok((settings, identities))
}

fn runtime(foundation: &Foundation<'_>) -> Runtime {
    let run = foundation.config.run.as_ref();
    let instance = run.map_or("hyperlink", |run| run.lease.candidate.as_str());
    let (kube, metrics) = (foundation.kube.clone(), Arc::clone(&foundation.metrics));
    Runtime {
        events: recorder(kube.clone(), foundation.role, &[], instance, Arc::clone(&metrics)),
        kube,
        field_manager: foundation.role.field_manager(),
        retries: Retries::default(),
        rates: Rates::default(),
        metrics,
        resync: foundation.resync(),
    }
}
