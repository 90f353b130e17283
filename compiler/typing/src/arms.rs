//! The keys of a `switch`: reports a key that is never taken, because earlier keys cover all its values or the operand
//! has none of them.
//!
//! Invariant: the first key that matches is taken, so a key whose values are all covered by earlier keys is a mistake.

use girder_ir::types::{ElemType, Scalar};
use girder_source::{Diagnostic, Span};
use std::collections::BTreeMap;

/// A key of an arm.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The index of the arm.
    pub arm: usize,
    /// Its first and last integer; `None` for `_`.
    pub range: Option<(i128, i128)>,
    /// The span of the key.
    pub span: Span,
}

/// Returns the diagnostic for the first key that is never taken; `ty` is the type of the operand, if it is an element.
pub fn never_taken(keys: &[Key], ty: Option<ElemType>) -> Option<Diagnostic> {
    // The values covered so far: disjoint ranges that do not touch, keyed by their first integers.
    let mut taken: BTreeMap<i128, i128> = BTreeMap::new();
    let mut rest: Option<&Key> = None;
    for key in keys {
        if let Some(rest) = rest {
            return Some(never_taken_after(keys, key, rest, "this takes all that is left"));
        }
        let Some((lo, hi)) = key.range else {
            if let Some(ty) = ty.filter(|&ty| takes_all(&taken, ty)) {
                let d = Diagnostic::error("elaborate::never_taken", key.span, message(keys, key));
                return Some(
                    d.help(format!("the keys before it take all values of {} `{ty}`; remove it", article(ty))),
                );
            }
            rest = Some(key);
            continue;
        };
        let (mut first, mut last) = (lo, hi);
        // Ranges that overlap or touch this one are merged with it.
        while let Some((&start, &end)) = taken.range(..=last + 1).next_back().filter(|(_, end)| **end + 1 >= first) {
            if start <= lo && hi <= end {
                let takes = |k: &&Key| k.range.is_some_and(|(a, b)| a <= lo && lo <= b);
                let earlier = keys.iter().find(takes).unwrap_or(key);
                return Some(never_taken_after(keys, key, earlier, "taken here"));
            }
            taken.remove(&start);
            (first, last) = (first.min(start), last.max(end));
        }
        taken.insert(first, last);
    }
    None
}

/// Returns whether keys take all values of an integer type.
pub fn cover(keys: &[Key], ty: ElemType) -> bool {
    let mut all: Vec<(i128, i128)> = keys.iter().filter_map(|key| key.range).collect();
    all.sort_unstable();
    let mut taken: BTreeMap<i128, i128> = BTreeMap::new();
    for (lo, hi) in all {
        match taken.last_entry().filter(|last| last.get() + 1 >= lo) {
            Some(mut last) => *last.get_mut() = hi.max(*last.get()),
            None => _ = taken.insert(lo, hi),
        }
    }
    keys.iter().any(|key| key.range.is_none()) || takes_all(&taken, ty)
}

/// Returns whether one of the ranges has all values of an integer type.
fn takes_all(taken: &BTreeMap<i128, i128>, ty: ElemType) -> bool {
    let values = 1i128 << (8 * ty.bytes());
    let first = if ty.is_signed_int() { -values / 2 } else { 0 };
    let around = taken.range(..=first).next_back();
    ty.is_int() && around.is_some_and(|(_, &last)| last >= first + values - 1)
}

/// Returns the diagnostic for the first key none of whose values an integer type has.
pub fn beyond(keys: &[Key], ty: ElemType) -> Option<Diagnostic> {
    // A range with integers on both sides of zero has zero.
    let is_beyond =
        |(lo, hi): (i128, i128)| !(lo < 0 && hi >= 0) && Scalar::int(ty, lo).is_none() && Scalar::int(ty, hi).is_none();
    let key = keys.iter().find(|key| key.range.is_some_and(is_beyond))?;
    let d = Diagnostic::error("elaborate::never_taken", key.span, message(keys, key));
    Some(d.help(format!("the operand is {} `{ty}`, which never has such a value; remove this one", article(ty))))
}

fn article(ty: ElemType) -> &'static str {
    if ty.is_signed_int() { "an" } else { "a" }
}

fn message(keys: &[Key], key: &Key) -> &'static str {
    let alone = keys.iter().filter(|k| k.arm == key.arm).count() == 1;
    if alone { "this arm is never taken" } else { "this key is never taken" }
}

fn never_taken_after(keys: &[Key], key: &Key, earlier: &Key, role: &str) -> Diagnostic {
    let help = "the first arm that fits is taken; remove this one, or move it before the other";
    Diagnostic::error("elaborate::never_taken", key.span, message(keys, key)).label(earlier.span, role).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(ranges: &[Option<(i128, i128)>]) -> Vec<Key> {
        ranges
            .iter()
            .enumerate()
            .map(|(arm, &range)| Key { arm, range, span: Span::new(arm as u32, arm as u32 + 1) })
            .collect()
    }

    fn first(ranges: &[Option<(i128, i128)>]) -> Option<u32> {
        never_taken(&keys(ranges), None).map(|d| d.labels[0].span.lo)
    }

    #[test]
    fn the_rest_is_never_taken_after_all_values_of_the_type() {
        let last = |ty, ranges: &[(i128, i128)]| {
            let mut all: Vec<_> = ranges.iter().copied().map(Some).collect();
            let covered = cover(&keys(&all), ty);
            all.push(None);
            assert_eq!(never_taken(&keys(&all), Some(ty)).is_some(), covered);
            covered
        };
        assert!(last(ElemType::U8, &[(0, 127), (128, 255)]) && last(ElemType::U8, &[(200, 300), (-1, 250)]));
        assert!(!last(ElemType::U8, &[(0, 254)]) && !last(ElemType::U8, &[(1, 255)]));
        assert!(!last(ElemType::U8, &[(0, 99), (101, 255)]));
        assert!(last(ElemType::I32, &[(i32::MIN.into(), -1), (0, i32::MAX.into())]));
        assert!(!last(ElemType::I32, &[(0, i32::MAX.into())]));
        assert!(last(ElemType::U64, &[(0, u64::MAX.into())]) && !last(ElemType::U64, &[(0, i64::MAX.into())]));
    }

    #[test]
    fn a_key_is_beyond_a_type_if_no_value_of_it_fits() {
        let beyond = |ty, lo, hi| beyond(&keys(&[None, Some((lo, hi))]), ty).is_some();
        assert!(beyond(ElemType::U8, 256, 300) && beyond(ElemType::U8, -2, -1) && beyond(ElemType::U32, -1, -1));
        assert!(!beyond(ElemType::U8, 255, 300) && !beyond(ElemType::U8, -1, 0) && !beyond(ElemType::U8, -9, 900));
        assert!(beyond(ElemType::I32, 1 << 31, 1 << 40) && !beyond(ElemType::I32, -1 << 40, -1 << 31));
        assert!(beyond(ElemType::U64, -1, -1) && !beyond(ElemType::U64, 0, i128::from(u64::MAX)));
    }

    #[test]
    fn a_key_is_reached_unless_earlier_ones_take_all_of_it() {
        assert_eq!(first(&[Some((1, 1)), Some((2, 2)), None]), None);
        assert_eq!(first(&[Some((1, 1)), Some((1, 1))]), Some(1));
        assert_eq!(first(&[Some((0, 3)), Some((3, 5)), Some((1, 5))]), Some(2));
        assert_eq!(first(&[Some((0, 1)), Some((4, 5)), Some((2, 3)), Some((0, 5))]), Some(3));
        assert_eq!(first(&[Some((1, 2)), Some((0, 3))]), None);
        assert_eq!(first(&[None, Some((0, 3))]), Some(1));
        assert_eq!(first(&[Some((0, 3)), None, None]), Some(2));
    }
}
