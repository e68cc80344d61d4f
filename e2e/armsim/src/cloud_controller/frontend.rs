//! Frontends of a load balancer in ARM's JSON: find, add, remove. Pure.

use serde_json::{Value, json};

fn list(load_balancer: &mut Value) -> Option<&mut Vec<Value>> {
    let properties = load_balancer.get_mut("properties")?.as_object_mut()?;
    properties
        .entry("frontendIPConfigurations")
        .or_insert_with(|| json!([]))
        .as_array_mut()
}

fn is_named(frontend: &Value, name: &str) -> bool {
    frontend["name"]
        .as_str()
        .is_some_and(|found| found.eq_ignore_ascii_case(name))
}

/// The address of a frontend, once it has one.
pub(crate) fn address<'v>(load_balancer: &'v Value, name: &str) -> Option<&'v str> {
    let frontends = load_balancer["properties"]["frontendIPConfigurations"].as_array()?;
    frontends.iter().find(|frontend| is_named(frontend, name))?["properties"]["privateIPAddress"]
        .as_str()
}

/// Adds an internal frontend with a dynamic address; `false` when one of that name is there, or this is not a load balancer.
pub(crate) fn add(load_balancer: &mut Value, name: &str, subnet: &str) -> bool {
    let Some(frontends) = list(load_balancer) else {
        return false;
    };
    if frontends.iter().any(|frontend| is_named(frontend, name)) {
        return false;
    }
    frontends.push(json!({"name": name, "properties": {"privateIPAllocationMethod": "Dynamic", "subnet": {"id": subnet}}}));
    true
}

/// Removes a frontend; `false` when there is none of that name.
pub(crate) fn remove(load_balancer: &mut Value, name: &str) -> bool {
    let Some(frontends) = list(load_balancer) else {
        return false;
    };
    let before = frontends.len();
    frontends.retain(|frontend| !is_named(frontend, name));
    frontends.len() < before
}

/// The Private Link Service that a frontend carries, if any: Azure does not let such a frontend go.
pub(crate) fn link_service<'v>(
    resources: &'v [Value],
    load_balancer: &str,
    name: &str,
) -> Option<&'v str> {
    let frontend = format!("{load_balancer}/frontendIPConfigurations/{name}");
    let carries = |resource: &&Value| {
        let frontends = resource["properties"]["loadBalancerFrontendIpConfigurations"].as_array();
        frontends.is_some_and(|list| {
            list.iter().any(|reference| {
                reference["id"]
                    .as_str()
                    .is_some_and(|id| id.eq_ignore_ascii_case(&frontend))
            })
        })
    };
    resources.iter().find(carries)?["id"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frontend_is_added_once_and_removed_without_touching_others() {
        let mut balancer = json!({"id": "/lb", "properties": {"frontendIPConfigurations": [{"name": "other", "properties": {"privateIPAddress": "10.0.0.4"}}]}});
        assert!(add(&mut balancer, "aone", "/subnet"));
        assert!(!add(&mut balancer, "AONE", "/subnet"));
        assert_eq!(address(&balancer, "aone"), None);
        assert_eq!(address(&balancer, "other"), Some("10.0.0.4"));
        assert!(remove(&mut balancer, "aone"));
        assert!(!remove(&mut balancer, "aone"));
        assert_eq!(
            balancer["properties"]["frontendIPConfigurations"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
    }

    #[test]
    fn load_balancer_without_frontends_gets_its_first() {
        let mut balancer = json!({"id": "/lb", "properties": {}});
        assert!(add(&mut balancer, "aone", "/subnet"));
        assert_eq!(
            balancer["properties"]["frontendIPConfigurations"][0]["properties"]["subnet"]["id"],
            "/subnet"
        );
        assert!(!add(&mut json!("nonsense"), "aone", "/subnet"));
    }

    #[test]
    fn frontend_under_a_private_link_service_is_recognised() {
        let service = json!({"id": "/pls", "properties": {"loadBalancerFrontendIpConfigurations": [{"id": "/LB/frontendIpConfigurations/aone"}]}});
        let resources = [json!({"id": "/lb"}), service];
        assert_eq!(link_service(&resources, "/lb", "aone"), Some("/pls"));
        assert_eq!(link_service(&resources, "/lb", "atwo"), None);
    }
}
