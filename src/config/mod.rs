//! Turns flags and environment into one checked configuration, or into one list of all problems. Only this module reads
//! the environment.
//!
//! It starts nothing and calls no service. Of files it reads the CA bundle, the allowed scopes, the certificate for
//! metrics and, for the subscription alone, the credentials file.

mod azure;
mod parse;
mod reader;
mod serving;
mod setting;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use crate::api::Role;
use crate::azure::auth::{Cloud, CredentialSource};
use crate::azure::https::HttpSettings;
use crate::azure::id::{ResourceId, SubscriptionId};
use crate::azure::scope::Scope;
use crate::controllers::private_link_service::nat_prefix::NatSubnetRules;
use crate::http::Serving;
use crate::leader::LeaseTimes;
use crate::scopes_file::ScopesFile;
use crate::telemetry;

pub use crate::controllers::private_link_service::frontend::FrontendMatch;
pub use reader::{Environment, Given, Problems};
pub use setting::{Fallback, SETTINGS, Setting, settings_of_plan};

use reader::Reader;

/// The checked settings of `hyperlink run` or `hyperlink plan`. Holds no secret.
#[derive(Debug, Clone)]
pub struct Config {
    /// The roles of this process, at least one.
    pub roles: BTreeSet<Role>,
    /// The only namespace to serve; `None`: all namespaces.
    pub namespace: Option<String>,
    /// Namespaces that are left to processes of their own.
    pub exclude_namespaces: BTreeSet<String>,
    /// What role `cpo` may serve; `None`: whatever is in its only namespace.
    pub allow_scopes: Option<ScopesFile>,
    /// The most reconciles at once, per controller.
    pub concurrency: NonZeroU16,
    /// Interval at which everything but DNS records and links is compared with Azure.
    pub resync: Duration,
    /// Interval at which DNS records and links are compared with Azure.
    pub record_resync: Duration,
    /// Where and how metrics and probes are served.
    pub serving: Serving,
    /// A kubeconfig file; `None`: as kubectl finds it, else the pod's cluster.
    pub kubeconfig: Option<PathBuf>,
    /// The pod that the process runs in, if its variables are set.
    pub pod: Option<Pod>,
    /// Leader election; `None` for a process that never leads.
    pub lease: Option<Lease>,
    /// The Azure cloud, and the credential for it.
    pub azure: Azure,
    /// What only role `ho` needs; set if and only if that role is chosen.
    pub management: Option<Management>,
    /// Format and filter of the log.
    pub log: Log,
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

/// The settings of leader election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Namespace of the lease.
    pub namespace: String,
    /// Times of the lease.
    pub times: LeaseTimes,
    /// The pod's or host's name, to which the holder adds a random suffix.
    pub candidate: String,
}

/// The Azure cloud, and the credential for it.
#[derive(Debug, Clone)]
pub struct Azure {
    /// The cloud's name as HostedControlPlanes spell it.
    pub cloud_name: &'static str,
    /// Addresses and audience of the cloud.
    pub cloud: Cloud,
    /// How the process authenticates itself.
    pub credential: CredentialSource,
    /// How ARM and the authority are reached; a client can be built from it.
    pub http: HttpSettings,
}

/// The settings of role `ho`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Management {
    /// Subscription of the load balancers and Private Link Services.
    pub subscription: SubscriptionId,
    /// Resource group of the load balancers and Private Link Services.
    pub resource_group: String,
    /// Further subscriptions and groups that may be changed.
    pub also_manage: Vec<Scope>,
    /// How NAT subnets are chosen.
    pub nat: NatSubnetRules,
    /// One NAT subnet for all clusters: `--nat-subnet-id`.
    pub nat_subnet: Option<ResourceId>,
    /// How a Service's frontend is recognised: `--frontend-match`.
    pub frontend_match: FrontendMatch,
    /// Whether conditions are aggregated on the HostedCluster.
    pub aggregate_conditions: bool,
}

/// Format and filter of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Text or JSON.
    pub format: telemetry::Format,
    /// Directives that [`telemetry::filter`] accepts.
    pub filter: String,
}

/// Checks all settings. The error lists all problems, not only the first.
pub fn resolve(given: &Given, environment: &Environment) -> Result<Config, Problems> {
    let mut reader = Reader::new(given, environment);
    let roles = BTreeSet::from_iter(reader.list(&setting::ROLE, str::parse::<Role>));
    if !reader.is_given(&setting::ROLE) {
        reader.missing(&setting::ROLE, "; give ho, cpo or both");
    }
    let for_many = !reader.is_given(&setting::NAMESPACE);
    if for_many && roles.contains(&Role::Cpo) && !reader.is_given(&setting::ALLOW_SCOPES) {
        reader.missing(&setting::ALLOW_SCOPES, "; role cpo needs it, or --namespace");
    }
    let result = read_settings(&mut reader, roles, lease);
    reader.finish(result)
}

/// As [`resolve`], for `hyperlink plan`, which needs no lease. Without a role it is cpo, and ho too where its resource
/// group is given.
pub fn resolve_for_plan(given: &Given, environment: &Environment) -> Result<Config, Problems> {
    let mut reader = Reader::new(given, environment);
    let mut roles = BTreeSet::from_iter(reader.list(&setting::ROLE, str::parse::<Role>));
    if !reader.is_given(&setting::ROLE) {
        roles.insert(Role::Cpo);
        roles.extend(reader.is_given(&setting::RESOURCE_GROUP).then_some(Role::Ho));
    }
    let result = read_settings(&mut reader, roles, |_, _| Some(None));
    reader.finish(result)
}

/// The format of the log, also where other settings are wrong; text where it is wrong itself.
pub fn log_format(given: &Given, environment: &Environment) -> telemetry::Format {
    let mut reader = Reader::new(given, environment);
    let format = reader.one(&setting::LOG_FORMAT, parse::log_format);
    format.unwrap_or(telemetry::Format::Text)
}

/// As [`log_format`], for a command line that cannot be parsed as a whole.
pub fn log_format_in(arguments: impl IntoIterator<Item = OsString>, environment: &Environment) -> telemetry::Format {
    let mut given = Given::default();
    let mut arguments = arguments.into_iter().filter_map(|argument| argument.into_string().ok());
    while let Some(argument) = arguments.next() {
        let value = match argument.strip_prefix("--log-format") {
            Some("") => arguments.next(),
            Some(value) => value.strip_prefix('=').map(str::to_owned),
            None => continue,
        };
        given.set(&setting::LOG_FORMAT, value);
    }
    log_format(&given, environment)
}

/// The configuration; `None` when a setting is missing or wrong, which is then a problem of `reader`.
fn read_settings<'a>(
    reader: &mut Reader<'a>,
    roles: BTreeSet<Role>,
    lease: impl FnOnce(&mut Reader<'a>, Option<&str>) -> Option<Option<Lease>>,
) -> Option<Config> {
    use setting::*;
    let namespace = reader.one(&NAMESPACE, parse::namespace);
    let exclude_namespaces = BTreeSet::from_iter(reader.list(&EXCLUDE_NAMESPACE, parse::namespace));
    let allow_scopes = reader.one(&ALLOW_SCOPES, parse::scopes_file);
    let excluded = |name: &String| {
        let in_file = |file: &ScopesFile| file.allowed().borrow().excludes(name);
        exclude_namespaces.contains(name) || allow_scopes.as_ref().is_some_and(in_file)
    };
    if namespace.as_ref().is_some_and(excluded) {
        reader.problem("the only --namespace is excluded, by --exclude-namespace or the file of --allow-scopes");
    }
    let concurrency = reader.one(&CONCURRENCY, parse::concurrency);
    let resync = reader.one(&RESYNC, parse::duration);
    let record_resync = reader.one(&RECORD_RESYNC, parse::duration);
    let serving = serving::serving(reader);
    let kubeconfig = reader.one(&KUBECONFIG, parse::readable_file);
    let lease = lease(reader, namespace.as_deref());
    let credential = azure::credential(reader, &roles);
    let management = if roles.contains(&Role::Ho) {
        azure::management(reader, credential.as_ref()).map(Some)
    } else {
        Some(None)
    };
    let azure = azure::azure(reader, &roles, credential);
    let format = reader.one(&LOG_FORMAT, parse::log_format);
    let filter = reader.one(&LOG_LEVEL, parse::log_filter);
    Some(Config {
        roles,
        namespace,
        exclude_namespaces,
        allow_scopes,
        concurrency: concurrency?,
        resync: resync?,
        record_resync: record_resync?,
        serving: serving?,
        kubeconfig,
        pod: pod(reader),
        lease: lease?,
        azure: azure?,
        management: management?,
        log: Log {
            format: format?,
            filter: filter?,
        },
    })
}

/// The pod, if the Deployment sets its variables.
fn pod(reader: &Reader<'_>) -> Option<Pod> {
    let environment = reader.environment;
    let namespace = environment.variable("POD_NAMESPACE");
    Some(Pod {
        namespace: namespace.or_else(|| environment.service_account_namespace())?,
        name: environment.variable("POD_NAME")?,
        uid: environment.variable("POD_UID"),
    })
}

fn lease(reader: &mut Reader<'_>, scope: Option<&str>) -> Option<Option<Lease>> {
    use setting::*;
    let duration = reader.one(&LEASE_DURATION, parse::whole_seconds);
    let renew_deadline = reader.one(&LEASE_RENEW_DEADLINE, parse::duration);
    let retry = reader.one(&LEASE_RETRY, parse::duration);
    shorter(
        reader,
        (&LEASE_RENEW_DEADLINE, renew_deadline),
        (&LEASE_DURATION, duration),
    );
    shorter(reader, (&LEASE_RETRY, retry), (&LEASE_RENEW_DEADLINE, renew_deadline));

    let environment = reader.environment;
    let namespace = if reader.is_given(&LEASE_NAMESPACE) {
        reader.one(&LEASE_NAMESPACE, parse::namespace)
    } else {
        let own_namespace = environment.variable("POD_NAMESPACE");
        let own_namespace = own_namespace.or_else(|| environment.service_account_namespace());
        let own_namespace = own_namespace.or_else(|| scope.map(str::to_owned));
        if own_namespace.is_none() {
            reader.missing(
                &LEASE_NAMESPACE,
                ", and neither POD_NAMESPACE nor a service account nor --namespace tells where the lease is kept",
            );
        }
        own_namespace
    };
    let candidate = environment
        .variable("POD_NAME")
        .or_else(|| environment.variable("HOSTNAME"));
    Some(Some(Lease {
        namespace: namespace?,
        times: LeaseTimes {
            duration: duration?,
            renew_deadline: renew_deadline?,
            retry: retry?,
        },
        candidate: candidate.unwrap_or_else(|| "hyperlink".to_owned()),
    }))
}

fn shorter(reader: &mut Reader<'_>, (short, a): (&Setting, Option<Duration>), (long, b): (&Setting, Option<Duration>)) {
    if let (Some(a), Some(b)) = (a, b)
        && a >= b
    {
        let (short, long) = (short.flag, long.flag);
        reader.problem(format!("--{short} ({a:?}) must be shorter than --{long} ({b:?})"));
    }
}

#[cfg(test)]
mod tests;
