//! How controllers reach AWS, and what they keep of what others have made there.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::lists::{EndpointsOf, HostedZones, ListNeed, Lists, SubnetZones, SubnetsIn, ZoneLists};
use crate::api::AWSEndpointService;
use crate::aws::api::error::AwsError;
use crate::aws::calls::accounts::Accounts;
use crate::aws::cloud::Aws;
use crate::aws::owner_tags::CLUSTER_ID_TAG;
use crate::aws::role_arn::RoleArn;
use crate::aws::slot::Scope;
use crate::controllers::cloud_access::{CloudAccess, CloudContext, Reading};
use crate::controllers::context;
use crate::engine::failure::Failure as _;
use crate::engine::lists;

/// AWS, and what was observed in it.
pub type AwsContext = CloudContext<Aws>;
/// What every reconcile of an AWSEndpointService works with.
pub type Context = context::Context<AWSEndpointService>;

/// How long it is remembered that AWS does not show a subnet: a new one may show so late.
///
/// Source: <https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html>
const NOT_SHOWN_FOR: Duration = Duration::from_secs(60);

/// The most subnets of one VPC whose zones are remembered: whoever may make subnets may make them without end.
const MOST_SUBNETS: usize = 500;

/// The most VPCs whose subnets are remembered: whoever may name VPCs may name them without end.
const MOST_VPCS: usize = 1_000;

/// How long a failure counts after its wait: if it comes again later, it is the first one again.
const FAILED_LATELY: Duration = Duration::from_secs(600);

/// How long a list of hosted zones holds, for all who call as the same identity. Route 53 takes few requests, and
/// whoever changes a custom resource without end must not use them all. It is less than the time after which a
/// missing zone is searched again.
///
/// Rule: D5 in `docs/compatibility.md`.
const ZONES_HOLD: Duration = Duration::from_secs(20);

/// How long a list of the endpoints of a deleted custom resource holds, which makes no more: as long as its security
/// group is tried.
///
/// Rule: X2 in `docs/compatibility.md`.
const ENDPOINTS_HOLD: Duration = Duration::from_secs(600);

/// What is kept of lists that no kind of resources has.
#[derive(Debug, Default)]
pub struct KnownLists {
    /// Hosted zones, by whom they are shown to.
    zones: lists::Lists<ZoneLists, AwsError>,
    /// Endpoints with the tags of a custom resource.
    endpoints: lists::Lists<Vec<Value>, AwsError>,
    subnets: KnownSubnets,
}

/// Where a list is kept: what one identity was shown is nothing that another one knows.
fn address(scope: &Scope) -> String {
    let role = scope.role.as_ref().map(RoleArn::as_str).unwrap_or_default();
    format!("{} {} {role}", scope.account, scope.region)
}

/// The zones of subnets, which never change.
#[derive(Debug, Default)]
struct KnownSubnets(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// By what shows the subnet: what one identity was shown is nothing that another one knows.
    zones: HashMap<Vpc, HashMap<String, String>>,
    /// Until when a question is not asked again that was not answered in full.
    unanswered: HashMap<SubnetsIn, Instant>,
    /// Of which VPCs AWS tells no zones.
    failing: HashMap<Vpc, Failing>,
}

/// A question that fails again and again, whatever the subnets are.
#[derive(Debug)]
struct Failing {
    times: u32,
    /// Until when it is not asked again.
    until: Instant,
    error: AwsError,
}

/// As whom AWS was asked, and the id of the VPC.
type Vpc = (Scope, String);

fn vpc(asked: &SubnetsIn) -> Vpc {
    (asked.scope.clone(), asked.vpc.clone())
}

impl KnownSubnets {
    /// What is known of these subnets; none if AWS has to be asked.
    fn of(&self, subnets: &SubnetsIn, now: Instant) -> Option<SubnetZones> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_vpc = known.zones.get(&vpc(subnets));
        let zone = |subnet: &String| Some((subnet.clone(), of_vpc?.get(subnet)?.clone()));
        let zones: HashMap<String, String> = subnets.subnets.iter().filter_map(zone).collect();
        if zones.len() == subnets.subnets.len() {
            return Some(Ok(zones));
        }
        if known.unanswered.get(subnets).is_some_and(|until| now < *until) {
            return Some(Ok(zones));
        }
        let failing = known.failing.get(&vpc(subnets)).filter(|failing| now < failing.until)?;
        Some(Err(failing.error.clone().with_retry_after(failing.until - now)))
    }

    fn note(&self, subnets: &SubnetsIn, answer: &SubnetZones, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.unanswered.retain(|_, until| now < *until);
        known.failing.retain(|_, failing| now < failing.until + FAILED_LATELY);
        match answer {
            Ok(zones) => {
                known.failing.remove(&vpc(subnets));
                let found: BTreeSet<&String> = zones.keys().collect();
                if subnets.subnets.iter().any(|subnet| !found.contains(subnet)) {
                    known.unanswered.insert(subnets.clone(), now + NOT_SHOWN_FOR);
                }
                if known.zones.len() >= MOST_VPCS && !known.zones.contains_key(&vpc(subnets)) {
                    known.zones.clear();
                }
                let of_vpc = known.zones.entry(vpc(subnets)).or_default();
                if of_vpc.len() + zones.len() > MOST_SUBNETS {
                    of_vpc.clear();
                }
                of_vpc.extend(zones.clone());
            }
            // AWS was not asked, and who waits for it may ask earlier.
            Err(error) if error.is_unsent() || error.is_of_caller() => {}
            Err(error) => known.note_failure(vpc(subnets), error, now),
        }
    }
}

impl Known {
    /// Notes a failure, unless another one has just been noted: they were asked for together.
    fn note_failure(&mut self, vpc: Vpc, error: &AwsError, now: Instant) {
        let last = self.failing.get(&vpc);
        if last.is_some_and(|last| now < last.until) {
            return;
        }
        let times = last.map_or(1, |last| last.times.saturating_add(1));
        let failing = Failing {
            times,
            until: now + error.delay(times),
            error: error.clone(),
        };
        self.failing.insert(vpc, failing);
    }
}

impl CloudAccess for Aws {
    type Client = Accounts;
    type SharedLists = KnownLists;

    async fn read_list(reading: Reading<'_, Self>, need: ListNeed, facts: &mut Lists) {
        match need {
            ListNeed::HostedZones(scope) => {
                let found = hosted_zones(&reading, &scope).await;
                facts.hosted_zones.insert(scope, found);
            }
            ListNeed::SubnetZones(subnets) => {
                let found = subnet_zones(&reading, &subnets).await;
                facts.subnet_zones.insert(subnets, found);
            }
            ListNeed::Endpoints(endpoints) => {
                let found = endpoints_of(&reading, &endpoints).await;
                facts.endpoints.insert(endpoints, found);
            }
            ListNeed::EndpointServices(services) => {
                let Reading { cloud, reconcile, .. } = reading;
                let tag = (CLUSTER_ID_TAG, services.cluster_id.as_str());
                let found = cloud.client.tagged_services(reconcile, &services.scope, tag).await;
                facts.endpoint_services.insert(services, found);
            }
        }
    }
}

async fn hosted_zones(reading: &Reading<'_, Aws>, scope: &Scope) -> HostedZones {
    let Reading { cloud, reconcile, .. } = *reading;
    let call = async |before: Option<Arc<ZoneLists>>| {
        let last = cloud.client.hosted_zones(reconcile, scope).await?;
        Ok(ZoneLists::after(before.as_deref(), last, Instant::now().into_std()))
    };
    let zones = &cloud.lists.zones;
    let (_, found) = zones.get(&address(scope), reconcile.urgency, ZONES_HOLD, call).await;
    found
}

async fn subnet_zones(reading: &Reading<'_, Aws>, subnets: &SubnetsIn) -> SubnetZones {
    let Reading { cloud, reconcile, .. } = *reading;
    let known = &cloud.lists.subnets;
    if let Some(zones) = known.of(subnets, Instant::now()) {
        return zones;
    }
    let ids: Vec<String> = subnets.subnets.iter().cloned().collect();
    let SubnetsIn { scope, vpc, .. } = subnets;
    let found = cloud.client.zones_of_subnets(reconcile, scope, &ids, vpc).await;
    known.note(subnets, &found, Instant::now());
    known.of(subnets, Instant::now()).unwrap_or(found)
}

/// The endpoints that a list shows which was started lately: none is made any more.
async fn endpoints_of(reading: &Reading<'_, Aws>, endpoints: &EndpointsOf) -> Result<Arc<Vec<Value>>, AwsError> {
    let Reading { cloud, reconcile, .. } = *reading;
    let EndpointsOf { scope, vpc, tags } = endpoints;
    let call = async |_| cloud.client.tagged_endpoints(reconcile, scope, vpc, tags).await;
    let shown = format!("{} {vpc} {tags:?}", address(scope));
    let all = &cloud.lists.endpoints;
    let (_, found) = all.get(&shown, reconcile.urgency, ENDPOINTS_HOLD, call).await;
    found
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::aws::api::error::WAITING_FOR_THROTTLING;
    use crate::engine::failure::Class;

    fn subnets(ids: &[&str]) -> SubnetsIn {
        SubnetsIn {
            scope: Scope::own("444455556666", "us-east-1"),
            vpc: "vpc-1".to_owned(),
            subnets: ids.iter().map(|id| (*id).to_owned()).collect(),
        }
    }

    fn zones(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs
            .iter()
            .map(|(id, zone)| ((*id).to_owned(), (*zone).to_owned()))
            .collect()
    }

    #[test]
    fn list_that_one_identity_was_shown_is_nothing_that_another_gets() {
        let role = RoleArn::parse("arn:aws:iam::444455556666:role/other").unwrap();
        let other = Scope::of_role(role, "us-east-1");
        assert_ne!(address(&subnets(&[]).scope), address(&other));
    }

    #[test]
    fn zone_that_was_read_is_never_read_again() {
        let (known, now) = (KnownSubnets::default(), Instant::now());
        assert!(known.of(&subnets(&["a"]), now).is_none());
        known.note(&subnets(&["a", "b"]), &Ok(zones(&[("a", "az1"), ("b", "az2")])), now);
        let later = now + Duration::from_secs(86_400);
        assert_eq!(
            known.of(&subnets(&["a"]), later).unwrap().unwrap(),
            zones(&[("a", "az1")])
        );
    }

    #[test]
    fn subnets_that_come_and_go_without_end_are_not_all_kept() {
        let (known, now) = (KnownSubnets::default(), Instant::now());
        for number in 0..5_000 {
            let id = format!("subnet-{number}");
            known.note(&subnets(&[id.as_str()]), &Ok(zones(&[(id.as_str(), "az1")])), now);
            assert!(known.of(&subnets(&[id.as_str()]), now).is_some());
        }
        let kept: usize = known.0.lock().unwrap().zones.values().map(HashMap::len).sum();
        assert!(kept <= MOST_SUBNETS, "{kept}");
    }

    #[test]
    fn vpcs_that_are_named_without_end_are_not_all_kept() {
        let (known, now) = (KnownSubnets::default(), Instant::now());
        for number in 0..3_000_u64 {
            let of_vpc = |vpc: String| SubnetsIn { vpc, ..subnets(&["a"]) };
            let at = now + Duration::from_secs(number * 10);
            let there = of_vpc(format!("vpc-{number}"));
            known.note(&there, &Ok(zones(&[("a", "az1")])), at);
            assert!(known.of(&there, at).is_some());
            let failing = of_vpc(format!("vpc-failing-{number}"));
            known.note(&failing, &Err(AwsError::own(Class::Down, "X")), at);
            assert!(known.of(&failing, at).is_some());
        }
        let known = known.0.lock().unwrap();
        let kept = (known.zones.len(), known.failing.len());
        assert!(kept.0 <= MOST_VPCS && kept.1 <= MOST_VPCS, "{kept:?}");
    }

    #[test]
    fn zone_that_one_identity_was_shown_is_nothing_that_another_knows() {
        let (known, now) = (KnownSubnets::default(), Instant::now());
        known.note(&subnets(&["a"]), &Ok(zones(&[("a", "az1")])), now);
        let role = RoleArn::parse("arn:aws:iam::444455556666:role/other").unwrap();
        let other = SubnetsIn {
            scope: Scope::of_role(role, "us-east-1"),
            ..subnets(&["a"])
        };
        assert!(known.of(&other, now).is_none());
        assert!(known.of(&subnets(&["a"]), now).is_some());
    }

    #[test]
    fn unknown_subnet_is_asked_about_once_in_a_while() {
        let (known, now) = (KnownSubnets::default(), Instant::now());
        known.note(&subnets(&["a", "x"]), &Ok(zones(&[("a", "az1")])), now);
        let soon = now + Duration::from_secs(30);
        assert_eq!(
            known.of(&subnets(&["a", "x"]), soon).unwrap().unwrap(),
            zones(&[("a", "az1")])
        );
        assert!(known.of(&subnets(&["a", "x"]), now + NOT_SHOWN_FOR).is_none());
    }

    #[rstest]
    #[case::down(Class::Down, &[5, 10, 20, 40, 80, 120, 120])]
    #[case::denied(Class::Denied, &[60, 120, 240, 480, 600, 600])]
    fn failing_read_of_zones_is_tried_ever_less_often(#[case] class: Class, #[case] waits: &[u64]) {
        let (known, mut now) = (KnownSubnets::default(), Instant::now());
        let error = AwsError::own(class, "X");
        for wait in waits {
            // Whoever asks meanwhile, and for what, is answered by this failure.
            for id in ["a", "b"] {
                known.note(&subnets(&[id]), &Err(error.clone()), now);
            }
            let failed = known.of(&subnets(&["c"]), now).unwrap().unwrap_err();
            assert_eq!(failed.delay(1).as_secs(), *wait);
            now += Duration::from_secs(*wait);
            assert!(known.of(&subnets(&["a"]), now).is_none());
        }
        known.note(&subnets(&["a"]), &Ok(zones(&[("a", "az1")])), now);
        known.note(&subnets(&["b"]), &Err(error), now);
        let failed = known.of(&subnets(&["b"]), now).unwrap().unwrap_err();
        assert_eq!(failed.delay(1).as_secs(), waits[0], "it begins again");
        assert!(known.of(&subnets(&["a"]), now).unwrap().is_ok());
    }

    #[test]
    fn read_of_zones_that_was_not_sent_is_no_failure() {
        let (known, now) = (KnownSubnets::default(), Instant::now());
        let unsent = AwsError::own(Class::Throttled, WAITING_FOR_THROTTLING);
        known.note(&subnets(&["a"]), &Err(unsent), now);
        assert!(known.of(&subnets(&["a"]), now).is_none());
    }
}
