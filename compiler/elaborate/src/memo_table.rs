//! The memo table: the values of calls whose arguments and result are static. A function that asks the same question
//! many times, such as how to cut a product of certain sizes, computes the answer once.
//!
//! Invariant: a remembered call has the value that evaluating it again would have. It emitted no step, made no entity,
//! and read nothing but its arguments, the size of the place, and items of modules, which never change.

use crate::references::ItemId;
use crate::value::{Closure, Given, Place, Value};
use girder_ir::types::ElemType;
use girder_syntax::ast::ExprId;
use girder_typing::ModuleRef;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::sync::Arc;

/// Maximal number of remembered calls of one function: a search that calls a function many thousand times leaves room
/// for the calls of others, such as that of the search itself.
const CALLS: usize = 1 << 12;
/// Maximal number of remembered calls.
const ALL_CALLS: usize = 1 << 16;
/// Maximal number of values, at every depth, in the arguments or the result of a remembered call.
const VALUES: usize = 256;

/// A part of a static value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Atom {
    Unit,
    Int(i64),
    Float(u64),
    Bool(bool),
    Str(SmolStr),
    Type(ElemType),
    Range(i64, u64, i64),
    /// The number of the values that follow.
    List(usize),
    /// The names of the values that follow.
    Tuple(Vec<SmolStr>),
    Place(u32, u32, Option<u32>),
    Fn(ItemId),
    Builtin(&'static str),
    /// The names of the captured values that follow.
    Closure((ModuleRef, ExprId), Vec<SmolStr>),
    /// The name of the argument that follows.
    Name(SmolStr),
}

/// What is called.
#[derive(Clone, Copy)]
pub enum Callee<'c> {
    /// An item of a module.
    Item(ItemId),
    /// A closure.
    Closure(&'c Arc<Closure>),
}

/// A function, the place of the call, and its arguments.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StaticCall {
    /// The item; `None` for a closure, which then is the first argument.
    of: Option<ItemId>,
    arguments: Vec<Atom>,
}

impl StaticCall {
    /// Returns the call if all arguments are static.
    pub fn new(callee: Callee<'_>, place: Place, given: &[Given]) -> Option<StaticCall> {
        let mut arguments = vec![];
        let of = match callee {
            Callee::Item(id) => Some(id),
            Callee::Closure(closure) => {
                atoms(&Value::Closure(closure.clone()), &mut arguments)?;
                None
            }
        };
        atoms(&Value::Place(place), &mut arguments)?;
        for g in given {
            arguments.push(Atom::Name(g.name.clone()));
            atoms(&g.value, &mut arguments)?;
        }
        Some(StaticCall { of, arguments })
    }
}

/// The table of remembered calls.
#[derive(Debug, Default)]
pub struct MemoTable {
    values: FxHashMap<StaticCall, Value>,
    /// The number of remembered calls of each function, and of all closures.
    counts: FxHashMap<Option<ItemId>, usize>,
    /// How often a function has read the state of the graph, or the position of its place.
    pub reads: u64,
}

impl MemoTable {
    /// Returns the value of a call that was made before.
    pub fn value(&self, call: &StaticCall) -> Option<Value> {
        self.values.get(call).cloned()
    }

    /// Remembers the value of a call, if it is static and there is room.
    pub fn remember(&mut self, call: StaticCall, value: &Value) {
        let count = self.counts.entry(call.of).or_default();
        if *count < CALLS && self.values.len() < ALL_CALLS && atoms(value, &mut Vec::new()).is_some() {
            *count += 1;
            self.values.insert(call, value.clone());
        }
    }
}

/// Adds the parts of a value; `None` if it is not static, or too long.
fn atoms(value: &Value, out: &mut Vec<Atom>) -> Option<()> {
    if out.len() > VALUES {
        return None;
    }
    out.push(match value {
        Value::Unit => Atom::Unit,
        Value::Int(i) => Atom::Int(*i),
        Value::Float(x) => Atom::Float(x.to_bits()),
        Value::Bool(b) => Atom::Bool(*b),
        Value::Str(s) => Atom::Str(s.clone()),
        Value::Type(t) => Atom::Type(*t),
        Value::Range(r) => Atom::Range(r.start, r.count, r.step),
        Value::Place(p) => Atom::Place(p.first, p.count, p.grain),
        Value::Fn(module, item) => Atom::Fn((*module, *item)),
        Value::Builtin(name) => Atom::Builtin(name),
        Value::Closure(c) => {
            out.push(Atom::Closure((c.module, c.expr), c.captured.iter().map(|(name, _)| name.clone()).collect()));
            return c.captured.iter().try_for_each(|(_, v)| atoms(v, out));
        }
        Value::List(list) => {
            out.push(Atom::List(list.len()));
            return list.iter().try_for_each(|v| atoms(v, out));
        }
        Value::Tuple(tuple) => {
            out.push(Atom::Tuple(tuple.names.clone()));
            return tuple.values.iter().try_for_each(|v| atoms(v, out));
        }
        Value::Tensor(_)
        | Value::RunTimeRange(_)
        | Value::Array(_)
        | Value::Drawn(_)
        | Value::Literal(_)
        | Value::Module(_)
        | Value::Stream(_)
        | Value::Row(..)
        | Value::Error => return None,
    });
    Some(())
}
