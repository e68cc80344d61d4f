//! A further endpoint of the cluster, from the same VPC to the same endpoint service as the one that it uses. There is
//! one where an endpoint read as gone for so long that another one was created, and shows again.
//!
//! Body: that of `vpc_endpoint`.

use std::time::Duration;

use hyperlink_engine::cloud::Key;
use hyperlink_engine::resource::Owned;
use serde_json::Value;

use super::vpc_endpoint::CUSTOM_RESOURCE_TAG;
use super::{Kind, Rules};
use crate::body::{tags, text};
use crate::cloud::Aws;
use crate::owner_tags::OwnerTags;
use crate::slot::Slot;

/// What the engine has to know of further endpoints.
pub const RULES: Rules = Rules {
    // The time between two reads of an endpoint in progress, which takes a minute or so.
    pace: Duration::from_secs(15),
    ..Rules::DEFAULT
};

/// A further endpoint, which is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FurtherEndpoint {
    /// The slot, with the VPC and the endpoint's id.
    pub slot: Slot,
    /// The name of the endpoint service.
    pub service_name: String,
    /// The tags of the cluster's endpoint.
    pub owner_tags: OwnerTags,
}

impl Owned<Aws> for FurtherEndpoint {
    fn kind(&self) -> Kind {
        Kind::FurtherEndpoint
    }

    fn key(&self) -> &Slot {
        &self.slot
    }

    /// It is that which was named, leads from this VPC to the endpoint service, and has the owner's tag and that with
    /// the custom resource's name: what is not used any more is deleted only where there is no doubt.
    fn is_owned(&self, current: &Value) -> bool {
        let custom_resource = tags(current).remove(CUSTOM_RESOURCE_TAG);
        text(current, "Id") == self.slot.name()
            && text(current, "ServiceName") == self.service_name
            && Some(text(current, "VpcId")) == self.slot.container()
            && self.owner_tags.prove(current)
            && custom_resource.as_deref() == self.owner_tags.value(CUSTOM_RESOURCE_TAG)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::body::Tags;
    use crate::owner_tags::{CLUSTER_ID_TAG, Precedence};
    use crate::slot::Scope;

    #[rstest]
    #[case::own(json!({}), true)]
    #[case::of_another_id(json!({"Id": "vpce-2"}), false)]
    #[case::to_another_service(json!({"ServiceName": "other"}), false)]
    #[case::in_another_vpc(json!({"VpcId": "vpc-2"}), false)]
    #[case::without_tags(json!({"Tags": {}}), false)]
    #[case::without_the_owners_tag(json!({"Tags": {CUSTOM_RESOURCE_TAG: "private-router"}}), false)]
    #[case::of_another_cluster(json!({"Tags": {CUSTOM_RESOURCE_TAG: "private-router", CLUSTER_ID_TAG: "x"}}), false)]
    #[case::of_another_custom_resource(json!({"Tags": {CUSTOM_RESOURCE_TAG: "x", CLUSTER_ID_TAG: "id"}}), false)]
    fn only_what_all_marks_prove_is_deleted(#[case] change: Value, #[case] expected: bool) {
        let tags = Tags::from([(CUSTOM_RESOURCE_TAG.to_owned(), "private-router".to_owned())]);
        let owned = FurtherEndpoint {
            slot: Slot::further_endpoint(&Scope::own("123456789012", "us-east-1"), "vpc-1", "vpce-1"),
            service_name: "service".to_owned(),
            owner_tags: OwnerTags::new("id", tags, &Tags::new(), Precedence::HyperShift),
        };
        let mut body = json!({"Id": "vpce-1", "ServiceName": "service", "VpcId": "vpc-1",
            "Tags": {CUSTOM_RESOURCE_TAG: "private-router", CLUSTER_ID_TAG: "id"}});
        for (field, value) in change.as_object().unwrap() {
            body[field] = value.clone();
        }
        assert_eq!(owned.is_owned(&body), expected);
    }
}
