//! `difference`: where two nested values differ in more than their tensors.
//!
//! Tensors of the values, and params and states that their functions have captured, count by shape and type. Another
//! tensor that a function has captured is the same if it is the same part of the same tensor of the value, or the same
//! elements of another variable. So one of two values without a difference is what `rebuilt` makes of the other.
//!
//! Invariant: the first difference in the order of the values is reported.

use crate::elaborator::Elaborator;
use crate::value::{Closure, Given, Tensor, Value};
use girder_ir::ids::VarId;
use girder_ir::view::{View, ViewPart};
use girder_source::{Result, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;
use std::sync::Arc;

/// The tensors of a nested value, by number.
#[derive(Default)]
struct Leaves {
    whole: FxHashMap<View, usize>,
    /// For each variable, the first and the last element of each tensor in it, and its number.
    pieces: FxHashMap<VarId, Vec<(i64, i64, usize)>>,
}

impl Leaves {
    fn new(leaves: &[Value]) -> Leaves {
        let mut found = Leaves::default();
        for (k, leaf) in leaves.iter().enumerate() {
            let Value::Tensor(leaf) = leaf else { continue };
            found.whole.entry(leaf.view.clone()).or_insert(k);
            if let [part] = &leaf.view.parts[..] {
                let (least, greatest) = part.hull();
                found.pieces.entry(part.var).or_default().push((least, greatest, k));
            }
        }
        found
    }

    /// Returns the number of the tensor that holds a part, and the first element of the part there.
    fn of(&self, part: &ViewPart) -> Option<(usize, i64)> {
        let (least, greatest) = part.hull();
        let holds = |p: &&(i64, i64, usize)| p.0 <= least && greatest <= p.1;
        self.pieces.get(&part.var)?.iter().find(holds).map(|p| (p.2, part.offset - p.0))
    }
}

/// Returns whether tensors that functions have captured are the same.
fn is_same(a: (&Tensor, &Leaves), b: (&Tensor, &Leaves)) -> bool {
    let (of_a, of_b) = (a.1.whole.get(&a.0.view), b.1.whole.get(&b.0.view));
    if of_a.is_some() || of_b.is_some() {
        return of_a == of_b;
    }
    let (x, y) = (&a.0.view, &b.0.view);
    (&x.digits, &x.axes, x.parts.len()) == (&y.digits, &y.axes, y.parts.len())
        && x.parts.iter().zip(&y.parts).all(|(p, q)| {
            let is_same_place = match (a.1.of(p), b.1.of(q)) {
                (None, None) => (p.var, p.offset) == (q.var, q.offset),
                (of_p, of_q) => of_p == of_q,
            };
            is_same_place && (&p.lo, &p.len, &p.stride) == (&q.lo, &q.len, &q.stride)
        })
}

/// Two values that are compared, and where they are.
struct Pair {
    values: [Value; 2],
    /// The number of the step that leads to them.
    step: usize,
    is_captured: bool,
}

/// The steps from the values to their parts, each with the one before it.
struct Steps(Vec<(usize, String)>);

impl Steps {
    fn add(&mut self, before: usize, step: String) -> usize {
        self.0.push((before, step));
        self.0.len() - 1
    }

    /// Returns the path that ends with step `k`.
    fn path(&self, mut k: usize) -> String {
        let mut steps = vec![];
        while k > 0 {
            steps.push(self.0[k].1.as_str());
            k = self.0[k].0;
        }
        steps.reverse();
        steps.concat()
    }
}

impl Elaborator<'_> {
    /// Evaluates `difference(a, b)`: the path of the first static value, function, shape or type that differs in two
    /// nested values, or `()`.
    pub(super) fn difference(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [a, b] = self.required("difference", ["a", "b"], given, span)?;
        let of_a = self.every_leaf(&a.value, span)?;
        let of_b = self.every_leaf(&b.value, span)?;
        let mut steps = Steps(vec![(0, String::new())]);
        let mut seen: FxHashSet<(usize, usize)> = FxHashSet::default();
        let mut left = vec![Pair { values: [a.value, b.value], step: 0, is_captured: false }];
        while let Some(Pair { values: [a, b], step, is_captured }) = left.pop() {
            self.charge(span)?;
            let is_equal = match (&a, &b) {
                (Value::Tensor(x), Value::Tensor(y)) if is_captured => x.ty == y.ty && is_same((x, &of_a), (y, &of_b)),
                (Value::Tensor(x), Value::Tensor(y)) => x.ty == y.ty && x.view.shape() == y.view.shape(),
                _ => has_equal_head(&a, &b),
            };
            if !is_equal {
                return Ok(Value::Str((steps.path(step) + &inner(&a, &b)).trim_start_matches('.').into()));
            }
            let is_captured = is_captured || matches!(a, Value::Closure(_));
            if is_captured && !address(&a).zip(address(&b)).is_none_or(|pair| seen.insert(pair)) {
                continue;
            }
            for ((name, x), (_, y)) in parts(&a).into_iter().zip(parts(&b)).rev() {
                left.push(Pair { values: [x.clone(), y.clone()], step: steps.add(step, name), is_captured });
            }
        }
        Ok(Value::Unit)
    }

    /// Returns the tensors of a nested value, and the params and states that its functions have captured.
    fn every_leaf(&mut self, value: &Value, span: Span) -> Result<Leaves> {
        let mut all = vec![];
        self.leaves(value, span, &mut all)?;
        self.captured_beside(value, span, &mut all)?;
        Ok(Leaves::new(&all))
    }
}

/// Returns whether two values are equal, up to the values in them.
fn has_equal_head(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Unit, Value::Unit) | (Value::Error, _) | (_, Value::Error) => true,
        (Value::Int(x), Value::Int(y)) => x == y,
        (Value::Float(x), Value::Float(y)) => x.to_bits() == y.to_bits(),
        (Value::Bool(x), Value::Bool(y)) => x == y,
        (Value::Str(x), Value::Str(y)) => x == y,
        (Value::Type(x), Value::Type(y)) => x == y,
        (Value::Range(x), Value::Range(y)) => x == y,
        (Value::List(x), Value::List(y)) => x.len() == y.len(),
        (Value::Tuple(x), Value::Tuple(y)) => x.names == y.names,
        (Value::Array(x), Value::Array(y)) => x == y,
        (Value::Drawn(x), Value::Drawn(y)) => x == y,
        (Value::Place(x), Value::Place(y)) => x == y,
        (Value::Fn(m, x), Value::Fn(n, y)) => (m, x) == (n, y),
        (Value::Closure(x), Value::Closure(y)) => {
            let names = |c: &Closure| c.captured.iter().map(|c| c.0.clone()).collect::<Vec<_>>();
            (x.module, x.expr) == (y.module, y.expr) && names(x) == names(y)
        }
        (Value::Builtin(x), Value::Builtin(y)) => x == y,
        (Value::Module(x), Value::Module(y)) => x == y,
        (Value::Stream(x), Value::Stream(y)) => x == y,
        (Value::Row(x, k), Value::Row(y, l)) => x == y && k.view == l.view,
        (Value::RunTimeRange(x), Value::RunTimeRange(y)) => x.count == y.count && x.start.view == y.start.view,
        _ => false,
    }
}

/// Returns the step to what differs at once in two values: the length of lists, or the first name of tuples.
fn inner(a: &Value, b: &Value) -> String {
    match (a, b) {
        (Value::List(_), Value::List(_)) => ".len".into(),
        (Value::Tuple(x), Value::Tuple(y)) => {
            let same = x.names.iter().zip(&y.names).take_while(|(p, q)| p == q).count();
            let of = if same < x.names.len() { a } else { b };
            parts(of).into_iter().nth(same).map_or_else(String::new, |(step, _)| step)
        }
        _ => String::new(),
    }
}

/// Returns the values in a value, with the step to each.
pub(super) fn parts(value: &Value) -> Vec<(String, &Value)> {
    match value {
        Value::List(list) => list.iter().enumerate().map(|(k, v)| (format!("[{k}]"), v)).collect(),
        Value::Tuple(tuple) => {
            let step =
                |(k, name): (usize, &SmolStr)| if name.is_empty() { format!("[{k}]") } else { format!(".{name}") };
            tuple.names.iter().enumerate().map(step).zip(&tuple.values).collect()
        }
        Value::Closure(closure) => closure.captured.iter().map(|(name, v)| (format!(".{name}"), v)).collect(),
        _ => vec![],
    }
}

/// Returns the address of a value that has others in it.
fn address(value: &Value) -> Option<usize> {
    match value {
        Value::List(list) => Some(Arc::as_ptr(list) as usize),
        Value::Tuple(tuple) => Some(Arc::as_ptr(tuple) as usize),
        Value::Closure(closure) => Some(Arc::as_ptr(closure) as usize),
        _ => None,
    }
}
