//! Formulas as statements of codelets.
//!
//! Invariant: a statement for each operation that some result needs, in their order; literals stand where they are
//! used, so that they take the type of their context.

use super::{Formula, Id, Op, OpKind};
use girder_source::Span;
use girder_syntax::ast::{self, ExprId, Pattern, StmtId, StmtKind};
use girder_syntax::make::{Make, arg, ident};
use girder_typing::ModuleRef;
use smol_str::format_smolstr;

/// Builds the statements that compute a formula; `input` builds the value of an operand. Returns the values of the
/// results.
pub fn statements(
    formula: &Formula,
    make: &mut Make,
    input: &mut dyn FnMut(&mut Make, usize) -> ExprId,
) -> (Vec<StmtId>, Vec<ExprId>) {
    let live = formula.live();
    let mut list = vec![];
    let mut known = vec![false; formula.code.len()];
    for (id, op) in formula.code.iter().enumerate().filter(|(id, _)| live[*id]) {
        if known[id] {
            continue;
        }
        if !has_name(op) {
            continue;
        }
        if let OpKind::Part(_, _, name, ..) = &op.kind {
            // One call gives all its members.
            let args = op.args.iter().map(|&a| arg(used(formula, make, a))).collect();
            let value = make.call_name(name, args);
            let member = |part: &Option<Id>| match part.filter(|&p| live[p] && p >= id) {
                Some(p) => {
                    known[p] = true;
                    Pattern::Name(ident(&format_smolstr!("t{p}")))
                }
                None => Pattern::Wildcard(Span::NONE),
            };
            let pattern = Pattern::Tuple(formula.parts(id).iter().map(member).collect(), Span::NONE);
            let of = ast::Let { mutable: false, pattern, ty: None, value, span: Span::NONE };
            list.push(make.stmt(StmtKind::Decl(ast::Decl::Let(of))));
            continue;
        }
        let value = match op.kind {
            OpKind::Input(k) => input(make, k),
            _ => written(formula, make, id),
        };
        let pattern = Pattern::Name(ident(&format_smolstr!("t{id}")));
        // Without `mut`, an integer would be static, and have no type.
        let mutable = matches!(op.kind, OpKind::Open(_));
        let of = ast::Let { mutable, pattern, ty: None, value, span: Span::NONE };
        list.push(make.stmt(StmtKind::Decl(ast::Decl::Let(of))));
    }
    let results = formula.outputs.iter().map(|&o| used(formula, make, o)).collect();
    (list, results)
}

/// Returns whether the value of an operation has a name; others are written where they are used.
fn has_name(op: &Op) -> bool {
    !matches!(op.kind, OpKind::Int(_) | OpKind::Float(_) | OpKind::Bool(_) | OpKind::Member(..))
}

/// Builds the use of an operation's value.
fn used(formula: &Formula, make: &mut Make, id: Id) -> ExprId {
    if has_name(&formula.code[id]) { make.name(&format_smolstr!("t{id}")) } else { written(formula, make, id) }
}

/// Builds the text of an operation.
fn written(formula: &Formula, make: &mut Make, id: Id) -> ExprId {
    let op = &formula.code[id];
    let args: Vec<ExprId> = op.args.iter().map(|&a| used(formula, make, a)).collect();
    match &op.kind {
        OpKind::Input(_) => make.uint(0),
        OpKind::Open(_) => args[0],
        OpKind::Int(i) => make.int(*i),
        OpKind::Float(bits) => make.float(f64::from_bits(*bits)),
        OpKind::Bool(b) => make.bool(*b),
        OpKind::Binary(o) => make.binary(*o, args[0], args[1]),
        OpKind::Unary(o) => make.unary(*o, args[0]),
        OpKind::Builtin(name) | OpKind::Call(_, _, name) | OpKind::Part(_, _, name, ..) => {
            make.call_name(name, args.into_iter().map(arg).collect())
        }
        OpKind::Convert(ty) => make.call_name(ty.name(), args.into_iter().map(arg).collect()),
        OpKind::Bits(ty) => make.call_name(&format_smolstr!("{ty}.bits"), args.into_iter().map(arg).collect()),
        OpKind::Member(ty, name) => make.name(&format_smolstr!("{ty}.{name}")),
    }
}

/// Returns the codelet functions that a formula calls.
pub fn callees(formula: &Formula) -> Vec<(ModuleRef, usize)> {
    let live = formula.live();
    let calls = formula.code.iter().zip(live).filter(|(_, l)| *l).filter_map(|(op, _)| match &op.kind {
        OpKind::Call(module, item, _) | OpKind::Part(module, item, ..) => Some((*module, *item)),
        _ => None,
    });
    let mut all: Vec<_> = calls.collect();
    all.sort_unstable();
    all.dedup();
    all
}
