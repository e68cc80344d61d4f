//! Which subnets an endpoint is in, and what becomes of the others.

use anyhow::ensure;
use e2e::aws_sim::{GUEST, REGION};
use e2e::hyperlink::Role;
use e2e::{eventually, scenario};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::json;

use crate::SOON;
use crate::both::Both;

/// A zone in which no load balancer of the management cluster is.
const FAR_ZONE: &str = "use1-az6";
const FAR: &str = "subnet-0e2e00000000000f0";
const UNKNOWN: &str = "subnet-0e2e00000000000f1";

#[test]
fn subnets_that_cannot_serve_are_left_out_and_named() {
    scenario(async {
        let mut both = Both::without_roles("apart", "3s").await?;
        let [first, ..] = both.cluster.subnets();
        both.cluster = both.cluster.clone().with_node_pools(&[&first, FAR, UNKNOWN]);
        let arn = format!("arn:aws:ec2:{REGION}:{GUEST}:subnet/{FAR}");
        let far = json!({"vpc": both.cluster.vpc(), "cidr": "10.0.9.0/24", "zone_id": FAR_ZONE});
        both.env.oracle().drift_put(&arn, &far).await?;
        both.start_role(Role::Ho).await?;
        both.start_role(Role::Cpo).await?;
        both.cluster.create_objects(&both.env).await?;
        both.becomes_available().await?;
        let endpoint = both.only("vpc-endpoint").await?;
        ensure!(endpoint["subnets"] == json!([first]), "{endpoint}");

        let far = format!("{FAR} is in {FAR_ZONE}, in which the load balancer is not");
        let unknown = format!("{UNKNOWN} is not in the VPC of the cluster");
        let expected = format!("subnets left out: {far}; {unknown}");
        let events: Api<Event> = Api::namespaced(both.env.client()?, &both.cluster.control_plane_namespace());
        let count = eventually("an Event names them", SOON, || async {
            let all = events.list(&ListParams::default()).await?.items;
            let notes: Vec<_> = all.into_iter().filter_map(|event| event.note).collect();
            let count = notes.iter().filter(|note| **note == expected).count();
            ensure!(count > 0, "{notes:?}");
            Ok(count)
        })
        .await?;
        ensure!(count == 1, "{count} Events about one thing");
        both.ensure_no_denied_call().await?;
        both.stop().await
    });
}
