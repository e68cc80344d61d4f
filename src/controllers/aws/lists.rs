//! What lists of AWS show to a decision, beside those of the inventory: nothing. Data only.

use crate::aws::cloud::Aws;
use crate::controllers::cloud::{ListFacts, ServedCloud, ShownList};

/// A list that a decision needs to know: there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListNeed {}

/// What lists have shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lists;

impl ServedCloud for Aws {
    type ListNeed = ListNeed;
    type ListFacts = Lists;

    fn is_same(id: &str, other: &str) -> bool {
        id == other
    }
}

impl ListFacts<Aws> for Lists {
    fn forget_unread(&mut self) {}

    fn forget_changed(&mut self) {}

    fn shown(&self) -> Vec<ShownList<Aws>> {
        Vec::new()
    }
}
