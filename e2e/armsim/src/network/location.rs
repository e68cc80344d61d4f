//! What can be asked of a region: whether a private link service is visible by its alias.

use http::Method;
use serde_json::{Value, json};

use crate::engine::context::{Begin, Context};
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Kind, Reply, Stack};
use crate::engine::operation::{Outcome, Verb};
use crate::engine::preset::Pace;

use super::link_service;
use super::shape::{region, region_of};

/// Microsoft.Network/locations: regions, which are no resources.
pub(crate) struct Locations;

pub(crate) const TYPE: &str = "Microsoft.Network/locations";

const CHECK: Pace = Pace::new(1.0, 10);

impl Kind for Locations {
    fn resource_type(&self) -> &'static str {
        TYPE
    }

    fn first_version(&self) -> &'static str {
        "2015-05-01-preview"
    }

    fn post(&self, cx: &mut Context<'_>, call: &Call<'_>, action: &str) -> Result<Reply, ArmError> {
        if !action.eq_ignore_ascii_case("checkPrivateLinkServiceVisibility") {
            return Err(ArmError::method_not_allowed(&Method::POST));
        }
        let alias = call.body["privateLinkServiceAlias"].as_str().unwrap_or_default();
        if alias.is_empty() {
            return Err(ArmError::invalid_content("The body needs a privateLinkServiceAlias."));
        }
        let here = region(call.id.name());
        let visible = link_service::by_alias(cx, alias).is_some_and(|service| {
            region_of(&service.body) == here && link_service::is_visible(cx, service, call.id.subscription())
        });
        let operation = cx.begin(Begin {
            name: "CheckPrivateLinkServiceVisibilityOperation",
            stack: Stack::Network,
            verb: Verb::Post,
            target: &call.id,
            target_type: TYPE,
            region: &here,
            api_version: &call.api_version,
            pace: &CHECK,
            outcome: Outcome::Succeed,
            payload: json!({ "visible": visible }),
        });
        Ok(Reply::new(202).operation(&operation))
    }

    fn install(&self, _cx: &mut Context<'_>, _id: &ResourceId, _body: Value) -> Result<(), ArmError> {
        Err(ArmError::invalid_content("a region is no resource"))
    }
}
