//! AWS's real answers with what it may add to them: namespaces, elements that nobody knows yet, another order.

use std::collections::BTreeMap;

use super::many::{Many, entry};
use super::*;

/// A whole life with sessions of a role. Returns the numbers of its calls.
async fn calls_of_a_life(is_rewritten: bool) -> BTreeMap<String, usize> {
    let mut life = Many::new(&entry()).life;
    if is_rewritten {
        life.aws.rewrite_answers();
    }
    let empty = life.remains();
    life.until_available().await;
    assert!(life.is_reachable());
    life.stays_available_for(Duration::from_secs(3_600)).await;
    life.deleted().await;
    assert_eq!(life.remains(), empty);
    let mut calls = BTreeMap::new();
    for entry in life.aws.journal() {
        *calls.entry(entry.path).or_default() += 1;
    }
    calls
}

#[tokio::test(start_paused = true)]
async fn answers_in_another_form_cost_the_same_calls() {
    let calls = calls_of_a_life(false).await;
    assert!(calls.len() > 15, "{calls:?}");
    assert_eq!(calls_of_a_life(true).await, calls);
}
