//! Statements: their forms, blocks and operands.
//!
//! Invariant: the queries of [`Stmt`] match every form, so that a new one cannot be forgotten.

use super::{BinaryOp, Index};
use crate::ids::{ExprId, FieldId, LocalId, SiteId};

/// Statements in order.
pub type StmtBlock = Vec<Stmt>;

/// Names a loop or labelled block for `break` and `continue`; unique in its codelet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Label(pub u32);

/// The forms of statements.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// Assigns a value to a scalar local.
    Set {
        /// Scalar.
        local: LocalId,
        /// Of its type.
        value: ExprId,
    },
    /// Assigns a value to every element of a local array.
    Fill {
        /// Array.
        local: LocalId,
        /// Of its type.
        value: ExprId,
    },
    /// Assigns a value to an element of a local array. The indices are evaluated before the value.
    StoreLocal {
        /// Array.
        local: LocalId,
        /// `i64`, one per dimension.
        index: Index,
        /// Of its type.
        value: ExprId,
        /// [`Check::Index`](super::Check::Index)
        site: SiteId,
    },
    /// Assigns a value to an element of a field. The indices are evaluated before the value.
    Store {
        /// The field, `out` or `inout`.
        field: FieldId,
        /// `i64`, one per dimension.
        index: Index,
        /// Of its type.
        value: ExprId,
        /// [`Check::Index`](super::Check::Index)
        site: SiteId,
    },
    /// `for var in lo..hi by step`: `lo` and `hi` are evaluated once; before each iteration, `var` is set to
    /// `lo`, `lo + step`, … while it is less than `hi` (greater, for a negative step). The body does not assign `var`.
    /// The trip count is checked against the limit before the first iteration.
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
        /// The statements of an iteration.
        body: StmtBlock,
        /// [`Check::Iterations`](super::Check::Iterations)
        site: SiteId,
    },
    /// A loop: `before` runs, `cond` is tested, `body` runs, and so on. The number of iterations is limited.
    While {
        /// The statements that compute the condition.
        before: StmtBlock,
        /// `bool`
        cond: ExprId,
        /// For `break` and `continue`.
        label: Label,
        /// The statements of an iteration.
        body: StmtBlock,
        /// [`Check::Iterations`](super::Check::Iterations)
        site: SiteId,
    },
    /// `if`
    If {
        /// `bool`
        cond: ExprId,
        /// The statements if the condition holds.
        then: StmtBlock,
        /// The statements if it does not.
        els: StmtBlock,
    },
    /// Statements that `Break(label)` leaves (an inlined function's `return`, or a `break` through several loops).
    Labelled {
        /// Its name.
        label: Label,
        /// In order.
        body: StmtBlock,
    },
    /// Leaves the loop or block with this label.
    Break(Label),
    /// Continues with the next iteration of the loop with this label.
    Continue(Label),
    /// Fails unless the condition holds.
    Assert {
        /// `bool`
        cond: ExprId,
        /// [`Check::Assert`](super::Check::Assert)
        site: SiteId,
    },
    /// Ends this vertex.
    Return,
    /// A reduction in the fixed order of the language.
    Reduce(Box<Reduce>),
    /// `amp(c, a, b)`: for all i, j, for k in order, `c[i, j] = fma(a[i, k], b[k, j], c[i, j])`, where i counts the
    /// rows of all axes of `c` and `a` but the last, in row-major order. With `first: true` each element of `c` starts
    /// at 0 and is not read.
    Amp(Box<Amp>),
}

impl Stmt {
    /// Returns its direct blocks in the order in which they run.
    pub fn blocks(&self) -> impl Iterator<Item = &StmtBlock> {
        let blocks = match self {
            Stmt::For { body, .. } | Stmt::Labelled { body, .. } => [Some(body), None],
            Stmt::While { before, body, .. } => [Some(before), Some(body)],
            Stmt::If { then, els, .. } => [Some(then), Some(els)],
            Stmt::Reduce(r) => [Some(&r.filter_before), Some(&r.before)],
            Stmt::Set { .. }
            | Stmt::Fill { .. }
            | Stmt::StoreLocal { .. }
            | Stmt::Store { .. }
            | Stmt::Break(_)
            | Stmt::Continue(_)
            | Stmt::Assert { .. }
            | Stmt::Return
            | Stmt::Amp(_) => [None, None],
        };
        blocks.into_iter().flatten()
    }

    /// Works like [`Stmt::blocks`], for changing them.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut StmtBlock> {
        let blocks = match self {
            Stmt::For { body, .. } | Stmt::Labelled { body, .. } => [Some(body), None],
            Stmt::While { before, body, .. } => [Some(before), Some(body)],
            Stmt::If { then, els, .. } => [Some(then), Some(els)],
            Stmt::Reduce(r) => [Some(&mut r.filter_before), Some(&mut r.before)],
            Stmt::Set { .. }
            | Stmt::Fill { .. }
            | Stmt::StoreLocal { .. }
            | Stmt::Store { .. }
            | Stmt::Break(_)
            | Stmt::Continue(_)
            | Stmt::Assert { .. }
            | Stmt::Return
            | Stmt::Amp(_) => [None, None],
        };
        blocks.into_iter().flatten()
    }

    /// Calls `f` with every expression that it evaluates outside its blocks.
    pub fn for_each_expr(&self, mut f: impl FnMut(ExprId)) {
        match self {
            Stmt::Set { value, .. } | Stmt::Fill { value, .. } => f(*value),
            Stmt::StoreLocal { index, value, .. } | Stmt::Store { index, value, .. } => {
                index.iter().for_each(|&e| f(e));
                f(*value);
            }
            Stmt::For { lo, hi, .. } => {
                f(*lo);
                f(*hi);
            }
            Stmt::While { cond, .. } | Stmt::If { cond, .. } | Stmt::Assert { cond, .. } => f(*cond),
            Stmt::Reduce(r) => r.for_each_expr(f),
            Stmt::Amp(amp) => {
                for m in [&amp.c, &amp.a, &amp.b] {
                    m.at.iter().for_each(|&e| f(e));
                    m.outer.iter().for_each(|axis| f(axis.len));
                    f(m.rows);
                    f(m.cols);
                }
            }
            Stmt::Labelled { .. } | Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return => {}
        }
    }

    /// Calls `f` with every scalar local that it assigns outside its blocks, including the index of a loop.
    pub fn for_each_assigned(&self, mut f: impl FnMut(LocalId)) {
        match self {
            Stmt::Set { local, .. } => f(*local),
            Stmt::For { var, .. } => f(*var),
            Stmt::Reduce(r) => {
                f(r.dst);
                r.binders.iter().for_each(|b| f(b.var));
            }
            Stmt::Fill { .. }
            | Stmt::StoreLocal { .. }
            | Stmt::Store { .. }
            | Stmt::While { .. }
            | Stmt::If { .. }
            | Stmt::Labelled { .. }
            | Stmt::Break(_)
            | Stmt::Continue(_)
            | Stmt::Assert { .. }
            | Stmt::Return
            | Stmt::Amp(_) => {}
        }
    }
}

/// The kind of a reduction.
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

impl ReduceOp {
    /// Returns the operator that combines two values.
    pub fn operator(self) -> BinaryOp {
        match self {
            ReduceOp::Sum => BinaryOp::Add,
            ReduceOp::Product => BinaryOp::Mul,
            ReduceOp::Min | ReduceOp::ArgMin => BinaryOp::Min,
            ReduceOp::Max | ReduceOp::ArgMax => BinaryOp::Max,
            ReduceOp::Any => BinaryOp::Or,
            ReduceOp::All => BinaryOp::And,
        }
    }
}

/// `dst = op binders where filter { before; value }`.
///
/// The element at row-major position p of the binders' ranges (skipped elements count) goes to lane p mod 16. Each lane
/// starts at the identity (`Sum`: -0.0 for floats, 0 for integers; `Product`: 1; `Min`: +inf or the greatest integer;
/// `Max`: -inf or the least; `Any`: false; `All`: true) and takes its elements in order as `lane = lane op value`. Then
/// lanes fold by 8, 4, 2, 1: `lane[l] = lane[l] op lane[l + s]` for l < s. The result is lane 0, except that an empty
/// float `Sum` (no element taken) is +0.0. Where `factors` is set, `lane = fma(x, y, lane)` (floats).
///
/// `ArgMin` and `ArgMax` yield the row-major position (`i64`) of the first element with the least or greatest value;
/// the first NaN, if any, wins; without any element the check fails.
#[derive(Clone, Debug)]
pub struct Reduce {
    /// Scalar local: the value's type, `bool` for `Any`/`All`, `i64` for `ArgMin`/`ArgMax`.
    pub dst: LocalId,
    /// The kind of the reduction.
    pub op: ReduceOp,
    /// Outermost first.
    pub binders: Vec<Binder>,
    /// The statements that compute `filter`.
    pub filter_before: StmtBlock,
    /// `bool`: elements where it is false are skipped.
    pub filter: Option<ExprId>,
    /// The statements that compute the value.
    pub before: StmtBlock,
    /// The value of an element.
    pub value: ExprId,
    /// The factors of a float `Sum` whose body is a product `x * y`; `value` is their product.
    pub factors: Option<(ExprId, ExprId)>,
    /// [`Check::Empty`](super::Check::Empty); only `ArgMin`/`ArgMax` can fail it.
    pub site: SiteId,
    /// [`Check::Iterations`](super::Check::Iterations) of all elements, before the first.
    pub iterations: SiteId,
}

impl Reduce {
    /// Calls `f` with every expression that it evaluates outside its blocks.
    pub fn for_each_expr(&self, mut f: impl FnMut(ExprId)) {
        for binder in &self.binders {
            f(binder.lo);
            f(binder.hi);
        }
        self.filter.into_iter().for_each(&mut f);
        f(self.value);
        if let Some((x, y)) = self.factors {
            f(x);
            f(y);
        }
    }
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

/// A matrix product into `c`. The rows of `c` and `a` may have several axes, the same for both.
#[derive(Clone, Debug)]
pub struct Amp {
    /// … × m × n, written, and read unless `first`; a float type.
    pub c: Matrix,
    /// … × m × k
    pub a: Matrix,
    /// k × n
    pub b: Matrix,
    /// Whether sums start at 0, not at the elements of `c`.
    pub first: bool,
    /// [`Check::Shape`](super::Check::Shape): the shapes must fit, and each matrix lie inside its field or array.
    pub site: SiteId,
}

/// A sub-view of a field or local array: element (…, i, j) is at `at` with `i * row_step` added to the index of
/// dimension `row_dim`, `j * col_step` to that of `col_dim`, and so on for the axes around the rows.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The field or array.
    pub base: Storage,
    /// Index of the first element, `i64`, one per dimension of the base.
    pub at: Index,
    /// Axes around the rows, outermost first.
    pub outer: Vec<RowAxis>,
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

/// An axis of a matrix along which there are further rows.
#[derive(Clone, Debug)]
pub struct RowAxis {
    /// Dimension of the base.
    pub dim: u8,
    /// Step of the index.
    pub step: i64,
    /// Its length, `i64`.
    pub len: ExprId,
}

/// Storage with elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Storage {
    /// A field that is not `const`.
    Field(FieldId),
    /// A local array.
    Local(LocalId),
}
