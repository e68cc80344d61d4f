//! The command line: commands, flags and help. The flags of `run` and `plan` are declared in `hyperlink::config`.

use clap::{Args, Parser, Subcommand, ValueEnum};
use hyperlink::config::{self, Environment, PlanSettings, RunSettings};
use hyperlink::preview::Object;
use hyperlink::{COMMIT, VERSION};

#[derive(Debug, Parser)]
#[command(version = version(), about = "Private paths for HyperShift hosted clusters on Azure and AWS")]
struct CommandLine {
    #[command(subcommand)]
    task: Task,
}

/// The command that was given.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    #[command(about = "Runs the controllers of one or both roles", after_help = AFTER_RUN)]
    Run(Box<RunSettings>),
    #[command(
        about = "Prints what a reconcile of one AzurePrivateLinkService would do, and changes nothing",
        long_about = ABOUT_PLAN,
        after_help = AFTER_PLAN
    )]
    Plan(Box<PlanTask>),
    /// Prints the CustomResourceDefinition as YAML
    Crd,
    /// Prints the reference of all metrics as Markdown
    Metrics,
    /// Prints version and commit
    Version,
}

const AFTER_RUN: &str = "\
    Each flag can be given as the environment variable named beside it; the flag wins. An empty variable counts as \
    not given. HyperShift's variables work unchanged. Hyperlink uses HTTPS_PROXY and NO_PROXY for Azure. Exit codes: \
    0 stopped as asked, 1 failed, 2 wrong settings.";

const ABOUT_PLAN: &str = "\
    Reads the object and what belongs to it in Kubernetes and in Azure, and decides as `hyperlink run` with the same \
    settings would. Prints the facts, the steps with their reasons, what a reconcile would write into Kubernetes, \
    and when it would run again. The command only reads and holds no lease. It may run beside a running Hyperlink or \
    beside HyperShift's own controllers.";

const AFTER_PLAN: &str = "\
    Without --role: cpo, and ho too if --resource-group is given. Without --allow-scopes the guest side is planned \
    as by a process for that namespace alone. The identity needs only the role's read actions. If a read fails, the \
    output shows it, and the plan is not complete.\n\n\
    Exit codes: 0 nothing to do, or the cluster is paused; 2 something is to be done, under way, or in the way; 1 no \
    such object, something could not be read, wrong settings or a wrong command line.\n\n\
    Flags and environment variables are those of `hyperlink run`; the flag wins.";

/// What `hyperlink plan` takes.
#[derive(Debug, Args)]
pub(crate) struct PlanTask {
    /// The AzurePrivateLinkService, as in clusters-example/private-router
    #[arg(value_name = "NAMESPACE/NAME", value_parser = object)]
    pub(crate) object: Object,
    /// How it is printed
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) settings: PlanSettings,
}

/// How a plan is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    Json,
}

/// Parses the command line. A request for help is an error, too: it knows its output and its exit code.
pub(crate) fn task(
    arguments: impl IntoIterator<Item = impl Into<std::ffi::OsString> + Clone>,
    environment: &Environment,
) -> Result<Task, clap::Error> {
    let line: CommandLine = config::parse(arguments, environment)?;
    Ok(line.task)
}

fn object(text: &str) -> Result<Object, &'static str> {
    match text.split_once('/') {
        Some((namespace, name)) if ![namespace, name].contains(&"") && !name.contains('/') => Ok(Object {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }),
        _ => Err("write NAMESPACE/NAME"),
    }
}

/// The version text: `0.1.0 (commit)`.
pub(crate) fn version() -> String {
    format!("{VERSION} ({COMMIT})")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use clap::CommandFactory;

    use super::*;

    fn parsed(line: &[&str]) -> Result<Task, clap::Error> {
        task(line, &Environment::of(&[("HYPERLINK_LEASE_RETRY", "3s")]))
    }

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn help_gives_unit_default_and_variable_of_every_flag() {
        let error = parsed(&["hyperlink", "run", "--help"]).unwrap_err();
        assert_eq!(error.exit_code(), 0);
        let help = error.to_string();
        for arg in RunSettings::command().get_arguments() {
            let (flag, variable) = (arg.get_long().unwrap(), arg.get_env().unwrap().display());
            let (_, own) = help.split_once(&format!("--{flag} <")).expect("the flag");
            let own = own.lines().nth(1).unwrap();
            let [unit, default] = ["unit", "default"].map(|what| own.matches(&format!(" [{what}: ")).count());
            assert_eq!((unit, default), (1, 1), "--{flag} {own}");
            assert!(own.ends_with(&format!("] [env: {variable}]")), "--{flag} {own}");
        }
        assert!(help.contains("[default: 2s]"), "a variable changes no default");
    }

    #[test]
    fn every_variable_has_the_prefix_or_is_standard_and_is_unique() {
        let mut variables = HashSet::new();
        for arg in RunSettings::command().get_arguments() {
            let variable = arg.get_env().unwrap().to_str().unwrap().to_owned();
            let own = format!("HYPERLINK_{}", arg.get_long().unwrap().to_uppercase().replace('-', "_"));
            let standard =
                ["AZURE_", "AWS_"].iter().any(|prefix| variable.starts_with(prefix)) || variable == "KUBECONFIG";
            assert!(standard || variable == own, "{variable}");
            assert!(variables.insert(variable.clone()), "{variable} twice");
        }
    }

    #[test]
    fn no_command_is_a_wrong_use() {
        assert_eq!(parsed(&["hyperlink"]).unwrap_err().exit_code(), 2);
        assert_eq!(parsed(&["hyperlink", "run", "--rol", "ho"]).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn version_names_the_commit() {
        let shown = parsed(&["hyperlink", "--version"]).unwrap_err();
        assert_eq!(shown.to_string().trim(), format!("hyperlink {}", version()));
        assert!(matches!(parsed(&["hyperlink", "version"]), Ok(Task::Version)));
    }
}
