use super::*;
use crate::controllers::vpc_endpoint::samples::{Sample, ZONE};

/// What is found for the sample among these zones of the role's account.
fn found(sample: &mut Sample, zones: &[&str]) -> Result<String, Stop> {
    let zones = zones.iter().map(|id| HostedZone {
        id: (*id).to_owned(),
        name: "example.hypershift.local".to_owned(),
        private: true,
    });
    let account = sample.guest().zone_account.clone();
    sample.facts.lists.hosted_zones.insert(account, Ok(zones.collect()));
    let recorded = CpoIntent {
        zone_id: Some("ZRECORDED".to_owned()),
        ..CpoIntent::of(&sample.guest().identity)
    };
    find(
        sample.basis(),
        sample.guest(),
        &recorded,
        &["api.example.hypershift.local"],
        None,
    )
}

#[test]
fn zones_outside_of_the_file_are_passed_over() {
    let mut sample = Sample::new().among_many();
    sample.cr.status.as_mut().unwrap().dns_zone_id = Some("ZSHOWN".to_owned());
    assert_eq!(found(&mut sample, &["ZOTHER", ZONE]).unwrap(), ZONE);
    let mut alone = Sample::new();
    assert_eq!(found(&mut alone, &[ZONE]).unwrap(), "ZRECORDED");
}

#[test]
fn only_zone_outside_of_the_file_is_named() {
    let mut sample = Sample::new().among_many();
    let Err(Stop::Blocked(problem)) = found(&mut sample, &["ZOTHER"]) else {
        panic!("not refused");
    };
    let expected = "hosted zone example.hypershift.local is outside of the allowed scopes; hostedZoneIDs lacks ZOTHER";
    assert_eq!(
        (problem.reason, problem.message.as_str()),
        (Reason::ScopeNotAllowed, expected)
    );
}
