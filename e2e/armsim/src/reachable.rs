//! Whether a worker in a VNet reaches a Service by name, as traffic would go: zone link → record → endpoint → approved
//! connection → Private Link Service → frontend → Service.
//!
//! Only reads. Reports which hop fails first and why; it never repairs, and it trusts no client about what is there.

mod lookup;
mod walk;

use jiff::Timestamp;
use serde::Serialize;

use crate::engine::context::Context;
use crate::simulated_azure::SimulatedAzure;
use walk::{Broken, Walk};

/// The answer: the hops that hold, and, unless all of them do, the reason.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Reachable {
    /// Whether every value of the record leads to a Service.
    pub ok: bool,
    /// The (first) address that the name has in this VNet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The hops that hold, in order; with several values the later ones repeat from `endpoint` on.
    pub path: Vec<Hop>,
    /// `HOP: reason` of the first hop that does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// One step of the path that holds.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Hop {
    /// Which step.
    pub hop: HopKind,
    /// The ARM id of what was found there; a Service's name for the last step.
    pub id: String,
    /// What was observed, in words for a person.
    pub detail: String,
}

/// The steps from a name to a Service.
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum HopKind {
    /// The private DNS zone that answers for the name.
    Zone,
    /// The zone's link to the VNet.
    Link,
    /// The record set.
    Record,
    /// The private endpoint whose address the record has.
    Endpoint,
    /// The endpoint's connection, as its provider sees it.
    Connection,
    /// The Private Link Service.
    LinkService,
    /// The load balancer's frontend.
    Frontend,
    /// What stands behind the frontend.
    Service,
}

impl HopKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Zone => "zone",
            Self::Link => "link",
            Self::Record => "record",
            Self::Endpoint => "endpoint",
            Self::Connection => "connection",
            Self::LinkService => "link_service",
            Self::Frontend => "frontend",
            Self::Service => "service",
        }
    }
}

impl SimulatedAzure {
    /// Walks from `name` to a Service as a worker in `vnet` (an ARM id) would at `now`.
    pub fn reachable(&mut self, now: Timestamp, vnet: &str, name: &str) -> Reachable {
        let mut cx = Context::new(&mut self.state, now);
        cx.advance();
        let mut walk = Walk::new(&cx, vnet);
        let end = walk.by_name(name);
        Reachable {
            ok: end.is_ok(),
            address: walk.address,
            path: walk.path,
            why: end.err().map(|Broken { hop, why }| format!("{}: {why}", hop.as_str())),
        }
    }
}
