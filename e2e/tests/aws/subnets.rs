//! Which subnets an endpoint is in, and what becomes of the others.

use anyhow::{Context, Result, ensure};
use e2e::aws_sim::{GUEST, REGION};
use e2e::hyperlink::Role;
use e2e::{eventually, scenario};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::SOON;
use crate::both::Both;

/// A zone in which no load balancer of the management cluster is.
const FAR_ZONE: &str = "use1-az6";
const FAR: &str = "subnet-0e2e00000000000f0";
const UNKNOWN: &str = "subnet-0e2e00000000000f1";
/// The most tags that the definition of the custom resource takes.
const MOST_TAGS: usize = 25;

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
        both.has_one_event(|note| note == expected).await?;
        both.ensure_no_denied_call().await?;
        both.stop().await
    });
}

impl Both {
    /// Waits until an Event has such a note, and fails if several have.
    async fn has_one_event(&self, is_it: impl Fn(&str) -> bool) -> Result<()> {
        let events: Api<Event> = Api::namespaced(self.env.client()?, &self.cluster.control_plane_namespace());
        let found = eventually("an Event names them", SOON, || async {
            let all = events.list(&ListParams::default()).await?.items;
            let notes: Vec<_> = all.into_iter().filter_map(|event| event.note).collect();
            let (found, others): (Vec<_>, Vec<_>) = notes.into_iter().partition(|note| is_it(note));
            ensure!(!found.is_empty(), "{others:?}");
            Ok(found)
        })
        .await?;
        ensure!(found.len() == 1, "several Events about one thing: {found:?}");
        Ok(())
    }

    /// The custom resource's spec.
    async fn spec(&self) -> Result<Value> {
        let found = self.cluster.get_custom_resource(&self.env.client()?).await?;
        Ok(found.context("no custom resource")?.data["spec"].take())
    }
}

#[test]
fn subnet_that_serves_is_kept_when_ten_more_are_named() {
    scenario(async {
        let mut both = Both::without_roles("crowded", "3s").await?;
        let [first, ..] = both.cluster.subnets();
        both.cluster = both.cluster.clone().with_node_pools(&[&first]);
        both.start_role(Role::Ho).await?;
        both.start_role(Role::Cpo).await?;
        both.cluster.create_objects(&both.env).await?;
        both.becomes_available().await?;

        // They come before it in the order of ids.
        let unknown: Vec<_> = (0..10)
            .map(|number| format!("subnet-0000000000000000{number}"))
            .collect();
        let named: Vec<_> = std::iter::once(&first).chain(&unknown).map(String::as_str).collect();
        both.cluster = both.cluster.clone().with_node_pools(&named);
        both.cluster.create_node_pools(&both.env).await?;
        let mut expected = [&unknown[..9], std::slice::from_ref(&first)].concat();
        expected.sort_unstable();
        eventually("ten subnets are named", SOON, || async {
            let spec = both.spec().await?;
            ensure!(spec["subnetIDs"] == json!(expected), "{spec}");
            Ok(())
        })
        .await?;
        let eleventh = format!("an endpoint takes 10 subnets, left out: {}", unknown[9]);
        both.has_one_event(|note| note.contains(&eleventh)).await?;
        both.becomes_available().await?;
        let endpoint = both.only("vpc-endpoint").await?;
        ensure!(endpoint["subnets"] == json!([first]), "{endpoint}");
        both.ensure_no_denied_call().await?;
        both.stop().await
    });
}

/// HyperShift's own definition refuses the last tag.
#[test]
fn as_many_tags_as_fit_are_on_everything() {
    scenario(async {
        let mut both = Both::without_roles("tagged", "3s").await?;
        let keys: Vec<_> = (0..=MOST_TAGS).map(|number| format!("key-{number:02}")).collect();
        let tags: Vec<_> = keys.iter().map(|key| (key.as_str(), "value")).collect();
        let cluster = both.cluster.clone();
        both.cluster = cluster.clone().with_resource_tags(&tags);
        both.start_role(Role::Ho).await?;
        both.start_role(Role::Cpo).await?;
        both.cluster.create_namespaces(&both.env).await?;
        if both.cluster.create_control_plane(&both.env).await.is_err() {
            both.cluster = cluster.with_resource_tags(&tags[..MOST_TAGS]);
        }
        both.cluster.create_objects(&both.env).await?;
        both.becomes_available().await?;
        let spec = both.spec().await?;
        let asked: Vec<_> = tags[..MOST_TAGS]
            .iter()
            .map(|(key, value)| json!({"key": key, "value": value}))
            .collect();
        ensure!(spec["resourceTags"] == json!(asked), "{spec}");
        for kind in ["vpc-endpoint-service", "vpc-endpoint", "security-group"] {
            let made = both.only(kind).await?;
            let lacks = |key: &&String| made["tags"][key.as_str()] != "value";
            let lacking: Vec<_> = keys[..MOST_TAGS].iter().filter(lacks).collect();
            ensure!(lacking.is_empty(), "{kind} lacks {lacking:?}: {made}");
        }
        both.cluster.delete(&both.env, SOON).await?;
        both.nothing_is_left().await?;
        both.ensure_no_denied_call().await?;
        both.stop().await
    });
}
