//! The codelet of a chain: a nest of loops whose body runs all maps of the chain in each iteration, in order.
//!
//! Invariant: the codelet cannot fail: its loops are as long as its fields, and its body comes from codelets whose
//! checks are proven.

mod around;

pub use around::codelet_around;

use crate::chain::{Chain, MemorySlots};
use crate::map::{Applied, Function};
use crate::signature::{FunctionSignature, FusedField, FusedSignature, LoopLength};
use crate::space::Access;
use cranelift_entity::SecondaryMap;
use girder_ir::codelet::{
    Check, Codelet, DimDecl, Dir, Expr, ExprKind, FieldDecl, Index, Label, Local, Site, Stmt, StmtBlock,
};
use girder_ir::graph::Graph;
use girder_ir::ids::{ExprId, FieldId, LocalId, SiteId};
use girder_ir::types::{ElemType, Scalar};
use girder_source::Span;
use smallvec::SmallVec;
use smol_str::{SmolStr, format_smolstr};

/// Returns the signature of a chain for some loops. `along` has the loops along which each slot in memory moves.
pub fn signature(
    chain: &Chain,
    memory: &MemorySlots,
    loops: SmallVec<[LoopLength; 3]>,
    along: impl IntoIterator<Item = SmallVec<[usize; 3]>>,
) -> FusedSignature {
    let function = |f: &Function| match f {
        Function::Copy(_) => FunctionSignature::Copy,
        Function::Codelet(a) => {
            FunctionSignature::Codelet { spec: a.spec, sizes: a.sizes.clone(), fields: a.fields.clone() }
        }
    };
    let in_memory = (0..chain.slots.len()).filter(|&n| memory.loads[n] || memory.stores[n]);
    let field = |((slot, access), along): ((usize, &Access), _)| FusedField {
        slot,
        ty: access.ty,
        loads: memory.loads[slot],
        stores: memory.stores[slot],
        along,
    };
    FusedSignature {
        maps: chain.maps.iter().map(|m| function(&m.function)).zip(chain.at.iter().cloned()).collect(),
        fields: in_memory.zip(&memory.space.accesses).zip(along).map(field).collect(),
        loops,
        around: None,
    }
}

/// Builds the codelet for a signature without an access. Its edge fields are the slots in memory, in order; its
/// constants are those of the maps, in order.
pub fn codelet(signature: &FusedSignature, graph: &Graph, chain: &Chain) -> Codelet {
    let mut fuser = FusedCodeletBuilder::new(signature, chain.slots.len());
    fuser.maps(graph, chain);
    fuser.finish(signature)
}

/// Returns the direction of a field.
fn dir(fused: &FusedField) -> Dir {
    match (fused.loads, fused.stores) {
        (true, true) => Dir::InOut,
        (false, true) => Dir::Out,
        (_, false) => Dir::In,
    }
}

/// Returns a name for the next field that no field or size has.
fn unused(codelet: &Codelet, letter: &str) -> SmolStr {
    let is_taken = |name: &SmolStr| {
        codelet.fields.values().any(|f| f.name == *name) || codelet.sizes.values().any(|size| size == name)
    };
    let mut names = (codelet.fields.len()..).map(|n| format_smolstr!("{letter}{n}"));
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

/// A fused codelet under construction.
struct FusedCodeletBuilder {
    codelet: Codelet,
    /// The index of each loop, and its trip count as a dimension.
    loops: Vec<(LocalId, DimDecl)>,
    /// The field of each slot that is in memory, and the loops along which it moves.
    fields: Vec<Option<(FieldId, SmallVec<[usize; 3]>)>>,
    /// The local that holds each slot that was written.
    values: Vec<Option<LocalId>>,
    body: StmtBlock,
    span: Span,
}

/// The translation of a codelet's entities to those of the fused codelet.
struct Names<'a> {
    from: &'a Codelet,
    applied: &'a Applied<'a>,
    slots: &'a [usize],
    consts: SecondaryMap<FieldId, Option<FieldId>>,
    locals: SecondaryMap<LocalId, Option<LocalId>>,
    sites: SecondaryMap<SiteId, Option<SiteId>>,
}

impl Names<'_> {
    /// Returns the slot of a field.
    fn slot(&self, field: FieldId) -> usize {
        let access = self.applied.fields.iter().position(|&f| f == field);
        self.slots[access.expect("a map has an access for each field that it names")]
    }
}

impl FusedCodeletBuilder {
    fn new(signature: &FusedSignature, slots: usize) -> FusedCodeletBuilder {
        let span = Span::default();
        let mut codelet = Codelet::empty("fused", span);
        let mut loops = Vec::new();
        for k in 0..signature.loops.len() {
            let index = Local { name: format!("i{k}").into(), ty: ElemType::I64, array: None };
            loops.push((codelet.locals.push(index), None));
        }
        let mut fields = vec![None; slots];
        for fused in &signature.fields {
            // A size is declared by the first field that has it.
            let dim = |&k: &usize| match signature.loops[k] {
                LoopLength::Fixed(n) => *loops[k].1.get_or_insert(DimDecl::Fixed(n)),
                LoopLength::Bound => {
                    *loops[k].1.get_or_insert_with(|| DimDecl::Size(codelet.sizes.push(format!("n{k}").into())))
                }
            };
            let dims = fused.along.iter().map(dim).collect();
            let name = format!("x{}", codelet.fields.len()).into();
            let field = codelet.fields.push(FieldDecl { name, dir: dir(fused), ty: fused.ty, dims, align: 1, span });
            fields[fused.slot] = Some((field, fused.along.clone()));
        }
        let length = |(k, (index, dim)): (usize, (LocalId, Option<DimDecl>))| match (dim, signature.loops[k]) {
            (Some(dim), _) => (index, dim),
            (None, LoopLength::Fixed(n)) => (index, DimDecl::Fixed(n)),
            (None, LoopLength::Bound) => unreachable!("a field that is written moves along every loop"),
        };
        let loops = loops.into_iter().enumerate().map(length).collect();
        FusedCodeletBuilder { codelet, loops, fields, values: vec![None; slots], body: StmtBlock::new(), span }
    }

    fn expr(&mut self, ty: ElemType, kind: ExprKind) -> ExprId {
        self.codelet.exprs.push(Expr { kind, ty, span: self.span })
    }

    fn int(&mut self, value: u64) -> ExprId {
        self.expr(ElemType::I64, ExprKind::Const(Scalar::new(ElemType::I64, value)))
    }

    fn site(&mut self, check: Check) -> SiteId {
        self.codelet.sites.push(Site { check, span: self.span, calls: SmallVec::new(), message: None })
    }

    /// Returns the field and the index of a slot in memory.
    fn element(&mut self, slot: usize) -> (FieldId, Index, SiteId) {
        let (field, along) = self.fields[slot].clone().expect("a slot that is loaded or stored is in memory");
        let mut index = Index::new();
        for k in along {
            let local = self.loops[k].0;
            index.push(self.expr(ElemType::I64, ExprKind::Local(local)));
        }
        (field, index, self.site(Check::Index))
    }

    /// Returns the value of a slot.
    fn read(&mut self, ty: ElemType, slot: usize) -> ExprId {
        let kind = match self.values[slot] {
            Some(local) => ExprKind::Local(local),
            None => {
                let (field, index, site) = self.element(slot);
                ExprKind::Load { field, index, site }
            }
        };
        self.expr(ty, kind)
    }

    /// Returns the statement that sets a slot to a value.
    fn write(&mut self, ty: ElemType, slot: usize, value: ExprId) -> Stmt {
        let local = self.codelet.locals.push(Local { name: "".into(), ty, array: None });
        self.values[slot] = Some(local);
        Stmt::Set { local, value }
    }

    fn copy(&mut self, ty: ElemType, from: usize, to: usize) {
        if let Some(local) = self.values[from] {
            // The local of a slot is set once.
            self.values[to] = Some(local);
            return;
        }
        let value = self.read(ty, from);
        let stmt = self.write(ty, to, value);
        self.body.push(stmt);
    }

    /// Appends the maps of a chain, in order.
    fn maps(&mut self, graph: &Graph, chain: &Chain) {
        for (map, slots) in chain.maps.iter().zip(&chain.at) {
            match &map.function {
                Function::Copy(ty) => self.copy(*ty, slots[0], slots[1]),
                Function::Codelet(applied) => self.apply(&graph.codelets[applied.spec], applied, slots),
            }
        }
    }

    /// Appends statements of a codelet.
    fn apply(&mut self, from: &Codelet, applied: &Applied<'_>, slots: &[usize]) {
        let (consts, locals, sites) = (SecondaryMap::new(), SecondaryMap::new(), SecondaryMap::new());
        let mut names = Names { from, applied, slots, consts, locals, sites };
        for (field, value) in &applied.consts {
            let name = unused(&self.codelet, "c");
            let decl =
                FieldDecl { name, dir: Dir::Const, ty: value.ty, dims: SmallVec::new(), align: 1, span: self.span };
            names.consts[*field] = Some(self.codelet.fields.push(decl));
        }
        let body = self.block(&mut names, applied.statements);
        self.body.extend(body);
    }

    fn block(&mut self, names: &mut Names<'_>, block: &StmtBlock) -> StmtBlock {
        let mut done = StmtBlock::new();
        for stmt in block {
            match stmt {
                Stmt::Set { local, value } => {
                    let elementary = names.from.elementary[*local];
                    let elementary = elementary.map(|(function, of)| (function, self.copied(names, of)));
                    let value = self.copied(names, *value);
                    let local = self.local(names, *local);
                    self.codelet.elementary[local] = elementary;
                    done.push(Stmt::Set { local, value });
                }
                Stmt::If { cond, then, els } => {
                    let cond = self.copied(names, *cond);
                    let (then, els) = (self.block(names, then), self.block(names, els));
                    done.push(Stmt::If { cond, then, els });
                }
                Stmt::Store { field, value, .. } => {
                    let value = self.copied(names, *value);
                    done.push(self.write(names.from.fields[*field].ty, names.slot(*field), value));
                }
                _ => unreachable!("a body has no other statements"),
            }
        }
        done
    }

    fn local(&mut self, names: &mut Names<'_>, local: LocalId) -> LocalId {
        *names.locals[local].get_or_insert_with(|| self.codelet.locals.push(names.from.locals[local].clone()))
    }

    /// Copies an expression of a codelet. Each use gets a new copy, because the value of a slot changes.
    fn copied(&mut self, names: &mut Names<'_>, e: ExprId) -> ExprId {
        let Expr { kind, ty, .. } = &names.from.exprs[e];
        let ty = *ty;
        let mut kind = match kind {
            ExprKind::Local(local) => ExprKind::Local(self.local(names, *local)),
            ExprKind::ConstField(field) => {
                ExprKind::ConstField(names.consts[*field].expect("every constant has a value"))
            }
            ExprKind::Size(size) => {
                let known = names.applied.sizes.iter().find(|s| s.0 == *size);
                let (_, value) = known.expect("a map knows the sizes that it names");
                return self.int(*value as u64);
            }
            ExprKind::Load { field, .. } => match names.consts[*field] {
                Some(constant) => ExprKind::ConstField(constant),
                None => return self.read(ty, names.slot(*field)),
            },
            ExprKind::Worker | ExprKind::Workers | ExprKind::LoadLocal { .. } => {
                unreachable!("a body has no other expressions")
            }
            &ExprKind::Binary { op, a, b, site } => {
                ExprKind::Binary { op, a, b, site: site.map(|site| self.same_site(names, site)) }
            }
            kind => kind.clone(),
        };
        kind.map_operands(|x| self.copied(names, x));
        self.expr(ty, kind)
    }

    fn same_site(&mut self, names: &mut Names<'_>, site: SiteId) -> SiteId {
        *names.sites[site].get_or_insert_with(|| self.codelet.sites.push(names.from.sites[site].clone()))
    }

    /// Appends the stores.
    fn stores(&mut self, signature: &FusedSignature) {
        for fused in signature.fields.iter().filter(|f| f.stores) {
            let local = self.values[fused.slot].expect("a slot that is stored was written");
            let (field, index, site) = self.element(fused.slot);
            let value = self.expr(fused.ty, ExprKind::Local(local));
            self.body.push(Stmt::Store { field, index, value, site });
        }
    }

    /// Adds the loop around the body and the stores.
    fn finish(mut self, signature: &FusedSignature) -> Codelet {
        self.stores(signature);
        let mut body = std::mem::take(&mut self.body);
        for (k, (index, dim)) in std::mem::take(&mut self.loops).into_iter().enumerate().rev() {
            let lo = self.int(0);
            let hi = match dim {
                DimDecl::Size(size) => self.expr(ElemType::I64, ExprKind::Size(size)),
                DimDecl::Fixed(n) => self.int(n),
                DimDecl::Expr(e) => e,
            };
            let (label, site) = (Label(k as u32), self.site(Check::Iterations));
            body = vec![Stmt::For { var: index, lo, hi, step: 1, label, body, site }];
        }
        self.codelet.body = body;
        self.codelet
    }
}
