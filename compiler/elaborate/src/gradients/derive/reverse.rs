//! The derivative of a formula: the adjoints of its operands, given those of its results.
//!
//! Operands of the derivative are the operands of the formula, then its results, then their adjoints; those that the
//! derivative does not mention need not be kept.

use super::flatten::{Flatten, Refusal, Symbol};
use super::{Formula, Id, OpKind};
use girder_ir::types::ElemType;
use girder_syntax::ast::{BinaryOp, UnaryOp};
use girder_typing::ModuleRef;
use rustc_hash::FxHashMap;
use smol_str::{SmolStr, format_smolstr};

/// Returns the derivative of a formula by the operands of `wanted`; a wanted operand on which no result depends gets
/// no result. The second value names the operand of each result.
///
/// With `hold`, the derivative may read the results; without, it computes them again.
pub fn derivative(
    flatten: &mut Flatten<'_>,
    of: &Formula,
    wanted: &[bool],
    hold: bool,
) -> Result<(Formula, Vec<usize>), Refusal> {
    let mut f = of.clone();
    let (n, m) = (of.inputs.len(), of.outputs.len());
    let types: Vec<ElemType> = of.outputs.iter().map(|&o| of.code[o].ty.unwrap_or(ElemType::F32)).collect();
    f.inputs.extend(types.iter().chain(&types));
    let active = active(of, wanted);
    let mut w =
        Reverse { flatten, f, adjoints: FxHashMap::default(), leaving: FxHashMap::default(), known: vec![], arm: 0 };
    for (j, &o) in of.outputs.iter().enumerate() {
        let y = w.f.add(OpKind::Input(n + j), &[], Some(types[j]), 0);
        let d = w.f.add(OpKind::Input(n + m + j), &[], Some(types[j]), 0);
        if hold {
            w.known.push((o, y));
        }
        if active[o] {
            w.to(0, o, d);
        }
    }
    let mut arm = 0;
    for k in (0..of.code.len()).rev() {
        let here = of.code[k].arm;
        while !w.f.is_around(arm, here) {
            w.leave(arm);
            arm = w.f.arms[arm].outer;
        }
        arm = here;
        w.arm = here;
        if let OpKind::Part(..) = of.code[k].kind {
            w.part(k, &active)?;
            continue;
        }
        if let (true, Some(g)) = (active[k], w.adjoints.get(&k).copied()) {
            w.step(k, g, &active)?;
        }
    }
    while arm != 0 {
        w.leave(arm);
        arm = w.f.arms[arm].outer;
    }
    let mut f = w.f;
    let mut by = vec![];
    f.outputs.clear();
    for (k, op) in of.code.iter().enumerate() {
        if let (OpKind::Input(i), Some(&d)) = (&op.kind, w.adjoints.get(&k))
            && wanted[*i]
        {
            by.push(*i);
            f.outputs.push(d);
        }
    }
    let which: String = by.iter().map(|i| format!("{i}")).collect::<Vec<_>>().join("_");
    let types: Vec<SmolStr> = of.inputs.iter().map(|t| t.name().into()).collect();
    let again = if hold { "" } else { "_again" };
    f.name = format_smolstr!("grad.{}_{}_by_{which}{again}", of.name, types.join("_"));
    Ok((f, by))
}

/// Returns for each operation whether it is a float that depends on a wanted operand.
fn active(f: &Formula, wanted: &[bool]) -> Vec<bool> {
    let mut active = vec![false; f.code.len()];
    for (k, op) in f.code.iter().enumerate() {
        active[k] = op.ty.is_some_and(|t| t.is_float())
            && match &op.kind {
                OpKind::Input(i) => wanted[*i],
                OpKind::Bits(_) => false,
                OpKind::Builtin(name) if matches!(name.as_str(), "floor" | "ceil" | "round" | "trunc") => false,
                _ => op.args.iter().any(|&a| active[a]),
            };
    }
    active
}

struct Reverse<'r, 'n> {
    flatten: &'r mut Flatten<'n>,
    f: Formula,
    adjoints: FxHashMap<Id, Id>,
    /// Adjoints of operations outside of an arm, from inside the arm.
    leaving: FxHashMap<(usize, Id), Id>,
    /// Results, and the operands that hold them.
    known: Vec<(Id, Id)>,
    /// The arm of new operations: a derivative of the formula masks what leaves it, as here.
    arm: usize,
}

impl Reverse<'_, '_> {
    /// Adds to the adjoint of an operation, from an arm. From an arm that is not around the operation, the adjoint
    /// first leaves the arms up to one that is.
    fn to(&mut self, arm: usize, id: Id, d: Id) {
        let inside = self.f.is_around(arm, self.f.code[id].arm);
        let old = if inside { self.adjoints.get(&id) } else { self.leaving.get(&(arm, id)) }.copied();
        let new = match old {
            Some(old) => {
                self.arm = if inside { self.f.code[id].arm } else { arm };
                let sum = self.binary(BinaryOp::Add, old, d);
                self.arm = arm;
                sum
            }
            None => d,
        };
        match inside {
            true => self.adjoints.insert(id, new),
            false => self.leaving.insert((arm, id), new),
        };
    }

    /// Hands the adjoints that leave an arm to the arm around it, masked by the condition.
    fn leave(&mut self, arm: usize) {
        let mut all: Vec<(Id, Id)> =
            self.leaving.iter().filter(|((a, _), _)| *a == arm).map(|((_, id), d)| (*id, *d)).collect();
        all.sort_unstable();
        let super::Arm { outer, cond, negated } = self.f.arms[arm];
        self.arm = outer;
        for (id, d) in all {
            self.leaving.remove(&(arm, id));
            let zero = self.f.float(0.0);
            let masked = if negated { self.select(cond, zero, d) } else { self.select(cond, d, zero) };
            self.to(outer, id, masked);
        }
    }

    fn ty(&self, id: Id) -> Option<ElemType> {
        self.f.code[id].ty
    }

    fn binary(&mut self, op: BinaryOp, a: Id, b: Id) -> Id {
        let one = |f: &Formula, id| f.literal(id) == Some(1.0);
        match op {
            BinaryOp::Mul if one(&self.f, b) => return a,
            BinaryOp::Mul if one(&self.f, a) => return b,
            _ => {}
        }
        let ty = if op.compares() { Some(ElemType::Bool) } else { self.ty(a).or(self.ty(b)) };
        self.f.add(OpKind::Binary(op), &[a, b], ty, self.arm)
    }

    fn mul(&mut self, a: Id, b: Id) -> Id {
        self.binary(BinaryOp::Mul, a, b)
    }

    fn neg(&mut self, a: Id) -> Id {
        let ty = self.ty(a);
        self.f.add(OpKind::Unary(UnaryOp::Neg), &[a], ty, self.arm)
    }

    fn select(&mut self, c: Id, a: Id, b: Id) -> Id {
        let ty = self.ty(a).or(self.ty(b));
        self.f.add(OpKind::Builtin("select".into()), &[c, a, b], ty, self.arm)
    }

    /// Returns the operand that holds a result, or the operation itself.
    fn held(&self, id: Id) -> Id {
        self.known.iter().find(|(o, _)| *o == id).map_or(id, |&(_, y)| y)
    }

    /// Adds the adjoints of the operands of an operation, whose adjoint is `g`.
    fn step(&mut self, k: Id, g: Id, active: &[bool]) -> Result<(), Refusal> {
        let op = self.f.code[k].clone();
        let (a, arm, y) = (op.args.clone(), op.arm, self.held(k));
        let wants = |i: usize| active[a[i]];
        match &op.kind {
            OpKind::Binary(BinaryOp::Add) => (0..2).filter(|&i| wants(i)).for_each(|i| self.to(arm, a[i], g)),
            OpKind::Binary(BinaryOp::Sub) => {
                if wants(0) {
                    self.to(arm, a[0], g);
                }
                if wants(1) {
                    let d = self.neg(g);
                    self.to(arm, a[1], d);
                }
            }
            OpKind::Binary(BinaryOp::Mul) => {
                for (i, other) in [(0, a[1]), (1, a[0])] {
                    if wants(i) {
                        let d = self.mul(g, other);
                        self.to(arm, a[i], d);
                    }
                }
            }
            OpKind::Binary(BinaryOp::Div) => {
                let d = self.binary(BinaryOp::Div, g, a[1]);
                if wants(0) {
                    self.to(arm, a[0], d);
                }
                if wants(1) {
                    let d = self.mul(d, y);
                    let d = self.neg(d);
                    self.to(arm, a[1], d);
                }
            }
            OpKind::Binary(BinaryOp::Rem) => {
                if wants(0) {
                    self.to(arm, a[0], g);
                }
                if wants(1) {
                    let q = self.binary(BinaryOp::Div, a[0], a[1]);
                    let q = self.f.add(OpKind::Builtin("trunc".into()), &[q], op.ty, arm);
                    let d = self.mul(g, q);
                    let d = self.neg(d);
                    self.to(arm, a[1], d);
                }
            }
            OpKind::Unary(UnaryOp::Neg) => {
                let d = self.neg(g);
                self.to(arm, a[0], d);
            }
            OpKind::Convert(_) => {
                if let Some(ty) = self.ty(a[0]) {
                    let d = self.f.add(OpKind::Convert(ty), &[g], Some(ty), arm);
                    self.to(arm, a[0], d);
                }
            }
            OpKind::Builtin(name) => self.builtin(name, k, g, active)?,
            OpKind::Call(module, item, name) => {
                self.by_rule((*module, *item), name, (&a, arm), (&[y], &[g]), active)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the adjoints of the operands of a call of a function with a rule, given those of its results.
    fn by_rule(
        &mut self,
        of: (ModuleRef, usize),
        name: &SmolStr,
        (args, arm): (&[Id], usize),
        results: (&[Id], &[Id]),
        active: &[bool],
    ) -> Result<(), Refusal> {
        let wanted: Vec<bool> = args.iter().map(|&x| active[x]).collect();
        let symbols: Vec<Symbol> = args.iter().map(|&x| Symbol::Value(x)).collect();
        let f = std::mem::take(&mut self.f);
        let done = self.flatten.rule((f, arm), (of, &[]), &symbols, results, &wanted);
        let (f, adjoints) = done.map_err(|mut r| {
            r.inside.get_or_insert(name.clone());
            r
        })?;
        self.f = f;
        for (&x, d) in args.iter().zip(adjoints) {
            if let Some(d) = d {
                self.to(arm, x, d);
            }
        }
        Ok(())
    }

    /// The same for the members of a tuple that a call gives, at the first of them: the adjoints of all are then
    /// complete.
    fn part(&mut self, k: Id, active: &[bool]) -> Result<(), Refusal> {
        let op = self.f.code[k].clone();
        let OpKind::Part(module, item, name, _, count) = &op.kind else { return Ok(()) };
        let parts = self.f.parts(k);
        let is_first = parts.iter().flatten().all(|&p| p >= k);
        let reached = |p: &Id| active.get(*p) == Some(&true) && self.adjoints.contains_key(p);
        if !is_first || !parts.iter().flatten().any(reached) {
            return Ok(());
        }
        let zero = self.f.float(0.0);
        let (mut ys, mut gs) = (vec![], vec![]);
        for (j, part) in parts.into_iter().enumerate() {
            gs.push(part.and_then(|p| self.adjoints.get(&p).copied()).unwrap_or(zero));
            let kind = OpKind::Part(*module, *item, name.clone(), j, *count);
            ys.push(match part {
                Some(p) => self.held(p),
                None => self.f.add(kind, &op.args, op.ty, op.arm),
            });
        }
        self.by_rule((*module, *item), name, (&op.args, op.arm), (&ys, &gs), active)
    }

    fn builtin(&mut self, name: &str, k: Id, g: Id, active: &[bool]) -> Result<(), Refusal> {
        let op = self.f.code[k].clone();
        let (a, arm, y) = (op.args.clone(), op.arm, self.held(k));
        let wants = |i: usize| active[a[i]];
        let zero = self.f.float(0.0);
        match name {
            "min" | "max" => {
                let order = if name == "min" { BinaryOp::Le } else { BinaryOp::Ge };
                let first = self.binary(order, a[0], a[1]);
                if wants(0) {
                    let d = self.select(first, g, zero);
                    self.to(arm, a[0], d);
                }
                if wants(1) {
                    let d = self.select(first, zero, g);
                    self.to(arm, a[1], d);
                }
            }
            "select" => {
                if wants(1) {
                    let d = self.select(a[0], g, zero);
                    self.to(arm, a[1], d);
                }
                if wants(2) {
                    let d = self.select(a[0], zero, g);
                    self.to(arm, a[2], d);
                }
            }
            "abs" => {
                let (above, below) = (self.binary(BinaryOp::Gt, a[0], zero), self.binary(BinaryOp::Lt, a[0], zero));
                let minus = self.neg(g);
                let d = self.select(below, minus, zero);
                let d = self.select(above, g, d);
                self.to(arm, a[0], d);
            }
            "sqrt" => {
                let half = self.f.float(0.5);
                let d = self.mul(g, half);
                let d = self.binary(BinaryOp::Div, d, y);
                self.to(arm, a[0], d);
            }
            "fma" => {
                for (i, other) in [(0, a[1]), (1, a[0])] {
                    if wants(i) {
                        let d = self.mul(g, other);
                        self.to(arm, a[i], d);
                    }
                }
                if wants(2) {
                    self.to(arm, a[2], g);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
