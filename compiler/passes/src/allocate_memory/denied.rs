//! The warnings for codelets whose requests about memory are not granted.
//!
//! Invariant: a warning names only codelets with `#[pipelined(apart)]` or `#[align(n)]`, once each, and for the former
//! only requests that the machine could grant.

use super::requests::{self, HeldRequests};
use girder_codelet::cost::FieldRequest;
use girder_ir::codelet::Codelet;
use girder_ir::ids::{FamilyId, SpecId};
use girder_ir::stage::Allocated;
use girder_machine::Machine;
use girder_source::Diagnostic;

/// Returns one warning for each codelet with a request that is not granted for all its vertices.
pub(super) fn denied_requests(
    allocated: &Allocated,
    machine: &Machine,
    field_requests: &[(SpecId, Vec<FieldRequest>)],
) -> Vec<Diagnostic> {
    let mut held = HeldRequests::new(allocated, machine);
    let has_pairs = machine.memory.regions.iter().any(|r| r.interleaved);
    let mut warnings = vec![];
    for (spec, requests) in field_requests.iter().filter(|(spec, _)| allocated.codelets[*spec].pipelined) {
        let families: Vec<FamilyId> =
            allocated.families.iter().filter(|(_, f)| f.codelet == *spec).map(|(id, _)| id).collect();
        let mut denied = vec![];
        for &request in requests.iter().filter(|r| has_pairs || matches!(r, FieldRequest::DifferentElements(..))) {
            if let Some(&family) = families.iter().find(|&&f| !held.holds(f, request)) {
                denied.push((request, family, held.is_one_block(family, request)));
            }
        }
        if !denied.is_empty() {
            warnings.push(warning(allocated, &allocated.codelets[*spec], &denied));
        }
    }
    warnings.extend(allocated.codelets.keys().filter_map(|spec| misaligned(allocated, &mut held, spec)));
    warnings
}

/// Returns the warning for a codelet with misaligned fields, or `None`.
fn misaligned(allocated: &Allocated, held: &mut HeldRequests, spec: SpecId) -> Option<Diagnostic> {
    let codelet = &allocated.codelets[spec];
    let mut warning: Option<Diagnostic> = None;
    for (field, align) in requests::aligned(codelet) {
        let mut families = allocated.families.iter().filter(|(_, f)| f.codelet == spec);
        let Some((_, family)) = families.find(|(id, _)| !held.is_aligned(*id, field, align)) else { continue };
        let (set, decl) = (&allocated.sets[family.set].name, &codelet.fields[field]);
        let text = format!("`{}` is not at a multiple of {align} for all vertices of `{set}`", decl.name);
        let message = format!("fields of `{}` are not aligned as they ask", codelet.name);
        let d = warning.unwrap_or_else(|| Diagnostic::warning("memory::wish_denied", codelet.span, message));
        warning = Some(d.label(decl.span, text));
    }
    warning.map(|d| d.help("let what the fields see begin a variable, or a multiple of the alignment behind its start"))
}

fn warning(allocated: &Allocated, codelet: &Codelet, denied: &[(FieldRequest, FamilyId, bool)]) -> Diagnostic {
    let message = format!("`{}` takes more cycles than it could: its fields lie badly in memory", codelet.name);
    let mut d = Diagnostic::warning("memory::wish_denied", codelet.span, message);
    for &(request, family, one) in denied {
        let set = &allocated.sets[allocated.families[family].set].name;
        let name = |f| &codelet.fields[f].name;
        let (field, text) = match request {
            FieldRequest::DifferentElements(a, b) if one => {
                (a, format!("is in one variable or buffer with `{}` in `{set}`", name(b)))
            }
            FieldRequest::DifferentElements(a, b) => {
                (a, format!("shares a memory element with `{}` in `{set}`", name(b)))
            }
            FieldRequest::Interleaved(a) => (a, format!("is not in interleaved memory in `{set}`")),
        };
        d = d.label(codelet.fields[field].span, format!("`{}` {text}", name(field)));
    }
    d.help(match denied.iter().any(|d| d.2) {
        true => "keep what the fields see in different variables",
        false => "its tiles have no room for that: free some of their memory, or use more tiles",
    })
}
