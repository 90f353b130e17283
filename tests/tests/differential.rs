//! Random programs have the same outcome in every mode, on any number of threads, and when any printed stage is read
//! back.

use girder::Stage;
use girder_engine::Mode;
use girder_tests::{MODES, Outcome, Program, generate, with_context};
use proptest::prelude::*;

/// Configures a property test with few cases, so that it is fast; `PROPTEST_CASES` sets another number.
fn config(cases: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(cases);
    ProptestConfig { cases, max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn all_modes_agree(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let text = generate::program(&bytes);
        with_context(&text, || Program::text(text.as_str()).run_everywhere());
    }
}

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn optional_passes_change_no_result(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let text = generate::program(&bytes);
        with_context(&text, || {
            let program = Program::text(text.as_str());
            let run = |program: Program| program.compile(&MODES).run_on(&MODES, &[2]);
            let (with, without) = (run(program.clone()), run(program.without_optional_passes()));
            // A step that several were fused into may name another of them in its failure.
            assert_eq!(with.failure.is_some(), without.failure.is_some());
            let found = |o: Outcome| (o.prints, o.packets, o.variables);
            assert_eq!(found(with), found(without));
        });
    }
}

proptest! {
    #![proptest_config(config(6))]

    #[test]
    fn every_stage_reads_back(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let text = generate::program(&bytes);
        let program = Program::text(text.as_str());
        let expected = program.compile(&[Mode::Fast]).run(Mode::Fast, 1);
        for to in Stage::ALL {
            let stage = program.stage(to).unwrap_or_else(|e| panic!("{text}\n{e}"));
            let printed = girder::text::print(&stage, program.machine());
            let resumed = program.resumed(printed.clone());
            let again = resumed.stage(to).unwrap_or_else(|e| panic!("{text}\n{}: {e}", to.name()));
            prop_assert_eq!(&printed, &girder::text::print(&again, program.machine()), "{}", text);
            let done = resumed.compile(&[Mode::Fast]).run(Mode::Fast, 1);
            prop_assert_eq!(&done.prints, &expected.prints, "{}", text);
            prop_assert_eq!(&done.variables, &expected.variables, "{}", text);
        }
    }
}
