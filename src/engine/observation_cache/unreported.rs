//! What is to be reported once about one resource.

use crate::plan::Change;

/// What this process has changed about a resource and not reported yet.
#[derive(Debug, Default)]
pub(super) struct Unreported {
    /// The change that is reported when the resource is as desired.
    change: Option<Change>,
}

impl Unreported {
    /// Notes what an accepted write changes; none if it deletes. Of several changes the first one is reported.
    pub(super) fn note(&mut self, change: Option<Change>) {
        match change {
            None => self.change = None,
            Some(change) => {
                self.change.get_or_insert(change);
            }
        }
    }

    /// The change to report, once.
    pub(super) fn take(&mut self) -> Option<Change> {
        self.change.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_of_several_changes_is_reported_once() {
        let mut unreported = Unreported::default();
        unreported.note(Some(Change::Created));
        unreported.note(Some(Change::Repaired(vec!["ttl"])));
        assert_eq!(unreported.take(), Some(Change::Created));
        assert_eq!(unreported.take(), None);
    }

    #[test]
    fn delete_leaves_nothing_to_report() {
        let mut unreported = Unreported::default();
        unreported.note(Some(Change::Created));
        unreported.note(None);
        assert_eq!(unreported.take(), None);
    }
}
