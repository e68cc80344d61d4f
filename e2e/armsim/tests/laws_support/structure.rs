//! Laws about everything that is there at one moment, and about what may change from one moment to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::back;
use super::body::{POISON, View};
use super::cloud::{QUOTAS, SUBSCRIPTIONS};
use super::run::{Outcome, Run};
use super::view::{difference, text};

/// All laws, with what was there a step ago.
pub fn check(run: &mut Run, before: &View) -> Outcome {
    states(run)?;
    places(&run.view)?;
    addresses(&run.view)?;
    quotas(&run.view)?;
    identities(before, &run.view)?;
    etags(run, before)?;
    if run.mode.is_orderly() {
        back::references(&run.view)?;
    }
    if !run.mode.drift {
        back::sides(&run.view)?;
        back::counters(&run.view, run.mode)?;
    }
    Ok(())
}

/// A resource is in progress exactly while an operation on it runs, and no operation runs beyond its end.
fn states(run: &mut Run) -> Outcome {
    let running = run.azure.operations_in_flight(run.now);
    let mut targets = BTreeSet::new();
    for operation in &running {
        let target = operation.resource.to_ascii_lowercase();
        let dns = target.contains("/privatednszones/");
        if !targets.insert(target) && !dns && !run.mode.drift {
            return Err(format!("two operations on {}", operation.resource));
        }
        if operation
            .ends
            .as_ref()
            .is_some_and(|ends| ends.parse::<Timestamp>().unwrap() <= run.now)
        {
            return Err(format!("{operation:?} is over"));
        }
    }
    if run.mode.drift {
        return Ok(());
    }
    for (id, shown) in &run.view {
        let lags = run.mode.switches & 64 != 0 && id.contains("/subnets/")
            || run.mode.switches & 32 != 0 && id.contains("/virtualnetworklinks/");
        let state = text(&shown["properties"]["provisioningState"]);
        let in_progress = ["updating", "deleting"].contains(&state.as_str());
        let vnet = id.split_once("/subnets/").map(|(vnet, _)| vnet);
        let has_operation = targets.contains(id) || in_progress && vnet.is_some_and(|vnet| targets.contains(vnet));
        if in_progress != has_operation && !lags {
            return Err(format!("{id} is {state}, operations run on {targets:?}"));
        }
    }
    Ok(())
}

/// Nothing is without its group and its parent, or shows what a caller may not write.
fn places(view: &View) -> Outcome {
    for (id, shown) in view {
        let parts: Vec<&str> = id.split('/').collect();
        let group = parts.get(..5).map(|parts| parts.join("/")).unwrap_or_default();
        let parent = parts
            .len()
            .checked_sub(2)
            .filter(|_| parts.len() > 9)
            .map(|end| parts[..end].join("/"));
        for above in [Some(group), parent].into_iter().flatten() {
            if !view.contains_key(&above) {
                return Err(format!("{id} is there without {above}"));
            }
        }
        if shown.to_string().contains(POISON) {
            return Err(format!("{id} shows what was sent in a read-only field: {shown}"));
        }
    }
    Ok(())
}

/// Where an IP configuration is: its id, its subnet, its address.
pub fn configurations(view: &View) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    for (id, shown) in view {
        let list = match text(&shown["type"]).as_str() {
            "microsoft.network/networkinterfaces" => "ipConfigurations",
            "microsoft.network/loadbalancers" => "frontendIPConfigurations",
            _ => continue,
        };
        for item in shown["properties"][list].as_array().into_iter().flatten() {
            let properties = &item["properties"];
            let own = format!("{id}/{}/{}", list.to_ascii_lowercase(), text(&item["name"]));
            all.push((
                own,
                text(&properties["subnet"]["id"]),
                text(&properties["privateIPAddress"]),
            ));
        }
    }
    all
}

/// An address is given once, and lies in its subnet, outside of the five that are Azure's.
fn addresses(view: &View) -> Outcome {
    let mut given = BTreeMap::new();
    for (owner, subnet, address) in configurations(view) {
        let Some(known) = view.get(&subnet) else { continue };
        let prefix: ipnet::Ipv4Net = text(&known["properties"]["addressPrefix"])
            .parse()
            .map_err(|_| format!("{subnet} has no prefix"))?;
        let number = address
            .parse::<Ipv4Addr>()
            .map_err(|_| format!("{owner} has the address '{address}'"))?;
        let (first, last) = (u32::from(prefix.network()) + 4, u32::from(prefix.broadcast()) - 1);
        if !(first..=last).contains(&u32::from(number)) {
            return Err(format!("{owner} has {address} of {prefix}"));
        }
        if let Some(other) = given.insert((subnet, address.clone()), owner.clone()) {
            return Err(format!("{address} is given to {other} and {owner}"));
        }
    }
    Ok(())
}

fn quotas(view: &View) -> Outcome {
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    let mut count = |quota: &'static str, of: String, much: usize| *counts.entry((quota, of)).or_default() += much;
    for (id, shown) in view {
        let subscription = SUBSCRIPTIONS
            .iter()
            .find(|known| id.contains(**known))
            .map_or("", |known| known)
            .to_owned();
        let parent = id.rsplitn(3, '/').nth(2).unwrap_or_default().to_owned();
        let properties = &shown["properties"];
        let length = |list: &Value| list.as_array().map_or(0, Vec::len);
        match text(&shown["type"])
            .strip_prefix("microsoft.network/")
            .unwrap_or_default()
        {
            "privatelinkservices" => {
                count("pls", subscription, 1);
                count("nat_ips_per_pls", id.clone(), length(&properties["ipConfigurations"]));
                count(
                    "allowed_subscriptions",
                    format!("{id} visible"),
                    length(&properties["visibility"]["subscriptions"]),
                );
                count(
                    "allowed_subscriptions",
                    format!("{id} approved"),
                    length(&properties["autoApproval"]["subscriptions"]),
                );
                let frontend = text(&properties["loadBalancerFrontendIpConfigurations"][0]["id"]);
                count(
                    "pls_per_load_balancer",
                    frontend.rsplitn(3, '/').nth(2).unwrap_or_default().to_owned(),
                    1,
                );
            }
            "privatelinkservices/privateendpointconnections" => count("endpoints_per_pls", parent, 1),
            "privateendpoints" => {
                count("endpoints", subscription, 1);
                let subnet = text(&properties["subnet"]["id"]);
                count(
                    "endpoints_per_vnet",
                    subnet.split("/subnets/").next().unwrap_or_default().to_owned(),
                    1,
                );
            }
            "privatednszones" => count("zones", subscription, 1),
            "privatednszones/virtualnetworklinks" => count("links_per_zone", parent, 1),
            other if other.starts_with("privatednszones/") => count("record_sets_per_zone", parent, 1),
            _ => {}
        }
    }
    let over = counts
        .iter()
        .find(|((quota, _), number)| QUOTAS.iter().any(|(name, most)| name == quota && *number > most));
    over.map_or(Ok(()), |((quota, of), number)| Err(format!("{number} {quota} of {of}")))
}

/// What names a resource stays as long as it is there: the spelling of its id, its GUID, its alias.
fn identities(before: &View, after: &View) -> Outcome {
    for (id, old) in before {
        let Some(new) = after.get(id) else { continue };
        for pointer in [
            "/id",
            "/properties/resourceGuid",
            "/properties/alias",
            "/properties/linkIdentifier",
        ] {
            if old.pointer(pointer) != new.pointer(pointer) {
                return Err(format!(
                    "{pointer} of {id} was {:?} and is {:?}",
                    old.pointer(pointer),
                    new.pointer(pointer)
                ));
            }
        }
    }
    Ok(())
}

/// What one etag stands for, without etags, without what others have done, and without counters.
fn content(view: &View, unit: &str, run: &Run) -> Value {
    let prefix = format!("{unit}/");
    let shares = unit.contains("/virtualnetworks/") || unit.contains("/privatelinkservices/");
    let own = view
        .iter()
        .filter(|(id, _)| *id == unit || shares && id.starts_with(&prefix));
    let mut all: Value = own.map(|(id, shown)| (id.clone(), shown.clone())).collect();
    let lags = run.mode.switches & 64 != 0;
    for (id, shown) in all.as_object_mut().into_iter().flatten() {
        without_etags(shown);
        let properties = &mut shown["properties"];
        let dns = id.contains("/privatednszones/");
        let subnet = id.contains("/subnets/");
        for name in [
            "numberOfRecordSets",
            "numberOfVirtualNetworkLinks",
            "numberOfVirtualNetworkLinksWithRegistration",
            "virtualNetworkLinkState",
        ] {
            properties[name] = Value::Null;
        }
        if dns || subnet && lags {
            properties["provisioningState"] = Value::Null;
        }
        if subnet {
            properties["ipConfigurations"] = Value::Null;
            properties["privateEndpoints"] = Value::Null;
        }
        // They are there under their own ids.
        properties["subnets"] = Value::Null;
    }
    all
}

fn without_etags(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("etag");
            fields.values_mut().for_each(without_etags);
        }
        Value::Array(items) => items.iter_mut().for_each(without_etags),
        _ => {}
    }
}

/// An etag changes exactly when something changes; a write that was accepted may change it in any case.
fn etags(run: &Run, before: &View) -> Outcome {
    for (id, new) in &run.view {
        let Some(old) = before.get(id).filter(|old| old["etag"].is_string()) else {
            continue;
        };
        if id.contains("/subnets/") || id.contains("/privateendpointconnections/") {
            let parent = id.rsplitn(3, '/').nth(2).unwrap_or_default();
            if run.view[parent]["etag"] != new["etag"] {
                return Err(format!("{id} has an etag of its own"));
            }
            continue;
        }
        let (then, now) = (content(before, id, run), content(&run.view, id, run));
        let changed = then != now;
        let renewed = old["etag"] != new["etag"];
        if changed && !renewed {
            let what = difference(&then, &now);
            return Err(format!("{id} has changed, its etag has not: {what}"));
        }
        // An operation on a zone or link may end with a write of what was there; a lagging subnet shows no end.
        let by_operation = id.contains("/privatednszones/") || run.mode.switches & 64 != 0;
        if renewed && !changed && !run.wrote && !run.mode.drift && !by_operation {
            return Err(format!("{id} has a new etag and has not changed"));
        }
    }
    Ok(())
}

/// The resources of a subscription, for comparing runs that drew random values in different orders: every GUID is
/// replaced by the number of its first occurrence.
pub fn without_chance(view: &View, subscription: usize) -> Value {
    let own = view.iter().filter(|(id, _)| id.contains(SUBSCRIPTIONS[subscription]));
    let mut all = json!(own.map(|(_, shown)| shown).collect::<Vec<_>>());
    without_etags(&mut all);
    let text = all.to_string();
    let guid =
        regex::Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{26}\\.xx").unwrap();
    let mut guids: Vec<String> = Vec::new();
    let named = guid.replace_all(&text, |found: &regex::Captures<'_>| {
        let at = guids.iter().position(|known| *known == found[0]).unwrap_or_else(|| {
            guids.push(found[0].to_owned());
            guids.len() - 1
        });
        format!("guid-{at}")
    });
    let drawn = regex::Regex::new("\"(linkIdentifier|internalId)\":\"[^\"]*\"").unwrap();
    serde_json::from_str(&drawn.replace_all(&named, "\"$1\":\"\"")).unwrap()
}
