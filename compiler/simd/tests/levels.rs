//! Random kernels: the machine code of each level leaves the same bits as the evaluator. AVX-512 is emulated if this
//! machine does not have it.

#[path = "levels/case.rs"]
mod case;
#[path = "levels/choices.rs"]
mod choices;
#[path = "levels/emulator.rs"]
mod emulator;
#[path = "levels/native.rs"]
mod native;
#[path = "levels/random.rs"]
mod random;

use case::Case;
use choices::Choices;
use girder_simd::{Level, Options, assemble};
use proptest::prelude::*;

/// The levels that are tested here: those of this machine, and AVX-512 emulated.
fn tested() -> Vec<Level> {
    Level::ALL.into_iter().filter(|&level| level.is_here() || level == Level::Avx512).collect()
}

/// Returns the levels of this machine; prints them once in the output of the tests.
fn levels() -> Vec<Level> {
    let here: Vec<Level> = Level::ALL.into_iter().filter(|level| level.is_here()).collect();
    let names: Vec<&str> = here.iter().map(|level| level.name()).collect();
    println!("levels of the instruction set that run: {}", names.join(", "));
    here
}

fn check(case: &Case, levels: &[Level]) {
    let expected = case.evaluate();
    for &level in levels.iter().filter(|&&level| case.is_for(level)) {
        // Emulation is slow, so an emulated level runs in one way only.
        let ways = if level.is_here() { usize::MAX } else { 1 };
        for options in case.options().into_iter().take(ways) {
            let machine = assemble(&case.kernel, level, &options);
            let found = match level.is_here() {
                true => native::run(case, &machine),
                false => emulator::run(case, &machine),
            };
            if let Some(difference) = case.difference(&expected, &found) {
                let listing = assemble(&case.kernel, level, &Options { listing: true, ..options }).listing;
                panic!(
                    "{difference} at {level:?}, {} iterations, {options:?}\n{}{}",
                    case.iterations,
                    case.kernel,
                    listing.unwrap_or_default()
                );
            }
        }
    }
}

#[test]
fn a_level_of_this_machine_runs_where_tests_must_run() {
    let none = levels().is_empty();
    assert!(!none || std::env::var_os("CI").is_none(), "this machine has no level: nothing was tested");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn levels_agree_with_the_evaluator(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        check(&random::case(&mut Choices::new(&bytes)), &tested());
    }

    #[test]
    fn kernels_with_an_outer_loop_agree_with_the_evaluator(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        check(&random::outer(&mut Choices::new(&bytes)), &tested());
    }

    #[test]
    fn permuted_elements_agree_with_the_evaluator(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check(&random::permuted(&mut Choices::new(&bytes)), &tested());
    }

    #[test]
    fn narrow_kernels_agree_with_the_evaluator(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        check(&random::narrow(&mut Choices::new(&bytes)), &tested());
    }
}
