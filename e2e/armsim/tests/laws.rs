//! Laws that hold over any sequence of calls, control calls and passing of time, on all types together.
//!
//! `PROPTEST_CASES=5000 cargo test --release -p armsim --test laws` tries them for longer, with other sequences.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod laws_support;

use armsim::Preset;
use laws_support::cloud::Mode;
use laws_support::run::Run;
use laws_support::step::Step;
use laws_support::structure::without_chance;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Every run of the tests tries the same sequences, unless somebody asks for more.
fn config(cases: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").is_ok();
    let usual = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 3000,
        ..ProptestConfig::default()
    };
    if asked {
        usual
    } else {
        ProptestConfig {
            cases,
            rng_seed: RngSeed::Fixed(4),
            ..usual
        }
    }
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(any::<[u8; 9]>().prop_map(Step::from), 1..most)
}

fn mode() -> impl Strategy<Value = Mode> {
    (any::<u8>(), prop_oneof![Just(0), any::<u8>()]).prop_map(|(mode, switches)| Mode::of([mode, switches]))
}

fn preset() -> impl Strategy<Value = Preset> {
    prop_oneof![Just(Preset::Recorded), Just(Preset::Fast)]
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn laws_hold_after_every_step(preset in preset(), mode in mode(), steps in steps(70)) {
        let mut run = Run::new(preset, mode);
        let tried = steps.iter().try_for_each(|step| run.step(step)).and_then(|()| run.end());
        prop_assert!(tried.is_ok(), "{}", tried.unwrap_err());
    }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn equal_calls_get_equal_answers_also_after_a_reload(mode in mode(), steps in steps(50)) {
        let mut runs = [Run::new(Preset::Recorded, mode), Run::new(Preset::Recorded, mode)];
        for step in &steps {
            for run in &mut runs {
                let tried = run.step(step);
                prop_assert!(tried.is_ok(), "{}", tried.unwrap_err());
            }
            let tried = runs[1].reload();
            prop_assert!(tried.is_ok(), "{}", tried.unwrap_err());
            prop_assert_eq!(runs[0].answers.last(), runs[1].answers.last());
        }
        let [one, other] = runs.map(|run| serde_json::to_string(&run.azure).unwrap());
        prop_assert!(one == other, "the worlds differ");
    }

    #[test]
    fn independent_subscriptions_do_not_affect_each_other(
        switches in any::<u8>(),
        rounds in prop::collection::vec((steps(6), steps(6), 1..100u8), 1..10),
    ) {
        // No chance in the durations, and no faults: their rules count the calls of all.
        let mode = Mode::of([0, switches]);
        let mut runs = [Run::new(Preset::Fast, mode), Run::new(Preset::Fast, mode)];
        for (first, second, wait) in &rounds {
            let calls = |subscription: usize| {
                let steps = if subscription == 0 { first } else { second };
                let calls = steps.iter().filter(|step| step.is_call());
                calls.map(move |step| step.alone_in(subscription)).collect::<Vec<_>>()
            };
            for (run, order) in runs.iter_mut().zip([[0, 1], [1, 0]]) {
                for step in order.into_iter().flat_map(calls) {
                    let tried = run.step(&step);
                    prop_assert!(tried.is_ok(), "{}", tried.unwrap_err());
                }
                let tried = run.step(&Step::wait_of(*wait));
                prop_assert!(tried.is_ok(), "{}", tried.unwrap_err());
            }
        }
        for subscription in [0, 1] {
            let [one, other] = [&runs[0].view, &runs[1].view].map(|view| without_chance(view, subscription));
            prop_assert_eq!(one, other);
        }
    }
}
