//! X1: a control plane names another cluster's things wherever it can.

use rstest::rstest;

use super::cluster::SERVICE;
use super::fleet::{Fleet, Member};
use super::*;

const HO_INTENT: &str = "hyperlink.hypershift.openshift.io/ho-intent";
const CPO_INTENT: &str = "hyperlink.hypershift.openshift.io/cpo-intent";
const DNS_NAME: &str = "hyperlink.hypershift.openshift.io/endpoint-dns-name";
const OTHER_ACCOUNT: &str = "777788889999";

fn attacker() -> Member {
    Member::new("attacker", 1, GUEST, 1)
}

/// A member's things in AWS, whole: load balancer, endpoint service with principals and connections, endpoint, group,
/// zone with records. AWS lists what is deleted for a while.
fn things(fleet: &Fleet, member: &Member) -> Vec<String> {
    let id = member.cluster_id();
    let all = fleet.aws.aws().resources(fleet.aws.now(), "arn:aws:");
    let there = all
        .iter()
        .filter(|body| body["state"] != "deleted" && body["state"] != "Deleted");
    let own = there.map(ToString::to_string);
    let parts = [id, member.zone(), member.balancer()];
    own.filter(|text| parts.iter().any(|part| text.contains(part.as_str())))
        .collect()
}

/// The custom resource of a member without what others of its kind share.
fn published(fleet: &Fleet, member: &Member) -> Value {
    let cr = fleet.cluster.get(&member.key(CR)).unwrap();
    json!({"status": cr["status"], "annotations": cr["metadata"]["annotations"]})
}

/// What a custom resource says of the victim's things, under an identity.
fn forgery(fleet: &Fleet, (victim, identity): (&Member, &Member)) -> Value {
    let real = fleet.cluster.get(&victim.key(CR)).unwrap();
    let mut annotations = real["metadata"]["annotations"].clone();
    for name in [HO_INTENT, CPO_INTENT] {
        let mut intent: Value = serde_json::from_str(annotations[name].as_str().unwrap()).unwrap();
        intent["cluster"] = json!(identity.name);
        intent["clusterID"] = json!(identity.cluster_id());
        intent["infraID"] = json!(format!("{}-x7k2p", identity.name));
        if name == HO_INTENT {
            intent["formerLoadBalancers"] = json!([victim.balancer()]);
        } else {
            let zone = json!({"account": victim.account, "dnsZoneID": victim.zone()});
            intent["formerZones"] = json!([zone]);
        }
        annotations[name] = json!(intent.to_string());
    }
    let kept = json!({HO_INTENT: annotations[HO_INTENT], CPO_INTENT: annotations[CPO_INTENT],
        DNS_NAME: annotations[DNS_NAME]});
    let mut status = real["status"].clone();
    status.as_object_mut().unwrap().remove("conditions");
    json!({"metadata": {"annotations": kept}, "status": status,
        "spec": {"networkLoadBalancerName": victim.balancer()}})
}

/// What of the guest's side is not forged in the moment of the deletion.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kept {
    Status,
    Intent,
}

/// The attacker's path and that of the victim, and what is known of the victim's.
struct Attack {
    fleet: Fleet,
    attacker: Member,
    victim: Member,
    /// How many things the attacker has without a path.
    empty: usize,
    before: (Vec<String>, Value),
    /// The attacker's custom resource as it was.
    own: Value,
}

impl Attack {
    async fn begin(fleet: Fleet, attacker: Member, victim: Member) -> Self {
        let empty = things(&fleet, &attacker).len();
        fleet.until_available(&attacker).await;
        fleet.until_available(&victim).await;
        assert!(fleet.is_reachable(&attacker) && fleet.is_reachable(&victim));
        let before = (things(&fleet, &victim), published(&fleet, &victim));
        assert!(
            before.0.len() >= 5 && things(&fleet, &attacker).len() > empty,
            "{before:#?}"
        );
        let own = fleet.cluster.get(&attacker.key(CR)).unwrap();
        Self {
            fleet,
            attacker,
            victim,
            empty,
            before,
            own,
        }
    }

    /// Reconciles for an hour with the forgeries, then deletes the custom resource, with them again, but for what tells
    /// role `cpo` where its own things are.
    async fn forge_and_delete(&self, as_victim: bool, kept: Kept) {
        let Self {
            fleet,
            attacker,
            victim,
            ..
        } = self;
        let identity = if as_victim { victim } else { attacker };
        let (key, mut forgery) = (attacker.key(CR), forgery(fleet, (victim, identity)));
        fleet.cluster.forge(&key, &forgery);
        fleet.wake();
        fleet.run_until(Duration::from_secs(3_600), |_| false).await;
        self.assert_unchanged();
        match kept {
            Kept::Status => forgery["status"] = self.own["status"].clone(),
            Kept::Intent => {
                forgery["metadata"]["annotations"][CPO_INTENT] =
                    self.own["metadata"]["annotations"][CPO_INTENT].clone();
            }
        }
        fleet.cluster.forge(&key, &forgery);
        // The management side has waited for the guest's as long as it does, and nothing is given up yet.
        let long_ago = Timestamp::now() - jiff::SignedDuration::from_mins(6);
        fleet.cluster.delete_at(&key, &long_ago.to_string());
        fleet.wake();
        fleet
            .run_until(Duration::from_secs(3_600), |fleet| fleet.cluster.get(&key).is_none())
            .await;
        self.assert_unchanged();
    }

    /// The Service of the attacker reports the victim's host name, too.
    fn report_host_name(&self) {
        let ingress = json!([{"hostname": self.fleet.host_name(&self.victim)}]);
        let status = json!({"status": {"loadBalancer": {"ingress": ingress}}});
        self.fleet.cluster.forge(&self.attacker.key(SERVICE), &status);
    }

    /// Byte for byte, and it serves.
    fn assert_unchanged(&self) {
        let (fleet, victim) = (&self.fleet, &self.victim);
        assert_eq!((things(fleet, victim), published(fleet, victim)), self.before);
        assert!(fleet.is_reachable(victim) && fleet.is_available(&victim.key(CR)));
    }

    async fn assert_only_the_attacker_is_gone(&self) {
        let (fleet, key) = (&self.fleet, self.attacker.key(CR));
        assert!(
            fleet.cluster.get(&key).is_none(),
            "{:#}",
            fleet.cluster.get(&key).unwrap()
        );
        fleet.run_until(Duration::from_secs(600), |_| false).await;
        self.assert_unchanged();
        let left = things(fleet, &self.attacker);
        assert_eq!(left.len(), self.empty, "{left:#?}");
    }
}

/// Beside the attacker in its account; the intents name the attacker itself, or the victim.
#[rstest]
#[tokio::test(start_paused = true)]
async fn forgeries_change_nothing_of_a_victim_in_the_account(
    #[values(1, 2)] vpc: usize,
    #[values(false, true)] as_victim: bool,
    #[values(Kept::Status, Kept::Intent)] kept: Kept,
    #[values(false, true)] with_host_name: bool,
) {
    let (attacker, victim) = (attacker(), Member::new("victim", 2, GUEST, vpc));
    let fleet = Fleet::without_file(&[attacker.clone(), victim.clone()]);
    let attack = Attack::begin(fleet, attacker, victim).await;
    if with_host_name {
        attack.report_host_name();
    }
    attack.forge_and_delete(as_victim, kept).await;
    attack.assert_only_the_attacker_is_gone().await;
}

/// A process for many: a recorded place outside of the attacker's scopes holds its own deletion until the forgery is
/// taken away.
#[rstest]
#[tokio::test(start_paused = true)]
async fn forgeries_outside_of_the_scopes_hold_only_the_attacker(
    #[values((OTHER_ACCOUNT, 2), (GUEST, 2), (GUEST, 1))] (account, vpc): (&str, usize),
    #[values(false, true)] as_victim: bool,
    #[values(Kept::Status, Kept::Intent)] kept: Kept,
) {
    let (attacker, victim) = (attacker(), Member::new("victim", 2, account, vpc));
    let fleet = Fleet::new(&[attacker.clone(), victim.clone()]);
    let attack = Attack::begin(fleet, attacker, victim).await;
    attack.forge_and_delete(as_victim, kept).await;
    let (fleet, key) = (&attack.fleet, attack.attacker.key(CR));
    if kept == Kept::Status {
        assert_eq!(fleet.condition(&key, "AWSEndpointAvailable")[1], "ScopeNotAllowed");
        let annotations = &attack.own["metadata"]["annotations"];
        fleet
            .cluster
            .forge(&key, &json!({"metadata": {"annotations": annotations}}));
        fleet.wake();
        let is_gone = |fleet: &Fleet| fleet.cluster.get(&key).is_none();
        fleet.run_until(Duration::from_secs(3_600), is_gone).await;
    }
    attack.assert_only_the_attacker_is_gone().await;
}
