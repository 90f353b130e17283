//! Recognises vertices that add the parts of products which vertices before them compute: both run as one product,
//! whose terms are in blocks, and the parts are never in memory.
//!
//! # Note: Products in blocks
//! The first vertices compute products `p[l] = a[.., block l] b[block l, ..]`, each from +0. The others compute
//! `y = p[0] + p[1] + …` element by element, or `y = y + p[0] + …`. The bits are those of one product that takes its
//! terms in blocks. It writes `y` while it reads `a` and `b`, so `y` shares no byte with them.
//!
//! Invariant: no other vertex touches the parts.

use super::linked::{LinkedProduct, join_columns};
use super::{MatrixLayout, MatrixProduct, ProductStart};
use crate::error::HostError;
use crate::hosted::HostedGraph;
use crate::kernels::KernelSet;
use girder_codelet::facts::Facts;
use girder_codelet::sizes::Sizes;
use girder_ir::codelet::{BinaryOp, Codelet, Dir, ExprKind, Stmt, StmtBlock};
use girder_ir::family::{Family, Field};
use girder_ir::ids::{ExprId, FamilyId, FieldId, LocalId, VarId};
use girder_ir::view::{View, ViewPart};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Statements and operands of a codelet that are evaluated to recognise it.
const MOST_EVALUATED: u32 = 1 << 20;
/// Maximal number of layouts of a step of sums.
const MOST_LAYOUTS: usize = 64;

/// Products with the vertices that add them.
#[derive(Clone, Debug)]
pub struct SummedProducts {
    /// The products, joined.
    pub products: Vec<MatrixProduct>,
    /// The linked products, joined; there are none if there are products.
    pub linked: Vec<LinkedProduct>,
}

/// Returns products with the families that add their parts, if these do nothing else. `is_inside` tells whether no
/// other unit accesses a variable.
pub(crate) fn summed<'g>(
    hosted: HostedGraph<'g>,
    kernels: &mut KernelSet<'g>,
    (first, sums): (&[FamilyId], &[FamilyId]),
    (products, linked): (&[MatrixProduct], &[LinkedProduct]),
    is_inside: impl Fn(VarId) -> bool,
) -> Result<Option<SummedProducts>, HostError> {
    let Some(parts) = parts_of(hosted, first).filter(|&parts| is_inside(parts)) else { return Ok(None) };
    let Some(layouts) = sums_of(hosted, kernels, sums, parts)? else { return Ok(None) };
    Ok(if linked.is_empty() {
        layouts.of_products(products).map(|products| SummedProducts { products, linked: Vec::new() })
    } else {
        let linked = layouts.of_linked(linked).map(join_columns);
        linked.map(|linked| SummedProducts { products: Vec::new(), linked })
    })
}

/// Returns the variable to which all vertices of some families write, if there is only one.
fn parts_of(hosted: HostedGraph<'_>, families: &[FamilyId]) -> Option<VarId> {
    let mut parts = None;
    for &id in families {
        let family = &hosted.graph.families[id];
        let codelet = &hosted.codelets[family.codelet];
        let written = family.fields.iter().filter(|f| codelet.fields[f.field].dir != Dir::In);
        for part in written.flat_map(|f| &f.parts) {
            if *parts.get_or_insert(part.var) != part.var {
                return None;
            }
        }
    }
    parts
}

/// Returns the sums of some families, if they do nothing but add elements of a variable.
fn sums_of<'g>(
    hosted: HostedGraph<'g>,
    kernels: &mut KernelSet<'g>,
    families: &[FamilyId],
    parts: VarId,
) -> Result<Option<SumsLayouts>, HostError> {
    let mut layouts = SumsLayouts::default();
    for &id in families {
        let family = &hosted.graph.families[id];
        let Some(shaped) = kernels.shaped(family)? else { continue };
        let (sizes, facts) = kernels.known(shaped);
        if layouts.add_family(hosted, (family, parts), sizes, facts).is_none() {
            return Ok(None);
        }
    }
    Ok(Some(layouts).filter(|layouts| !layouts.0.is_empty()))
}

/// A codelet with `y[e] = parts[0, e] + parts[1, e] + …` for all elements e of `y`, in this order.
struct SumBody {
    parts: FieldId,
    y: FieldId,
    /// The number of parts.
    count: u64,
    /// Whether the old element of `y` is the first summand.
    adds: bool,
}

/// The addresses of sums that have the same number of parts, and the same distances between parts and results.
#[derive(Debug)]
pub(super) struct SumsLayout {
    /// Bytes from part to part.
    pub step: i64,
    /// Bytes from an element of the first part to that of `y`.
    pub ahead: i64,
    /// The number of parts.
    pub count: u64,
    /// Whether the old element of `y` is the first summand.
    pub adds: bool,
    /// The bytes of the first part.
    pub first: Range<i64>,
    /// The elements of `y`.
    pub elements: u64,
}

/// The addresses that a step of sums adds: one layout for each group of parts.
#[derive(Default, Debug)]
pub(super) struct SumsLayouts(pub Vec<SumsLayout>);

impl SumsLayouts {
    /// Adds the sums of a family, or returns `None` if they are not sums of parts at a few distances from their
    /// results.
    fn add_family(
        &mut self,
        hosted: HostedGraph<'_>,
        (family, of_parts): (&Family, VarId),
        sizes: &Sizes,
        facts: &Facts,
    ) -> Option<()> {
        let codelet = &hosted.codelets[family.codelet];
        let body = SumBody::of(codelet, sizes, facts, hosted.workers)?;
        let field = |id: FieldId| family.fields.iter().find(|f| f.field == id);
        let (parts, y) = (field(body.parts)?, field(body.y)?);
        let size = codelet.fields[body.y].ty.bytes();
        if parts.parts.iter().any(|p| p.var != of_parts) {
            return None;
        }
        let ([from], [to]) = (&parts.parts[..], &y.parts[..]) else {
            let views = |k: u64| (parts.view(&family.domain, k), y.view(&family.domain, k));
            return (0..family.domain.count()).try_for_each(|k| self.add_views(hosted, views(k), size, &body));
        };
        let (step, reach) = distances(family, (parts, y), body.count)?;
        let (lo, hi) = (reach.start * i64::from(size), reach.end * i64::from(size));
        let bytes = i64::from(size);
        let (start, end) = (hosted.byte(from.var, 0), hosted.byte(to.var, 0));
        let mut instances = from.offset.values(&family.domain).zip(to.offset.values(&family.domain));
        instances.try_for_each(|(e, f)| {
            let (at, ahead) = (start + e * bytes, end + f * bytes - (start + e * bytes));
            let (count, adds, elements) = (body.count, body.adds, y.len());
            let first = at + lo..at + hi + bytes;
            self.add(SumsLayout { step: step * bytes, ahead, count, adds, first, elements })
        })
    }

    /// Adds the sums of one vertex, whose views may be of several boxes.
    fn add_views(
        &mut self,
        hosted: HostedGraph<'_>,
        (parts, y): (View, View),
        size: u32,
        body: &SumBody,
    ) -> Option<()> {
        if y.is_empty() || parts.len() > u64::from(MOST_EVALUATED) || parts.len() != body.count.checked_mul(y.len())? {
            return None;
        }
        let (step, size) = (step_between(&parts)?, i64::from(size));
        let mut elements = parts.index(0, 0).elements().zip(y.elements());
        elements.try_for_each(|((var, e), (of_y, f))| {
            let (at, to) = (hosted.byte(var, e as i64), hosted.byte(of_y, f as i64));
            let (count, adds) = (body.count, body.adds);
            self.add(SumsLayout { step: step * size, ahead: to - at, count, adds, first: at..at + size, elements: 1 })
        })
    }

    /// Adds sums to those with the same distances, or returns `None` if there would be too many layouts.
    fn add(&mut self, sums: SumsLayout) -> Option<()> {
        let key = |s: &SumsLayout| (s.step, s.ahead, s.count, s.adds);
        // Neighbours mostly add the same parts.
        if let Some(all) = self.0.iter_mut().rev().find(|all| key(all) == key(&sums)) {
            all.first = all.first.start.min(sums.first.start)..all.first.end.max(sums.first.end);
            all.elements += sums.elements;
            return Some(());
        }
        self.0.push(sums);
        (self.0.len() <= MOST_LAYOUTS).then_some(())
    }

    /// Returns products and these sums of them as products in blocks, or `None` if some product is no part, some part
    /// is not a product, or a result shares a byte with an operand.
    fn of_products(&self, products: &[MatrixProduct]) -> Option<Vec<MatrixProduct>> {
        let mut parts =
            PartProducts { by_result: products.iter().map(|p| (p.c.at, p)).collect(), ..PartProducts::default() };
        let mut whole: Vec<MatrixProduct> = vec![];
        for layout in &self.0 {
            whole.extend(layout.of_products(products, &mut parts)?);
        }
        if parts.taken.len() != products.len() {
            return None;
        }
        let results = whole.iter().map(|p| p.bytes(p.c, p.m, p.n));
        let results = results.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))?;
        let is_apart = |bytes: Range<i64>| bytes.end <= results.start || results.end <= bytes.start;
        let is_free = |p: &MatrixProduct| is_apart(p.bytes(p.a, p.m, p.k)) && is_apart(p.bytes(p.b, p.k, p.n));
        whole.iter().all(is_free).then_some(whole)
    }
}

/// The products that are parts of sums.
#[derive(Default)]
struct PartProducts<'a> {
    /// By the first byte of their results.
    by_result: FxHashMap<i64, &'a MatrixProduct>,
    /// The first bytes of the results of those that a sum has taken.
    taken: FxHashSet<i64>,
}

impl<'a> PartProducts<'a> {
    /// Returns the product with this result, if no sum has taken it before.
    fn take(&mut self, result: i64) -> Option<&'a MatrixProduct> {
        let product = *self.by_result.get(&result)?;
        self.taken.insert(result).then_some(product)
    }
}

impl SumsLayout {
    /// Returns whether bytes lie in the first part.
    pub(super) fn has_first(&self, bytes: &Range<i64>) -> bool {
        self.first.start <= bytes.start && bytes.end <= self.first.end
    }

    /// Returns whether the first part consists of these many elements, which are those of the sums. As these are
    /// different and lie in the first part, equal counts mean equal sets.
    pub(super) fn is_whole(&self, elements: u64, size: u32) -> bool {
        let is_packed = self.first.end - self.first.start == elements as i64 * i64::from(size);
        elements == self.elements && is_packed
    }

    /// Returns the products whose parts these sums add as products in blocks.
    fn of_products(&self, products: &[MatrixProduct], parts: &mut PartProducts) -> Option<Vec<MatrixProduct>> {
        let is_first = |p: &&MatrixProduct| self.has_first(&p.bytes(p.c, p.m, p.n));
        let firsts: Vec<&MatrixProduct> = products.iter().filter(is_first).collect();
        let elements: u64 = firsts.iter().map(|p| p.m * p.n).sum();
        let size = firsts.first()?.ty.bytes();
        self.is_whole(elements, size).then(|| firsts.iter().map(|p| self.whole(p, parts)).collect())?
    }

    /// Returns the product whose first block of terms is given.
    fn whole(&self, first: &MatrixProduct, parts: &mut PartProducts) -> Option<MatrixProduct> {
        parts.take(first.c.at)?;
        // The strides along terms are those of a block of several.
        if first.start != ProductStart::Number(0) || first.k < 2 && self.count > 1 {
            return None;
        }
        let mut whole = MatrixProduct {
            c: MatrixLayout { at: first.c.at + self.ahead, ..first.c },
            start: if self.adds { ProductStart::Added } else { first.start },
            block: first.k,
            ..*first
        };
        for l in 1..self.count as i64 {
            let block = parts.take(first.c.at + l * self.step)?;
            let same = |p: &MatrixProduct| (p.m, p.n, p.c.row, p.c.col, p.a.row, p.b.col, p.ty, p.start);
            let is_straight = block.k == 1 || (block.a.col, block.b.row) == (first.a.col, first.b.row);
            let ahead = |at: i64, stride: i64| at + whole.k as i64 * stride;
            let follows = block.a.at == ahead(first.a.at, first.a.col) && block.b.at == ahead(first.b.at, first.b.row);
            // Only the last block may be shorter.
            let is_in_order = whole.k == l as u64 * first.k && block.k <= first.k;
            if same(block) != same(first) || !is_straight || !follows || !is_in_order {
                return None;
            }
            whole.k += block.k;
        }
        Some(whole)
    }
}

/// Returns the elements from one index of a view's first axis to the next, if they are the same everywhere.
fn step_between(view: &View) -> Option<i64> {
    let digits = view.axis(0);
    let mut own = digits.clone().filter(|&d| view.digits[d] > 1);
    let Some(digit) = own.next() else { return Some(0) };
    let step = view.parts.first()?.stride[digit];
    let is_alike = |p: &ViewPart| p.len[digit] == view.digits[digit] && p.stride[digit] == step;
    (own.next().is_none() && view.parts.iter().all(is_alike)).then_some(step)
}

/// Returns the elements from part to part of the first field, and the least and greatest element of the second one
/// relative to its first, or `None` if some part is not at one distance from the second field. All instances of a
/// family of one part are alike.
fn distances(family: &Family, (parts, y): (&Field, &Field), count: u64) -> Option<(i64, Range<i64>)> {
    if y.is_empty() || parts.len() > u64::from(MOST_EVALUATED) || parts.len() != count.checked_mul(y.len())? {
        return None;
    }
    let elements = |field: &Field| -> Vec<i64> {
        let all: Vec<i64> = field.view(&family.domain, 0).elements().map(|(_, e)| e as i64).collect();
        all.iter().map(|e| e - all[0]).collect()
    };
    let (of_parts, of_y) = (elements(parts), elements(y));
    let step = of_parts.get(of_y.len()).copied().unwrap_or(0);
    let is_alike = |(l, part): (i64, &[i64])| part.iter().zip(&of_y).all(|(p, e)| *p == l * step + e);
    let (lo, hi) = (of_y.iter().min()?, of_y.iter().max()?);
    (0..).zip(of_parts.chunks(of_y.len())).all(is_alike).then_some((step, *lo..*hi))
}

/// A value of a codelet that adds parts.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Value {
    Int(i64),
    /// An element of a field.
    Element {
        field: FieldId,
        at: u64,
    },
    /// The sum of the first parts of an element, perhaps after its old value.
    Sum {
        parts: FieldId,
        at: u64,
        count: u64,
        adds: Option<FieldId>,
    },
}

/// The evaluation of a codelet for given sizes.
struct Evaluation<'a> {
    codelet: &'a Codelet,
    sizes: &'a Sizes,
    /// A worker, and the number of workers.
    worker: (u32, u32),
    locals: FxHashMap<LocalId, Value>,
    /// The sum in each element that was written.
    written: FxHashMap<(FieldId, u64), Value>,
    left: u32,
}

impl SumBody {
    /// Returns a codelet as sums, or `None` if it is something else for these sizes. The workers of a `multi` codelet
    /// add elements of their own.
    fn of(codelet: &Codelet, sizes: &Sizes, facts: &Facts, workers: u32) -> Option<SumBody> {
        if codelet.sites.keys().any(|site| !facts.proven.contains(site)) {
            return None;
        }
        let (locals, written) = (FxHashMap::default(), FxHashMap::default());
        let mut evaluation = Evaluation { codelet, sizes, worker: (0, 1), locals, written, left: MOST_EVALUATED };
        let crew = if codelet.multi { workers } else { 1 };
        for worker in 0..crew {
            evaluation.worker = (worker, crew);
            evaluation.block(&codelet.body)?;
        }
        let written = evaluation.written;
        let (&(y, _), &Value::Sum { parts, count, adds, .. }) = written.iter().next()? else { return None };
        let is_alike = |(&(field, at), &value): (&(FieldId, u64), &Value)| {
            field == y && value == Value::Sum { parts, at, count, adds }
        };
        let (y_shape, parts_shape) = (&sizes.shapes[y], &sizes.shapes[parts]);
        let is_whole = parts_shape.first() == Some(&count)
            && parts_shape[1..] == y_shape[..]
            && written.len() as u64 == y_shape.iter().product::<u64>();
        let one_type = codelet.fields[y].ty == codelet.fields[parts].ty && codelet.fields[y].ty.is_float();
        let fits = is_whole && one_type && adds.is_none_or(|old| old == y) && written.iter().all(is_alike);
        fits.then_some(SumBody { parts, y, count, adds: adds.is_some() })
    }
}

impl Evaluation<'_> {
    fn block(&mut self, block: &StmtBlock) -> Option<()> {
        block.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<()> {
        match stmt {
            Stmt::Set { local, value } => {
                let value = self.value(*value)?;
                self.locals.insert(*local, value);
            }
            Stmt::For { var, lo, hi, step, body, .. } => {
                let (lo, hi) = (self.int(*lo)?, self.int(*hi)?);
                let mut i = lo;
                while if *step > 0 { i < hi } else { i > hi } {
                    self.locals.insert(*var, Value::Int(i));
                    self.block(body)?;
                    i = i.checked_add(*step)?;
                }
            }
            Stmt::Store { field, index, value, .. } => {
                let at = self.element(*field, index)?;
                let value = match self.value(*value)? {
                    Value::Element { field: parts, at: e } => self.first(parts, e)?,
                    value => value,
                };
                // An element that is written twice is not the sum alone.
                if self.written.insert((*field, at), value).is_some() {
                    return None;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn value(&mut self, e: ExprId) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        match &self.codelet.exprs[e].kind {
            ExprKind::Const(value) => Some(Value::Int(value.as_int().and_then(|n| i64::try_from(n).ok())?)),
            ExprKind::Size(size) => Some(Value::Int(self.sizes.sizes[*size])),
            ExprKind::Worker => Some(Value::Int(i64::from(self.worker.0))),
            ExprKind::Workers => Some(Value::Int(i64::from(self.worker.1))),
            ExprKind::Local(local) => self.locals.get(local).copied(),
            ExprKind::Load { field, index, .. } => {
                let at = self.element(*field, index)?;
                (!self.written.contains_key(&(*field, at))).then_some(Value::Element { field: *field, at })
            }
            ExprKind::Binary { op, a, b, .. } => {
                let (a, b) = (self.value(*a)?, self.value(*b)?);
                match (op, a, b) {
                    (BinaryOp::Add, Value::Int(a), Value::Int(b)) => a.checked_add(b).map(Value::Int),
                    (BinaryOp::Sub, Value::Int(a), Value::Int(b)) => a.checked_sub(b).map(Value::Int),
                    (BinaryOp::Mul, Value::Int(a), Value::Int(b)) => a.checked_mul(b).map(Value::Int),
                    (BinaryOp::Div, Value::Int(a), Value::Int(b)) => a.checked_div(b).map(Value::Int),
                    (BinaryOp::Add, a, Value::Element { field, at }) => self.add(a, field, at),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn int(&mut self, e: ExprId) -> Option<i64> {
        match self.value(e)? {
            Value::Int(i) => Some(i),
            _ => None,
        }
    }

    /// Returns the position of an element in its field.
    fn element(&mut self, field: FieldId, index: &[ExprId]) -> Option<u64> {
        let mut at = 0u64;
        for (&e, n) in index.iter().zip(self.sizes.shapes[field].clone()) {
            at = at * n + u64::try_from(self.int(e)?).ok().filter(|&i| i < n)?;
        }
        Some(at)
    }

    /// Returns the part and the position in it of an element of a field of parts.
    fn part(&self, field: FieldId, at: u64) -> Option<(u64, u64)> {
        let size = self.sizes.shapes[field].get(1..)?.iter().product::<u64>();
        Some((at.checked_div(size)?, at % size))
    }

    /// Returns an element of the first part as a sum.
    fn first(&self, parts: FieldId, at: u64) -> Option<Value> {
        let (part, at) = self.part(parts, at)?;
        (part == 0).then_some(Value::Sum { parts, at, count: 1, adds: None })
    }

    /// Returns a value with an element of the next part added.
    fn add(&self, to: Value, field: FieldId, element: u64) -> Option<Value> {
        let (part, at) = self.part(field, element)?;
        let next = |before: Value| match before {
            Value::Sum { parts, at: e, count, adds } => {
                let follows = (parts, e, count) == (field, at, part);
                follows.then_some(Value::Sum { parts, at, count: count + 1, adds })
            }
            _ => None,
        };
        match to {
            Value::Element { field: old, at: e } if old != field => {
                let starts = part == 0 && e == at;
                starts.then_some(Value::Sum { parts: field, at, count: 1, adds: Some(old) })
            }
            Value::Element { at: e, .. } => next(self.first(field, e)?),
            sum => next(sum),
        }
    }
}
