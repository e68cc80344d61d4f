//! A GET shows the last accepted write: what could be set is as it was sent, what was left out is gone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::body::View;
use super::call::{Got, Sent};
use super::cloud::Mode;
use super::run::Outcome;
use super::step::What;
use super::view::text;

/// What was written last, by id in lower case. Zones and links are written by operations and not in here.
#[derive(Clone, Default)]
pub struct Written {
    last: BTreeMap<String, (What, Value)>,
    /// What somebody may delete, with all that is in it.
    doomed: BTreeSet<String>,
}

impl Written {
    /// Takes note of an answer.
    pub fn answered(&mut self, what: What, sent: &Sent, got: &Got) {
        if !got.is_accepted() || got.status == 204 {
            return;
        }
        let id = sent.path.to_ascii_lowercase();
        match sent.method {
            "DELETE" => {
                self.doomed.insert(id);
            }
            "PATCH" if !sent.body["tags"].is_null() => {
                if let Some((_, written)) = self.last.get_mut(&id) {
                    written["tags"] = sent.body["tags"].clone();
                }
            }
            "PATCH" if what == What::Record => {
                if let Some((_, written)) = self.last.get_mut(&id) {
                    written["ttl"] = sent.body["properties"]["ttl"].clone();
                    written["metadata"] = sent.body["properties"]["metadata"].clone();
                }
            }
            "PUT" if !matches!(what, What::Zone | What::Link | What::Connection | What::ZoneGroup) => {
                if what == What::Vnet {
                    self.replaced_subnets(&id, &sent.body);
                }
                self.last.insert(id, (what, settable(what, &sent.body)));
            }
            _ => {}
        }
    }

    /// A VNet's body holds all of its subnets.
    fn replaced_subnets(&mut self, vnet: &str, body: &Value) {
        let prefix = format!("{vnet}/subnets/");
        self.last.retain(|id, _| !id.starts_with(&prefix));
        for subnet in body["properties"]["subnets"].as_array().into_iter().flatten() {
            let id = format!("{prefix}{}", text(&subnet["name"]));
            self.last.insert(id, (What::Subnet, settable(What::Subnet, subnet)));
        }
    }

    /// Somebody changed it behind everybody's back.
    pub fn forget(&mut self, id: &str) {
        self.doomed.insert(id.to_owned());
        let prefix = format!("{id}/");
        self.last.retain(|known, _| known != id && !known.starts_with(&prefix));
    }

    /// Whether somebody may have deleted it.
    pub fn is_doomed(&self, id: &str) -> bool {
        let above = |gone: &String| {
            id.strip_prefix(gone.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.doomed.iter().any(above)
    }

    pub fn check(&mut self, view: &View, mode: Mode) -> Outcome {
        let mut last = std::mem::take(&mut self.last);
        last.retain(|id, _| view.contains_key(id) || !(mode.drift || self.is_doomed(id)));
        self.last = last;
        for (id, (what, written)) in &self.last {
            let Some(shown) = view.get(id) else {
                return Err(format!("{id} was written and is not there"));
            };
            let shown = settable(*what, shown);
            if shown != *written {
                return Err(format!("{id} shows {shown}, written was {written}"));
            }
        }
        Ok(())
    }
}

fn names(list: &Value) -> Vec<&Value> {
    list.as_array()
        .into_iter()
        .flatten()
        .map(|item| &item["name"])
        .collect()
}

fn ids(list: &Value, path: &str) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .map(|item| text(item.pointer(path).unwrap_or(&Value::Null)))
        .collect()
}

fn or(value: &Value, default: Value) -> Value {
    if value.is_null() { default } else { value.clone() }
}

/// What a caller can set, in one form for what is sent and for what is shown.
pub fn settable(what: What, body: &Value) -> Value {
    let properties = &body["properties"];
    let mut set = match what {
        What::Vnet => json!({"space": properties["addressSpace"]["addressPrefixes"]}),
        What::Subnet => json!({
            "prefix": properties["addressPrefix"],
            "endpoints": or(&properties["privateEndpointNetworkPolicies"], json!("Disabled")),
            "services": or(&properties["privateLinkServiceNetworkPolicies"], json!("Enabled")),
            "security": text(&properties["networkSecurityGroup"]["id"]),
            "delegations": names(&properties["delegations"]),
        }),
        What::Balancer => json!({
            "sku": body["sku"]["name"],
            "frontends": names(&properties["frontendIPConfigurations"]),
            "subnets": ids(&properties["frontendIPConfigurations"], "/properties/subnet/id"),
            "pools": names(&properties["backendAddressPools"]),
        }),
        What::Service => json!({
            "visibility": properties["visibility"],
            "autoApproval": properties["autoApproval"],
            "fqdns": or(&properties["fqdns"], json!([])),
            "proxy": or(&properties["enableProxyProtocol"], json!(false)),
            "configurations": names(&properties["ipConfigurations"]),
            "subnets": ids(&properties["ipConfigurations"], "/properties/subnet/id"),
            "frontends": ids(&properties["loadBalancerFrontendIpConfigurations"], "/id"),
        }),
        What::Endpoint => json!({
            "subnet": text(&properties["subnet"]["id"]),
            "interface": or(&properties["customNetworkInterfaceName"], json!("")),
            "manual": names(&properties["manualPrivateLinkServiceConnections"]),
            "automatic": names(&properties["privateLinkServiceConnections"]),
        }),
        What::Link => json!({"vnet": text(&properties["virtualNetwork"]["id"])}),
        What::Record => {
            return json!({
                "ttl": properties["ttl"],
                "metadata": or(&properties["metadata"], json!({})),
                "records": [or(&properties["aRecords"], json!([])), properties["cnameRecord"], or(&properties["txtRecords"], json!([]))],
            });
        }
        _ => json!({}),
    };
    if what != What::Subnet {
        set["tags"] = or(&body["tags"], json!({}));
    }
    set
}
