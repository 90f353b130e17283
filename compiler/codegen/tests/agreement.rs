//! Compiled code agrees with the interpreter: random codelets of every form, on random memory.

use crate::harness::Case;
use crate::harness::choices::Choices;
use crate::harness::columns;
use crate::harness::lanes;
use crate::harness::narrow;
use crate::harness::random::case;
use girder_codelet::cost::{Cost, CostInputs, MemFacts, TileCosts, cost_of, counted_cost_of};
use girder_ir::codelet::Codelet;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig {
        max_shrink_iters: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_codelets_agree(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        case(&mut Choices::new(&bytes)).check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        max_shrink_iters: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_vectors_agree(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        lanes::case(&mut Choices::new(&bytes)).check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        max_shrink_iters: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_narrow_integers_agree(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        narrow::case(&mut Choices::new(&bytes)).check();
    }
}

proptest! {
    // These codelets are large, so there are fewer cases.
    #![proptest_config(ProptestConfig {
        cases: 48,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_columns_agree(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        columns::case(&mut Choices::new(&bytes)).check();
    }
}

/// Returns the bundles of every worker of every instance, from the counts of a run; `None` if a check failed.
fn bundles(case: &mut Case, cost: &Cost) -> Option<Vec<u64>> {
    case.points = cost.points().clone();
    let outcome = case.check();
    if outcome.failure.is_some() {
        return None;
    }
    let (sizes, facts) = (case.sizes(), MemFacts::default());
    let workers = if case.codelet.multi { case.workers } else { 1 };
    let own = case.points.len();
    let mut all = vec![];
    for (n, consts) in case.consts.iter().enumerate() {
        for worker in 0..workers {
            let start = (n * workers as usize + worker as usize) * own;
            let counters = &outcome.counters[start..start + own];
            let at = CostInputs { sizes: &sizes, consts, worker, workers: case.workers, counters, facts: &facts };
            all.push(cost.eval(&at));
        }
    }
    Some(all)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        max_shrink_iters: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Interpreter and compiled code count identically, and closed forms equal the counts.
    #[test]
    fn random_codelets_are_counted(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        let mut case = case(&mut Choices::new(&bytes));
        let costs = TileCosts::from(&girder_machine::builtin("gc200").expect("it comes with Girder"));
        let closed = cost_of(&case.codelet, &costs).expect("it is not pipelined");
        let counted = counted_cost_of(&case.codelet, &costs).expect("it is not pipelined");
        prop_assert!(closed.points().len() <= counted.points().len());
        let Codelet { body, exprs, .. } = &case.codelet;
        let forms = format!("{closed}\nagainst {counted}\nof {body:?}\n{exprs:?}\n{:?}", case.shapes);
        let (closed, counted) = (bundles(&mut case, &closed), bundles(&mut case, &counted));
        prop_assert_eq!(closed, counted, "{}", forms);
    }
}
