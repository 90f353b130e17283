//! `grad(loss, wrt: …, dy: …)` and `stopped(x)`.
//!
//! Invariant: the result has the structure of `wrt`; each of its float tensors is replaced by one of its shape.

use super::active::Active;
use super::state::ReverseWalk;
use super::tape::{EntryKind, Tape, each_tensor, map_tensors};
use crate::elaborator::Elaborator;
use crate::value::{Given, Tensor, Value};
use girder_ir::ids::VarId;
use girder_ir::types::Scalar;
use girder_source::{Diagnostic, Result, Span};
use smol_str::SmolStr;

impl Elaborator<'_> {
    /// Returns the name of a variable for messages: where values are computed again, that of the variable in the text.
    pub(super) fn name_in_text(&self, var: VarId) -> SmolStr {
        self.graph.vars[self.recorder.in_text(var)].name.clone()
    }

    /// Elaborates `grad(loss, wrt: s, dy: d)`.
    pub fn grad(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        if let Some(Given { value: Value::Fn(..) | Value::Closure(_) | Value::Builtin(_), span, .. }) = given.first() {
            let message = "the loss is a function, and a gradient is that of a number which is computed";
            let help = "call it, and take the gradient by its argument: `grad(f(x), wrt: x)`";
            return Err(self.error_help("elaborate::type_mismatch", *span, message, help));
        }
        let [loss, wrt, dy] = self.arguments("grad", ["loss", "wrt", "dy?"], given, span)?;
        let (Some(loss), Some(wrt)) = (loss, wrt) else { return Err(girder_source::Failed) };
        if self.emission.count().is_none() {
            let help = "move it into a `program`, or into a function that a program calls";
            return Err(self.error_help("grad::outside_program", span, "a gradient is taken in a program", help));
        }
        let y = match loss.value {
            Value::Tensor(t) if t.ty.is_float() => t,
            Value::Tensor(t) => {
                let message = format!("the loss is {}, and only floats have a derivative", t.type_name());
                return Err(self.error_help("grad::integer", loss.span, message, "convert it before: `f32(…)`"));
            }
            Value::Int(_) | Value::Float(_) | Value::Literal(_) => {
                let message = "the loss is a static number, which depends on no tensor";
                let help = "compute it from what `wrt` names: `grad(mean(x * x), wrt: x)`";
                return Err(self.error_help("elaborate::type_mismatch", loss.span, message, help));
            }
            other => return Err(self.expected("a tensor to differentiate", &other, loss.span)),
        };
        let seed = self.seed(&y, dy, loss.span)?;
        let leaves = self.wanted_leaves(&wrt.value, wrt.span)?;
        let now = self.moment();
        let chain: Vec<Tape> = self.emission.tapes();
        let mut active = Active::default();
        let mut list = vec![];
        for t in &leaves {
            let leaf = self.leaf(&chain, t.clone(), now);
            t.view.parts.iter().for_each(|p| _ = active.insert(p.var, leaf.since));
            list.push(leaf);
        }
        chain.iter().for_each(|tape| self.activate(tape, &mut active));
        self.note_carried(&chain, &y.view, &list, &active, span);
        self.check_wanted(&chain, &y.view, &list, span)?;
        let mut walk = ReverseWalk::new(active, list, chain.len(), span, now);
        self.reporter.enter_call(span);
        let reverse = self.emission.replace_reverse(true);
        // In a pipeline, each step belongs to the stage of the step that it reverses.
        let stage = self.emission.replace_stage(None);
        let places = stage.map(|_| self.emission.replace_places(vec![]));
        let done = self.walk_chain(&mut walk, chain, &y, &seed);
        places.into_iter().for_each(|places| _ = self.emission.replace_places(places));
        self.emission.replace_stage(stage);
        self.emission.replace_reverse(reverse);
        self.reporter.leave_call();
        done?;
        self.recorder.in_reverse.push(now..self.moment());
        let computed = self.recorder.written_last(&y.view, now);
        let (mut missing, mut after) = (vec![], None);
        let mut found = vec![];
        for leaf in walk.leaves {
            found.push(match leaf.found.flatten() {
                Some(d) => d,
                None => {
                    missing.extend(leaf.tensor.view.vars().first().copied());
                    after = after.or(leaf.writer.filter(|_| leaf.written > computed));
                    self.zeros_of(leaf.tensor.ty, &leaf.tensor.view.shape(), span)?
                }
            });
        }
        // After an error, steps that use the others may be missing.
        if !missing.is_empty() && !self.reporter.has_errors() {
            let names: Vec<String> = missing.iter().take(4).map(|&v| format!("`{}`", self.name_in_text(v))).collect();
            let more = if missing.len() > 4 { format!(" and {} more", missing.len() - 4) } else { String::new() };
            let message = format!("the loss does not depend on {}{more}", names.join(", "));
            let d = Diagnostic::warning("grad::unused", wrt.span, message);
            let help = "its gradient is zero; leave it out of `wrt`, or use it in the loss";
            self.reporter.report_alone(match after {
                Some(write) => d.label(write, "written here, after the loss was computed").help(
                    "the gradient by what it holds now is zero; take the gradient before this write, or compute the \
                     loss after it",
                ),
                None => d.help(help),
            });
        }
        let mut found = found.into_iter();
        let mut result = wrt.value;
        map_tensors(&mut result, &mut |t| {
            if t.ty.is_float()
                && let Some(d) = found.next()
            {
                *t = d;
            }
        });
        Ok(result)
    }

    /// Returns the adjoint of the loss: `dy`, or 1 for a loss of rank 0.
    fn seed(&mut self, y: &Tensor, dy: Option<Given>, at: Span) -> Result<Tensor> {
        let shape = y.view.shape();
        match dy.map(|g| (g.value, g.span)) {
            None if y.view.rank() == 0 => {
                let one = self.scalar(&Value::Float(1.0), y.ty, at)?;
                self.constant(one, at)
            }
            None => {
                let message = format!("the loss is {}, and a gradient is that of one number", y.type_name());
                let help = "reduce it with `sum(…)` or `mean(…)`, or pass its adjoint: `dy: …`";
                Err(self.error_help("grad::not_scalar", at, message, help))
            }
            Some((Value::Tensor(d), span)) => {
                if d.ty != y.ty {
                    let message = format!("`dy` holds {}, and the loss {}", d.ty, y.ty);
                    return Err(self.error_help("grad::integer", span, message, format!("convert it: `{}(…)`", y.ty)));
                }
                let Some(view) = d.view.broadcast_to(&shape) else {
                    let message = format!("`dy` is {}, and the loss {}", d.type_name(), y.type_name());
                    let help = "`dy` is the adjoint of each element of the loss: it has the shape of the loss, or one \
                                that is broadcast to it";
                    return Err(self.error_help("elaborate::shape_mismatch", span, message, help));
                };
                Ok(Tensor { view, ty: y.ty })
            }
            Some((other, span)) if !matches!(other, Value::Int(_) | Value::Float(_) | Value::Literal(_)) => {
                Err(self.expected("a tensor or a number as `dy`", &other, span))
            }
            Some((number, span)) => {
                let s: Scalar = self.scalar(&number, y.ty, span)?;
                let c = self.constant(s, span)?;
                Ok(Tensor { view: self.broadcast(&c, &shape, span)?, ty: y.ty })
            }
        }
    }

    /// Returns the float tensors of `wrt`, in order.
    fn wanted_leaves(&mut self, value: &Value, span: Span) -> Result<Vec<Tensor>> {
        if let Value::Tensor(t) = value
            && !t.ty.is_float()
        {
            let message = format!("`wrt` is {}, and only floats have a gradient", t.type_name());
            let help = "take the gradient by a float from which it is computed";
            return Err(self.error_help("grad::integer", span, message, help));
        }
        self.charge_walk(value, span)?;
        let mut leaves = vec![];
        each_tensor(value, &mut |t| leaves.extend(t.ty.is_float().then(|| t.clone())));
        if leaves.is_empty() {
            let message = "`wrt` contains no float tensor";
            let help = "give a tensor, or a list or tuple of tensors: `wrt: net`";
            return Err(self.error_help("grad::integer", span, message, help));
        }
        if let Some(t) = leaves.iter().find(|t| t.view.has_aliases()) {
            let name = t.view.vars().first().map(|&v| self.name_in_text(v)).unwrap_or_default();
            let message = format!("`wrt` names elements of `{name}` several times");
            let help = "take the gradient by the tensor itself, or use `copy(…)` of the view in the loss and in `wrt`";
            return Err(self.error_help("grad::overlapping_view", span, message, help));
        }
        Ok(leaves)
    }

    /// Elaborates `stopped(x)`: the elements of `x`, through which no gradient passes.
    pub fn stopped(&mut self, value: Value, span: Span) -> Result<Value> {
        let Value::Tensor(t) = &value else { return Ok(value) };
        if !self.is_taping() || !t.ty.is_float() {
            return Ok(value);
        }
        let begin = self.moment();
        let copy = self.untaped(|this| this.copy_of(t, span))?;
        self.record(begin, EntryKind::Fill { dst: copy.view.clone(), stream: None }, span);
        Ok(copy.into())
    }
}
