//! Random loops and sums over narrow integers.
//!
//! Invariant: as in `random`; indices stay inside, so that facts prove them.

use super::build::Build;
use super::choices::Choices;
use super::{Case, Neighbours, Spread};
use girder_ir::codelet::*;
use girder_ir::ids::*;
use girder_ir::types::ElemType;
use girder_ir::types::ElemType::*;

struct Narrow<'a, 'c> {
    b: Build,
    choices: &'c mut Choices<'a>,
    /// The type of most elements.
    element: ElemType,
    n: SizeId,
    /// `in a[n + 4]` of two types of one size, and occasionally of another.
    fields: Vec<FieldId>,
    scalar: FieldId,
    /// `inout o[n + 4]`, twice.
    outs: [FieldId; 2],
    index: LocalId,
    set: Vec<LocalId>,
}

/// A random codelet of a loop or a sum.
pub fn case(choices: &mut Choices<'_>) -> Case {
    let (element, other) = choices.pick(&[(U8, I8), (U8, I8), (I8, U8), (U16, I16), (I16, U16)]);
    let length = choices.pick(&[64u64, 16, 72, 65, 66, 100, 128, 131, 192, 256, 260, 400]);
    let mut b = Build::new();
    let (n, m) = (b.size("n"), b.size("m"));
    b.field(Dir::In, U8, &[DimDecl::Size(n)]);
    let line = [DimDecl::Size(m)];
    let stray = choices.pick(&[U8, U16, I32]);
    let mut fields: Vec<FieldId> = [element, element, other].map(|ty| b.field(Dir::In, ty, &line)).to_vec();
    if choices.below(8) == 0 {
        fields.push(b.field(Dir::In, stray, &line));
    }
    let scalar = b.field(Dir::In, element, &[]);
    let outs = [element, other].map(|ty| b.field(Dir::InOut, ty, &line));
    let total = b.field(Dir::Out, I32, &[]);
    let index = b.local(I64);
    let mut narrow = Narrow { b, choices, element, n, fields, scalar, outs, index, set: vec![] };
    let body = if narrow.choices.below(3) == 0 { narrow.sum(total) } else { narrow.map() };
    let codelet = std::mem::replace(&mut narrow.b, Build::new()).done(body);
    let choices = narrow.choices;
    let dims = |d: &DimDecl| if *d == DimDecl::Size(n) { length } else { length + 4 };
    let shapes: Vec<_> = codelet.fields.values().map(|f| f.dims.iter().map(dims).collect()).collect();
    let spreads: Vec<Spread> = shapes
        .iter()
        .map(|_| {
            choices.pick(&[
                Spread::Contiguous,
                Spread::Contiguous,
                Spread::Contiguous,
                Spread::Contiguous,
                Spread::Reversed,
            ])
        })
        .collect();
    let neighbours = choices.pick(&[Neighbours::Separate, Neighbours::SideBySide]);
    Case::with(codelet, shapes, &spreads, (2, neighbours), |ty| choices.value(ty))
}

impl Narrow<'_, '_> {
    fn range(&mut self) -> (ExprId, ExprId) {
        let lo = self.choices.pick(&[0, 0, 0, 1, 2]);
        (self.b.int(lo), self.b.sized(self.n))
    }

    fn map(&mut self) -> StmtBlock {
        let (lo, hi) = self.range();
        let mut body = if self.choices.below(2) == 0 { self.steps(2) } else { vec![] };
        for _ in 0..self.choices.pick(&[1, 1, 2]) {
            let stored = self.stored(2);
            body.extend(stored);
        }
        let (label, site) = (self.b.label(), self.b.site(Check::Iterations));
        vec![Stmt::For { var: self.index, lo, hi, step: 1, label, body, site }]
    }

    fn sum(&mut self, total: FieldId) -> StmtBlock {
        let (lo, hi) = self.range();
        let binder = Binder { var: self.index, lo, hi, step: 1 };
        let before = self.steps(1);
        let ty = self.choices.pick(&[I32, I32, U32]);
        let depth = self.choices.pick(&[0, 1, 2, 3]);
        let (dst, value) = (self.b.local(ty), self.value(ty, depth));
        let (site, iterations) = (self.b.site(Check::Empty), self.b.site(Check::Iterations));
        let reduce = Stmt::Reduce(Box::new(Reduce {
            dst,
            op: ReduceOp::Sum,
            binders: vec![binder],
            filter_before: vec![],
            filter: None,
            before,
            value,
            factors: None,
            site,
            iterations,
        }));
        let shown = self.b.read(dst);
        let shown = self.b.convert(I32, shown);
        vec![reduce, self.b.store(total, &[], shown)]
    }

    fn at(&mut self) -> ExprId {
        let (i, by) = (self.b.read(self.index), self.choices.pick(&[0, 0, 0, 1, 3]));
        let by = self.b.int(by);
        self.b.binary(BinaryOp::Add, i, by)
    }

    /// A store; sometimes one in each of two branches.
    fn stored(&mut self, depth: u32) -> StmtBlock {
        let field = self.choices.pick(&self.outs);
        let index = self.at();
        let ty = self.b.codelet.fields[field].ty;
        self.stored_at((field, index, ty), depth)
    }

    fn stored_at(&mut self, to: (FieldId, ExprId, ElemType), depth: u32) -> StmtBlock {
        if depth > 0 && self.choices.below(4) == 0 {
            let cond = self.cond(2);
            let known = self.set.len();
            let branch = |n: &mut Self| {
                let mut block = n.steps(0);
                block.extend(n.stored_at(to, depth - 1));
                n.set.truncate(known);
                block
            };
            let (then, els) = (branch(self), branch(self));
            return vec![Stmt::If { cond, then, els }];
        }
        let depth = self.choices.pick(&[1, 2, 3, 4]);
        let value = self.value(to.2, depth);
        vec![self.b.store(to.0, &[to.1], value)]
    }

    fn steps(&mut self, depth: u32) -> StmtBlock {
        let mut block = StmtBlock::new();
        for _ in 0..self.choices.below(3) {
            let ty = self.ty();
            let value = self.value(ty, 3);
            let local = self.b.local(ty);
            block.push(Stmt::Set { local, value });
            self.set.push(local);
            if depth > 0 && self.choices.below(2) == 0 {
                let cond = self.cond(2);
                let (yes, no) = (self.value(ty, 2), self.value(ty, 2));
                let els = if self.choices.below(2) == 0 { vec![] } else { vec![Stmt::Set { local, value: no }] };
                block.push(Stmt::If { cond, then: vec![Stmt::Set { local, value: yes }], els });
            }
        }
        block
    }

    fn ty(&mut self) -> ElemType {
        let element = self.element;
        self.choices.pick(&[element, I32, element, I32, element, I32, U32, I16])
    }

    fn cond(&mut self, depth: u32) -> ExprId {
        use BinaryOp::*;
        match self.choices.below(if depth > 0 { 6 } else { 4 }) {
            4 => {
                let (a, b) = (self.cond(depth - 1), self.cond(depth - 1));
                let kind = match self.choices.below(4) {
                    0 => ExprKind::AndThen { a, b },
                    1 => ExprKind::OrElse { a, b },
                    2 => return self.b.binary(And, a, b),
                    _ => return self.b.binary(Or, a, b),
                };
                self.b.expr(Bool, kind)
            }
            5 => {
                let x = self.cond(depth - 1);
                self.b.unary(UnaryOp::Not, x)
            }
            _ => {
                let (ty, op) = (self.ty(), self.choices.pick(&[Lt, Eq, Ne, Le, Gt, Ge]));
                let (a, b) = (self.value(ty, depth), self.value(ty, depth));
                self.b.binary(op, a, b)
            }
        }
    }

    fn leaf(&mut self, ty: ElemType) -> ExprId {
        let x = match self.choices.below(8) {
            0 => {
                let bits =
                    if self.choices.below(4) == 0 { self.choices.value(ty) } else { self.choices.below(256) as u64 };
                return self.b.bits(ty, girder_codelet::scalar::mask(ty, bits));
            }
            1 => self.b.load(self.scalar, &[]),
            2 | 3 if !self.set.is_empty() => {
                let local = self.choices.pick(&self.set);
                self.b.read(local)
            }
            4 => {
                let (field, index) = (self.choices.pick(&self.outs), self.b.read(self.index));
                self.b.load(field, &[index])
            }
            _ => {
                let (field, index) = (self.choices.pick(&self.fields), self.at());
                self.b.load(field, &[index])
            }
        };
        if self.b.ty(x) == ty { x } else { self.b.convert(ty, x) }
    }

    fn value(&mut self, ty: ElemType, depth: u32) -> ExprId {
        use BinaryOp::*;
        if depth == 0 || self.choices.spent() {
            return self.leaf(ty);
        }
        match self.choices.below(12) {
            0 | 1 => self.leaf(ty),
            2 | 3 => {
                let from = self.ty();
                let x = self.value(from, depth - 1);
                self.b.convert(ty, x)
            }
            4 => {
                let op = self.choices.pick(&[UnaryOp::Abs, UnaryOp::Neg, UnaryOp::Not, UnaryOp::Abs]);
                let op = if ty.is_signed_int() { op } else { UnaryOp::Not };
                let x = self.value(ty, depth - 1);
                self.b.unary(op, x)
            }
            5 => {
                let (op, by) =
                    (self.choices.pick(&[Shr, Shr, Shl]), self.choices.below(8 * ty.bytes() as usize) as u64);
                let (x, by) = (self.value(ty, depth - 1), self.b.bits(ty, by));
                self.b.binary(op, x, by)
            }
            6 => {
                let (a, b) = (self.value(ty, depth - 1), self.value(ty, depth - 1));
                let (sum, one) = (self.b.binary(Add, a, b), self.b.bits(ty, 1));
                let (sum, one) = (self.b.binary(Add, sum, one), one);
                self.b.binary(Shr, sum, one)
            }
            7 if ty.is_signed_int() => {
                let (a, b) = (self.value(ty, depth - 1), self.value(ty, depth - 1));
                let x = self.b.binary(Sub, a, b);
                self.b.unary(UnaryOp::Abs, x)
            }
            8 => {
                let (cond, a, b) = (self.cond(1), self.value(ty, depth - 1), self.value(ty, depth - 1));
                self.b.expr(ty, ExprKind::Select { cond, a, b })
            }
            9 => {
                let cond = self.cond(1);
                self.b.convert(ty, cond)
            }
            _ => {
                let op = self.choices.pick(&[Add, Sub, Mul, Min, Max, And, Or, Xor]);
                let (a, b) = (self.value(ty, depth - 1), self.value(ty, depth - 1));
                self.b.binary(op, a, b)
            }
        }
    }
}
