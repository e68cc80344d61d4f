//! Flags and environment become one checked configuration, or one list of all that is wrong. The only reader of the environment.
//!
//! Starts nothing and calls nobody; of files it reads the CA bundle, the allowed scopes, the certificate for metrics and, for the
//! subscription alone, the credentials file.

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

/// What `hyperlink run` does, or would do, checked. Holds no secret.
#[derive(Debug, Clone)]
pub struct Config {
    /// At least one.
    pub roles: BTreeSet<Role>,
    /// The only namespace to serve; none: all.
    pub namespace: Option<String>,
    /// Namespaces that are left to processes of their own.
    pub exclude_namespaces: BTreeSet<String>,
    /// What the cpo role may serve; none: whatever is in its only namespace.
    pub allow_scopes: Option<ScopesFile>,
    /// Passes at once, per controller.
    pub concurrency: NonZeroU16,
    /// Interval of comparing everything but records and links.
    pub resync: Duration,
    /// Interval of comparing records and links.
    pub record_resync: Duration,
    /// Where and how metrics and probes are served.
    pub serving: Serving,
    /// A kubeconfig file; none: as kubectl finds it, else the pod's cluster.
    pub kubeconfig: Option<PathBuf>,
    /// The pod that the process runs in, if it is told.
    pub pod: Option<Pod>,
    /// Leader election; none for a process that never leads.
    pub lease: Option<Lease>,
    /// Where Azure is and who we are there.
    pub azure: Azure,
    /// What only the ho role needs; there if and only if that role is chosen.
    pub management: Option<Management>,
    /// Form and extent of the log.
    pub log: Log,
}

/// The pod that the process runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID, by which `kubectl describe` finds Events.
    pub uid: Option<String>,
}

/// Leader election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Where the lease is kept.
    pub namespace: String,
    /// Its times.
    pub times: LeaseTimes,
    /// The pod's or host's name, to which the holder adds something random.
    pub candidate: String,
}

/// Where Azure is and who we are there.
#[derive(Debug, Clone)]
pub struct Azure {
    /// The cloud's name as HostedControlPlanes spell it.
    pub cloud_name: &'static str,
    /// Its addresses.
    pub cloud: Cloud,
    /// How we prove who we are.
    pub credential: CredentialSource,
    /// How ARM and the authority are reached; a client could be built from it.
    pub http: HttpSettings,
}

/// The management side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Management {
    /// Of the load balancers and Private Link Services.
    pub subscription: SubscriptionId,
    /// The group in it.
    pub resource_group: String,
    /// Further subscriptions and groups.
    pub also_manage: Vec<Scope>,
    /// How NAT subnets are chosen.
    pub nat: NatSubnetRules,
    /// How a Service's frontend is recognised.
    /// `--nat-subnet-id`
    pub nat_subnet: Option<ResourceId>,
    /// `--frontend-match`
    pub frontend_match: FrontendMatch,
    /// Whether conditions are summed up on the HostedCluster.
    pub aggregate_conditions: bool,
}

/// Form and extent of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Text or JSON.
    pub format: telemetry::Format,
    /// Directives that [`telemetry::filter`] accepts.
    pub filter: String,
}

/// Checks all settings. On failure says everything that is wrong, not only the first thing.
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
    let result = settle(&mut reader, roles, lease);
    reader.finish(result)
}

/// The same for `hyperlink plan`, which leads nobody. Without a role it is cpo, and ho too where its resource group is given.
pub fn resolve_for_plan(given: &Given, environment: &Environment) -> Result<Config, Problems> {
    let mut reader = Reader::new(given, environment);
    let mut roles = BTreeSet::from_iter(reader.list(&setting::ROLE, str::parse::<Role>));
    if !reader.is_given(&setting::ROLE) {
        roles.insert(Role::Cpo);
        roles.extend(reader.is_given(&setting::RESOURCE_GROUP).then_some(Role::Ho));
    }
    let result = settle(&mut reader, roles, |_, _| Some(None));
    reader.finish(result)
}

/// The form of the log, also where other settings are wrong; text where it is wrong itself.
pub fn log_format(given: &Given, environment: &Environment) -> telemetry::Format {
    let mut reader = Reader::new(given, environment);
    let format = reader.one(&setting::LOG_FORMAT, parse::log_format);
    format.unwrap_or(telemetry::Format::Text)
}

/// As [`log_format`], of a command line that cannot be read as a whole.
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

/// None when something is missing or wrong; the reader then knows what.
fn settle<'a>(
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

/// Where the Deployment says so.
fn pod(reader: &Reader<'_>) -> Option<Pod> {
    let around = reader.environment;
    let namespace = around.variable("POD_NAMESPACE");
    Some(Pod {
        namespace: namespace.or_else(|| around.service_account_namespace())?,
        name: around.variable("POD_NAME")?,
        uid: around.variable("POD_UID"),
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

    let around = reader.environment;
    let namespace = if reader.is_given(&LEASE_NAMESPACE) {
        reader.one(&LEASE_NAMESPACE, parse::namespace)
    } else {
        let own_namespace = around.variable("POD_NAMESPACE");
        let own_namespace = own_namespace.or_else(|| around.service_account_namespace());
        let own_namespace = own_namespace.or_else(|| scope.map(str::to_owned));
        if own_namespace.is_none() {
            reader.missing(
                &LEASE_NAMESPACE,
                ", and neither POD_NAMESPACE nor a service account nor --namespace tells where the lease is kept",
            );
        }
        own_namespace
    };
    let candidate = around.variable("POD_NAME").or_else(|| around.variable("HOSTNAME"));
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
