//! The typed codelet: the computation of one vertex, after names, generics and types are resolved and helper functions
//! are inlined.
//!
//! It is a structured tree: statements over scalar locals, local arrays and fields; expressions without side effects
//! except checks that may fail. Both the interpreter and the code generator walk it. The text of a
//! stage carries the source of the codelet, see [`CodeletItem`](crate::graph::CodeletItem); only codelets that a pass
//! has made are printed from this form. Code that treats all forms alike uses generic accessors such as
//! [`ExprKind::operands`] and [`Stmt::blocks`].
//!
//! # Note: Order
//! Evaluation is left to right, operands before their operator, and statements in order; nothing is contracted or
//! reassociated. The first failing check in this order is reported. An access checks its bounds after all its operands,
//! including a store's value; `girder_codelet::interpret` decides what this note leaves open.
//!
//! # Note: Checks
//! Every access, division, shift, assertion, loop and reduction has a [`Site`]. An engine may leave out a check that
//! the [`Facts`] of the codelet prove for given sizes; any other failing check ends the run with a diagnostic.
//!
//! [`Facts`]: https://docs.rs/girder-codelet
//!
//! Invariants (checked by `girder_codelet::verify`): operand types agree as documented at each form; every local is
//! assigned before it is read on every path; labels are used inside the statement that they label.

mod expr;
mod stmt;
#[cfg(test)]
mod tests;

pub use expr::{BinaryOp, Expr, ExprKind, Index, Operands, UnaryOp};
pub use stmt::{Amp, Binder, Label, Matrix, Reduce, ReduceOp, RowAxis, Stmt, StmtBlock, Storage};

use crate::ids::{ExprId, FieldId, LocalId, SiteId, SizeId};
use crate::types::ElemType;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use girder_source::Span;
use smallvec::SmallVec;
use smol_str::SmolStr;

/// One specialisation of a codelet: generics are known, sizes are not.
#[derive(Clone, Debug)]
pub struct Codelet {
    /// The name of its item, as vertices write it.
    pub name: SmolStr,
    /// The arguments between `<` and `>`, in the order of the item's generics.
    pub args: Vec<GenericArg>,
    /// Whether it runs on every worker of its tile; its meaning is that of worker 0, 1, … one after another.
    pub multi: bool,
    /// Fields in the order of declaration, `const` ones included.
    pub fields: PrimaryMap<FieldId, FieldDecl>,
    /// Named sizes. A size is bound by the first dimension that names it.
    pub sizes: PrimaryMap<SizeId, SmolStr>,
    /// Scalars and arrays of the body.
    pub locals: PrimaryMap<LocalId, Local>,
    /// Expressions of the body.
    pub exprs: PrimaryMap<ExprId, Expr>,
    /// The sites at which checks may fail.
    pub sites: PrimaryMap<SiteId, Site>,
    /// The statements.
    pub body: StmtBlock,
    /// `#[pipelined]`: costs on a tile are those of a hand-written inner loop.
    pub pipelined: bool,
    /// `#[pipelined(apart)]`: in addition, asks for the storage of the loop to lie in different memory elements.
    pub separate_elements: bool,
    /// `#[cycles(expr)]`: tile cycles of one vertex as an integer expression over sizes and constants.
    pub cycles: Option<ExprId>,
    /// Locals that hold the value of an elementary function of the prelude for an expression; the statements before
    /// compute it. A function for which the tile has an instruction costs that instruction.
    pub elementary: SecondaryMap<LocalId, Option<(Elementary, ExprId)>>,
    /// The span of its declaration.
    pub span: Span,
}

impl Codelet {
    /// Returns a codelet without fields and statements.
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

    /// Returns the fields that are not `const`, in order.
    pub fn edges(&self) -> impl Iterator<Item = (FieldId, &FieldDecl)> {
        self.fields.iter().filter(|(_, f)| f.dir != Dir::Const)
    }
}

/// Functions of the prelude on `f32` for which tiles have instructions.
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
    /// Returns the function with this name in the prelude.
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
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum GenericArg {
    /// `T: float`
    Type(ElemType),
    /// `k: int`
    Int(i64),
    /// `op: fn`: a codelet function, by its name in printed text
    Fn(SmolStr),
}

/// The direction of a field.
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

impl Dir {
    /// Returns whether elements may be read.
    pub fn reads(self) -> bool {
        matches!(self, Dir::In | Dir::InOut)
    }

    /// Returns whether elements may be written.
    pub fn writes(self) -> bool {
        matches!(self, Dir::Out | Dir::InOut)
    }
}

/// A field as the codelet declares it.
#[derive(Clone, Debug)]
pub struct FieldDecl {
    /// Its name.
    pub name: SmolStr,
    /// Its direction.
    pub dir: Dir,
    /// Element type.
    pub ty: ElemType,
    /// One per dimension; a scalar has none. `const` fields are scalars.
    pub dims: SmallVec<[DimDecl; 3]>,
    /// The preferred alignment of its first element in bytes: a power of two, 1 if it may have any address.
    pub align: u32,
    /// The span of its declaration.
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
    /// Its name in the source; empty for some locals that the compiler makes.
    pub name: SmolStr,
    /// Type of the scalar, or of each element.
    pub ty: ElemType,
    /// Dimensions of an array; `None` for a scalar. At least one dimension if `Some`; elements are row-major.
    pub array: Option<SmallVec<[u32; 2]>>,
}
/// The kind of check at a site.
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
    /// A loop iterates too often, or all loops together do.
    Iterations,
    /// `argmin` or `argmax` of no elements.
    Empty,
    /// The operands of `amp` do not fit.
    Shape,
}

/// A point in the code where a check may fail.
#[derive(Clone, Debug)]
pub struct Site {
    /// The kind of check.
    pub check: Check,
    /// The source span.
    pub span: Span,
    /// The calls of codelet functions around it, innermost first.
    pub calls: SmallVec<[Span; 1]>,
    /// The message of `assert(cond, "…")`.
    pub message: Option<SmolStr>,
}
