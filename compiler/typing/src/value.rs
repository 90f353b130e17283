//! The value of an expression during translation: a static value, a typed scalar of the codelet, or an aggregate of
//! them that exists only at compile time.
//!
//! Invariant: the expressions inside a value that is bound to a name are stable: no later statement changes them.

use super::loops::Bounds;
use girder_ir::codelet::Storage;
use girder_ir::ids::ExprId;
use girder_ir::types::{ElemType, Scalar};
use girder_source::Span;
use smallvec::SmallVec;
use smol_str::SmolStr;

/// The value of an expression.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A static integer, from the least `i64` to the greatest `u64`; adapts to any number type that holds it.
    Int(i128),
    /// A static float; adapts to any float type.
    Float(f64),
    /// A static condition.
    Bool(bool),
    /// An element type.
    Type(ElemType),
    /// A codelet function that a generic names.
    Fn(SmolStr),
    /// A string, for `assert`.
    Str(SmolStr),
    /// A scalar computed by the codelet.
    Scalar(ExprId),
    /// `(a, b)`, `(w: a)`
    Tuple(Vec<(Option<SmolStr>, Value)>),
    /// `lo..hi by step`
    Range(Bounds),
    /// Elements of a field or local array; at least one dimension.
    View(View),
    /// Nothing.
    Unit,
    /// The following code is unreachable.
    Never,
    /// Wrong; already reported.
    Error,
}

impl Value {
    /// Counts the values that it consists of, at every depth.
    pub(super) fn weight(&self) -> usize {
        match self {
            Value::Tuple(list) => list.iter().fold(1, |n, (_, v)| n + v.weight()),
            _ => 1,
        }
    }

    /// Describes it for messages.
    pub(super) fn noun(&self) -> &'static str {
        match self {
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Bool(_) => "a `bool`",
            Value::Type(_) => "a type",
            Value::Fn(_) => "a function",
            Value::Str(_) => "a string",
            Value::Scalar(_) => "a scalar",
            Value::Tuple(_) => "a tuple",
            Value::Range(_) => "a range",
            Value::View(_) => "an array",
            Value::Unit | Value::Never => "nothing",
            Value::Error => "an error",
        }
    }
}

/// A number whose type is still open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Literal {
    /// Fits any number type that holds it.
    Int(i128),
    /// Fits any float type.
    Float(f64),
    /// The same, with its nearest `f32`, which is not that of the `f64`.
    Decimal(f64, f32),
}

impl Literal {
    /// Returns the literal as a value of a type; `None` if it does not fit.
    pub(super) fn to_scalar(self, ty: ElemType) -> Option<Scalar> {
        let float = |v64: f64, v32: f32| match ty {
            ElemType::F32 => (v32.is_finite() || !v64.is_finite()).then(|| Scalar::f32(v32)),
            ElemType::F64 => Some(Scalar::f64(v64)),
            _ => None,
        };
        match self {
            Literal::Int(v) if ty.is_float() => float(v as f64, v as f32),
            Literal::Int(v) => Scalar::int(ty, v),
            Literal::Float(v) => float(v, v as f32),
            Literal::Decimal(wide, narrow) => float(wide, narrow),
        }
    }
}

impl std::fmt::Display for Literal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Literal::Int(v) => write!(f, "{v}"),
            Literal::Float(v) | Literal::Decimal(v, _) => write!(f, "{v:?}"),
        }
    }
}

/// Elements of a field or local array, by reference.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// The field or array that contains the elements.
    pub base: Storage,
    /// One per dimension of the base.
    pub axes: SmallVec<[Axis; 3]>,
    /// The dimensions of the base that are dimensions of the view, in the order of the view; each is a
    /// [`Axis::Range`].
    pub order: SmallVec<[u8; 3]>,
}

/// The part of one dimension of its base that a view selects.
#[derive(Clone, Debug)]
pub(super) enum Axis {
    /// One index, `i64`.
    At(ExprId),
    /// `start`, `start + step`, …
    Range(AxisRange),
}

/// Evenly spaced indices of one dimension.
#[derive(Clone, Debug)]
pub(super) struct AxisRange {
    /// First index, `i64`.
    pub start: ExprId,
    /// Not zero.
    pub step: i64,
    /// The number of indices, `i64`.
    pub len: ExprId,
    /// Whether these are all indices of the dimension in order, so that the bounds check of the base is that of the
    /// view.
    pub whole: bool,
}

impl View {
    /// Returns the number of dimensions.
    pub(super) fn rank(&self) -> usize {
        self.order.len()
    }

    /// Returns the indices along a dimension of the view.
    pub(super) fn range(&self, dim: usize) -> Option<&AxisRange> {
        match self.axes.get(*self.order.get(dim)? as usize)? {
            Axis::Range(r) => Some(r),
            Axis::At(_) => None,
        }
    }
}

/// The construct that bound a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bound {
    /// `let`
    Let,
    /// `let mut`
    LetMut,
    /// The index of a loop or reduction.
    Index,
    /// A parameter of a codelet function.
    Param,
    /// A field of the codelet.
    Field,
    /// A size.
    Size,
    /// A generic argument.
    Generic,
}

impl Bound {
    /// Describes it for messages.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Bound::Let | Bound::LetMut => "variable",
            Bound::Index => "loop index",
            Bound::Param => "parameter",
            Bound::Field => "field",
            Bound::Size => "size",
            Bound::Generic => "generic parameter",
        }
    }
}

/// A name in scope.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    /// The name.
    pub name: SmolStr,
    /// Its value.
    pub value: Value,
    /// The construct that bound it.
    pub bound: Bound,
    /// The span of the binding.
    pub span: Span,
    /// The number of reductions around the binding; a deeper one may not assign it.
    pub region: u32,
}
