//! Tests of every operation and query of a view against a plain list of elements.

use super::*;
use cranelift_entity::EntityRef;
use proptest::prelude::*;

/// The meaning of a view: its shape and elements.
#[derive(Clone, Debug, PartialEq)]
struct Plain {
    shape: Vec<u64>,
    elements: Vec<(VarId, u64)>,
}

impl Plain {
    fn of(view: &View) -> Plain {
        let elements = (0..view.len()).map(|i| view.element(i)).collect();
        Plain { shape: view.shape().to_vec(), elements }
    }

    /// Returns the elements at the indices that `source` returns for each index of a new shape.
    fn map(&self, shape: Vec<u64>, source: impl Fn(&[u64]) -> Vec<u64>) -> Plain {
        let flat = |index: &[u64]| index.iter().zip(&self.shape).fold(0, |sum, (i, n)| sum * n + i);
        let elements = indices(&shape).map(|i| self.elements[flat(&source(&i)) as usize]).collect();
        Plain { shape, elements }
    }

    fn concat(all: &[Plain], axis: usize) -> Plain {
        let mut shape = all[0].shape.clone();
        shape[axis] = all.iter().map(|p| p.shape[axis]).sum();
        let pick = |mut index: Vec<u64>| {
            for p in all {
                if index[axis] < p.shape[axis] {
                    let flat = index.iter().zip(&p.shape).fold(0, |sum, (i, n)| sum * n + i);
                    return p.elements[flat as usize];
                }
                index[axis] -= p.shape[axis];
            }
            unreachable!()
        };
        let elements = indices(&shape).map(pick).collect();
        Plain { shape, elements }
    }
}

fn indices(shape: &[u64]) -> impl Iterator<Item = Vec<u64>> + use<> {
    let shape = shape.to_vec();
    (0..shape.iter().product::<u64>()).map(move |mut flat| {
        let mut index = vec![0; shape.len()];
        for (i, n) in index.iter_mut().zip(&shape).rev() {
            (*i, flat) = (flat % n, flat / n);
        }
        index
    })
}

fn with(index: &[u64], axis: usize, value: u64) -> Vec<u64> {
    let mut index = index.to_vec();
    index[axis] = value;
    index
}

/// Returns all ways to write `n` as three factors.
fn factorings(n: u64) -> Vec<Vec<u64>> {
    let divisors = |n: u64| (1..=n).filter(move |d| n.is_multiple_of(*d));
    divisors(n).flat_map(|a| divisors(n / a).map(move |b| vec![a, b, n / a / b])).collect()
}

/// Applies one operation, given by numbers, to both forms.
fn apply(view: &View, plain: &Plain, (op, a, b, c): (u8, u64, u64, u64)) -> (View, Plain) {
    let rank = view.rank();
    let axis = if rank == 0 { 0 } else { a as usize % rank };
    let n = plain.shape.get(axis).copied().unwrap_or(0);
    match op {
        0 if n > 0 => {
            let i = b % n;
            let shape = [&plain.shape[..axis], &plain.shape[axis + 1..]].concat();
            let insert = |x: &[u64]| [&x[..axis], &[i], &x[axis..]].concat();
            (view.index(axis, i), plain.map(shape, insert))
        }
        1 if n > 0 => {
            let (start, step) = (b % n, [1, 2, 3, -1, -2, -3][c as usize % 6]);
            let most = match step {
                1.. => (n - start).div_ceil(step as u64),
                _ => start / (-step) as u64 + 1,
            };
            let count = (a / 7) % (most + 1);
            let source = |x: &[u64]| with(x, axis, (start as i64 + x[axis] as i64 * step) as u64);
            (view.slice(axis, start, count, step), plain.map(with(&plain.shape, axis, count), source))
        }
        2 | 3 => {
            let shapes = if view.is_empty() { vec![vec![0, 3], vec![0]] } else { factorings(view.len()) };
            let shape = shapes[b as usize % shapes.len()].clone();
            (view.reshape(&shape), Plain { shape, elements: plain.elements.clone() })
        }
        4 if rank > 0 => {
            let mut order: Vec<usize> = (0..rank).collect();
            order.rotate_left(b as usize % rank);
            order.swap(0, c as usize % rank);
            let shape = order.iter().map(|&k| plain.shape[k]).collect();
            let source = |x: &[u64]| {
                let mut index = vec![0; rank];
                order.iter().zip(x).for_each(|(&k, &i)| index[k] = i);
                index
            };
            (view.permute(&order), plain.map(shape, source))
        }
        5 if rank > 0 => (view.reverse(axis), plain.map(plain.shape.clone(), |x| with(x, axis, n - 1 - x[axis]))),
        6 if rank > 0 && view.len() < 40 => {
            let times = b % 3;
            let shape = with(&plain.shape, axis, n * times);
            (view.broadcast(times, axis), plain.map(shape, |x| with(x, axis, x[axis] % n)))
        }
        7 => {
            let (start, count) = (b % (n + 1), c % 3);
            let count = count.min(n - start.min(n));
            match rank {
                0 => (view.expand(0), Plain { shape: vec![1], elements: plain.elements.clone() }),
                _ => {
                    let source = |x: &[u64]| with(x, axis, start + x[axis]);
                    let piece = plain.map(with(&plain.shape, axis, count), source);
                    let cut = if count == 0 { 0 } else { start };
                    let views = [view.clone(), view.slice(axis, cut, count, 1), view.transpose().transpose()];
                    (View::concat(&views, axis), Plain::concat(&[plain.clone(), piece, plain.clone()], axis))
                }
            }
        }
        8 => {
            let mut shape = plain.shape.clone();
            shape.insert(axis, 1);
            (view.expand(axis), Plain { shape, elements: plain.elements.clone() })
        }
        9 if view.len() < 40 => {
            let mut shape = plain.shape.clone();
            shape.iter_mut().filter(|n| **n == 1).for_each(|n| *n = 2);
            shape.insert(0, 1 + b % 2);
            let source = |x: &[u64]| x[1..].iter().zip(&plain.shape).map(|(&i, &n)| i.min(n.max(1) - 1)).collect();
            (view.broadcast_to(&shape).unwrap(), plain.map(shape, source))
        }
        _ => (view.clone(), plain.clone()),
    }
}

fn checked(view: &View, plain: &Plain) {
    assert_eq!(view.axes.iter().map(|&n| n as usize).sum::<usize>(), view.digits.len());
    assert_eq!(view.parts.iter().map(|p| p.len.iter().map(|&n| n as u64).product::<u64>()).sum::<u64>(), view.len());
    assert_eq!(&Plain::of(view), plain, "{view:?}");
}

fn start() -> impl Strategy<Value = (View, Plain)> {
    let shape = prop::collection::vec(1u64..7, 0..3);
    (shape.clone(), shape, any::<bool>()).prop_map(|(a, b, join)| {
        let x = View::whole(VarId::new(0), &a);
        let view = match join {
            true => View::concat(&[x.flatten(), View::whole(VarId::new(1), &b).flatten()], 0),
            false => x,
        };
        let plain = Plain::of(&view);
        (view, plain)
    })
}

fn operation() -> impl Strategy<Value = (u8, u64, u64, u64)> {
    (0u8..10, 0u64..1000, 0u64..1000, 0u64..1000)
}

fn any_view() -> impl Strategy<Value = (View, Plain)> {
    (start(), prop::collection::vec(operation(), 0..5)).prop_map(|((view, plain), ops)| {
        let mut state = (view, plain);
        for op in ops {
            if state.1.elements.len() < 300 {
                state = apply(&state.0, &state.1, op);
            }
        }
        state
    })
}

/// Two views over the same two variables.
fn view_pair() -> impl Strategy<Value = (View, View)> {
    (any_view(), any_view()).prop_map(|(a, b)| (a.0, b.0))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn operations_mean_what_they_do_to_lists(
        (view, plain) in start(),
        ops in prop::collection::vec(operation(), 0..6),
    ) {
        let mut state = (view, plain);
        for op in ops {
            if state.1.elements.len() < 300 {
                state = apply(&state.0, &state.1, op);
                checked(&state.0, &state.1);
            }
        }
    }

    #[test]
    fn simplifying_is_idempotent_and_keeps_the_elements((view, plain) in any_view()) {
        let mut simple = view.clone();
        simple.simplify();
        checked(&simple, &plain);
        prop_assert!(simple.parts.len() <= view.parts.len());
        let mut again = simple.clone();
        again.simplify();
        prop_assert_eq!(simple, again);
    }

    #[test]
    fn runs_are_the_elements_in_order((view, plain) in any_view()) {
        prop_assert_eq!(view.elements().collect::<Vec<_>>(), plain.elements.clone());
        // Contiguous neighbours never belong to two runs.
        let runs: Vec<Run> = view.runs().collect();
        let breaks = |w: &[Run]| w[0].var != w[1].var || w[0].at(w[0].len - 1) + 1 != w[1].start
            || (w[0].len > 1 && w[0].stride != 1) || (w[1].len > 1 && w[1].stride != 1);
        prop_assert!(runs.windows(2).all(breaks), "{:?}", runs);
    }

    #[test]
    fn aliases_are_elements_named_twice((view, plain) in any_view()) {
        let mut sorted = plain.elements.clone();
        sorted.sort_unstable();
        prop_assert_eq!(view.has_aliases(), sorted.windows(2).any(|w| w[0] == w[1]));
    }

    #[test]
    fn overlap_is_the_least_common_element((a, b) in view_pair()) {
        let common = a.elements().filter(|e| b.elements().any(|f| f == *e)).min();
        prop_assert_eq!(overlap(&a, &b), common);
    }

    #[test]
    fn a_strided_box_is_the_view((view, plain) in any_view()) {
        if let Some(b) = view.single() {
            let at = |i: Vec<u64>| i.iter().zip(&b.strides).map(|(&i, &s)| i as i64 * s).sum::<i64>() + b.offset;
            let elements: Vec<_> = indices(&b.shape).map(|i| (b.var, at(i) as u64)).collect();
            prop_assert_eq!(b.shape.to_vec(), plain.shape);
            prop_assert_eq!(elements, plain.elements);
        }
    }

    #[test]
    fn copies_pair_the_elements((a, b) in view_pair()) {
        let n = a.len().min(b.len());
        let (a, b) = (a.flatten().slice(0, 0, n, 1), b.flatten().slice(0, 0, n, 1));
        let mut pairs = Vec::new();
        for c in copy_runs(&a, &b) {
            let dst = Run { var: c.dst_var, start: c.dst_start, len: c.len, stride: c.dst_stride };
            let src = Run { var: c.src_var, start: c.src_start, len: c.len, stride: c.src_stride };
            pairs.extend(dst.elements().zip(src.elements()).map(|(d, s)| ((c.dst_var, d), (c.src_var, s))));
        }
        prop_assert_eq!(pairs, a.elements().zip(b.elements()).collect::<Vec<_>>());
    }
}

fn whole(shape: &[u64]) -> View {
    View::whole(VarId::new(0), shape)
}

#[test]
fn regular_views_stay_one_part() {
    let x = whole(&[12, 10]);
    assert_eq!(x.reshape(&[3, 40]).parts.len(), 1);
    assert_eq!(x.transpose().reshape(&[5, 2, 3, 4]).parts.len(), 1);
    assert_eq!(x.transpose().flatten().reshape(&[10, 12]), x.transpose());
    assert_eq!(x.reshape(&[8, 15]).parts.len(), 1);
    assert_eq!(x.slice(0, 1, 10, 1).slice(1, 1, 8, 1).flatten().slice(0, 8, 16, 1).parts.len(), 1);
    let parts = [x.slice(0, 0, 6, 1), x.slice(0, 6, 6, 1)];
    assert_eq!(View::concat(&parts, 0), x);
    let columns = [x.slice(1, 0, 3, 1), x.slice(1, 3, 7, 1)];
    assert_eq!(View::concat(&columns, 1), x);
}

#[test]
fn ragged_cuts_make_few_parts() {
    let pair = View::concat(&[whole(&[10]), View::whole(VarId::new(1), &[14])], 0);
    assert_eq!(pair.parts.len(), 2);
    assert_eq!(pair.reshape(&[4, 6]).parts.len(), 4);
    assert_eq!(pair.reshape(&[4, 6]).flatten(), pair);
}

#[test]
fn a_matrix_column_is_one_run_and_a_matrix_too() {
    let x = whole(&[4, 6]);
    let run = |start, len, stride| Run { var: VarId::new(0), start, len, stride };
    assert_eq!(x.runs().collect::<Vec<_>>(), [run(0, 24, 1)]);
    assert_eq!(x.index(1, 2).runs().collect::<Vec<_>>(), [run(2, 4, 6)]);
    assert_eq!(x.slice(1, 0, 5, 1).runs().count(), 4);
    assert_eq!(whole(&[]).runs().collect::<Vec<_>>(), [run(0, 1, 1)]);
    assert_eq!(whole(&[0, 3]).runs().count(), 0);
}

#[test]
fn contiguous_regions_are_counted() {
    let matrix = whole(&[3, 4]);
    let columns = matrix.slice(1, 1, 2, 1);
    let beside = View::concat(&[matrix.clone(), columns.clone()], 1);
    let regions = [&matrix, &columns, &matrix.transpose(), &beside, &matrix.slice(0, 1, 2, 1), &matrix.index(1, 2)];
    assert_eq!(regions.map(View::contiguous_regions), [1, 3, 12, 6, 1, 3]);
    assert_eq!(View::empty(&[0, 4]).contiguous_regions(), 0);
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    assert_eq!(whole(&[3]).broadcast_to(&[2, 4]), None);
    assert_eq!(whole(&[2, 3]).broadcast_to(&[3]), None);
}

#[test]
fn a_slice_takes_no_time_for_rows_that_it_does_not_meet() {
    // With every row as a part, the slices would take half an hour.
    let x = whole(&[1 << 20, 8]).slice(1, 0, 4, 1).flatten();
    for first in (0..1u64 << 14).map(|k| 255 * k + 1) {
        let slice = x.slice(0, first, 15, 1);
        assert!(slice.elements().map(|e| e.1).eq((first..first + 15).map(|i| 8 * (i / 4) + i % 4)));
    }
}

#[test]
fn large_views_are_answered_in_closed_form() {
    let x = whole(&[1 << 15, 1 << 15]);
    assert!(!x.transpose().has_aliases());
    assert!(x.broadcast(2, 0).has_aliases());
    let (even, odd) = (x.slice(1, 0, 1 << 14, 2), x.slice(1, 1, 1 << 14, 2));
    assert_eq!(overlap(&even, &odd), None);
    assert_eq!(overlap(&x.slice(0, 5, 9, 1), &x.slice(1, 7, 2, 1)), Some((VarId::new(0), 5 * (1 << 15) + 7)));
}
