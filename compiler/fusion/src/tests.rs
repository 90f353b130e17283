use crate::space::{Access, Extents, IterationSpace};
use girder_ir::ids::VarId;
use girder_ir::types::ElemType;
use proptest::prelude::*;

fn access(start: i64, strides: &[i64]) -> Access {
    Access { var: VarId::from_u32(0), ty: ElemType::F32, start, strides: strides.into() }
}

/// Returns the bytes that each iteration touches; the order of iterations is unspecified.
fn touched(space: &IterationSpace) -> Vec<Vec<i64>> {
    let mut all = vec![space.accesses.iter().map(|a| a.start).collect::<Vec<i64>>()];
    for (k, &n) in space.extents.iter().enumerate() {
        let step = |at: &Vec<i64>, i: u64| -> Vec<i64> {
            at.iter().zip(&space.accesses).map(|(at, a)| at + i as i64 * a.strides[k]).collect()
        };
        all = all.iter().flat_map(|at| (0..n).map(move |i| step(at, i))).collect();
    }
    all.sort_unstable();
    all
}

/// Two accesses over up to three extents: an injective one and an arbitrary one.
fn space() -> impl Strategy<Value = IterationSpace> {
    let steps = proptest::sample::select(vec![-400, -96, -24, -4, 0, 4, 24, 96, 400]);
    let extents = proptest::collection::vec(1u64..5, 0..4);
    (extents, proptest::collection::vec(steps, 6), proptest::sample::select(vec![0usize, 1, 2])).prop_map(
        |(extents, steps, order)| {
            let rank = extents.len();
            let mut dense = [96, 24, 4];
            dense.rotate_left(order);
            let accesses = vec![access(1000, &dense[..rank]), access(1 << 20, &steps[..rank])];
            IterationSpace { extents: extents.into(), accesses }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_order_keeps_all_iterations(space in space()) {
        let ordered = space.clone().ordered_by(0);
        prop_assert_eq!(touched(&ordered), touched(&space));
        prop_assert!(ordered.accesses[0].strides.is_sorted_by(|a, b| a >= b && *b > 0));
        prop_assert!(ordered.extents.iter().all(|&n| n > 1));
    }

    #[test]
    fn finer_extents_have_the_same_iterations(space in space(), other in space()) {
        let (space, other) = (space.ordered_by(0), other.ordered_by(0));
        if space.len() == other.len() && let Some(fine) = space.cut_at(&other.products()) {
            prop_assert_eq!(touched(&fine), touched(&space));
            let back = other.cut_at(&space.products()).unwrap();
            prop_assert_eq!(back.extents, fine.extents);
        }
    }

    #[test]
    fn appended_iterations_are_kept(space in space(), at in proptest::sample::select(vec![-384, -4, 4, 16, 96, 384])) {
        let mut next = space.ordered_by(0);
        let mut whole = next.clone();
        let mut expected = touched(&next);
        for _ in 0..3 {
            next.accesses.iter_mut().for_each(|a| a.start += at);
            if !whole.append(&next) {
                break;
            }
            expected.extend(touched(&next));
        }
        expected.sort_unstable();
        prop_assert_eq!(touched(&whole), expected);
    }

    #[test]
    fn a_box_cut_along_each_axis_becomes_one_again(space in space(), cuts in proptest::collection::vec(1u64..4, 3)) {
        let whole = space.ordered_by(0);
        let mut parts = vec![whole.clone()];
        for (k, &at) in cuts.iter().enumerate().take(whole.extents.len()) {
            let halves = |part: IterationSpace| {
                let (mut first, mut second) = (part.clone(), part);
                let n = second.extents[k];
                (first.extents[k], second.extents[k]) = (at.min(n), n - at.min(n));
                second.accesses.iter_mut().for_each(|a| a.start += a.strides[k] * at.min(n) as i64);
                [first, second].into_iter().filter(|p| p.extents[k] > 0)
            };
            parts = parts.into_iter().flat_map(halves).collect();
        }
        let mut joined: Vec<IterationSpace> = vec![];
        for part in parts {
            joined.push(part.ordered_by(0));
            while let [.., last, next] = &mut joined[..] && last.append(next) {
                joined.pop();
            }
        }
        let all: Vec<Vec<i64>> = joined.iter().flat_map(touched).collect();
        prop_assert_eq!({ let mut all = all; all.sort_unstable(); all }, touched(&whole));
    }

    #[test]
    fn an_injective_access_has_each_byte_once(space in space()) {
        let [_, any] = &space.accesses[..] else { unreachable!() };
        let only = IterationSpace { extents: space.extents.clone(), accesses: vec![any.clone()] };
        let mut bytes: Vec<i64> = touched(&only).concat();
        bytes.dedup();
        let each_once = bytes.len() as u64 == space.len();
        prop_assert!(each_once || !any.is_injective(&space.extents));
        let hull = any.hull(&space.extents);
        prop_assert_eq!((hull.start, hull.end), (bytes[0], bytes[bytes.len() - 1] + 4));
    }
}

#[test]
fn a_remainder_and_rows_join() {
    let line =
        |start: i64, n: u64| IterationSpace { extents: Extents::from_slice(&[n]), accesses: vec![access(start, &[4])] };
    let mut whole = line(0, 46 * 10);
    assert!(whole.append(&line(4 * 460, 12)));
    assert_eq!(whole, line(0, 472));
    let mut rows = line(0, 8);
    assert!((1..5).all(|k| rows.append(&line(64 * k, 8))));
    assert_eq!((&rows.extents[..], &rows.accesses[0].strides[..]), (&[5, 8][..], &[64, 4][..]));
    assert!(!rows.append(&line(64 * 6, 8)));
    // 512 rows of 768 elements, and one element for each row: 731 columns and the other 37.
    let columns = |first: i64, n: u64| IterationSpace {
        extents: Extents::from_slice(&[512, n]),
        accesses: vec![access(4 * first, &[4 * 768, 4]), access(1 << 20, &[4, 0])],
    };
    let mut wide = columns(0, 731);
    assert!(wide.append(&columns(731, 37)));
    assert_eq!(wide, columns(0, 768));
}
