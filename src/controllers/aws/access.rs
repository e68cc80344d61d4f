//! How controllers reach AWS, and what they keep of what others have made there.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::lists::{ListNeed, Lists, SubnetZones, SubnetsIn};
use crate::api::AWSEndpointService;
use crate::aws::api::error::AwsError;
use crate::aws::calls::accounts::Accounts;
use crate::aws::cloud::Aws;
use crate::controllers::cloud_access::{CloudAccess, CloudContext, Reading};
use crate::controllers::context;
use crate::engine::failure::Class;

/// AWS, and what was observed in it.
pub type AwsContext = CloudContext<Aws>;
/// What every reconcile of an AWSEndpointService works with.
pub type Context = context::Context<AWSEndpointService>;

/// How long it is remembered that AWS may not be asked for the zones of subnets.
const DENIED_FOR: Duration = Duration::from_secs(300);

/// How long it is remembered that AWS does not show a subnet: a new one may show so late.
///
/// Source: <https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html>
const NOT_SHOWN_FOR: Duration = Duration::from_secs(60);

/// The zones of subnets, which never change.
#[derive(Debug, Default)]
pub struct KnownSubnets(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    zones: HashMap<(String, String), String>,
    /// Until when a question is not asked again that was not answered, or not in full.
    unanswered: HashMap<SubnetsIn, (Instant, Option<AwsError>)>,
}

impl KnownSubnets {
    /// What is known of these subnets; none if AWS has to be asked.
    fn of(&self, subnets: &SubnetsIn, now: Instant) -> Option<SubnetZones> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let zone = |subnet: &String| {
            let zone = known.zones.get(&(subnets.vpc.clone(), subnet.clone()))?;
            Some((subnet.clone(), zone.clone()))
        };
        let zones: HashMap<String, String> = subnets.subnets.iter().filter_map(zone).collect();
        if zones.len() == subnets.subnets.len() {
            return Some(Ok(zones));
        }
        let (until, error) = known.unanswered.get(subnets)?;
        (now < *until).then(|| error.clone().map_or(Ok(zones), Err))
    }

    fn note(&self, subnets: &SubnetsIn, answer: &SubnetZones, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.unanswered.retain(|_, (until, _)| now < *until);
        match answer {
            Ok(zones) => {
                let found: BTreeSet<&String> = zones.keys().collect();
                if subnets.subnets.iter().any(|subnet| !found.contains(subnet)) {
                    known.unanswered.insert(subnets.clone(), (now + NOT_SHOWN_FOR, None));
                }
                let all = zones
                    .iter()
                    .map(|(subnet, zone)| ((subnets.vpc.clone(), subnet.clone()), zone.clone()));
                known.zones.extend(all);
            }
            Err(error) => {
                let wait = match error.class {
                    Class::Denied => DENIED_FOR,
                    _ => error.delay(1),
                };
                known
                    .unanswered
                    .insert(subnets.clone(), (now + wait, Some(error.clone())));
            }
        }
    }
}

impl CloudAccess for Aws {
    type Client = Accounts;
    type SharedLists = KnownSubnets;

    async fn read_list(reading: Reading<'_, Self>, need: ListNeed, facts: &mut Lists) {
        let Reading { cloud, reconcile, .. } = reading;
        match need {
            ListNeed::HostedZones(scope) => {
                let found = cloud.client.hosted_zones(reconcile, &scope).await;
                facts.hosted_zones.insert(scope, found);
            }
            ListNeed::SubnetZones(subnets) => {
                let known = cloud.lists.of(&subnets, Instant::now());
                let found = match known {
                    Some(known) => known,
                    None => {
                        let ids: Vec<String> = subnets.subnets.iter().cloned().collect();
                        let SubnetsIn { scope, vpc, .. } = &subnets;
                        let found = cloud.client.zones_of_subnets(reconcile, scope, &ids, vpc).await;
                        cloud.lists.note(&subnets, &found, Instant::now());
                        found
                    }
                };
                facts.subnet_zones.insert(subnets, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aws::slot::Scope;

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
    fn unknown_subnet_and_denial_are_asked_about_once_in_a_while() {
        let (known, now) = (KnownSubnets::default(), Instant::now());
        known.note(&subnets(&["a", "x"]), &Ok(zones(&[("a", "az1")])), now);
        let soon = now + Duration::from_secs(30);
        assert_eq!(
            known.of(&subnets(&["a", "x"]), soon).unwrap().unwrap(),
            zones(&[("a", "az1")])
        );
        assert!(known.of(&subnets(&["a", "x"]), now + NOT_SHOWN_FOR).is_none());
        let denied = AwsError::own(Class::Denied, "UnauthorizedOperation");
        known.note(&subnets(&["y"]), &Err(denied), now);
        assert!(known.of(&subnets(&["y"]), soon).unwrap().is_err());
        assert!(known.of(&subnets(&["y"]), now + DENIED_FOR).is_none());
    }

    #[test]
    fn failed_read_of_zones_is_soon_tried_again() {
        let (known, now) = (KnownSubnets::default(), Instant::now());
        let down = AwsError::own(Class::Down, "Unavailable");
        known.note(&subnets(&["a"]), &Err(down.clone()), now);
        assert!(known.of(&subnets(&["a"]), now).unwrap().is_err());
        assert!(known.of(&subnets(&["a"]), now + down.delay(1)).is_none());
    }
}
