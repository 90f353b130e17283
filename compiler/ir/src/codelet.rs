//! The typed codelet: what one vertex computes, after names, generics and types are resolved and helper functions are
//! inlined.
//!
//! It is a structured tree: statements over scalar locals, local arrays and fields; expressions without side effects
//! (but for checks that may fail). Both the interpreter and the code generator walk it; it is never printed (a stage's
//! text carries the source of the codelet, see [`CodeletItem`](crate::graph::CodeletItem)).
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

use crate::ids::{ExprId, FieldId, LocalId, SiteId, SizeId};
use crate::types::{ElemType, Scalar};
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
    pub body: Block,
    /// `#[pipelined]`: the tile cost is that of a hand-written inner loop.
    pub pipelined: bool,
    /// `#[pipelined(apart)]`: and asks that what the loop touches lies in different memory elements.
    pub apart: bool,
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
            apart: false,
            cycles: None,
            elementary: SecondaryMap::new(),
            span,
        }
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
    /// The function of a name of the prelude.
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

/// A typed expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Which.
    pub kind: ExprKind,
    /// The type of its value. `int` values of the language (sizes, loop indices) are `i64`.
    pub ty: ElemType,
    /// Where it stands.
    pub span: Span,
}

/// A list of indices, one per dimension.
pub type Index = SmallVec<[ExprId; 3]>;

/// The forms of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A value of the expression's type.
    Const(Scalar),
    /// A scalar local.
    Local(LocalId),
    /// A `const` field.
    ConstField(FieldId),
    /// A size, `i64`.
    Size(SizeId),
    /// In a `multi` codelet: this worker, `i64`, from 0.
    Worker,
    /// In a `multi` codelet: how many workers a tile has, `i64`.
    Workers,
    /// An element of a field; `i64` indices.
    Load {
        /// Not `const`.
        field: FieldId,
        /// One per dimension.
        index: Index,
        /// The bounds check, [`Check::Index`].
        site: SiteId,
    },
    /// An element of a local array; `i64` indices.
    LoadLocal {
        /// An array.
        local: LocalId,
        /// One per dimension.
        index: Index,
        /// The bounds check, [`Check::Index`].
        site: SiteId,
    },
    /// One operand.
    Unary {
        /// Which.
        op: UnaryOp,
        /// Has the expression's type, but for `Popcount`/`Clz` too.
        x: ExprId,
    },
    /// Two operands of one type. Comparisons give `bool`; all others the operands' type.
    Binary {
        /// Which.
        op: BinaryOp,
        /// Left.
        a: ExprId,
        /// Right.
        b: ExprId,
        /// For integer `Div` and `Rem` ([`Check::Division`]) and shifts ([`Check::Shift`]); `None` for all others.
        site: Option<SiteId>,
    },
    /// `bool` short-circuit: `a && b`.
    AndThen {
        /// First.
        a: ExprId,
        /// Only if `a`.
        b: ExprId,
    },
    /// `bool` short-circuit: `a || b`.
    OrElse {
        /// First.
        a: ExprId,
        /// Only if not `a`.
        b: ExprId,
    },
    /// `cond ? a : b`; both are evaluated, and have the expression's type.
    Select {
        /// `bool`
        cond: ExprId,
        /// If so.
        a: ExprId,
        /// If not.
        b: ExprId,
    },
    /// `a * b + c`, rounded once; floats.
    Fma {
        /// Factor.
        a: ExprId,
        /// Factor.
        b: ExprId,
        /// Summand.
        c: ExprId,
    },
    /// The value of `x` in the expression's type. To a narrower integer it wraps; from float to integer it truncates
    /// and saturates, NaN gives 0; from `bool` 0 or 1; to `bool` whether it is not zero; to float it rounds to
    /// nearest, ties to even.
    Convert {
        /// Of any type.
        x: ExprId,
    },
    /// The bits of `x` as the expression's type, of the same width; a NaN is first made the canonical one
    /// (`0x7fc00000`, `0x7ff8000000000000`).
    Bits {
        /// Of any type of the same width.
        x: ExprId,
    },
}

/// Operators of one operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnaryOp {
    /// `-x`: numbers; integers wrap.
    Neg,
    /// `!x`: `bool` and integers (all bits).
    Not,
    /// Numbers; integers wrap (`abs(min) == min`); unsigned unchanged.
    Abs,
    /// Floats.
    Floor,
    /// Floats.
    Ceil,
    /// Floats; to nearest, ties to even.
    Round,
    /// Floats; towards zero.
    Trunc,
    /// Floats; correctly rounded.
    Sqrt,
    /// Integers: bits that are set.
    Popcount,
    /// Integers: leading zeros; of zero the width.
    Clz,
}

/// Operators of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinaryOp {
    /// Integers wrap.
    Add,
    /// Integers wrap.
    Sub,
    /// Integers wrap.
    Mul,
    /// Integers truncate; a zero divisor fails the check; `min / -1` wraps to `min`.
    Div,
    /// Sign of the dividend; integers: zero divisor fails, `min % -1` is 0; floats: as C's `fmod`, exactly.
    Rem,
    /// NaN if either is NaN; -0 is less than +0.
    Min,
    /// NaN if either is NaN; -0 is less than +0.
    Max,
    /// `bool` and integers.
    And,
    /// `bool` and integers.
    Or,
    /// `bool` and integers.
    Xor,
    /// Integers; the right operand has the same type; a width that is negative or not less than the type's fails.
    Shl,
    /// As `Shl`; signed integers keep the sign.
    Shr,
    /// Gives `bool`; NaN equals nothing. `bool`, numbers.
    Eq,
    /// Gives `bool`.
    Ne,
    /// Gives `bool`. Numbers.
    Lt,
    /// Gives `bool`. Numbers.
    Le,
    /// Gives `bool`. Numbers.
    Gt,
    /// Gives `bool`. Numbers.
    Ge,
}

impl BinaryOp {
    /// Whether it gives `bool` whatever its operands are.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge)
    }
}

/// Statements in order.
pub type Block = Vec<Stmt>;

/// Names a loop or labelled block for `break` and `continue`; unique in its codelet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Label(pub u32);

/// The forms of statements.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// A scalar local takes a value of its type.
    Set {
        /// Scalar.
        local: LocalId,
        /// Of its type.
        value: ExprId,
    },
    /// Every element of a local array takes a value of its type.
    Fill {
        /// Array.
        local: LocalId,
        /// Of its type.
        value: ExprId,
    },
    /// An element of a local array takes a value. The indices are evaluated before the value.
    StoreLocal {
        /// Array.
        local: LocalId,
        /// `i64`, one per dimension.
        index: Index,
        /// Of its type.
        value: ExprId,
        /// [`Check::Index`]
        site: SiteId,
    },
    /// An element of an `out` or `inout` field takes a value. The indices are evaluated before the value.
    Store {
        /// `out` or `inout`.
        field: FieldId,
        /// `i64`, one per dimension.
        index: Index,
        /// Of its type.
        value: ExprId,
        /// [`Check::Index`]
        site: SiteId,
    },
    /// `for var in lo..hi by step`: `lo` and `hi` are evaluated once; `var` is set before each turn to `lo`,
    /// `lo + step`, … while it is less than `hi` (greater, for a negative step). The body does not assign `var`.
    /// The number of turns is limited before the first.
    For {
        /// `i64`
        var: LocalId,
        /// `i64`
        lo: ExprId,
        /// `i64`
        hi: ExprId,
        /// Not zero.
        step: i64,
        /// For `break` and `continue`.
        label: Label,
        /// Each turn.
        body: Block,
        /// [`Check::Turns`]
        site: SiteId,
    },
    /// `before` runs, then `cond` is tested, then `body` runs, and again. The number of turns is limited.
    While {
        /// What the condition needs.
        before: Block,
        /// `bool`
        cond: ExprId,
        /// For `break` and `continue`.
        label: Label,
        /// Each turn.
        body: Block,
        /// [`Check::Turns`]
        site: SiteId,
    },
    /// `if`
    If {
        /// `bool`
        cond: ExprId,
        /// If so.
        then: Block,
        /// If not.
        els: Block,
    },
    /// Statements that `Break(label)` leaves (an inlined function's `return`, or a `break` through several loops).
    Labelled {
        /// Its name.
        label: Label,
        /// In order.
        body: Block,
    },
    /// Leaves the loop or block of this name.
    Break(Label),
    /// Goes on with the next turn of the loop of this name.
    Continue(Label),
    /// Fails unless the condition holds.
    Assert {
        /// `bool`
        cond: ExprId,
        /// [`Check::Assert`]
        site: SiteId,
    },
    /// Ends this vertex.
    Return,
    /// A reduction in the fixed order of the language.
    Reduce(Box<Reduce>),
    /// `amp(c, a, b)`: for all i, j, for k in order, `c[i, j] = fma(a[i, k], b[k, j], c[i, j])`.
    Amp(Box<Amp>),
}

/// Which reduction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum ReduceOp {
    Sum,
    Product,
    Min,
    Max,
    Any,
    All,
    ArgMin,
    ArgMax,
}

/// `dst = op binders where filter { before; value }`.
///
/// The element at row-major position p of the binders' ranges (skipped places count) goes to lane p mod 16. Each lane
/// starts at the identity (`Sum`: -0.0 for floats, 0 for integers; `Product`: 1; `Min`: +inf or the greatest integer;
/// `Max`: -inf or the least; `Any`: false; `All`: true) and takes its elements in order as `lane = lane op value`;
/// then lanes fold by 8, 4, 2, 1: `lane[l] = lane[l] op lane[l + s]` for l < s. The result is lane 0, but an empty
/// float `Sum` (no element taken) is +0.0. Where `factors` is set, `lane = fma(x, y, lane)` (floats).
///
/// `ArgMin`/`ArgMax` give the row-major position (`i64`) of the first place that has the least or greatest value; the
/// first NaN, if there is one, wins; without any element the check fails.
#[derive(Clone, Debug)]
pub struct Reduce {
    /// Scalar local: the value's type, `bool` for `Any`/`All`, `i64` for `ArgMin`/`ArgMax`.
    pub dst: LocalId,
    /// Which.
    pub op: ReduceOp,
    /// Outermost first.
    pub binders: Vec<Binder>,
    /// What `filter` needs.
    pub filter_before: Block,
    /// `bool`: places where it is false are skipped.
    pub filter: Option<ExprId>,
    /// What the value needs.
    pub before: Block,
    /// The value of a place.
    pub value: ExprId,
    /// For a float `Sum` whose body is a product `x * y`: its factors (`value` is their product).
    pub factors: Option<(ExprId, ExprId)>,
    /// [`Check::Empty`]; only `ArgMin`/`ArgMax` can fail it.
    pub site: SiteId,
    /// [`Check::Turns`] of all places, before the first.
    pub turns: SiteId,
}

/// `var in lo..hi by step`; the bounds do not depend on other binders of the same reduction.
#[derive(Clone, Debug)]
pub struct Binder {
    /// `i64`
    pub var: LocalId,
    /// `i64`
    pub lo: ExprId,
    /// `i64`
    pub hi: ExprId,
    /// Not zero.
    pub step: i64,
}

/// A matrix product into `c`. All three are two-dimensional.
#[derive(Clone, Debug)]
pub struct Amp {
    /// m × n, read and written; a float type.
    pub c: Matrix,
    /// m × k
    pub a: Matrix,
    /// k × n
    pub b: Matrix,
    /// [`Check::Shape`]: the shapes must fit, and each matrix lie inside its field or array.
    pub site: SiteId,
}

/// A two-dimensional sub-view of a field or local array: element (i, j) is at `at` with `i * row_step` added to the
/// index of dimension `row_dim` and `j * col_step` to that of `col_dim`.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// What it lies in.
    pub base: Storage,
    /// Index of element (0, 0), `i64`, one per dimension of the base.
    pub at: Index,
    /// Dimension of the base along which rows advance.
    pub row_dim: u8,
    /// Dimension of the base along which columns advance.
    pub col_dim: u8,
    /// Step of the index from row to row.
    pub row_step: i64,
    /// Step of the index from column to column.
    pub col_step: i64,
    /// Number of rows, `i64`.
    pub rows: ExprId,
    /// Number of columns, `i64`.
    pub cols: ExprId,
}

/// What has elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Storage {
    /// A field that is not `const`.
    Field(FieldId),
    /// A local array.
    Local(LocalId),
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
    Turns,
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

impl Codelet {
    /// Fields that are not `const`, in order.
    pub fn edges(&self) -> impl Iterator<Item = (FieldId, &FieldDecl)> {
        self.fields.iter().filter(|(_, f)| f.dir != Dir::Const)
    }
}
