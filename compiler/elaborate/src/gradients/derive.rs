//! Derivatives of functions of numbers, as functions of numbers: a codelet function becomes a [`Formula`]
//! ([`flatten`]), whose derivative is another formula ([`reverse`]), which becomes the text of a codelet ([`text`]).
//!
//! A formula is a list of operations in single assignment. All arms of an `if` or a `switch` are in it, and `select`
//! chooses; what follows a branch that may have returned is an arm too. An adjoint that leaves an arm is masked by the
//! arm's condition, so that an infinite derivative in an arm that does not run is never multiplied by zero.
//!
//! A function that does not become a formula, such as one with a loop, has a derivative in forward mode ([`tangents`]).
//!
//! Invariant: an operation refers to earlier operations only.

pub mod flatten;
pub mod reverse;
pub mod text;
pub mod tangents;

use girder_ir::types::ElemType;
use girder_syntax::ast::{BinaryOp, UnaryOp};
use girder_typing::ModuleRef;
use smallvec::SmallVec;
use smol_str::SmolStr;

/// An operation of a formula.
pub type Id = usize;

/// A function of numbers with several results.
#[derive(Clone, Debug, Default)]
pub struct Formula {
    /// Its name, for the codelet and for messages.
    pub name: SmolStr,
    /// The types of its operands.
    pub inputs: Vec<ElemType>,
    /// The operations.
    pub code: Vec<Op>,
    /// The arms of conditions; the first holds always.
    pub arms: Vec<Arm>,
    /// The results.
    pub outputs: Vec<Id>,
    /// The original numbers of the operands that [`Formula::compact`] has kept.
    pub kept: Vec<usize>,
}

/// An arm of a condition.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Arm {
    /// The arm around it.
    pub outer: usize,
    /// The condition.
    pub cond: Id,
    /// Whether the arm runs if the condition does not hold.
    pub negated: bool,
}

/// An operation, its operands, its type (none for a literal) and its arm.
#[derive(Clone, PartialEq, Debug)]
pub struct Op {
    /// The operation.
    pub kind: OpKind,
    /// The operands.
    pub args: SmallVec<[Id; 3]>,
    /// The type of the result; `None` for a literal, which takes the type of its context.
    pub ty: Option<ElemType>,
    /// The arm in which it stands.
    pub arm: usize,
}

/// The kinds of operations.
#[derive(Clone, PartialEq, Debug)]
pub enum OpKind {
    /// An operand of the formula.
    Input(usize),
    /// `42`, as the bits of an `i64`
    Int(i64),
    /// `1.5`, as bits
    Float(u64),
    /// `true`
    Bool(bool),
    /// A variable whose first value is a literal, by a number of its own: its uses decide its type.
    Open(usize),
    /// `a + b`
    Binary(BinaryOp),
    /// `-a`
    Unary(UnaryOp),
    /// A built-in function of codelets.
    Builtin(SmolStr),
    /// A codelet function that has a rule, by item and qualified name.
    Call(ModuleRef, usize, SmolStr),
    /// A member of the tuple that such a function gives, by its number.
    Part(ModuleRef, usize, SmolStr, usize, usize),
    /// `T(a)`
    Convert(ElemType),
    /// `T.bits(a)`
    Bits(ElemType),
    /// `T.inf` and other members of a type.
    Member(ElemType, SmolStr),
}

impl Formula {
    /// Adds an operation, unless the same one is already known in this arm or around it. A function of literals is
    /// added again, since its uses decide its type.
    pub fn add(&mut self, kind: OpKind, args: &[Id], ty: Option<ElemType>, arm: usize) -> Id {
        let op = Op { kind, args: SmallVec::from_slice(args), ty, arm };
        let is_open = ty.is_none() && matches!(op.kind, OpKind::Builtin(_));
        let same = |o: &Op| o.kind == op.kind && o.args == op.args && o.ty == op.ty && self.is_around(o.arm, arm);
        if !is_open && let Some(known) = self.code.iter().position(same) {
            return known;
        }
        self.code.push(op);
        self.code.len() - 1
    }

    /// Returns whether an arm is another, or around it.
    pub fn is_around(&self, outer: usize, mut inner: usize) -> bool {
        loop {
            if inner == outer {
                return true;
            }
            if inner == 0 {
                return false;
            }
            inner = self.arms[inner].outer;
        }
    }

    /// Adds a literal float.
    pub fn float(&mut self, x: f64) -> Id {
        self.add(OpKind::Float(x.to_bits()), &[], None, 0)
    }

    /// Returns the value of a literal.
    pub fn literal(&self, id: Id) -> Option<f64> {
        match self.code[id].kind {
            OpKind::Float(bits) => Some(f64::from_bits(bits)),
            OpKind::Int(i) => Some(i as f64),
            _ => None,
        }
    }

    /// Returns for each operation whether some result needs it.
    pub fn live(&self) -> Vec<bool> {
        let mut live = vec![false; self.code.len()];
        self.outputs.iter().for_each(|&o| live[o] = true);
        for k in (0..self.code.len()).rev() {
            if live[k] {
                self.code[k].args.iter().for_each(|&a| live[a] = true);
            }
        }
        live
    }

    /// Returns the formula with only the operands that some result needs.
    pub fn compact(&self) -> Formula {
        let mut live = self.live();
        // A live operation of an arm needs the arm's condition.
        let mut again = true;
        while again {
            again = false;
            for k in (0..self.code.len()).rev().filter(|&k| live[k]).collect::<Vec<_>>() {
                let mut arm = self.code[k].arm;
                let mut needs: Vec<Id> = self.code[k].args.to_vec();
                while arm != 0 {
                    needs.push(self.arms[arm].cond);
                    arm = self.arms[arm].outer;
                }
                for id in needs {
                    again |= !live[id];
                    live[id] = true;
                }
            }
        }
        let (mut f, mut moved) = (Formula { name: self.name.clone(), ..Formula::default() }, vec![0; live.len()]);
        for (k, op) in self.code.iter().enumerate().filter(|(k, _)| live[*k]) {
            let mut op = op.clone();
            if let OpKind::Input(old) = &mut op.kind {
                f.kept.push(*old);
                f.inputs.push(self.inputs[*old]);
                *old = f.inputs.len() - 1;
            }
            op.args.iter_mut().for_each(|a| *a = moved[*a]);
            moved[k] = f.code.len();
            f.code.push(op);
        }
        f.arms = self.arms.iter().map(|a| Arm { cond: moved.get(a.cond).copied().unwrap_or(0), ..*a }).collect();
        f.outputs = self.outputs.iter().map(|&o| moved[o]).collect();
        f
    }

    /// Returns the operations that are the members of the same call, in one arm, as a member, each by its number.
    pub fn parts(&self, id: Id) -> Vec<Option<Id>> {
        let op = &self.code[id];
        let OpKind::Part(module, item, _, _, count) = op.kind else { return vec![] };
        let mut parts = vec![None; count];
        for (k, o) in self.code.iter().enumerate() {
            if let OpKind::Part(m, i, _, part, _) = o.kind
                && (m, i) == (module, item)
                && (&o.args, o.arm) == (&op.args, op.arm)
            {
                parts[part].get_or_insert(k);
            }
        }
        parts
    }
}
