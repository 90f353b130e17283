//! The families of a fused step: one for each box of its cut, with the codelet for the loops that are left when
//! neighbouring factors are joined.
//!
//! Invariant: the vertices of the families run every iteration of the chain exactly once.

use super::cut::{Cut, CutBox, Factor};
use cranelift_entity::EntityRef;
use girder_fusion::chain::{Chain, MemorySlots};
use girder_fusion::codelet::signature;
use girder_fusion::map::Function;
use girder_fusion::signature::{FusedSignature, LoopLength};
use girder_fusion::space::{Access, Extents, IterationSpace};
use girder_ir::affine::Affine;
use girder_ir::family::{Domain, Field, FieldPart, Offset};
use girder_ir::ids::FieldId;
use girder_ir::types::Scalar;
use girder_ir::view::{Digits, View};
use smallvec::SmallVec;

/// Maximal number of nested loops of a vertex.
const MOST_LOOPS: usize = 4;

/// The vertices of a box.
#[derive(Clone, Debug)]
pub(super) struct BoxVertices {
    pub domain: Domain,
    pub fields: SmallVec<[Field; 4]>,
    /// The codelet that they run.
    pub signature: FusedSignature,
}

/// Returns the vertices of a cut, or `None` if they would have too many loops or too large a domain. `offsets` has the
/// first byte of each variable.
pub(super) fn vertices(chain: &Chain, memory: &MemorySlots, cut: &Cut, offsets: &[u64]) -> Option<Vec<BoxVertices>> {
    let space = memory.space.cut_at(&cut.products())?;
    cut.boxes.iter().map(|b| of_box(chain, memory, &space, b, offsets)).collect()
}

/// Returns the constants of a chain, in the order of its maps.
pub(super) fn constants(chain: &Chain) -> Vec<Scalar> {
    let of_map = |function: &Function| match function {
        Function::Codelet(applied) => applied.consts.iter().map(|c| c.1).collect(),
        Function::Copy(_) => vec![],
    };
    chain.maps.iter().flat_map(|m| of_map(&m.function)).collect()
}

fn of_box(
    chain: &Chain,
    memory: &MemorySlots,
    space: &IterationSpace,
    cut: &CutBox,
    offsets: &[u64],
) -> Option<BoxVertices> {
    let all = || cut.factors.iter().enumerate().flat_map(|(k, own)| own.iter().map(move |f| (k, *f)));
    let factors = || all().filter(|f| f.1.n > 1);
    let mut across: Vec<(usize, Factor)> = factors().filter(|f| f.1.across.is_some()).collect();
    across.sort_by_key(|f| f.1.across);
    let within: Vec<(usize, Factor)> = factors().filter(|f| f.1.across.is_none()).collect();
    let stride = |a: &Access, (k, f): &(usize, Factor)| a.strides[*k] * f.unit as i64;
    let of_access = |a: &Access| Access {
        start: a.start + cut.lo.iter().zip(&a.strides).map(|(&at, s)| at as i64 * s).sum::<i64>(),
        strides: within.iter().map(|f| stride(a, f)).collect(),
        ..a.clone()
    };
    let extents: Extents = within.iter().map(|f| f.1.n).collect();
    let mut inner = IterationSpace { extents, accesses: space.accesses.iter().map(of_access).collect() };
    inner.join();
    if inner.extents.len() > MOST_LOOPS {
        return None;
    }
    let domain = Domain(across.iter().map(|f| u32::try_from(f.1.n).ok()).collect::<Option<_>>()?);
    let mut fields: SmallVec<[Field; 4]> = SmallVec::new();
    let mut along: Vec<SmallVec<[usize; 3]>> = vec![];
    for (n, (access, whole)) in inner.accesses.iter().zip(&space.accesses).enumerate() {
        let size = i64::from(access.ty.bytes());
        let moves: SmallVec<[usize; 3]> = (0..inner.extents.len()).filter(|&k| access.strides[k] != 0).collect();
        let coef: Vec<i64> = across.iter().map(|f| stride(whole, f) / size).collect();
        let digits: Digits = moves.iter().map(|&k| u32::try_from(inner.extents[k]).ok()).collect::<Option<_>>()?;
        let part = FieldPart {
            lo: SmallVec::from_elem(0, digits.len()),
            len: digits.clone(),
            var: access.var,
            offset: Offset::Affine(Affine::new((access.start - offsets[access.var.index()] as i64) / size, &coef)),
            stride: moves.iter().map(|&k| access.strides[k] / size).collect(),
        };
        let axes = SmallVec::from_elem(1, digits.len());
        fields.push(Field { field: FieldId::new(n), digits, axes, parts: SmallVec::from_elem(part, 1) });
        along.push(moves);
    }
    if fields.iter().any(|f| f.len() > View::MAX_LEN) {
        return None;
    }
    let loops = inner.extents.iter().map(|_| LoopLength::Bound).collect();
    Some(BoxVertices { domain, fields, signature: signature(chain, memory, loops, along) })
}
