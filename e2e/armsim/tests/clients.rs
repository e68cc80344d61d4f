//! Azure's own Python packages against the simulator: the tests are in `e2e/clients`, and run here with one simulator for each of pytest's workers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod face_support;

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use armsim::{Options, Server};
use face_support::spec_support;

/// Tests that run at once: they wait most of the time.
const WORKERS: usize = 12;

/// The operation groups of the specs that the simulator stands for.
const GROUPS: [&str; 29] = [
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
const BESIDES: [&str; 15] = [
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

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../clients")
        .canonicalize()
        .unwrap()
}

/// The Python of the virtual environment with the pinned packages; `None` where there is no Python to make one.
fn python() -> Option<PathBuf> {
    match Command::new("python3").arg("--version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        other => assert!(other.unwrap().status.success(), "python3 does not run"),
    }
    let requirements = clients().join("requirements.txt");
    let venv = Command::new(clients().join("../../hack/venv"))
        .arg(requirements)
        .output()
        .unwrap();
    assert!(venv.status.success(), "hack/venv: {}", text(&venv));
    Some(Path::new(String::from_utf8(venv.stdout).unwrap().trim()).join("bin/python"))
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|part| String::from_utf8_lossy(part))
        .join("")
}

async fn start(dir: &Path) -> Server {
    let options = Options {
        dir: Some(dir.to_owned()),
        specs: spec_support::reference(),
        ..Options::default()
    };
    Server::start(options).await.unwrap()
}

/// Starts the simulators, and says their addresses as `e2e/clients/conftest.py` reads them.
async fn worlds(dir: &Path) -> (Vec<Server>, String) {
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
async fn run(mut command: Command) -> bool {
    command.env("NO_PROXY", "127.0.0.1").env("PYTHONDONTWRITEBYTECODE", "1");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    println!("{}", text(&output));
    output.status.success()
}

#[tokio::test(flavor = "multi_thread")]
async fn official_python_packages_work() {
    let Some(python) = tokio::task::spawn_blocking(python).await.unwrap() else {
        println!("SKIPPED: no python3");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (servers, worlds) = worlds(dir.path()).await;
    let mut pytest = Command::new(python);
    pytest
        .args(["-m", "pytest"])
        .args(["-n", &WORKERS.to_string(), "--dist", "worksteal"])
        .current_dir(clients())
        .env("ARMSIM_WORLDS", worlds);
    // No test collected is an error of pytest's too.
    let passed = run(pytest).await;
    for server in &servers {
        server.with_world(|world, _| spec_support::kept(world));
    }
    assert!(passed, "Python tests failed: see above");
    if spec_support::specs().is_some() {
        nothing_is_left_out(&servers);
    }
}

/// Every operation of [`GROUPS`] was called with success, but for [`BESIDES`].
fn nothing_is_left_out(servers: &[Server]) {
    let tally = servers[0].with_world(|world, _| world.spec_tally()).unwrap();
    let ours = |name: &&String| GROUPS.contains(&name.split('_').next().unwrap());
    let left_out: Vec<_> = tally
        .never_taken
        .iter()
        .filter(ours)
        .filter(|name| !BESIDES.contains(&name.as_str()))
        .collect();
    println!("{} operations of the specs called", tally.checked.len());
    assert!(left_out.is_empty(), "never called with success: {left_out:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn readme_examples_by_python_work() {
    let Some(python) = tokio::task::spawn_blocking(python).await.unwrap() else {
        println!("SKIPPED: no python3");
        return;
    };
    let examples = face_support::readme_blocks("py");
    assert_eq!(examples.len(), 5);
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let mut program = Command::new(python);
    program
        .args(["-c", &examples.join("\n")])
        .env("ARMSIM_ARM", &server.arm)
        .env("ARMSIM_AUTHORITY", &server.authority)
        .env("ARMSIM_CONTROL", &server.control)
        .env("ARMSIM_CA", dir.path().join("ca.pem"));
    assert!(run(program).await, "an example failed: see above");
    let changes = server.with_world(|world, _| world.journal(0).iter().filter(|call| call.changed).count());
    assert_eq!(changes, 2, "two subnets were put");
}
