//! The environment of the process, and how it fills settings in that the command line does not give.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Parser};

use super::value;
use crate::telemetry::Format;

/// The file in which Kubernetes gives a pod its namespace.
const SERVICE_ACCOUNT_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The environment variables, and the pod's namespace if there is one. Not printable: variables may hold secrets.
pub struct Environment {
    pub(super) variables: HashMap<String, String>,
    pub(super) service_account_namespace: Option<String>,
}

impl Environment {
    /// The environment of this process.
    pub fn of_process() -> Self {
        let readable =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        let namespace = std::fs::read_to_string(SERVICE_ACCOUNT_NAMESPACE).ok();
        Self {
            variables: std::env::vars_os().filter_map(readable).collect(),
            service_account_namespace: namespace.map(|text| text.trim().to_owned()),
        }
    }

    /// An environment with these variables, outside a pod.
    pub fn of(variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            variables: variables.iter().map(owned).collect(),
            service_account_namespace: None,
        }
    }

    /// A variable's value; an empty one counts as absent.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        let value = self.variables.get(name);
        value.filter(|value| !value.trim().is_empty()).cloned()
    }

    /// Whether a variable has a value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.variable(name).is_some()
    }

    /// The namespace of the pod that the process runs in.
    pub(super) fn pod_namespace(&self) -> Option<String> {
        let given = self.variable("POD_NAMESPACE");
        given.or_else(|| self.service_account_namespace.clone().filter(|name| !name.is_empty()))
    }
}

/// Parses the command line, with the environment's values for what it does not give. A request for help is an error,
/// too.
pub fn parse<P: Parser>(
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    environment: &Environment,
) -> Result<P, clap::Error> {
    let command = P::command()
        .mut_args(|arg| with_variable(arg, environment))
        .mut_subcommands(|command| command.mut_args(|arg| with_variable(arg, environment)));
    let matches = command.try_get_matches_from(arguments);
    P::from_arg_matches(&matches.map_err(naming_variable::<P>)?)
}

/// The error about a value, which names the variable too: the value may be from there.
fn naming_variable<P: Parser>(mut error: clap::Error) -> clap::Error {
    let wrong_value = matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation);
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg).filter(|_| wrong_value) else {
        return error;
    };
    let mut command = P::command();
    // As flags are spelt in errors.
    command.build();
    let arguments = command.get_subcommands().flat_map(Command::get_arguments);
    let mut arguments = arguments.chain(command.get_arguments());
    let arg = arguments.find(|arg| arg.to_string() == *flag);
    if let Some(variable) = arg.and_then(Arg::get_env) {
        let both = format!("{flag} (or {})", variable.display());
        error.insert(ContextKind::InvalidArg, ContextValue::String(both));
    }
    error
}

/// The flag with the value of its variable as the default, and with variable and default in its help.
///
/// clap itself would take an empty variable for a value, and would show the values of variables in the help.
fn with_variable(arg: Arg, environment: &Environment) -> Arg {
    let Some(variable) = arg.get_env().and_then(OsStr::to_str).map(str::to_owned) else {
        return arg;
    };
    let mut help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    if let [default] = arg.get_default_values() {
        help += &format!(" [default: {}]", default.display());
    }
    let arg = arg
        .help(format!("{help} [env: {variable}]"))
        .env(Resettable::Reset)
        .hide_default_value(true)
        .hide_possible_values(true);
    let Some(value) = environment.variable(&variable) else {
        return arg;
    };
    let is_list = arg.get_value_delimiter().is_some();
    let parts = value.split(|c| is_list && c == ',').map(str::trim);
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).map(str::to_owned).collect();
    arg.default_values(parts)
}

/// The format of the log, for a command line that cannot be parsed as a whole; text where it is wrong itself.
pub fn log_format_in(arguments: impl IntoIterator<Item = OsString>, environment: &Environment) -> Format {
    let mut format = environment.variable(value::LOG_FORMAT);
    let mut arguments = arguments.into_iter().filter_map(|argument| argument.into_string().ok());
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix("--log-format") {
            Some("") => format = arguments.next(),
            Some(value) => format = value.strip_prefix('=').map(str::to_owned),
            None => {}
        }
    }
    let format = format.and_then(|word| value::log_format(word.trim()).ok());
    format.unwrap_or(Format::Text)
}
