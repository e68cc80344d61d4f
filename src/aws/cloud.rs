//! AWS as a cloud of the engine.

use std::time::Duration;

use hyperlink_engine::cloud::{self, Cloud, Key, ResourceKind};
use hyperlink_engine::kind_rules::KindRules;
use hyperlink_engine::resource::{self, Progress};
use serde_json::Value;

use crate::api::error::AwsError;
use crate::body::{state, text};
use crate::kinds::{Kind, ListScope, endpoint_service, vpc_endpoint};
use crate::role_arn::RoleArn;
use crate::slot::{Scope, Slot};

/// Amazon Web Services.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Aws;

/// What was observed of one resource.
pub type Observed = resource::Observed<Aws>;

/// All resources of one kind in an account and region.
#[derive(Debug)]
pub struct AccountList {
    /// The kind.
    pub kind: Kind,
    /// The account and region.
    pub scope: Scope,
}

impl cloud::List<Slot> for AccountList {
    fn address(&self) -> String {
        let Scope { account, region, role } = &self.scope;
        let role = role.as_ref().map(RoleArn::as_str).unwrap_or_default();
        format!("{account} {region} {} {role}", self.kind.label())
    }

    fn shows(&self, slot: &Slot) -> bool {
        slot.kind() == self.kind && *slot.scope() == self.scope
    }
}

/// AWS has no operations that can be asked about: the resource itself shows how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoOperation {}

impl Cloud for Aws {
    type Kind = Kind;
    type Key = Slot;
    type Error = AwsError;
    type OperationId = NoOperation;
    type ListScope = ListScope;
    type List = AccountList;

    const NAME: &'static str = "AWS";
    const PROGRESS_FIELD: &'static str = "State";
    /// No body of AWS's has such a field: what changes is compared.
    const VERSION_FIELD: &'static str = "Version";
    /// The rows of the shortest page that is asked for.
    const PAGE: usize = 100;
    /// How long after a read that did not find a resource a second one has to confirm that: describe calls, by id or by
    /// filter, may be behind.
    ///
    /// Source: <https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html>
    const MISSED: Duration = Duration::from_secs(10);
    /// How long reads have to find nothing until a resource is gone for certain that no read has ever shown: as long as
    /// a create may be under way, and then be hidden from describe calls, a minute each.
    ///
    /// Source: <https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html>
    const GONE_FOR: Duration = Duration::from_secs(120);
    const LOST_WRITES_SHOW_LATE: bool = true;

    fn state(body: &Value) -> Option<&str> {
        Some(text(body, "State")).filter(|state| !state.is_empty())
    }

    /// That of all that is shown: of several endpoints a decision may be about any.
    fn progress(body: &Value) -> Progress {
        let first = progress_of(&state(body));
        let is_changing =
            |endpoint: &Value| matches!(Self::progress(endpoint), Progress::InProgress | Progress::Deleting);
        match first {
            Progress::Ready | Progress::Failed if vpc_endpoint::candidates(body).iter().any(is_changing) => {
                Progress::InProgress
            }
            first => first,
        }
    }

    /// Any that is shown may have.
    fn failed(body: &Value) -> Vec<&str> {
        let failed = vpc_endpoint::all_shown(body).filter(|one| progress_of(&state(one)) == Progress::Failed);
        failed.map(Self::instance).collect()
    }

    /// The id that AWS gave.
    fn instance(body: &Value) -> &str {
        text(body, "Id")
    }

    fn version(_: &Value) -> Option<&str> {
        None
    }

    fn key_of(row: &Value) -> Option<Slot> {
        endpoint_service::slot_of(row)
    }

    fn kind_of(slot: &Slot) -> Option<Kind> {
        Some(slot.kind())
    }

    fn list(kind: Kind, slot: &Slot, ListScope::Account: ListScope) -> Option<AccountList> {
        Some(AccountList {
            kind,
            scope: slot.scope().clone(),
        })
    }
}

/// A state that is not known is one of somebody at work.
fn progress_of(state: &str) -> Progress {
    match state {
        "" | "available" | "active" | "active_impaired" => Progress::Ready,
        "failed" | "rejected" | "expired" => Progress::Failed,
        "deleting" => Progress::Deleting,
        _ => Progress::InProgress,
    }
}

impl ResourceKind<Aws> for Kind {
    fn label(self) -> &'static str {
        Kind::label(self)
    }

    fn rules(self) -> &'static KindRules<Aws> {
        Kind::rules(self)
    }
}

/// The id that AWS gave the resource, or what names it if AWS gives none: for a person.
pub fn shown_id(slot: &Slot, body: Option<&Value>) -> String {
    let id = body.map(Aws::instance).filter(|id| !id.is_empty());
    id.map_or_else(|| Key::name(slot).to_owned(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("", Progress::Ready)]
    #[case("Available", Progress::Ready)]
    #[case("active_impaired", Progress::Ready)]
    #[case("provisioning", Progress::InProgress)]
    #[case("pendingAcceptance", Progress::InProgress)]
    #[case("PendingAcceptance", Progress::InProgress)]
    #[case("Partial", Progress::InProgress)]
    #[case("somethingNew", Progress::InProgress)]
    #[case("Rejected", Progress::Failed)]
    #[case("expired", Progress::Failed)]
    #[case("Deleting", Progress::Deleting)]
    fn state_is_read_in_any_case(#[case] state: &str, #[case] progress: Progress) {
        assert_eq!(Aws::progress(&json!({"State": state})), progress);
    }
}
