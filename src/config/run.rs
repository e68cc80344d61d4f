//! What only `hyperlink run` needs: how much at once and of which clusters, where probes and metrics are served, leader election.

use super::settings::{Endpoints, LeaderElection};
use super::{Environment, Problems, RunSettings};
use crate::http::{Certificate, Serving};
use crate::hypershift::shard::Shard;
use crate::runtime::leader::LeaseTimes;

/// What only `hyperlink run` needs.
#[derive(Debug, Clone)]
pub struct Run {
    /// The most reconciles at once, per controller.
    pub concurrency: u16,
    /// The part of all clusters that is served.
    pub shard: Shard,
    /// Where and how metrics and probes are served.
    pub serving: Serving,
    /// Leader election.
    pub lease: Lease,
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

pub(super) fn run(settings: &RunSettings, environment: &Environment, problems: &mut Problems) -> Option<Run> {
    let serving = serving(&settings.endpoints, problems);
    let namespace = settings.shared.scope.namespace.as_deref();
    let lease = lease(&settings.leader_election, namespace, environment, problems);
    Some(Run {
        concurrency: settings.concurrency,
        shard: settings.shard,
        serving: serving?,
        lease: lease?,
    })
}

fn serving(settings: &Endpoints, problems: &mut Problems) -> Option<Serving> {
    let metrics = settings.metrics_bind;
    let secure = if settings.metrics_secure {
        Some(certificate(settings, problems)?)
    } else {
        if settings.metrics_cert_file.is_some() || settings.metrics_key_file.is_some() {
            problems.add(
                "--metrics-secure (or HYPERLINK_METRICS_SECURE) is missing; a certificate is of no use without it",
            );
        }
        if !metrics.ip().is_loopback() {
            problems.add(format!(
                "--metrics-bind {metrics} is not on loopback: metrics are served there only with --metrics-secure \
                 true; --probe-bind serves the probes alone"
            ));
        }
        None
    };
    Some(Serving {
        metrics,
        probes: settings.probe_bind,
        secure,
    })
}

fn certificate(settings: &Endpoints, problems: &mut Problems) -> Option<Certificate> {
    let made = match (&settings.metrics_cert_file, &settings.metrics_key_file) {
        (None, None) => Certificate::self_signed(),
        (Some(certificate), Some(key)) => Certificate::from_files(certificate, key),
        (None, Some(_)) => {
            problems.add(missing_half("--metrics-cert-file (or HYPERLINK_METRICS_CERT_FILE)"));
            return None;
        }
        (Some(_), None) => {
            problems.add(missing_half("--metrics-key-file (or HYPERLINK_METRICS_KEY_FILE)"));
            return None;
        }
    };
    problems.check(made.map_err(|error| format!("--metrics-cert-file: {error}")))
}

fn missing_half(flag: &str) -> String {
    format!("{flag} is missing; certificate and key go together")
}

fn lease(
    settings: &LeaderElection,
    scope: Option<&str>,
    environment: &Environment,
    problems: &mut Problems,
) -> Option<Lease> {
    let times = LeaseTimes {
        duration: settings.lease_duration,
        renew_deadline: settings.lease_renew_deadline,
        retry: settings.lease_retry,
    };
    let LeaseTimes {
        duration,
        renew_deadline,
        retry,
    } = times;
    if renew_deadline >= duration {
        problems.add(format!(
            "--lease-renew-deadline ({renew_deadline:?}) must be shorter than --lease-duration ({duration:?})"
        ));
    }
    if retry >= renew_deadline {
        problems.add(format!(
            "--lease-retry ({retry:?}) must be shorter than --lease-renew-deadline ({renew_deadline:?})"
        ));
    }
    let given = settings.lease_namespace.clone();
    let namespace = given.or_else(|| environment.pod_namespace());
    let namespace = namespace.or_else(|| scope.map(str::to_owned));
    if namespace.is_none() {
        problems.add(
            "--lease-namespace (or HYPERLINK_LEASE_NAMESPACE) is missing, and neither POD_NAMESPACE nor a service \
             account nor --namespace tells where the lease is kept",
        );
    }
    let pod = environment.variable("POD_NAME");
    let candidate = pod.or_else(|| environment.variable("HOSTNAME"));
    Some(Lease {
        namespace: namespace?,
        times,
        candidate: candidate.unwrap_or_else(|| "hyperlink".to_owned()),
    })
}
