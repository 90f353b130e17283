//! The built-in functions outside codelets.
//!
//! Invariant: [`Elaborator::call_builtin`] handles every name in [`names::NAMES`].

pub mod names;
mod numbers;
mod difference;
mod lists;
mod rebuilt;
mod tensors;
mod data;

use crate::elaborator::Elaborator;
use crate::value::Given;
use crate::value::{Place, Tensor, Value};
use girder_ir::graph::VarClass;
use girder_ir::view::View;
use girder_source::{Result, Span};
use std::sync::Arc;

/// The codes of errors that the library states.
const CODES: [&str; 1] = ["library::no_plan"];

impl Elaborator<'_> {
    /// Calls a built-in function.
    pub fn call_builtin(&mut self, name: &'static str, given: Vec<Given>, span: Span) -> Result<Value> {
        match name {
            "tile" => {
                let [k] = self.required(name, ["k"], given, span)?;
                self.tile_place(&k.value, k.span).map(Value::Place)
            }
            "ipu" => {
                let [k] = self.required(name, ["k"], given, span)?;
                self.ipu_place(&k.value, k.span).map(Value::Place)
            }
            "linear" => {
                let [grain, first, tiles] = self.arguments(name, ["grain?", "first?", "tiles?"], given, span)?;
                self.linear_place(grain, first, tiles, span).map(Value::Place)
            }
            "load" => self.load(given, span),
            "bytes" => self.bytes(given, span),
            "read" => self.read_stream(given, span),
            "seek" => self.seek_call(given, span),
            "print" => self.print(given, span),
            "abort" => self.abort(given, span),
            "sync" => {
                let [] = self.arguments(name, [], given, span)?;
                self.push(crate::elaborator::NodeKind::Effect(girder_ir::program::Effect::Sync), span)?;
                Ok(Value::Unit)
            }
            "undef" => self.undef(given, span),
            "copy" => {
                let [x] = self.required(name, ["x"], given, span)?;
                match x.value {
                    Value::Tensor(t) => self.copy_of(&t, span).map(Value::from),
                    other => Err(self.expected("a tensor", &other, x.span)),
                }
            }
            "at_replica" => Err(self.at_replica_outside(span)),
            "uniform" => self.uniform(given, span),
            "agree" => self.agree(given, span),
            "grad" => self.grad(given, span),
            "stopped" => {
                let [x] = self.required(name, ["x"], given, span)?;
                self.stopped(x.value, span)
            }
            "drawn" => self.drawn(given, span),
            "call_site" => {
                let [] = self.arguments(name, [], given, span)?;
                Ok(self.call_site())
            }
            "normal_cdf" => self.normal_cdf(given, span),
            "concat" => self.concat(given, span),
            "zeros" => self.zeros(given, span),
            "params" | "states" => {
                self.memo_table.reads += 1;
                let [of] = self.arguments(name, ["of?"], given, span)?;
                self.of_class(if name == "params" { VarClass::Param } else { VarClass::State }, of)
            }
            "assert" => self.static_assert(given, span),
            "note_step" => self.note_step(given, span),
            "len" | "zip" | "enumerate" | "leaves" | "rebuilt" | "difference" | "overlap" | "has" | "kind_of"
            | "list" | "reversed" => self.call_list(name, given, span),
            _ => self.call_number(name, given, span),
        }
    }

    /// Returns arguments none of which is optional.
    pub fn required<const N: usize>(
        &mut self,
        of: &str,
        names: [&str; N],
        given: Vec<Given>,
        span: Span,
    ) -> Result<[Given; N]> {
        let slots = self.arguments(of, names, given, span)?;
        let nothing = Given { name: "".into(), value: Value::Error, span };
        Ok(slots.map(|s| s.unwrap_or_else(|| nothing.clone())))
    }

    /// Returns the variables of a class, or the tensors of a nested value that are in such variables.
    fn of_class(&mut self, class: VarClass, of: Option<Given>) -> Result<Value> {
        let Some(nest) = of else {
            let vars = self.graph.vars.iter().filter(|(_, v)| v.class == class);
            let all = vars.map(|(id, v)| Value::from(Tensor { view: View::whole(id, &v.shape), ty: v.ty }));
            return Ok(Value::List(Arc::new(all.collect())));
        };
        let mut all = Vec::new();
        self.leaves(&nest.value, nest.span, &mut all)?;
        // States are captured by the functions of a layer, since they are not trained as its members are.
        if class == VarClass::State {
            self.captured_beside(&nest.value, nest.span, &mut all)?;
        }
        all.retain(|leaf| matches!(leaf, Value::Tensor(t) if self.is_of_class(t, class)));
        Ok(Value::List(Arc::new(all)))
    }

    /// Returns whether a tensor is in variables of a class.
    fn is_of_class(&self, tensor: &Tensor, class: VarClass) -> bool {
        let vars = tensor.view.vars();
        !vars.is_empty() && vars.iter().all(|&var| self.graph.vars[var].class == class)
    }

    fn static_assert(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [cond, message, code] = self.arguments("assert", ["cond", "message?", "code?"], given, span)?;
        let code = match code.map(|g| (g.value, g.span)) {
            None => "elaborate::assertion",
            Some((Value::Str(s), at)) => match CODES.iter().find(|c| **c == s) {
                Some(code) => code,
                None => return Err(self.error("elaborate::arguments", at, "only the library states codes of errors")),
            },
            Some((other, at)) => return Err(self.expected("a string", &other, at)),
        };
        match cond.map(|g| (g.value, g.span)) {
            Some((Value::Bool(true), _)) => Ok(Value::Unit),
            Some((Value::Bool(false), _)) => {
                let message = match message.map(|g| g.value) {
                    Some(Value::Str(s)) => s.to_string(),
                    _ => "the assertion does not hold".into(),
                };
                self.scopes.end();
                Err(self.error(code, span, message))
            }
            Some((other, at)) => {
                let help = "outside codelets `assert` is static; at run time use `abort(\"…\", when: c)`";
                let message = format!("expected a static bool, found {}", other.describe());
                Err(self.error_help("elaborate::type_mismatch", at, message, help))
            }
            None => Err(girder_source::Failed),
        }
    }

    /// Evaluates `linear(grain: 2)`; printed text also gives the tiles.
    fn linear_place(
        &mut self,
        grain: Option<Given>,
        first: Option<Given>,
        tiles: Option<Given>,
        span: Span,
    ) -> Result<Place> {
        let mut number = |given: Option<Given>, least: i64| match given {
            None => Ok(None),
            Some(Given { value: Value::Int(n), .. }) if (least..=u32::MAX as i64).contains(&n) => Ok(Some(n)),
            Some(g) => Err(self.expected_least(least, &g)),
        };
        let (grain, first, tiles) = (number(grain, 1)?, number(first, 0)?, number(tiles, 1)?);
        self.memo_table.reads += 1;
        let mut place = self.current_place();
        if first.is_some() || tiles.is_some() {
            let start = first.unwrap_or(0);
            let count = tiles.unwrap_or(place.count as i64 - start).max(0) as u64;
            let range = crate::value::Range { start, count, step: 1 };
            place = self.tile_place(&Value::Range(range), span)?;
        }
        Ok(Place { grain: grain.map(|g| g as u32), ..place })
    }
}
