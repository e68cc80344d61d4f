//! Small trees that keep the rules, and that break them.

use super::*;

const LIB: &str = "pub mod api;\npub mod controllers;\npub mod config;\npub mod metrics;\npub mod observer;";
const CONTROLLERS: &str = "pub mod private_endpoint;\npub mod private_link_service;\nmod decision;\nmod driver;";

/// A small tree that keeps the rules, with one file replaced or added.
fn with(file: &str, text: &str) -> Vec<String> {
    let tree = [
        ("lib.rs", LIB),
        (
            "main.rs",
            "mod cli;\nuse hyperlink::config;\nfn main() { let _ = std::env::args_os(); }",
        ),
        ("cli.rs", "use clap::Command;\nuse hyperlink::config::Config;"),
        ("api/mod.rs", "use kube::CustomResource;"),
        ("azure/lib.rs", "pub mod arm;"),
        ("azure/arm/mod.rs", "pub mod error;\npub mod client;\npub mod ports;"),
        (
            "azure/arm/client.rs",
            "use tokio::time;\nuse hyperlink_engine::plan::Step;",
        ),
        ("azure/arm/error.rs", "use hyperlink_engine::failure::Class;"),
        ("azure/arm/ports.rs", ""),
        (
            "engine/lib.rs",
            "pub mod failure;\npub mod plan;\npub mod client;\npub mod execute;",
        ),
        ("engine/failure.rs", ""),
        ("engine/plan.rs", "use super::failure;"),
        ("engine/client.rs", "use tokio::time;"),
        ("engine/execute.rs", "use super::{client, plan};"),
        ("config/mod.rs", "fn f() { std::env::var(\"X\") }"),
        ("metrics/mod.rs", "use crate::api::Role;"),
        ("observer/mod.rs", "mod verdict;\nuse kube::Api;"),
        ("observer/verdict.rs", "use crate::api::Role;"),
        ("controllers/mod.rs", CONTROLLERS),
        ("controllers/decision.rs", "use crate::engine::plan::Step;"),
        ("controllers/driver.rs", "use kube::Client;"),
        (
            "controllers/private_endpoint/mod.rs",
            "mod plan;\n#[cfg(test)]\nmod tests;",
        ),
        (
            "controllers/private_endpoint/tests.rs",
            "async fn f() { std::env::var(\"X\"); crate::config::resolve() }",
        ),
        ("controllers/private_endpoint/plan.rs", "use crate::engine::plan::Plan;"),
        ("controllers/private_link_service/mod.rs", "use super::driver;"),
    ];
    let mut sources: BTreeMap<String, String> = tree.map(|(file, text)| (file.to_owned(), text.to_owned())).into();
    sources.insert(file.to_owned(), text.to_owned());
    violations(&sources)
}

#[test]
fn a_tree_that_keeps_the_rules_has_no_violation() {
    assert_eq!(with("azure/arm/ports.rs", ""), Vec::<String>::new());
}

#[rstest::rstest]
#[case::io_in_a_decision(
    "engine/plan.rs",
    "\nuse tokio::time;",
    "src/engine/plan.rs:2: uses tokio::time; data and decisions do no I/O"
)]
#[case::io_in_data(
    "api/mod.rs",
    "use kube::{CustomResource, Api};",
    "src/api/mod.rs:1: uses kube::Api; data and decisions do no I/O"
)]
#[case::clock_in_a_decision(
    "observer/verdict.rs",
    "fn f() { jiff::Timestamp::now() }",
    "src/observer/verdict.rs:1: uses jiff::Timestamp::now; data and decisions have no clock: the time comes in as a value"
)]
#[case::log_in_a_decision(
    "controllers/private_endpoint/plan.rs",
    "fn f() { tracing::info!(\"x\") }",
    "src/controllers/private_endpoint/plan.rs:1: uses tracing::info; data and decisions do not log"
)]
#[case::async_in_a_decision(
    "engine/plan.rs",
    "pub async fn f() {}",
    "src/engine/plan.rs:1: async in the Decide layer, which waits for nothing"
)]
#[case::decision_uses_the_wire(
    "engine/plan.rs",
    "use super::client::CloudClient;",
    "src/engine/plan.rs:1: uses crate::engine::client::CloudClient of src/engine/client.rs; the Decide layer must not use the Wire layer"
)]
#[case::kind_uses_the_wire(
    "azure/arm/error.rs",
    "use crate::arm::client::Client;",
    "src/azure/arm/error.rs:1: uses crate::azure::arm::client::Client of src/azure/arm/client.rs; the Data layer must not use the Wire layer"
)]
#[case::decision_uses_its_own_controller(
    "controllers/private_endpoint/plan.rs",
    "use super::Facts;",
    "src/controllers/private_endpoint/plan.rs:1: uses crate::controllers::private_endpoint::Facts of src/controllers/private_endpoint/mod.rs; the Decide layer must not use the Effect layer"
)]
#[case::effect_reads_flags(
    "controllers/driver.rs",
    "use crate::{api::Role, config::Config};",
    "src/controllers/driver.rs:1: uses crate::config::Config of src/config/mod.rs; the Effect layer must not use the Run layer"
)]
#[case::effect_reads_environment(
    "controllers/driver.rs",
    "fn f() { std::env::var(\"X\") }",
    "src/controllers/driver.rs:1: uses std::env::var; only the configuration reads the environment"
)]
#[case::main_reads_environment(
    "main.rs",
    "mod cli;\nuse std::env;",
    "src/main.rs:2: uses std::env; only the configuration reads the environment"
)]
#[case::wire_knows_kubernetes(
    "metrics/mod.rs",
    "use kube::Api;",
    "src/metrics/mod.rs:1: uses kube::Api; the wire knows no Kubernetes and no custom resource"
)]
#[case::metrics_know_the_custom_resource(
    "metrics/mod.rs",
    "use crate::api::AzurePrivateLinkService;",
    "src/metrics/mod.rs:1: uses crate::api::AzurePrivateLinkService; the wire knows no Kubernetes and no custom resource"
)]
#[case::one_controller_knows_the_other(
    "controllers/private_link_service/mod.rs",
    "use super::private_endpoint::X;",
    "src/controllers/private_link_service/mod.rs:1: uses crate::controllers::private_endpoint::X; private_link_service and private_endpoint meet in the custom resource's status only"
)]
#[case::a_decision_names_azure(
    "controllers/decision.rs",
    "use crate::azure::kinds::Kind;",
    "src/controllers/decision.rs:1: uses crate::azure::kinds::Kind; what all controllers share is about any cloud"
)]
#[case::controller_of_one_cloud_names_the_other(
    "controllers/private_endpoint/mod.rs",
    "mod plan;\n#[cfg(test)]\nmod tests;\nuse crate::aws::kinds::Kind;",
    "src/controllers/private_endpoint/mod.rs:4: uses crate::aws::kinds::Kind; what is about one cloud uses nothing of another"
)]
#[case::flags_below_the_top(
    "controllers/driver.rs",
    "#[derive(clap::Args)] struct A;",
    "src/controllers/driver.rs:1: uses clap::Args; only the top layer knows flags"
)]
#[case::a_log_field_of_its_own(
    "controllers/driver.rs",
    "fn f() { tracing::info!(colour = 1, \"x\") }",
    "src/controllers/driver.rs:1: logs colour, which is not among telemetry::FIELDS"
)]
#[case::a_file_that_nobody_names("azure/arm/throttle.rs", "", "src/azure/arm/throttle.rs: no `mod` names this file")]
fn a_breach_is_found(#[case] file: &str, #[case] text: &str, #[case] expected: &str) {
    assert_eq!(with(file, text), [expected]);
}

#[test]
fn a_file_without_a_layer_is_found() {
    let lib = format!("{LIB}\npub mod helpers;");
    let mut sources = BTreeMap::from([("lib.rs".to_owned(), lib)]);
    sources.insert("helpers.rs".to_owned(), String::new());
    assert_eq!(
        violations(&sources),
        ["src/helpers.rs: belongs to no layer; add it to the table in ARCHITECTURE.md"]
    );
}

#[test]
fn unknown_module_and_unlogged_field_are_found() {
    let sources = BTreeMap::from([
        (
            "main.rs".to_owned(),
            "fn f() { tracing::info!(controller, \"x\") }".to_owned(),
        ),
        ("engine/plan.rs".to_owned(), String::new()),
    ]);
    let found = leftovers(&sources);
    let has = |line: &str| found.iter().any(|found| found == line);
    assert!(
        has("ARCHITECTURE.md: there is no src/azure/arm/id") && !has("ARCHITECTURE.md: there is no src/engine/plan")
    );
    assert!(has("telemetry::FIELDS: nobody logs kind") && !has("telemetry::FIELDS: nobody logs controller"));
}

#[rstest::rstest]
#[case::one_of_several_in_a_folder("azure/arm/id.rs", Data)]
#[case::part_of_a_module("azure/arm/error/tests.rs", Data)]
#[case::all_else_of_a_folder("azure/arm/auth/file.rs", Wire)]
#[case::the_folder_itself("controllers/mod.rs", Effect)]
#[case::same_name_in_each_folder("controllers/private_endpoint/plan.rs", Decide)]
#[case::top("main.rs", Run)]
fn layer_of_a_file_is_that_of_the_longest_row(#[case] file: &str, #[case] expected: Layer) {
    assert_eq!(layer(file), Some(expected));
}
