//! Queries on trees: the expressions and statements of an item, and dotted names.
//!
//! Invariant: the arenas of a tree are filled item by item, so that the nodes of an item are found by its span.

use cranelift_entity::EntityRef;
use girder_source::Span;
use girder_syntax::ast::{Expr, ExprId, ExprKind, Item, Module, Stmt, StmtId};

/// Returns the expressions of a part of an item.
pub fn expressions_within(tree: &Module, part_of_item: Span) -> impl Iterator<Item = (ExprId, &Expr)> {
    part(tree, tree.exprs.written(), |e: &Expr| e.span, part_of_item)
}

/// Returns the expressions of an item, or of a part of one.
pub fn expressions<'t>(tree: &'t Module, item: &Item) -> impl Iterator<Item = (ExprId, &'t Expr)> {
    part(tree, tree.exprs.written(), |e: &Expr| e.span, item.span)
}

/// Returns the statements of an item, or of a part of one.
pub fn statements<'t>(tree: &'t Module, item: &Item) -> impl Iterator<Item = (StmtId, &'t Stmt)> {
    part(tree, tree.stmts.as_values_slice(), |s: &Stmt| s.span, item.span)
}

/// Returns the part of an arena that belongs to an item. A search of the whole arena for each item would take quadratic
/// time.
fn part<'t, K: EntityRef, V>(
    tree: &Module,
    arena: &'t [V],
    span: fn(&V) -> Span,
    wanted: Span,
) -> impl Iterator<Item = (K, &'t V)> {
    let item = tree.items.get(tree.items.partition_point(|i| i.span.hi < wanted.hi)).map_or(wanted, |i| i.span);
    let first = arena.partition_point(|v| span(v).lo < item.lo);
    let inside = move |v: &V| wanted.lo <= span(v).lo && span(v).hi <= wanted.hi;
    (first..arena.len())
        .map(|k| (K::new(k), &arena[k]))
        .take_while(move |(_, v)| span(v).lo < item.hi)
        .filter(move |(_, v)| inside(v))
}

/// Returns `a.b.c` as text for an expression of names and dots.
pub fn dotted(tree: &Module, id: ExprId) -> Option<String> {
    let mut parts = Vec::new();
    let mut at = id;
    loop {
        match &tree.exprs[at].kind {
            ExprKind::Field { base, name } => {
                parts.push(name.name.as_str());
                at = *base;
            }
            ExprKind::Name(name) => {
                parts.push(name.as_str());
                parts.reverse();
                return Some(parts.join("."));
            }
            _ => return None,
        }
    }
}
