//! What holds at any time.

use std::collections::BTreeSet;

use super::run::Run;

/// How far a state is: it never returns to an earlier one.
fn rank(state: &str) -> u8 {
    match state {
        "Pending" | "pendingAcceptance" => 0,
        "pending" => 1,
        "Available" | "available" => 2,
        "rejected" | "failed" | "Failed" => 3,
        "Deleting" | "deleting" => 4,
        "deleted" => 5,
        other => panic!("unknown state {other}"),
    }
}

impl Run {
    /// What holds at any time.
    pub(super) fn check(&mut self) {
        let kept = self.kept();
        let of = |kind: &str| {
            let part = format!(":{kind}/");
            kept.iter()
                .filter(move |thing| thing["id"].as_str().unwrap().contains(&part))
        };
        let mut balancers = BTreeSet::new();
        for service in of("vpc-endpoint-service") {
            assert!(
                balancers.insert(service["load_balancers"].to_string()),
                "one service per load balancer"
            );
        }
        let mut names = BTreeSet::new();
        for group in of("security-group") {
            assert!(
                names.insert((group["vpc"].to_string(), group["name"].to_string())),
                "one group of a name"
            );
        }
        let mut addresses = BTreeSet::new();
        for interface in of("network-interface") {
            let address = (interface["subnet"].to_string(), interface["address"].to_string());
            assert!(addresses.insert(address), "one interface of an address");
            for group in interface["groups"].as_array().unwrap() {
                let id = group.as_str().unwrap();
                assert!(
                    of("security-group").any(|known| known["id"].as_str().unwrap().ends_with(id)),
                    "{id} is gone"
                );
            }
        }
        let mut listed = BTreeSet::new();
        for thing in of("vpc-endpoint").chain(of("vpc-endpoint-service")) {
            let id = thing["id"].as_str().unwrap().to_owned();
            let now = rank(thing["state"].as_str().unwrap());
            let before = self.states.insert(id.clone(), now).unwrap_or(0);
            assert!(now >= before, "{id} went back: {thing}");
            assert!(!self.gone.contains(&id), "{id} returned");
            listed.insert(id);
        }
        self.gone
            .extend(self.states.keys().filter(|id| !listed.contains(*id)).cloned());
    }
}
