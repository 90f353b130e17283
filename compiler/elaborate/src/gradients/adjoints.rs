//! Adjoints: what is known so far of the derivative of the loss by each variable.
//!
//! The adjoint of a variable is a list of disjoint regions, each with a tensor; or, where contributions overlap or a
//! loop adds to it, a variable of its own with the same elements. Regions that the program overwrote are *holes*, which
//! count as zero until something is added there.
//!
//! Invariant: the first contribution to a region costs no step, and later ones are added in the order of the walk.

use super::inverse_views::{InverseView, regions};
use crate::elaborator::Elaborator;
use crate::value::{Given, Tensor, Value};
use girder_ir::ids::VarId;
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::{View, overlap};
use girder_source::{Result, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The adjoint of a variable.
#[derive(Clone, Debug, Default)]
pub struct Adjoint {
    parts: Vec<(View, Tensor)>,
    own: Option<VarId>,
    holes: Vec<View>,
}

/// The adjoints of all variables.
#[derive(Clone, Debug, Default)]
pub struct Adjoints {
    vars: FxHashMap<VarId, Adjoint>,
    /// The variables that hold adjoints and change.
    owns: FxHashSet<VarId>,
    /// Variables of tensors that are still to be added, or that were handed out.
    pub held: Vec<VarId>,
    /// Views, and how often something was added to the adjoint of some of their elements since they are watched.
    watched: Vec<(View, u32)>,
}

impl Adjoints {
    /// Returns whether a variable has an adjoint.
    pub fn has(&self, var: VarId) -> bool {
        self.vars.contains_key(&var)
    }

    /// Returns whether some variable of a view has an adjoint.
    pub fn reaches(&self, view: &View) -> bool {
        view.parts.iter().any(|p| self.has(p.var))
    }

    /// Returns the variable of its own that the adjoint of a variable has.
    pub fn own(&self, var: VarId) -> Option<VarId> {
        self.vars.get(&var)?.own
    }

    /// Forgets the adjoint of a variable.
    pub fn forget(&mut self, var: VarId) {
        self.vars.remove(&var);
    }

    /// Moves the adjoint of a variable to another of the same elements.
    pub fn rename(&mut self, from: VarId, to: VarId) {
        // What is added meanwhile counts.
        let names = |v: &View| v.parts.iter().any(|p| p.var == from || p.var == to);
        self.watched.iter_mut().filter(|(v, _)| names(v)).for_each(|(_, count)| *count += 1);
        if let Some(mut a) = self.vars.remove(&from) {
            let swap = |v: &mut View| v.parts.iter_mut().for_each(|p| p.var = to);
            a.parts.iter_mut().for_each(|(region, _)| swap(region));
            a.holes.iter_mut().for_each(swap);
            self.vars.insert(to, a);
        }
    }

    /// Returns whether a view names a variable that holds adjoints and changes.
    pub fn changes(&self, view: &View) -> bool {
        view.parts.iter().any(|p| self.owns.contains(&p.var))
    }

    /// Counts the additions to the adjoint of a view from now on. Returns the number of the count.
    pub fn watch(&mut self, view: &View) -> usize {
        self.watched.push((view.clone(), 0));
        self.watched.len() - 1
    }

    /// Returns a count of additions.
    pub fn additions(&self, watch: usize) -> u32 {
        self.watched[watch].1
    }

    fn mentions(&self, var: VarId) -> bool {
        let in_part = |a: &Adjoint| a.parts.iter().any(|(_, d)| d.view.parts.iter().any(|p| p.var == var));
        self.held.contains(&var) || self.vars.values().any(in_part)
    }
}

/// Returns a view of one variable as the same elements of another.
fn moved(view: &View, to: VarId) -> View {
    let mut view = view.clone();
    view.parts.iter_mut().for_each(|p| p.var = to);
    view
}

fn meets(a: &View, b: &View) -> bool {
    overlap(a, b).is_some()
}

impl Elaborator<'_> {
    fn regions_of(&mut self, view: &View, span: Span) -> Result<Vec<InverseView>> {
        regions(view).ok_or_else(|| {
            let message = "a view whose indices share so many elements has no gradient";
            let help = "write it as a function with a rule: `grad f(x; y; dy) { … }`";
            self.error_help("grad::overlapping_view", span, message, help)
        })
    }

    /// Adds a tensor of a view's shape to the adjoint of the elements that the view names.
    pub(super) fn add_adjoint(&mut self, a: &mut Adjoints, view: &View, d: &Tensor, span: Span) -> Result<()> {
        if view.is_empty() {
            return Ok(());
        }
        for inverse in self.regions_of(view, span)? {
            let mut cut = inverse.cut(view, &d.view);
            if !inverse.repeated.is_empty() {
                cut = self.sum_over(&Tensor { view: cut, ty: d.ty }, &inverse.repeated, span)?.view;
            }
            let d = Tensor { view: inverse.ordered(&cut), ty: d.ty };
            self.add_region(a, inverse.region, d, span)?;
        }
        Ok(())
    }

    /// Sums a tensor over some axes, which stay with length 1.
    pub(super) fn sum_over(&mut self, x: &Tensor, axes: &[usize], span: Span) -> Result<Tensor> {
        let list = axes.iter().map(|&k| Value::Int(k as i64)).collect();
        let given = |name: &str, value: Value| Given { name: name.into(), value, span };
        let all = vec![
            given("", x.clone().into()),
            given("axis", Value::List(Arc::new(list))),
            given("keep", Value::Bool(true)),
        ];
        match self.prelude_given("sum", all, span)? {
            Value::Tensor(t) => Ok(Arc::unwrap_or_clone(t)),
            _ => Err(girder_source::Failed),
        }
    }

    fn add_region(&mut self, a: &mut Adjoints, region: View, d: Tensor, span: Span) -> Result<()> {
        let Some(var) = region.parts.first().map(|p| p.var) else { return Ok(()) };
        a.watched.iter_mut().filter(|(v, _)| meets(v, &region)).for_each(|(_, count)| *count += 1);
        let entry = a.vars.entry(var).or_default();
        if entry.own.is_none() {
            if !entry.holes.iter().any(|h| meets(h, &region)) {
                if let Some(k) = entry.parts.iter().position(|(r, _)| *r == region) {
                    let old = entry.parts[k].1.clone();
                    let new = self.sum_of(&old, &d, span)?;
                    if let Some(entry) = a.vars.get_mut(&var) {
                        entry.parts[k].1 = new;
                    }
                    return Ok(());
                }
                if !entry.parts.iter().any(|(r, _)| meets(r, &region)) {
                    let d = if a.changes(&d.view) { self.copy_of(&d, span)? } else { d };
                    if let Some(entry) = a.vars.get_mut(&var) {
                        entry.parts.push((region, d));
                    }
                    return Ok(());
                }
            }
            self.own_adjoint(a, var, span)?;
        }
        let Some(Adjoint { own: Some(own), holes, .. }) = a.vars.get_mut(&var) else { return Ok(()) };
        let own = *own;
        let target = Tensor { view: moved(&region, own), ty: d.ty };
        let d = if d.view.parts.iter().any(|p| p.var == own) { self.copy_of(&d, span)? } else { d };
        if let Some(k) = holes.iter().position(|h| *h == region) {
            holes.remove(k);
            // Other holes that contain some of it must not become zero after this.
            self.fill_holes(a, var, Some(&region), span)?;
            if d.view.parts.iter().any(|p| a.mentions(p.var)) {
                self.emission.note_computed(None);
            }
            return self.write(&target, d.into(), span);
        }
        self.fill_holes(a, var, Some(&region), span)?;
        let new = self.sum_of(&target, &d, span)?;
        self.write(&target, new.into(), span)
    }

    fn sum_of(&mut self, old: &Tensor, d: &Tensor, span: Span) -> Result<Tensor> {
        match self.prelude_call("add", vec![old.clone().into(), d.clone().into()], span)? {
            Value::Tensor(t) => Ok(Arc::unwrap_or_clone(t)),
            _ => Err(girder_source::Failed),
        }
    }

    /// Gives the adjoint of a variable a variable of its own, to which later contributions are added.
    pub(super) fn own_adjoint(&mut self, a: &mut Adjoints, var: VarId, span: Span) -> Result<()> {
        let Adjoint { parts, own, mut holes } = a.vars.get(&var).cloned().unwrap_or_default();
        if own.is_some() {
            return Ok(());
        }
        let (ty, shape) = (self.graph.vars[var].ty, self.graph.vars[var].shape.clone());
        let t = self.temporary("adjoint", ty, &shape, span)?;
        let whole = View::whole(var, &shape);
        let whole = whole.reshape(&[whole.len()]);
        let Some(new) = t.view.parts.first().map(|p| p.var) else { return Ok(()) };
        let covered: u64 = parts.iter().map(|(r, _)| r.len()).sum();
        if parts.is_empty() {
            holes = vec![whole];
        } else if covered < t.view.len() {
            self.fill(&t, zero(ty), span)?;
        }
        for (region, d) in parts {
            let target = Tensor { view: moved(&region, new), ty };
            self.emission.note_computed(None);
            self.write(&target, d.into(), span)?;
        }
        a.owns.insert(new);
        a.vars.insert(var, Adjoint { parts: vec![], own: Some(new), holes });
        Ok(())
    }

    /// Writes zeros to the holes of an adjoint, or to those that meet a region.
    pub(super) fn fill_holes(&mut self, a: &mut Adjoints, var: VarId, region: Option<&View>, span: Span) -> Result<()> {
        let ty = self.graph.vars[var].ty;
        let Some(Adjoint { own: Some(own), holes, .. }) = a.vars.get_mut(&var) else { return Ok(()) };
        let own = *own;
        let (now, later): (Vec<View>, Vec<View>) =
            std::mem::take(holes).into_iter().partition(|h| region.is_none_or(|r| meets(h, r)));
        *holes = later;
        for hole in now {
            self.fill(&Tensor { view: moved(&hole, own), ty }, zero(ty), span)?;
        }
        Ok(())
    }

    /// Returns the adjoint of the elements of a view, in its shape; `None` if nothing was added to any.
    pub(super) fn adjoint_of(&mut self, a: &mut Adjoints, t: &Tensor, span: Span) -> Result<Option<Tensor>> {
        let view = &t.view;
        if view.is_empty() || !a.reaches(view) {
            return Ok(None);
        }
        if let [part] = &view.parts[..]
            && let Some(Adjoint { own: None, parts, holes }) = a.vars.get(&part.var)
        {
            let all = self.regions_of(view, span)?;
            let [inverse] = &all[..] else { return self.adjoint_seen(a, t, span) };
            if !parts.iter().any(|(r, _)| meets(r, &inverse.region)) {
                return Ok(None);
            }
            if holes.contains(&inverse.region) {
                return Ok(None);
            }
            if !holes.iter().any(|h| meets(h, &inverse.region)) {
                let exact = parts.iter().find(|(r, _)| *r == inverse.region);
                let d = exact.map(|(_, d)| d.view.clone()).or_else(|| in_order(parts, &inverse.region));
                if let Some(v) = d.and_then(|d| inverse.restored(view, &d)) {
                    return Ok(Some(Tensor { view: v, ty: t.ty }));
                }
                let len: u64 = self.graph.vars[part.var].shape.iter().product();
                let through = parts.iter().find(|(r, _)| r.len() == len).and_then(|(_, d)| seen_through(view, &d.view));
                if let Some(v) = through {
                    return Ok(Some(Tensor { view: v, ty: t.ty }));
                }
            }
        }
        self.adjoint_seen(a, t, span)
    }

    /// Returns the adjoint of the elements of a view as a view of variables that hold adjoints.
    fn adjoint_seen(&mut self, a: &mut Adjoints, t: &Tensor, span: Span) -> Result<Option<Tensor>> {
        let view = &t.view;
        let mut seen = view.clone();
        for part in &mut seen.parts {
            let var = part.var;
            self.own_adjoint(a, var, span)?;
            let len: u64 = self.graph.vars[var].shape.iter().product();
            let all = View::whole(var, &[len]);
            let region = if view.parts.len() == 1 { view } else { &all };
            self.fill_holes(a, var, Some(region), span)?;
            if let Some(Adjoint { own: Some(own), .. }) = a.vars.get(&var) {
                part.var = *own;
            }
        }
        Ok(Some(Tensor { view: seen, ty: t.ty }))
    }

    /// Notes that the program overwrites the elements of a view: what was there before has no adjoint from later.
    pub(super) fn clear_adjoint(&mut self, a: &mut Adjoints, view: &View, span: Span) -> Result<()> {
        if view.is_empty() || !a.reaches(view) {
            return Ok(());
        }
        for inverse in self.regions_of(view, span)? {
            let region = inverse.region;
            let Some(var) = region.parts.first().map(|p| p.var) else { continue };
            let len: u64 = self.graph.vars[var].shape.iter().product();
            let Some(entry) = a.vars.get_mut(&var) else { continue };
            if region.len() == len {
                match entry.own {
                    Some(_) => entry.holes = vec![region],
                    None => _ = a.vars.remove(&var),
                }
                continue;
            }
            let before = entry.parts.len();
            entry.parts.retain(|(r, _)| *r != region);
            if entry.parts.len() < before {
                continue;
            }
            let inside = entry.own.is_some() || entry.parts.iter().any(|(r, _)| meets(r, &region));
            if inside && !entry.holes.contains(&region) {
                entry.holes.push(region);
            }
        }
        Ok(())
    }

    /// Returns zeros of a shape, which take no memory.
    pub(super) fn zeros_of(&mut self, ty: ElemType, shape: &[u64], span: Span) -> Result<Tensor> {
        let c = self.constant(zero(ty), span)?;
        let view = c.view.broadcast_to(shape).unwrap_or(c.view);
        Ok(Tensor { view, ty })
    }
}

fn zero(ty: ElemType) -> Scalar {
    Scalar { ty, bits: 0 }
}

/// Returns parts that follow one another and together are a region, joined.
fn in_order(parts: &[(View, Tensor)], region: &View) -> Option<View> {
    let line = region.single().filter(|b| b.strides.first().is_none_or(|&s| s == 1))?;
    let (lo, hi) = (line.offset, line.offset + region.len() as i64);
    let mut inside = vec![];
    for (r, d) in parts {
        let b = r.single().filter(|b| b.strides.first().is_none_or(|&s| s == 1 || r.len() == 1))?;
        let (first, last) = (b.offset, b.offset + r.len() as i64);
        if last <= lo || hi <= first {
            continue;
        }
        if first < lo || last > hi {
            return None;
        }
        inside.push((first, last, &d.view));
    }
    inside.sort_by_key(|p| p.0);
    let follows = inside.windows(2).all(|w| w[0].1 == w[1].0);
    let ends = inside.first().is_some_and(|p| p.0 == lo) && inside.last().is_some_and(|p| p.1 == hi);
    let views: Vec<View> = inside.iter().map(|p| p.2.clone()).collect();
    (follows && ends).then(|| View::concat(&views, 0))
}

/// Returns a view of a whole variable's elements as a view of the tensor that holds their adjoint in order.
fn seen_through(view: &View, d: &View) -> Option<View> {
    let line = d.single()?;
    let stride = line.strides.first().copied().unwrap_or(0);
    let mut seen = view.clone();
    for part in &mut seen.parts {
        part.var = line.var;
        part.offset = line.offset + part.offset * stride;
        part.stride.iter_mut().for_each(|s| *s *= stride);
    }
    Some(seen)
}
