//! Copies: `copy { a <- b; … }`, `a <- e`, `copy(x)`.
//!
//! Invariant: within one copy set no element is both read and written; if source and destination overlap, the elements
//! go through a temporary.

use crate::elaborator::{Elaborator, NodeKind, memory};
use crate::families::{Loops, box_of};
use crate::gradients::tape::{EntryKind, What};
use crate::value::{Tensor, Value};
use girder_ir::family::{CopyFamily, CopySource, Domain, Field, ReplicaPair};
use girder_ir::graph::{CopySet, VarClass};
use girder_ir::ids::{CopyId, FieldId, VarId};
use girder_ir::types::ElemType;
use girder_ir::view::{Signature, View, overlap};
use girder_source::{Diagnostic, Result, Span};
use girder_syntax::ast::{self, CopyItem};
use indexmap::IndexMap;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::rc::Rc;
use std::sync::Arc;

/// One copy of a set.
#[derive(Clone, Debug)]
pub struct CopyRow {
    /// The elements written.
    dst: View,
    /// The elements read, of the same shape.
    src: View,
    /// Its statement.
    span: Span,
    /// Extents of the enclosing loops, outermost first.
    extents: Rc<[u32]>,
    /// The replica of the elements read.
    source: RowSource,
}

/// The replica whose elements a row reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RowSource {
    /// The one that writes.
    Own,
    /// The one that writes; all replicas have equal elements.
    Uniform,
    /// Another one.
    Pair(ReplicaPair),
}

/// The rows of one family.
#[derive(Debug)]
struct RowGroup {
    dst: Vec<View>,
    src: Vec<View>,
    extents: Rc<[u32]>,
}

/// Rows of one statement that the same replicas copy.
struct SourcedRows {
    source: CopySource,
    rows: Vec<CopyRow>,
}

impl CopyRow {
    /// Makes a row outside loops.
    pub fn single(dst: View, src: View, span: Span) -> CopyRow {
        CopyRow { dst, src, span, extents: Rc::default(), source: RowSource::Own }
    }

    /// Returns the row with elements of another source.
    pub fn from(self, source: RowSource) -> CopyRow {
        CopyRow { source, ..self }
    }
}

impl Elaborator<'_> {
    /// Elaborates `target <- value` where the value is an expression.
    pub fn write_expr(&mut self, target: &Tensor, value: ast::ExprId, span: Span) -> Result<()> {
        if self.read_into(target, value, span)? {
            return Ok(());
        }
        let value = self.elements(value)?;
        self.write(target, value, span)
    }

    /// Elaborates `target <- value`: the value must broadcast to the target's shape and have its element type.
    pub fn write(&mut self, target: &Tensor, value: Value, span: Span) -> Result<()> {
        self.writable(&target.view, span)?;
        let source = match value {
            Value::Tensor(t) => Arc::unwrap_or_clone(t),
            Value::List(_) | Value::Array(_) => self.constant_array(&value, target, span)?,
            Value::Unit => return Err(self.error("elaborate::type_mismatch", span, "the right side has no value")),
            number => {
                let s = self.scalar(&number, target.ty, span)?;
                return self.fill(target, s, span);
            }
        };
        if source.ty != target.ty {
            let message = format!("{} cannot be written to {}", source.type_name(), target.type_name());
            let help = format!("convert it: `{}(…)`", target.ty);
            return Err(self.error_help("elaborate::type_mismatch", span, message, help));
        }
        let src = self.broadcast(&source, &target.view.shape(), span)?;
        if target.view.is_empty() || src == target.view {
            return Ok(());
        }
        if self.write_in_place(&target.view, &source.view, &src, span) {
            return Ok(());
        }
        let rows = vec![CopyRow::single(target.view.clone(), src, span)];
        self.push_copy("copy", rows, span)
    }

    /// Lets the last step write the destination directly. Conditions: `source` is a whole temporary that only this step
    /// computes, its family can write `dst` instead, and the step reads no element that it would then write.
    fn write_in_place(&mut self, dst: &View, source: &View, broadcast: &View, span: Span) -> bool {
        let Some((temp, set)) = self.emission.computed_last() else { return false };
        let [part] = &source.parts[..] else { return false };
        let whole = View::whole(temp, &source.shape());
        if part.var != temp || *source != whole || broadcast != source || self.named_anywhere(temp) {
            return false;
        }
        let elided = crate::copy_elision::elide_copy(&mut self.graph, set, temp, dst);
        if elided {
            self.record_elision(temp, dst, span);
        }
        elided
    }

    /// Returns whether a name in scope refers to a variable.
    pub fn named_anywhere(&self, var: girder_ir::ids::VarId) -> bool {
        // A list may contain the same list many times; each is searched once.
        type Seen = rustc_hash::FxHashSet<*const Value>;
        fn sees(v: &Value, var: girder_ir::ids::VarId, seen: &mut Seen) -> bool {
            match v {
                Value::Tensor(t) => t.view.parts.iter().any(|p| p.var == var),
                Value::List(l) => seen.insert(l.as_ptr()) && l.iter().any(|v| sees(v, var, seen)),
                Value::Tuple(t) => seen.insert(t.values.as_ptr()) && t.values.iter().any(|v| sees(v, var, seen)),
                _ => false,
            }
        }
        let mut seen = Seen::default();
        self.scopes.all_locals().any(|b| sees(&b.value, var, &mut seen))
    }

    /// Returns a list or array as a constant of the target's type.
    pub fn constant_array(&mut self, value: &Value, target: &Tensor, span: Span) -> Result<Tensor> {
        let shape: Vec<u64> = match value {
            Value::Array(a) => a.shape.clone(),
            _ => {
                let (mut dims, mut flat) = (vec![], vec![]);
                self.flatten_list(value, 0, &mut dims, &mut flat, span)?;
                dims
            }
        };
        self.constant_of(value, target.ty, &shape, span)
    }

    /// Reports a view that cannot be written.
    pub fn writable(&mut self, view: &View, span: Span) -> Result<()> {
        if view.has_aliases() {
            let message = "this view names an element twice, so it cannot be written";
            return Err(self.error("elaborate::aliased_target", span, message));
        }
        for var in view.vars() {
            if self.entities.copies_of_rows.contains(&var) {
                return Err(self.copy_of_rows(span));
            }
            let v = &self.graph.vars[var];
            if v.class == VarClass::Const {
                let (name, at) = (v.name.clone(), self.graph.origins.span(v.origin));
                let d = Diagnostic::error(
                    "elaborate::constant_target",
                    span,
                    format!("`{name}` is a `const` and cannot be written"),
                );
                return Err(self.report(d.label(at, "declared here").help("declare it with `var`")));
            }
        }
        Ok(())
    }

    /// Reports that a copy of rows would be written instead of the rows.
    pub fn copy_of_rows(&mut self, span: Span) -> girder_source::Failed {
        let message = "this is a copy of the elements that an index selected at run time, so writing it is lost";
        let help = "write `x[k, …] <- …` as a statement of its own, with all indices in one pair of brackets; \
                    `copy(x[k])` is a tensor of its own";
        self.error_help("elaborate::copied_target", span, message, help)
    }

    /// Elaborates `copy(x)`: a fresh temporary with the elements of `x`.
    pub fn copy_of(&mut self, x: &Tensor, span: Span) -> Result<Tensor> {
        let t = self.temporary("copy", x.ty, &x.view.shape(), span)?;
        if !x.view.is_empty() {
            self.push_copy("copy", vec![CopyRow::single(t.view.clone(), x.view.clone(), span)], span)?;
        }
        Ok(t)
    }

    /// Elaborates `copy name { … }` in a body.
    pub fn copy_statement(&mut self, name: Option<&str>, items: &[CopyItem], span: Span) -> Result<()> {
        let rows = self.copy_rows(items)?;
        self.one_kind(&rows)?;
        self.push_copy(name.unwrap_or("copy"), rows, span)
    }

    /// Reports a copy of which some rows stay in a replica and others do not.
    fn one_kind(&mut self, rows: &[CopyRow]) -> Result<()> {
        let crosses = |r: &CopyRow| matches!(r.source, RowSource::Pair(_));
        let Some(first) = rows.first() else { return Ok(()) };
        let Some(other) = rows.iter().find(|r| crosses(r) != crosses(first)) else { return Ok(()) };
        let (cross, own) = if crosses(first) { (first, other) } else { (other, first) };
        let message = "this row stays in each replica, but others of the same copy go from one to another";
        let d = Diagnostic::error("replica::row", own.span, message).label(cross.span, "between replicas");
        Err(self.report(d.help("write two copies, one after the other")))
    }

    /// Elaborates `copy name { … }` at the top of a module.
    pub fn copy_set(&mut self, name: SmolStr, items: &[CopyItem], span: Span) -> Result<CopyId> {
        let rows = self.copy_rows(items)?;
        self.one_kind(&rows)?;
        if self.meets(&rows) {
            let message = "some element of this copy is both read and written";
            let help = "copy in two steps, through a variable of its own";
            return Err(self.error_help("elaborate::copy_overlap", span, message, help));
        }
        self.add_copy(name, rows, span)
    }

    fn copy_rows(&mut self, items: &[CopyItem]) -> Result<Vec<CopyRow>> {
        let mut rows = Vec::new();
        self.copy_items(items, &mut Loops::default(), &mut rows)?;
        // A row that copies a view to itself moves nothing; next to other rows, it counts as a write like any other.
        if let [row] = &rows[..]
            && row.src == row.dst
            && row.source == RowSource::Own
        {
            rows.clear();
        }
        Ok(rows)
    }

    fn copy_items(&mut self, items: &[CopyItem], loops: &mut Loops, rows: &mut Vec<CopyRow>) -> Result<()> {
        let mut failed = None;
        for item in items {
            let done = match item {
                CopyItem::Copy { dst, src, family, span } => {
                    self.in_loops(family, loops, &mut |this, l| this.copy_row(*dst, *src, *span, &l.extents, rows))
                }
                CopyItem::For { binders, body, .. } => {
                    self.in_loops(binders, loops, &mut |this, l| this.copy_items(body, l, rows))
                }
            };
            if let Err(e) = done {
                failed = Some(e);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn copy_row(
        &mut self,
        dst: ast::ExprId,
        src: ast::ExprId,
        span: Span,
        extents: &[u32],
        rows: &mut Vec<CopyRow>,
    ) -> Result<()> {
        if rows.len() as u64 >= self.session.limits.instances {
            let message = format!("a copy has more than {} rows", self.session.limits.instances);
            return Err(self.error("elaborate::too_many_vertices", span, message));
        }
        let (receiver, dst) = self.of_replica(dst)?;
        let (sender, src) = self.of_replica(src)?;
        let row_source = self.row_source(receiver, sender, span)?;
        let (promised, src) = if row_source == RowSource::Own { self.of_uniform(src) } else { (false, src) };
        let row_source = if promised { RowSource::Uniform } else { row_source };
        let dst = self.tensor(dst)?;
        self.writable(&dst.view, span)?;
        let src_span = self.tree().exprs[src].span;
        let source = match self.expr(src)? {
            Value::Tensor(t) => Arc::unwrap_or_clone(t),
            ref list @ (Value::List(_) | Value::Array(_)) => self.constant_array(list, &dst, src_span)?,
            number => {
                let s = self.scalar(&number, dst.ty, src_span)?;
                self.constant(s, src_span)?
            }
        };
        if source.ty != dst.ty {
            let message = format!("{} cannot be copied to {}", source.type_name(), dst.type_name());
            let help = "a copy does not convert; convert in a step of its own";
            return Err(self.error_help("elaborate::type_mismatch", span, message, help));
        }
        let src = self.broadcast(&source, &dst.view.shape(), src_span)?;
        if !dst.view.is_empty() {
            let parts = (dst.view.parts.len() + src.parts.len()).saturating_sub(2) as u64;
            self.charge_bytes(memory::ROW + parts * memory::PART, span)?;
            let same = rows.last().map(|r| &r.extents).filter(|e| e[..] == *extents).cloned();
            let extents = same.unwrap_or_else(|| extents.into());
            rows.push(CopyRow { dst: dst.view, src, span, extents, source: row_source });
        }
        Ok(())
    }

    /// Returns whether some row reads an element that some row writes.
    fn meets(&self, rows: &[CopyRow]) -> bool {
        let (mut reads, mut writes) = (vec![], vec![]);
        for r in rows {
            reads.extend(r.src.regions());
            writes.extend(r.dst.regions());
        }
        girder_ir::region::least_common(&reads, &writes).is_some()
    }

    /// Emits a copy of rows; overlapping rows go through temporaries.
    pub fn push_copy(&mut self, name: &str, mut rows: Vec<CopyRow>, span: Span) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        if self.meets(&rows) {
            let mut first: Vec<CopyRow> = Vec::new();
            let all: Vec<View> = rows.iter().map(|r| r.dst.clone()).collect();
            // Many rows send the same elements of a replica.
            let mut sent: FxHashMap<View, View> = FxHashMap::default();
            for r in &mut rows {
                if !all.iter().any(|d| overlap(d, &r.src).is_some()) {
                    continue;
                }
                let crosses = matches!(r.source, RowSource::Pair(_));
                if let Some(copied) = sent.get(&r.src).filter(|_| crosses) {
                    r.src = copied.clone();
                    continue;
                }
                let Some(part) = r.src.parts.first() else { continue };
                let ty = self.graph.vars[part.var].ty;
                let t = self.temporary(name, ty, &r.src.shape(), r.span)?;
                let extents = if crosses { Rc::default() } else { r.extents.clone() };
                first.push(CopyRow { extents, ..CopyRow::single(t.view.clone(), r.src.clone(), r.span) });
                if crosses {
                    sent.insert(r.src.clone(), t.view.clone());
                }
                r.src = t.view;
            }
            self.emit_copy(name, first, span)?;
        }
        self.emit_copy(name, rows, span)
    }

    /// Emits a copy whose rows do not overlap.
    fn emit_copy(&mut self, name: &str, rows: Vec<CopyRow>, span: Span) -> Result<()> {
        let set = self.unique_set_name(Some(name), "");
        let taped = if self.is_taping() { rows.clone() } else { vec![] };
        let begin = self.moment();
        let copy = self.add_copy(set, rows, span)?;
        self.push(NodeKind::Copy(copy), span)?;
        if taped.iter().any(|r| matches!(r.source, RowSource::Pair(_))) {
            let of = |view: fn(&CopyRow) -> &View| {
                let mut vars: Vec<VarId> = taped.iter().flat_map(|r| view(r).vars()).collect();
                vars.sort_unstable();
                vars.dedup();
                vars
            };
            let (reads, writes) = (of(|r| &r.src), of(|r| &r.dst));
            self.record(begin, EntryKind::Opaque { what: What::Replicas, reads, writes }, span);
            return Ok(());
        }
        for r in taped {
            let ty = r.dst.parts.first().map_or(ElemType::F32, |p| self.graph.vars[p.var].ty);
            let src = Tensor { view: r.src, ty };
            self.record(begin, EntryKind::Write { dst: r.dst, src }, r.span);
        }
        Ok(())
    }

    /// Adds a copy set whose rows do not overlap: rows of one statement and signature share a family.
    pub fn add_copy(&mut self, name: SmolStr, rows: Vec<CopyRow>, span: Span) -> Result<CopyId> {
        type Groups = IndexMap<(Span, CopySource, Signature, Signature), RowGroup, rustc_hash::FxBuildHasher>;
        let mut groups = Groups::default();
        for SourcedRows { source, rows } in by_source(rows) {
            for r in rows {
                let (dst, src) = (r.dst.canonical(), r.src.canonical());
                let group = groups.entry((r.span, source.clone(), dst.signature(), src.signature()));
                let group = group.or_insert_with(|| RowGroup { dst: vec![], src: vec![], extents: r.extents });
                group.dst.push(dst);
                group.src.push(src);
            }
        }
        let mut families = Vec::with_capacity(groups.len());
        for ((at, source, ..), group) in groups {
            let fields = |domain: &Domain| {
                let field = |views: &[View]| Field::from_views(FieldId::from_u32(0), domain, views);
                field(&group.dst).zip(field(&group.src))
            };
            let count = group.dst.len();
            let mut domain = match source.pairs() {
                None => box_of(&group.extents, count),
                Some(_) => inner_box(&group.extents, count),
            };
            let mut both = fields(&domain);
            if domain.0.len() > 1 && !both.as_ref().is_some_and(|(d, s)| d.is_closed() && s.is_closed()) {
                domain = Domain::line(count as u32);
                both = fields(&domain);
            }
            let Some((dst, src)) = both else {
                return Err(self.error("internal::family", at, "copies of one signature do not fit one family"));
            };
            let origin = self.origin_at(at);
            self.charge_bytes(memory::of_family(group.dst.iter().take(1).chain(group.src.first())), at)?;
            families.push(CopyFamily { domain, dst, src, source, origin });
        }
        let origin = self.origin_at(span);
        self.charge_bytes(memory::SET + 2 * name.len() as u64, span)?;
        Ok(self.graph.copies.push(CopySet { name, families, origin }))
    }
}

/// A statement, and the views that it writes and reads.
type PairedViews = (Span, Vec<(View, View)>);

/// Returns rows by the replicas that copy them. Rows of one statement that go between several pairs of replicas in the
/// same way are listed once.
fn by_source(rows: Vec<CopyRow>) -> Vec<SourcedRows> {
    let mut all: Vec<SourcedRows> = vec![];
    // The rows of each statement and pair, in the order of the pairs.
    let mut paired: IndexMap<(Span, ReplicaPair), Vec<CopyRow>, rustc_hash::FxBuildHasher> = IndexMap::default();
    for r in rows {
        let source = match r.source {
            RowSource::Own => CopySource::Own,
            RowSource::Uniform => CopySource::Uniform,
            RowSource::Pair(pair) => {
                paired.entry((r.span, pair)).or_default().push(r);
                continue;
            }
        };
        match all.last_mut().filter(|last| last.source == source) {
            Some(last) => last.rows.push(r),
            None => all.push(SourcedRows { source, rows: vec![r] }),
        }
    }
    type Pairs = (Vec<ReplicaPair>, Vec<CopyRow>);
    let mut equal: IndexMap<PairedViews, Pairs, rustc_hash::FxBuildHasher> = IndexMap::default();
    for ((span, pair), rows) in paired {
        let moved = rows.iter().map(|r| (r.dst.clone(), r.src.clone())).collect();
        equal.entry((span, moved)).or_insert_with(|| (vec![], rows)).0.push(pair);
    }
    all.extend(equal.into_values().map(|(mut pairs, rows)| {
        pairs.sort_unstable();
        SourcedRows { source: CopySource::Replicas(pairs.into()), rows }
    }));
    all
}

/// Returns the box of the innermost or outermost loops that have `count` iterations; the others go over replicas.
fn inner_box(extents: &[u32], count: usize) -> Domain {
    let parts = (0..extents.len()).flat_map(|k| [&extents[k..], &extents[..extents.len() - k]]);
    let own = parts.into_iter().find(|part| part.iter().map(|&n| n as usize).product::<usize>() == count);
    match count {
        1 => Domain::default(),
        n => own.map_or_else(|| Domain::line(n as u32), |part| Domain(part.iter().copied().collect())),
    }
}
