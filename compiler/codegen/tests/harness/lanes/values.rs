//! Random values of one iteration: contiguous and strided elements, elements in the rows of a square, and values
//! computed from them.
//!
//! Invariant: an index is in bounds in every iteration.

use super::Lanes;
use girder_ir::codelet::*;
use girder_ir::ids::*;
use girder_ir::types::ElemType;
use girder_ir::types::ElemType::*;

impl Lanes<'_, '_> {
    /// Returns an index of a long field that is strided along the vectorised loop.
    pub(super) fn strided_index(&mut self) -> ExprId {
        let i = match self.indices.last() {
            Some(&i) => self.b.read(i),
            None => self.b.int(0),
        };
        let first = self.choices.below(self.stride.unsigned_abs() as usize + 1) as i64;
        if self.stride < 0 {
            let (n, first) = (self.b.sized(self.n), self.b.int(first));
            let last = self.b.binary(BinaryOp::Add, n, first);
            return self.b.binary(BinaryOp::Sub, last, i);
        }
        let (stride, first) = (self.b.int(self.stride), self.b.int(first));
        let at = self.b.binary(BinaryOp::Mul, stride, i);
        self.b.binary(BinaryOp::Add, at, first)
    }

    /// An element of a long field, of the type or a narrow one.
    fn strided_element(&mut self, ty: ElemType) -> ExprId {
        let index = self.strided_index();
        match self.choices.below(4) {
            0 => {
                let field = self.choices.pick(&self.narrow);
                let x = self.b.load(field, &[index]);
                self.b.convert(ty, x)
            }
            1 => {
                let field = self.of(&self.long_outs, ty);
                self.b.load(field, &[index])
            }
            _ => {
                let field = self.of(&self.longs, ty);
                self.b.load(field, &[index])
            }
        }
    }

    /// Returns an index of the vectorised loop, shifted by up to four, or reversed.
    pub(super) fn line_index(&mut self) -> ExprId {
        let i = match self.indices.last() {
            Some(&i) => self.b.read(i),
            None => self.b.int(0),
        };
        match self.choices.below(5) {
            0 => {
                let by = self.choices.below(5) as i64;
                let by = self.b.int(by);
                self.b.binary(BinaryOp::Add, i, by)
            }
            1 => {
                let n = self.b.sized(self.n);
                self.b.binary(BinaryOp::Sub, n, i)
            }
            _ => i,
        }
    }

    /// A value that loads nothing.
    pub(super) fn calm(&mut self, ty: ElemType) -> ExprId {
        let bits = self.choices.value(ty);
        let x = self.b.bits(ty, bits);
        let same: Vec<LocalId> = self.set.iter().copied().filter(|&l| self.b.codelet.locals[l].ty == ty).collect();
        if same.is_empty() {
            return x;
        }
        let local = self.choices.pick(&same);
        let y = self.b.read(local);
        self.b.binary(BinaryOp::Add, x, y)
    }

    pub(super) fn value(&mut self, ty: ElemType, depth: u32) -> ExprId {
        use BinaryOp::*;
        if ty == Bool {
            let operands = self.ty();
            let (a, b) = (self.value(operands, depth.saturating_sub(1)), self.value(operands, depth.saturating_sub(1)));
            let op = self.choices.pick(&[Lt, Le, Gt, Ge, Eq, Ne]);
            let x = self.b.binary(op, a, b);
            return match self.choices.below(4) {
                0 => self.b.unary(UnaryOp::Not, x),
                1 if depth > 0 => {
                    let y = self.value(Bool, depth - 1);
                    let op = self.choices.pick(&[And, Or, Xor]);
                    self.b.binary(op, x, y)
                }
                _ => x,
            };
        }
        if depth == 0 || self.choices.spent() {
            return self.leaf(ty);
        }
        match self.choices.below(12) {
            0 | 1 => self.leaf(ty),
            2 => {
                let cond = self.value(Bool, depth - 1);
                let (a, b) = (self.value(ty, depth - 1), self.value(ty, depth - 1));
                self.b.expr(ty, ExprKind::Select { cond, a, b })
            }
            3 => {
                let from = if self.choices.below(4) == 0 { Bool } else { self.ty() };
                let x = self.value(from, depth - 1);
                self.b.convert(ty, x)
            }
            4 => {
                let from = self.ty();
                let x = self.value(from, depth - 1);
                self.b.expr(ty, ExprKind::Bits { x })
            }
            5 if ty.is_float() => {
                let [a, b, c] = [(); 3].map(|()| self.value(ty, depth - 1));
                self.b.expr(ty, ExprKind::Fma { a, b, c })
            }
            6 | 7 => {
                let x = self.value(ty, depth - 1);
                let op = if ty.is_float() {
                    use UnaryOp::*;
                    self.choices.pick(&[Neg, Abs, Floor, Ceil, Round, Trunc, Sqrt])
                } else {
                    use UnaryOp::*;
                    self.choices.pick(&[Neg, Not, Abs, Popcount, Clz])
                };
                self.b.unary(op, x)
            }
            8 if !ty.is_float() => {
                let x = self.value(ty, depth - 1);
                if ty.bytes() <= 4 && self.choices.below(2) == 0 {
                    // The divisor is never zero.
                    let some = [self.choices.value(ty), 1 + self.choices.below(20) as u64];
                    let by = self.choices.pick(&some).max(1);
                    let by = self.b.bits(ty, by);
                    let op = self.choices.pick(&[Div, Rem]);
                    return self.b.binary(op, x, by);
                }
                let by = self.choices.below(8 * ty.bytes() as usize) as u64;
                let by = self.b.bits(ty, by);
                let op = self.choices.pick(&[Shl, Shr]);
                self.b.binary(op, x, by)
            }
            _ => {
                let (a, b) = (self.value(ty, depth - 1), self.value(ty, depth - 1));
                let op = if ty.is_float() {
                    self.choices.pick(&[Add, Sub, Mul, Div, Min, Max])
                } else {
                    self.choices.pick(&[Add, Sub, Mul, Min, Max, And, Or, Xor])
                };
                self.b.binary(op, a, b)
            }
        }
    }

    pub(super) fn leaf(&mut self, ty: ElemType) -> ExprId {
        if let Some(&inner) = self.inner.last()
            && self.choices.below(2) == 0
        {
            return self.inner_leaf(inner, ty);
        }
        match self.choices.below(12) {
            10 | 11 => self.strided_element(ty),
            0 => {
                let bits = self.choices.value(ty);
                self.b.bits(ty, bits)
            }
            1 => {
                let field = self.of(&self.scalars, ty);
                self.b.load(field, &[])
            }
            2 if !self.indices.is_empty() => {
                let i = self.line_index();
                if ty == I64 { i } else { self.b.convert(ty, i) }
            }
            3 if self.indices.len() > 1 => {
                let index: Vec<ExprId> =
                    self.indices[self.indices.len() - 2..].to_vec().iter().map(|&i| self.b.read(i)).collect();
                let field = self.of(&self.squares, ty);
                self.b.load(field, &index)
            }
            4 => {
                let index = self.line_index();
                let field = self.of(&self.outs, ty);
                self.b.load(field, &[index])
            }
            5 | 6 => {
                let same: Vec<LocalId> =
                    self.set.iter().copied().filter(|&l| self.b.codelet.locals[l].ty == ty).collect();
                if same.is_empty() {
                    return self.line_element(ty);
                }
                let local = self.choices.pick(&same);
                self.b.read(local)
            }
            _ => self.line_element(ty),
        }
    }

    /// Returns an element whose index depends on an inner loop.
    fn inner_leaf(&mut self, inner: LocalId, ty: ElemType) -> ExprId {
        let l = self.b.read(inner);
        match self.choices.below(4) {
            0 => {
                let field = self.of(&self.vectors, ty);
                self.b.load(field, &[l])
            }
            1 => {
                let field = self.of(&self.squares, ty);
                let i = self.line_index();
                self.b.load(field, &[i, l])
            }
            _ => {
                let field = self.of(&self.squares, ty);
                let i = self.line_index();
                self.b.load(field, &[l, i])
            }
        }
    }

    fn line_element(&mut self, ty: ElemType) -> ExprId {
        let index = self.line_index();
        let field = self.of(&self.vectors, ty);
        self.b.load(field, &[index])
    }
}
