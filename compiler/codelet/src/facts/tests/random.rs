//! Codelets made from a tape of choices.

use super::*;

/// A tape of choices; it continues with zeros, which are always the simplest choice.
struct Tape<'a>(std::slice::Iter<'a, u32>);

impl Tape<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.0.next().map_or(0, |&v| v as usize % n)
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

struct Gen<'a> {
    b: Builder,
    tape: Tape<'a>,
    /// Locals that are assigned on every path here.
    scope: Vec<LocalId>,
    labels: Vec<(Label, bool)>,
    sizes: Vec<girder_ir::ids::SizeId>,
    input: FieldId,
    outputs: Vec<(FieldId, usize)>,
}

impl Gen<'_> {
    /// An `i64` expression.
    fn int(&mut self, depth: u32) -> ExprId {
        use BinaryOp::*;
        let simple = depth == 0;
        match self.tape.below(if simple { 3 } else { 9 }) {
            0 => {
                let v = self.tape.pick(&[0, 1, 2, 3, -1, 4, 7, 8, 9]);
                match v {
                    8 if self.b.codelet.multi => self.b.expr(ElemType::I64, ExprKind::Worker),
                    9 if self.b.codelet.multi => self.b.expr(ElemType::I64, ExprKind::Workers),
                    _ => self.b.int(v),
                }
            }
            1 if !self.scope.is_empty() => {
                let local = self.scope[self.tape.below(self.scope.len())];
                self.b.get(local)
            }
            1 | 2 => {
                let size = self.tape.pick(&self.sizes.clone());
                self.b.size_of(size)
            }
            3 => {
                let i = self.position(0);
                let site = self.b.site(Check::Index);
                self.b.expr(ElemType::I64, ExprKind::Load { field: self.input, index: [i].into_iter().collect(), site })
            }
            4 => {
                let (cond, a, b) = (self.cond(depth - 1), self.int(depth - 1), self.int(depth - 1));
                self.b.expr(ElemType::I64, ExprKind::Select { cond, a, b })
            }
            5 => {
                let x = self.int(depth - 1);
                let op = self.tape.pick(&[UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Not, UnaryOp::Popcount, UnaryOp::Clz]);
                self.b.unary(op, x)
            }
            6 => {
                let x = self.int(depth - 1);
                let ty = self.tape.pick(&[ElemType::U8, ElemType::I32, ElemType::U64, ElemType::Bool]);
                let narrow = self.b.convert(ty, x);
                self.b.convert(ElemType::I64, narrow)
            }
            _ => {
                let (x, y) = (self.int(depth - 1), self.int(depth - 1));
                let op = self
                    .tape
                    .pick(&[Add, Add, Add, Sub, Sub, Mul, Min, Max, Div, Rem, And, Or, Xor, Shl, Shr, Add, Sub]);
                self.b.binary(op, x, y)
            }
        }
    }

    /// Makes an index that is usually inside: a local, or an expression clamped to the range.
    fn position(&mut self, axis: usize) -> ExprId {
        let x = self.int(1);
        let (zero, one) = (self.b.int(0), self.b.int(1));
        let size = self.b.size_of(self.sizes[axis]);
        match self.tape.below(6) {
            0 => x,
            1 => self.b.binary(BinaryOp::Max, x, zero),
            2 => {
                let last = self.b.binary(BinaryOp::Sub, size, one);
                let x = self.b.binary(BinaryOp::Min, x, last);
                self.b.binary(BinaryOp::Max, x, zero)
            }
            3 => {
                let x = self.b.unary(UnaryOp::Abs, x);
                self.b.binary(BinaryOp::Rem, x, size)
            }
            _ if !self.scope.is_empty() => {
                let local = self.scope[self.scope.len() - 1 - self.tape.below(self.scope.len().min(3))];
                self.b.get(local)
            }
            _ => zero,
        }
    }

    /// A bound of a loop, small enough for the test to end.
    fn bound(&mut self) -> ExprId {
        if self.tape.below(2) == 0 {
            let size = self.tape.pick(&self.sizes.clone());
            let zero = self.b.int(0);
            return if self.tape.below(2) == 0 { zero } else { self.b.size_of(size) };
        }
        let x = self.int(1);
        let (least, most) = (self.b.int(-6), self.b.int(6));
        let x = self.b.binary(BinaryOp::Max, x, least);
        self.b.binary(BinaryOp::Min, x, most)
    }

    fn cond(&mut self, depth: u32) -> ExprId {
        use BinaryOp::*;
        match self.tape.below(if depth == 0 { 2 } else { 6 }) {
            0..=2 => {
                let op = self.tape.pick(&[Lt, Le, Gt, Ge, Eq, Ne]);
                let (a, b) = (self.int(depth.min(1)), self.int(depth.min(1)));
                self.b.binary(op, a, b)
            }
            3 => {
                let x = self.cond(depth - 1);
                self.b.unary(UnaryOp::Not, x)
            }
            kind => {
                let (a, b) = (self.cond(depth - 1), self.cond(depth - 1));
                let kinds = [
                    ExprKind::AndThen { a, b },
                    ExprKind::OrElse { a, b },
                    ExprKind::Binary { op: And, a, b, site: None },
                    ExprKind::Binary { op: Or, a, b, site: None },
                ];
                let kind = kinds[(kind - 4) * 2 + self.tape.below(2)].clone();
                self.b.expr(ElemType::Bool, kind)
            }
        }
    }

    /// Makes a block and restores the scope at its end.
    fn block(&mut self, depth: u32) -> StmtBlock {
        let scope = self.scope.len();
        let count = self.tape.below(4);
        let block = (0..=count).map(|_| self.stmt(depth)).collect();
        self.scope.truncate(scope);
        block
    }

    fn store(&mut self) -> Stmt {
        let (field, rank) = self.tape.pick(&self.outputs.clone());
        let index: Vec<ExprId> = (0..rank).map(|axis| self.position(axis)).collect();
        let value = self.b.int(1);
        self.b.store(field, &index, value)
    }

    fn stmt(&mut self, depth: u32) -> Stmt {
        let kind = self.tape.below(if depth == 0 { 5 } else { 14 });
        match kind {
            0 | 1 => self.store(),
            2 | 3 if !self.scope.is_empty() && self.tape.below(3) != 0 => {
                let local = self.scope[self.tape.below(self.scope.len())];
                // Indices of loops are not assigned in their bodies; those have no name here.
                let value = self.int(2);
                if self.b.codelet.locals[local].name == "let" { Stmt::Set { local, value } } else { self.store() }
            }
            2 | 3 => {
                let value = self.int(2);
                let local = self.b.local(ElemType::I64);
                self.b.codelet.locals[local].name = "let".into();
                self.scope.push(local);
                Stmt::Set { local, value }
            }
            4 => self.leave(),
            5..=8 => self.for_loop(depth),
            9 | 10 => {
                let cond = self.cond(2);
                let then = self.block(depth - 1);
                let els = self.block(depth - 1);
                Stmt::If { cond, then, els }
            }
            11 => {
                let label = self.b.label();
                self.labels.push((label, false));
                let body = self.block(depth - 1);
                self.labels.pop();
                Stmt::Labelled { label, body }
            }
            12 => {
                let (cond, label, site) = (self.cond(2), self.b.label(), self.b.site(Check::Iterations));
                self.labels.push((label, true));
                let body = self.block(depth - 1);
                self.labels.pop();
                Stmt::While { before: Vec::new(), cond, label, body, site }
            }
            _ => self.reduce(),
        }
    }

    fn for_loop(&mut self, depth: u32) -> Stmt {
        let (lo, hi) = (self.bound(), self.bound());
        let step = self.tape.pick(&[1, 1, 1, 2, 3, -1, -2]);
        let var = self.b.local(ElemType::I64);
        let label = self.b.label();
        self.scope.push(var);
        self.labels.push((label, true));
        let body = self.block(depth - 1);
        self.labels.pop();
        self.scope.pop();
        Stmt::For { var, lo, hi, step, label, body, site: self.b.site(Check::Iterations) }
    }

    /// Break, continue, return or an assertion.
    fn leave(&mut self) -> Stmt {
        let label = (!self.labels.is_empty()).then(|| self.labels[self.tape.below(self.labels.len())]);
        match (self.tape.below(4), label) {
            (0, Some((label, _))) => Stmt::Break(label),
            (1, Some((label, true))) => Stmt::Continue(label),
            (2, _) => Stmt::Return,
            _ => Stmt::Assert { cond: self.cond(2), site: self.b.site(Check::Assert) },
        }
    }

    fn reduce(&mut self) -> Stmt {
        let (lo, hi) = (self.bound(), self.bound());
        let (var, dst) = (self.b.local(ElemType::I64), self.b.local(ElemType::I64));
        self.scope.push(var);
        let value = self.int(2);
        let filter = (self.tape.below(2) == 1).then(|| self.cond(1));
        self.scope.pop();
        self.scope.push(dst);
        let op = self.tape.pick(&[ReduceOp::Sum, ReduceOp::ArgMax, ReduceOp::Min, ReduceOp::Max, ReduceOp::Product]);
        Stmt::Reduce(Box::new(Reduce {
            dst,
            op,
            binders: vec![Binder { var, lo, hi, step: 1 }],
            filter_before: Vec::new(),
            filter,
            before: Vec::new(),
            value,
            factors: None,
            site: self.b.site(Check::Empty),
            iterations: self.b.site(Check::Iterations),
        }))
    }
}

/// `out f0: i64[n], out f1: i64[n, m], out f2: i64, in f3: i64[n]` with a random body.
fn codelet(tape: &[u32], multi: bool) -> Codelet {
    let mut b = Builder::new();
    b.codelet.multi = multi;
    let (n, m) = (b.size("n"), b.size("m"));
    let (dn, dm) = (DimDecl::Size(n), DimDecl::Size(m));
    let y = b.field(Dir::Out, ElemType::I64, &[dn]);
    let z = b.field(Dir::Out, ElemType::I64, &[dn, dm]);
    let s = b.field(Dir::Out, ElemType::I64, &[]);
    let input = b.field(Dir::In, ElemType::I64, &[dn]);
    let outputs = vec![(y, 1), (z, 2), (s, 0)];
    let tape = Tape(tape.iter());
    let mut g = Gen { b, tape, scope: Vec::new(), labels: Vec::new(), sizes: vec![n, m], input, outputs };
    let body = (0..3).map(|_| g.stmt(3)).collect();
    g.b.finish(body)
}

/// Two nested loops over `z` (and one over `y`) whose bounds, steps and indices are close to complete ones.
fn nearly_full(tape: &[u32]) -> Codelet {
    let mut b = Builder::new();
    let (n, m) = (b.size("n"), b.size("m"));
    let (dn, dm) = (DimDecl::Size(n), DimDecl::Size(m));
    let z = b.field(Dir::Out, ElemType::I64, &[dn, dm]);
    let flat = b.binary_size(BinaryOp::Mul, n, m);
    let y = b.field(Dir::Out, ElemType::I64, &[DimDecl::Expr(flat)]);
    let mut tape = Tape(tape.iter());
    let (i, j) = (b.local(ElemType::I64), b.local(ElemType::I64));
    let (vi, vj, vn, vm) = (b.get(i), b.get(j), b.size_of(n), b.size_of(m));
    let one = b.int(1);
    let mut stores = Vec::new();
    for _ in 0..=tape.below(3) {
        let offsets = [tape.pick(&[0, 0, 0, 1, -1]), tape.pick(&[0, 0, 1, -1, 2])].map(|k| b.int(k));
        let (a, c) = (b.binary(BinaryOp::Add, vi, offsets[0]), b.binary(BinaryOp::Add, vj, offsets[1]));
        let width = tape.pick(&[vm, vm, vn]);
        let row = b.binary(BinaryOp::Mul, a, width);
        let at = b.binary(BinaryOp::Add, row, c);
        stores.push(match tape.below(3) {
            0 => b.store(z, &[a, c], one),
            1 => b.store(y, &[at], one),
            _ => {
                let (x, w) = (b.store(z, &[a, c], one), b.store(z, &[a, c], one));
                let bound = b.int(1);
                let cond = b.binary(BinaryOp::Lt, vi, bound);
                Stmt::If { cond, then: vec![x], els: if tape.below(2) == 0 { vec![w] } else { vec![] } }
            }
        });
    }
    let [a, c] = [0, 1].map(|_| tape.pick(&[0, 0, 0, 1, -1])).map(|k| b.int(k));
    let (p, q) = (tape.pick(&[1, 1, 1, 2, 3]), tape.pick(&[1, 1, 1, 2, 3]));
    let inner = b.for_loop(j, c, vm, q, stores);
    let outer = b.for_loop(i, a, vn, p, vec![inner]);
    b.finish(vec![outer])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn facts_hold_in_every_run(tape in prop::collection::vec(any::<u32>(), 0..200), n in 1u64..9, m in 1u64..9) {
        let c = codelet(&tape, false);
        let (y, z) = (Shape::from_slice(&[n]), Shape::from_slice(&[n, m]));
        compare(&c, &[y.clone(), z, Shape::new(), y]);
    }

    #[test]
    fn facts_hold_on_any_number_of_workers(
        tape in prop::collection::vec(any::<u32>(), 0..200),
        (n, m) in (1u64..9, 1u64..9),
        workers in 1u32..4,
    ) {
        let c = codelet(&tape, true);
        let (y, z) = (Shape::from_slice(&[n]), Shape::from_slice(&[n, m]));
        compare_on(&c, &[y.clone(), z, Shape::new(), y], workers);
    }

    #[test]
    fn nearly_full_loops(
        tape in prop::collection::vec(any::<u32>(), 0..24),
        (n, m) in (0u64..5, 0u64..5),
        multi in any::<bool>(),
    ) {
        let mut c = nearly_full(&tape);
        c.multi = multi;
        compare(&c, &[Shape::from_slice(&[n, m]), Shape::from_slice(&[n * m])]);
    }
}
