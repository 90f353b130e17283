//! Chains of compute sets and copies that threads run strip by strip leave what the oracle leaves, and report the failure
//! that comes first in program order.

use girder_engine::Mode;
use girder_tests::Program;
use proptest::prelude::*;

const HEAD: &str = "
codelet mix(in x: i32, inout y: i32) { y = 3 * y + x; }
codelet held(in x: i32, inout y: i32, const not: i32) { assert(x != not, \"met\"); y = y - x; }
let n = 6000;
var a: i32[n] = list i in 0..n { i };
var b: i32[n] = list i in 0..n { n - i };
var c: i32[n];
var d: i32[n];
";

const VARS: [&str; 4] = ["a", "b", "c", "d"];

/// One step between two variables: most go from each element to that of the same place.
fn step() -> impl Strategy<Value = String> {
    let place = prop_oneof![6 => Just("i"), 1 => Just("i + 1"), 1 => Just("n - 1 - i"), 1 => Just("i * 11 % n")];
    (0usize..4, 1usize..4, place, 0u8..8, 0..4000i32).prop_map(|(from, ahead, place, kind, not)| {
        let (x, y) = (VARS[from], VARS[(from + ahead) % 4]);
        match kind {
            0 => format!("    copy {{ {y} <- {x}; }}\n"),
            1 => format!("    copy {{ for i in 0..n / 2 {{ {y}[2 * i] <- {x}[i]; }} }}\n"),
            2 => format!(
                "    compute {{ for i in 0..n - 1 {{ vertex held(x: {x}[{place}], y: {y}[i], not: {not}); }} }}\n"
            ),
            _ => format!("    compute {{ for i in 0..n - 1 {{ vertex mix(x: {x}[{place}], y: {y}[i]); }} }}\n"),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(10) })]

    #[test]
    fn chains_do_what_the_oracle_does(steps in proptest::collection::vec(step(), 2..8)) {
        let text = format!("{HEAD}program main() {{\n{}}}\n", steps.concat());
        let agree = std::panic::catch_unwind(|| {
            Program::text(text.as_str()).compile(&[Mode::Interpret, Mode::Fast]).run_on(&[Mode::Interpret, Mode::Fast], &[1, 2, 8])
        });
        prop_assert!(agree.is_ok(), "{text}");
    }
}

/// The second set fails in its first vertices, the first in its last: it is the earlier one.
#[test]
fn the_failure_is_the_least_in_program_order() {
    let text = format!(
        "{HEAD}program main() {{
            compute early {{ for i in 0..n {{ vertex held(x: a[i], y: c[i], not: n - 1); }} }}
            compute late {{ for i in 0..n {{ vertex held(x: c[i], y: d[i], not: 0); }} }}
        }}"
    );
    let outcome =
        Program::text(text).compile(&[Mode::Interpret, Mode::Fast]).run_on(&[Mode::Interpret, Mode::Fast], &[1, 2, 8]);
    let failure = outcome.failure.expect("it fails");
    let said = format!("{failure:?}");
    assert!(said.contains("early") && said.contains("5999"), "{said}");
}
