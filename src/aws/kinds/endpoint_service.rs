//! The endpoint service of a load balancer, to which endpoints in other accounts connect.
//!
//! Body: `Id`, `ServiceName`, `State`, `AcceptanceRequired`, `NetworkLoadBalancerArns`, `ZoneIds`, `Tags`, `Region`; to
//! create one, `ClientToken` too.

use std::time::Duration;

use hyperlink_engine::cloud::Key;
use hyperlink_engine::kind_rules::ListRules;
use hyperlink_engine::resource::{Difference, Owned, Resource};
use serde_json::{Value, json};

use super::load_balancer::{account_in_arn, name_in_arn};
use super::{Kind, ListScope, REPLACED_AFTER, Rules};
use crate::body::{state, tags, text, texts};
use crate::client_token::ClientToken;
use crate::cloud::Aws;
use crate::owner_tags::OwnerTags;
use crate::slot::{Scope, Slot};

/// What the engine has to know of endpoint services.
pub const RULES: Rules = Rules {
    // The time between two reads of an endpoint service in progress.
    pace: Duration::from_secs(10),
    // AWS has no filter by load balancer: each read is this list anyway.
    list: Some(ListRules {
        of: ListScope::Account,
        min_served: 2,
        rows: None,
        suffices: None,
    }),
    create_if_new: true,
    replaced_after: Some(REPLACED_AFTER),
    shows_predecessor: true,
    ..Rules::DEFAULT
};

/// What must be known of an endpoint service to delete it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedEndpointService {
    /// The slot: that of the load balancer's name.
    pub slot: Slot,
    /// Its tags.
    pub owner_tags: OwnerTags,
    /// Whether the load balancer of this name is known to be the cluster's. Else only the tags prove the owner.
    pub vouched: bool,
    /// The key of the tag of the management cluster, if it has one: clusters of another one, in the same account, are
    /// not known here.
    pub management_tag: Option<String>,
}

/// A desired endpoint service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointService {
    /// What proves its owner.
    pub owned: OwnedEndpointService,
    /// The ARN of the load balancer, as it was read.
    pub load_balancer_arn: String,
    /// What makes a repeated create answer with the first result.
    pub client_token: ClientToken,
}

/// The slot of the endpoint service that a row shows; none of one with no or several load balancers.
pub fn slot_of(row: &Value) -> Option<Slot> {
    let arns = texts(row, "NetworkLoadBalancerArns");
    let arn = arns.first().filter(|_| arns.len() == 1)?;
    let scope = Scope::own(account_in_arn(arn)?, text(row, "Region"));
    Some(Slot::endpoint_service(&scope, name_in_arn(arn)?))
}

impl Owned<Aws> for OwnedEndpointService {
    fn kind(&self) -> Kind {
        Kind::EndpointService
    }

    fn key(&self) -> &Slot {
        &self.slot
    }

    /// Its only load balancer is that of the cluster, which nobody else can have under this name.
    fn is_owned(&self, current: &Value) -> bool {
        let arns = texts(current, "NetworkLoadBalancerArns");
        let names = arns.iter().map(|arn| name_in_arn(arn));
        let proven = match self.vouched {
            true => !self.owner_tags.deny(current),
            false => self.owner_tags.prove(current) && self.is_of_management_cluster(current),
        };
        arns.len() == 1 && names.eq([Some(self.slot.name())]) && proven
    }
}

impl OwnedEndpointService {
    fn is_of_management_cluster(&self, current: &Value) -> bool {
        let tags = tags(current);
        let is_owned = |key: &String| tags.get(key).is_some_and(|value| value == "owned");
        self.management_tag.as_ref().is_none_or(is_owned)
    }
}

impl Owned<Aws> for EndpointService {
    fn kind(&self) -> Kind {
        self.owned.kind()
    }

    fn key(&self) -> &Slot {
        self.owned.key()
    }

    fn is_owned(&self, current: &Value) -> bool {
        self.owned.is_owned(current)
    }
}

impl Resource<Aws> for EndpointService {
    fn differs(&self, current: &Value) -> Vec<Difference> {
        let same_load_balancer = texts(current, "NetworkLoadBalancerArns").contains(&self.load_balancer_arn);
        let rules = [
            (state(current) == "failed", Difference::by_replacement("State")),
            (
                !same_load_balancer,
                Difference::by_replacement("NetworkLoadBalancerArns"),
            ),
            (
                current["AcceptanceRequired"] != json!(false),
                Difference::of("AcceptanceRequired"),
            ),
            (self.owned.owner_tags.differ(current), Difference::of("Tags")),
        ];
        let differing = rules.into_iter().filter(|(differs, _)| *differs);
        differing.map(|(_, difference)| difference).collect()
    }

    fn body(&self, _: Option<&Value>) -> Value {
        json!({
            "NetworkLoadBalancerArns": [self.load_balancer_arn],
            "AcceptanceRequired": false,
            "Tags": self.owned.owner_tags.all(),
            "ClientToken": self.client_token.as_str(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Tags;
    use crate::owner_tags::{CLUSTER_ID_TAG, Precedence};

    const ARN: &str = "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/a1b2/50dc";
    const REPLACED: &str = "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/a1b2/77aa";
    const FOREIGN: &str = "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/zz/50dc";

    fn desired() -> EndpointService {
        let scope = Scope::own("123456789012", "us-east-1");
        let infrastructure = Tags::from([("kubernetes.io/cluster/mgmt".to_owned(), "owned".to_owned())]);
        EndpointService {
            owned: OwnedEndpointService {
                slot: Slot::endpoint_service(&scope, "a1b2"),
                owner_tags: OwnerTags::new("id", infrastructure, &Tags::new(), Precedence::HyperShift),
                vouched: true,
                management_tag: Some("kubernetes.io/cluster/mgmt".to_owned()),
            },
            load_balancer_arn: ARN.to_owned(),
            client_token: ClientToken::new("token").unwrap(),
        }
    }

    fn shown(arns: &[&str]) -> Value {
        json!({"Id": "vpce-svc-1", "State": "Available", "Region": "us-east-1", "AcceptanceRequired": false,
            "NetworkLoadBalancerArns": arns, "Tags": {"kubernetes.io/cluster/mgmt": "owned"}})
    }

    #[test]
    fn service_of_hypershifts_own_controllers_is_adopted_unwritten() {
        assert!(desired().is_owned(&shown(&[ARN])));
        assert_eq!(desired().differs(&shown(&[ARN])), []);
        assert_eq!(slot_of(&shown(&[ARN])), Some(desired().owned.slot));
    }

    #[test]
    fn service_with_another_load_balancer_too_is_foreign() {
        assert!(!desired().is_owned(&shown(&[FOREIGN])));
        assert!(!desired().is_owned(&shown(&[ARN, FOREIGN])));
        assert!(!desired().is_owned(&shown(&[])));
        assert_eq!(slot_of(&shown(&[ARN, FOREIGN])), None);
    }

    #[test]
    fn without_a_vouched_load_balancer_only_the_tag_proves() {
        let mut owned = desired().owned;
        owned.vouched = false;
        let mut body = shown(&[ARN]);
        assert!(!owned.is_owned(&body));
        body["Tags"][CLUSTER_ID_TAG] = json!("id");
        assert!(owned.is_owned(&body));
        body["NetworkLoadBalancerArns"] = json!([FOREIGN]);
        assert!(!owned.is_owned(&body), "whoever may tag it cannot give it away");
    }

    #[test]
    fn service_of_another_management_cluster_is_not_proven_by_its_cluster() {
        let mut owned = desired().owned;
        let mut body = shown(&[ARN]);
        body["Tags"] = json!({CLUSTER_ID_TAG: "id", "kubernetes.io/cluster/elsewhere": "owned"});
        assert!(owned.is_owned(&body), "the Service vouches for it");
        owned.vouched = false;
        assert!(!owned.is_owned(&body));
        owned.management_tag = None;
        assert!(owned.is_owned(&body), "nothing tells them apart");
    }

    #[test]
    fn service_that_is_tagged_as_anothers_is_foreign() {
        let mut body = shown(&[ARN]);
        body["Tags"][CLUSTER_ID_TAG] = json!("other");
        assert!(!desired().is_owned(&body));
    }

    #[test]
    fn load_balancer_that_was_replaced_needs_another_service() {
        let differences = desired().differs(&shown(&[REPLACED]));
        assert!(desired().is_owned(&shown(&[REPLACED])));
        assert_eq!(differences, [Difference::by_replacement("NetworkLoadBalancerArns")]);
    }

    #[test]
    fn acceptance_and_lost_tags_are_drift() {
        let mut body = shown(&[ARN]);
        body["AcceptanceRequired"] = json!(true);
        body["Tags"] = json!({});
        let fields = desired().differs(&body);
        assert_eq!(fields, [Difference::of("AcceptanceRequired"), Difference::of("Tags")]);
    }
}
