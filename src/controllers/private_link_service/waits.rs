//! How long a reconcile, or a read, waits for what no event announces.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::plan::PrivateLinkServiceInputs;
use crate::api::{AzurePrivateLinkService, Reason};
use crate::azure::kinds::Kind;
use crate::azure::plan::Why;
use crate::controllers::azure::Decision;
use crate::controllers::azure::access::Context;
use crate::engine::observation_cache::LONGEST_POLL;
use crate::runtime::requeue::Requeue;

/// What a frontend is searched by, as one text: the address in the spec, and the Service's UID and addresses.
pub(super) fn awaited(cr: &AzurePrivateLinkService, inputs: &PrivateLinkServiceInputs) -> String {
    let service = inputs.service.as_ref();
    let addresses = service.map(|service| service.addresses.iter().collect::<BTreeSet<_>>());
    let uid = service.map(|service| &service.uid);
    format!("{:?} {uid:?} {addresses:?}", cr.spec.load_balancer_ip)
}

/// Requeues ever less often while only others can help. For a frontend the waits start again only when what it is
/// searched by changes (`awaited`), and not with the rest of the custom resource.
pub(super) fn slow_down(cx: &Context, uid: &str, awaited: &str, decision: &mut Decision) {
    let Some(problem) = &decision.problem else {
        return cx.polls.over(uid);
    };
    let Some(first) = problem.requeue_after else {
        return cx.polls.over(uid);
    };
    let now = Instant::now();
    let after = match problem.reason {
        Reason::EndpointNotConnected => cx.polls.wait(uid, first, now),
        Reason::WaitingForLoadBalancer | Reason::AmbiguousLoadBalancer => cx.polls.wait_with(uid, awaited, first, now),
        _ => return cx.polls.over(uid),
    };
    decision.requeue = Some(Requeue::new(after, problem.reason.as_str()));
}

/// Expedites the read of a NAT subnet that waits for the addresses of a deleted service: first soon, then ever later.
pub(super) fn expedite_subnet(cx: &Context, decision: &Decision) {
    if let Some(step) = decision.step(Kind::Subnet)
        && step.found.is_some()
        && matches!(step.why, Why::Needs(_))
    {
        let now = Instant::now();
        let service = decision.step(Kind::PrivateLinkService);
        let gone_for = service.and_then(|service| cx.cloud.observations.gone_for(&service.key, now));
        let wait = (gone_for.unwrap_or_default() / 5).clamp(Kind::Subnet.pace(), LONGEST_POLL);
        cx.cloud.observations.expedite(&step.key, wait, now);
    }
}
