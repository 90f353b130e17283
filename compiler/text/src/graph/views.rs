//! Views: an index if the elements are a box along the axes of the variable, otherwise an offset with strides.
//!
//! # Note: Axes
//! A strided box is printed as an index of its variable under three conditions: along each axis of the variable, the
//! position of its first element is a number for each instance; each of its strides is a whole number of steps along
//! one axis, in order; no step leaves an axis. An axis of length 1 takes the last free axis of the variable.

use super::Printer;
use super::binders::{Binders, Number};
use girder_ir::affine::Affine;
use girder_ir::family::{BoxNode, BoxTree, Domain, Field, FieldPart, Offset};
use girder_ir::ids::FieldId;
use girder_ir::types::ElemType;
use girder_ir::view::View;
use girder_source::Span;
use girder_syntax::ast::{ExprId, Index};
use girder_syntax::make::{arg, named};

/// One axis of a variable in an index.
struct Picked {
    /// The first position.
    start: Number,
    /// Count and step; `None` selects one position and removes the axis.
    range: Option<(u64, i64)>,
}

impl Printer<'_> {
    /// Returns a view outside of families.
    pub(super) fn view(&mut self, view: &View, ty: ElemType) -> ExprId {
        let domain = Domain::default();
        let mut binders = Binders::new(self, &domain);
        self.field(&Field::uniform(FieldId::from_u32(0), view), ty, &mut binders)
    }

    /// Returns the view of a field of a family.
    pub(super) fn field(&mut self, field: &Field, ty: ElemType, binders: &mut Binders<'_>) -> ExprId {
        let Some(tree) = Some(field).filter(|f| !f.is_empty()).and_then(BoxTree::of) else {
            return self.empty(field, ty);
        };
        let view = self.node(&tree.root, &tree.axes, binders);
        match &tree.reshape {
            None => view,
            Some(shape) => self.reshape(view, shape),
        }
    }

    fn reshape(&mut self, base: ExprId, shape: &[u64]) -> ExprId {
        let callee = self.make.field(base, "reshape");
        let shape = self.uints(shape);
        self.make.call(callee, vec![arg(shape)])
    }

    /// Returns a view without elements, of some variable of the type.
    fn empty(&mut self, field: &Field, ty: ElemType) -> ExprId {
        let shape = field.shape();
        let of_type = |nothing: bool| self.graph.vars.values().find(|v| v.ty == ty && v.is_empty() == nothing);
        match (of_type(true), of_type(false)) {
            (Some(v), _) if v.shape[..] == shape[..] => self.make.name(&v.name),
            (Some(v), _) => {
                let base = self.make.name(&v.name);
                self.reshape(base, &shape)
            }
            (None, v) => {
                let base = self.make.name(v.map_or("", |v| &v.name));
                let zero = self.make.uint(0);
                let (dims, strides) = (self.uints(&shape), self.uints(&vec![0; shape.len()]));
                self.strided(base, zero, dims, strides)
            }
        }
    }

    fn strided(&mut self, base: ExprId, offset: ExprId, dims: ExprId, strides: ExprId) -> ExprId {
        let callee = self.make.field(base, "strided");
        self.make.call(callee, vec![named("offset", offset), named("dims", dims), named("strides", strides)])
    }

    fn node(&mut self, node: &BoxNode, axes: &[Option<usize>], binders: &mut Binders<'_>) -> ExprId {
        match node {
            BoxNode::Box(part) => self.part(part, axes, binders),
            BoxNode::Concat { axis, nodes } => {
                let nodes = nodes.iter().map(|n| self.node(n, axes, binders)).collect();
                let (list, axis) = (self.make.list(nodes), self.make.uint(*axis as u64));
                self.make.call_name("concat", vec![arg(list), named("axis", axis)])
            }
        }
    }

    fn part(&mut self, part: &FieldPart, axes: &[Option<usize>], binders: &mut Binders<'_>) -> ExprId {
        let var = &self.graph.vars[part.var];
        let base = self.make.name(&var.name);
        if let Some(picked) = picked(part, axes, &var.shape, binders.domain) {
            return self.indexed(base, &picked, &var.shape, binders);
        }
        let offset = binders.number(self, &Number::of(&part.offset), 0);
        let (dims, strides): (Vec<u64>, Vec<i64>) = part.extents(axes).unzip();
        let dims = self.uints(&dims);
        let strides = strides.iter().map(|&s| self.make.int(s)).collect();
        let strides = self.make.list(strides);
        self.strided(base, offset, dims, strides)
    }

    /// Returns `base[i, 2..4]`, without whole axes at the end.
    fn indexed(&mut self, base: ExprId, picked: &[Picked], shape: &[u64], binders: &mut Binders<'_>) -> ExprId {
        let whole = |(p, &n): (&Picked, &u64)| p.range == Some((n, 1)) || (n == 1 && p.range.is_some());
        let used = picked.iter().zip(shape).rposition(|a| !whole(a)).map_or(0, |k| k + 1);
        if used == 0 {
            return base;
        }
        let mut index = Vec::with_capacity(used);
        for (p, n) in picked.iter().zip(shape).take(used) {
            index.push(if whole((p, n)) {
                Index::Open { start: None, end: None, by: None, span: Span::NONE }
            } else {
                self.range_of(p, binders)
            });
        }
        self.make.index(base, index)
    }

    /// Prints an index as `i`, `i..i + 3`, `9..1 by -2`, or `9.. by -1` (down to 0).
    fn range_of(&mut self, p: &Picked, binders: &mut Binders<'_>) -> Index {
        let start = binders.number(self, &p.start, 0);
        let Some((n, step)) = p.range else { return Index::Expr(start) };
        let by = (step != 1).then(|| self.make.int(step));
        let length = n as i64 * step;
        // Only a range with one start can be known to end at 0.
        if matches!(&p.start, Number::Affine(a) if a.coef.is_empty() && a.base + length < 0) {
            return Index::Open { start: Some(start), end: None, by, span: Span::NONE };
        }
        let end = binders.number(self, &p.start, length);
        Index::Expr(match by {
            None => self.make.range(start, end),
            Some(by) => self.make.range_by(start, end, by),
        })
    }
}

/// Returns a part as an index of its variable, or `None` if it is not one; see the note.
fn picked(part: &FieldPart, axes: &[Option<usize>], shape: &[u64], domain: &Domain) -> Option<Vec<Picked>> {
    let strides = row_strides(shape);
    let ranges = ranges(&part.extents(axes).collect::<Vec<_>>(), shape, &strides)?;
    let starts = starts(&part.offset, &strides, domain);
    let mut picked = Vec::with_capacity(shape.len());
    for ((start, range), &n) in starts.into_iter().zip(ranges).zip(shape) {
        let (lo, hi) = start.bounds(domain);
        let reach = range.map_or(0, |(n, step)| (n as i64 - 1) * step);
        if lo + reach.min(0) < 0 || hi + reach.max(0) >= n as i64 {
            return None;
        }
        picked.push(Picked { start, range });
    }
    Some(picked)
}

/// Returns the row-major strides of a shape.
fn row_strides(shape: &[u64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for k in (1..shape.len()).rev() {
        strides[k - 1] = strides[k] * shape[k] as i64;
    }
    strides
}

/// Returns count and step along each axis of a variable for which the box has an axis.
fn ranges(lines: &[(u64, i64)], shape: &[u64], strides: &[i64]) -> Option<Vec<Option<(u64, i64)>>> {
    let mut ranges = vec![None; shape.len()];
    // From the last axis on, so that axes of length 1 take the last free axes.
    let mut free = shape.len();
    for &(n, stride) in lines.iter().rev() {
        let (axis, step) = match n {
            1 => (free.checked_sub(1)?, 1),
            _ => {
                let fits = |a: &usize| shape[*a] > 1 && stride.abs() >= strides[*a];
                let axis = (0..free).find(fits).filter(|&a| stride != 0 && stride % strides[a] == 0)?;
                (axis, stride / strides[axis])
            }
        };
        ranges[axis] = Some((n, step));
        free = axis;
    }
    Some(ranges)
}

/// Splits an offset into positions along each axis.
fn starts(offset: &Offset, strides: &[i64], domain: &Domain) -> Vec<Number> {
    match offset {
        Offset::Affine(a) => {
            let base = places(a.base, strides);
            let coefs: Vec<Vec<i64>> = a.coef.iter().map(|&c| places(c, strides)).collect();
            let start = |k: usize| Affine::new(base[k], &coefs.iter().map(|c| c[k]).collect::<Vec<_>>());
            (0..strides.len()).map(|k| Number::Affine(start(k))).collect()
        }
        Offset::Table(t) => {
            let rows: Vec<Vec<i64>> = t.iter().map(|&v| places(v as i64, strides)).collect();
            let column = |k: usize| rows.iter().map(|r| r[k]).collect();
            (0..strides.len()).map(|k| Number::fit(domain, column(k))).collect()
        }
    }
}

/// Splits a flat index into positions along each axis; all have its sign.
fn places(flat: i64, strides: &[i64]) -> Vec<i64> {
    let mut rest = flat;
    let mut place = |&s: &i64| {
        let p = rest / s;
        rest %= s;
        p
    };
    strides.iter().map(&mut place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_length_1_take_the_last_free_axis() {
        let shape = [2, 10, 5];
        let strides = row_strides(&shape);
        let of = |lines: &[(u64, i64)]| ranges(lines, &shape, &strides);
        assert_eq!(of(&[(10, 5)]), Some(vec![None, Some((10, 1)), None]));
        assert_eq!(of(&[(1, 0)]), Some(vec![None, None, Some((1, 1))]));
        assert_eq!(of(&[(1, 0), (3, -10)]), Some(vec![Some((1, 1)), Some((3, -2)), None]));
        assert_eq!(of(&[(1, 0), (1, 0), (3, -10)]), None);
        assert_eq!(of(&[(5, 1), (2, 50)]), None);
        assert_eq!(of(&[(3, 0)]), None);
    }
}
