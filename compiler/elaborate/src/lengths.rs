//! The static length of a range that starts at a number known only at run time: `t..t + 4`.
//!
//! The bounds are compared as polynomials. Their variables are the operands that are neither sums nor products. Equal
//! terms cancel, and what remains must be static.
//!
//! Invariant: no operand that could have an effect is cancelled.

use girder_syntax::ast::{Arg, BinaryOp, ExprId, ExprKind, Index, Module, UnaryOp};

/// The greatest number of expressions of a bound that are examined.
const BUDGET: usize = 256;
/// The greatest number of terms of a polynomial.
const TERMS: usize = 64;

/// A sum of products: the factors of each product, in order, and its coefficient.
pub type Polynomial = Vec<(Vec<ExprId>, i128)>;

/// Returns `end - start`; `None` if a bound is too long.
pub fn difference(tree: &Module, start: ExprId, end: ExprId) -> Option<Polynomial> {
    let mut reader = Reader { tree, atoms: vec![], budget: 2 * BUDGET };
    let start = reader.polynomial(start)?;
    let end = reader.polynomial(end)?;
    sum(end, start, -1)
}

/// Reads polynomials; equal operands are represented by the first of them.
struct Reader<'t> {
    tree: &'t Module,
    atoms: Vec<ExprId>,
    budget: usize,
}

impl Reader<'_> {
    fn polynomial(&mut self, e: ExprId) -> Option<Polynomial> {
        self.budget = self.budget.checked_sub(1)?;
        match &self.tree.exprs[e].kind {
            ExprKind::Paren(inner) => self.polynomial(*inner),
            ExprKind::Int { value, .. } => Some(vec![(vec![], i128::from(*value))]),
            ExprKind::Unary { op: UnaryOp::Neg, value } => sum(vec![], self.polynomial(*value)?, -1),
            ExprKind::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), left, right } => {
                let (left, right) = (self.polynomial(*left)?, self.polynomial(*right)?);
                sum(left, right, if *op == BinaryOp::Add { 1 } else { -1 })
            }
            ExprKind::Binary { op: BinaryOp::Mul, left, right } => {
                let (left, right) = (self.polynomial(*left)?, self.polynomial(*right)?);
                left.into_iter().try_fold(vec![], |total, (factors, k)| {
                    let times = |(more, by): &(Vec<ExprId>, i128)| {
                        let mut all = [&factors[..], more].concat();
                        all.sort();
                        Some((all, by.checked_mul(k)?))
                    };
                    sum(total, right.iter().map(times).collect::<Option<_>>()?, 1)
                })
            }
            _ => {
                let known = self.atoms.iter().copied().find(|&a| same(self.tree, a, e));
                let atom = known.unwrap_or_else(|| {
                    self.atoms.push(e);
                    e
                });
                Some(vec![(vec![atom], 1)])
            }
        }
    }
}

/// Returns `a + sign · b`.
fn sum(mut a: Polynomial, b: Polynomial, sign: i128) -> Option<Polynomial> {
    for (factors, k) in b {
        let k = k.checked_mul(sign)?;
        match a.iter_mut().find(|(f, _)| *f == factors) {
            Some((_, coefficient)) => *coefficient = coefficient.checked_add(k)?,
            None => a.push((factors, k)),
        }
    }
    a.retain(|(_, k)| *k != 0);
    (a.len() <= TERMS).then_some(a)
}

/// Returns whether two operands have the same text, and no effect.
fn same(tree: &Module, a: ExprId, b: ExprId) -> bool {
    let all = |a: &[ExprId], b: &[ExprId]| a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same(tree, a, b));
    let values = |args: &[Arg]| args.iter().map(|a| a.value).collect::<Vec<_>>();
    match (&tree.exprs[a].kind, &tree.exprs[b].kind) {
        (ExprKind::Paren(a), _) => same(tree, *a, b),
        (_, ExprKind::Paren(b)) => same(tree, a, *b),
        (ExprKind::Name(a), ExprKind::Name(b)) => a == b,
        (ExprKind::Int { value: a, .. }, ExprKind::Int { value: b, .. }) => a == b,
        (ExprKind::Field { base: a, name: m }, ExprKind::Field { base: b, name: n }) => {
            m.name == n.name && same(tree, *a, *b)
        }
        (ExprKind::Unary { op: p, value: a }, ExprKind::Unary { op: q, value: b }) => p == q && same(tree, *a, *b),
        (ExprKind::Binary { op: p, left: a, right: x }, ExprKind::Binary { op: q, left: b, right: y }) => {
            p == q && same(tree, *a, *b) && same(tree, *x, *y)
        }
        (ExprKind::Index { base: a, index: x }, ExprKind::Index { base: b, index: y }) => {
            let one = |(x, y): (&Index, &Index)| match (x, y) {
                (Index::Expr(x), Index::Expr(y)) => same(tree, *x, *y),
                _ => false,
            };
            same(tree, *a, *b) && x.len() == y.len() && x.iter().zip(y).all(one)
        }
        // A conversion; other functions may have effects.
        (ExprKind::Call { callee: a, args: x }, ExprKind::Call { callee: b, args: y }) => {
            let is_type = matches!(&tree.exprs[*a].kind,
                ExprKind::Name(n) if n == "int" || girder_ir::types::ElemType::from_name(n).is_some());
            is_type && same(tree, *a, *b) && all(&values(x), &values(y))
        }
        _ => false,
    }
}
