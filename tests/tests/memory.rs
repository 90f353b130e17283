//! The quality of `allocate-memory`: the peak of each tile compared with its largest live set.

use girder::{AnyStage, Stage};
use girder_ir::layout::{Content, MemoryBlock, TileClass};
use girder_passes::allocate_memory::{Item, largest_live_set};
use girder_tests::{Program, files, generate};
use proptest::prelude::*;

/// Returns the largest live set of a class and its peak. A block that no step touches has an address, so it counts as
/// live by itself.
fn quality(class: &TileClass) -> (u64, u64) {
    let item = |b: &MemoryBlock| Item::plain(b.bytes as u64, b.live.clone().unwrap_or(0..u32::MAX));
    let items: Vec<Item> = class.blocks.iter().map(item).collect();
    let untouched = items.iter().filter(|i| i.live.is_empty()).map(|i| i.bytes).max().unwrap_or(0);
    (largest_live_set(&items, 8).max(untouched), class.peak() as u64)
}

/// Checks that no peak is more than a tenth above the largest live set.
fn check(what: &str, program: &Program) {
    let stage = program.stage(Stage::Allocated).unwrap_or_else(|e| panic!("{what}\n{e}"));
    let AnyStage::Allocated(allocated) = stage else { panic!("{what} is not allocated") };
    for class in allocated.layout.classes() {
        let (live, peak) = quality(class);
        assert!(peak <= live + live / 10, "{what}: {live} bytes are live, but they reach to {peak}");
    }
}

#[test]
fn peaks_of_examples_and_programs_are_within_a_tenth_of_what_is_live() {
    let examples = files::examples().into_iter().map(|p| (Program::file(&p), p));
    let programs = files::under("tests/programs", ".gir").into_iter().map(|p| (Program::small(&p), p));
    for (program, path) in examples.chain(programs) {
        check(&path.display().to_string(), &program);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn peaks_of_generated_programs_are_within_a_tenth_of_what_is_live(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let text = generate::program(&bytes);
        check(&text, &Program::text(text.as_str()));
    }
}

const MIX: &str = "#[pipelined(apart)]
codelet mix(in a: f32[n], in b: f32[n], out c: f32[n]) { for i in 0..n { c[i] = a[i] + b[i]; } }
";

/// Returns the addresses of variables on tile 0, and the codes of all diagnostics.
fn addresses(text: &str, names: &[&str]) -> (Vec<u32>, Vec<&'static str>) {
    let (stage, codes) = Program::text(text).stage_and_codes(Stage::Allocated);
    let Some(AnyStage::Allocated(allocated)) = stage else { panic!("{text} is not allocated: {codes:?}") };
    let address = |name: &&str| {
        let (var, _) = allocated.vars.iter().find(|(_, v)| v.name == *name).expect("a variable");
        allocated.layout.address(0, Content::Var(var)).expect("an address")
    };
    (names.iter().map(address).collect(), codes)
}

#[test]
fn fields_of_a_pipelined_codelet_lie_in_different_elements() {
    let text = format!(
        "{MIX}var x: f32[32] on tile(0);\nvar y: f32[32] on tile(0);\nvar z: f32[32] on tile(0);
        program main() {{ compute {{ vertex mix(a: x, b: y, c: z) on tile(0); }} }}"
    );
    let (addresses, codes) = addresses(&text, &["x", "y", "z"]);
    assert!(codes.is_empty(), "{codes:?}");
    let elements: std::collections::BTreeSet<u32> = addresses.iter().map(|a| a / 4096).collect();
    assert_eq!(elements.len(), 3, "{addresses:?}");
}

#[test]
fn a_wish_is_denied_before_a_tile_is_out_of_memory() {
    let text = format!(
        "{MIX}var x: f32[32] on tile(0);\nvar y: f32[32] on tile(0);\nvar z: f32[32] on tile(0);
        var rest: f32[16000] on tile(0);
        program main() {{ compute {{ vertex mix(a: x, b: y, c: z) on tile(0); }} }}"
    );
    let (_, codes) = addresses(&text, &["x", "y", "z"]);
    assert_eq!(codes, ["memory::wish_denied"]);
}

#[test]
fn a_program_that_fits_if_it_is_spread_further_is_placed_again() {
    for paths in (14_000..=18_000).step_by(1000) {
        let text = format!(
            "use random;\nvar price: f64;\nprogram main() {{
            let z = random.normal([{paths}], T: f64, seed: 42);
            let s = 100.0 * exp(0.01 + 0.2 * z);
            price <- mean(max(s - 100.0, 0.0)); }}"
        );
        let stage = Program::text(text).stage(Stage::Allocated);
        assert!(stage.is_ok(), "{paths} paths: {}", stage.err().map_or(String::new(), |e| e.to_string()));
    }
}
