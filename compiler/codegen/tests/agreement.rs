//! Compiled code does what the interpreter does: random codelets of every form, on random memory.

mod harness;

use harness::choices::Choices;
use harness::lanes;
use harness::random::case;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_codelets_agree(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        case(&mut Choices::new(&bytes)).check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_vectors_agree(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        lanes::case(&mut Choices::new(&bytes)).check();
    }
}
