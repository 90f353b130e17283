//! Static arrays, as `load` reads them: their elements are static numbers.
//!
//! Invariant: an element is the same number as in the file; only a `u64` above the range of `int` stays an array of
//! rank 0.

use crate::modules::Array;
use crate::value::Value;
use girder_ir::show::show;
use girder_ir::types::{ElemType, Scalar};
use std::sync::Arc;

impl Array {
    /// Returns the part at an index of the first axis: a number if there is no other axis. The index is in range.
    pub fn part(&self, k: u64) -> Value {
        let shape = &self.shape[1..];
        let size = shape.iter().product::<u64>() as usize * self.ty.bytes() as usize;
        let bytes = &self.bytes[k as usize * size..][..size];
        if shape.is_empty() { self.number(bytes) } else { self.like(shape.to_vec(), bytes.into()) }
    }

    /// Returns an element at a flat position, if it is an integer that fits `int`.
    pub fn int(&self, position: u64) -> Option<i64> {
        let size = self.ty.bytes() as usize;
        match self.number(self.bytes.get(position as usize * size..)?.get(..size)?) {
            Value::Int(i) => Some(i),
            _ => None,
        }
    }

    /// Returns elements in the order of their bytes as an array, or as a number if the shape has no axis.
    pub fn of_bytes(&self, shape: Vec<u64>, bytes: Vec<u8>) -> Value {
        if shape.is_empty() { self.number(&bytes) } else { self.like(shape, bytes.into()) }
    }

    fn like(&self, shape: Vec<u64>, bytes: Arc<[u8]>) -> Value {
        Value::Array(Arc::new(Array { ty: self.ty, shape, bytes }))
    }

    fn number(&self, bytes: &[u8]) -> Value {
        let scalar = Scalar::from_le_bytes(self.ty, bytes);
        match (scalar.as_float(), scalar.as_int()) {
            _ if self.ty == ElemType::Bool => Value::Bool(scalar.bits != 0),
            (Some(x), _) => Value::Float(x),
            (_, Some(i)) if i64::try_from(i).is_ok() => Value::Int(i as i64),
            _ => self.like(vec![], bytes.into()),
        }
    }

    /// Returns the text of the array, as `print` shows a tensor.
    pub fn text(&self) -> String {
        show(self.ty, &self.shape, &self.bytes)
    }
}
