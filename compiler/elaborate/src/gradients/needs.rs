//! Values of the forward program that the reverse one needs, and the derivatives of functions of numbers.
//!
//! A value is read where it is, if nothing overwrote it. A value of a loop's body differs in each iteration: the
//! forward loop keeps it, as a row of a *stash*, and the reverse loop reads the row, or rematerializes it.
//!
//! Invariant: a value that was overwritten, or that a later iteration of a loop around the `grad` would find
//! overwritten, is an error.

use super::checks::LateCheck;
use super::derive::Formula;
use super::derive::flatten::{Flatten, Refusal};
use super::derive::reverse::derivative;
use super::derive::tangents;
use super::derive::tangents::source::Source;
use super::formulas::{Derivative, Derived};
use super::moments::Write;
use super::order::{Inside, Moment};
use super::recompute::Accesses;
use super::rule_table::Rules;
use super::stashes::Keeping;
use super::state::{LoopContext, ReverseWalk};
use super::tape::{Entry, EntryKind};
use crate::codelets::Names;
use crate::elaborator::{Elaborator, Node, NodeKind};
use crate::value::{Tensor, Value};
use girder_ir::graph::VarClass;
use girder_ir::ids::VarId;
use girder_ir::program::{Effect, UntilWritten};
use girder_ir::types::ElemType;
use girder_ir::view::View;
use girder_source::{Diagnostic, Failed, OriginId, Result, Session, Span};
use girder_syntax::ast::BinaryOp;
use girder_typing::ModuleRef;
use smol_str::{SmolStr, format_smolstr};
use std::rc::Rc;

impl Elaborator<'_> {
    /// Returns the derivative of a codelet function.
    pub(super) fn derivative_of(
        &mut self,
        function: (ModuleRef, usize),
        types: &[ElemType],
        wanted: &[bool],
        hold: bool,
        (e, taken): (&Entry, Span),
    ) -> Result<Derivative> {
        let key = (function.0, function.1, types.to_vec());
        if let Some(Some(known)) = self.formulas.functions.get(&key) {
            let known = known.clone();
            return self.derivative_of_formula(&known, wanted, hold, (e, taken));
        }
        if !self.formulas.functions.contains_key(&key) {
            match Flatten::new(&self.names(), &self.rules).function(function.0, function.1, types) {
                Ok(formula) => {
                    let formula = Rc::new(formula);
                    self.formulas.functions.insert(key, Some(formula.clone()));
                    return self.derivative_of_formula(&formula, wanted, hold, (e, taken));
                }
                Err(r) if r.error.is_some() => return Err(self.not_differentiable(r, e, taken)),
                Err(_) => _ = self.formulas.functions.insert(key, None),
            }
        }
        let name = format_smolstr!("{}.{}", function.0.0, function.1);
        self.tangents_of((name, types.to_vec(), wanted), (e, taken), |names, rules, session| {
            Source::function((names, rules, session), function, types)
        })
    }

    /// Returns the derivative of a derivative.
    pub(super) fn derivative_of_derived(
        &mut self,
        of: &Derived,
        wanted: &[bool],
        hold: bool,
        (e, taken): (&Entry, Span),
    ) -> Result<Derivative> {
        match of {
            Derived::Formula(f) => self.derivative_of_formula(f, wanted, hold, (e, taken)),
            Derived::Tangents(_) => self.tangents_of_derived(of, wanted, (e, taken)),
        }
    }

    /// Returns the derivative of a formula.
    fn derivative_of_formula(
        &mut self,
        formula: &Rc<Formula>,
        wanted: &[bool],
        hold: bool,
        (e, taken): (&Entry, Span),
    ) -> Result<Derivative> {
        let key = (formula.name.clone(), formula.inputs.clone(), wanted.to_vec(), hold);
        if let Some(known) = self.formulas.derivatives.get(&key) {
            return Ok(known.clone());
        }
        let made = derivative(&mut Flatten::new(&self.names(), &self.rules), formula, wanted, hold);
        let (f, by) = made.map_err(|r| self.not_differentiable(r, e, taken))?;
        let made = (Derived::Formula(Rc::new(f)), by);
        self.formulas.derivatives.insert(key, made.clone());
        Ok(made)
    }

    /// Returns the derivative, with tangents, of a derivative.
    fn tangents_of_derived(&mut self, of: &Derived, wanted: &[bool], (e, taken): (&Entry, Span)) -> Result<Derivative> {
        let name = self.formulas.name(of);
        let module = self.scalar_codelet(of, &name);
        self.tangents_of((name.clone(), of.inputs(), wanted), (e, taken), |names, rules, session| {
            Source::codelet((names, rules, session), module, name)
        })
    }

    /// Returns the derivative, with tangents, of a function of scalars.
    fn tangents_of(
        &mut self,
        (name, types, wanted): (SmolStr, Vec<ElemType>, &[bool]),
        (e, taken): (&Entry, Span),
        source: impl for<'n> FnOnce(&'n Names<'n>, &'n Rules, &'n Session) -> Option<Source<'n>>,
    ) -> Result<Derivative> {
        let key = (name, types, wanted.to_vec(), false);
        if let Some(known) = self.formulas.derivatives.get(&key) {
            return Ok(known.clone());
        }
        let made = {
            let names = self.names();
            match source(&names, &self.rules, self.session) {
                Some(source) => tangents::derivative::derivative(&source, wanted),
                None => Err(Refusal { span: Span::NONE, what: "no text", inside: None, error: None }),
            }
        };
        let made = Rc::new(made.map_err(|r| self.not_differentiable(r, e, taken))?);
        let by = made.by.clone();
        self.formulas.derivatives.insert(key, (Derived::Tangents(made.clone()), by.clone()));
        Ok((Derived::Tangents(made), by))
    }

    fn not_differentiable(&mut self, r: Refusal, e: &Entry, taken: Span) -> Failed {
        if let Some(d) = r.error {
            return self.report(d.label(e.span, "applied here").label(taken, "gradient taken here"));
        }
        let help = match r.inside {
            None => "give the function a rule: `grad f(x; y; dy) { return (x: dy * …); }`",
            Some(_) => "such a rule is one formula; let a `fn` apply the codelet function, and give that one a rule",
        };
        let within = r.inside.map(|f| format!(", in the rule of `{f}`")).unwrap_or_default();
        let message = format!("a codelet function with {} is not differentiated{within}", r.what);
        let at = if r.span == Span::NONE { e.span } else { r.span };
        let d = Diagnostic::error("grad::codelet", at, message).label(e.span, "applied here");
        let d = d.label(taken, "gradient taken here");
        self.report(d.help(help))
    }

    /// Notes that the gradient passes through elements that a tensor had at an entry.
    pub(super) fn note_use(&mut self, w: &ReverseWalk, view: &View, e: &Entry) {
        if w.root + 1 < w.chain {
            let (needed, taken, chain) = (e.span, w.span, w.chain);
            self.recorder.late.push(LateCheck {
                view: view.clone(),
                since: w.began,
                root: w.root,
                chain,
                needed,
                taken,
            });
        }
    }

    /// Returns whether the result of an entry is still there.
    pub(super) fn is_intact(&self, w: &ReverseWalk, t: &Tensor, e: &Entry) -> bool {
        let varies = |l: &LoopContext| self.recorder.overwritten(&t.view, l.during.clone()).is_some();
        w.loops.iter().any(varies) || self.lost(w, &t.view, e.during.end).is_none()
    }

    /// Returns whether a view has other elements in each iteration of a loop.
    pub(super) fn varies(&self, w: &ReverseWalk, k: usize, view: &View) -> bool {
        let l = &w.loops[k];
        let is_index = l.index.is_some_and(|(v, ..)| view.parts.iter().any(|p| p.var == v));
        is_index || self.recorder.overwritten(view, l.during.clone()).is_some()
    }

    /// Returns the first write to a view since a moment, but for writes in arms that do not run with the current one.
    pub(super) fn lost(&self, w: &ReverseWalk, view: &View, since: Moment) -> Option<Write> {
        let apart = |at| w.is_apart(at);
        self.recorder.overwritten_but(view, since..self.moment(), &apart).cloned()
    }

    /// Returns a tensor with the elements that another had when an entry began, or when it ended.
    pub(super) fn need(&mut self, w: &mut ReverseWalk, t: &Tensor, e: &Entry, after: bool) -> Result<Tensor> {
        if t.view.is_empty() {
            return Ok(t.clone());
        }
        let since = if after { e.during.end } else { e.during.start };
        let innermost = (0..w.loops.len()).rev().find(|&k| self.varies(w, k, &t.view));
        if let Some(k) = innermost {
            return self.kept(w, k, t, e, since, after);
        }
        let Some(write) = self.lost(w, &t.view, since) else {
            self.note_use(w, &t.view, e);
            self.give_up_before(w, &t.view, e)?;
            return Ok(t.clone());
        };
        if self.recorder.in_reverse.iter().any(|a| a.contains(&since) && a.contains(&write.at)) {
            return self.kept_copy(w, t, e, since);
        }
        let var = t.view.parts.first().map_or(VarId::from_u32(0), |p| p.var);
        let name = self.name_in_text(var);
        let message = format!("the gradient needs `{name}` as it was here, but it is overwritten");
        let d = Diagnostic::error("grad::overwritten", e.span, message).here("needed as it was here");
        let d = d.label(write.span, "overwritten here").label(w.span, "gradient taken here");
        Err(self
            .report(d.help("write to another variable, or use `copy(x)` here, or take the gradient before the write")))
    }

    /// Returns a tensor with the elements that another had when an entry began: a copy, if they are overwritten.
    pub(super) fn need_or_copy(&mut self, w: &mut ReverseWalk, t: &Tensor, e: &Entry) -> Result<Tensor> {
        let since = e.during.start;
        let in_loop = (0..w.loops.len()).any(|k| self.varies(w, k, &t.view));
        if in_loop || self.lost(w, &t.view, since).is_none() {
            return self.need(w, t, e, false);
        }
        self.kept_copy(w, t, e, since)
    }

    /// Returns a copy of a value that later steps overwrite; the copy is made before they do.
    fn kept_copy(&mut self, w: &mut ReverseWalk, t: &Tensor, e: &Entry, since: Moment) -> Result<Tensor> {
        let version = self.recorder.written_last(&t.view, since);
        let (mut path, mut at) = (vec![], since);
        for inside in &w.path {
            if inside.is_loop || version <= inside.during.start {
                at = inside.during.start;
                break;
            }
            path.push(inside.clone());
        }
        let key = (t.view.clone(), version, path.clone());
        let known = w.kept.iter().find(|(k, _)| *k == key).map(|(_, kept)| kept.clone());
        let kept = match known {
            Some(kept) => kept,
            None => {
                let mut made = None;
                let nodes = self.aside(|this| {
                    made = Some(this.copy_of(t, e.span)?);
                    Ok(Value::Unit)
                })?;
                let Some(kept) = made else { return Err(Failed) };
                kept.view.vars().iter().for_each(|&v| self.recorder.set_made(v, at));
                self.splice(w.root, &path, at, nodes);
                let write = EntryKind::Write { dst: kept.view.clone(), src: t.clone() };
                self.record_within(w.root, &path, Rc::new(Entry { kind: write, during: at..at, ..e.clone() }));
                w.kept.push((key, kept.clone()));
                kept
            }
        };
        self.give_up_before(w, &kept.view, e)?;
        Ok(kept)
    }

    /// Ends the value of a temporary of an arm before the step that holds the arm: the reverse program reads it only if
    /// the arm ran.
    pub(super) fn give_up_before(&mut self, w: &mut ReverseWalk, view: &View, e: &Entry) -> Result<()> {
        let Some(k) = w.path.iter().position(|p| !p.is_loop) else { return Ok(()) };
        for var in view.vars() {
            let v = &self.graph.vars[var];
            let branch = w.path[k].during.clone();
            let inside = self.recorder.made(var).is_some_and(|at| branch.contains(&at));
            if v.class != VarClass::Temp || !inside || !w.given_up.insert(var) {
                continue;
            }
            let what = View::whole(var, &self.graph.vars[var].shape).canonical();
            let node = NodeKind::Effect(Effect::Undef { what, until_written: UntilWritten::Unread });
            let origin = self.origin_at(e.span);
            let path = w.path[..k].to_vec();
            let stage = self.emission.stage();
            let nodes = vec![Node { kind: node, origin, at: branch.start, reverse: true, stage }];
            self.splice(w.root, &path, branch.start, nodes);
        }
        Ok(())
    }

    /// Returns the row of a stash that keeps a value of a loop's body.
    pub(super) fn kept(
        &mut self,
        w: &mut ReverseWalk,
        k: usize,
        t: &Tensor,
        e: &Entry,
        since: u32,
        after: bool,
    ) -> Result<Tensor> {
        if let Some((var, start, step)) = w.loops[k].index
            && let [part] = &t.view.parts[..]
            && part.var == var
        {
            return self.forward_index(w, k, start, step, t, e.span);
        }
        let version = self.recorder.written_last(&t.view, since);
        let (path, at) = w.keeping_place(k, version, if after { e.during.end } else { e.during.start });
        let key = (t.view.clone(), version, path.clone());
        if let Some((_, row)) = w.loops[k].rows.iter().find(|(known, _)| *known == key) {
            return Ok(row.clone());
        }
        let known = match self.rematerialized(w, k, t, since)? {
            None if after => self.carried_back(w, k, t, e)?,
            known => known,
        };
        if let Some(row) = known {
            w.loops[k].rows.push((key, row.clone()));
            return Ok(row);
        }
        let rows: u64 = w.loops[..=k].iter().map(|l| l.count).product();
        let var = t.view.parts.first().map_or(VarId::from_u32(0), |p| p.var);
        let name = format_smolstr!("{}.kept", self.graph.vars[var].name);
        let maker = self.maker_of(w, &path, var, at).unwrap_or(self.graph.vars[var].origin);
        let keeping = Keeping { name, rows, maker, path: &path, at, span: e.span };
        let row = self.stashed(w, k, t, keeping)?;
        w.loops[k].rows.push((key, row.clone()));
        Ok(row)
    }

    /// Returns the origin of the step of a body that last writes a variable before a moment, or in the iteration
    /// before.
    fn maker_of(&mut self, w: &ReverseWalk, path: &[Inside], var: VarId, at: Moment) -> Option<OriginId> {
        let nodes = std::mem::take(&mut self.emission.body_at(w.root, path)?.nodes);
        let writes = |n: &&Node| {
            let mut a = Accesses::default();
            self.accesses(n, &mut a);
            a.writes.contains(&var)
        };
        let before = nodes.partition_point(|n| n.at < at);
        let (before, after) = nodes.split_at(before);
        let maker = before.iter().rev().find(writes).or_else(|| after.iter().rev().find(writes)).map(|n| n.origin);
        self.emission.body_at(w.root, path)?.nodes = nodes;
        maker
    }

    /// Returns the index of a forward loop in the reverse loop.
    fn forward_index(
        &mut self,
        w: &mut ReverseWalk,
        k: usize,
        start: i32,
        step: i32,
        t: &Tensor,
        span: Span,
    ) -> Result<Tensor> {
        let local = w.loops[k].local.clone();
        if (start, step) == (0, 1) {
            return Ok(Tensor { view: local.view.reshape(&t.view.shape()), ty: t.ty });
        }
        if let Some(index) = &w.loops[k].forward_index {
            return Ok(index.clone());
        }
        let depth = w.loops[k].depth;
        let index = self.hoisted(depth, |this| {
            this.untaped(|this| {
                let scaled = this.binary(BinaryOp::Mul, local.into(), Value::Int(step.into()), span)?;
                this.binary(BinaryOp::Add, scaled, Value::Int(start.into()), span)
            })
        })?;
        let Value::Tensor(index) = index else { return Err(Failed) };
        w.loops[k].forward_index = Some(Tensor::clone(&index));
        Ok(Tensor::clone(&index))
    }

    /// Returns the number of the iteration in the forward loops up to `k`, counted as one.
    pub(super) fn forward_number(&mut self, w: &mut ReverseWalk, k: usize, span: Span) -> Result<Tensor> {
        if let Some(known) = &w.loops[k].forward {
            return Ok(known.clone());
        }
        let path = w.loops[k].path.clone();
        let (count, begin) = (w.loops[k].count, w.loops[k].during.start);
        let index = self.index_of(w.root, &path, span)?;
        let (var, start, step) = index;
        let local = Tensor { view: View::whole(var, &[]), ty: ElemType::I32 };
        let outer = if k > 0 { Some(self.forward_number(w, k - 1, span)?) } else { None };
        let number = if outer.is_none() && (start, step) == (0, 1) {
            local
        } else {
            let mut number = None;
            let nodes = self.aside(|this| {
                let mut n: Value = local.into();
                if start != 0 {
                    n = this.binary(BinaryOp::Sub, n, Value::Int(start.into()), span)?;
                }
                if step != 1 {
                    n = this.binary(BinaryOp::Div, n, Value::Int(step.into()), span)?;
                }
                if let Some(outer) = outer {
                    let scaled = this.binary(BinaryOp::Mul, outer.into(), Value::Int(count as i64), span)?;
                    n = this.binary(BinaryOp::Add, scaled, n, span)?;
                }
                number = Some(n.clone());
                Ok(n)
            })?;
            // Before all that is kept at the start of an iteration.
            self.splice(w.root, &path, begin - 1, nodes);
            match number {
                Some(Value::Tensor(t)) => Tensor::clone(&t),
                _ => return Err(Failed),
            }
        };
        w.loops[k].forward = Some(number.clone());
        Ok(number)
    }

    /// Returns the same number in the reverse loops.
    pub(super) fn reverse_number(&mut self, w: &mut ReverseWalk, k: usize, span: Span) -> Result<Tensor> {
        if let Some(known) = &w.loops[k].backward {
            return Ok(known.clone());
        }
        let local = w.loops[k].local.clone();
        let number = if k == 0 {
            local
        } else {
            let outer = self.reverse_number(w, k - 1, span)?;
            let (count, depth) = (w.loops[k].count, w.loops[k].depth);
            let number = self.hoisted(depth, |this| {
                this.untaped(|this| {
                    let scaled = this.binary(BinaryOp::Mul, outer.into(), Value::Int(count as i64), span)?;
                    this.binary(BinaryOp::Add, scaled, local.into(), span)
                })
            })?;
            let Value::Tensor(number) = number else { return Err(Failed) };
            Tensor::clone(&number)
        };
        w.loops[k].backward = Some(number.clone());
        Ok(number)
    }

    /// Emits steps of the forward program into a body of their own.
    pub(super) fn aside(&mut self, f: impl FnOnce(&mut Self) -> Result<Value>) -> Result<Vec<Node>> {
        self.emission.open();
        let reverse = self.emission.replace_reverse(false);
        let done = self.untaped(f);
        self.emission.replace_reverse(reverse);
        let body = self.emission.close();
        done.map(|_| body.nodes)
    }

    /// Emits steps into an outer open body.
    pub(super) fn hoisted<T>(&mut self, depth: usize, f: impl FnOnce(&mut Self) -> T) -> T {
        let inner = self.emission.set_aside(depth + 1);
        let value = f(self);
        self.emission.put_back(inner);
        value
    }

    /// Inserts steps into a body, before the first one at a moment or later.
    pub(super) fn splice(&mut self, root: usize, path: &[Inside], at: u32, mut nodes: Vec<Node>) {
        nodes.iter_mut().for_each(|n| n.at = at);
        if let Some(body) = self.emission.body_at(root, path) {
            let position = body.nodes.partition_point(|n| n.at < at);
            body.insert(position, nodes);
        }
    }

    /// Returns the index of a forward loop, which gets one if it has none.
    fn index_of(&mut self, root: usize, path: &[Inside], span: Span) -> Result<(VarId, i32, i32)> {
        if let Some(NodeKind::Repeat { index: Some(index), .. }) = self.emission.node_at(root, path) {
            return Ok(*index);
        }
        let t = self.temporary("iteration", ElemType::I32, &[], span)?;
        let var = t.view.parts.first().map_or(VarId::from_u32(0), |p| p.var);
        if let Some(NodeKind::Repeat { index, .. }) = self.emission.node_at(root, path) {
            *index = Some((var, 0, 1));
        }
        Ok((var, 0, 1))
    }

    /// Reports values that a loop, which closes now, overwrites after a `grad` in it that needs them.
    pub fn check_overwritten_in_loop(&mut self) -> Result<()> {
        let depth = self.emission.depth();
        let now = self.moment();
        let due: Vec<LateCheck> =
            self.recorder.late.iter().filter(|c| c.root < depth && depth < c.chain).cloned().collect();
        for c in due {
            let Some(write) = self.recorder.overwritten(&c.view, c.since..now).cloned() else { continue };
            let var = c.view.parts.first().map_or(VarId::from_u32(0), |p| p.var);
            let name = self.name_in_text(var);
            let message = format!("the next iteration needs `{name}` as it was before the loop, but it is overwritten");
            let d = Diagnostic::error("grad::overwritten_in_loop", c.needed, message).here("used before the loop");
            let d = d.label(write.span, "overwritten here").label(c.taken, "gradient taken here, in the loop");
            return Err(self.report(d.help("compute it again inside the loop, so that each iteration has its own")));
        }
        Ok(())
    }
}
