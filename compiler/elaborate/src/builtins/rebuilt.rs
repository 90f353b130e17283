//! `rebuilt`: a copy of a nested value with other tensors, in its functions too.
//!
//! # Note: Functions
//! A function of a nested value, such as `apply` of a layer, captures tensors of the value, or values and functions
//! that contain them. In the result, the function captures what replaces them, so it computes with the new tensors. The
//! same holds for a variable of its module that it mentions. A view into a replaced tensor becomes the same view into
//! the new tensor, which must then be contiguous in one variable. A value that is no tensor, such as the slots that an
//! optimiser keeps for a tensor, can replace whole tensors only.
//!
//! Invariant: a function that captures nothing that is replaced stays the same value.

use crate::elaborator::{Elaborator, Global};
use crate::value::{Closure, Given, Tensor, Tuple, Value};
use girder_ir::ids::VarId;
use girder_ir::types::ElemType;
use girder_ir::view::View;
use girder_source::{Result, Span};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::ops::Range;
use std::sync::Arc;

/// The tensors of a nested value, and what replaces each.
struct Replacements {
    whole: FxHashMap<View, Value>,
    /// For each variable, the contiguous tensors in it that are replaced by tensors.
    pieces: FxHashMap<VarId, Vec<Piece>>,
    /// The replacements of nested values and functions, by address; `None` where nothing is replaced.
    known: FxHashMap<usize, Option<Value>>,
}

/// A contiguous tensor and the contiguous tensor that replaces it; `None` if the replacement is not contiguous.
struct Piece {
    elements: Range<i64>,
    by: Option<(VarId, i64, ElemType)>,
}

impl Replacements {
    fn new(leaves: &[Value], values: &[Value]) -> Replacements {
        let mut found =
            Replacements { whole: FxHashMap::default(), pieces: FxHashMap::default(), known: FxHashMap::default() };
        for (leaf, value) in leaves.iter().zip(values) {
            let Value::Tensor(leaf) = leaf else { continue };
            if let (Value::Tensor(value), Some((var, elements))) = (value, in_one_piece(leaf))
                && value.view.len() == leaf.view.len()
            {
                let by = in_one_piece(value).map(|(var, elements)| (var, elements.start, value.ty));
                found.pieces.entry(var).or_default().push(Piece { elements, by });
            }
            found.whole.entry(leaf.view.clone()).or_insert_with(|| value.clone());
        }
        found
    }

    /// Returns the replacement of a captured tensor, `Ok(None)` if there is none, or an error if it would not be
    /// contiguous.
    fn of(&self, tensor: &Tensor) -> std::result::Result<Option<Value>, ()> {
        if let Some(value) = self.whole.get(&tensor.view) {
            return Ok(Some(value.clone()));
        }
        let mut view = tensor.view.clone();
        let mut ty = None;
        for part in &mut view.parts {
            let (least, greatest) = part.hull();
            let holds = |p: &&Piece| p.elements.start <= least && greatest < p.elements.end;
            let Some(piece) = self.pieces.get(&part.var).and_then(|all| all.iter().find(holds)) else { continue };
            let (var, first, new) = piece.by.ok_or(())?;
            (part.var, part.offset) = (var, part.offset - piece.elements.start + first);
            ty = Some(new);
        }
        Ok(ty.map(|ty| Value::from(Tensor { view, ty })))
    }
}

/// Returns the variable and the elements of a tensor that is contiguous, in row-major order.
fn in_one_piece(tensor: &Tensor) -> Option<(VarId, Range<i64>)> {
    let of = tensor.view.single()?;
    let mut step = 1;
    for (&len, &stride) in of.shape.iter().zip(&of.strides).rev() {
        if len != 1 && stride != step {
            return None;
        }
        step *= len as i64;
    }
    Some((of.var, of.offset..of.offset + step))
}

impl Elaborator<'_> {
    /// Evaluates `rebuilt(values, like: s)`: the nested value `s`, with its tensors, in the order of `leaves`, replaced
    /// by the values of a list.
    pub(super) fn rebuilt(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [values, like] = self.required("rebuilt", ["values", "like"], given, span)?;
        let at = values.span;
        let values = self.items(values)?;
        let mut leaves = Vec::new();
        self.leaves(&like.value, like.span, &mut leaves)?;
        if values.len() != leaves.len() {
            let message = format!("{} values for a nest of {} tensors", values.len(), leaves.len());
            let help = "`rebuilt` takes one value for each tensor, in the order of `leaves`";
            return Err(self.error_help("elaborate::arguments", at, message, help));
        }
        let mut replacements = Replacements::new(&leaves, &values);
        self.replaced(&like.value, like.span, &mut values.into_iter(), &mut replacements)
    }

    /// Returns a nested value with its tensors replaced by `values`, one for each.
    fn replaced(
        &mut self,
        value: &Value,
        span: Span,
        values: &mut impl Iterator<Item = Value>,
        in_functions: &mut Replacements,
    ) -> Result<Value> {
        self.charge(span)?;
        match value {
            Value::List(list) => {
                self.charge_values(list.len() as u64, span)?;
                let all = list.iter().map(|v| self.replaced(v, span, values, in_functions)).collect::<Result<_>>()?;
                Ok(Value::List(Arc::new(all)))
            }
            Value::Tuple(tuple) => {
                self.charge_values(tuple.values.len() as u64, span)?;
                let all = tuple.values.iter().map(|v| self.replaced(v, span, values, in_functions));
                let values = all.collect::<Result<_>>()?;
                Ok(Value::Tuple(Arc::new(Tuple { names: tuple.names.clone(), values })))
            }
            Value::Tensor(_) => Ok(values.next().unwrap_or(Value::Error)),
            other => Ok(self.substituted(other, span, in_functions)?.unwrap_or_else(|| other.clone())),
        }
    }

    /// Returns the replacement of a value that a function captures, or `None` if nothing in it is replaced.
    fn substituted(&mut self, value: &Value, span: Span, by: &mut Replacements) -> Result<Option<Value>> {
        let address = match value {
            Value::List(list) => Arc::as_ptr(list) as usize,
            Value::Tuple(tuple) => Arc::as_ptr(tuple) as usize,
            Value::Closure(closure) => Arc::as_ptr(closure) as usize,
            Value::Tensor(tensor) => {
                return by.of(tensor).map_err(|()| {
                    let message = "a function of the nest has captured a view of a tensor, and the value that replaces \
                                   the tensor is not in one piece";
                    let help = "make the view inside the function, or `copy` the value";
                    self.error_help("elaborate::arguments", span, message, help)
                });
            }
            _ => return Ok(None),
        };
        if let Some(known) = by.known.get(&address) {
            return Ok(known.clone());
        }
        // A function may mention the nested value that it is in.
        by.known.insert(address, None);
        let found = match value {
            Value::List(list) => {
                self.all_substituted(list.iter(), span, by)?.map(|values| Value::List(Arc::new(values)))
            }
            Value::Tuple(tuple) => self
                .all_substituted(tuple.values.iter(), span, by)?
                .map(|values| Value::Tuple(Arc::new(Tuple { names: tuple.names.clone(), values }))),
            Value::Closure(closure) => {
                let values = self.all_substituted(closure.captured.iter().map(|c| &c.1), span, by)?;
                let shadowing = self.shadowing(closure, span, by)?;
                let changes = values.is_some() || !shadowing.is_empty();
                let old = || closure.captured.iter().map(|c| c.1.clone()).collect();
                let names = closure.captured.iter().map(|c| c.0.clone());
                let captured = names.zip(values.unwrap_or_else(old)).chain(shadowing).collect();
                let (module, expr) = (closure.module, closure.expr);
                changes.then(|| Value::Closure(Arc::new(Closure { module, expr, captured })))
            }
            _ => None,
        };
        by.known.insert(address, found.clone());
        Ok(found)
    }

    /// Returns the names of its module that a function mentions and whose values contain something replaced, with the
    /// new values.
    fn shadowing(&mut self, closure: &Closure, span: Span, by: &mut Replacements) -> Result<Vec<(SmolStr, Value)>> {
        let names = self.closures.names.get(&(closure.module, closure.expr)).cloned();
        let mut found = vec![];
        for name in names.iter().flat_map(|names| names.iter()) {
            let is_own = closure.captured.iter().any(|c| c.0 == *name);
            let Some(Global::Known(value)) = self.scopes.global(closure.module, name).filter(|_| !is_own) else {
                continue;
            };
            let value = value.clone();
            if let Some(new) = self.substituted(&value, span, by)? {
                found.push((name.clone(), new));
            }
        }
        let parameters = &self.function_of(closure)?.params;
        found.retain(|(name, _)| parameters.iter().all(|p| p.name.name != *name));
        Ok(found)
    }

    /// Returns the replacements of captured values, or `None` if nothing in them is replaced.
    fn all_substituted<'v>(
        &mut self,
        values: impl ExactSizeIterator<Item = &'v Value> + Clone,
        span: Span,
        by: &mut Replacements,
    ) -> Result<Option<Vec<Value>>> {
        self.charge_values(values.len() as u64, span)?;
        let found = values.clone().map(|v| self.substituted(v, span, by)).collect::<Result<Vec<Option<Value>>>>()?;
        let changes = found.iter().any(Option::is_some);
        Ok(changes
            .then(|| found.into_iter().zip(values).map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect()))
    }
}
