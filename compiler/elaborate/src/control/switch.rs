//! `switch`: selects an arm during elaboration, or makes a step of the program.
//!
//! Invariant: some value can reach every key.

use super::Branch;
use crate::elaborator::{Elaborator, NodeKind};
use crate::gradients::record::tape_of;
use crate::gradients::tape::EntryKind;
use crate::statements::Flow;
use crate::value::{Tensor, Value};
use girder_ir::types::ElemType;
use girder_source::{Result, Span};
use girder_syntax::ast::{self, ExprId};
use girder_typing::arms::Key;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::sync::Arc;

impl Elaborator<'_> {
    /// Elaborates a `switch` whose arms may `return`, `break` and `continue` if the selector is static.
    pub fn switch_statement(&mut self, on: ExprId, arms: &[ast::Arm], span: Span) -> Result<(Value, Flow)> {
        let on_span = self.tree().exprs[on].span;
        match self.expr(on)? {
            Value::Int(v) => {
                let keys = self.keys(arms, None)?;
                let hit = |key: &Key| key.range.is_none_or(|(lo, hi)| (lo..=hi).contains(&i128::from(v)));
                if let Some(k) = keys.iter().find(|k| hit(k)) {
                    return self.body(&arms[k.arm].body);
                }
                let message = format!("no arm of this `switch` takes {v}");
                Err(self.error_help("elaborate::no_arm", span, message, "add `_ => { … }`"))
            }
            Value::Str(text) => match self.arm_of(&text, arms)? {
                Some(arm) => self.body(&arms[arm].body),
                None => {
                    let message = format!("no arm of this `switch` takes {text:?}");
                    Err(self.error_help("elaborate::no_arm", span, message, "add `_ => { … }`"))
                }
            },
            Value::Tensor(t) if t.ty.is_int() && t.view.rank() == 0 => {
                let t = self.one_region(Arc::unwrap_or_clone(t), on_span)?;
                let value = self.run_time_switch(t, arms, span)?;
                Ok((value, Flow::Next))
            }
            other => Err(self.expected("an integer (static, or a tensor of rank 0) or a string", &other, on_span)),
        }
    }

    /// Elaborates a `switch` used as a value.
    pub fn switch_expr(&mut self, on: ExprId, arms: &[ast::Arm], span: Span) -> Result<Value> {
        let (value, flow) = self.switch_statement(on, arms, span)?;
        self.stays(value, flow, "a `switch` that is used as a value")
    }

    /// Returns the first arm that takes a string; reports a key that no value can reach.
    fn arm_of(&mut self, text: &str, arms: &[ast::Arm]) -> Result<Option<usize>> {
        // Different strings are different numbers.
        let mut numbers: FxHashMap<SmolStr, i128> = FxHashMap::default();
        let mut keys = Vec::new();
        for (arm, a) in arms.iter().enumerate() {
            for key in &a.keys {
                let Some(key) = *key else {
                    keys.push(Key { arm, range: None, span: a.span });
                    continue;
                };
                let span = self.tree().exprs[key].span;
                let Value::Str(s) = self.expr(key)? else {
                    let message = "the keys of a `switch` on a string are strings";
                    return Err(self.error("elaborate::type_mismatch", span, message));
                };
                let next = numbers.len() as i128;
                let number = *numbers.entry(s).or_insert(next);
                keys.push(Key { arm, range: Some((number, number)), span });
            }
        }
        if let Some(d) = girder_typing::arms::never_taken(&keys, None) {
            return Err(self.report(d));
        }
        let number = numbers.get(text).copied();
        let hit = |k: &&Key| k.range.is_none_or(|(k, _)| Some(k) == number);
        Ok(keys.iter().find(hit).map(|k| k.arm))
    }

    /// Returns the inclusive range of a key.
    fn key(&mut self, key: ExprId) -> Result<Option<(i64, i64)>> {
        let span = self.tree().exprs[key].span;
        match self.expr(key)? {
            Value::Int(k) => Ok(Some((k, k))),
            Value::Range(r) if r.step == 1 && r.count > 0 => Ok(Some((r.start, r.at(r.count - 1)))),
            other => Err(self.expected("an integer or an ascending range", &other, span)),
        }
    }

    /// Returns the keys of all arms; reports a key that no value can reach. `ty` is that of an operand at run time.
    fn keys(&mut self, arms: &[ast::Arm], ty: Option<ElemType>) -> Result<Vec<Key>> {
        let mut keys = Vec::new();
        for (arm, a) in arms.iter().enumerate() {
            for key in &a.keys {
                let (range, span) = match key {
                    Some(k) => (self.key(*k)?.map(|(lo, hi)| (lo.into(), hi.into())), self.tree().exprs[*k].span),
                    None => (None, a.span),
                };
                keys.push(Key { arm, range, span });
            }
        }
        match girder_typing::arms::never_taken(&keys, ty) {
            Some(d) => Err(self.report(d)),
            None => Ok(keys),
        }
    }

    fn run_time_switch(&mut self, on: Tensor, arms: &[ast::Arm], span: Span) -> Result<Value> {
        let mut keys = vec![vec![]; arms.len()];
        let all = self.keys(arms, Some(on.ty))?;
        if let Some(d) = girder_typing::arms::beyond(&all, on.ty) {
            return Err(self.report(d));
        }
        let covered = girder_typing::arms::cover(&all, on.ty);
        for k in all {
            if let Some((lo, hi)) = k.range {
                keys[k.arm].push((lo as i64, hi as i64));
            }
        }
        let mut branches: Vec<Branch<'_>> = arms.iter().map(|a| Branch::Body(&a.body)).collect();
        // Where the keys take all values, the last arm takes what the others leave.
        if !covered {
            branches.push(Branch::Nothing);
            keys.push(vec![]);
        }
        let (before, begin) = self.begin();
        let (values, mut bodies) = self.branches(branches)?;
        let value = self.joined(values, &mut bodies, before, span)?;
        let arms = bodies.iter().map(tape_of).collect();
        let default = bodies.pop().unwrap_or_default();
        keys.pop();
        let record = EntryKind::Branch { on: on.clone(), keys: keys.clone(), arms };
        let cases = keys.into_iter().zip(bodies).collect();
        self.push(NodeKind::Switch { on: on.view, cases, default }, span)?;
        self.record(begin, record, span);
        Ok(value)
    }
}
