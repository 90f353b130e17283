//! Closed forms of fields: one stride per axis, with which a compiled vertex accesses the field in place; one step from
//! instance to instance; one view of all instances.
//!
//! Invariant: for every field and instance, the element at an index of the field is at its first element plus the
//! strides times the index.

use girder_codelet::kernel::FieldLayout;
use girder_ir::family::{Const, Domain, Family, Field, FieldPart, Offset};
use girder_ir::view::{Digits, View, ViewPart};
use smallvec::SmallVec;

/// Returns the byte strides per axis of a field with elements of `size` bytes, or `None` if its parts or the digits of
/// an axis do not join.
pub fn field_strides(field: &Field, size: u32) -> Option<FieldLayout> {
    if field.is_empty() {
        return Some(field.axes.iter().map(|_| 0).collect());
    }
    let [part] = &field.parts[..] else { return None };
    let mut digit = 0;
    let axis = |&count: &u8| {
        let own = digit..digit + count as usize;
        digit = own.end;
        joined(&field.digits[own.clone()], &part.stride[own]).map(|s| s * size as i64)
    };
    field.axes.iter().map(axis).collect()
}

/// Returns the stride of some digits as one axis.
fn joined(digits: &[u32], strides: &[i64]) -> Option<i64> {
    let mut unit = None;
    let mut len = 1;
    for (&n, &stride) in digits.iter().zip(strides).rev().filter(|d| *d.0 > 1) {
        let inner = *unit.get_or_insert(stride);
        if stride != inner * len {
            return None;
        }
        len *= n as i64;
    }
    Some(unit.unwrap_or(0))
}

/// Returns the first value of an offset and its step from instance to instance, or `None` if the step varies.
pub fn line(offset: &Offset, domain: &Domain) -> Option<(i64, i64)> {
    match offset {
        Offset::Affine(affine) => {
            let coef: Vec<i64> = (0..domain.0.len()).map(|k| affine.coef.get(k).copied().unwrap_or(0)).collect();
            joined(&domain.0, &coef).map(|step| (affine.base, step))
        }
        Offset::Table(table) => {
            let first = *table.first()? as i64;
            let step = table.get(1).map_or(0, |&t| t as i64 - first);
            let straight = table.iter().enumerate().all(|(i, &t)| t as i64 == first + i as i64 * step);
            straight.then_some((first, step))
        }
    }
}

/// Returns one view of a field's elements in all instances, one after another, or `None` if an offset has no closed
/// form or the view would be too long.
pub fn all_instances(field: &Field, domain: &Domain) -> Option<View> {
    let count = domain.count().checked_mul(field.len()).filter(|&n| n <= View::MAX_LEN)?;
    let before = |own: &Digits, outer: u32| domain.0.iter().map(|_| outer).chain(own.iter().copied()).collect();
    let part = |p: &FieldPart| match &p.offset {
        Offset::Affine(affine) => {
            let coef = (0..domain.0.len()).map(|k| affine.coef.get(k).copied().unwrap_or(0));
            Some(ViewPart {
                lo: before(&p.lo, 0),
                len: domain.0.iter().chain(&p.len).copied().collect(),
                var: p.var,
                offset: affine.base,
                stride: coef.chain(p.stride.iter().copied()).collect(),
            })
        }
        Offset::Table(_) => None,
    };
    let parts = if count == 0 { SmallVec::new() } else { field.parts.iter().map(part).collect::<Option<_>>()? };
    let digits = domain.0.iter().chain(&field.digits).copied().collect();
    let axes = domain.0.iter().map(|_| 1).chain(field.axes.iter().copied()).collect();
    Some(View { digits, axes, parts })
}

/// Returns the constants of some of a family's instances as words, and the words per instance: 0 if all share one
/// record.
pub fn const_table(family: &Family, instances: impl Iterator<Item = u64>) -> (Vec<u64>, u64) {
    let record = |i: u64| family.consts.iter().map(move |(_, c)| c.at(i).bits);
    match family.consts.iter().all(|(_, c)| matches!(c, Const::Uniform(_))) {
        true => (record(0).collect(), 0),
        false => (instances.flat_map(record).collect(), family.consts.len() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;
    use girder_ir::affine::Affine;
    use girder_ir::ids::{FieldId, VarId};
    use smallvec::smallvec;

    fn field(digits: &[u32], axes: &[u8], stride: &[i64]) -> Field {
        let part = FieldPart {
            lo: SmallVec::from_elem(0, digits.len()),
            len: digits.into(),
            var: VarId::new(0),
            offset: Offset::Affine(Affine::constant(0)),
            stride: stride.into(),
        };
        Field { field: FieldId::new(0), digits: digits.into(), axes: axes.into(), parts: smallvec![part] }
    }

    #[test]
    fn digits_of_an_axis_join_if_their_strides_do() {
        assert_eq!(field_strides(&field(&[3, 4, 5], &[1, 2], &[-7, 10, 2]), 4), Some(smallvec![-28, 8]));
        assert_eq!(field_strides(&field(&[3, 1, 5], &[1, 2], &[-7, 99, 2]), 1), Some(smallvec![-7, 2]));
        assert_eq!(field_strides(&field(&[3, 4, 5], &[1, 2], &[-7, 11, 2]), 4), None);
        assert_eq!(field_strides(&field(&[1, 4], &[1, 1], &[5, 0]), 8), Some(smallvec![0, 0]));
        assert_eq!(field_strides(&field(&[], &[], &[]), 8), Some(smallvec![]));
    }

    #[test]
    fn the_view_of_all_instances_is_that_of_each_in_order() {
        let domain = Domain(smallvec![3, 1, 2]);
        let mut field = field(&[2, 3], &[2], &[30, 2]);
        field.parts[0].offset = Offset::Affine(Affine::new(7, &[100, 5, 10]));
        field.parts[0].len = smallvec![1, 3];
        let mut second = field.parts[0].clone();
        (second.lo[0], second.var, second.offset) = (1, VarId::new(1), Offset::Affine(Affine::new(500, &[-60])));
        field.parts.push(second);
        let each: Vec<_> = (0..6).flat_map(|i| field.view(&domain, i).elements()).collect();
        assert_eq!(all_instances(&field, &domain).unwrap().elements().collect::<Vec<_>>(), each);
        field.parts[1].offset = Offset::Table([0; 6].into());
        assert_eq!(all_instances(&field, &domain), None);
    }

    #[test]
    fn a_straight_offset_is_a_line() {
        let domain = Domain(smallvec![3, 4]);
        let affine = |base, coef: &[i64]| Offset::Affine(Affine::new(base, coef));
        assert_eq!(line(&affine(5, &[8, 2]), &domain), Some((5, 2)));
        assert_eq!(line(&affine(5, &[9, 2]), &domain), None);
        assert_eq!(line(&affine(5, &[]), &domain), Some((5, 0)));
        assert_eq!(line(&affine(5, &[3]), &Domain(smallvec![7, 1])), Some((5, 3)));
        assert_eq!(line(&Offset::Table([9, 6, 3].into()), &Domain(smallvec![3])), Some((9, -3)));
        assert_eq!(line(&Offset::Table([9, 6, 4].into()), &Domain(smallvec![3])), None);
    }
}
