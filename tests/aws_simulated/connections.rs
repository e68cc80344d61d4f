//! The connections of an endpoint service that is deleted, in every state.

use std::time::Duration;

use hyperlink::aws::cloud::Aws;
use hyperlink::aws::kinds::endpoint_connections::EndpointConnections;
use hyperlink::aws::slot::Slot;
use hyperlink::engine::failure::Class;
use hyperlink::engine::plan::{Outcome, ensure_absent};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::desired::endpoint_service;
use crate::life::Path;
use crate::principals::count;
use crate::strangers::live;

const REJECT: &str = "/RejectVpcEndpointConnections";
const DELETE: &str = "/DeleteVpcEndpointServiceConfigurations";

fn connections() -> EndpointConnections {
    EndpointConnections {
        slot: Slot::endpoint_connections(&endpoint_service().owned.slot),
    }
}

impl Path {
    /// Puts the endpoint into a state, in which it stays.
    fn has_connection_in(&self, state: &str) {
        let endpoint = self.aws.resources("vpc-endpoint").remove(0);
        self.aws.change(endpoint, |body| {
            body["state"] = json!(state);
            body["rejected"] = json!(state == "rejected");
            body["next"] = Value::Null;
        });
    }

    /// Deletes the endpoint service as its controller does, for so many seconds; the outcomes of its deletion.
    async fn service_is_deleted_for(&self, seconds: u64) -> Vec<Outcome<Aws>> {
        let service = endpoint_service();
        let mut outcomes = Vec::new();
        let end = self.aws.elapsed() + seconds;
        while self.aws.elapsed() < end && !live(&self.aws, "vpc-endpoint-service").is_empty() {
            let connections = connections();
            let (reject, _) = self
                .ho
                .reconcile(&connections, |observed| ensure_absent(&connections, observed))
                .await;
            if reject.gone() {
                let deleted = self
                    .ho
                    .reconcile(&service, |observed| ensure_absent(&service, observed));
                outcomes.push(deleted.await.1);
            }
            sleep(Duration::from_secs(5)).await;
        }
        outcomes
    }
}

/// S2 and S3: what is rejected, and what is only waited for.
#[rstest]
#[case::available("available", 1, true)]
#[case::pending("pending", 1, true)]
#[case::not_accepted("pendingAcceptance", 1, true)]
#[case::rejected("rejected", 0, true)]
#[case::failed("failed", 0, true)]
#[case::deleted("deleted", 0, true)]
#[case::deleting("deleting", 0, false)]
#[tokio::test(start_paused = true)]
async fn connection_is_rejected_only_where_it_lives(
    #[case] state: &str,
    #[case] rejections: usize,
    #[case] is_deleted: bool,
) {
    let path = Path::made().await;
    path.has_connection_in(state);
    path.service_is_deleted_for(600).await;
    assert_eq!(count(&path.aws, REJECT), rejections);
    assert_eq!(live(&path.aws, "vpc-endpoint-service").is_empty(), is_deleted);
    // Once it has ended by itself, nothing holds the service any more.
    path.has_connection_in("deleted");
    path.service_is_deleted_for(600).await;
    assert!(live(&path.aws, "vpc-endpoint-service").is_empty());
    assert_eq!(count(&path.aws, REJECT), rejections);
    let tries = count(&path.aws, DELETE);
    assert!(tries <= 70, "{tries} tries");
}

/// S3: AWS refuses in an item of an answer 200, though no connection that it shows is live.
#[rstest]
#[case::failed("failed")]
#[case::deleted("deleted")]
#[tokio::test(start_paused = true)]
async fn deletion_refused_without_a_live_connection_is_tried_again(#[case] state: &str) {
    let path = Path::made().await;
    path.has_connection_in(state);
    let refusal = "<DeleteVpcEndpointServiceConfigurationsResponse><unsuccessful><item><resourceId>x</resourceId>\
        <error><code>ExistingVpcEndpointConnections</code><message>x</message></error></item></unsuccessful>\
        </DeleteVpcEndpointServiceConfigurationsResponse>";
    let rule = crate::sim::fault(&format!("{DELETE}$"), 3, &json!({"status": 200, "body": refusal}));
    path.aws.set_faults(&rule);
    let outcomes = path.service_is_deleted_for(600).await;
    assert!(live(&path.aws, "vpc-endpoint-service").is_empty());
    let is_busy = |outcome: &&Outcome<Aws>| matches!(outcome, Outcome::Failed(error) if error.class == Class::Busy);
    assert!(outcomes.iter().filter(is_busy).count() >= 3, "{outcomes:?}");
    assert_eq!(count(&path.aws, REJECT), 0);
}

fn page(items: &[(&str, &str)], next: &str) -> Value {
    let item = |(id, state): &(&str, &str)| {
        format!("<item><vpcEndpointId>{id}</vpcEndpointId><vpcEndpointState>{state}</vpcEndpointState></item>")
    };
    let items: String = items.iter().map(item).collect();
    let body = format!(
        "<DescribeVpcEndpointConnectionsResponse><vpcEndpointConnectionSet>{items}</vpcEndpointConnectionSet>\
        <nextToken>{next}</nextToken></DescribeVpcEndpointConnectionsResponse>"
    );
    json!({"match": {"path": "/DescribeVpcEndpointConnections$"}, "do": {"status": 200, "body": body}})
}

/// S4.
#[tokio::test(start_paused = true)]
async fn live_connections_of_three_pages_are_rejected_in_one_call() {
    let path = Path::made().await;
    path.aws.set_faults(&json!([
        page(
            &[("vpce-1", "Available"), ("vpce-2", "rejected"), ("vpce-3", "Deleting")],
            "a"
        ),
        page(&[("vpce-4", "PENDINGACCEPTANCE"), ("vpce-5", "Failed")], "b"),
        page(
            &[("vpce-6", "expired"), ("vpce-7", "Pending"), ("vpce-8", "Partial")],
            ""
        ),
    ]));
    path.aws.clear_journal();
    let connections = connections();
    path.ho.forget(&connections.slot);
    path.ho
        .reconcile(&connections, |observed| ensure_absent(&connections, observed))
        .await;
    let journal = path.aws.journal();
    let rejections: Vec<_> = journal.iter().filter(|entry| entry.path.ends_with(REJECT)).collect();
    assert_eq!(rejections.len(), 1, "{journal:#?}");
    let query = &rejections[0].query;
    let named: Vec<&str> = query
        .split('&')
        .filter(|part| part.starts_with("VpcEndpointId"))
        .collect();
    let expected = [
        "VpcEndpointId.1=vpce-1",
        "VpcEndpointId.2=vpce-4",
        "VpcEndpointId.3=vpce-7",
    ];
    assert_eq!(named, expected);
}
