//! Laws that hold over any sequence of calls: tokens, uniqueness, atomic batches, states that only move forward,
//! nothing lost over a restart. `PROPTEST_CASES` tries that many sequences.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "laws/check.rs"]
mod check;
#[path = "laws/run.rs"]
mod run;
mod support;

use proptest::prelude::*;
use run::Run;

/// One step of a sequence. Numbers choose among the things that are there.
#[derive(Clone, Debug)]
enum Step {
    CreateService {
        balancer: bool,
        token: Option<u8>,
    },
    DeleteService(usize),
    CreateEndpoint {
        service: usize,
        subnets: Vec<usize>,
        token: Option<u8>,
    },
    ModifyEndpoint {
        endpoint: usize,
        add: usize,
        remove: Option<usize>,
    },
    DeleteEndpoint(usize),
    Reject(usize),
    CreateGroup(u8),
    Authorize {
        group: usize,
        cidrs: Vec<u8>,
    },
    Revoke {
        group: usize,
        cidrs: Vec<u8>,
    },
    Permit {
        service: usize,
        add: Vec<u8>,
        remove: Vec<u8>,
    },
    Tag {
        kind: usize,
        thing: usize,
        tags: Vec<(u8, u8)>,
    },
    DeleteGroup(usize),
    Change(Vec<(u8, u8, u8)>),
    Advance(u16),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let token = || proptest::option::of(0..3_u8);
    let cidrs = |least: usize| proptest::collection::vec(0..4_u8, least..4);
    prop_oneof![
        (any::<bool>(), token()).prop_map(|(balancer, token)| Step::CreateService { balancer, token }),
        any::<usize>().prop_map(Step::DeleteService),
        (any::<usize>(), proptest::collection::vec(0..4_usize, 0..3), token()).prop_map(|(service, subnets, token)| {
            Step::CreateEndpoint {
                service,
                subnets,
                token,
            }
        }),
        (any::<usize>(), 0..4_usize, proptest::option::of(0..4_usize))
            .prop_map(|(endpoint, add, remove)| Step::ModifyEndpoint { endpoint, add, remove }),
        any::<usize>().prop_map(Step::DeleteEndpoint),
        any::<usize>().prop_map(Step::Reject),
        (0..3_u8).prop_map(Step::CreateGroup),
        (any::<usize>(), cidrs(1)).prop_map(|(group, cidrs)| Step::Authorize { group, cidrs }),
        (any::<usize>(), cidrs(1)).prop_map(|(group, cidrs)| Step::Revoke { group, cidrs }),
        (any::<usize>(), cidrs(0), cidrs(0)).prop_map(|(service, add, remove)| Step::Permit { service, add, remove }),
        (
            0..3_usize,
            any::<usize>(),
            proptest::collection::vec((0..4_u8, 0..2_u8), 1..4)
        )
            .prop_map(|(kind, thing, tags)| Step::Tag { kind, thing, tags }),
        any::<usize>().prop_map(Step::DeleteGroup),
        proptest::collection::vec((0..3_u8, 0..3_u8, 0..2_u8), 1..4).prop_map(Step::Change),
        (0..1500_u16).prop_map(Step::Advance),
        Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        ..ProptestConfig::with_cases(std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64))
    })]

    #[test]
    fn laws_hold_over_any_sequence(steps in proptest::collection::vec(step(), 1..60)) {
        let mut run = Run::default();
        for step in &steps {
            run.take(step);
            run.check();
        }
    }

    #[test]
    fn equal_calls_give_equal_answers(steps in proptest::collection::vec(step(), 1..30)) {
        let (mut one, mut two) = (Run::default(), Run::default());
        for step in &steps {
            one.take(step);
            two.take(step);
        }
        prop_assert_eq!(serde_json::to_string(&one.aws.aws).unwrap(), serde_json::to_string(&two.aws.aws).unwrap());
    }
}
