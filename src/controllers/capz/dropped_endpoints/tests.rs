//! The record of the management cluster, by what it has and who leads.

use serde_json::json;

use super::super::reference_lease::ReferenceLease;
use super::super::tests::{Server, context};
use super::*;
use crate::api::markers::capz::LEDGER;
use crate::capz::samples::{Sample, entry, management};

const NAME: &str = "wc-api-privatelink-privateendpoint";

/// A management cluster that records an endpoint as dropped, which its ledger has or not, with this entry.
fn recorded(is_in_ledger: bool, entries: &serde_json::Value) -> Sample {
    let ledger = if is_in_ledger {
        json!({NAME: "org-giantswarm/wc/uid-wc"})
    } else {
        json!({})
    };
    let annotations = json!({DROPPED_ENDPOINTS: json!({NAME: "2026-01-05T00:00:00Z"}).to_string(),
        LEDGER: ledger.to_string()});
    management()
        .entries(entries.clone())
        .with("/metadata/annotations", annotations)
}

/// What is written for a management cluster within some rounds.
async fn written(management: &Sample, reference: ReferenceLease) -> Vec<String> {
    let server = Server::default();
    server.put::<AzureCluster>(&management.0);
    let mut cx = context(&server, &[management]);
    cx.reference = reference;
    let rounds = tokio::time::timeout(EVERY * 3, follow(&cx)).await;
    assert!(rounds.is_err());
    server.changed()
}

#[tokio::test(start_paused = true)]
async fn endpoint_that_is_desired_again_is_forgotten() {
    let again = recorded(true, &json!([entry("wc")]));
    assert!(written(&again, ReferenceLease::free()).await.contains(&"mc".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn other_operator_that_leads_is_left_the_record() {
    let again = recorded(true, &json!([entry("wc")]));
    assert_eq!(
        written(&again, ReferenceLease::default()).await,
        <[String; 0]>::default()
    );
}

#[tokio::test(start_paused = true)]
async fn endpoint_whose_entry_is_to_be_removed_again_is_not_forgotten() {
    let brought_back = recorded(false, &json!([entry("wc")]));
    assert_eq!(
        written(&brought_back, ReferenceLease::free()).await,
        <[String; 0]>::default()
    );
}
