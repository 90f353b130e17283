//! Partial derivatives of functions with a rule, where they are called in a function that is differentiated along its
//! operands.
//!
//! A rule gives adjoints, which are linear in the adjoints of the results. With 1 as the adjoint of one result and 0 as
//! those of the others, it gives the partial derivatives of that result.
//!
//! Invariant: a partial derivative reads the arguments and the results of the call, and nothing else.

use super::RuleCall;
use super::activity::Activity;
use super::source::Source;
use crate::gradients::derive::flatten::{Refusal, Symbol};
use crate::gradients::derive::{Arm, Formula, Id, OpKind, text};
use girder_ir::codelet::{Codelet, Label};
use girder_ir::types::ElemType;
use girder_source::Diagnostic;
use girder_syntax::ast::{BinaryOp, UnaryOp};
use girder_typing::{CallApart, ModuleRef};
use rustc_hash::FxHashMap;

/// Returns the calls whose arguments are scalars, with the partial derivatives of those that are active.
pub fn calls(
    source: &Source<'_>,
    codelet: &Codelet,
    apart: FxHashMap<Label, CallApart<'_>>,
    activity: &Activity,
    callees: &mut Vec<(ModuleRef, usize)>,
) -> Result<FxHashMap<Label, RuleCall>, Refusal> {
    let mut all: Vec<_> = apart.into_iter().collect();
    all.sort_unstable_by_key(|(label, _)| *label);
    let mut found = FxHashMap::default();
    for (label, call) in all {
        let (Some(args), Some((item, name))) = (&call.args, source.printed(call.module, call.item)) else { continue };
        callees.push((call.module, item));
        let wanted: Vec<bool> = args.iter().map(|&x| activity.is_active(x)).collect();
        let mut partials = Formula::default();
        let mut by = vec![];
        if wanted.contains(&true) {
            let types: Vec<ElemType> = args.iter().map(|&x| codelet.exprs[x].ty).collect();
            let results: Vec<ElemType> = call.results.iter().map(|&r| codelet.locals[r].ty).collect();
            (partials, by) = of_call(source, (&call, item), &types, &results, &wanted)?;
            callees.extend(text::callees(&partials));
        }
        let CallApart { generics, results, args, .. } = call;
        let args = args.unwrap_or_default();
        found.insert(label, RuleCall { name, args, generics, results, partials, by });
    }
    Ok(found)
}

/// Returns the partial derivatives of a call, and the argument and the result of each.
fn of_call(
    source: &Source<'_>,
    (call, item): (&CallApart<'_>, usize),
    args: &[ElemType],
    results: &[ElemType],
    wanted: &[bool],
) -> Result<(Formula, Vec<(usize, usize)>), Refusal> {
    let inputs = [args, results, results].concat();
    let mut f = Formula { arms: vec![Arm::default()], inputs: inputs.clone(), ..Formula::default() };
    let ids: Vec<Id> = (0..inputs.len()).map(|k| f.add(OpKind::Input(k), &[], Some(inputs[k]), 0)).collect();
    let (n, m) = (args.len(), results.len());
    let symbols: Vec<Symbol> = ids[..n].iter().map(|&id| Symbol::Value(id)).collect();
    let (ys, gs) = ids[n..].split_at(m);
    let mut flatten = source.flatten();
    let of = (call.module, item);
    let made = flatten.rule((f, 0), (of, &call.generics), &symbols, (ys, gs), wanted);
    let name = call.item.name.dotted();
    let (rule, adjoints) = made.map_err(|mut r| {
        r.inside.get_or_insert(name.clone());
        r
    })?;
    let degrees = degrees(&rule, n + m);
    let mut partials = Formula { arms: vec![Arm::default()], inputs: inputs[..n + m].to_vec(), ..Formula::default() };
    let mut by = vec![];
    // A result that is no float has no adjoint.
    for (j, _) in results.iter().enumerate().filter(|(_, ty)| ty.is_float()) {
        let mut at = Unit { rule: &rule, partials: &mut partials, first: n + m, of: n + m + j, moved: vec![] };
        for id in 0..rule.code.len() {
            let moved = at.moved(id);
            at.moved.push(moved);
        }
        let moved = at.moved;
        for (i, &adjoint) in adjoints.iter().enumerate() {
            let Some(adjoint) = adjoint else { continue };
            if degrees[adjoint] != Degree::Linear && !is_number(&rule, adjoint, 0.0) {
                let message = format!("the rule of `{name}` is not linear in the adjoint of the result");
                let d = Diagnostic::error("grad::codelet", call.span, message).here("called here");
                let help = "a loop is differentiated along its operands, and for this the rule has to give `dy` times \
                            a factor; or give the function that has the loop a rule";
                let error = Some(Box::new(d.help(help)));
                return Err(Refusal { span: call.span, what: "a rule", inside: None, error });
            }
            if !is_number(&partials, moved[adjoint], 0.0) {
                partials.outputs.push(moved[adjoint]);
                by.push((i, j));
            }
        }
    }
    Ok((partials, by))
}

/// How an operation of a rule depends on the adjoints of results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Degree {
    /// Not at all.
    Free,
    /// It is a sum of products with one of them each.
    Linear,
    /// In another way.
    Other,
}

/// Returns how each operation of a rule depends on the operands from `first` on.
fn degrees(rule: &Formula, first: usize) -> Vec<Degree> {
    use Degree::{Free, Linear, Other};
    let mut all: Vec<Degree> = vec![];
    for op in &rule.code {
        let of = |k: usize| all[op.args[k]];
        let zero_or_linear = |k: usize| of(k) == Linear || is_number(rule, op.args[k], 0.0);
        let degree = match &op.kind {
            OpKind::Input(k) => {
                if *k >= first {
                    Linear
                } else {
                    Free
                }
            }
            _ if op.args.iter().all(|&a| all[a] == Free) => Free,
            OpKind::Binary(BinaryOp::Add | BinaryOp::Sub) if zero_or_linear(0) && zero_or_linear(1) => Linear,
            OpKind::Binary(BinaryOp::Mul) if [(of(0), of(1)), (of(1), of(0))].contains(&(Free, Linear)) => Linear,
            OpKind::Binary(BinaryOp::Div) if (of(0), of(1)) == (Linear, Free) => Linear,
            OpKind::Unary(UnaryOp::Neg) => of(0),
            OpKind::Convert(ty) if ty.is_float() => of(0),
            OpKind::Builtin(name) => match name.as_str() {
                "select" if of(0) == Free && zero_or_linear(1) && zero_or_linear(2) => Linear,
                "fma" if [(of(0), of(1)), (of(1), of(0))].contains(&(Free, Linear)) && zero_or_linear(2) => Linear,
                _ => Other,
            },
            _ => Other,
        };
        all.push(degree);
    }
    all
}

/// Returns whether an operation is a literal of a value, perhaps with a type.
fn is_number(f: &Formula, id: Id, value: f64) -> bool {
    match f.code[id].kind {
        OpKind::Convert(_) => is_number(f, f.code[id].args[0], value),
        _ => f.literal(id) == Some(value),
    }
}

/// The operations of a rule with 1 as the adjoint of one result, and 0 as those of the others.
struct Unit<'u> {
    rule: &'u Formula,
    partials: &'u mut Formula,
    /// The first operand that is an adjoint.
    first: usize,
    /// The operand that is 1.
    of: usize,
    /// The new operations.
    moved: Vec<Id>,
}

impl Unit<'_> {
    fn moved(&mut self, id: Id) -> Id {
        let op = &self.rule.code[id];
        let args: Vec<Id> = op.args.iter().map(|&a| self.moved[a]).collect();
        let is = |k: usize, value: f64| is_number(self.partials, args[k], value);
        match (&op.kind, op.ty) {
            (OpKind::Input(k), Some(ty)) if *k >= self.first => {
                return self.number(if *k == self.of { 1.0 } else { 0.0 }, ty);
            }
            (OpKind::Binary(BinaryOp::Mul), Some(ty)) if ty.is_float() => {
                if is(0, 0.0) || is(1, 0.0) {
                    return self.number(0.0, ty);
                }
                if is(0, 1.0) && self.partials.code[args[1]].ty.is_some() {
                    return args[1];
                }
                if is(1, 1.0) && self.partials.code[args[0]].ty.is_some() {
                    return args[0];
                }
            }
            (OpKind::Binary(BinaryOp::Div), Some(ty)) if ty.is_float() && is(0, 0.0) => return self.number(0.0, ty),
            (OpKind::Binary(BinaryOp::Add), Some(ty)) if ty.is_float() => {
                if is(0, 0.0) && self.partials.code[args[1]].ty.is_some() {
                    return args[1];
                }
                if is(1, 0.0) && self.partials.code[args[0]].ty.is_some() {
                    return args[0];
                }
            }
            (OpKind::Unary(UnaryOp::Neg), Some(ty)) if ty.is_float() && is(0, 0.0) => return self.number(0.0, ty),
            (OpKind::Convert(_), Some(ty)) if ty.is_float() && (is(0, 0.0) || is(0, 1.0)) => {
                return self.number(if is(0, 1.0) { 1.0 } else { 0.0 }, ty);
            }
            (OpKind::Builtin(name), Some(ty)) if name == "select" && is(1, 0.0) && is(2, 0.0) => {
                return self.number(0.0, ty);
            }
            _ => {}
        }
        self.partials.add(op.kind.clone(), &args, op.ty, 0)
    }

    /// Adds a number of a type.
    fn number(&mut self, value: f64, ty: ElemType) -> Id {
        let literal = self.partials.float(value);
        self.partials.add(OpKind::Convert(ty), &[literal], Some(ty), 0)
    }
}
