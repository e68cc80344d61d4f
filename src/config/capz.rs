//! The settings of role `capz`, checked against the others.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::settings::CapzSettings;
use super::{Environment, Problems};
use crate::api::{ClusterRef, Platform, Role};

/// The variable with which the workload-identity webhook names the token of the Pod.
const TOKEN_FILE: &str = "AZURE_FEDERATED_TOKEN_FILE";

/// The settings of role `capz`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capz {
    /// The AzureCluster of the management cluster.
    pub management: ClusterRef,
    /// The conditions for which new control planes wait, each once.
    pub gates: Vec<String>,
    /// Whether objects of the Azure Service Operator are deleted whose entries were removed.
    pub deletes_dropped: bool,
    /// The token of the process' Pod, with which workload identities are proven.
    pub federated_token_file: Option<PathBuf>,
}

pub(super) fn capz(
    settings: CapzSettings,
    (roles, platforms): (&BTreeSet<Role>, &BTreeSet<Platform>),
    environment: &Environment,
    problems: &mut Problems,
) -> Option<Capz> {
    if roles.len() > 1 {
        problems.add("--role capz does not go with another role: it serves other clusters, with other identities");
    }
    if platforms.iter().any(|platform| *platform != Platform::Azure) {
        problems.add("--role capz is for --platform azure alone");
    }
    let named = settings
        .management_cluster_namespace
        .zip(settings.management_cluster_name);
    let Some((namespace, name)) = named else {
        problems.add(
            "--management-cluster-name (or HYPERLINK_MANAGEMENT_CLUSTER_NAME) or --management-cluster-namespace (or \
             HYPERLINK_MANAGEMENT_CLUSTER_NAMESPACE) is missing; role capz needs both",
        );
        return None;
    };
    let mut gates: Vec<String> = Vec::new();
    for gate in settings.azure_cluster_gates.iter().map(|gate| gate.trim()) {
        if !gate.is_empty() && !gates.iter().any(|known| known == gate) {
            gates.push(gate.to_owned());
        }
    }
    Some(Capz {
        gates,
        deletes_dropped: settings.delete_dropped_endpoints,
        management: ClusterRef { namespace, name },
        federated_token_file: environment.variable(TOKEN_FILE).map(Into::into),
    })
}
