//! How long things take, in each preset.

use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// How fast the simulated AWS is. The answers are the same in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Half a second wherever AWS takes minutes.
    Fast,
    /// The durations that users of AWS report.
    Recorded,
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fast" => Ok(Self::Fast),
            "recorded" => Ok(Self::Recorded),
            _ => Err(format!("unknown preset '{text}': fast or recorded")),
        }
    }
}

/// What takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A load balancer is `provisioning`.
    Provisioning,
    /// An endpoint service is `Pending`, or `Deleting`.
    ServiceChange,
    /// An endpoint is `pending`.
    EndpointPending,
    /// An endpoint is `deleting`; so long again `deleted` is listed.
    EndpointDeleting,
    /// From the deletion of an endpoint until its network interfaces are gone.
    InterfaceGone,
    /// A change of records is `PENDING`.
    RecordChange,
}

impl Preset {
    pub(crate) fn lasts(self, phase: Phase) -> SignedDuration {
        let (fast_ms, recorded_ms) = match phase {
            Phase::Provisioning => (500, 150_000),
            Phase::ServiceChange => (200, 5_000),
            Phase::EndpointPending => (500, 60_000),
            Phase::EndpointDeleting => (250, 30_000),
            Phase::InterfaceGone => (1_000, 120_000),
            Phase::RecordChange => (500, 30_000),
        };
        SignedDuration::from_millis(match self {
            Self::Fast => fast_ms,
            Self::Recorded => recorded_ms,
        })
    }

    /// How late the answer to the creation of an endpoint is.
    pub(crate) fn endpoint_answer(self) -> Option<Duration> {
        match self {
            Self::Fast => None,
            Self::Recorded => Some(Duration::from_secs(30)),
        }
    }
}
