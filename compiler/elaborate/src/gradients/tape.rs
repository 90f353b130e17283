//! The tape: what is recorded of the steps of a body, in their order.
//!
//! Invariant: an entry describes what its steps compute, wherever they were moved: if an element-wise step is made to
//! write another variable, its entry names that variable.

use super::formulas::Derived;
use super::order::Moment;
use super::rule_table::RuleRef;
use crate::pipelines::stages::StageNumber;
use crate::value::{Place, Tensor, Tuple, Value};
use girder_ir::ids::{StreamId, VarId};
use girder_ir::types::ElemType;
use girder_ir::view::View;
use girder_source::{OriginId, Span};
use girder_typing::ModuleRef;
use rustc_hash::FxHashSet;
use smol_str::SmolStr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// The entries of a body.
pub type Tape = Vec<Rc<Entry>>;

/// A recorded operation.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The operation.
    pub kind: EntryKind,
    /// The moments of its steps and writes.
    pub during: Range<Moment>,
    /// Its statement or expression.
    pub span: Span,
    /// The call around it.
    pub origin: Option<OriginId>,
    /// The names of the calls around it.
    pub path: Rc<[SmolStr]>,
    /// The places around it.
    pub places: Rc<[Place]>,
    /// The stage of the pipeline around.
    pub stage: Option<StageNumber>,
}

/// The recorded operations.
#[derive(Clone, Debug)]
pub enum EntryKind {
    /// A function of numbers, applied element by element.
    Each {
        /// The function.
        function: EachOf,
        /// Tensors as they were before broadcasting, and static numbers, with their element types.
        operands: Vec<(Value, ElemType)>,
        /// The results.
        outs: Vec<Tensor>,
    },
    /// A call of a function that has a rule.
    Rule {
        /// The rule.
        rule: RuleRef,
        /// Parameters, sizes and generics.
        bound: Vec<(SmolStr, Value)>,
        /// Older float variables that its steps read and that are in no argument.
        reads: Vec<VarId>,
        /// The result.
        out: Value,
    },
    /// The elements of one view become those of another.
    Write {
        /// The elements written.
        dst: View,
        /// The elements read, broadcast to the same shape.
        src: Tensor,
    },
    /// Elements become a number, or what the host sends: no gradient passes.
    Fill {
        /// The elements written.
        dst: View,
        /// The stream from which they come.
        stream: Option<StreamId>,
    },
    /// Rows at an index known only at run time are read or written.
    Rows {
        /// Whether they are written.
        put: bool,
        /// The tensor, whose first axis is indexed.
        x: Tensor,
        /// The index of the first row.
        at: Tensor,
        /// The number of rows; `None` for one row, without an axis of its own.
        count: Option<u64>,
        /// The rows read, or what is written.
        value: Tensor,
    },
    /// Rows are added to the rows of a table that an index tensor names.
    ScatterAdd {
        /// The table.
        x: Tensor,
        /// The numbers of its rows.
        index: Tensor,
        /// What is added.
        value: Tensor,
    },
    /// Steps without a derivative.
    Opaque {
        /// What they are.
        what: What,
        /// Variables read.
        reads: Vec<VarId>,
        /// Variables written.
        writes: Vec<VarId>,
    },
    /// Arms of which one runs.
    Branch {
        /// What selects the arm.
        on: Tensor,
        /// The keys of each arm but the last, or nothing for an `if`.
        keys: Vec<Vec<(i64, i64)>>,
        /// The arms.
        arms: Vec<Rc<Tape>>,
    },
    /// A loop with a static count.
    Repeat {
        /// The number of iterations.
        count: u64,
        /// The index, its first value and its step.
        index: Option<(VarId, i32, i32)>,
        /// One iteration.
        body: Rc<Tape>,
        /// Its attributes.
        attributes: LoopAttributes,
    },
    /// Bodies that do not depend on one another.
    Par(Vec<Rc<Tape>>),
    /// `#[recompute] { … }`: entries whose values are computed again.
    Segment(Rc<Tape>),
}

/// How the reverse of a loop gets the values that it needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoopAttributes {
    /// `#[recompute]`: most are computed again.
    pub recompute: bool,
    /// `#[offload]`: values that are kept are in remote buffers.
    pub offload: bool,
}

/// Steps without a derivative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A compute set.
    Set,
    /// `call`
    Call,
    /// `while`
    While,
    /// The reverse of a loop.
    ReverseLoop,
    /// A pipeline.
    Pipeline,
    /// A copy between replicas.
    Replicas,
}

impl What {
    /// The refusal of a compute set that updates a param, as a step of an optimiser does.
    pub const UPDATE: (&str, &str, &str) = (
        "grad::no_rule",
        "a compute set that updates a param",
        "to take the param as a constant, compute the loss from a copy, `let y = copy(x);`, and take the gradient by \
         the copy; for a gradient through the update, write it with operators, `w <- w - rate * g`",
    );

    /// Returns the code of the diagnostic that refuses a gradient through such a step, the step's name, and the help.
    pub fn refusal(self) -> (&'static str, &'static str, &'static str) {
        match self {
            What::Set => (
                "grad::no_rule",
                "a compute set",
                "put it into a function with a rule, `grad f(x; y; dy) { return (x: …); }`, or write `stopped(…)`",
            ),
            What::Call => {
                ("grad::call", "`call` of a program", "make it a function, whose steps are then part of this program")
            }
            What::While => (
                "grad::while",
                "`while`",
                "its number of iterations is not known: use `repeat` with a static count, or `stopped(…)`",
            ),
            What::ReverseLoop => (
                "grad::no_rule",
                "the gradient of a `repeat`",
                "a second derivative through a run-time loop is not supported: use a static `for`",
            ),
            What::Replicas => (
                "grad::no_rule",
                "a copy between replicas",
                "use a function of `collectives`, or put it into a function with a rule, \
                 `grad f(x; y; dy) { return (x: …); }`",
            ),
            What::Pipeline => (
                "grad::pipeline",
                "a `pipeline`",
                "take the gradient inside it: `(loss, grad(loss, wrt: …))` as its value, summed over the micro-batches",
            ),
        }
    }
}

/// A function of numbers.
#[derive(Clone, Debug)]
pub enum EachOf {
    /// A codelet function.
    Fn(ModuleRef, usize),
    /// A conversion.
    Convert,
    /// A derivative that was made here.
    Derived(Derived),
}

/// Applies `f` to every tensor in a value.
pub fn map_tensors(value: &mut Value, f: &mut dyn FnMut(&mut Tensor)) {
    match value {
        Value::Tensor(t) => f(Arc::make_mut(t)),
        Value::List(l) => Arc::make_mut(l).iter_mut().for_each(|v| map_tensors(v, f)),
        Value::Tuple(t) => {
            let Tuple { values, .. } = Arc::make_mut(t);
            values.iter_mut().for_each(|v| map_tensors(v, f));
        }
        _ => {}
    }
}

/// Calls `f` with every tensor in a value.
pub fn each_tensor(value: &Value, f: &mut dyn FnMut(&Tensor)) {
    match value {
        Value::Tensor(t) => f(t),
        Value::List(l) => l.iter().for_each(|v| each_tensor(v, f)),
        Value::Tuple(t) => t.values.iter().for_each(|v| each_tensor(v, f)),
        _ => {}
    }
}

impl Entry {
    /// Calls `f` with every view that is read and may be differentiated.
    pub fn operands(&self, f: &mut dyn FnMut(&View)) {
        match &self.kind {
            EntryKind::Each { operands, .. } => {
                operands.iter().for_each(|(v, _)| each_tensor(v, &mut |t| f(&t.view)));
            }
            EntryKind::Rule { bound, .. } => bound.iter().for_each(|(_, v)| each_tensor(v, &mut |t| f(&t.view))),
            EntryKind::Write { src, .. } => f(&src.view),
            EntryKind::Rows { put: true, value, .. } | EntryKind::ScatterAdd { value, .. } => f(&value.view),
            EntryKind::Rows { put: false, x, .. } => f(&x.view),
            _ => {}
        }
    }

    /// Calls `f` with every view that is written.
    pub fn results(&self, f: &mut dyn FnMut(&View)) {
        match &self.kind {
            EntryKind::Each { outs, .. } => outs.iter().for_each(|t| f(&t.view)),
            EntryKind::Rule { out, .. } => each_tensor(out, &mut |t| f(&t.view)),
            EntryKind::Write { dst, .. } | EntryKind::Fill { dst, .. } => f(dst),
            EntryKind::Rows { put: true, x, .. } | EntryKind::ScatterAdd { x, .. } => f(&x.view),
            EntryKind::Rows { put: false, value, .. } => f(&value.view),
            _ => {}
        }
    }

    /// Returns the bodies inside it.
    pub fn bodies(&self) -> &[Rc<Tape>] {
        match &self.kind {
            EntryKind::Branch { arms, .. } => arms,
            EntryKind::Par(arms) => arms,
            EntryKind::Repeat { body, .. } | EntryKind::Segment(body) => std::slice::from_ref(body),
            _ => &[],
        }
    }
}

/// Calls `f` with every variable that the entries of a tape write.
pub fn each_write(tape: &Tape, f: &mut dyn FnMut(VarId)) {
    for e in tape {
        e.results(&mut |view| view.parts.iter().for_each(|p| f(p.var)));
        if let EntryKind::Opaque { writes, .. } = &e.kind {
            writes.iter().for_each(|&v| f(v));
        }
        e.bodies().iter().for_each(|t| each_write(t, f));
    }
}

/// Returns a tape without the entries that write some variables. Loops and branches that do stay.
pub fn without_writes(tape: &Tape, of: &FxHashSet<VarId>) -> Tape {
    let kept = |e: &Rc<Entry>| match &e.kind {
        EntryKind::Segment(inner) => {
            let kind = EntryKind::Segment(Rc::new(without_writes(inner, of)));
            Some(Rc::new(Entry { kind, ..Entry::clone(e) }))
        }
        _ => {
            let mut writes = false;
            each_write(&vec![e.clone()], &mut |v| writes |= of.contains(&v));
            (!writes || !e.bodies().is_empty()).then(|| e.clone())
        }
    };
    tape.iter().filter_map(kept).collect()
}

/// Calls `f` with every variable that the entries of a tape read or write.
pub fn each_touched(tape: &Tape, f: &mut dyn FnMut(VarId)) {
    for e in tape {
        e.results(&mut |view| view.parts.iter().for_each(|p| f(p.var)));
        e.operands(&mut |view| view.parts.iter().for_each(|p| f(p.var)));
        if let EntryKind::Opaque { reads, writes, .. } = &e.kind {
            reads.iter().chain(writes).for_each(|&v| f(v));
        }
        e.bodies().iter().for_each(|t| each_touched(t, f));
    }
}
