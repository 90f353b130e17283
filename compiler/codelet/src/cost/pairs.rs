//! Short vectors: two neighbouring `f32` lanes become one value of 64 bits.
//!
//! A search begins at two stores to neighbouring elements, the first of them aligned, and follows equal operations
//! towards their operands. Operands that do not match are assembled from their lanes by loads or register moves.
//!
//! Invariant: a lane that is part of a pair is computed by the pair only.

use super::TileCosts;
use super::graph::{AccessAddress, Op, RegionId, Val};
use super::walk::{BodyWalk, Effect};
use girder_ir::codelet::{BinaryOp, UnaryOp};
use girder_ir::types::ElemType;
use rustc_hash::FxHashSet;

/// Maximal depth of a search, in operations.
const DEPTH: u32 = 64;

/// The values that are computed in pairs.
#[derive(Default)]
pub(super) struct Pairs {
    /// Effects that are one half of a 64-bit store.
    pub stores: FxHashSet<usize>,
    /// Values that pairs compute.
    pub lanes: FxHashSet<Val>,
    /// Values that pairs use unchanged.
    pub operands: Vec<Val>,
    /// Instructions of pairs, by region.
    pub instructions: Vec<(RegionId, u64)>,
    /// 64-bit accesses and their regions.
    pub accesses: Vec<(AccessAddress, RegionId)>,
    pairs: FxHashSet<(Val, Val)>,
    gathers: Vec<(Val, RegionId)>,
}

impl Pairs {
    /// Finds all pairs outside the regions that `skip` names.
    pub fn find(walk: &BodyWalk<'_>, costs: &TileCosts, skip: impl Fn(RegionId) -> bool) -> Pairs {
        let mut pairs = Pairs::default();
        if costs.vector_bytes < 8 {
            return pairs;
        }
        let stores: Vec<(usize, RegionId, AccessAddress, Val)> = walk
            .effects
            .iter()
            .enumerate()
            .filter_map(|(n, &(region, effect))| match effect {
                Effect::Store { access, value, ty: ElemType::F32 } if !skip(region) => Some((n, region, access, value)),
                _ => None,
            })
            .collect();
        for (i, &(n, region, first, a)) in stores.iter().enumerate() {
            if !is_aligned(walk, first) {
                continue;
            }
            let second = stores[i + 1..].iter().take(16).find(|s| s.1 == region && follows(first, s.2));
            if let Some(&(m, _, _, b)) = second
                && pairs.is_worth(walk, a, b)
            {
                pairs.stores.extend([n, m]);
                pairs.instructions.push((region, 1));
                pairs.accesses.push((first, region));
                pairs.pair(walk, (a, b), region, DEPTH);
            }
        }
        for (v, region) in std::mem::take(&mut pairs.gathers) {
            let is_load = matches!(walk.graph.nodes[v].op, Op::Load(_)) && walk.graph.nodes[v].home == region;
            if !is_load || pairs.lanes.contains(&v) {
                pairs.instructions.push((region, 1));
            }
            pairs.operands.push(v);
        }
        pairs
    }

    /// Returns whether a 64-bit store of two values saves an instruction.
    fn is_worth(&self, walk: &BodyWalk<'_>, a: Val, b: Val) -> bool {
        a == b || is_pair(walk, a, b)
    }

    fn pair(&mut self, walk: &BodyWalk<'_>, (a, b): (Val, Val), region: RegionId, depth: u32) {
        let nodes = &walk.graph.nodes;
        if a == b {
            self.operands.push(a);
            // Duplicating a value takes a move, unless that happened before the loop.
            if nodes[a].home == region {
                self.instructions.push((region, 1));
            }
            return;
        }
        if !self.pairs.insert((a, b)) {
            return;
        }
        let home = deeper(walk, nodes[a].home, nodes[b].home);
        if depth == 0 || !is_pair(walk, a, b) {
            self.gathers.extend([(a, home), (b, home)]);
            return;
        }
        self.lanes.extend([a, b]);
        self.instructions.push((home, 1));
        if let Op::Load(access) = nodes[a].op {
            self.accesses.push((access, home));
            return;
        }
        for (&x, &y) in nodes[a].args.iter().zip(&nodes[b].args) {
            self.pair(walk, (x, y), region, depth - 1);
        }
    }
}

fn deeper(walk: &BodyWalk<'_>, a: RegionId, b: RegionId) -> RegionId {
    if walk.graph.regions[a].depth >= walk.graph.regions[b].depth { a } else { b }
}

/// Returns whether two values are lanes of one operation.
fn is_pair(walk: &BodyWalk<'_>, a: Val, b: Val) -> bool {
    let (x, y) = (&walk.graph.nodes[a], &walk.graph.nodes[b]);
    if x.ty != ElemType::F32 || y.ty != ElemType::F32 || x.home != y.home {
        return false;
    }
    match (&x.op, &y.op) {
        (Op::Load(f), Op::Load(s)) => f.version == s.version && follows(*f, *s) && is_aligned(walk, *f),
        (Op::Const(_), Op::Const(_)) | (Op::Fma, Op::Fma) => true,
        (Op::Binary(f), Op::Binary(s)) => f == s && !matches!(f, BinaryOp::Div | BinaryOp::Rem),
        (Op::Unary(f), Op::Unary(s)) => f == s && matches!(f, UnaryOp::Neg | UnaryOp::Abs),
        _ => false,
    }
}

/// Returns whether `second` accesses the element after `first`.
pub(super) fn follows(first: AccessAddress, second: AccessAddress) -> bool {
    first.storage == second.storage && first.moving == second.moving && first.base.checked_add(1) == Some(second.base)
}

/// Returns whether an address is a multiple of two elements.
pub(super) fn is_aligned(walk: &BodyWalk<'_>, access: AccessAddress) -> bool {
    access.base % 2 == 0 && walk.graph.moving(access.moving).iter().all(|(_, factor)| factor % 2 == 0)
}
