//! Tiles of variables and vertices: `on tile(i / 5)`, `on linear(…)`, tables of flat elements.
//!
//! # Note: Blocks
//! Runs that follow one another and are multiples of one block, as most computed mappings are, print as one row: the
//! tiles of the blocks in order, and `start..end by block`.
//!
//! # Note: Steps
//! In the table of a separable mapping, the innermost index that a tile depends on steps by whole blocks if its length
//! is a multiple of the block, so that there is one row for each run.

use super::Printer;
use super::binders::Binders;
use girder_ir::affine::Affine;
use girder_ir::family::{Domain, IndexFn, Term, TileMap};
use girder_ir::placement::{Mapping, TileRange, UNPLACED};
use girder_ir::region::gcd;
use girder_source::Span;
use girder_syntax::ast::{BinaryOp, ExprId, IntegerList, Place, TableRow};
use girder_syntax::make::{arg, named, row, table};

/// A mapping with fewer runs than this has a row for each run.
const FEW_RUNS: u64 = 8;
/// A mapping with more than this many blocks for each run has a row for each run.
const MOST_BLOCKS: u64 = 2;

impl Printer<'_> {
    /// Returns the `on …` of a variable, or `None` if no element has a tile.
    pub(super) fn mapping(&mut self, mapping: &Mapping, shape: &[u64], len: u64) -> Option<Place> {
        let fitted = match mapping {
            Mapping::One(_) | Mapping::Linear { tiles: 2.., .. } => mapping.clone(),
            other => Mapping::fit(shape, other.runs(len)),
        };
        match &fitted {
            Mapping::One(UNPLACED) => None,
            Mapping::One(tile) => Some(Place::Expr(self.tile(*tile))),
            &Mapping::Linear { first, tiles, grain } => {
                let parts = [("first", first), ("tiles", tiles), ("grain", grain)];
                let args = parts.map(|(name, value)| named(name, self.make.uint(value as u64)));
                Some(Place::Expr(self.make.call_name("linear", args.into())))
            }
            Mapping::Separable { domain, tiles: TileMap::Separable { base, terms } } => {
                Some(Place::Table(table(vec![self.separable(domain, *base, terms)])))
            }
            runs => self.runs(runs, len),
        }
    }

    /// Prints `tile(3)`.
    fn tile(&mut self, tile: u32) -> ExprId {
        let tile = self.make.uint(tile as u64);
        self.make.call_name("tile", vec![arg(tile)])
    }

    /// Prints `tile(0..4)`.
    pub(super) fn tiles(&mut self, range: TileRange) -> ExprId {
        let tiles = self.make.span(u64::from(range.first), u64::from(range.end()));
        self.make.call_name("tile", vec![arg(tiles)])
    }

    /// Returns a table with one row for each run of elements that has a tile.
    fn runs(&mut self, mapping: &Mapping, len: u64) -> Option<Place> {
        if let Some(row) = self.blocks(mapping, len) {
            return Some(Place::Table(table(vec![row])));
        }
        let mut rows = Vec::new();
        for (start, end, tile) in mapping.runs(len).filter(|r| r.2 != UNPLACED) {
            let tile = self.make.uint(tile as u64);
            let elements = self.make.span(start, end);
            rows.push(row(tile, vec![arg(elements)]));
        }
        (!rows.is_empty()).then(|| Place::Table(table(rows)))
    }

    /// Returns `[0, 24, 49, …]: start..end by block`, if the runs follow one another and are multiples of a block.
    fn blocks(&mut self, mapping: &Mapping, len: u64) -> Option<TableRow> {
        let mut runs = mapping.runs(len).filter(|r| r.2 != UNPLACED);
        let (start, mut end, _) = runs.next()?;
        let (mut count, mut block, mut last) = (1, 0, end - start);
        for run in runs {
            if run.0 != end {
                return None;
            }
            // The last block may be shorter than the others.
            // Elements are fewer than 2³².
            block = gcd(block as i64, last as i64) as u64;
            (count, end, last) = (count + 1, run.1, run.1 - run.0);
        }
        let blocks = (end - start).checked_div(block)?;
        if count < FEW_RUNS || blocks > MOST_BLOCKS * count {
            return None;
        }
        let mut tiles = Vec::with_capacity(blocks as usize + 1);
        for (start, end, tile) in mapping.runs(len).filter(|r| r.2 != UNPLACED) {
            tiles.extend((0..(end - start).div_ceil(block)).map(|_| i64::from(tile)));
        }
        let tiles = self.make.integers(IntegerList::new(1, &tiles, vec![]));
        let [start, end, block] = [start, end, block].map(|n| self.make.uint(n));
        let elements = self.make.range_by(start, end, block);
        Some(row(tiles, vec![arg(elements)]))
    }

    /// Prints a row such as `i / 5: i..i + 1 for i in 0..10;`.
    fn separable(&mut self, domain: &Domain, base: u32, terms: &[Term]) -> TableRow {
        let depth = terms.iter().map(|t| t.dim as usize + 1).max().unwrap_or(0);
        let mut extents = domain.0[..depth].to_vec();
        let mut block: i64 = domain.0[depth..].iter().map(|&n| n as i64).product();
        let mut terms = terms.to_vec();
        // Steps by whole blocks, see the note.
        if let (Some(n), Some(t)) = (extents.last_mut(), terms.iter_mut().find(|t| t.dim as usize + 1 == depth))
            && let IndexFn::Block(b) = t.function
            && n.is_multiple_of(b)
        {
            (*n, t.function, block) = (*n / b, IndexFn::Identity, block * b as i64);
        }
        let mut coef = vec![block; depth];
        for k in (1..depth).rev() {
            coef[k - 1] = coef[k] * extents[k] as i64;
        }
        let domain = Domain(extents.into_iter().collect());
        let mut binders = Binders::new(self, &domain);
        let key = self.tile_sum(base, &terms, &mut binders);
        let number = |base| super::binders::Number::Affine(Affine::new(base, &coef));
        let (start, end) = (binders.number(self, &number(0), 0), binders.number(self, &number(block), 0));
        let elements = self.make.range(start, end);
        let family = binders.binders(self);
        TableRow::Row { key, values: vec![arg(elements)], to: None, family, span: Span::NONE }
    }

    /// Returns the `on tile(…)` of the vertices of a family.
    pub(super) fn tile_map(&mut self, map: &TileMap, binders: &mut Binders<'_>) -> Place {
        let tile = match map {
            TileMap::Separable { base, terms } => self.tile_sum(*base, terms, binders),
            TileMap::Table(tiles) => {
                let column = super::binders::Number::Table(tiles.iter().map(|&t| t as i64).collect());
                binders.number(self, &column, 0)
            }
        };
        Place::Expr(self.make.call_name("tile", vec![arg(tile)]))
    }

    /// Prints a tile such as `base + stride * (i / 5)`.
    fn tile_sum(&mut self, base: u32, terms: &[Term], binders: &mut Binders<'_>) -> ExprId {
        let mut sum = Vec::with_capacity(terms.len());
        for t in terms {
            let i = binders.index(self, t.dim as usize);
            let n = binders.domain.0[t.dim as usize];
            let by = |this: &mut Self, op, left, value: u32| {
                let right = this.make.uint(value as u64);
                this.make.binary(op, left, right)
            };
            let part = match t.function {
                IndexFn::Identity => i,
                IndexFn::Block(b) => by(self, BinaryOp::Div, i, b),
                IndexFn::Balanced(p) => {
                    let scaled = by(self, BinaryOp::Mul, i, p);
                    by(self, BinaryOp::Div, scaled, n)
                }
                IndexFn::Cyclic(p) => by(self, BinaryOp::Rem, i, p),
                IndexFn::BlockCyclic(b, p) => {
                    let blocks = by(self, BinaryOp::Div, i, b);
                    by(self, BinaryOp::Rem, blocks, p)
                }
            };
            sum.push((t.stride as i64, part));
        }
        self.sum(base as i64, &sum)
    }
}
