//! The typed codelet: what one vertex computes, after names, generics and types are resolved and helper functions are
//! inlined.
//!
//! It is a structured tree: statements over scalar locals, local arrays and fields; expressions without side effects
//! (but for checks that may fail). Both the interpreter and the code generator walk it; it is never printed (a stage's
//! text carries the source of the codelet, see [`CodeletItem`](crate::graph::CodeletItem)). What only asks for the
//! parts of a form, whichever it is, uses [`ExprKind::operands`], [`Stmt::blocks`] and their kin.
//!
//! # Note: Order
//! Evaluation is left to right, operands before their operator; statements in order; nothing is contracted or
//! reassociated. The first failing check in this order is the one that is reported. An access checks its bounds after
//! all its operands, a store's value included; `girder_codelet::interpret` decides what is left open here.
//!
//! # Note: Checks
//! Every access, division, shift, assertion, loop and reduction has a [`Site`]. A check that [`Facts`] of the codelet
//! prove for given sizes may be left out by an engine; all others end the run with a diagnostic.
//!
//! [`Facts`]: https://docs.rs/girder-codelet
//!
//! Invariants (checked by `girder_codelet::verify`): operand types agree as the doc of each form says; every
//! local is assigned before it is read on every path; labels are used inside the statement that they label.

mod expr;
mod stmt;
#[cfg(test)]
mod tests;

pub use expr::{BinaryOp, Expr, ExprKind, Index, Operands, UnaryOp};
pub use stmt::{Amp, Binder, Label, Matrix, Reduce, ReduceOp, Stmt, StmtBlock, Storage};

use crate::ids::{ExprId, FieldId, LocalId, SiteId, SizeId};
use crate::types::ElemType;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use girder_source::Span;
use smallvec::SmallVec;
use smol_str::SmolStr;

/// One specialisation of a codelet: all generics are known, sizes are not.
#[derive(Clone, Debug)]
pub struct Codelet {
    /// The name of its item, as vertices write it.
    pub name: SmolStr,
    /// What stands between `<` and `>`, in the order of the item's generics.
    pub args: Vec<GenericArg>,
    /// Runs on every worker of its tile: its meaning is worker 0, 1, … in turn.
    pub multi: bool,
    /// Fields in the order of declaration, `const` ones included.
    pub fields: PrimaryMap<FieldId, FieldDecl>,
    /// Named sizes. A size is bound by the first dimension that names it.
    pub sizes: PrimaryMap<SizeId, SmolStr>,
    /// Scalars and arrays of the body.
    pub locals: PrimaryMap<LocalId, Local>,
    /// Expressions of the body.
    pub exprs: PrimaryMap<ExprId, Expr>,
    /// Where checks may fail.
    pub sites: PrimaryMap<SiteId, Site>,
    /// What it does.
    pub body: StmtBlock,
    /// `#[pipelined]`: the tile cost is that of a hand-written inner loop.
    pub pipelined: bool,
    /// `#[pipelined(apart)]`: and asks that what the loop touches lies in different memory elements.
    pub separate_elements: bool,
    /// `#[cycles(expr)]`: tile cycles of one vertex as an integer expression over sizes and constants.
    pub cycles: Option<ExprId>,
    /// Locals that hold what an elementary function of the prelude gives for an expression; the statements before
    /// compute it. What a tile has an instruction for costs that instruction.
    pub elementary: SecondaryMap<LocalId, Option<(Elementary, ExprId)>>,
    /// Where it is declared.
    pub span: Span,
}

impl Codelet {
    /// Without fields and with nothing to do.
    pub fn empty(name: impl Into<SmolStr>, span: Span) -> Codelet {
        Codelet {
            name: name.into(),
            args: Vec::new(),
            multi: false,
            fields: PrimaryMap::new(),
            sizes: PrimaryMap::new(),
            locals: PrimaryMap::new(),
            exprs: PrimaryMap::new(),
            sites: PrimaryMap::new(),
            body: Vec::new(),
            pipelined: false,
            separate_elements: false,
            cycles: None,
            elementary: SecondaryMap::new(),
            span,
        }
    }

    /// Fields that are not `const`, in order.
    pub fn edges(&self) -> impl Iterator<Item = (FieldId, &FieldDecl)> {
        self.fields.iter().filter(|(_, f)| f.dir != Dir::Const)
    }
}

/// Functions of the prelude for which tiles have instructions, of `f32`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Elementary {
    Exp,
    Log,
    Tanh,
    Sigmoid,
    Rsqrt,
    Sin,
    Cos,
}

impl Elementary {
    /// Returns the function of a name of the prelude.
    pub fn from_name(name: &str) -> Option<Elementary> {
        Some(match name {
            "exp" => Elementary::Exp,
            "log" => Elementary::Log,
            "tanh" => Elementary::Tanh,
            "sigmoid" => Elementary::Sigmoid,
            "rsqrt" => Elementary::Rsqrt,
            "sin" => Elementary::Sin,
            "cos" => Elementary::Cos,
            _ => return None,
        })
    }
}

/// An argument between `<` and `>`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GenericArg {
    /// `T: float`
    Type(ElemType),
    /// `k: int`
    Int(i64),
}

/// What a codelet may do with a field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dir {
    /// Read only.
    In,
    /// Written; read as `inout` where some path may leave an element unwritten.
    Out,
    /// Read and written.
    InOut,
    /// A scalar known when the graph is built.
    Const,
}

/// A field as the codelet declares it.
#[derive(Clone, Debug)]
pub struct FieldDecl {
    /// Its name.
    pub name: SmolStr,
    /// Direction.
    pub dir: Dir,
    /// Element type.
    pub ty: ElemType,
    /// One per dimension; a scalar has none. `const` fields are scalars.
    pub dims: SmallVec<[DimDecl; 3]>,
    /// What the address of its first element is wished to be a multiple of: a power of two, 1 if it may be any.
    pub align: u32,
    /// Where it is declared.
    pub span: Span,
}

/// One dimension of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DimDecl {
    /// Binds the size, or must equal what another dimension bound it to.
    Size(SizeId),
    /// Must equal this number.
    Fixed(u64),
    /// Must equal this `i64` expression over sizes and constants.
    Expr(ExprId),
}

/// A scalar or array of the body.
#[derive(Clone, Debug)]
pub struct Local {
    /// Its name in the source; may be empty for what the compiler made.
    pub name: SmolStr,
    /// Type of the scalar, or of each element.
    pub ty: ElemType,
    /// Dimensions of an array; `None` for a scalar. At least one dimension if `Some`; elements are row-major.
    pub array: Option<SmallVec<[u32; 2]>>,
}
/// What can go wrong at a site.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Check {
    /// Some index is negative or not less than its dimension.
    Index,
    /// The divisor is zero.
    Division,
    /// The width of a shift is not in the type's range.
    Shift,
    /// An assertion does not hold.
    Assert,
    /// A loop turns too often, or all loops together do.
    Iterations,
    /// `argmin` or `argmax` of nothing.
    Empty,
    /// The operands of `amp` do not fit.
    Shape,
}

/// A place where a check may fail.
#[derive(Clone, Debug)]
pub struct Site {
    /// Which check.
    pub check: Check,
    /// Where it stands.
    pub span: Span,
    /// The calls of codelet functions around it, innermost first.
    pub calls: SmallVec<[Span; 1]>,
    /// What the user wrote as message, for `assert(cond, "…")`.
    pub message: Option<SmolStr>,
}
