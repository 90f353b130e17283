//! Checks of views and fields: parts cover their box, and elements exist.

use super::check::{Result, ensure, var};
use crate::family::{Domain, Field, Offset};
use crate::graph::{Graph, VarClass};
use crate::ids::VarId;
use crate::types::ElemType;
use crate::view::View;

/// Above this many parts only their total size is compared, because pairs would be too many.
const MAX_COMPARED: usize = 256;

/// The box of a part of a view or field.
struct PartBox<'a> {
    lo: &'a [u32],
    len: &'a [u32],
    strides: usize,
}

/// Checks a view; returns the type of its elements, or `None` without elements.
pub fn view(graph: &Graph, view: &View) -> std::result::Result<Option<ElemType>, String> {
    let parts = view.parts.iter().map(|p| PartBox { lo: &p.lo, len: &p.len, strides: p.stride.len() });
    let parts: Vec<PartBox> = parts.collect();
    boxes(&view.digits, &view.axes, &parts)?;
    let mut ty = None;
    for p in &view.parts {
        inside(graph, p.var, p.region().hull(), &mut ty)?;
    }
    Ok(ty)
}

/// Checks a field over the instances of a family; returns the type of its elements, or `None` without elements.
pub fn field(graph: &Graph, field: &Field, domain: &Domain) -> std::result::Result<Option<ElemType>, String> {
    let parts = field.parts.iter().map(|p| PartBox { lo: &p.lo, len: &p.len, strides: p.stride.len() });
    let parts: Vec<PartBox> = parts.collect();
    boxes(&field.digits, &field.axes, &parts)?;
    let mut ty = None;
    for p in &field.parts {
        match &p.offset {
            Offset::Affine(a) => ensure(a.coef.len() <= domain.0.len(), || "an offset of too many indices".into())?,
            Offset::Table(t) => {
                ensure(t.len() as u64 == domain.count(), || {
                    format!("{} offsets for {} instances", t.len(), domain.count())
                })?;
            }
        }
        if let Some((first, last)) = p.offset.bounds(domain) {
            let (lo, hi) = p.region_at(0).hull();
            inside(graph, p.var, (first + lo, last + hi), &mut ty)?;
        }
    }
    Ok(ty)
}

/// Checks that none of the variables is `const`.
pub fn writable(graph: &Graph, mut vars: impl Iterator<Item = VarId>) -> Result {
    match vars.find(|&v| graph.vars.get(v).is_some_and(|v| v.class == VarClass::Const)) {
        Some(v) => Err(format!("writes `{}`, which is const", graph.vars[v].name)),
        None => Ok(()),
    }
}

fn inside(graph: &Graph, id: VarId, (lo, hi): (i64, i64), ty: &mut Option<ElemType>) -> Result {
    let var = var(graph, id)?;
    ensure(lo >= 0 && hi < var.len() as i64, || format!("elements {lo} to {hi} of `{}`", var.name))?;
    let same = *ty.get_or_insert(var.ty) == var.ty;
    ensure(same, || format!("`{}` is not of the type of the other parts", var.name))
}

fn boxes(digits: &[u32], axes: &[u8], parts: &[PartBox]) -> Result {
    let sum: usize = axes.iter().map(|&n| n as usize).sum();
    ensure(sum == digits.len(), || format!("{} digits, but the axes have {sum}", digits.len()))?;
    let product = |extents: &[u32]| extents.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64));
    let len = if digits.contains(&0) { Some(0) } else { product(digits).filter(|&n| n <= View::MAX_LEN) };
    let len = len.ok_or("a view of too many elements")?;
    let mut covered = 0;
    for (k, p) in parts.iter().enumerate() {
        let ranks = [p.lo.len(), p.len.len(), p.strides];
        ensure(ranks.iter().all(|&r| r == digits.len()), || "a part of another rank".into())?;
        let fits = (0..digits.len()).all(|j| p.len[j] > 0 && p.lo[j] as u64 + p.len[j] as u64 <= digits[j] as u64);
        ensure(fits, || format!("part {k} leaves the box"))?;
        covered += product(p.len).unwrap_or(u64::MAX / 2);
        let compared = if parts.len() <= MAX_COMPARED { &parts[..k] } else { &[] };
        let meets =
            |q: &PartBox| (0..digits.len()).all(|j| p.lo[j] < q.lo[j] + q.len[j] && q.lo[j] < p.lo[j] + p.len[j]);
        ensure(!compared.iter().any(meets), || format!("part {k} meets another"))?;
    }
    ensure(covered == len, || format!("parts cover {covered} of {len} places"))
}
