//! The records of the endpoint: those that the custom resource is to have, and those that it is to have no longer.

use std::collections::BTreeSet;

use kube::ResourceExt;

use super::{Basis, Building, Stop};
use crate::aws::kinds::Kind;
use crate::aws::kinds::records::{Records, ReleasedRecords};
use crate::aws::slot::Slot;
use crate::controllers::aws::Step;
use crate::controllers::vpc_endpoint::zone;
use crate::engine::plan::{ensure_absent, ensure_present};
use crate::hypershift::aws::ids::endpoint_suffix;
use crate::hypershift::aws::intent::CpoIntent;
use crate::hypershift::aws::names;
use crate::hypershift::identity::Identity;
use crate::hypershift::problem::Problem;

/// The names of the custom resource's records: of those that it can have, all that are recorded, shown or desired.
pub(crate) fn known_names(basis: Basis<'_>, identity: &Identity, recorded: &CpoIntent) -> Vec<String> {
    let cr = basis.cr.name_any();
    let shown = basis.cr.status.as_ref().map(|status| status.dns_names.as_slice());
    let named: BTreeSet<&String> = recorded.record_names.iter().chain(shown.unwrap_or_default()).collect();
    let desired = basis.inputs.guest.as_ref().ok();
    let desired = desired.map(|guest| names::record_names(&cr, &identity.name, guest.api_server_is_routed));
    let desired = desired.unwrap_or_default();
    let possible = [true, false].map(|routed| names::record_names(&cr, &identity.name, routed));
    let possible: BTreeSet<String> = possible.into_iter().flatten().collect();
    let possible = possible.into_iter();
    possible
        .filter(|name| named.contains(name) || desired.contains(name))
        .collect()
}

impl Building<'_> {
    /// Adds the step for the records, if the custom resource has any.
    pub(super) fn records(
        &mut self,
        names: &[&str],
        endpoint: Option<String>,
        early: Option<Result<String, Problem>>,
    ) -> Result<(), Stop> {
        let Self { basis, guest, .. } = *self;
        let Some(early) = early else {
            return Ok(());
        };
        let suffix = endpoint_suffix(basis.region.partition());
        let mut desired = Records {
            slot: Slot::records(&guest.zone_account, "", names),
            target: endpoint.clone().unwrap_or_default(),
            endpoint_suffix: suffix,
        };
        let zone = match (early, &endpoint) {
            (Ok(zone), _) => zone,
            (Err(_), Some(_)) => zone::find(basis, guest, &self.recorded, names, Some(&desired))?,
            (Err(problem), None) => return Err(problem.into()),
        };
        self.recorded.zone_id = Some(zone.clone());
        desired.slot = Slot::records(&guest.zone_account, &zone, names);
        let step = match &endpoint {
            Some(_) => ensure_present(&desired, basis.facts.read(Kind::Records, &desired.slot)?),
            None => Step::needs(Kind::Records, desired.slot, "the endpoint"),
        };
        self.decision.steps.push(step);
        match endpoint {
            Some(endpoint) => self.release_unwanted(names, &zone, endpoint),
            None => Ok(()),
        }
    }

    /// Adds the step that deletes the records that the custom resource had and is to have no longer. Each stays
    /// recorded until it is known to be gone, or somebody else's.
    fn release_unwanted(&mut self, desired: &[&str], zone: &str, endpoint: String) -> Result<(), Stop> {
        let Self { basis, guest, .. } = *self;
        let had = &self.recorded.record_names;
        let unwanted: Vec<&str> = had
            .iter()
            .map(String::as_str)
            .filter(|name| !desired.contains(name))
            .collect();
        if unwanted.is_empty() {
            return Ok(());
        }
        let released = ReleasedRecords {
            slot: Slot::records(&guest.zone_account, zone, &unwanted),
            endpoint_names: vec![endpoint],
            endpoint_ids: self.recorded.endpoint_id.iter().cloned().collect(),
        };
        let step = ensure_absent(&released, basis.facts.read(Kind::Records, &released.slot)?);
        if step.gone() || step.left() {
            self.recorded.record_names = desired.iter().map(ToString::to_string).collect();
        }
        self.decision.steps.push(step);
        Ok(())
    }
}
