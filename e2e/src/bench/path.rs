//! The critical path of a phase: a chain of changes in Azure, each of which had to end before the next could begin.
//! These functions only compute.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::test_env::Call;

/// One change in Azure, from the write to the read that found it complete.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The kind of resource and its name.
    pub what: String,
    /// When Azure accepted the write.
    pub began: Timestamp,
    /// When the resource was read last.
    pub ended: Timestamp,
}

impl Change {
    /// How long the change took, in seconds.
    pub fn seconds(&self) -> f64 {
        seconds(self.began, self.ended)
    }
}

/// The changes that these calls made, in the order in which they began.
///
/// Hyperlink reads a changing resource until it is ready, and then not again for minutes. So the last read is the one
/// that found it ready.
pub fn changes(calls: &[Call]) -> Vec<Change> {
    let mut found: BTreeMap<String, Change> = BTreeMap::new();
    for call in calls {
        let key = call.path.to_lowercase();
        if let Some(change) = found.get_mut(&key) {
            change.ended = call.time;
        } else if call.is_write() && call.status < 300 {
            let (began, ended) = (call.time, call.time);
            let what = resource(&call.path);
            found.insert(key, Change { what, began, ended });
        }
    }
    let mut changes: Vec<Change> = found.into_values().collect();
    changes.sort_by_key(|change| change.began);
    changes
}

fn resource(path: &str) -> String {
    let mut parts = path.rsplit('/');
    let (name, kind) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let kind = match kind.to_lowercase().as_str() {
        "subnets" => "subnet",
        "privatelinkservices" => "link service",
        "privateendpointconnections" => "connection",
        "privateendpoints" => "endpoint",
        "privatednszones" => "zone",
        "virtualnetworklinks" => "zone link",
        "a" => "record",
        _ => kind,
    };
    format!("{kind} {name}")
}

/// How the time between `from` and `to` was spent, in order: the changes that ended last, and time without a change in
/// Azure. The seconds add up to the whole.
pub fn critical(changes: &[Change], from: Timestamp, to: Timestamp) -> Vec<(String, f64)> {
    let mut path = Vec::new();
    let mut at = to;
    let mut left: Vec<&Change> = changes.iter().filter(|change| change.began >= from).collect();
    while let Some(last) = left
        .iter()
        .filter(|change| change.ended <= at)
        .max_by_key(|change| (change.ended, change.began))
        .copied()
    {
        path.push((NO_CHANGE.to_owned(), seconds(last.ended, at)));
        path.push((last.what.clone(), last.seconds()));
        at = last.began;
        left.retain(|change| change.what != last.what);
    }
    path.push((NO_CHANGE.to_owned(), seconds(from, at)));
    path.reverse();
    path
}

/// Time in which no change was in progress: Kubernetes, reads, Hyperlink's own work.
const NO_CHANGE: &str = "(no change)";

/// The path in one line. Parts of less than a tenth of a second are added up.
pub fn line(path: &[(String, f64)]) -> String {
    let short: f64 = path.iter().map(|(_, seconds)| seconds).filter(|s| **s < 0.1).sum();
    let mut parts: Vec<String> = path
        .iter()
        .filter(|(_, seconds)| *seconds >= 0.1)
        .map(|(what, seconds)| format!("{what} {seconds:.1} s"))
        .collect();
    parts.push(format!("all else {short:.1} s"));
    parts.join(" → ")
}

/// The seconds from one time to another; a negative span counts as 0.
pub fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn call(second: i64, method: &str, path: &str, status: u16) -> Call {
        serde_json::from_value(serde_json::json!({
            "seq": second, "time": at(second), "method": method, "path": path, "status": status, "changed": false,
            "resource_kind": "",
        }))
        .unwrap()
    }

    #[test]
    fn change_lasts_from_the_write_to_the_last_read() {
        let calls = [
            call(0, "GET", "/g/privateEndpoints/pe", 404),
            call(1, "PUT", "/g/privateEndpoints/pe", 201),
            call(2, "PUT", "/g/privateDnsZones/z", 409),
            call(11, "GET", "/g/PrivateEndpoints/pe", 200),
            call(31, "GET", "/g/privateEndpoints/pe", 200),
        ];
        let [only] = changes(&calls).try_into().unwrap();
        assert_eq!((only.what.as_str(), only.seconds()), ("endpoint pe", 30.0));
    }

    #[test]
    fn critical_path_follows_the_last_end_and_adds_up() {
        let change = |what: &str, began, ended| Change {
            what: what.to_owned(),
            began: at(began),
            ended: at(ended),
        };
        let changes = [
            change("subnet", 1, 4),
            change("zone", 1, 31),
            change("service", 4, 18),
            change("endpoint", 18, 50),
            change("link", 31, 61),
            change("record", 61, 61),
        ];
        let path = critical(&changes, at(0), at(63));
        let total: f64 = path.iter().map(|(_, seconds)| seconds).sum();
        assert_eq!(total, 63.0);
        assert_eq!(
            line(&path),
            "(no change) 1.0 s → zone 30.0 s → link 30.0 s → (no change) 2.0 s → all else 0.0 s"
        );
        let path = critical(&changes[..4], at(0), at(50));
        assert_eq!(
            line(&path),
            "(no change) 1.0 s → subnet 3.0 s → service 14.0 s → endpoint 32.0 s → all else 0.0 s"
        );
    }
}
