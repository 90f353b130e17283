//! Random loops over columns that reduce and store their rows: loops that are interchanged or distributed, and loops
//! that almost qualify.
//!
//! Invariant: as in `lanes`.

use super::build::Build;
use super::choices::Choices;
use super::{Case, Neighbours, Spread};
use girder_ir::codelet::*;
use girder_ir::ids::*;
use girder_ir::types::ElemType;
use girder_ir::types::ElemType::*;

struct Columns<'a, 'c> {
    b: Build,
    choices: &'c mut Choices<'a>,
    ty: ElemType,
    /// `in x[m + 4, n + 4]`, `in a[m + 4]` and `in c[n + 4]`.
    square: FieldId,
    rows: FieldId,
    columns: FieldId,
    /// `inout y[n + 4]`
    out: FieldId,
    /// `inout z[m + 4, n + 4]`
    plane: FieldId,
    /// Row and column.
    i: LocalId,
    j: LocalId,
    /// An array as long as `y`, of which every element has been set.
    array: LocalId,
    /// Locals that the loop or the reduction has set.
    set: Vec<LocalId>,
}

/// A random codelet of loops over columns.
pub fn case(choices: &mut Choices<'_>) -> Case {
    let ty = choices.pick(&[F32, F32, F32, F64, I32]);
    let n = choices.pick(&[16u64, 17, 31, 32, 40, 63, 64, 100, 15, 260, 300]);
    let m = choices.pick(&[64u64, 65, 79, 80, 127, 128, 130, 63, 96, 3]);
    let mut b = Build::new();
    let (height, width) = (b.size("m"), b.size("n"));
    let square = b.field(Dir::In, ty, &[DimDecl::Size(height), DimDecl::Size(width)]);
    let rows = b.field(Dir::In, ty, &[DimDecl::Size(height)]);
    let columns = b.field(Dir::In, ty, &[DimDecl::Size(width)]);
    let out = b.field(Dir::InOut, ty, &[DimDecl::Size(width)]);
    let plane = b.field(Dir::InOut, ty, &[DimDecl::Size(height), DimDecl::Size(width)]);
    let array = b.array(ty, &[n as u32 + 4]);
    let (i, j) = (b.local(I64), b.local(I64));
    let mut c = Columns { b, choices, ty, square, rows, columns, out, plane, i, j, array, set: vec![] };
    let body = c.body((m as i64, n as i64));
    let codelet = std::mem::replace(&mut c.b, Build::new()).done(body);
    let choices = c.choices;
    let shapes = vec![
        [m + 4, n + 4].as_slice().into(),
        [m + 4].as_slice().into(),
        [n + 4].as_slice().into(),
        [n + 4].as_slice().into(),
        [m + 4, n + 4].as_slice().into(),
    ];
    let spread = choices.pick(&[Spread::Contiguous, Spread::Contiguous, Spread::Contiguous, Spread::Transposed]);
    let spreads = [spread, Spread::Contiguous, Spread::Contiguous, Spread::Contiguous, spread];
    let neighbours = choices.pick(&[Neighbours::Separate, Neighbours::SideBySide]);
    let mut seed = (0..8).fold(1, |seed, _| seed << 8 | choices.below(256) as u64);
    Case::with(codelet, shapes, &spreads, (2, neighbours), |ty| element(ty, &mut seed))
}

/// Returns an element: sums of such elements depend on their order, and occasionally one is special.
fn element(ty: ElemType, seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    let (word, odd) = (*seed >> 33, [f64::NAN, f64::INFINITY, -0.0, -0.0, 1e-40, 0.0]);
    let value = match word % 4096 {
        0..6 => odd[(word % 4096) as usize],
        _ => (word % 20011) as f64 / 37.0 - 270.0,
    };
    girder_codelet::scalar::convert(F64, ty, value.to_bits())
}

impl Columns<'_, '_> {
    fn body(&mut self, (m, n): (i64, i64)) -> StmtBlock {
        let zero = self.b.bits(self.ty, 0);
        let mut block = vec![Stmt::Fill { local: self.array, value: zero }];
        let column = self.column_loop(m, n);
        if self.choices.below(3) == 0 {
            let (var, label, site) = (self.b.local(I64), self.b.label(), self.b.site(Check::Iterations));
            let (lo, hi) = (self.b.int(0), self.b.int(2));
            block.push(Stmt::For { var, lo, hi, step: 1, label, body: vec![column], site });
        } else {
            block.push(column);
        }
        block
    }

    fn column_loop(&mut self, m: i64, n: i64) -> Stmt {
        let mut body = StmtBlock::new();
        for _ in 0..1 + self.choices.below(3) {
            self.i = self.b.local(I64);
            body.extend(self.sets(2));
            let outside = self.set.len();
            if self.choices.below(3) == 0 {
                body.push(self.rows_loop(m));
                self.set.truncate(outside);
            } else {
                let reduce = self.reduce(m);
                self.set.truncate(outside);
                let Stmt::Reduce(r) = &reduce else { unreachable!("it was made as one") };
                self.set.push(r.dst);
                body.push(reduce);
            }
        }
        body.extend(self.sets(1));
        let value = self.value(2, false);
        let read = self.b.read(self.j);
        if self.choices.below(3) == 0 {
            let site = self.b.site(Check::Index);
            let index = [read].as_slice().into();
            body.push(Stmt::StoreLocal { local: self.array, index, value, site });
            let site = self.b.site(Check::Index);
            let load = ExprKind::LoadLocal { local: self.array, index: [read].as_slice().into(), site };
            let back = self.b.expr(self.ty, load);
            body.push(self.b.store(self.out, &[read], back));
        } else {
            body.push(self.b.store(self.out, &[read], value));
        }
        self.set.clear();
        let (label, site) = (self.b.label(), self.b.site(Check::Iterations));
        let first = self.choices.pick(&[0, 0, 1]);
        let (lo, hi) = (self.b.int(first), self.b.int(n));
        Stmt::For { var: self.j, lo, hi, step: 1, label, body, site }
    }

    /// Returns a loop that stores the rows of a column.
    fn rows_loop(&mut self, m: i64) -> Stmt {
        let mut body = if self.choices.below(3) == 0 { self.sets_of_rows() } else { vec![] };
        let value = self.value(2, true);
        let (i, j) = (self.b.read(self.i), self.b.read(self.j));
        body.push(self.b.store(self.plane, &[i, j], value));
        let (label, site) = (self.b.label(), self.b.site(Check::Iterations));
        let first = self.choices.pick(&[0, 0, 1]);
        let (lo, hi) = (self.b.int(first), self.b.int(m));
        Stmt::For { var: self.i, lo, hi, step: 1, label, body, site }
    }

    fn reduce(&mut self, m: i64) -> Stmt {
        use ReduceOp::*;
        let op = self.choices.pick(&[Sum, Sum, Sum, Product, Min, Max]);
        let first = self.choices.pick(&[0, 0, 1]);
        let (lo, hi) = (self.b.int(first), self.b.int(m));
        let before = if self.choices.below(3) == 0 { self.sets_of_rows() } else { vec![] };
        let (value, factors) = if op == Sum && self.ty.is_float() && self.choices.below(2) == 0 {
            let (x, y) = (self.value(2, true), self.value(1, true));
            (self.b.binary(BinaryOp::Mul, x, y), Some((x, y)))
        } else {
            (self.value(2, true), None)
        };
        let dst = self.b.local(self.ty);
        let binders = vec![Binder { var: self.i, lo, hi, step: 1 }];
        let (site, iterations) = (self.b.site(Check::Empty), self.b.site(Check::Iterations));
        let (filter_before, filter) = (vec![], None);
        Stmt::Reduce(Box::new(Reduce {
            dst,
            op,
            binders,
            filter_before,
            filter,
            before,
            value,
            factors,
            site,
            iterations,
        }))
    }

    /// Sets some locals of a column. If the reduction reads one of them, the loop is not interchanged.
    fn sets(&mut self, most: usize) -> StmtBlock {
        (0..self.choices.below(most + 1)).map(|_| self.set(false)).collect()
    }

    fn sets_of_rows(&mut self) -> StmtBlock {
        (0..1 + self.choices.below(2)).map(|_| self.set(true)).collect()
    }

    fn set(&mut self, inside: bool) -> Stmt {
        let (value, local) = (self.value(2, inside), self.b.local(self.ty));
        self.set.push(local);
        Stmt::Set { local, value }
    }

    fn value(&mut self, depth: u32, inside: bool) -> ExprId {
        use BinaryOp::*;
        if depth == 0 || self.choices.below(3) == 0 {
            return self.leaf(inside);
        }
        let (a, b) = (self.value(depth - 1, inside), self.value(depth - 1, inside));
        let op = self.choices.pick(&[Add, Sub, Mul, Min, Max]);
        self.b.binary(op, a, b)
    }

    fn near(&mut self, var: LocalId) -> ExprId {
        let index = self.b.read(var);
        let by = self.choices.pick(&[0, 0, 0, 1, 4]);
        let by = self.b.int(by);
        self.b.binary(BinaryOp::Add, index, by)
    }

    fn leaf(&mut self, inside: bool) -> ExprId {
        let j = self.near(self.j);
        if inside && self.choices.below(3) > 0 {
            let i = self.near(self.i);
            return match self.choices.below(8) {
                0 => self.b.load(self.rows, &[i]),
                1 => self.b.convert(self.ty, i),
                2 | 3 => {
                    // Another column or row than that which is stored prevents the distribution.
                    let own = self.choices.below(4) > 0;
                    let index = if own { [self.i, self.j].map(|l| self.b.read(l)) } else { [i, j] };
                    self.b.load(self.plane, &index)
                }
                _ => self.b.load(self.square, &[i, j]),
            };
        }
        match self.choices.below(if inside { 12 } else { 8 }) {
            0 | 1 => self.b.load(self.columns, &[j]),
            2 => self.b.convert(self.ty, j),
            3 => {
                let bits = self.choices.value(self.ty);
                self.b.bits(self.ty, bits)
            }
            // A reduction that reads what the loop stores prevents the interchange.
            4 if !inside || self.choices.below(4) == 0 => self.b.load(self.out, &[j]),
            5 | 6 if !self.set.is_empty() && (!inside || self.choices.below(2) == 0) => {
                let local = self.choices.pick(&self.set);
                self.b.read(local)
            }
            _ => self.b.load(self.columns, &[j]),
        }
    }
}
