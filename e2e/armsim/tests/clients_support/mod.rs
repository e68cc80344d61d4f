//! Simulators for foreign clients, one for each of their tests that run at once, and what these must have called.
#![allow(
    dead_code,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "shared by test programs"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use armsim::{Options, Server};

use crate::http_support::spec_support;

/// Tests that run at once: they wait most of the time.
pub const WORKERS: usize = 12;

/// The operation groups of the specs that the simulator stands for.
pub const GROUPS: [&str; 29] = [
    "DefaultSecurityRules",
    "InboundNatRules",
    "LoadBalancerBackendAddressPools",
    "LoadBalancerFrontendIPConfigurations",
    "LoadBalancerLoadBalancingRules",
    "LoadBalancerNetworkInterfaces",
    "LoadBalancerOutboundRules",
    "LoadBalancerProbes",
    "LoadBalancers",
    "NetworkInterfaceIPConfigurations",
    "NetworkInterfaceLoadBalancers",
    "NetworkInterfaces",
    "NetworkSecurityGroups",
    "PrivateDnsZoneGroups",
    "PrivateEndpoints",
    "PrivateLinkServices",
    "PrivateZones",
    "ProviderResourceTypes",
    "Providers",
    "PublicIPAddresses",
    "RecordSets",
    "ResourceGroups",
    "Resources",
    "RouteTables",
    "Routes",
    "SecurityRules",
    "Subnets",
    "VirtualNetworkLinks",
    "VirtualNetworks",
];
/// What they can do besides: diagnosis, moves, templates and machines, which no private path needs.
pub const BESIDES: [&str; 15] = [
    "LoadBalancerLoadBalancingRules_Health",
    "LoadBalancers_ListInboundNatRulePortMappings",
    "LoadBalancers_MigrateToIpBased",
    "LoadBalancers_SwapPublicIpAddresses",
    "NetworkInterfaces_GetEffectiveRouteTable",
    "NetworkInterfaces_ListEffectiveNetworkSecurityGroups",
    "Providers_ProviderPermissions",
    "Providers_RegisterAtManagementGroupScope",
    "PublicIPAddresses_DdosProtectionStatus",
    "ResourceGroups_ExportTemplate",
    "Resources_MoveResources",
    "Resources_ValidateMoveResources",
    "Subnets_PrepareNetworkPolicies",
    "Subnets_UnprepareNetworkPolicies",
    "VirtualNetworks_ListDdosProtectionStatus",
];

pub fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../clients")
        .canonicalize()
        .unwrap()
}

pub fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|part| String::from_utf8_lossy(part))
        .join("")
}

pub async fn start(dir: &Path) -> Server {
    let options = Options {
        dir: Some(dir.to_owned()),
        specs: spec_support::reference(),
        ..Options::default()
    };
    Server::start(options).await.unwrap()
}

/// Starts the simulators. Returns them, and their addresses as the clients read them from `ARMSIM_WORLDS`.
pub async fn start_simulators(dir: &Path) -> (Vec<Server>, String) {
    let mut servers = Vec::new();
    let mut lines = Vec::new();
    for number in 0..WORKERS {
        let dir = dir.join(number.to_string());
        let server = start(&dir).await;
        lines.push(server.ready_line(&dir));
        servers.push(server);
    }
    (servers, serde_json::Value::from(lines).to_string())
}

/// Runs a program beside the simulators, and shows what it prints.
pub async fn run(mut command: Command) -> bool {
    command.env("NO_PROXY", "127.0.0.1").env("PYTHONDONTWRITEBYTECODE", "1");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    println!("{}", text(&output));
    output.status.success()
}

/// Every operation of [`GROUPS`] was called with success, but for [`BESIDES`].
pub fn nothing_is_left_out(servers: &[Server]) {
    let tally = servers[0].with_azure(|azure, _| azure.spec_tally()).unwrap();
    let is_simulated = |name: &&String| GROUPS.contains(&name.split('_').next().unwrap());
    let left_out: Vec<_> = tally
        .never_taken
        .iter()
        .filter(is_simulated)
        .filter(|name| !BESIDES.contains(&name.as_str()))
        .collect();
    println!("{} operations of the specs called", tally.checked.len());
    assert!(left_out.is_empty(), "never called with success: {left_out:?}");
}
