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

/// Returns the diagnostic for the first key that is never taken.
pub fn never_taken(keys: &[Key]) -> Option<Diagnostic> {
    // The values covered so far: disjoint ranges that do not touch, keyed by their first integers.
    let mut taken: BTreeMap<i128, i128> = BTreeMap::new();
    let mut rest: Option<&Key> = None;
    for key in keys {
        if let Some(rest) = rest {
            return Some(never_taken_after(keys, key, rest, "this takes all that is left"));
        }
        let Some((lo, hi)) = key.range else {
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
        never_taken(&keys(ranges)).map(|d| d.labels[0].span.lo)
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
