//! One object or update, and the verdict that both definitions must give on it.

use serde_json::{Value, json};

/// Which request decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    /// Replaces an object that is there.
    Update,
    /// Replaces the status of an object that is there.
    Status,
}

/// One change of an object: a JSON pointer, and the new value or its removal.
#[derive(Debug, Clone)]
pub(crate) struct Edit(String, Option<Value>);

pub(crate) fn set(pointer: &str, value: impl Into<Value>) -> Edit {
    Edit(pointer.to_owned(), Some(value.into()))
}

pub(crate) fn unset(pointer: &str) -> Edit {
    Edit(pointer.to_owned(), None)
}

#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// The situation, for the report.
    pub(crate) name: String,
    pub(crate) verb: Verb,
    /// Changes of [`full`] before the request. For a status they are written first, if there are any.
    pub(crate) before: Vec<Edit>,
    /// Changes that the request brings.
    pub(crate) edits: Vec<Edit>,
    /// The refusing field as the API server names it; `None` when the request is accepted.
    pub(crate) refused_at: Option<String>,
}

impl Case {
    pub(crate) fn new(verb: Verb, name: impl Into<String>) -> Self {
        let name = name.into();
        Case {
            name,
            verb,
            before: Vec::new(),
            edits: Vec::new(),
            refused_at: None,
        }
    }

    pub(crate) fn before(mut self, edit: Edit) -> Self {
        self.before.push(edit);
        self
    }

    pub(crate) fn edit(mut self, edit: Edit) -> Self {
        self.edits.push(edit);
        self
    }

    pub(crate) fn refused_at(mut self, field: &str) -> Self {
        self.refused_at = Some(field.to_owned());
        self
    }
}

pub(crate) fn create(name: &str) -> Case {
    Case::new(Verb::Create, name)
}

pub(crate) fn update(name: &str) -> Case {
    Case::new(Verb::Update, name)
}

pub(crate) fn status(name: &str) -> Case {
    Case::new(Verb::Status, name)
}

/// Applies the edits to `{"spec": …, "status": …}`.
pub(crate) fn apply(edits: &[Edit], object: &mut Value) {
    for Edit(pointer, value) in edits {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer has a slash");
        let parent = object.pointer_mut(parent).expect("the parent is there");
        match (parent, value) {
            (Value::Object(map), Some(value)) => drop(map.insert(key.to_owned(), value.clone())),
            (Value::Object(map), None) => drop(map.remove(key).expect("it is there to be removed")),
            (Value::Array(list), Some(value)) if key == "-" => list.push(value.clone()),
            (Value::Array(list), Some(value)) => {
                list[key.parse::<usize>().expect("an index")] = value.clone();
            }
            (parent, _) => panic!("{pointer} does not fit {parent}"),
        }
    }
}

pub(crate) const UUID: &str = "11111111-1111-4111-8111-11111111abcd";
pub(crate) const NETWORK: &str =
    "/subscriptions/11111111-1111-4111-8111-11111111abcd/resourceGroups/rg/providers/Microsoft.Network";

pub(crate) fn condition(kind: &str) -> Value {
    json!({
        "type": kind,
        "status": "True",
        "reason": "AzureSuccess",
        "message": "fine",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-08-22T10:00:00Z",
    })
}

/// A valid object with every field set.
pub(crate) fn full() -> Value {
    json!({
        "spec": {
            "loadBalancerIP": "10.224.0.42",
            "subscriptionID": UUID,
            "resourceGroupName": "rg",
            "location": "eastus",
            "natSubnetID": format!("{NETWORK}/virtualNetworks/management/subnets/nat"),
            "additionalAllowedSubscriptions": ["22222222-2222-4222-8222-222222222222"],
            "guestSubnetID": format!("{NETWORK}/virtualNetworks/guest/subnets/default"),
            "guestVNetID": format!("{NETWORK}/virtualNetworks/guest"),
            "baseDomain": "apps.azure.example.com",
        },
        "status": {
            "internalLoadBalancerID": format!("{NETWORK}/loadBalancers/internal"),
            "privateLinkServiceID": format!("{NETWORK}/privateLinkServices/pls-1"),
            "privateLinkServiceAlias":
                "pls-1.6b1f0a2c-3d4e-4f50-8a61-7b8c9d0e1f22.eastus.azure.privatelinkservice",
            "privateEndpointID": format!("{NETWORK}/privateEndpoints/private-router-pe"),
            "privateEndpointIP": "10.0.0.5",
            "privateDNSZoneID": format!("{NETWORK}/privateDnsZones/example.hypershift.local"),
            "dnsZoneName": "example.hypershift.local",
            "baseDomainDNSZoneID": format!("{NETWORK}/privateDnsZones/apps.azure.example.com"),
            "conditions": [condition("AzurePLSCreated")],
        },
    })
}
