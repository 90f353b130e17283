//! The values of expressions during elaboration: a static value, or a tensor, which is a view.
//!
//! Invariant: a value is small, and cloning it is cheap.

use crate::drawn::drawing::Drawing;
use crate::literals::Literal;
use crate::modules::Array;
use girder_ir::ids::StreamId;
use girder_ir::placement::Mapping;
use girder_ir::types::ElemType;
use girder_ir::view::View;
use girder_source::Span;
use girder_syntax::ast::ExprId;
use girder_typing::ModuleRef;
use smol_str::SmolStr;
use std::sync::Arc;

/// What to do with a row of a remote buffer where a tensor is expected.
pub(crate) const READ_FIRST: &str = "`read(rows[k])` is the tensor";

/// A value of elaboration.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value.
    Unit,
    /// `int`
    Int(i64),
    /// `float`
    Float(f64),
    /// `bool`
    Bool(bool),
    /// `string`
    Str(SmolStr),
    /// An element type.
    Type(ElemType),
    /// A range of integers.
    Range(Range),
    /// A range of integers that starts at a number known only at run time.
    RunTimeRange(Arc<RunTimeRange>),
    /// `[a, b]`
    List(Arc<Vec<Value>>),
    /// `(a, b)`, `(w: a, b: c)`
    Tuple(Arc<Tuple>),
    /// Elements of variables.
    Tensor(Arc<Tensor>),
    /// A static array.
    Array(Arc<Array>),
    /// Numbers that are drawn when a variable is loaded.
    Drawn(Arc<Drawing>),
    /// A number of the text that goes to an element type; see `elements`.
    Literal(Literal),
    /// A place: tiles.
    Place(Place),
    /// `fn` or `codelet fn`, by module and item.
    Fn(ModuleRef, usize),
    /// `fn(x) { … }`
    Closure(Arc<Closure>),
    /// A built-in function.
    Builtin(&'static str),
    /// An imported module.
    Module(ModuleRef),
    /// A stream of the host.
    Stream(StreamId),
    /// A row of a remote buffer, by its number: an `i32` of rank 0.
    Row(StreamId, Arc<Tensor>),
    /// The value of a failed expression; further errors about it are not reported.
    Error,
}

/// A function with the values of the names around it.
#[derive(Clone, Debug)]
pub struct Closure {
    /// The module of its text.
    pub module: ModuleRef,
    /// Its expression there.
    pub expr: ExprId,
    /// The local names that its text mentions, with their values.
    pub captured: Vec<(SmolStr, Value)>,
}

/// `count` integers from `start`, `step` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first integer.
    pub start: i64,
    /// The number of integers.
    pub count: u64,
    /// The step; not zero.
    pub step: i64,
}

impl Range {
    /// Returns the k-th integer. It fits an `i64`, but its distance from the start may not, and then wraps twice.
    pub fn at(self, k: u64) -> i64 {
        self.start.wrapping_add(self.step.wrapping_mul(k as i64))
    }

    /// Returns all integers.
    pub fn iter(self) -> impl Iterator<Item = i64> {
        (0..self.count).map(move |k| self.at(k))
    }
}

/// `count` consecutive integers from a number known only at run time.
#[derive(Clone, Debug)]
pub struct RunTimeRange {
    /// The first integer, an `i32` of rank 0.
    pub start: Tensor,
    /// The number of integers.
    pub count: u64,
}

/// Values in order, perhaps with names.
#[derive(Clone, Debug)]
pub struct Tuple {
    /// One name per value; an empty name means none.
    pub names: Vec<SmolStr>,
    /// The values, in order.
    pub values: Vec<Value>,
}

impl Tuple {
    /// Makes a tuple without names.
    pub fn plain(values: Vec<Value>) -> Tuple {
        Tuple { names: vec![SmolStr::default(); values.len()], values }
    }

    /// Returns the value of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let i = self.names.iter().position(|n| n == name && !n.is_empty())?;
        self.values.get(i)
    }
}

/// A view and the type of its elements.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// The elements.
    pub view: View,
    /// Their type.
    pub ty: ElemType,
}

/// Tiles of the machine, by absolute number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The first tile.
    pub first: u32,
    /// The number of tiles, at least 1.
    pub count: u32,
    /// Elements that stay together when a variable is spread over them.
    pub grain: Option<u32>,
}

/// An argument after evaluation.
#[derive(Clone, Debug)]
pub struct Given {
    /// Its name; empty if it has none.
    pub name: SmolStr,
    /// Its value.
    pub value: Value,
    /// Its span.
    pub span: Span,
}

impl crate::binding::Named for Given {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Place {
    /// Spreads `len` elements linearly over the tiles, in grains of at least 8 bytes; unless a grain is given, a tile
    /// gets at least 128 bytes.
    pub fn spread(self, len: u64, ty: ElemType) -> Mapping {
        if self.count == 1 || len <= 1 {
            return Mapping::One(self.first);
        }
        let least = match self.grain {
            Some(_) => 1,
            None => (128 / ty.bytes()) as u64,
        };
        let grain = self.grain.unwrap_or((8 / ty.bytes()).max(1)) as u64;
        let grain = if least > grain && len / least < self.count as u64 { least } else { grain };
        let grains = len.div_ceil(grain);
        match grains.min(self.count as u64) {
            1 => Mapping::One(self.first),
            tiles => Mapping::Linear { first: self.first, tiles: tiles as u32, grain: grain as u32 },
        }
    }
}

impl Value {
    /// Describes the value for messages: "an integer", "a tensor `f32[3]`", …
    pub fn describe(&self) -> String {
        match self {
            Value::Unit => "no value".into(),
            Value::Int(_) | Value::Literal(Literal::Unsigned(_)) => "an integer".into(),
            Value::Float(_) | Value::Literal(Literal::Decimal { .. }) => "a float".into(),
            Value::Bool(_) => "a bool".into(),
            Value::Str(_) => "a string".into(),
            Value::Type(_) => "a type".into(),
            Value::Range(_) => "a range".into(),
            Value::RunTimeRange(_) => "a range that starts at run time".into(),
            Value::List(_) => "a list".into(),
            Value::Tuple(_) => "a tuple".into(),
            Value::Tensor(t) => format!("a tensor {}", t.type_name()),
            Value::Array(a) => format!("an array {}", shaped(a.ty, &a.shape)),
            Value::Drawn(_) => "an initial value that is drawn at load".into(),
            Value::Place(_) => "a place".into(),
            Value::Fn(..) | Value::Closure(_) | Value::Builtin(_) => "a function".into(),
            Value::Module(_) => "a module".into(),
            Value::Stream(_) => "a stream or a remote buffer".into(),
            Value::Row(..) => "a row of a remote buffer".into(),
            Value::Error => "an error".into(),
        }
    }

    /// Returns the name of its kind, as `kind_of` gives it.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Unit => "()",
            Value::Int(_) | Value::Literal(Literal::Unsigned(_)) => "int",
            Value::Float(_) | Value::Literal(Literal::Decimal { .. }) => "float",
            Value::Bool(_) => "bool",
            Value::Str(_) => "string",
            Value::Type(_) => "type",
            Value::Range(_) | Value::RunTimeRange(_) => "range",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            Value::Tensor(_) => "tensor",
            Value::Array(_) => "array",
            Value::Drawn(_) => "initial value",
            Value::Place(_) => "place",
            Value::Fn(..) | Value::Closure(_) | Value::Builtin(_) => "fn",
            Value::Module(_) => "module",
            Value::Stream(_) | Value::Row(..) => "stream",
            Value::Error => "error",
        }
    }

    /// Returns the help that says how a list of numbers becomes a tensor; `None` for other values.
    pub fn tensor_of_list(&self) -> Option<&'static str> {
        let Value::List(_) = self else { return None };
        let mut first = self;
        while let Value::List(items) = first {
            first = items.first()?;
        }
        match first {
            Value::Int(_) => Some("`i32([…])` or `f32([…])` makes a tensor of a list"),
            Value::Float(_) => Some("`f32([…])` makes a tensor of a list"),
            Value::Bool(_) => Some("`bool([…])` makes a tensor of a list"),
            _ => None,
        }
    }

    /// Returns whether it is a static float that is NaN.
    pub fn is_nan(&self) -> bool {
        matches!(self, Value::Float(x) if x.is_nan())
    }

    /// Returns whether it is an error that was already reported.
    pub fn is_error(&self) -> bool {
        matches!(self, Value::Error)
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Value {
        Value::Tensor(Arc::new(tensor))
    }
}

impl Tensor {
    /// Returns the type as text: `f32[3, 4]`.
    pub fn type_name(&self) -> String {
        shaped(self.ty, &self.view.shape())
    }
}

/// Returns the text of a type: `f32[3, 4]`, `f32`.
pub fn shaped(ty: ElemType, shape: &[u64]) -> String {
    if shape.is_empty() {
        return ty.name().into();
    }
    let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("{}[{}]", ty.name(), dims.join(", "))
}
