//! Random loops and reductions of the kind that becomes vectors.
//!
//! Invariant: as in `random`; indices stay inside, so that facts prove them.

mod steps;
mod values;

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
    /// The stride of these fields' elements in the current loop.
    stride: i64,
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
    let length = choices.pick(&[8u64, 16, 4, 3, 1, 7, 15, 17, 20, 21, 32, 35, 50, 64, 100, 64, 67, 80]);
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
        stride: 2,
        indices: Vec::new(),
        inner: Vec::new(),
        set: Vec::new(),
    };
    let mut body = StmtBlock::new();
    for _ in 0..1 + l.choices.below(2) {
        body.extend(l.nest(limit));
    }
    let codelet = std::mem::replace(&mut l.b, Build::new()).done(body);
    let choices = l.choices;
    let neighbours = choices.pick(&[Neighbours::Separate, Neighbours::SideBySide]);
    let instances = if neighbours == Neighbours::Separate { 2 } else { choices.pick(&[2, 4, 9, 16, 29]) };
    Case::with(codelet, shapes, &spreads, (instances, neighbours), |ty| choices.value(ty))
}

impl Lanes<'_, '_> {
    /// Returns `0..n`, sometimes a little less, sometimes up to a number that is known only at run time.
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

    fn nest(&mut self, limit: FieldId) -> StmtBlock {
        let (lo, hi) = self.range(limit);
        if self.choices.below(3) == 0 {
            let (var, label) = (self.b.local(I64), self.b.label());
            self.indices.push(var);
            let mut body = if self.choices.below(2) == 0 { self.steps(0) } else { vec![] };
            body.extend(self.innermost(limit));
            self.indices.pop();
            let site = self.b.site(Check::Iterations);
            return vec![Stmt::For { var, lo, hi, step: 1, label, body, site }];
        }
        self.innermost(limit)
    }

    fn innermost(&mut self, limit: FieldId) -> StmtBlock {
        if self.choices.below(2) == 0 {
            return self.reductions(limit);
        }
        let (lo, hi) = self.range(limit);
        let (var, label) = (self.b.local(I64), self.b.label());
        self.indices.push(var);
        self.stride = self.choices.pick(&[2, 3, 4, -1, 1]);
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
        block.push(Stmt::For { var, lo, hi, step: 1, label, body, site: self.b.site(Check::Iterations) });
        block.extend(after);
        block
    }

    fn ty(&mut self) -> ElemType {
        let types = self.types;
        self.choices.pick(&[types[0], types[0], types[0], types[1], types[2]])
    }

    fn of(&self, fields: &[FieldId], ty: ElemType) -> FieldId {
        fields[self.types.iter().position(|&t| t == ty).unwrap_or(0)]
    }

    /// Makes several reductions, mostly over the same ranges.
    fn reductions(&mut self, limit: FieldId) -> StmtBlock {
        let mut block = StmtBlock::new();
        let binders = self.choices.pick(&[1, 1, 2]);
        let mut ranges: Vec<(ExprId, ExprId)> = (0..binders).map(|_| self.range(limit)).collect();
        for _ in 0..self.choices.pick(&[1, 1, 2, 3, 5]) {
            block.extend(self.reduce(&ranges));
            if self.choices.below(8) == 0 {
                ranges[0] = self.range(limit);
            }
        }
        block
    }

    fn reduce(&mut self, ranges: &[(ExprId, ExprId)]) -> StmtBlock {
        use ReduceOp::*;
        let op = self.choices.pick(&[Sum, Sum, Sum, Product, Min, Max, Any, All, ArgMin, ArgMax]);
        let ty = if matches!(op, Any | All) { Bool } else { self.ty() };
        let binder = |&(lo, hi): &(ExprId, ExprId)| Binder { var: self.b.local(I64), lo, hi, step: 1 };
        let binders: Vec<Binder> = ranges.iter().map(binder).collect();
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
        let (site, iterations) = (self.b.site(Check::Empty), self.b.site(Check::Iterations));
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
            iterations,
        }));
        let shown = self.b.read(dst);
        let shown = self.b.convert(self.types[0], shown);
        let index = self.line_index();
        let field = self.of(&self.outs, self.types[0]);
        vec![reduce, self.b.store(field, &[index], shown)]
    }
}
