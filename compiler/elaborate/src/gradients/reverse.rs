//! The walk: the entries of the open bodies, backwards.
//!
//! Invariant: when an entry is reached, the adjoints of what it wrote are complete.

use super::derive::{Formula, OpKind};
use super::formulas::Derived;
use super::moments::RemoteWrite;
use super::order::Moment;
use super::rule_table::RuleRef;
use super::state::ReverseWalk;
use super::tape::{EachOf, Entry, EntryKind, Tape, What, each_tensor};
use crate::elaborator::Elaborator;
use crate::value::{Given, Tensor, Tuple, Value};
use girder_ir::graph::VarClass;
use girder_ir::ids::{StreamId, VarId};
use girder_ir::types::ElemType;
use girder_ir::view::View;
use girder_source::{Diagnostic, Failed, Result, Span};
use smol_str::SmolStr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

impl Elaborator<'_> {
    /// Walks the tapes of the open bodies, innermost first, and reads out the gradients.
    pub(super) fn walk_chain(
        &mut self,
        w: &mut ReverseWalk,
        chain: Vec<Tape>,
        y: &Tensor,
        seed: &Tensor,
    ) -> Result<()> {
        w.adjoints.held.extend(seed.view.vars());
        if w.active.holds(&y.view, w.began) {
            self.add_adjoint(&mut w.adjoints, &y.view, seed, w.span)?;
        }
        for (root, tape) in chain.into_iter().enumerate().rev() {
            w.root = root;
            self.walk(w, &tape)?;
        }
        self.read_leaves(w, 0)
    }

    /// Walks a tape backwards.
    pub(super) fn walk(&mut self, w: &mut ReverseWalk, tape: &Tape) -> Result<()> {
        for e in tape.iter().rev() {
            self.charge(e.span)?;
            self.read_leaves(w, e.during.start + 1)?;
            if w.path.is_empty() {
                self.note_parts(w, e)?;
            }
            self.at_entry(e, |this| this.reverse(w, e))?;
        }
        Ok(())
    }

    /// Emits steps under the path, the places, the stage and the origin of an entry.
    pub(super) fn at_entry<T>(&mut self, e: &Entry, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let mut path = e.path.to_vec();
        if path.last().is_none_or(|p| p != "grad") {
            path.push("grad".into());
        }
        let path = self.emission.replace_path(path);
        let places = self.emission.replace_places(e.places.to_vec());
        let origin = self.graph.origins.add(e.span, e.origin, "grad");
        let origin = self.emission.replace_origin(Some(origin));
        let stage = self.emission.replace_stage(e.stage);
        let value = f(self);
        self.emission.replace_stage(stage);
        self.emission.replace_origin(origin);
        self.emission.replace_places(places);
        self.emission.replace_path(path);
        value
    }

    fn reverse(&mut self, w: &mut ReverseWalk, e: &Rc<Entry>) -> Result<()> {
        match &e.kind {
            EntryKind::Each { function, operands, outs } => self.reverse_each(w, e, function, operands, outs),
            EntryKind::Rule { rule, bound, reads, out } => self.reverse_rule(w, e, *rule, (bound, reads), out),
            EntryKind::Write { dst, src } => {
                let t = Tensor { view: dst.clone(), ty: src.ty };
                let Some(d) = self.adjoint_of(&mut w.adjoints, &t, e.span)? else { return Ok(()) };
                self.clear_adjoint(&mut w.adjoints, dst, e.span)?;
                if w.active.holds(&src.view, e.during.start) {
                    self.note_use(w, &src.view, e);
                    self.add_adjoint(&mut w.adjoints, &src.view, &d, e.span)?;
                }
                Ok(())
            }
            EntryKind::Fill { dst, stream } => {
                stream.map_or(Ok(()), |stream| self.no_gradient_from(w, stream, dst, e))?;
                self.clear_adjoint(&mut w.adjoints, dst, e.span)
            }
            EntryKind::Rows { put, x, at, count, value } => self.reverse_rows(w, e, *put, (x, at, *count, value)),
            EntryKind::ScatterAdd { x, index, value } => {
                let Some(d) = self.adjoint_of(&mut w.adjoints, x, e.span)? else { return Ok(()) };
                if w.active.holds(&value.view, e.during.start) {
                    let index = self.need(w, index, e, false)?;
                    let d = self.prelude_call("gather", vec![d.into(), index.into()], e.span)?;
                    let Value::Tensor(d) = d else { return Err(Failed) };
                    self.add_adjoint(&mut w.adjoints, &value.view, &d, e.span)?;
                }
                Ok(())
            }
            EntryKind::Opaque { what, reads, writes } => self.reverse_opaque(w, e, *what, reads, writes),
            EntryKind::Branch { on, keys, arms } => self.reverse_branch(w, e, on, keys, arms),
            EntryKind::Repeat { count, index, body, attributes } => {
                self.reverse_repeat(w, e, *count, *index, body, *attributes)
            }
            EntryKind::Par(arms) => self.reverse_par(w, e, arms),
            EntryKind::Segment(tape) => self.reverse_segment(w, e, tape),
        }
    }

    fn reverse_opaque(
        &mut self,
        w: &mut ReverseWalk,
        e: &Entry,
        what: What,
        reads: &[VarId],
        writes: &[VarId],
    ) -> Result<()> {
        let reached = writes.iter().copied().find(|&v| w.adjoints.has(v));
        let Some(reached) = reached else { return Ok(()) };
        let is_active = |v: &&VarId| w.active.holds(&View::whole(**v, &self.graph.vars[**v].shape), e.during.start);
        let read = reads.iter().find(is_active).copied();
        if read.is_none() {
            // What it wrote does not depend on the leaves; earlier values of the same variable may.
            if !w.active.holds(&View::whole(reached, &self.graph.vars[reached].shape), e.during.start) {
                writes.iter().for_each(|&v| w.adjoints.forget(v));
                return Ok(());
            }
        }
        let name = self.name_in_text(read.unwrap_or(reached));
        let (code, what, help) = match what {
            What::Set if self.graph.vars[reached].class == VarClass::Param => What::UPDATE,
            what => what.refusal(),
        };
        let message = format!("{what} has no derivative, and the gradient passes through it by `{name}`");
        let mut d = Diagnostic::error(code, e.span, message).here("here");
        if let Some(call) = e.origin.map(|call| self.graph.origins.span(call)).filter(|&at| at != e.span) {
            d = d.label(call, "in this call");
        }
        let d = d.label(w.span, "gradient taken here");
        Err(self.report(d.help(help)))
    }

    /// Reports a row of a remote buffer through which the gradient would have to pass: the program has written to the
    /// buffer what depends on the wanted tensors.
    fn no_gradient_from(&mut self, w: &ReverseWalk, stream: StreamId, into: &View, e: &Entry) -> Result<()> {
        if !w.adjoints.reaches(into) {
            return Ok(());
        }
        let shared = w.loops.iter().map(|l| l.during.clone());
        let before: Vec<Range<Moment>> = shared.chain(std::iter::once(0..e.during.start)).collect();
        let is_seen = |write: &&RemoteWrite| {
            write.stream == stream
                && before.iter().any(|during| during.contains(&write.at))
                && w.active.holds(&write.view, write.at)
        };
        let Some(write) = self.recorder.remote_writes.iter().find(is_seen) else { return Ok(()) };
        let name = &self.graph.streams[stream].name;
        let message = format!("the gradient does not pass through the remote buffer `{name}`");
        let d = Diagnostic::error("grad::no_rule", e.span, message).here("read here, and needed by the loss");
        let d = d.label(write.span, "what depends on `wrt` is written here").label(w.span, "gradient taken here");
        let help = "use the value itself instead of the row, or take the row as a constant: `stopped(read(…))`";
        Err(self.report(d.help(help)))
    }

    fn reverse_each(
        &mut self,
        w: &mut ReverseWalk,
        e: &Entry,
        function: &EachOf,
        operands: &[(Value, ElemType)],
        outs: &[Tensor],
    ) -> Result<()> {
        let Some(first) = outs.first() else { return Ok(()) };
        if !outs.iter().any(|t| w.adjoints.reaches(&t.view)) {
            return Ok(());
        }
        let active =
            |v: &Value| matches!(v, Value::Tensor(t) if t.ty.is_float() && w.active.holds(&t.view, e.during.start));
        let wanted: Vec<bool> = operands.iter().map(|(v, _)| active(v)).collect();
        let mut adjoints = vec![];
        let mut any = false;
        for t in outs {
            let d = self.adjoint_of(&mut w.adjoints, t, e.span)?;
            any |= d.is_some();
            adjoints.push(d);
        }
        let shape = first.view.shape();
        for t in outs {
            self.clear_adjoint(&mut w.adjoints, &t.view, e.span)?;
        }
        if !any || !wanted.contains(&true) {
            return Ok(());
        }
        let types: Vec<ElemType> = operands.iter().map(|(_, ty)| *ty).collect();
        let hold = outs.iter().all(|t| self.is_intact(w, t, e));
        let (derived, by) = match function {
            EachOf::Convert => {
                let (Some((Value::Tensor(x), from)), Some(Some(d))) = (operands.first(), adjoints.first()) else {
                    return Ok(());
                };
                let d = if *from == d.ty { d.clone() } else { self.convert_each(d.clone(), *from, e.span)? };
                return self.contribute(w, e, x, d);
            }
            EachOf::Fn(module, item) => self.derivative_of((*module, *item), &types, &wanted, hold, (e, w.span))?,
            EachOf::Derived(of) => self.derivative_of_derived(of, &wanted, hold, (e, w.span))?,
        };
        // An adjoint that is that of the result needs no step.
        let (n, m) = (operands.len(), outs.len());
        let is_copy = |f: &Formula, o: usize| match f.code[o].kind {
            OpKind::Input(k) if k >= n + m => Some(k - n - m),
            _ => None,
        };
        let mut made: Vec<usize> = (0..by.len()).collect();
        let mut results: Vec<Option<Tensor>> = vec![None; by.len()];
        let mut derived = derived;
        if let Derived::Formula(formula) = &derived {
            made.retain(|&k| is_copy(formula, formula.outputs[k]).is_none());
            for (k, result) in results.iter_mut().enumerate() {
                if let Some(j) = is_copy(formula, formula.outputs[k]) {
                    *result = adjoints[j].clone();
                }
            }
            let mut smaller = Formula::clone(formula);
            smaller.outputs = made.iter().map(|&k| formula.outputs[k]).collect();
            derived = Derived::Formula(Rc::new(smaller));
        }
        if !made.is_empty() {
            let (derived, kept) = derived.compact();
            let mut used = vec![false; n + 2 * m];
            kept.iter().for_each(|&k| used[k] = true);
            let mut inputs: Vec<Option<(Value, ElemType)>> = vec![];
            for (k, (v, ty)) in operands.iter().enumerate() {
                inputs.push(match v {
                    Value::Tensor(t) if used[k] => Some((self.need(w, t, e, false)?.into(), *ty)),
                    Value::Tensor(_) => None,
                    number => Some((number.clone(), *ty)),
                });
            }
            for (j, t) in outs.iter().enumerate() {
                let y = if used[n + j] { Some((self.need(w, t, e, true)?.into(), t.ty)) } else { None };
                inputs.push(y);
            }
            for (j, d) in adjoints.iter().enumerate() {
                let d = match d {
                    Some(d) => d.clone(),
                    None => self.zeros_of(outs[j].ty, &outs[j].view.shape(), e.span)?,
                };
                inputs.push(Some((d.clone().into(), d.ty)));
            }
            let tensors = self.apply_derived((derived, kept), inputs, &shape, e.span)?;
            for (k, t) in made.into_iter().zip(tensors) {
                results[k] = Some(t);
            }
        }
        let held = w.adjoints.held.len();
        w.adjoints.held.extend(results.iter().flatten().flat_map(|t| t.view.vars()));
        for (k, d) in by.into_iter().zip(results) {
            if let (Value::Tensor(x), Some(d)) = (&operands[k].0, d) {
                let x = x.clone();
                self.contribute(w, e, &x, d)?;
            }
        }
        w.adjoints.held.truncate(held);
        Ok(())
    }

    /// Adds an adjoint of the result's shape to an operand that was broadcast to it.
    fn contribute(&mut self, w: &mut ReverseWalk, e: &Entry, x: &Tensor, d: Tensor) -> Result<()> {
        let shape = d.view.shape();
        let view = if x.view.len() == 1 { x.view.reshape(&[]) } else { x.view.clone() };
        let view = view.broadcast_to(&shape).unwrap_or(view);
        let d = if view.shape() == shape { d } else { Tensor { view: d.view.reshape(&view.shape()), ty: d.ty } };
        self.note_use(w, &x.view, e);
        self.add_adjoint(&mut w.adjoints, &view, &d, e.span)
    }

    fn reverse_rule(
        &mut self,
        w: &mut ReverseWalk,
        e: &Entry,
        rule: RuleRef,
        (bound, reads): (&[(SmolStr, Value)], &[VarId]),
        out: &Value,
    ) -> Result<()> {
        let mut reached = false;
        each_tensor(out, &mut |t| reached |= w.adjoints.reaches(&t.view));
        if !reached {
            return Ok(());
        }
        let gives = self.rule_gives(rule);
        let mut wanted = vec![];
        for (name, value) in bound.iter().filter(|(n, _)| gives.contains(n)) {
            let mut active = false;
            each_tensor(value, &mut |t| active |= t.ty.is_float() && w.active.holds(&t.view, e.during.start));
            if active {
                wanted.push(name.clone());
            }
        }
        let mut any = false;
        let dy = self.adjoints_of_value(w, out, e, &mut any)?;
        let mut outs = vec![];
        each_tensor(out, &mut |t| outs.push(t.view.clone()));
        for view in &outs {
            self.clear_adjoint(&mut w.adjoints, view, e.span)?;
        }
        if !any {
            return Ok(());
        }
        self.check_rule_arguments(w, e, rule, reads)?;
        if wanted.is_empty() {
            return Ok(());
        }
        let names = self.rule_reads(rule, &wanted);
        let mut values = vec![];
        // Variables of the module that the rule reads, as they were.
        for (name, value) in self.rule_globals(rule, &names) {
            if !bound.iter().any(|(n, _)| *n == name) {
                values.push((name, self.needed_value(w, &value, e, false)?));
            }
        }
        for (name, value) in bound {
            let value = if names.contains(name) { self.needed_value(w, value, e, false)? } else { value.clone() };
            values.push((name.clone(), value));
        }
        let results = self.rule_results(rule);
        let y =
            if results.iter().any(|r| names.contains(r)) { self.needed_value(w, out, e, true)? } else { out.clone() };
        let found = self.run_rule(rule, &values, &y, &dy, &wanted, e.span)?;
        let held = w.adjoints.held.len();
        for (_, d) in &found {
            each_tensor(d, &mut |t| w.adjoints.held.extend(t.view.vars()));
        }
        for (name, d) in found {
            if let Some((_, x)) = bound.iter().find(|(n, _)| *n == name) {
                self.add_value(w, x, &d, e)?;
            }
        }
        w.adjoints.held.truncate(held);
        Ok(())
    }

    /// Returns the adjoint of a value, with zeros where nothing was added.
    fn adjoints_of_value(&mut self, w: &mut ReverseWalk, value: &Value, e: &Entry, any: &mut bool) -> Result<Value> {
        Ok(match value {
            Value::Tensor(t) if t.ty.is_float() => match self.adjoint_of(&mut w.adjoints, t, e.span)? {
                Some(d) => {
                    *any = true;
                    d.into()
                }
                None => self.zeros_of(t.ty, &t.view.shape(), e.span)?.into(),
            },
            Value::List(l) => {
                let mut values = vec![];
                for v in l.iter() {
                    values.push(self.adjoints_of_value(w, v, e, any)?);
                }
                Value::List(Arc::new(values))
            }
            Value::Tuple(t) => {
                let mut values = vec![];
                for v in &t.values {
                    values.push(self.adjoints_of_value(w, v, e, any)?);
                }
                Value::Tuple(Arc::new(Tuple { names: t.names.clone(), values }))
            }
            other => other.clone(),
        })
    }

    /// Adds the adjoints that a rule gives for an argument.
    fn add_value(&mut self, w: &mut ReverseWalk, x: &Value, d: &Value, e: &Entry) -> Result<()> {
        match (x, d) {
            (Value::Tensor(x), Value::Tensor(d)) if x.ty.is_float() => {
                if w.active.holds(&x.view, e.during.start) {
                    self.note_use(w, &x.view, e);
                    self.add_adjoint(&mut w.adjoints, &x.view, d, e.span)?;
                }
                Ok(())
            }
            (Value::List(x), Value::List(d)) => {
                x.iter().zip(d.iter()).try_for_each(|(x, d)| self.add_value(w, x, d, e))
            }
            (Value::Tuple(x), Value::Tuple(d)) => {
                x.values.iter().zip(&d.values).try_for_each(|(x, d)| self.add_value(w, x, d, e))
            }
            _ => Ok(()),
        }
    }

    /// Returns a value of the forward program for the reverse one.
    fn needed_value(&mut self, w: &mut ReverseWalk, value: &Value, e: &Entry, after: bool) -> Result<Value> {
        Ok(match value {
            Value::Tensor(t) => self.need(w, t, e, after)?.into(),
            Value::List(l) => {
                let mut values = vec![];
                for v in l.iter() {
                    values.push(self.needed_value(w, v, e, after)?);
                }
                Value::List(Arc::new(values))
            }
            Value::Tuple(t) => {
                let mut values = vec![];
                for v in &t.values {
                    values.push(self.needed_value(w, v, e, after)?);
                }
                Value::Tuple(Arc::new(Tuple { names: t.names.clone(), values }))
            }
            other => other.clone(),
        })
    }

    fn reverse_rows(
        &mut self,
        w: &mut ReverseWalk,
        e: &Entry,
        put: bool,
        (x, at, count, value): (&Tensor, &Tensor, Option<u64>, &Tensor),
    ) -> Result<()> {
        let (target, source) = if put { (x, value) } else { (value, x) };
        let Some(d) = self.adjoint_of(&mut w.adjoints, target, e.span)? else { return Ok(()) };
        if !put {
            self.clear_adjoint(&mut w.adjoints, &value.view, e.span)?;
        }
        if !put && !w.active.holds(&source.view, e.during.start) {
            return Ok(());
        }
        let at = self.need(w, at, e, false)?;
        let given = |name: &str, value: Value| Given { name: name.into(), value, span: e.span };
        let counted = |n: u64| given("count", Value::Int(n as i64));
        let (read, write) = if count.is_some() { ("rows", "put_rows") } else { ("row", "put_row") };
        if !put && x.view.has_aliases() {
            // Elements that the view repeats have adjoints of their own first, which are then added.
            let zeros = self.zeros_of(x.ty, &x.view.shape(), e.span)?;
            let each = self.copy_of(&zeros, e.span)?;
            let mut shape = x.view.shape();
            shape[0] = count.unwrap_or(1);
            let d = Tensor { view: d.view.reshape(&shape[usize::from(count.is_none())..]), ty: d.ty };
            let mut list = vec![given("", each.clone().into()), given("", at.into())];
            list.extend(count.map(counted));
            list.push(given("value", d.into()));
            self.prelude_given(write, list, e.span)?;
            self.note_use(w, &x.view, e);
            return self.add_adjoint(&mut w.adjoints, &x.view, &each, e.span);
        }
        let table = self.changing_adjoint(w, x, e.span)?;
        let mut list = vec![given("", table.clone().into()), given("", at.clone().into())];
        list.extend(count.map(counted));
        let Value::Tensor(old) = self.prelude_given(read, list, e.span)? else { return Err(Failed) };
        let mut list = vec![given("", table.into()), given("", at.into())];
        list.extend(count.map(counted));
        if put {
            if w.active.holds(&value.view, e.during.start) {
                let view = value.view.broadcast_to(&old.view.shape()).unwrap_or(value.view.clone());
                self.add_adjoint(&mut w.adjoints, &view, &old, e.span)?;
            }
            list.push(given("value", self.zeros_of(x.ty, &old.view.shape(), e.span)?.into()));
        } else {
            self.note_use(w, &x.view, e);
            let d = Tensor { view: d.view.reshape(&old.view.shape()), ty: d.ty };
            list.push(given("value", self.prelude_call("add", vec![Value::Tensor(old), d.into()], e.span)?));
        }
        self.prelude_given(write, list, e.span)?;
        Ok(())
    }

    /// Returns the adjoint of a tensor as a view that may be written.
    fn changing_adjoint(&mut self, w: &mut ReverseWalk, x: &Tensor, span: Span) -> Result<Tensor> {
        for var in x.view.vars() {
            self.own_adjoint(&mut w.adjoints, var, span)?;
            self.fill_holes(&mut w.adjoints, var, None, span)?;
        }
        match self.adjoint_of(&mut w.adjoints, x, span)? {
            Some(d) => Ok(d),
            None => Err(Failed),
        }
    }
}
