//! Expressions: their forms and operands.
//!
//! Invariant: [`ExprKind::operands`] and [`ExprKind::map_operands`] walk the same operands in the order of evaluation;
//! every generic walk over expressions uses one of them.

use crate::ids::{ExprId, FieldId, LocalId, SiteId, SizeId};
use crate::types::{ElemType, Scalar};
use girder_source::Span;
use smallvec::SmallVec;

/// A typed expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The form.
    pub kind: ExprKind,
    /// The type of its value. `int` values of the language (sizes, loop indices) are `i64`.
    pub ty: ElemType,
    /// The source span.
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
    /// In a `multi` codelet: the number of workers of a tile, `i64`.
    Workers,
    /// An element of a field; `i64` indices.
    Load {
        /// The field; not `const`.
        field: FieldId,
        /// One per dimension.
        index: Index,
        /// The bounds check, [`Check::Index`](super::Check::Index).
        site: SiteId,
    },
    /// An element of a local array; `i64` indices.
    LoadLocal {
        /// The array.
        local: LocalId,
        /// One per dimension.
        index: Index,
        /// The bounds check, [`Check::Index`](super::Check::Index).
        site: SiteId,
    },
    /// One operand.
    Unary {
        /// The operator.
        op: UnaryOp,
        /// The operand; of the expression's type, also for `Popcount` and `Clz`.
        x: ExprId,
    },
    /// Two operands of one type. Comparisons yield `bool`, all other operators the operands' type.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Left.
        a: ExprId,
        /// Right.
        b: ExprId,
        /// The site of integer `Div` and `Rem` ([`Check::Division`](super::Check::Division)) and of shifts
        /// ([`Check::Shift`](super::Check::Shift)); `None` for all other operators.
        site: Option<SiteId>,
    },
    /// `bool` short-circuit: `a && b`.
    AndThen {
        /// First.
        a: ExprId,
        /// Evaluated only if `a` holds.
        b: ExprId,
    },
    /// `bool` short-circuit: `a || b`.
    OrElse {
        /// First.
        a: ExprId,
        /// Evaluated only if `a` does not hold.
        b: ExprId,
    },
    /// `cond ? a : b`; both operands are evaluated and have the expression's type.
    Select {
        /// `bool`
        cond: ExprId,
        /// The value if the condition holds.
        a: ExprId,
        /// The value if it does not.
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
    /// The value of `x` in the expression's type. A conversion to a narrower integer wraps. From float to integer it
    /// truncates and saturates, and NaN becomes 0. From `bool` it yields 0 or 1, and to `bool` whether the value is not
    /// zero. To float it rounds to nearest, ties to even.
    Convert {
        /// The operand, of any type.
        x: ExprId,
    },
    /// The bits of `x` as the expression's type, of the same width; a NaN becomes the canonical one first
    /// (`0x7fc00000`, `0x7ff8000000000000`).
    Bits {
        /// The operand, of any type of the same width.
        x: ExprId,
    },
}

impl ExprKind {
    /// Returns its operands, indices included, in the order of evaluation.
    pub fn operands(&self) -> Operands<'_> {
        match *self {
            ExprKind::Const(_)
            | ExprKind::Local(_)
            | ExprKind::ConstField(_)
            | ExprKind::Size(_)
            | ExprKind::Worker
            | ExprKind::Workers => Operands::Listed(&[]),
            ExprKind::Load { ref index, .. } | ExprKind::LoadLocal { ref index, .. } => Operands::Listed(index),
            ExprKind::Unary { x, .. } | ExprKind::Convert { x } | ExprKind::Bits { x } => Operands::One([x]),
            ExprKind::Binary { a, b, .. } | ExprKind::AndThen { a, b } | ExprKind::OrElse { a, b } => {
                Operands::Two([a, b])
            }
            ExprKind::Select { cond: a, a: b, b: c } | ExprKind::Fma { a, b, c } => Operands::Three([a, b, c]),
        }
    }

    /// Replaces each operand, in the order of evaluation.
    pub fn map_operands(&mut self, mut f: impl FnMut(ExprId) -> ExprId) {
        let mut put = |x: &mut ExprId| *x = f(*x);
        match self {
            ExprKind::Const(_)
            | ExprKind::Local(_)
            | ExprKind::ConstField(_)
            | ExprKind::Size(_)
            | ExprKind::Worker
            | ExprKind::Workers => {}
            ExprKind::Load { index, .. } | ExprKind::LoadLocal { index, .. } => index.iter_mut().for_each(put),
            ExprKind::Unary { x, .. } | ExprKind::Convert { x } | ExprKind::Bits { x } => put(x),
            ExprKind::Binary { a, b, .. } | ExprKind::AndThen { a, b } | ExprKind::OrElse { a, b } => {
                put(a);
                put(b);
            }
            ExprKind::Select { cond: a, a: b, b: c } | ExprKind::Fma { a, b, c } => {
                put(a);
                put(b);
                put(c);
            }
        }
    }

    /// Returns the check that the expression itself may fail, whatever its operands do.
    pub fn site(&self) -> Option<SiteId> {
        match *self {
            ExprKind::Load { site, .. } | ExprKind::LoadLocal { site, .. } => Some(site),
            ExprKind::Binary { site, .. } => site,
            _ => None,
        }
    }
}

/// The operands of an expression as a list, without an allocation.
#[derive(Clone, Copy, Debug)]
pub enum Operands<'e> {
    /// The indices of an access; none for a leaf.
    Listed(&'e [ExprId]),
    /// The operand of a unary operator.
    One([ExprId; 1]),
    /// The operands of a binary operator.
    Two([ExprId; 2]),
    /// The operands of a ternary operator.
    Three([ExprId; 3]),
}

impl std::ops::Deref for Operands<'_> {
    type Target = [ExprId];

    fn deref(&self) -> &[ExprId] {
        match self {
            Operands::Listed(list) => list,
            Operands::One(list) => list,
            Operands::Two(list) => list,
            Operands::Three(list) => list,
        }
    }
}

/// Unary operators.
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
    /// Integers: number of bits that are set.
    Popcount,
    /// Integers: number of leading zeros; the width for zero.
    Clz,
}

/// Binary operators.
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
    /// Has the sign of the dividend. Integers: a zero divisor fails, `min % -1` is 0. Floats: as C's `fmod`, exactly.
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
    /// Like `Shl`; signed integers keep the sign.
    Shr,
    /// Yields `bool`; NaN equals nothing. `bool`, numbers.
    Eq,
    /// Yields `bool`.
    Ne,
    /// Yields `bool`. Numbers.
    Lt,
    /// Yields `bool`. Numbers.
    Le,
    /// Yields `bool`. Numbers.
    Gt,
    /// Yields `bool`. Numbers.
    Ge,
}

impl BinaryOp {
    /// Returns whether the operator yields `bool` for all operands.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge)
    }
}
