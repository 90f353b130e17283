//! Program points at which executions are counted, because only the data decide how often they run.
//!
//! Invariant: the interpreter and compiled code pass a point once per execution of the code that follows it.

use girder_ir::codelet::{Codelet, Stmt, StmtBlock};
use rustc_hash::FxHashMap;

/// A program point: before statement `stmt` of block `block`. Blocks are numbered in the order of [`blocks`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Point {
    /// The block.
    pub block: u32,
    /// The statement; 0 is the beginning of the block, also of an empty one.
    pub stmt: u32,
}

/// The points of one codelet; counter `k` counts how often the k-th point is passed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Points(Vec<Point>);

impl Points {
    pub(super) fn new(points: Vec<Point>) -> Points {
        Points(points)
    }

    /// Returns the number of counters of an instance, or of one worker of it for a `multi` codelet.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Locates the points in a codelet, which must not move.
    pub fn located<'c>(&self, codelet: &'c Codelet) -> Located<'c> {
        let blocks = blocks(codelet);
        let mut at: FxHashMap<*const StmtBlock, Vec<(u32, u32)>> = FxHashMap::default();
        for (k, point) in self.0.iter().enumerate() {
            if let Some(block) = blocks.get(point.block as usize) {
                at.entry(std::ptr::from_ref(*block)).or_default().push((point.stmt, k as u32));
            }
        }
        Located { at, codelet: std::marker::PhantomData }
    }
}

/// Points by block.
#[derive(Clone, Debug)]
pub struct Located<'c> {
    at: FxHashMap<*const StmtBlock, Vec<(u32, u32)>>,
    codelet: std::marker::PhantomData<&'c Codelet>,
}

impl Located<'_> {
    /// Returns statement and counter of each point of a block.
    pub fn of(&self, block: &StmtBlock) -> &[(u32, u32)] {
        self.at.get(&std::ptr::from_ref(block)).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a block, or one inside it, has a point.
    pub fn any_in(&self, block: &StmtBlock) -> bool {
        !self.at.is_empty() && (!self.of(block).is_empty() || inner(block).any(|b| self.any_in(b)))
    }
}

/// Returns all blocks of a codelet, outer blocks before the blocks inside them.
pub fn blocks(codelet: &Codelet) -> Vec<&StmtBlock> {
    let mut list = Vec::new();
    let mut open = vec![&codelet.body];
    while let Some(block) = open.pop() {
        list.push(block);
        open.extend(inner(block));
    }
    list
}

/// Returns the blocks directly inside a block.
fn inner(block: &StmtBlock) -> impl Iterator<Item = &StmtBlock> {
    block.iter().flat_map(Stmt::blocks)
}
