//! Random codelets of every form, drawn from a string of bytes so that failing ones shrink.
//!
//! Invariant: every codelet is well formed, ends, and assigns every local before it is read.

use super::build::Build;
use super::choices::{Choices, TYPES};
use super::{Case, Spread};
use girder_ir::codelet::*;
use girder_ir::ids::*;
use girder_ir::types::ElemType;
use girder_ir::types::ElemType::*;

struct Random<'a, 'c> {
    b: Build,
    choices: &'c mut Choices<'a>,
    /// Scalars by type, in [`TYPES`]' order; assigned at the start.
    scalars: Vec<LocalId>,
    arrays: Vec<LocalId>,
    fields: Vec<FieldId>,
    size: SizeId,
    n: u64,
    /// Loop indices in scope.
    indices: Vec<LocalId>,
    /// Labels in scope, and whether they are loops that `continue` may name.
    labels: Vec<(Label, bool)>,
}

/// A random codelet with its vertices.
pub fn case(choices: &mut Choices<'_>) -> Case {
    let n = choices.pick(&[3u64, 3, 4, 1, 2, 5, 17, 40, 0]);
    let mut b = Build::new();
    let size = b.size("n");
    let mut r = Random {
        b,
        choices,
        scalars: Vec::new(),
        arrays: Vec::new(),
        fields: Vec::new(),
        size,
        n,
        indices: Vec::new(),
        labels: Vec::new(),
    };
    r.b.codelet.multi = r.choices.below(5) == 4;
    let shapes = r.declare(n);
    let mut body = r.start();
    body.extend(r.block(3));
    body.extend(r.show());
    let spreads: Vec<Spread> = shapes
        .iter()
        .map(|_| r.choices.pick(&[Spread::Contiguous, Spread::Transposed, Spread::Reversed, Spread::Repeated]))
        .collect();
    let codelet = std::mem::replace(&mut r.b, Build::new()).done(body);
    let instances = 1 + r.choices.below(3);
    let choices = r.choices;
    Case::new(codelet, shapes, &spreads, instances, |ty| choices.value(ty))
}

impl Random<'_, '_> {
    fn declare(&mut self, n: u64) -> Vec<girder_codelet::sizes::Shape> {
        let mut shapes: Vec<girder_codelet::sizes::Shape> = Vec::new();
        let first = self.b.field(Dir::In, F32, &[DimDecl::Size(self.size)]);
        self.fields.push(first);
        shapes.push([n].as_slice().into());
        for k in 0..6 {
            let ty = self.choices.pick(&TYPES);
            let rank = self.choices.below(3);
            let dims = [DimDecl::Size(self.size), DimDecl::Fixed(3)];
            let dims = &dims[..rank];
            let dir = [Dir::In, Dir::InOut, Dir::Out, Dir::In, Dir::InOut, Dir::Const][k];
            let dims = if dir == Dir::Const { &[] } else { dims };
            self.fields.push(self.b.field(dir, ty, dims));
            shapes.push([n, 3][..dims.len()].into());
        }
        for ty in TYPES {
            let local = self.b.local(ty);
            self.scalars.push(local);
        }
        for _ in 0..2 {
            let ty = self.choices.pick(&TYPES);
            let dims: &[u32] = self.choices.pick(&[&[4][..], &[2, 3], &[65]]);
            let array = self.b.array(ty, dims);
            self.arrays.push(array);
        }
        shapes
    }

    fn start(&mut self) -> StmtBlock {
        let mut body = StmtBlock::new();
        for &local in &self.scalars.clone() {
            let ty = self.b.codelet.locals[local].ty;
            let bits = self.choices.value(ty);
            let value = self.b.bits(ty, bits);
            body.push(Stmt::Set { local, value });
        }
        for &local in &self.arrays.clone() {
            let ty = self.b.codelet.locals[local].ty;
            let bits = self.choices.value(ty);
            let value = self.b.bits(ty, bits);
            body.push(Stmt::Fill { local, value });
        }
        body
    }

    /// Stores every scalar, so that a wrong one is detected.
    fn show(&mut self) -> StmtBlock {
        let mut body = StmtBlock::new();
        for field in self.fields.clone() {
            let decl = self.b.codelet.fields[field].clone();
            if !matches!(decl.dir, Dir::Out | Dir::InOut) {
                continue;
            }
            let local = self.scalars[TYPES.iter().position(|&t| t == decl.ty).unwrap_or(0)];
            let value = self.b.read(local);
            let index: Vec<ExprId> = decl.dims.iter().map(|_| self.b.int(0)).collect();
            body.push(self.b.store(field, &index, value));
        }
        body
    }

    fn block(&mut self, depth: u32) -> StmtBlock {
        let mut block = StmtBlock::new();
        for _ in 0..1 + self.choices.below(4) {
            if self.choices.spent() {
                break;
            }
            let stmt = self.stmt(depth);
            let ends = matches!(stmt, Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return);
            block.push(stmt);
            if ends && self.choices.below(4) != 0 {
                break;
            }
        }
        block
    }

    fn stmt(&mut self, depth: u32) -> Stmt {
        match self.choices.below(if depth == 0 { 8 } else { 18 }) {
            0..3 => self.set(),
            3 | 4 => self.store(),
            5 => self.store_local(),
            6 => self.leave(),
            7 => {
                let local = self.choices.pick(&self.arrays.clone());
                let value = self.expr(self.b.codelet.locals[local].ty, 2);
                Stmt::Fill { local, value }
            }
            8..11 => self.for_loop(depth),
            11 => self.while_loop(depth),
            12 | 13 => {
                let cond = self.expr(Bool, 3);
                let then = self.block(depth - 1);
                let els = if self.choices.below(2) == 0 { StmtBlock::new() } else { self.block(depth - 1) };
                Stmt::If { cond, then, els }
            }
            14 => {
                let label = self.b.label();
                self.labels.push((label, false));
                let body = self.block(depth - 1);
                self.labels.pop();
                Stmt::Labelled { label, body }
            }
            15 | 16 => self.reduce(depth),
            _ => self.amp(),
        }
    }

    fn set(&mut self) -> Stmt {
        let local = self.choices.pick(&self.scalars.clone());
        let value = self.expr(self.b.codelet.locals[local].ty, 4);
        Stmt::Set { local, value }
    }

    fn store(&mut self) -> Stmt {
        let field = self.choices.pick(&self.fields.clone());
        let decl = self.b.codelet.fields[field].clone();
        if !matches!(decl.dir, Dir::Out | Dir::InOut) {
            return self.set();
        }
        let index: Vec<ExprId> = self.lengths(field).into_iter().map(|n| self.index(n)).collect();
        let value = self.expr(decl.ty, 3);
        self.b.store(field, &index, value)
    }

    fn store_local(&mut self) -> Stmt {
        let local = self.choices.pick(&self.arrays.clone());
        let decl = self.b.codelet.locals[local].clone();
        let index = decl.array.iter().flatten().map(|&n| self.index(u64::from(n))).collect();
        let value = self.expr(decl.ty, 3);
        Stmt::StoreLocal { local, index, value, site: self.b.site(Check::Index) }
    }

    /// `break`, `continue`, `return` or `assert`.
    fn leave(&mut self) -> Stmt {
        if !self.labels.is_empty() && self.choices.below(3) != 0 {
            let (label, again) = self.choices.pick(&self.labels.clone());
            return if again && self.choices.below(2) == 0 { Stmt::Continue(label) } else { Stmt::Break(label) };
        }
        if self.choices.below(4) == 3 {
            return Stmt::Return;
        }
        let cond = self.expr(Bool, 2);
        Stmt::Assert { cond, site: self.b.site(Check::Assert) }
    }

    /// Bounds that are near each other, and a step.
    fn range(&mut self) -> (ExprId, ExprId, i64) {
        let step = self.choices.pick(&[1, 1, 2, -1, 3, -2, i64::MAX, i64::MIN, -1]);
        let edge = match self.choices.below(8) {
            7 => i64::MAX - 5,
            6 => i64::MIN + 5,
            _ => 0,
        };
        let ends: Vec<ExprId> = (0..2)
            .map(|end| match self.choices.below(4) {
                0 if end == 1 && edge == 0 => self.b.sized(self.size),
                0 | 1 => {
                    let v = self.choices.below(20) as i64 - 2;
                    self.b.int(edge.saturating_add(v))
                }
                _ => {
                    let x = self.expr(I64, 2);
                    let seven = self.b.int(7);
                    let small = self.b.binary(BinaryOp::And, x, seven);
                    let base = self.b.int(edge.saturating_add(-2));
                    self.b.binary(BinaryOp::Add, base, small)
                }
            })
            .collect();
        (ends[0], ends[1], step)
    }

    fn for_loop(&mut self, depth: u32) -> Stmt {
        let (lo, hi, step) = self.range();
        let (var, label) = (self.b.local(I64), self.b.label());
        self.indices.push(var);
        self.labels.push((label, true));
        let body = self.block(depth - 1);
        self.labels.pop();
        self.indices.pop();
        Stmt::For { var, lo, hi, step, label, body, site: self.b.site(Check::Iterations) }
    }

    fn while_loop(&mut self, depth: u32) -> Stmt {
        let label = self.b.label();
        self.labels.push((label, false));
        let before = if self.choices.below(2) == 0 { StmtBlock::new() } else { self.block(depth - 1) };
        self.labels.pop();
        let cond = self.expr(Bool, 3);
        self.labels.push((label, true));
        let body = self.block(depth - 1);
        self.labels.pop();
        Stmt::While { before, cond, label, body, site: self.b.site(Check::Iterations) }
    }

    fn reduce(&mut self, depth: u32) -> Stmt {
        use ReduceOp::*;
        let op = self.choices.pick(&[Sum, Sum, Product, Min, Max, Any, All, ArgMin, ArgMax]);
        let ty = match op {
            Any | All => Bool,
            _ => self.choices.pick(&TYPES.iter().copied().filter(|&t| t != Bool).collect::<Vec<_>>()),
        };
        let mut binders = Vec::new();
        for _ in 0..1 + self.choices.below(2) {
            let (lo, hi, step) = self.range();
            binders.push(Binder { var: self.b.local(I64), lo, hi, step });
        }
        self.indices.extend(binders.iter().map(|b| b.var));
        // Inside the reduction, only its own labels may be left.
        let outer = std::mem::take(&mut self.labels);
        let filter_before = if self.choices.below(3) == 0 { self.plain_block() } else { StmtBlock::new() };
        let filter = (self.choices.below(3) == 0).then(|| self.expr(Bool, 3));
        let before = if self.choices.below(3) == 0 { self.plain_block() } else { StmtBlock::new() };
        let (value, factors) = if op == Sum && ty.is_float() && self.choices.below(2) == 0 {
            let (x, y) = (self.expr(ty, 3), self.expr(ty, 3));
            (self.b.binary(BinaryOp::Mul, x, y), Some((x, y)))
        } else {
            (self.expr(ty, 4), None)
        };
        self.labels = outer;
        self.indices.truncate(self.indices.len() - binders.len());
        let _ = depth;
        let result = match op {
            ArgMin | ArgMax => I64,
            _ => ty,
        };
        let dst = self.scalars[TYPES.iter().position(|&t| t == result).unwrap_or(0)];
        let (site, iterations) = (self.b.site(Check::Empty), self.b.site(Check::Iterations));
        let reduce = Reduce { dst, op, binders, filter_before, filter, before, value, factors, site, iterations };
        Stmt::Reduce(Box::new(reduce))
    }

    /// Statements that are allowed in reductions.
    fn plain_block(&mut self) -> StmtBlock {
        (0..1 + self.choices.below(2)).map(|_| self.set()).collect()
    }

    fn amp(&mut self) -> Stmt {
        let mut matrices = Vec::new();
        for k in 0..3 {
            let Some(m) = self.matrix(k == 0) else { return self.set() };
            matrices.push(m);
        }
        for _ in 0..self.choices.pick(&[0, 0, 0, 1, 2]) {
            let len = self.choices.pick(&[2, 2, 1, 3, 0, -1]);
            for m in &mut matrices[..2] {
                let (dim, step) = (self.choices.below(2) as u8, self.choices.pick(&[1, 1, 2, -1, 0]));
                let len = if self.choices.below(8) == 7 { self.index(3) } else { self.b.int(len) };
                m.outer.push(RowAxis { dim, step, len });
            }
        }
        let site = self.b.site(Check::Shape);
        let [c, a, b] = <[Matrix; 3]>::try_from(matrices).expect("three were made");
        let first = self.choices.below(2) == 0;
        Stmt::Amp(Box::new(Amp { c, a, b, first, site }))
    }

    /// A matrix in a field or array with two dimensions.
    fn matrix(&mut self, written: bool) -> Option<Matrix> {
        let fields = self
            .b
            .codelet
            .fields
            .iter()
            .filter(|(_, f)| f.dims.len() == 2 && (!written || f.dir != Dir::In && f.ty.is_float()));
        let arrays = self
            .b
            .codelet
            .locals
            .iter()
            .filter(|(_, l)| l.array.as_ref().is_some_and(|d| d.len() == 2) && (!written || l.ty.is_float()));
        let bases: Vec<Storage> =
            fields.map(|(f, _)| Storage::Field(f)).chain(arrays.map(|(l, _)| Storage::Local(l))).collect();
        if bases.is_empty() {
            return None;
        }
        let base = self.choices.pick(&bases);
        let row_dim = self.choices.below(2) as u8;
        let lengths = match base {
            Storage::Field(field) => self.lengths(field),
            Storage::Local(local) => {
                self.b.codelet.locals[local].array.iter().flatten().map(|&n| u64::from(n)).collect()
            }
        };
        let at = lengths.into_iter().map(|n| self.index(n)).collect();
        let (rows, cols) = (self.extent(), self.extent());
        let steps = [1, 1, 1, -1, 2, 0];
        let (row_step, col_step) = (self.choices.pick(&steps), self.choices.pick(&steps));
        Some(Matrix { base, at, outer: vec![], row_dim, col_dim: 1 - row_dim, row_step, col_step, rows, cols })
    }

    fn extent(&mut self) -> ExprId {
        if self.choices.below(6) == 5 {
            return self.index(3);
        }
        let n = self.choices.pick(&[2, 2, 2, 1, 0, -1, 3]);
        self.b.int(n)
    }

    /// An index of a dimension, mostly inside it.
    fn index(&mut self, length: u64) -> ExprId {
        let last = (length as i64 - 1).max(0);
        match self.choices.below(24) {
            0..6 => {
                let n = (self.choices.below(4) as i64).min(last);
                self.b.int(n)
            }
            6 => {
                let n = self.choices.below(70) as i64 - 2;
                self.b.int(n)
            }
            7 => self.expr(I64, 2),
            8 if !self.indices.is_empty() => self.moved_index(),
            9..18 if !self.indices.is_empty() => {
                let i = self.moved_index();
                self.clamped(i, last)
            }
            _ => {
                let x = self.expr(I64, 2);
                self.clamped(x, last)
            }
        }
    }

    /// A loop's index, scaled and shifted.
    fn moved_index(&mut self) -> ExprId {
        let local = self.choices.pick(&self.indices.clone());
        let i = self.b.read(local);
        let by = self.choices.pick(&[1, 1, 1, 2, -1]);
        let plus = self.choices.pick(&[0, 0, 1, -1, 2]);
        let (by, plus) = (self.b.int(by), self.b.int(plus));
        let scaled = self.b.binary(BinaryOp::Mul, by, i);
        self.b.binary(BinaryOp::Add, scaled, plus)
    }

    fn clamped(&mut self, x: ExprId, last: i64) -> ExprId {
        let (zero, last) = (self.b.int(0), self.b.int(last));
        let x = self.b.binary(BinaryOp::Max, zero, x);
        self.b.binary(BinaryOp::Min, x, last)
    }

    /// Lengths of a field's dimensions.
    fn lengths(&self, field: FieldId) -> Vec<u64> {
        let length = |d: &DimDecl| if let DimDecl::Fixed(n) = d { *n } else { self.n };
        self.b.codelet.fields[field].dims.iter().map(length).collect()
    }

    fn expr(&mut self, ty: ElemType, depth: u32) -> ExprId {
        if depth == 0 || self.choices.spent() {
            return self.leaf(ty);
        }
        match self.choices.below(16) {
            0..3 => self.leaf(ty),
            3 => self.select(ty, depth),
            4 | 5 => {
                let from = self.choices.pick(&TYPES);
                let x = self.expr(from, depth - 1);
                self.b.convert(ty, x)
            }
            6 => {
                let same: Vec<ElemType> =
                    TYPES.into_iter().filter(|t| t.bytes() == ty.bytes() && (ty == Bool) == (*t == Bool)).collect();
                let from = self.choices.pick(&same);
                let x = self.expr(from, depth - 1);
                self.b.expr(ty, ExprKind::Bits { x })
            }
            7 if ty.is_float() => {
                let [a, b, c] = [(); 3].map(|()| self.expr(ty, depth - 1));
                self.b.expr(ty, ExprKind::Fma { a, b, c })
            }
            7..11 => self.unary(ty, depth),
            _ => self.binary(ty, depth),
        }
    }

    fn select(&mut self, ty: ElemType, depth: u32) -> ExprId {
        let cond = self.expr(Bool, depth - 1);
        let (a, b) = (self.expr(ty, depth - 1), self.expr(ty, depth - 1));
        self.b.expr(ty, ExprKind::Select { cond, a, b })
    }

    fn unary(&mut self, ty: ElemType, depth: u32) -> ExprId {
        use UnaryOp::*;
        let x = self.expr(ty, depth - 1);
        let op = match ty {
            Bool => Not,
            F32 | F64 => self.choices.pick(&[Neg, Abs, Floor, Ceil, Round, Trunc, Sqrt]),
            _ => self.choices.pick(&[Neg, Not, Abs, Popcount, Clz]),
        };
        self.b.unary(op, x)
    }

    fn binary(&mut self, ty: ElemType, depth: u32) -> ExprId {
        use BinaryOp::*;
        let op = match ty {
            Bool => self.choices.pick(&[Eq, Ne, Lt, Le, Gt, Ge, And, Or, Xor]),
            F32 | F64 => self.choices.pick(&[Add, Sub, Mul, Div, Rem, Min, Max]),
            _ => self.choices.pick(&[Add, Sub, Mul, Div, Rem, Min, Max, And, Or, Xor, Shl, Shr]),
        };
        if ty == Bool && self.choices.below(4) == 0 {
            let (a, b) = (self.expr(Bool, depth - 1), self.expr(Bool, depth - 1));
            let kind = if self.choices.below(2) == 0 { ExprKind::AndThen { a, b } } else { ExprKind::OrElse { a, b } };
            return self.b.expr(Bool, kind);
        }
        let operands = match op {
            Eq | Ne => self.choices.pick(&TYPES),
            _ if op.is_comparison() => self.choices.pick(&TYPES.map(|t| if t == Bool { I32 } else { t })),
            _ => ty,
        };
        let a = self.expr(operands, depth - 1);
        let b = match op {
            Shl | Shr if self.choices.below(4) != 0 => {
                let x = self.expr(operands, depth - 1);
                let mask = self.b.bits(operands, u64::from(8 * operands.bytes() - 1));
                self.b.binary(And, x, mask)
            }
            Div | Rem if operands.is_int() && self.choices.below(4) != 0 => {
                let x = self.expr(operands, depth - 1);
                let one = self.b.bits(operands, 1);
                self.b.binary(Or, x, one)
            }
            _ => self.expr(operands, depth - 1),
        };
        self.b.binary(op, a, b)
    }

    fn leaf(&mut self, ty: ElemType) -> ExprId {
        match self.choices.below(6) {
            0 => {
                let bits = self.choices.value(ty);
                self.b.bits(ty, bits)
            }
            1 if ty == I64 && !self.indices.is_empty() => {
                let local = self.choices.pick(&self.indices.clone());
                self.b.read(local)
            }
            2 if ty == I64 => {
                let kinds = [ExprKind::Size(self.size), ExprKind::Worker, ExprKind::Workers];
                let kind = kinds[self.choices.below(if self.b.codelet.multi { 3 } else { 1 })].clone();
                self.b.expr(I64, kind)
            }
            3 => self.load_local(ty),
            4 | 5 => self.load_field(ty),
            _ => self.scalar(ty),
        }
    }

    fn scalar(&mut self, ty: ElemType) -> ExprId {
        let local = self.scalars[TYPES.iter().position(|&t| t == ty).unwrap_or(0)];
        self.b.read(local)
    }

    fn load_local(&mut self, ty: ElemType) -> ExprId {
        let local = self.choices.pick(&self.arrays.clone());
        let decl = self.b.codelet.locals[local].clone();
        if self.choices.spent() {
            return self.scalar(ty);
        }
        let index = decl.array.iter().flatten().map(|&n| self.index(u64::from(n))).collect();
        let site = self.b.site(Check::Index);
        let x = self.b.expr(decl.ty, ExprKind::LoadLocal { local, index, site });
        if decl.ty == ty { x } else { self.b.convert(ty, x) }
    }

    fn load_field(&mut self, ty: ElemType) -> ExprId {
        let field = self.choices.pick(&self.fields.clone());
        let decl = self.b.codelet.fields[field].clone();
        if self.choices.spent() {
            return self.scalar(ty);
        }
        let x = if decl.dir == Dir::Const {
            self.b.expr(decl.ty, ExprKind::ConstField(field))
        } else {
            let index: Vec<ExprId> = self.lengths(field).into_iter().map(|n| self.index(n)).collect();
            self.b.load(field, &index)
        };
        if decl.ty == ty { x } else { self.b.convert(ty, x) }
    }
}
