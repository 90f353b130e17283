//! Codelets with maps around one of their accesses: maps that compute what a codelet loads (a prologue), and maps that
//! use what it stores (an epilogue).
//!
//! Invariant: the codelet fails where the one without the maps fails, and computes what that one and the maps would.

use super::{FusedCodeletBuilder, dir};
use crate::access::ElementAccess;
use crate::chain::Chain;
use crate::signature::FusedSignature;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use girder_ir::codelet::{Codelet, DimDecl, Expr, ExprKind, FieldDecl, Local, Stmt, StmtBlock};
use girder_ir::graph::Graph;
use girder_ir::ids::{ExprId, LocalId, SizeId};
use smallvec::SmallVec;

/// Builds the codelet for a signature with an access. `base` is the codelet that makes the access. The fields of `base`
/// keep their numbers, except that a new one may take that of the access; the others follow, and then the constants of
/// the maps.
pub fn codelet_around(
    signature: &FusedSignature,
    base: &Codelet,
    access: &ElementAccess,
    graph: &Graph,
    chain: &Chain,
) -> Codelet {
    let (own, keeps) = signature.around.as_ref().map_or((0, true), |around| (around.slot, around.keeps));
    let ty = base.fields[access.field].ty;
    let mut fuser = FusedCodeletBuilder::around(signature, base, access, own, keeps, chain.slots.len());
    let mut code = std::mem::take(&mut fuser.codelet.body);
    match access.load {
        Some(load) => {
            // All loads of the field are replaced: those recorded for elementary functions are expressions of their
            // own.
            let is_load = |e: &Expr| matches!(e.kind, ExprKind::Load { field, .. } if field == access.field);
            let loads: Vec<ExprId> = base.exprs.iter().filter(|(_, e)| is_load(e)).map(|(id, _)| id).collect();
            fuser.run(signature, graph, chain);
            let value = fuser.read(ty, own);
            let value = fuser.codelet.exprs[value].kind.clone();
            loads.into_iter().for_each(|e| fuser.codelet.exprs[e].kind = value.clone());
            insert_before(&mut code, &fuser.codelet.exprs, load, &mut Some(std::mem::take(&mut fuser.body)));
        }
        None => {
            let value = fuser.codelet.locals.push(Local { name: "".into(), ty, array: None });
            fuser.values[own] = Some(value);
            fuser.run(signature, graph, chain);
            fuser.stores(signature);
            insert_behind(&mut code, access, value, &mut fuser, keeps);
        }
    }
    fuser.codelet.body = code;
    number_sizes(&mut fuser.codelet);
    fuser.codelet
}

impl FusedCodeletBuilder {
    /// Begins a codelet that continues `base`.
    fn around(
        signature: &FusedSignature,
        base: &Codelet,
        access: &ElementAccess,
        own: usize,
        keeps: bool,
        slots: usize,
    ) -> FusedCodeletBuilder {
        let mut codelet = Codelet { args: Vec::new(), ..base.clone() };
        let span = base.span;
        let dims = codelet.fields[access.field].dims.clone();
        let mut free = Some(access.field).filter(|_| !keeps);
        let mut fields = vec![None; slots];
        for fused in signature.fields.iter().filter(|f| f.slot != own) {
            let name = super::unused(&codelet, "x");
            let along = fused.along.iter().map(|&k| dims[k]).collect();
            let decl = FieldDecl { name, dir: dir(fused), ty: fused.ty, dims: along, align: 1, span };
            let field = match free.take() {
                Some(field) => {
                    codelet.fields[field] = decl;
                    field
                }
                None => codelet.fields.push(decl),
            };
            fields[fused.slot] = Some((field, fused.along.clone()));
        }
        let loops = access.index.iter().copied().zip(dims).collect();
        FusedCodeletBuilder { codelet, loops, fields, values: vec![None; slots], body: StmtBlock::new(), span }
    }

    /// Appends the maps, with each element in memory loaded once.
    fn run(&mut self, signature: &FusedSignature, graph: &Graph, chain: &Chain) {
        for fused in signature.fields.iter().filter(|f| f.loads) {
            if self.values[fused.slot].is_some() {
                continue;
            }
            let value = self.read(fused.ty, fused.slot);
            let load = self.write(fused.ty, fused.slot, value);
            self.body.push(load);
        }
        self.maps(graph, chain);
    }
}

/// Inserts statements where an expression is evaluated.
fn insert_before(block: &mut StmtBlock, exprs: &PrimaryMap<ExprId, Expr>, at: ExprId, new: &mut Option<StmtBlock>) {
    for n in 0..block.len() {
        let mut here = false;
        block[n].for_each_expr(|e| here |= contains(exprs, e, at));
        if here {
            let Some(new) = new.take() else { return };
            match &mut block[n] {
                Stmt::Reduce(r) if r.filter.is_some_and(|e| contains(exprs, e, at)) => r.filter_before.extend(new),
                Stmt::Reduce(r) => r.before.extend(new),
                _ => _ = block.splice(n..n, new),
            }
            return;
        }
        block[n].blocks_mut().for_each(|inner| insert_before(inner, exprs, at, new));
    }
}

/// Returns whether an expression is an operand of another one, or that one itself.
fn contains(exprs: &PrimaryMap<ExprId, Expr>, e: ExprId, other: ExprId) -> bool {
    e == other || exprs[e].kind.operands().iter().any(|&x| contains(exprs, x, other))
}

/// Inserts the body of a codelet under construction after the store of a value. The store stays only with `keeps`.
fn insert_behind(
    block: &mut StmtBlock,
    access: &ElementAccess,
    local: LocalId,
    fuser: &mut FusedCodeletBuilder,
    keeps: bool,
) {
    for n in 0..block.len() {
        block[n].blocks_mut().for_each(|inner| insert_behind(inner, access, local, fuser, keeps));
        let Stmt::Store { field, value, .. } = &mut block[n] else { continue };
        // The inserted statements store new fields, one of which may have the same number.
        if *field != access.field || fuser.body.is_empty() {
            continue;
        }
        let ty = fuser.codelet.locals[local].ty;
        let set = Stmt::Set { local, value: *value };
        *value = fuser.expr(ty, ExprKind::Local(local));
        let mut new = std::mem::take(&mut fuser.body);
        if keeps {
            new.insert(0, block[n].clone());
        }
        new.insert(0, set);
        block.splice(n..=n, new);
        return;
    }
}

/// Numbers the sizes in the order in which dimensions name them.
fn number_sizes(codelet: &mut Codelet) {
    let mut order: SmallVec<[SizeId; 8]> = SmallVec::new();
    for dim in codelet.fields.values().flat_map(|f| &f.dims) {
        if let DimDecl::Size(size) = dim
            && !order.contains(size)
        {
            order.push(*size);
        }
    }
    let others: Vec<SizeId> = codelet.sizes.keys().filter(|size| !order.contains(size)).collect();
    order.extend(others);
    let mut new: SecondaryMap<SizeId, SizeId> = SecondaryMap::with_default(SizeId::from_u32(0));
    let mut sizes = PrimaryMap::new();
    order.iter().for_each(|&old| new[old] = sizes.push(codelet.sizes[old].clone()));
    codelet.sizes = sizes;
    for dim in codelet.fields.values_mut().flat_map(|f| &mut f.dims) {
        if let DimDecl::Size(size) = dim {
            *size = new[*size];
        }
    }
    for expr in codelet.exprs.values_mut() {
        if let ExprKind::Size(size) = &mut expr.kind {
            *size = new[*size];
        }
    }
}
