//! Random loops and reductions of the kind that becomes vectors.
//!
//! Invariant: as in `random`; indices stay inside, so that facts prove them.

use super::build::Build;
use super::choices::Choices;
use super::{Case, Neighbours, Spread};
use girder_ir::codelet::*;
use girder_ir::ids::*;
use girder_ir::types::ElemType;
use girder_ir::types::ElemType::*;

struct Lanes<'a, 'c> {
    b: Build,
    choices: &'c mut Choices<'a>,
    types: [ElemType; 3],
    n: SizeId,
    /// `in a[n + 4]`, `in b[n + 4, n + 4]` and `in s`, for each type.
    vectors: Vec<FieldId>,
    squares: Vec<FieldId>,
    scalars: Vec<FieldId>,
    /// `inout o[n + 4]` and `out q[n + 4, n + 4]`, for each type.
    outs: Vec<FieldId>,
    grids: Vec<FieldId>,
    /// `in c[4 * n + 4]` and `inout p[4 * n + 4]`, for each type, and `in d[4 * n + 4]` of narrow ones.
    longs: Vec<FieldId>,
    long_outs: Vec<FieldId>,
    narrow: [FieldId; 2],
    /// How far apart elements of those lie in this loop.
    apart: i64,
    /// Loop indices, outermost first; the last one is that of the vectors.
    indices: Vec<LocalId>,
    /// Indices of loops inside that of the vectors.
    inner: Vec<LocalId>,
    /// Locals that are set, by type.
    set: Vec<LocalId>,
}

/// A random codelet of loops over vectors.
pub fn case(choices: &mut Choices<'_>) -> Case {
    let wide = choices.below(3) == 0;
    let types = if wide { [F64, I64, U64] } else { [F32, I32, U32] };
    let length = choices.pick(&[8u64, 16, 4, 3, 1, 7, 15, 17, 20, 21, 32, 35, 50, 64, 100]);
    let mut b = Build::new();
    let (n, m, long) = (b.size("n"), b.size("m"), b.size("l"));
    let probe = b.field(Dir::In, U8, &[DimDecl::Size(n)]);
    let _ = probe;
    let line = [DimDecl::Size(m)];
    let square = [DimDecl::Size(m), DimDecl::Size(m)];
    let mut fields = |dir, dims: &[DimDecl]| types.map(|ty| b.field(dir, ty, dims)).to_vec();
    let vectors = fields(Dir::In, &line);
    let squares = fields(Dir::In, &square);
    let scalars = fields(Dir::In, &[]);
    let outs = fields(Dir::InOut, &line);
    let grids = fields(Dir::Out, &square);
    let longs = fields(Dir::In, &[DimDecl::Size(long)]);
    let long_outs = fields(Dir::InOut, &[DimDecl::Size(long)]);
    let narrow = [U8, I16].map(|ty| b.field(Dir::In, ty, &[DimDecl::Size(long)]));
    let limit = b.field(Dir::Const, U8, &[]);
    let mut shapes = Vec::new();
    for decl in b.codelet.fields.values() {
        let lengths = decl.dims.iter().map(|d| match d {
            DimDecl::Size(size) if *size == n => length,
            DimDecl::Size(size) if *size == long => 4 * length + 4,
            _ => length + 4,
        });
        shapes.push(lengths.collect());
    }
    let spreads: Vec<Spread> = b
        .codelet
        .fields
        .values()
        .map(|_| {
            choices.pick(&[
                Spread::Contiguous,
                Spread::Contiguous,
                Spread::Contiguous,
                Spread::Transposed,
                Spread::Reversed,
                Spread::Repeated,
            ])
        })
        .collect();
    let mut l = Lanes {
        b,
        choices,
        types,
        n,
        vectors,
        squares,
        scalars,
        outs,
        grids,
        longs,
        long_outs,
        narrow,
        apart: 2,
        indices: Vec::new(),
        inner: Vec::new(),
        set: Vec::new(),
    };
    let mut body = Block::new();
    for _ in 0..1 + l.choices.below(2) {
        body.extend(l.nest(limit));
    }
    let codelet = std::mem::replace(&mut l.b, Build::new()).done(body);
    let choices = l.choices;
    let neighbours = choices.pick(&[Neighbours::Apart, Neighbours::SideBySide]);
    let instances = if neighbours == Neighbours::Apart { 2 } else { choices.pick(&[2, 4, 9, 16, 29]) };
    Case::with(codelet, shapes, &spreads, (instances, neighbours), |ty| choices.value(ty))
}

impl Lanes<'_, '_> {
    /// `0..n`, sometimes a little less, sometimes up to a number that only the vertex knows.
    fn range(&mut self, limit: FieldId) -> (ExprId, ExprId) {
        let n = self.b.sized(self.n);
        match self.choices.below(8) {
            0 => {
                let one = self.b.int(1);
                (one, n)
            }
            1 => {
                let limit = self.b.expr(U8, ExprKind::ConstField(limit));
                let limit = self.b.convert(I64, limit);
                (self.b.int(0), self.b.binary(BinaryOp::Min, limit, n))
            }
            _ => (self.b.int(0), n),
        }
    }

    fn nest(&mut self, limit: FieldId) -> Block {
        let (lo, hi) = self.range(limit);
        if self.choices.below(3) == 0 {
            let (var, label) = (self.b.local(I64), self.b.label());
            self.indices.push(var);
            let body = self.innermost(limit);
            self.indices.pop();
            let site = self.b.site(Check::Turns);
            return vec![Stmt::For { var, lo, hi, step: 1, label, body, site }];
        }
        self.innermost(limit)
    }

    fn innermost(&mut self, limit: FieldId) -> Block {
        if self.choices.below(2) == 0 {
            return self.reduce(limit);
        }
        let (lo, hi) = self.range(limit);
        let (var, label) = (self.b.local(I64), self.b.label());
        self.indices.push(var);
        self.apart = self.choices.pick(&[2, 3, 4, -1, 1]);
        let mut body = self.steps(2);
        let mut around = [vec![], vec![]];
        if self.choices.below(3) == 0 {
            let (before, inside, after) = self.total();
            body.extend(inside);
            around = [vec![before], after];
        }
        if self.choices.below(6) == 0 {
            let cond = self.value(Bool, 1);
            body.push(Stmt::If { cond, then: vec![Stmt::Continue(label)], els: vec![] });
        }
        match self.choices.below(6) {
            0 | 1 => body.push(self.branches(2)),
            2 if !around[0].is_empty() => {}
            2 | 3 => body.extend(self.neighbours()),
            _ => body.push(self.store()),
        }
        if self.choices.below(3) == 0 {
            body.extend(self.steps(1));
            body.push(self.store());
        }
        self.set.clear();
        self.indices.pop();
        let [mut block, after] = around;
        block.push(Stmt::For { var, lo, hi, step: 1, label, body, site: self.b.site(Check::Turns) });
        block.extend(after);
        block
    }

    /// A local that a loop adds to: what stands before the loop, in it, and after it.
    fn total(&mut self) -> (Stmt, Block, Block) {
        let ty = self.ty();
        let local = self.b.local(ty);
        let known = std::mem::take(&mut self.set);
        let indices = std::mem::take(&mut self.indices);
        let before = Stmt::Set { local, value: self.leaf(ty) };
        (self.set, self.indices) = (known, indices);
        let op = match ty.is_float() {
            true => self.choices.pick(&[BinaryOp::Min, BinaryOp::Max, BinaryOp::Add]),
            false => self.choices.pick(&[BinaryOp::Add, BinaryOp::Add, BinaryOp::Mul, BinaryOp::Min, BinaryOp::Max]),
        };
        let take = |l: &mut Self| {
            let (old, value) = (l.b.read(local), l.value(ty, 2));
            let value = match l.choices.below(4) {
                0 if op == BinaryOp::Add => l.b.binary(BinaryOp::Sub, old, value),
                1 => l.b.binary(op, value, old),
                _ => l.b.binary(op, old, value),
            };
            Stmt::Set { local, value }
        };
        let inside = match self.choices.below(5) {
            0 => vec![take(self)],
            1 => {
                let (cond, then, els) = (self.value(Bool, 2), take(self), take(self));
                vec![Stmt::If { cond, then: vec![then], els: vec![els] }]
            }
            2 => {
                let (lo, hi) = (self.b.int(0), self.choices.pick(&[1, 3, 9]));
                let (hi, n) = (self.b.int(hi), self.b.sized(self.n));
                let hi = self.b.binary(BinaryOp::Min, hi, n);
                let (var, label) = (self.b.local(I64), self.b.label());
                self.inner.push(var);
                let body = vec![take(self)];
                self.inner.pop();
                vec![Stmt::For { var, lo, hi, step: 1, label, body, site: self.b.site(Check::Turns) }]
            }
            _ => {
                let (cond, then) = (self.value(Bool, 2), take(self));
                vec![Stmt::If { cond, then: vec![then], els: vec![] }]
            }
        };
        let outer = self.indices.pop();
        let (shown, index) = (self.b.read(local), self.line_index());
        let after = vec![self.b.store(self.of(&self.outs, ty), &[index], shown)];
        self.indices.extend(outer);
        (before, inside, after)
    }

    fn steps(&mut self, depth: u32) -> Block {
        let mut block = Block::new();
        for _ in 0..self.choices.below(3) {
            let ty = self.ty();
            let value = self.value(ty, 3);
            let local = self.b.local(ty);
            block.push(Stmt::Set { local, value });
            self.set.push(local);
            if depth > 0 && self.choices.below(3) == 0 {
                block.push(self.nested(local, ty));
            }
            if depth > 0 && self.choices.below(3) == 0 {
                let cond = self.value(Bool, 2);
                let (yes, no) = (self.calm(ty), self.calm(ty));
                let els = if self.choices.below(2) == 0 { vec![] } else { vec![Stmt::Set { local, value: no }] };
                block.push(Stmt::If { cond, then: vec![Stmt::Set { local, value: yes }], els });
            }
        }
        block
    }

    /// A condition with stores in its branches: one, both, of the same element or not, and conditions in them.
    fn branches(&mut self, depth: u32) -> Stmt {
        if self.choices.below(6) == 0 {
            return self.guarded();
        }
        let cond = if self.choices.below(4) == 0 {
            let (field, zero) = (self.of(&self.scalars, self.types[0]), self.b.bits(self.types[0], 0));
            let x = self.b.load(field, &[]);
            self.b.binary(BinaryOp::Lt, x, zero)
        } else {
            self.value(Bool, 2)
        };
        let known = self.set.len();
        let branch = |l: &mut Self, same: Option<(FieldId, Vec<ExprId>, ElemType)>| {
            let mut block = if l.choices.below(3) == 0 { l.steps(0) } else { vec![] };
            match same {
                Some((field, index, ty)) if depth == 0 || l.choices.below(3) > 0 => {
                    let value = l.value(ty, 2);
                    block.push(l.b.store(field, &index, value));
                }
                _ if depth > 0 && l.choices.below(3) == 0 => block.push(l.branches(depth - 1)),
                _ => block.push(l.store()),
            }
            l.set.truncate(known);
            block
        };
        match self.choices.below(4) {
            0 => Stmt::If { cond, then: branch(self, None), els: vec![] },
            1 => Stmt::If { cond, then: branch(self, None), els: branch(self, None) },
            _ => {
                let ty = self.ty();
                let (field, index) = (self.of(&self.outs, ty), vec![self.line_index()]);
                let same = Some((field, index, ty));
                Stmt::If { cond, then: branch(self, same.clone()), els: branch(self, same) }
            }
        }
    }

    /// An access that is inside only because of the condition.
    fn guarded(&mut self) -> Stmt {
        let ty = self.ty();
        let i = match self.indices.last() {
            Some(&i) => self.b.read(i),
            None => self.b.int(0),
        };
        let by = self.choices.below(9) as i64;
        let by = self.b.int(by);
        let cond = self.b.binary(BinaryOp::Ge, i, by);
        let before = self.b.binary(BinaryOp::Sub, i, by);
        let (vectors, outs) = (self.of(&self.vectors, ty), self.of(&self.outs, ty));
        let (x, other) = (self.b.load(vectors, &[before]), self.value(ty, 1));
        let value = self.b.binary(BinaryOp::Add, x, other);
        let at = if self.choices.below(3) == 0 { before } else { i };
        let els = match self.choices.below(2) {
            0 => vec![],
            _ => {
                let value = self.value(ty, 1);
                vec![self.b.store(outs, &[i], value)]
            }
        };
        Stmt::If { cond, then: vec![self.b.store(outs, &[at], value)], els }
    }

    /// Something with a loop, or a condition that all places share, that sets a local which is set.
    fn nested(&mut self, local: LocalId, ty: ElemType) -> Stmt {
        let hi = self.choices.pick(&[1, 2, 3, 5, 8, 16, 17, 35]);
        let n = self.b.sized(self.n);
        let (lo, hi) = (self.b.int(0), self.b.int(hi));
        let hi = self.b.binary(BinaryOp::Min, hi, n);
        let var = self.b.local(I64);
        self.inner.push(var);
        let stmt = match self.choices.below(4) {
            0 => {
                let value = self.value(ty, 2);
                let label = self.b.label();
                let (body, site) = (vec![Stmt::Set { local, value }], self.b.site(Check::Turns));
                Stmt::For { var, lo, hi, step: 1, label, body, site }
            }
            1 => {
                self.inner.pop();
                let field = self.of(&self.scalars, ty);
                let (x, zero) = (self.b.load(field, &[]), self.b.bits(ty, 0));
                let cond = self.b.binary(BinaryOp::Lt, x, zero);
                let value = self.value(ty, 2);
                return Stmt::If { cond, then: vec![Stmt::Set { local, value }], els: vec![] };
            }
            _ => {
                use ReduceOp::*;
                let op = self.choices.pick(&[Sum, Sum, Sum, Product, Min, Max]);
                let (value, factors) = if op == Sum && ty.is_float() && self.choices.below(2) == 0 {
                    let (x, y) = (self.value(ty, 1), self.value(ty, 1));
                    (self.b.binary(BinaryOp::Mul, x, y), Some((x, y)))
                } else {
                    (self.value(ty, 2), None)
                };
                let mut binders = vec![Binder { var, lo, hi, step: 1 }];
                if self.choices.below(4) == 0 {
                    let three = self.b.int(3);
                    binders.insert(0, Binder { var: self.b.local(I64), lo, hi: three, step: 2 });
                }
                let (site, turns) = (self.b.site(Check::Empty), self.b.site(Check::Turns));
                let (filter_before, filter, before) = (vec![], None, vec![]);
                let dst = local;
                let reduce = Reduce { dst, op, binders, filter_before, filter, before, value, factors, site, turns };
                Stmt::Reduce(Box::new(reduce))
            }
        };
        self.inner.pop();
        stmt
    }

    fn ty(&mut self) -> ElemType {
        let types = self.types;
        self.choices.pick(&[types[0], types[0], types[0], types[1], types[2]])
    }

    fn of(&self, fields: &[FieldId], ty: ElemType) -> FieldId {
        fields[self.types.iter().position(|&t| t == ty).unwrap_or(0)]
    }

    fn store(&mut self) -> Stmt {
        let ty = self.ty();
        let value = self.value(ty, 3);
        if self.choices.below(4) == 0 {
            let index = self.apart_index();
            let field = self.of(&self.long_outs, ty);
            return self.b.store(field, &[index], value);
        }
        if self.choices.below(3) == 0 && self.indices.len() > 1 {
            let index: Vec<ExprId> = self.indices.clone().iter().map(|&i| self.b.read(i)).collect();
            let field = self.of(&self.grids, ty);
            return self.b.store(field, &index, value);
        }
        let index = self.line_index();
        let field = self.of(&self.outs, ty);
        self.b.store(field, &[index], value)
    }

    /// Stores of elements that lie side by side, some of them or all.
    fn neighbours(&mut self) -> Block {
        let ty = self.ty();
        let count = self.apart.unsigned_abs() as usize;
        let stored: Vec<i64> = (0..count as i64).filter(|_| self.choices.below(4) > 0).collect();
        let mut block = Block::new();
        for first in stored {
            let value = self.value(ty, 2);
            let i = match self.indices.last() {
                Some(&i) => self.b.read(i),
                None => self.b.int(0),
            };
            let (apart, first) = (self.b.int(self.apart.abs()), self.b.int(first));
            let at = self.b.binary(BinaryOp::Mul, i, apart);
            let at = self.b.binary(BinaryOp::Add, first, at);
            let field = self.of(&self.long_outs, ty);
            block.push(self.b.store(field, &[at], value));
        }
        block
    }

    /// An index of a long field whose neighbours in the vectors' loop lie apart.
    fn apart_index(&mut self) -> ExprId {
        let i = match self.indices.last() {
            Some(&i) => self.b.read(i),
            None => self.b.int(0),
        };
        let first = self.choices.below(self.apart.unsigned_abs() as usize + 1) as i64;
        if self.apart < 0 {
            let (n, first) = (self.b.sized(self.n), self.b.int(first));
            let last = self.b.binary(BinaryOp::Add, n, first);
            return self.b.binary(BinaryOp::Sub, last, i);
        }
        let (apart, first) = (self.b.int(self.apart), self.b.int(first));
        let at = self.b.binary(BinaryOp::Mul, apart, i);
        self.b.binary(BinaryOp::Add, at, first)
    }

    /// An element of a long field, of the type or a narrow one.
    fn apart_element(&mut self, ty: ElemType) -> ExprId {
        let index = self.apart_index();
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

    /// An index of the vectors' loop, moved by up to four, or the last first.
    fn line_index(&mut self) -> ExprId {
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

    fn reduce(&mut self, limit: FieldId) -> Block {
        use ReduceOp::*;
        let op = self.choices.pick(&[Sum, Sum, Sum, Product, Min, Max, Any, All, ArgMin, ArgMax]);
        let ty = if matches!(op, Any | All) { Bool } else { self.ty() };
        let mut binders = Vec::new();
        for _ in 0..self.choices.pick(&[1, 1, 2]) {
            let (lo, hi) = self.range(limit);
            binders.push(Binder { var: self.b.local(I64), lo, hi, step: 1 });
        }
        self.indices.extend(binders.iter().map(|b| b.var));
        let filtered = self.choices.below(3) == 0;
        let filter_before = if filtered { self.steps(0) } else { vec![] };
        let filter = if filtered { Some(self.value(Bool, 2)) } else { None };
        let before = self.steps(1);
        let (value, factors) = if op == Sum && ty.is_float() && self.choices.below(2) == 0 {
            let (x, y) = (self.value(ty, 2), self.value(ty, 2));
            (self.b.binary(BinaryOp::Mul, x, y), Some((x, y)))
        } else {
            (self.value(ty, 3), None)
        };
        self.set.clear();
        self.indices.truncate(self.indices.len() - binders.len());
        let result = match op {
            ArgMin | ArgMax => I64,
            _ => ty,
        };
        let dst = self.b.local(result);
        let (site, turns) = (self.b.site(Check::Empty), self.b.site(Check::Turns));
        let reduce = Stmt::Reduce(Box::new(Reduce {
            dst,
            op,
            binders,
            filter_before,
            filter,
            before,
            value,
            factors,
            site,
            turns,
        }));
        let shown = self.b.read(dst);
        let shown = self.b.convert(self.types[0], shown);
        let index = self.line_index();
        let field = self.of(&self.outs, self.types[0]);
        vec![reduce, self.b.store(field, &[index], shown)]
    }

    /// A value that loads nothing.
    fn calm(&mut self, ty: ElemType) -> ExprId {
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

    fn value(&mut self, ty: ElemType, depth: u32) -> ExprId {
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
                    self.choices.pick(&[UnaryOp::Neg, UnaryOp::Not, UnaryOp::Abs])
                };
                self.b.unary(op, x)
            }
            8 if !ty.is_float() => {
                let x = self.value(ty, depth - 1);
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

    fn leaf(&mut self, ty: ElemType) -> ExprId {
        if let Some(&inner) = self.inner.last()
            && self.choices.below(2) == 0
        {
            return self.inner_leaf(inner, ty);
        }
        match self.choices.below(12) {
            10 | 11 => self.apart_element(ty),
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

    /// An element whose place depends on an inner loop.
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
