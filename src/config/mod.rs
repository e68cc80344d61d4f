//! Turns flags and environment into one checked configuration, or into an error that says what is wrong. Only this
//! module reads the environment.
//!
//! clap parses each value and stops at the first wrong one. Then the settings are checked against each other, and all
//! problems are reported together. This module starts nothing and calls no service. Of files it reads the CA bundle,
//! the allowed scopes, the certificate for metrics and, for the subscription alone, the credentials file.

mod aws;
mod azure;
mod capz;
mod credential;
mod environment;
mod run;
mod settings;
mod value;

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::path::PathBuf;

use crate::api::{Platform, Role};
use crate::hypershift::shard::Shard;

pub use aws::Aws;
pub use azure::{Azure, Management};
pub use capz::Capz;
pub use environment::{Environment, log_format_in, parse};
pub use run::{Lease, Run};
pub use settings::{Ho, Intervals, Log, PlanSettings, RunSettings, ScopeSettings};

/// The checked settings of `hyperlink run` or `hyperlink plan`. Holds no secret.
#[derive(Debug, Clone)]
pub struct Config {
    /// The roles of this process, at least one.
    pub roles: BTreeSet<Role>,
    /// The control planes that the roles serve.
    pub scope: ScopeSettings,
    /// How often Azure is compared with what should exist there.
    pub intervals: Intervals,
    /// A kubeconfig file; `None`: as kubectl finds it, else the pod's cluster.
    pub kubeconfig: Option<PathBuf>,
    /// The pod that the process runs in, if its variables are set.
    pub pod: Option<Pod>,
    /// The Azure cloud, and the credential for it; set if and only if that platform is chosen.
    pub azure: Option<Azure>,
    /// What only role `ho` needs on Azure; set if and only if both are chosen.
    pub management: Option<Management>,
    /// Whether role `ho` sums up the conditions of custom resources on their HostedClusters.
    pub aggregate_conditions: bool,
    /// How AWS is reached; set if and only if that platform is chosen.
    pub aws: Option<Aws>,
    /// What only role `capz` needs; set if and only if it is chosen.
    pub capz: Option<Capz>,
    /// Format and filter of the log.
    pub log: Log,
    /// What only `hyperlink run` needs; `None` for `hyperlink plan`.
    pub run: Option<Run>,
}

/// The pod that the process runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// UID of the pod, by which `kubectl describe` finds Events.
    pub uid: Option<String>,
}

/// Everything that is wrong with the settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, problem: impl Display) {
        self.0.push(problem.to_string());
    }

    /// The value; an error becomes a problem.
    fn check<T>(&mut self, result: Result<T, impl Display>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
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

impl RunSettings {
    /// Checks the settings against each other.
    ///
    /// # Errors
    ///
    /// All problems, not only the first.
    pub fn resolve(self, environment: &Environment) -> Result<Config, Problems> {
        let mut problems = Problems::default();
        let scope = &self.shared.scope;
        let roles = BTreeSet::from_iter(scope.roles.iter().copied());
        if roles.is_empty() {
            problems.add("--role (or HYPERLINK_ROLE) is missing; give ho, cpo or both, or capz");
        }
        if roles.contains(&Role::Cpo) && scope.namespace.is_none() && scope.allow_scopes.is_none() {
            problems.add("--allow-scopes (or HYPERLINK_ALLOW_SCOPES) is missing; role cpo needs it, or --namespace");
        }
        if self.shard != Shard::WHOLE && scope.namespace.is_some() {
            problems.add("--shard splits the clusters of all namespaces; it does not go with --namespace");
        }
        if self.shard != Shard::WHOLE && roles.contains(&Role::Capz) {
            problems.add("--shard does not go with --role capz, of which one process decides for all clusters");
        }
        let run = run::run(&self, environment, &mut problems);
        config(self.shared, roles, run, environment, problems)
    }
}

impl PlanSettings {
    /// As [`RunSettings::resolve`]. Without a role it is cpo, and ho too where its resource group or its management
    /// scopes are given.
    ///
    /// # Errors
    ///
    /// All problems, not only the first.
    pub fn resolve(self, environment: &Environment) -> Result<Config, Problems> {
        let mut roles = BTreeSet::from_iter(self.scope.roles.iter().copied());
        if roles.is_empty() {
            roles.insert(Role::Cpo);
            let is_given = self.ho.resource_group.is_some() || self.ho.management_scopes.is_some();
            roles.extend(is_given.then_some(Role::Ho));
        }
        config(self, roles, None, environment, Problems::default())
    }
}

/// Checks what `run` and `plan` share.
fn config(
    settings: PlanSettings,
    roles: BTreeSet<Role>,
    run: Option<Run>,
    environment: &Environment,
    mut problems: Problems,
) -> Result<Config, Problems> {
    let PlanSettings {
        scope,
        intervals,
        connections,
        ho,
        aws: settings_of_aws,
        capz,
        log,
    } = settings;
    let aggregate_conditions = ho.aggregate_conditions && roles.contains(&Role::Ho);
    let platforms = BTreeSet::from_iter(scope.platforms.iter().copied());
    if scope.namespace.as_ref().is_some_and(|name| scope.excludes(name)) {
        problems.add("the only --namespace is excluded, by --exclude-namespace or the file of --allow-scopes");
    }
    let capz = roles
        .contains(&Role::Capz)
        .then(|| capz::capz(capz, (&roles, &platforms), environment, &mut problems));
    let (azure, management) = if platforms.contains(&Platform::Azure) {
        // Role capz calls Azure as each cluster's own identity.
        let credential = (!roles.contains(&Role::Capz))
            .then(|| credential::credential(connections.credential, &roles, environment, &mut problems));
        let credential = credential.flatten();
        let management = roles.contains(&Role::Ho);
        let management = management.then(|| azure::management(ho, credential.as_ref(), environment, &mut problems));
        let azure = azure::azure(&connections, &roles, credential, environment, &mut problems);
        (azure, management.flatten())
    } else {
        (None, None)
    };
    let aws = platforms.contains(&Platform::Aws);
    let aws = aws.then(|| aws::aws(settings_of_aws, &connections, &roles, environment, &mut problems));
    if !problems.0.is_empty() {
        return Err(problems);
    }
    Ok(Config {
        roles,
        scope,
        intervals,
        kubeconfig: connections.kubeconfig,
        pod: pod(environment),
        azure,
        management,
        aggregate_conditions,
        aws: aws.flatten(),
        capz: capz.flatten(),
        log,
        run,
    })
}

impl Config {
    /// The platforms that are served, at least one.
    pub fn platforms(&self) -> impl Iterator<Item = Platform> {
        let azure = self.azure.as_ref().map(|_| Platform::Azure);
        let aws = self.aws.as_ref().map(|_| Platform::Aws);
        [azure, aws].into_iter().flatten()
    }
}

impl ScopeSettings {
    fn excludes(&self, namespace: &String) -> bool {
        let file = self.allow_scopes.as_ref();
        let in_file = file.is_some_and(|file| file.allowed().borrow().excludes(namespace));
        in_file || self.exclude_namespaces.contains(namespace)
    }
}

/// The pod, if the Deployment sets its variables.
fn pod(environment: &Environment) -> Option<Pod> {
    Some(Pod {
        namespace: environment.pod_namespace()?,
        name: environment.variable("POD_NAME")?,
        uid: environment.variable("POD_UID"),
    })
}

#[cfg(test)]
mod tests;
