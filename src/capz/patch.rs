//! A change of entries as one guarded JSON patch: it holds only for the AzureCluster that was read, and touches only
//! single entries.
//!
//! Not server-side apply: that cannot remove what CAPZ or Helm wrote by Update, and might create a subnet. Not a merge
//! patch: that replaces the whole list.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::entry::{Change, DesiredEntry, Field, Position};
use super::ledger::Ledger;
use crate::api::capi::{AzureCluster, Connection};
use crate::api::markers::capz::LEDGER;

/// An annotation with its new value; none removes it.
pub type Annotation = (&'static str, Option<String>);

/// The patch of an AzureCluster that makes these changes of entries and annotations and, where it is given, writes the
/// ledger.
pub fn patch(cluster: &AzureCluster, changes: &[Change], ledger: Option<&Ledger>, annotations: &[Annotation]) -> Patch {
    let mut operations = vec![test(
        &["metadata", "resourceVersion"],
        json!(cluster.resource_version()),
    )];
    let mut removed: Vec<Position> = Vec::new();
    let mut added: Vec<(usize, &DesiredEntry)> = Vec::new();
    for change in changes {
        match change {
            Change::Add { subnet, entry } => added.push((*subnet, entry)),
            Change::Repair { at, entry, fields } => operations.extend(repair(cluster, *at, entry, fields)),
            Change::Remove { at, name } => {
                operations.push(test_entry(*at, "name", json!(name)));
                removed.push(*at);
            }
        }
    }
    // The last first, so that each position is still that of its entry.
    removed.sort_unstable_by(|a, b| b.cmp(a));
    operations.extend(removed.into_iter().map(|at| remove(&in_entry(at, &[]))));
    operations.extend(add_all(cluster, &added));
    let ledger = ledger.map(|ledger| (LEDGER, Some(ledger.text())));
    let annotations: Vec<Annotation> = annotations.iter().cloned().chain(ledger).collect();
    operations.extend(annotate(cluster, annotations));
    Patch(operations)
}

/// The patch by which a person can remove an entry; it fails if another one is at its position by then.
pub fn removal(at: Position, name: &str) -> Patch {
    Patch(vec![test_entry(at, "name", json!(name)), remove(&in_entry(at, &[]))])
}

/// The entry as it is added.
fn body(entry: &DesiredEntry) -> Value {
    let mut body = json!({"name": entry.name, "manualApproval": entry.request_message.is_some(),
        "privateLinkServiceConnections": connections(entry)});
    if let Some(location) = &entry.location {
        body["location"] = json!(location);
    }
    body
}

fn connections(entry: &DesiredEntry) -> Value {
    let mut connection = json!({"name": entry.connection, "privateLinkServiceID": entry.service.to_string()});
    if let Some(message) = &entry.request_message {
        connection["requestMessage"] = json!(message);
    }
    json!([connection])
}

fn repair(cluster: &AzureCluster, at: Position, entry: &DesiredEntry, fields: &[Field]) -> Vec<PatchOperation> {
    let mut operations = vec![test_entry(at, "name", json!(entry.name))];
    for field in fields {
        let found = &cluster.spec.network_spec.subnets[at.subnet].entries()[at.entry];
        if let (Field::Connections, [only]) = (field, found.connections()) {
            operations.extend(reconnect(at, entry, only));
            continue;
        }
        let value = match field {
            Field::Location => json!(entry.location),
            Field::ManualApproval => json!(entry.request_message.is_some()),
            Field::Connections => connections(entry),
        };
        operations.push(add(&in_entry(at, &[field.as_str()]), value));
    }
    operations
}

/// Sets what is desired of the only connection of an entry; all else of it is somebody else's.
fn reconnect(at: Position, entry: &DesiredEntry, found: &Connection) -> Vec<PatchOperation> {
    let path = |field| in_entry(at, &[Field::Connections.as_str(), "0", field]);
    let mut operations = vec![
        add(&path("name"), json!(entry.connection)),
        add(&path("privateLinkServiceID"), json!(entry.service.to_string())),
    ];
    match (&entry.request_message, &found.request_message) {
        (Some(message), _) => operations.push(add(&path("requestMessage"), json!(message))),
        (None, Some(_)) => operations.push(remove(&path("requestMessage"))),
        (None, None) => {}
    }
    operations
}

fn add_all(cluster: &AzureCluster, added: &[(usize, &DesiredEntry)]) -> Vec<PatchOperation> {
    let mut operations = Vec::new();
    let mut has_list: Vec<usize> = Vec::new();
    for (subnet, entry) in added {
        let found = &cluster.spec.network_spec.subnets[*subnet];
        if !has_list.contains(subnet) {
            has_list.push(*subnet);
            operations.push(test(&in_subnet(*subnet, &["name"]), json!(found.name)));
            if found.private_endpoints.is_none() {
                operations.push(add(&in_subnet(*subnet, &["privateEndpoints"]), json!([])));
            }
        }
        operations.push(add(&in_subnet(*subnet, &["privateEndpoints", "-"]), body(entry)));
    }
    operations
}

fn annotate(cluster: &AzureCluster, annotations: Vec<Annotation>) -> Vec<PatchOperation> {
    let mut operations = Vec::new();
    if cluster.metadata.annotations.is_none() && !annotations.is_empty() {
        operations.push(add(&["metadata", "annotations"], json!({})));
    }
    for (name, value) in annotations {
        let path = ["metadata", "annotations", name];
        match value {
            Some(value) => operations.push(add(&path, json!(value))),
            None if cluster.annotations().contains_key(name) => operations.push(remove(&path)),
            None => {}
        }
    }
    operations
}

fn in_subnet(subnet: usize, more: &[&str]) -> Vec<String> {
    let begin = ["spec", "networkSpec", "subnets"].map(str::to_owned).into_iter();
    let more = more.iter().map(|one| (*one).to_owned());
    begin.chain([subnet.to_string()]).chain(more).collect()
}

fn in_entry(at: Position, more: &[&str]) -> Vec<String> {
    let mut tokens = in_subnet(at.subnet, &["privateEndpoints"]);
    tokens.push(at.entry.to_string());
    tokens.extend(more.iter().map(|one| (*one).to_owned()));
    tokens
}

fn test_entry(at: Position, field: &str, value: Value) -> PatchOperation {
    test(&in_entry(at, &[field]), value)
}

fn path(tokens: &[impl AsRef<str>]) -> PointerBuf {
    PointerBuf::from_tokens(tokens.iter().map(AsRef::as_ref))
}

/// The operation that fails unless this value is there.
pub(super) fn test(tokens: &[impl AsRef<str>], value: Value) -> PatchOperation {
    let path = path(tokens);
    PatchOperation::Test(TestOperation { path, value })
}

/// The operation that sets a value, or adds an item to a list.
pub(super) fn add(tokens: &[impl AsRef<str>], value: Value) -> PatchOperation {
    let path = path(tokens);
    PatchOperation::Add(AddOperation { path, value })
}

/// The operation that sets a value that is there.
pub(super) fn replace(tokens: &[impl AsRef<str>], value: Value) -> PatchOperation {
    let path = path(tokens);
    PatchOperation::Replace(ReplaceOperation { path, value })
}

/// The operation that removes a value or an item.
pub(super) fn remove(tokens: &[impl AsRef<str>]) -> PatchOperation {
    let path = path(tokens);
    PatchOperation::Remove(RemoveOperation { path })
}

/// The merge patch that adds a finalizer to an object, or removes it, only while the object is as it was read.
pub fn finalizer(object: &impl ResourceExt, name: &str, is_held: bool) -> Value {
    let others = object.finalizers().iter().map(String::as_str);
    let others = others.filter(|other| *other != name);
    let all: Vec<&str> = others.chain(is_held.then_some(name)).collect();
    json!({"metadata": {"finalizers": all, "resourceVersion": object.resource_version()}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::markers::capz::API_SERVER_ADDRESS;
    use crate::capz::ledger::Holder;
    use crate::capz::samples::{Sample, entry, management, workload};

    fn patched(sample: &Sample, changes: &[Change], ledger: Option<&Ledger>) -> Value {
        let mut object = sample.0.clone();
        json_patch::patch(&mut object, &patch(&sample.cluster(), changes, ledger, &[])).unwrap();
        object
    }

    fn desired(name: &str) -> DesiredEntry {
        let links = crate::capz::links::desired(&workload(name).cluster(), &management().cluster());
        links.entries.into_iter().next().unwrap()
    }

    #[test]
    fn first_entry_and_first_annotation_are_added() {
        let mut sample = management();
        sample.0["metadata"].as_object_mut().unwrap().remove("annotations");
        let mut ledger = Ledger::default();
        ledger.record(&desired("a").name, Holder::of(&workload("a").cluster()));
        let changes = [Change::Add {
            subnet: 0,
            entry: desired("a"),
        }];
        let object = patched(&sample, &changes, Some(&ledger));
        assert_eq!(
            object["spec"]["networkSpec"]["subnets"][0]["privateEndpoints"],
            json!([entry("a")])
        );
        assert_eq!(object["metadata"]["annotations"], json!({LEDGER: ledger.text()}));
    }

    #[test]
    fn only_what_changes_is_touched() {
        let theirs = json!({"name": "theirs", "customNetworkInterfaceName": "n", "unknown": {"a": [1]}});
        let mut mine = entry("b");
        mine["location"] = json!("eastus");
        mine["privateIPAddresses"] = json!(["10.0.0.9"]);
        let sample = management().entries(json!([entry("a"), theirs, mine, entry("c")]));
        let position = |entry| Position { subnet: 0, entry };
        let name = |which: &str| desired(which).name;
        let changes = [
            Change::Remove {
                at: position(0),
                name: name("a"),
            },
            Change::Repair {
                at: position(2),
                entry: desired("b"),
                fields: vec![Field::Location],
            },
            Change::Remove {
                at: position(3),
                name: name("c"),
            },
            Change::Add {
                subnet: 0,
                entry: desired("d"),
            },
        ];
        let object = patched(&sample, &changes, None);
        let mut expected = sample.0.clone();
        mine["location"] = json!("westeurope");
        expected["spec"]["networkSpec"]["subnets"][0]["privateEndpoints"] = json!([theirs, mine, entry("d")]);
        assert_eq!(object, expected);
    }

    #[test]
    fn fields_of_others_in_a_connection_stay() {
        let mut drifted = entry("a");
        drifted["privateLinkServiceConnections"][0] = json!({"name": "x", "privateLinkServiceID": "/y",
            "requestMessage": "please", "groupIDs": ["g"]});
        let sample = management().entries(json!([drifted]));
        let at = Position { subnet: 0, entry: 0 };
        let fields = vec![Field::Connections];
        let change = Change::Repair {
            at,
            entry: desired("a"),
            fields,
        };
        let object = patched(&sample, &[change], None);
        let mut expected = entry("a");
        expected["privateLinkServiceConnections"][0]["groupIDs"] = json!(["g"]);
        assert_eq!(
            object["spec"]["networkSpec"]["subnets"][0]["privateEndpoints"],
            json!([expected])
        );
    }

    #[test]
    fn annotation_is_set_or_removed() {
        let set = [(LEDGER, Some("x".to_owned())), ("a/b", None)];
        let sample = management().with("/metadata/annotations", json!({"a/b": "old", "theirs": "kept"}));
        let mut object = sample.0.clone();
        json_patch::patch(&mut object, &patch(&sample.cluster(), &[], None, &set)).unwrap();
        assert_eq!(
            object["metadata"]["annotations"],
            json!({"theirs": "kept", LEDGER: "x"})
        );
    }

    #[test]
    fn first_address_changes_nothing_else() {
        let sample = workload("wc").entries(json!([entry("a")]));
        let set = [(API_SERVER_ADDRESS, Some("10.10.10.10".to_owned()))];
        let mut object = sample.0.clone();
        json_patch::patch(&mut object, &patch(&sample.cluster(), &[], None, &set)).unwrap();
        let expected = sample.with("/metadata/annotations", json!({API_SERVER_ADDRESS: "10.10.10.10"}));
        assert_eq!(object, expected.0);
    }

    #[test]
    fn patch_fails_on_another_state_than_the_one_read() {
        let sample = management().entries(json!([entry("a"), entry("b")]));
        let at = Position { subnet: 0, entry: 1 };
        let change = Change::Remove {
            at,
            name: desired("b").name,
        };
        let patch = patch(&sample.cluster(), &[change], None, &[]);
        let later = sample.clone().with("/metadata/resourceVersion", json!("101"));
        let mut others = [later, sample.entries(json!([entry("b"), entry("a")]))].map(|sample| sample.0);
        for other in &mut others {
            assert!(json_patch::patch(other, &patch).is_err());
        }
    }
}
