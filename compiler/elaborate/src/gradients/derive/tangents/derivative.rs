//! The derivative of a function of scalars: what it needs is found here, its text is made later.
//!
//! Invariant: the text of a derivative that is returned can be written.

use super::activity::Activity;
use super::source::Source;
use super::{Tangents, check, partials};
use crate::gradients::derive::flatten::Refusal;
use cranelift_entity::EntityRef;
use girder_ir::codelet::{Dir, ExprKind};
use girder_ir::types::ElemType;
use smol_str::format_smolstr;

/// Returns the derivative of a function by the operands of `wanted`.
pub fn derivative(source: &Source<'_>, wanted: &[bool]) -> Result<Tangents, Refusal> {
    let apart = source.typed()?;
    let codelet = apart.codelet;
    let operands = codelet.fields.values().filter(|f| f.dir == Dir::In).count();
    let directions: Vec<usize> = (0..operands).filter(|&k| wanted[k]).collect();
    let activity = Activity::of(&codelet, &apart.calls, directions);
    check::check(&codelet, &apart.calls, &activity)?;
    let mut callees = vec![];
    let calls = partials::calls(source, &codelet, apart.calls, &activity, &mut callees)?;
    let types: Vec<ElemType> = codelet.fields.values().map(|f| f.ty).collect();
    let (of_operands, of_results) = types.split_at(operands);
    let inputs = [of_operands, of_results, of_results].concat();
    let by: Vec<usize> = activity.reaching().collect();
    let reads = |k: usize| {
        let is_it = |kind: &ExprKind| matches!(kind, ExprKind::Load { field, .. } if field.index() == k);
        codelet.exprs.values().any(|e| is_it(&e.kind))
    };
    let active = |j: usize| activity.of_result(operands + j).next().is_some();
    let adjoint = operands + of_results.len();
    let kept = (0..operands).filter(|&k| reads(k));
    let kept = kept.chain((0..of_results.len()).filter(|&j| active(j)).map(|j| adjoint + j)).collect();
    let which: Vec<String> = by.iter().map(|i| format!("{i}")).collect();
    let named: Vec<&str> = of_operands.iter().map(|t| t.name()).collect();
    let name = format_smolstr!("grad.{}_{}_by_{}", source.name(), named.join("_"), which.join("_"));
    callees.sort_unstable();
    callees.dedup();
    Ok(Tangents { name, inputs, kept, by, callees, codelet, calls, activity, operands })
}
