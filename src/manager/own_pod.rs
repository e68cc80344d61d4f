//! Reports on the process's own pod why it is not ready, so that `kubectl describe` shows it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use tokio::task::JoinSet;

use crate::config::{Config, Pod};
use crate::controllers::context::recorder;
use crate::http::Readiness;
use crate::metrics::Metrics;
use crate::runtime::event::{Event, What};
use crate::runtime::recorder::Recorder;

/// The time between two checks of what the process waits for, to report it on its Pod. A problem that two checks in a
/// row find is reported: a start takes a moment by itself.
const INTERVAL: Duration = Duration::from_secs(15);

/// Reports until the returned set is dropped; reports nothing if the pod is not known.
pub(super) fn start_status_reports(
    config: &Config,
    kube: kube::Config,
    readiness: Readiness,
    metrics: Arc<Metrics>,
) -> kube::Result<JoinSet<()>> {
    let mut reports = JoinSet::new();
    if let (Some(pod), Some(role)) = (config.pod.clone(), config.roles.first().copied()) {
        // Not through the gate: a process that waits does not lead.
        let recorder = recorder(kube::Client::try_from(kube)?, role, &[], &pod.name, metrics);
        reports.spawn(report(readiness, pod, recorder));
    }
    Ok(reports)
}

/// Reports at each interval; never returns.
async fn report(readiness: Readiness, pod: Pod, recorder: Recorder) {
    let pod = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: Some(pod.namespace),
        name: Some(pod.name),
        uid: pod.uid,
        ..ObjectReference::default()
    };
    let mut before = Vec::new();
    loop {
        tokio::time::sleep(INTERVAL).await;
        let now = readiness.waits();
        let lasting: Vec<&str> = now
            .iter()
            .filter(|wait| before.contains(*wait))
            .map(String::as_str)
            .collect();
        let event = (!lasting.is_empty()).then(|| Event::new(What::NotReady, lasting.join("; ")));
        recorder.stands(&pod, "readiness", event).await;
        before = now;
    }
}
