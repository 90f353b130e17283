//! Fields of other variables at the iterations of a given field: the vertices that access the given field at an
//! iteration access the new one at the same iteration.
//!
//! Invariant: vertex and index of a new field belong to the same iteration as those of the field that it is made from.

use cranelift_entity::EntityRef;
use girder_fusion::space::{Access, ExtentPart};
use girder_ir::affine::Affine;
use girder_ir::family::{Domain, Field, FieldPart, Offset};
use girder_ir::ids::FieldId;
use girder_ir::view::{Digits, View};
use smallvec::SmallVec;

/// A field of a family, with the iterations to which its vertices and dimensions belong.
pub(super) struct Beside<'a> {
    domain: &'a Domain,
    field: &'a Field,
    /// The iteration of the first element of the first vertex.
    lo: Vec<u64>,
    /// The extents along which each index of the domain moves.
    across: Vec<SmallVec<[ExtentPart; 2]>>,
    /// The extents along which each digit of the field moves.
    within: Vec<SmallVec<[ExtentPart; 2]>>,
}

impl<'a> Beside<'a> {
    /// Finds the iterations of a field of an access. The extents are in the order of its addresses.
    pub fn new(
        domain: &'a Domain,
        field: &'a Field,
        own: &Access,
        extents: &[u64],
        offsets: &[u64],
    ) -> Option<Beside<'a>> {
        let [part] = &field.parts[..] else { return None };
        let Offset::Affine(affine) = &part.offset else { return None };
        if part.len != field.digits {
            return None;
        }
        let size = i64::from(own.ty.bytes());
        let first = offsets[own.var.index()] as i64;
        let along = |(n, stride): (u32, i64)| match n {
            1 => Some(SmallVec::new()),
            n => own.parts_along(extents, u64::from(n), stride.checked_mul(size)?),
        };
        let coef = |k: usize| affine.coef.get(k).copied().unwrap_or(0);
        let lo = own.index_of(affine.base.checked_mul(size)? + first)?;
        let across = domain.0.iter().enumerate().map(|(k, &n)| along((n, coef(k)))).collect::<Option<_>>()?;
        let digits = part.len.iter().copied().zip(part.stride.iter().copied());
        Some(Beside { domain, field, lo, across, within: digits.map(along).collect::<Option<_>>()? })
    }

    /// Returns the field of another access at the same iterations, and the dimensions along which it moves.
    pub fn field(&self, other: &Access, offsets: &[u64]) -> Option<(Field, SmallVec<[usize; 3]>)> {
        let size = i64::from(other.ty.bytes());
        let stride = |p: &ExtentPart| other.strides[p.extent] * p.unit as i64 / size;
        let mut coef = vec![];
        for parts in &self.across {
            let mut reach = None;
            for p in parts {
                let (step, n) = reach.unwrap_or((stride(p), 1));
                if stride(p) != step * n {
                    return None;
                }
                reach = Some((step, n * p.n as i64));
            }
            coef.push(reach.map_or(0, |r| r.0));
        }
        let start = other.start + self.lo.iter().zip(&other.strides).map(|(&at, s)| at as i64 * s).sum::<i64>();
        let base = (start - offsets[other.var.index()] as i64) / size;
        let (mut digits, mut strides): (Digits, SmallVec<[i64; 4]>) = Default::default();
        let (mut axes, mut along): (SmallVec<[u8; 4]>, SmallVec<[usize; 3]>) = Default::default();
        let mut of_digits = self.within.iter();
        for (axis, &count) in self.field.axes.iter().enumerate() {
            let before = digits.len();
            let parts: Vec<&ExtentPart> = of_digits.by_ref().take(count.into()).flat_map(|p| p.iter().rev()).collect();
            if !parts.is_empty() && parts.iter().all(|p| stride(p) == 0) {
                continue;
            }
            for p in parts.into_iter().filter(|p| p.n > 1) {
                let (n, step) = (u32::try_from(p.n).ok()?, stride(p));
                match (digits[before..].last(), strides.last_mut()) {
                    (Some(_), Some(last)) if *last == step * i64::from(n) => {
                        let joined = digits.last_mut()?;
                        *joined = joined.checked_mul(n)?;
                        *last = step;
                    }
                    _ => {
                        digits.push(n);
                        strides.push(step);
                    }
                }
            }
            axes.push(u8::try_from(digits.len() - before).ok()?);
            along.push(axis);
        }
        let part = FieldPart {
            lo: SmallVec::from_elem(0, digits.len()),
            len: digits.clone(),
            var: other.var,
            offset: Offset::Affine(Affine::new(base, &coef)),
            stride: strides,
        };
        let field = Field { field: FieldId::from_u32(0), digits, axes, parts: SmallVec::from_elem(part, 1) };
        debug_assert_eq!(coef.len(), self.domain.0.len());
        (field.len() <= View::MAX_LEN).then_some((field, along))
    }
}
