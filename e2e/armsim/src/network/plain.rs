//! Resources that others refer to and whose own rules nobody needs: kept and shown as given, with who refers to them, and
//! not deleted while somebody does.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::kind::Call;
use crate::engine::preset::Pace;
use crate::engine::resource::Resource;

use super::reference::{not_in_use, referring, users};
use super::shape::{ids, only_ids, properties, show, tracked};
use super::subnet;
use super::write::resource_guid;
use super::written::{About, Plan, Put, Written};

/// A type without rules of its own.
pub(crate) struct Plain {
    about: About,
    /// What it is called in a refusal, and that refusal's code.
    in_use: (&'static str, &'static str),
    /// Whether it shows the subnets that refer to it.
    shows_subnets: bool,
    /// Lists of references that it has itself.
    lists: &'static [&'static str],
    /// Whether connections have a time after which they are idle.
    idles: bool,
}

/// Minutes without traffic after which a connection is dropped, unless the body sets another number.
const IDLE_MINUTES: u8 = 4;

const fn about(resource_type: &'static str, noun: &'static str, create: Pace) -> About {
    About {
        resource_type,
        first_version: "2015-05-01-preview",
        noun,
        create,
        update: Pace::AT_ONCE,
        delete: Pace::new(10.0, 10),
    }
}

/// Microsoft.Network/natGateways.
pub(crate) static NAT_GATEWAYS: Plain = Plain {
    about: about("Microsoft.Network/natGateways", "NatGateway", Pace::new(10.0, 10)),
    in_use: ("NAT gateway", "InUseNatGatewayCannotBeDeleted"),
    shows_subnets: true,
    lists: &["publicIpAddresses", "publicIpPrefixes"],
    idles: true,
};

/// Microsoft.Network/applicationSecurityGroups.
pub(crate) static APPLICATION_SECURITY_GROUPS: Plain = Plain {
    about: about(
        "Microsoft.Network/applicationSecurityGroups",
        "ApplicationSecurityGroup",
        Pace::AT_ONCE,
    ),
    in_use: (
        "Application security group",
        "InUseApplicationSecurityGroupCannotBeDeleted",
    ),
    shows_subnets: false,
    lists: &[],
    idles: false,
};

impl Written for Plain {
    fn about(&self) -> &About {
        &self.about
    }

    fn plan(&self, cx: &mut Context<'_>, put: &Put<'_>) -> Result<Plan, ArmError> {
        let mut body = tracked(put.location, put.given);
        if let Some(sku) = put.given.get("sku") {
            body["sku"] = sku.clone();
        }
        let mut kept = properties(put.given, &["subnets"]);
        self.lists.iter().for_each(|list| only_ids(&mut kept, list));
        if self.idles {
            kept.entry("idleTimeoutInMinutes").or_insert(json!(IDLE_MINUTES));
        }
        kept.insert("resourceGuid".to_owned(), resource_guid(cx, put.id));
        body["properties"] = json!(kept);
        Ok(Plan::new(body))
    }

    fn may_go(&self, cx: &Context<'_>, _call: &Call<'_>, found: &Resource) -> Result<(), ArmError> {
        let (what, code) = self.in_use;
        not_in_use(code, what, &found.id, &users(cx, &found.id))
    }

    fn show(&self, cx: &Context<'_>, resource: &Resource, shown: &mut Value) {
        if self.shows_subnets {
            show(shown, "subnets", ids(referring(cx, &resource.id, subnet::TYPE)));
        }
    }
}
