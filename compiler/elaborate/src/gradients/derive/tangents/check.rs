//! What has no derivative: found before the derivative is written, so that writing cannot fail.
//!
//! Invariant: a codelet that passes has only statements that the writer knows.

use super::activity::Activity;
use crate::gradients::derive::flatten::Refusal;
use girder_ir::codelet::{Codelet, ExprKind, Label, Stmt, StmtBlock};
use girder_source::{Diagnostic, Span};
use girder_typing::CallApart;
use rustc_hash::FxHashMap;

/// Refuses a codelet that has no derivative.
pub fn check(codelet: &Codelet, calls: &FxHashMap<Label, CallApart<'_>>, activity: &Activity) -> Result<(), Refusal> {
    Check { codelet, calls, activity }.block(&codelet.body, &mut vec![])
}

struct Check<'c> {
    codelet: &'c Codelet,
    calls: &'c FxHashMap<Label, CallApart<'c>>,
    activity: &'c Activity,
}

/// Returns the error of a rule of a function with arrays.
fn of_arrays(call: &CallApart<'_>) -> Refusal {
    let name = call.item.name.dotted();
    let message = format!("`{name}` has a rule, but takes or gives more than numbers, and a rule gives numbers");
    let d = Diagnostic::error("grad::codelet", call.span, message).here("called here");
    let d = d.label(call.item.name.span, "the function");
    let help = "remove the rule: the text of the function has a derivative; or give its caller a rule";
    Refusal { span: call.span, what: "a rule", inside: None, error: Some(Box::new(d.help(help))) }
}

fn refuse<T>(span: Span, what: &'static str) -> Result<T, Refusal> {
    Err(Refusal { span, what, inside: None, error: None })
}

impl Check<'_> {
    /// Checks a block; `labels` are those to which a jump may go.
    fn block(&self, block: &StmtBlock, labels: &mut Vec<Label>) -> Result<(), Refusal> {
        for stmt in block {
            let depth = labels.len();
            match stmt {
                Stmt::Labelled { label, body } => {
                    if let Some(call) = self.calls.get(label) {
                        if call.args.is_some() {
                            continue;
                        }
                        if self.is_active(body) {
                            return Err(of_arrays(call));
                        }
                    }
                    labels.push(*label);
                    self.block(body, labels)?;
                }
                Stmt::For { label, body, .. } => {
                    labels.push(*label);
                    self.block(body, labels)?;
                }
                Stmt::While { before, cond, label, body, .. } => {
                    self.condition(before, self.codelet.exprs[*cond].span)?;
                    labels.push(*label);
                    self.block(body, labels)?;
                }
                Stmt::Reduce(r) => {
                    self.condition(&r.filter_before, self.codelet.exprs[r.value].span)?;
                    self.condition(&r.before, self.codelet.exprs[r.value].span)?;
                }
                Stmt::If { then, els, .. } => {
                    self.block(then, labels)?;
                    self.block(els, labels)?;
                }
                Stmt::Break(label) | Stmt::Continue(label) if !labels.contains(label) => {
                    return refuse(Span::NONE, "a jump out of a condition");
                }
                Stmt::Amp(amp) => return refuse(self.codelet.sites[amp.site].span, "a product of the matrix unit"),
                Stmt::Return => return refuse(Span::NONE, "a return from a codelet"),
                _ => {}
            }
            labels.truncate(depth);
        }
        Ok(())
    }

    /// Checks the statements of a condition or of a reduction, out of which nothing jumps.
    fn condition(&self, block: &StmtBlock, span: Span) -> Result<(), Refusal> {
        self.block(block, &mut vec![]).map_err(|mut r| {
            if r.span == Span::NONE {
                r.span = span;
            }
            r
        })
    }

    /// Returns whether statements set something that depends on a wanted operand.
    fn is_active(&self, block: &StmtBlock) -> bool {
        let of_value = |stmt: &Stmt| {
            let mut found = false;
            stmt.for_each_expr(|e| found |= self.reads_active(e));
            found
        };
        block.iter().any(|stmt| of_value(stmt) || stmt.blocks().any(|inner| self.is_active(inner)))
    }

    fn reads_active(&self, e: girder_ir::ids::ExprId) -> bool {
        let kind: &ExprKind = &self.codelet.exprs[e].kind;
        self.activity.is_active(e) || kind.operands().iter().any(|&x| self.reads_active(x))
    }
}
