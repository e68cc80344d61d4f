//! Reads settings: the flag, else the environment variable, else the default. Collects all problems instead of stopping
//! at the first.

use std::collections::HashMap;
use std::fmt::{self, Display};

use super::setting::{Fallback, Setting};

/// The file in which Kubernetes gives a pod its namespace.
const SERVICE_ACCOUNT_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

type Lookup = Box<dyn Fn(&str) -> Option<String>>;

/// The environment variables, and the pod's namespace if there is one. Not printable: variables may hold secrets.
pub struct Environment {
    variable: Lookup,
    service_account_namespace: Option<String>,
}

impl Environment {
    /// The environment of this process.
    pub fn of_process() -> Self {
        let namespace = std::fs::read_to_string(SERVICE_ACCOUNT_NAMESPACE).ok();
        Self {
            variable: Box::new(|name| std::env::var(name).ok()),
            service_account_namespace: namespace.map(|text| text.trim().to_owned()),
        }
    }

    /// An environment with these variables, outside a pod.
    pub fn of(variables: &[(&str, &str)]) -> Self {
        let variables: HashMap<String, String> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Self {
            variable: Box::new(move |name| variables.get(name).cloned()),
            service_account_namespace: None,
        }
    }

    /// This environment, in a pod of `namespace`.
    pub fn in_namespace(self, namespace: &str) -> Self {
        Self {
            service_account_namespace: Some(namespace.to_owned()),
            ..self
        }
    }

    /// A variable's value; an empty one counts as absent.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.trim().is_empty())
    }

    pub(super) fn service_account_namespace(&self) -> Option<String> {
        self.service_account_namespace.clone().filter(|name| !name.is_empty())
    }
}

/// The flags given on the command line, by name.
#[derive(Debug, Default, Clone)]
pub struct Given(HashMap<&'static str, Vec<String>>);

impl Given {
    /// Records that the flag was given with these values.
    pub fn set(&mut self, setting: &Setting, values: impl IntoIterator<Item = String>) {
        self.0.insert(setting.flag, values.into_iter().collect());
    }
}

/// Everything that is wrong with the settings.
#[derive(Debug, PartialEq, Eq)]
pub struct Problems(Vec<String>);

impl Problems {
    /// All problems, one sentence each.
    pub fn all(&self) -> &[String] {
        &self.0
    }
}

impl Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.0.len() == 1 { "problem" } else { "problems" };
        write!(f, "cannot start, {} {noun} with the settings:", self.0.len())?;
        for problem in &self.0 {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

pub(super) struct Reader<'a> {
    given: &'a Given,
    pub(super) environment: &'a Environment,
    problems: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(given: &'a Given, environment: &'a Environment) -> Self {
        Self {
            given,
            environment,
            problems: Vec::new(),
        }
    }

    pub(super) fn problem(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    /// Adds the problem that a required setting is not given; `why` continues the sentence.
    pub(super) fn missing(&mut self, setting: &Setting, why: &str) {
        let Setting { flag, variable, .. } = setting;
        self.problem(format!("--{flag} (or {variable}) is missing{why}"));
    }

    /// The result, or all problems if there are any.
    pub(super) fn finish<T>(self, result: Option<T>) -> Result<T, Problems> {
        match result {
            Some(result) if self.problems.is_empty() => Ok(result),
            _ => Err(Problems(self.problems)),
        }
    }

    /// Whether the setting was given by flag or variable.
    pub(super) fn is_given(&self, setting: &Setting) -> bool {
        !self.found(setting).1.is_empty()
    }

    /// The setting's only value. `None` when it has none, or when it is wrong, which is then a problem.
    pub(super) fn one<T, E: Display>(&mut self, setting: &Setting, parse: impl Fn(&str) -> Result<T, E>) -> Option<T> {
        self.list(setting, parse).into_iter().next()
    }

    /// As [`Reader::one`], for a setting that must be given; `why` as for [`Reader::missing`].
    pub(super) fn required<T, E: Display>(
        &mut self,
        setting: &Setting,
        why: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        if !self.is_given(setting) {
            self.missing(setting, why);
        }
        self.one(setting, parse)
    }

    /// All valid values of the setting; each invalid one is a problem.
    pub(super) fn list<T, E: Display>(&mut self, setting: &Setting, parse: impl Fn(&str) -> Result<T, E>) -> Vec<T> {
        let (origin, mut values) = self.found(setting);
        if let (true, Fallback::Value(value)) = (values.is_empty(), &setting.default) {
            values.push((*value).to_owned());
        }
        let mut parsed = Vec::new();
        for value in values {
            match parse(&value) {
                Ok(value) => parsed.push(value),
                Err(error) => self.problem(format!("{origin}: {error}")),
            }
        }
        parsed
    }

    /// The name of the flag or variable that has the setting, for messages, and its values.
    fn found(&self, setting: &Setting) -> (String, Vec<String>) {
        let split = |text: &str| -> Vec<String> {
            let parts = if setting.list {
                text.split(',').collect()
            } else {
                vec![text]
            };
            let parts = parts.into_iter().map(str::trim);
            parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        let flag = self.given.0.get(setting.flag).into_iter().flatten();
        let values: Vec<String> = flag.flat_map(|text| split(text)).collect();
        if !values.is_empty() {
            return (format!("--{}", setting.flag), values);
        }
        let variable = self.environment.variable(setting.variable);
        let values = variable.map(|text| split(&text)).unwrap_or_default();
        (setting.variable.to_owned(), values)
    }
}
