//! What each decision of the HO role is made from, and why one stops. Data only.

use super::plan::PrivateLinkServiceInputs;
use super::settings::Settings;
use crate::api::AzurePrivateLinkService;
use crate::controllers::azure::{Decision, Facts, Needs};
use crate::hypershift::problem::Problem;

/// What a decision for one custom resource is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Basis<'a> {
    /// The custom resource.
    pub(crate) cr: &'a AzurePrivateLinkService,
    /// What Kubernetes shows around it.
    pub(crate) inputs: &'a PrivateLinkServiceInputs,
    /// What Azure shows.
    pub(crate) facts: &'a Facts,
    /// What the operator decided for all clusters.
    pub(crate) settings: &'a Settings,
}

/// Why a decision stops before its steps are known.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A problem prevents all steps.
    Blocked(Problem),
    /// Facts are missing.
    Needs(Needs),
}

impl Stop {
    /// The decision that can do nothing because of the problem.
    ///
    /// # Errors
    /// Facts are missing.
    pub(crate) fn stuck(self) -> Result<Decision, Needs> {
        match self {
            Self::Blocked(problem) => Ok(Decision::stuck(problem)),
            Self::Needs(needs) => Err(needs),
        }
    }
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Blocked(problem)
    }
}

impl From<Needs> for Stop {
    fn from(needs: Needs) -> Self {
        Self::Needs(needs)
    }
}
