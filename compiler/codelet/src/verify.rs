//! Checks of the invariants of `girder_ir::codelet`. A failure is a bug of the compiler.
//!
//! Invariant: an accepted codelet can be interpreted and compiled without further checks of types, ranks, labels, sites
//! or unassigned locals.

mod expr;
mod stmt;

use girder_ir::codelet::{Check, Codelet, DimDecl, Dir, ExprKind, Index};
use girder_ir::ids::{ExprId, SiteId};
use girder_ir::types::ElemType;

/// The result of a check; the error is for the compiler's developers.
type Result<T = ()> = std::result::Result<T, String>;

/// Checks the invariants of a codelet.
pub fn verify(codelet: &Codelet) -> std::result::Result<(), String> {
    let verifier = Verifier { codelet };
    verifier.declarations()?;
    for expr in codelet.exprs.keys() {
        verifier.expr(expr).map_err(|what| format!("{}: {expr}: {what}", codelet.name))?;
    }
    stmt::body(verifier).map_err(|what| format!("{}: {what}", codelet.name))
}

#[derive(Clone, Copy)]
struct Verifier<'a> {
    codelet: &'a Codelet,
}

/// Returns an error with this message unless the condition holds.
fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result {
    if holds { Ok(()) } else { Err(what()) }
}

impl<'a> Verifier<'a> {
    fn ty(self, e: ExprId) -> Result<ElemType> {
        self.codelet.exprs.get(e).map(|e| e.ty).ok_or_else(|| format!("{e} does not exist"))
    }

    fn has_type(self, e: ExprId, ty: ElemType) -> Result {
        let found = self.ty(e)?;
        ensure(found == ty, || format!("{e} is {found}, not {ty}"))
    }

    fn site(self, site: SiteId, check: Check) -> Result {
        let found = self.codelet.sites.get(site).map(|s| s.check);
        ensure(found == Some(check), || format!("{site} is {found:?}, not {check:?}"))
    }

    fn index(self, index: &Index, rank: usize) -> Result {
        ensure(index.len() == rank, || format!("{} indices for {rank} dimensions", index.len()))?;
        index.iter().try_for_each(|&e| self.has_type(e, ElemType::I64))
    }

    fn declarations(self) -> Result {
        let supported = |what: &dyn std::fmt::Display, ty: ElemType| {
            ensure(ty.is_supported(), || format!("{}: {what} is {ty}, which is not supported", self.codelet.name))
        };
        for (id, field) in &self.codelet.fields {
            supported(&id, field.ty)?;
            ensure(field.dir != Dir::Const || field.dims.is_empty(), || format!("{id} is const, but no scalar"))?;
            for dim in &field.dims {
                if let DimDecl::Expr(e) = *dim {
                    self.has_type(e, ElemType::I64)?;
                    self.is_static(e)?;
                }
            }
        }
        for (id, local) in &self.codelet.locals {
            supported(&id, local.ty)?;
            ensure(local.array.as_ref().is_none_or(|dims| !dims.is_empty()), || format!("{id} has no dimension"))?;
        }
        for size in self.codelet.sizes.keys() {
            let mut dims = self.codelet.edges().flat_map(|(_, f)| &f.dims);
            ensure(dims.any(|d| *d == DimDecl::Size(size)), || format!("no dimension binds {size}"))?;
        }
        self.codelet.cycles.map_or(Ok(()), |e| {
            self.has_type(e, ElemType::I64)?;
            self.is_static(e)
        })
    }

    /// Checks that an expression reads only sizes and constants.
    fn is_static(self, e: ExprId) -> Result {
        self.ty(e)?;
        match self.codelet.exprs[e].kind {
            ExprKind::Local(_)
            | ExprKind::Load { .. }
            | ExprKind::LoadLocal { .. }
            | ExprKind::Worker
            | ExprKind::Workers => Err(format!("{e} is not known before the vertex runs")),
            ref kind => kind.operands().iter().try_for_each(|&x| self.is_static(x)),
        }
    }
}

#[cfg(test)]
mod tests;
