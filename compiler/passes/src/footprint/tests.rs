//! Runs, hulls and proofs for random boxes agree with enumeration.

use super::*;
use cranelift_entity::EntityRef;
use proptest::prelude::*;

fn footprint(base: i64, dims: &[(u64, i64)], outer: usize) -> Footprint {
    let dims: SmallVec<[Dim; 8]> = dims.iter().map(|&(len, stride)| Dim { len, stride }).collect();
    let below: i64 = dims.iter().map(|d| ((d.len as i64 - 1) * d.stride).min(0)).sum();
    let domain = dims[..outer].iter().map(|d| d.len as u32).collect();
    Footprint { var: VarId::new(0), bases: Bases::One { base: base - below, outer }, dims, domain }
}

/// Every element with its instance, by counting through the box.
fn elements(f: &Footprint) -> Vec<(u64, u64)> {
    let Bases::One { base, outer } = f.bases else { unreachable!("tests build boxes") };
    let mut all = vec![(base, 0)];
    for (k, d) in f.dims.iter().enumerate() {
        let step = |&(at, n): &(i64, u64)| {
            let d = *d;
            (0..d.len).map(move |i| (at + i as i64 * d.stride, if k < outer { n * d.len + i } else { n }))
        };
        all = all.iter().flat_map(step).collect();
    }
    all.into_iter().map(|(e, n)| (e as u64, n)).collect()
}

fn boxes() -> impl Strategy<Value = Footprint> {
    let stride = prop_oneof![Just(0), Just(1), Just(-1), Just(2), Just(4), Just(8), Just(-8), Just(24), -7i64..8];
    let dims = prop::collection::vec((1u64..5, stride), 0..4);
    (0i64..30, dims, 0usize..3).prop_map(|(base, dims, outer)| footprint(base, &dims, outer.min(dims.len())))
}

proptest! {
    #[test]
    fn runs_and_hull_are_those_of_enumeration(f in boxes()) {
        let mut all: Vec<u64> = elements(&f).iter().map(|e| e.0).collect();
        all.sort_unstable();
        let mut runs = vec![];
        f.runs(|start, len| { runs.extend(start..start + len); true });
        runs.sort_unstable();
        prop_assert_eq!(&runs, &all);
        prop_assert_eq!(f.count(), all.len() as u64);
        prop_assert_eq!(f.hull(), (all[0], all[all.len() - 1]));
    }

    #[test]
    fn proofs_hold(f in boxes(), g in boxes()) {
        let a: Vec<u64> = elements(&f).iter().map(|e| e.0).collect();
        let b: Vec<u64> = elements(&g).iter().map(|e| e.0).collect();
        if f.surely_injective() {
            prop_assert!(a.iter().all(|e| a.iter().filter(|x| *x == e).count() == 1));
        }
        if f.surely_disjoint(&g) {
            prop_assert!(a.iter().all(|e| !b.contains(e)));
        }
    }

    #[test]
    fn instances_are_those_of_enumeration(f in boxes(), e in 0u64..60) {
        let mut want: Vec<u64> = elements(&f).iter().filter(|x| x.0 == e).map(|x| x.1).collect();
        want.sort_unstable();
        want.truncate(3);
        prop_assert_eq!(f.instances_at(e, 3), want);
    }
}

#[test]
fn the_interiors_of_blocks_are_proved_disjoint_from_their_rims() {
    // next[i, j, 1..33, 1..33] of f32[8, 8, 34, 34], and its first rows.
    let inner = footprint(35, &[(8, 9248), (8, 1156), (32, 34), (32, 1)], 2);
    let rim = footprint(0, &[(8, 9248), (8, 1156), (34, 1)], 2);
    assert!(inner.surely_injective() && rim.surely_injective());
    assert!(inner.surely_disjoint(&rim));
}
