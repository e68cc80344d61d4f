//! The command line: commands, flags and help. The flags of `run` and `plan` come from the table of settings; their
//! values are read elsewhere.

use clap::{Arg, ArgAction, ArgMatches, Command};
use hyperlink::config::{Fallback, Given, SETTINGS, Setting, settings_of_plan};

/// The version and, when known at build time, the commit.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The source's commit, given to the build as HYPERLINK_COMMIT.
pub(crate) const COMMIT: &str = match option_env!("HYPERLINK_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// The command that was given.
#[derive(Debug)]
pub(crate) enum Task {
    /// Run the controllers.
    Run(Given),
    /// Print what a reconcile of one object would do.
    Plan(Given, Object, Output),
    /// Print the CustomResourceDefinition.
    Crd,
    /// Print the reference of all metrics.
    Metrics,
    /// Print version and commit.
    Version,
}

/// The custom resource to plan for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// How a plan is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    Text,
    Json,
}

/// Parses the command line. A request for help is an error, too: it knows its output and its exit code.
pub(crate) fn task<I, T>(arguments: I) -> Result<Task, clap::Error>
where
    I: IntoIterator<Item = T>,
    T: Into<std::ffi::OsString> + Clone,
{
    let matches = command().try_get_matches_from(arguments)?;
    Ok(match matches.subcommand() {
        Some(("run", flags)) => Task::Run(given(flags, SETTINGS.iter().copied())),
        Some(("plan", flags)) => match (flags.get_one::<Object>(OBJECT), flags.get_one(OUTPUT)) {
            (Some(object), Some(output)) => Task::Plan(given(flags, settings_of_plan()), object.clone(), *output),
            _ => unreachable!("one is required, the other has a default"),
        },
        Some(("crd", _)) => Task::Crd,
        Some(("metrics", _)) => Task::Metrics,
        _ => Task::Version,
    })
}

fn command() -> Command {
    let run = Command::new("run")
        .about("Runs the controllers of one or both roles")
        .after_help(
            "Each flag can be given as the environment variable named beside it; the flag wins. HyperShift's variables work \
             unchanged. HTTPS_PROXY and NO_PROXY are honoured for Azure. Exit codes: 0 stopped as asked, 1 failed, 2 wrong settings.",
        )
        .args(SETTINGS.iter().map(|setting| flag(setting)));
    Command::new("hyperlink")
        .about("Private paths for HyperShift hosted clusters on Azure")
        // clap keeps the text for as long as the process lives.
        .version(version().leak() as &str)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(run)
        .subcommand(plan())
        .subcommand(Command::new("crd").about("Prints the CustomResourceDefinition as YAML"))
        .subcommand(Command::new("metrics").about("Prints the reference of all metrics as Markdown"))
        .subcommand(Command::new("version").about("Prints version and commit"))
}

const OBJECT: &str = "object";
const OUTPUT: &str = "output";

fn plan() -> Command {
    Command::new("plan")
        .about("Prints what a reconcile of one AzurePrivateLinkService would do, and changes nothing")
        .long_about(
            "Reads the object, what belongs to it in Kubernetes and in Azure, and decides as `hyperlink run` with the same settings would: \
             facts, steps with their reasons, what would be written into Kubernetes, and when the next reconcile would be due. It sends nothing but \
             reads, holds no lease, and may run beside a running Hyperlink or beside HyperShift's own controllers.",
        )
        .after_help(
            "Without --role: cpo, and ho too if --resource-group is given. Without --allow-scopes the guest side is planned as by a \
             process for that namespace alone. The identity needs the role's read actions only. A failed read is told, and the plan \
             then is not complete.\n\n\
             Exit codes: 0 nothing to do, or the cluster is paused; 2 something is to be done, under way, or in the way; 1 no such \
             object, something could not be read, wrong settings or a wrong command line.\n\n\
             Flags and environment variables are those of `hyperlink run`; the flag wins.",
        )
        .arg(
            Arg::new(OBJECT)
                .value_name("NAMESPACE/NAME")
                .required(true)
                .value_parser(object)
                .help("The AzurePrivateLinkService, as in clusters-example/private-router"),
        )
        .arg(
            Arg::new(OUTPUT)
                .short('o')
                .long(OUTPUT)
                .value_name("FORMAT")
                .value_parser(clap::value_parser!(Output))
                .default_value("text")
                .help("How it is printed"),
        )
        .args(settings_of_plan().map(flag))
}

fn object(text: &str) -> Result<Object, String> {
    match text.split_once('/') {
        Some((namespace, name)) if ![namespace, name].contains(&"") && !name.contains('/') => Ok(Object {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }),
        _ => Err("write NAMESPACE/NAME".to_owned()),
    }
}

/// The version text: `0.1.0 (commit)`.
pub(crate) fn version() -> String {
    format!("{VERSION} ({COMMIT})")
}

fn flag(setting: &'static Setting) -> Arg {
    let default = match setting.default {
        Fallback::Value(text) | Fallback::Words(text) => text,
    };
    let Setting {
        help, unit, variable, ..
    } = setting;
    let repeat = if setting.list { " May be repeated." } else { "" };
    Arg::new(setting.flag)
        .long(setting.flag)
        .value_name(setting.value)
        .action(if setting.list {
            ArgAction::Append
        } else {
            ArgAction::Set
        })
        .help(format!(
            "{help}{repeat} [unit: {unit}] [env: {variable}] [default: {default}]"
        ))
}

fn given(flags: &ArgMatches, settings: impl Iterator<Item = &'static Setting>) -> Given {
    let mut given = Given::default();
    for setting in settings {
        if let Some(values) = flags.get_many::<String>(setting.flag) {
            given.set(setting, values.cloned());
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help() -> String {
        let error = task(["hyperlink", "run", "--help"]).unwrap_err();
        assert_eq!(error.exit_code(), 0);
        // As one line, because the wrapping of the help does not matter.
        let text = error.to_string();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn help_gives_unit_variable_and_default_of_every_flag() {
        let help = help();
        let starts = SETTINGS
            .iter()
            .map(|setting| format!("--{} <{}>", setting.flag, setting.value));
        let ends = starts.clone().skip(1).chain(["-h, --help".to_owned()]);
        for ((setting, start), end) in SETTINGS.iter().zip(starts).zip(ends) {
            let (_, own) = help.split_once(&start).expect("the flag");
            let (own, _) = own.split_once(&end).expect("the next flag");
            let default = match setting.default {
                Fallback::Value(text) | Fallback::Words(text) => text,
            };
            let Setting { unit, variable, .. } = setting;
            let expected = format!("[unit: {unit}] [env: {variable}] [default: {default}]");
            assert!(own.contains(&expected), "{start} {own}");
            assert!(![*unit, default].contains(&""), "{start}");
        }
    }

    #[test]
    fn every_variable_has_the_prefix_or_is_standard_and_is_unique() {
        let mut variables = std::collections::HashSet::new();
        for setting in SETTINGS {
            let own = format!("HYPERLINK_{}", setting.flag.to_uppercase().replace('-', "_"));
            let standard = setting.variable.starts_with("AZURE_") || setting.variable == "KUBECONFIG";
            assert!(standard || setting.variable == own, "{}", setting.variable);
            assert!(variables.insert(setting.variable), "{} twice", setting.variable);
        }
    }

    #[test]
    fn no_command_is_a_wrong_use() {
        assert_eq!(task(["hyperlink"]).unwrap_err().exit_code(), 2);
        assert_eq!(task(["hyperlink", "run", "--rol", "ho"]).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn version_names_the_commit() {
        let shown = task(["hyperlink", "--version"]).unwrap_err();
        assert_eq!(shown.to_string().trim(), format!("hyperlink {}", version()));
        assert!(matches!(task(["hyperlink", "version"]), Ok(Task::Version)));
    }
}
