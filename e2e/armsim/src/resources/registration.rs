//! Which resource providers a subscription has registered, and which it is about to.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What differs from "registered", by subscription and namespace in lower case.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Registrations(BTreeMap<String, Registration>);

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Registration {
    Never,
    On { from: Timestamp },
    Off { from: Timestamp },
}

fn key(subscription: &str, namespace: &str) -> String {
    format!("{subscription}/{namespace}").to_ascii_lowercase()
}

impl Registrations {
    /// The subscription has never registered the namespace.
    pub(crate) fn never(&mut self, subscription: &str, namespace: &str) {
        self.0.insert(key(subscription, namespace), Registration::Never);
    }

    /// It registers it, or gives it up; that holds `from` a moment on.
    pub(super) fn set(&mut self, subscription: &str, namespace: &str, on: bool, from: Timestamp) {
        let registration = if on {
            Registration::On { from }
        } else {
            Registration::Off { from }
        };
        self.0.insert(key(subscription, namespace), registration);
    }

    /// `registrationState`.
    pub(crate) fn state(&self, subscription: &str, namespace: &str, now: Timestamp) -> &'static str {
        match self.0.get(&key(subscription, namespace)) {
            None => "Registered",
            Some(Registration::Never) => "NotRegistered",
            Some(Registration::On { from }) if now < *from => "Registering",
            Some(Registration::On { .. }) => "Registered",
            Some(Registration::Off { from }) if now < *from => "Unregistering",
            Some(Registration::Off { .. }) => "Unregistered",
        }
    }
}
