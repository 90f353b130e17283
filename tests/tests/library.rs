//! Modelled cycles of library functions against bounds. A bound is what a planner that knows the machine reaches, with
//! a few percent to spare.

use girder_tests::Program;

/// Checks the modelled cycles of a program on `gc200`, and returns its supersteps.
fn takes_at_most(cycles: u64, text: &str) -> u64 {
    let profile = Program::text(text).target("gc200").estimate("main");
    assert!(profile.cycles <= cycles, "{} cycles, the bound is {cycles}:\n{text}", profile.cycles);
    profile.supersteps
}

fn product((m, k, n): (u64, u64, u64)) -> String {
    format!(
        "var x: f32[{m}, {k}];
        var w: f32[{k}, {n}];
        var y: f32[{m}, {n}];
        program main() {{ y <- x @ w; }}"
    )
}

#[test]
fn products_are_cut_along_all_three_axes() {
    let bounds = [
        ((1024, 1024, 1024), 92_000),
        ((64, 784, 512), 10_500),
        ((64, 1437, 10), 10_500),
        ((40, 9216, 128), 16_000),
        ((64, 256, 256), 7_500),
        ((1, 1000, 1000), 5_500),
    ];
    for (sizes, cycles) in bounds {
        takes_at_most(cycles, &product(sizes));
    }
}

#[test]
fn products_of_many_matrices_are_one_superstep() {
    let text = "
        var x: f32[16, 128, 64];
        var w: f32[16, 64, 128];
        var y: f32[16, 128, 128];
        program main() { y <- x @ w; }";
    // The copy to `y` stays on each tile.
    assert_eq!(takes_at_most(6_500, text), 2);
}
