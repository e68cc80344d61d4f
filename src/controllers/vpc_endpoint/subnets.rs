//! Which subnets the endpoint is in: one in each zone. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::plan::{Basis, Stop};
use crate::api::markers::aws::SERVICE_ZONES;
use crate::api::{AWSEndpointService, Reason};
use crate::aws::api::error::AwsError;
use crate::controllers::aws::lists::SubnetsIn;
use crate::engine::failure::Class;
use crate::hypershift::aws::ids::is_id;
use crate::hypershift::aws::problem;
use crate::hypershift::problem::Problem;
use kube::ResourceExt;

use super::inputs::Guest;

/// The subnets of an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ChosenSubnets {
    /// One in each zone.
    pub(super) ids: BTreeSet<String>,
    /// The zones of subnets, as far as they are known.
    pub(super) zones: BTreeMap<String, String>,
    /// Those that cannot serve, each with the reason, in words for an Event.
    pub(super) left_out: Vec<String>,
    /// Whether a later read may show that others are left out.
    pub(super) provisional: bool,
    /// Whether nothing tells that AWS takes them all.
    pub(super) may_be_refused: bool,
}

/// The subnets for an endpoint that has `attached` now.
pub(super) fn choose(basis: Basis<'_>, guest: &Guest, attached: &BTreeSet<String>) -> Result<ChosenSubnets, Stop> {
    let named = named(basis.cr);
    if named.is_empty() {
        return Err(problem::no_subnets().into());
    }
    // All that is asked for is there: which zones they are in matters no more.
    if named == *attached {
        return Ok(unzoned(named));
    }
    let refused = &basis.inputs.refused_subnets;
    let question = SubnetsIn {
        scope: guest.account.clone(),
        vpc: guest.vpc.clone(),
        subnets: named.union(attached).cloned().collect(),
    };
    let chosen = match (basis.facts.subnet_zones(&question)?, service_zones(basis.cr)) {
        (Ok(zones), Some(served)) => by_zone(&named, attached, zones, Some(&served))?,
        (Ok(zones), None) => {
            let mut chosen = by_zone(&named, attached, zones, None)?;
            chosen.may_be_refused = true;
            if chosen.provisional || refused.is_empty() {
                chosen
            } else {
                one_more(chosen, attached, refused)?
            }
        }
        (Err(error), _) if error.class == Class::Denied => one_more(unzoned(named), attached, refused)?,
        (Err(error), _) => without_zones(&named, attached, error)?,
    };
    Ok(with_the_irremovable(chosen, attached, refused))
}

/// The same with the only subnet of the endpoint, in place of those of its zone, if AWS neither swaps nor removes it.
fn with_the_irremovable(
    mut chosen: ChosenSubnets,
    attached: &BTreeSet<String>,
    refused: &BTreeMap<String, String>,
) -> ChosenSubnets {
    let only = attached
        .first()
        .filter(|only| attached.len() == 1 && refused.contains_key(*only));
    let Some(only) = only.filter(|only| !chosen.ids.contains(*only)) else {
        return chosen;
    };
    let zones = &chosen.zones;
    chosen
        .ids
        .retain(|id| zones.contains_key(id) && zones.get(id) != zones.get(only));
    chosen.ids.insert(only.clone());
    chosen.left_out.push(format!(
        "AWS refuses to replace {only}, the only subnet of the endpoint"
    ));
    chosen
}

/// Of these subnets those that are attached, and one more, until AWS has taken or refused each: it refuses the whole
/// call for one whose zone another one has, or the endpoint service lacks.
fn one_more(
    mut chosen: ChosenSubnets,
    attached: &BTreeSet<String>,
    refused: &BTreeMap<String, String>,
) -> Result<ChosenSubnets, Problem> {
    let others: BTreeSet<String> = chosen.ids.difference(attached).cloned().collect();
    let texts = others.iter().filter_map(|id| Some(refusal(id, refused.get(id)?)));
    chosen.left_out.extend(texts);
    chosen.ids.retain(|id| attached.contains(id));
    let mut untried = others.iter().filter(|id| !refused.contains_key(*id));
    chosen.ids.extend(untried.next().cloned());
    if chosen.ids.is_empty() {
        // What serves now stays while nothing else can.
        chosen.ids.clone_from(attached);
    }
    if chosen.ids.is_empty() {
        return Err(problem::no_subnet_serves(true, &chosen.left_out));
    }
    chosen.provisional = untried.next().is_some();
    chosen.may_be_refused = true;
    Ok(chosen)
}

/// Why AWS does not take a subnet, by its code.
fn refusal(id: &str, code: &str) -> String {
    let why = match code {
        "DuplicateSubnetsInSameZone" => "another subnet has its zone",
        "InvalidSubnetID.NotFound" => "it is not known",
        _ => "the load balancer is not in its zone, or what AWS's own words in the log say",
    };
    format!("AWS refuses {id} with {code}: {why}")
}

/// The subnets that role `ho` names, without what is no id.
fn named(cr: &AWSEndpointService) -> BTreeSet<String> {
    let named = cr.spec.subnet_ids.iter();
    named.filter(|id| is_id("subnet", id)).cloned().collect()
}

/// The zones in which the endpoint service is, as role `ho` tells; none: it does not.
fn service_zones(cr: &AWSEndpointService) -> Option<BTreeSet<String>> {
    let text = cr.annotations().get(SERVICE_ZONES)?;
    let zones = text.split(',').map(str::trim).filter(|zone| !zone.is_empty());
    Some(zones.map(str::to_owned).collect()).filter(|zones: &BTreeSet<String>| !zones.is_empty())
}

fn unzoned(ids: BTreeSet<String>) -> ChosenSubnets {
    ChosenSubnets {
        ids,
        ..ChosenSubnets::default()
    }
}

/// One subnet in each zone: that which is attached, else the first if the service is in that zone.
fn by_zone(
    named: &BTreeSet<String>,
    attached: &BTreeSet<String>,
    zones: &HashMap<String, String>,
    service_zones: Option<&BTreeSet<String>>,
) -> Result<ChosenSubnets, Problem> {
    // AWS keeps a subnet in which there is an interface: such an answer is not of now.
    let in_use: BTreeSet<String> = named.intersection(attached).cloned().collect();
    if in_use.iter().any(|id| !zones.contains_key(id)) {
        return Ok(ChosenSubnets {
            provisional: true,
            ..unzoned(in_use)
        });
    }
    let mut chosen: BTreeMap<&String, &String> = BTreeMap::new();
    let mut left_out = Vec::new();
    for id in named {
        let Some(zone) = zones.get(id) else {
            left_out.push(format!("{id} is not in the VPC of the cluster"));
            continue;
        };
        // One with an interface stays: the zone may come back, and AWS takes none from a load balancer in use.
        if service_zones.is_some_and(|served| !served.contains(zone)) && !attached.contains(id) {
            left_out.push(format!("{id} is in {zone}, in which the load balancer is not"));
            continue;
        }
        let current = chosen.get(zone);
        if current.is_none_or(|other| attached.contains(id) && !attached.contains(*other)) {
            chosen.insert(zone, id);
        }
    }
    if chosen.is_empty() {
        return Err(problem::no_subnet_serves(
            named.iter().any(|id| zones.contains_key(id)),
            &left_out,
        ));
    }
    Ok(ChosenSubnets {
        ids: chosen.into_values().cloned().collect(),
        zones: zones.iter().map(|(id, zone)| (id.clone(), zone.clone())).collect(),
        left_out,
        ..ChosenSubnets::default()
    })
}

/// The subnets while their zones cannot be read: what is attached and still named stays.
fn without_zones(
    named: &BTreeSet<String>,
    attached: &BTreeSet<String>,
    error: &AwsError,
) -> Result<ChosenSubnets, Problem> {
    let ids: BTreeSet<String> = named.intersection(attached).cloned().collect();
    if ids.is_empty() {
        let problem = Problem::unread(Reason::NoSubnets, "the zones of the subnets", error);
        return Err(problem.requeue_after(error.delay(1)));
    }
    let others = named
        .difference(&ids)
        .map(|id| format!("the zone of {id} cannot be read"));
    Ok(ChosenSubnets {
        left_out: others.collect(),
        provisional: true,
        ..unzoned(ids)
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The ids in a list, joined by commas.
    fn set(ids: &str) -> BTreeSet<String> {
        ids.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect()
    }

    fn coded(ids: &str) -> BTreeMap<String, String> {
        set(ids)
            .into_iter()
            .map(|id| (id, "InvalidParameter".to_owned()))
            .collect()
    }

    #[rstest]
    #[case::two_zones("a,b", "", None, Ok("a,b"), &[])]
    #[case::smaller_of_a_zone("b,c", "", None, Ok("b"), &[])]
    #[case::attached_of_a_zone("b,c", "c", None, Ok("c"), &[])]
    #[case::attached_but_not_named("b", "c", None, Ok("b"), &[])]
    #[case::unknown_is_left_out("a,x", "", None, Ok("a"), &["x is not in the VPC of the cluster"])]
    #[case::attached_that_the_answer_lacks("a,x", "x", None, Ok("x"), &[])]
    #[case::only_unknown("x", "", None, Err(Reason::NoSubnets), &[])]
    #[case::zone_that_the_service_lacks(
        "a,b", "", Some("az1"), Ok("a"), &["b is in az2, in which the load balancer is not"])]
    #[case::attached_of_a_zone_that_the_service_lacks("a,b", "b", Some("az1"), Ok("a,b"), &[])]
    #[case::another_of_a_zone_that_the_service_lacks(
        "b,c", "c", Some("az1"), Ok("c"), &["b is in az2, in which the load balancer is not"])]
    #[case::no_zone_of_the_service("a", "", Some("az9"), Err(Reason::NoCommonZone), &[])]
    #[case::no_zone_of_the_service_and_unknown("a,x", "", Some("az9"), Err(Reason::NoCommonZone), &[])]
    fn one_subnet_of_each_zone_of_the_service(
        #[case] named: &str,
        #[case] attached: &str,
        #[case] served: Option<&str>,
        #[case] expected: Result<&str, Reason>,
        #[case] left_out: &[&str],
    ) {
        let zones = [("a", "az1"), ("b", "az2"), ("c", "az2")];
        let zones = zones.map(|(id, zone)| (id.to_owned(), zone.to_owned())).into();
        let served = served.map(set);
        let chosen = by_zone(&set(named), &set(attached), &zones, served.as_ref());
        let named_ones = chosen.as_ref().map(|chosen| chosen.left_out.clone());
        assert_eq!(named_ones.unwrap_or_default(), left_out);
        assert_eq!(chosen.map(|chosen| chosen.ids).map_err(|p| p.reason), expected.map(set));
    }

    #[test]
    fn answer_that_is_not_of_now_ends_no_problem() {
        let error = AwsError::own(Class::Throttled, "X");
        let chosen = without_zones(&set("a,b"), &set("b"), &error).unwrap();
        assert!(chosen.provisional && chosen.left_out == ["the zone of a cannot be read"]);
        let zones = HashMap::from([("a".to_owned(), "az1".to_owned())]);
        assert!(by_zone(&set("a,x"), &set("x"), &zones, None).unwrap().provisional);
        assert!(!by_zone(&set("a,x"), &set("a"), &zones, None).unwrap().provisional);
    }

    #[rstest]
    #[case::attached_stay("a,b", "b", Ok("b"))]
    #[case::none_is_attached("a,b", "", Err(Reason::NoSubnets))]
    fn zones_that_cannot_be_read_break_no_endpoint(
        #[case] named: &str,
        #[case] attached: &str,
        #[case] expected: Result<&str, Reason>,
    ) {
        let chosen = without_zones(&set(named), &set(attached), &AwsError::own(Class::Down, "X"));
        assert_eq!(chosen.map(|chosen| chosen.ids).map_err(|p| p.reason), expected.map(set));
    }

    #[rstest]
    #[case::first("a,b,c", "", "", Ok("a"), 0, true)]
    #[case::one_more("a,b,c", "a", "", Ok("a,b"), 0, true)]
    #[case::last("a,b,c", "a,b", "", Ok("a,b,c"), 0, false)]
    #[case::refused("a,b,c", "a", "b", Ok("a,c"), 1, false)]
    #[case::no_more("a,b,c", "a", "b,c", Ok("a"), 2, false)]
    #[case::attached_all_the_same("a,b", "a", "a,b", Ok("a"), 1, false)]
    #[case::none_is_taken("a,b", "", "a,b", Err(Reason::NoCommonZone), 0, false)]
    #[case::what_serves_stays("a,b", "c", "a,b", Ok("c"), 2, false)]
    fn subnets_of_which_nothing_is_known_are_tried_one_by_one(
        #[case] named: &str,
        #[case] attached: &str,
        #[case] refused: &str,
        #[case] expected: Result<&str, Reason>,
        #[case] left_out: usize,
        #[case] provisional: bool,
    ) {
        let chosen = one_more(unzoned(set(named)), &set(attached), &coded(refused));
        let counts = chosen
            .as_ref()
            .map(|chosen| (chosen.left_out.len(), chosen.provisional));
        assert_eq!(counts.unwrap_or_default(), (left_out, provisional));
        assert_eq!(chosen.map(|chosen| chosen.ids).map_err(|p| p.reason), expected.map(set));
    }

    #[rstest]
    #[case::zone_is_taken("DuplicateSubnetsInSameZone", "another subnet")]
    #[case::unknown("InvalidSubnetID.NotFound", "not known")]
    #[case::other_parameter("InvalidParameter", "words in the log")]
    fn refusal_is_explained_by_its_code(#[case] code: &str, #[case] expected: &str) {
        let text = refusal("a", code);
        assert!(text.contains(code) && text.contains(expected), "{text}");
    }

    #[rstest]
    #[case::swapped("b", "a", "", "b", 0)]
    #[case::refused("b", "a", "a", "a", 1)]
    #[case::in_another_zone_too("b,c", "a", "a", "a,c", 1)]
    #[case::named_again("a,c", "a", "a", "a,c", 0)]
    #[case::one_of_two("b", "a,c", "a", "b", 0)]
    fn only_subnet_stays_where_aws_keeps_it(
        #[case] ids: &str,
        #[case] attached: &str,
        #[case] refused: &str,
        #[case] expected: &str,
        #[case] left_out: usize,
    ) {
        let zones = [("a", "az1"), ("b", "az1"), ("c", "az2")];
        let chosen = ChosenSubnets {
            zones: zones.map(|(id, zone)| (id.to_owned(), zone.to_owned())).into(),
            ..unzoned(set(ids))
        };
        let kept = with_the_irremovable(chosen, &set(attached), &coded(refused));
        assert_eq!((kept.ids, kept.left_out.len()), (set(expected), left_out));
    }
}
