//! Which instructions the lowerings choose, where one does what others would do together. `levels` tests that their
//! results are right.

use girder_simd::ir::*;
use girder_simd::{Level, Options, assemble};

/// A kernel that stores a value of loaded elements.
fn stored(lane: Lane, value: impl Fn(&mut Kernel, [Value; 3]) -> Value) -> Kernel {
    let mut kernel = Kernel::new(1);
    let mut array = |n: u32| {
        let pointer = kernel.pointer(Moving { offset: 8 * n, stride: i64::from(lane.bytes()), outer: 0 });
        Memory { pointer, offset: 0 }
    };
    let [x, y, z, to] = [0, 1, 2, 3].map(&mut array);
    let loaded = [x, y, z].map(|from| kernel.load(lane, from, None));
    let value = value(&mut kernel, loaded);
    kernel.store(to, value, None);
    kernel
}

/// The arithmetic instructions of a kernel's group, without its moves.
#[track_caller]
fn check(kernel: &Kernel, level: Level, expected: &[&str]) {
    let options = Options { listing: true, iterations: Some(GROUP), interleave: false, ..Options::default() };
    let listing = assemble(kernel, level, &options).listing.expect("a listing was requested");
    let names = listing.lines().filter_map(|line| {
        let text = line.trim_start().split_once("  ").map_or(line, |(_, text)| text);
        let name = text.split_whitespace().next()?;
        let moves = ["vmov", "vbroadcast", "vzeroupper", "kmov"].iter().any(|m| name.starts_with(m));
        let merge = if text.contains("{z}") { "{z}" } else { "" };
        (name.starts_with(['v', 'k']) && !moves).then(|| format!("{name}{merge}"))
    });
    let names: Vec<String> = names.collect();
    assert_eq!(names, expected, "{kernel}{listing}");
}

#[test]
fn a_negated_factor_negates_the_product() {
    let kernel = stored(Lane::F32, |k, [x, y, z]| {
        let minus = k.unary(Op::Neg, x);
        k.fma(minus, y, z)
    });
    check(&kernel, Level::Avx512, &["vfnmadd231ps"]);
    // AVX2 has half a group in a vector.
    check(&kernel, Level::Avx2, &["vfnmadd231ps", "vfnmadd231ps"]);
}

#[test]
fn two_negated_factors_are_none() {
    let kernel = stored(Lane::F64, |k, [x, y, z]| {
        let (minus_x, minus_y) = (k.unary(Op::Neg, x), k.unary(Op::Neg, y));
        k.fma(minus_x, minus_y, z)
    });
    check(&kernel, Level::Avx512, &["vfmadd231pd", "vfmadd231pd"]);
}

#[test]
fn a_selected_sum_is_computed_under_the_mask() {
    let kernel = stored(Lane::F32, |k, [x, y, z]| {
        let (mask, sum) = (k.compare(Cond::Lt, x, y), k.binary(Op::Add, x, y));
        k.select(mask, sum, z)
    });
    check(&kernel, Level::Avx512, &["vcmpps", "vaddps"]);
}

#[test]
fn a_sum_that_is_selected_elsewhere_is_computed_under_the_inverse_mask() {
    let kernel = stored(Lane::F32, |k, [x, y, z]| {
        let (mask, minus) = (k.compare(Cond::Lt, y, z), k.unary(Op::Neg, x));
        k.select(mask, x, minus)
    });
    check(&kernel, Level::Avx512, &["vcmpps", "vpxord"]);
}

#[test]
fn a_product_or_zero_is_one_instruction() {
    let kernel = stored(Lane::F32, |k, [x, y, z]| {
        let (mask, product) = (k.compare(Cond::Ge, x, y), k.fma(x, y, z));
        let zero = k.constant(Lane::F32, 0);
        k.select(mask, product, zero)
    });
    check(&kernel, Level::Avx512, &["vcmpps", "vfmadd231ps{z}"]);
}

#[test]
fn a_sum_with_another_use_is_selected() {
    let kernel = stored(Lane::F32, |k, [x, y, z]| {
        let (mask, sum) = (k.compare(Cond::Lt, x, y), k.binary(Op::Add, x, y));
        let selected = k.select(mask, sum, z);
        k.binary(Op::Mul, selected, sum)
    });
    check(&kernel, Level::Avx512, &["vcmpps", "vaddps", "vblendmps", "vmulps"]);
}

#[test]
fn common_bits_are_tested() {
    for (cond, name) in [(Cond::Eq, "vptestnmd"), (Cond::Ne, "vptestmd")] {
        let kernel = stored(Lane::I32, |k, [x, y, z]| {
            let (common, zero) = (k.binary(Op::And, x, y), k.constant(Lane::I32, 0));
            let mask = k.compare(cond, common, zero);
            k.select(mask, x, z)
        });
        check(&kernel, Level::Avx512, &[name, "vblendmps"]);
    }
}

#[test]
fn the_inverse_of_a_comparison_is_a_comparison() {
    let kernel = stored(Lane::F32, |k, [x, y, z]| {
        let mask = k.compare(Cond::Lt, x, y);
        let inverse = k.unary(Op::Not, mask);
        k.select(inverse, x, z)
    });
    check(&kernel, Level::Avx512, &["vcmpps", "vblendmps"]);
}

#[test]
fn differences_of_bytes_are_summed_at_once() {
    let mut kernel = Kernel::new(4);
    let [x, y] = [0, 8].map(|offset| {
        let pointer = kernel.pointer(Moving { offset, stride: 4, outer: 0 });
        kernel.load(Lane::U8, Memory { pointer, offset: 0 }, None)
    });
    let total = Accumulator { lane: Lane::I32, offset: 64, start: Some(0), any_order: true };
    let total = kernel.accumulator(total);
    let (greater, less) = (kernel.binary(Op::Max, x, y), kernel.binary(Op::Min, x, y));
    let difference = kernel.binary(Op::Sub, greater, less);
    let sum = kernel.make(Lane::I32, Op::SumNeighbours, &[difference]);
    kernel.accumulate(total, Reduction::Sum, sum, None);
    check(&kernel, Level::Avx512, &["vpsadbw", "vpaddd"]);
    check(&kernel, Level::Avx2, &["vpsadbw", "vpaddd", "vpsadbw", "vpaddd"]);
}

/// The offset of an instruction in a listing, by its text.
fn position(listing: &str, text: &str) -> Option<usize> {
    listing.lines().position(|line| line.contains(text))
}

#[test]
fn the_incomplete_group_runs_first_if_the_order_is_free() {
    let kernel = stored(Lane::F32, |k, [x, y, _]| k.binary(Op::Add, x, y));
    let options = Options { listing: true, ..Options::default() };
    let listing = assemble(&kernel, Level::Avx512, &options).listing.expect("a listing was requested");
    let (masked, whole) = (position(&listing, "{k7}"), position(&listing, "cmp rax, rdx"));
    assert!(masked.expect("it has a mask") < whole.expect("it has a loop"), "{listing}");

    let mut kernel = kernel;
    let total = kernel.accumulator(Accumulator { lane: Lane::F32, offset: 64, start: Some(0), any_order: false });
    let value = Value(0);
    kernel.accumulate(total, Reduction::Sum, value, None);
    let listing = assemble(&kernel, Level::Avx512, &options).listing.expect("a listing was requested");
    let (masked, whole) = (position(&listing, "{k7}"), position(&listing, "cmp rax, rdx"));
    assert!(masked.expect("it has a mask") > whole.expect("it has a loop"), "{listing}");
}

#[test]
fn the_last_group_of_a_known_number_needs_no_mask_if_stores_follow_loads() {
    let kernel = stored(Lane::F32, |k, [x, y, _]| k.binary(Op::Add, x, y));
    let options = Options { listing: true, iterations: Some(90), ..Options::default() };
    let listing = assemble(&kernel, Level::Avx512, &options).listing.expect("a listing was requested");
    assert!(!listing.contains("{k7}"), "{listing}");
    let few = Options { iterations: Some(10), ..options };
    let listing = assemble(&kernel, Level::Avx512, &few).listing.expect("a listing was requested");
    assert!(listing.contains("{k7}"), "{listing}");
}
