//! Computes a product block by block: columns of `c`, then terms, then rows. A block is computed tile by tile, all
//! columns of a panel of rows before the next panel, so that the panel of `a` stays in the first-level cache.
//!
//! Invariant: the blocks of terms of an element are taken in order.

use super::flat::{self, FlatFn};
use super::pack::PanelSource;
use super::plan::{Plan, is_better_transposed, share};
use super::scratch;
use super::tile::{Tile, TileFn};
use super::vector::{Float, Vector};
use super::{Product, Start};

/// The functions that are compiled for the instructions of a vector type.
pub(super) struct Kernels<F: 'static> {
    /// Tiles, by their rows and vectors from 1 on.
    pub tiles: &'static [&'static [TileFn<F>]],
    /// Flat products, by their rows from 1 on.
    pub flats: &'static [FlatFn<F>],
    /// `pack::pack`, with vectors and destination.
    pub pack: unsafe fn(&PanelSource, usize, *mut F),
}

/// Computes a whole product.
///
/// # Safety
/// The machine has the instructions, and the call satisfies the note on sound access.
pub(super) unsafe fn product<V: Vector>(call: &Product, start: Start<V::Float>, kernels: &Kernels<V::Float>) {
    let call = if is_better_transposed::<V>(call) { call.transposed() } else { *call };
    let element = size_of::<V::Float>() as i64;
    if call.m == 0 || call.n == 0 {
        return;
    }
    if call.m <= flat::ROWS && call.c.col == element && call.b.col == element {
        // SAFETY: passed on; the function is that for `m` rows.
        return unsafe { kernels.flats[call.m as usize - 1](&call, start) };
    }
    // A sum that is added to another cannot be continued, so slabs then are whole blocks of terms.
    let plan = Plan::of::<V>(&call, call.block < call.k || matches!(start, Start::Added));
    let (b, a) = plan.packed::<V>();
    scratch::with((a + b) * size_of::<V::Float>(), |at| {
        let packed_b = at.cast::<V::Float>();
        let blocks = BlockedProduct { call: &call, plan: &plan, kernels, packed_b, packed_a: packed_b.wrapping_add(b) };
        // SAFETY: passed on; the scratch has room for both blocks.
        unsafe { blocks.run::<V>(start) };
    });
}

struct BlockedProduct<'a, F: 'static> {
    call: &'a Product,
    plan: &'a Plan,
    kernels: &'a Kernels<F>,
    packed_b: *mut F,
    packed_a: *mut F,
}

/// Some terms of some columns; the columns are given in vectors.
#[derive(Clone, Copy)]
struct Slab<F> {
    vector: u64,
    vectors: u64,
    term: u64,
    terms: u64,
    start: Start<F>,
}

/// The inputs of a tile: address, bytes from row to row (or vector to vector), bytes from term to term.
type Reads = (*const u8, i64, i64);

impl<F: Float> BlockedProduct<'_, F> {
    /// # Safety
    /// As [`product`]; the scratch has room.
    unsafe fn run<V: Vector<Float = F>>(&self, start: Start<F>) {
        let vectors = self.call.n.div_ceil(V::LANES as u64);
        let mut vector = 0;
        while vector < vectors {
            let count = (vectors - vector).min(self.plan.vectors);
            let mut term = 0;
            // At least once: sums without terms are their start.
            loop {
                let terms = (self.call.k - term).min(self.plan.terms);
                let start = match term {
                    0 => start,
                    _ if self.call.block >= self.call.k => Start::Old,
                    _ => Start::Added,
                };
                // SAFETY: the vectors and terms are inside.
                unsafe { self.slab::<V>(Slab { vector, vectors: count, term, terms, start }) };
                term += terms;
                if term == self.call.k {
                    break;
                }
            }
            vector += count;
        }
    }

    /// # Safety
    /// As [`product`]; the slab is inside.
    unsafe fn slab<V: Vector<Float = F>>(&self, slab: Slab<F>) {
        let panels = slab.vectors.div_ceil(V::WIDTH as u64);
        if self.plan.pack_b {
            for p in 0..panels {
                // SAFETY: the panel is inside, and its part of the scratch too.
                unsafe { self.pack_panel::<V>(&slab, share(slab.vectors, panels, p)) };
            }
        }
        let mut row = 0;
        while row < self.call.m {
            let rows = (self.call.m - row).min(self.plan.rows);
            if self.plan.pack_a {
                // SAFETY: the rows are inside, and there is room for them.
                unsafe { self.pack_rows::<V>(&slab, row, rows) };
            }
            let tallest = if self.plan.pack_a { packed_rows::<V>() } else { V::ROWS } as u64;
            let row_panels = rows.div_ceil(tallest);
            for s in 0..row_panels {
                let at = |s: u64| match self.plan.pack_a {
                    true => (s * tallest).min(rows),
                    false => share(rows, row_panels, s).start,
                };
                let (from, to) = (at(s), if s + 1 == row_panels { rows } else { at(s + 1) });
                let a = self.rows::<V>(&slab, row, from);
                for p in 0..panels {
                    // SAFETY: both panels are inside.
                    unsafe { self.tile::<V>(&slab, (row + from, to - from), a, share(slab.vectors, panels, p)) };
                }
            }
            row += rows;
        }
    }

    /// Returns the first column of some vectors of a slab, and the number of columns.
    fn columns<V: Vector<Float = F>>(&self, slab: &Slab<F>, panel: &std::ops::Range<u64>) -> (u64, u64) {
        let first = (slab.vector + panel.start) * V::LANES as u64;
        (first, (self.call.n - first).min((panel.end - panel.start) * V::LANES as u64))
    }

    /// # Safety
    /// The panel is inside.
    unsafe fn pack_panel<V: Vector<Float = F>>(&self, slab: &Slab<F>, panel: std::ops::Range<u64>) {
        let (first, columns) = self.columns::<V>(slab, &panel);
        let b = &self.call.b;
        let source = PanelSource {
            from: b.element(slab.term, first),
            lane: b.col,
            step: b.row,
            lanes: columns as usize,
            terms: slab.terms as usize,
        };
        let to = self.packed_b.wrapping_add((panel.start * V::LANES as u64 * slab.terms) as usize);
        // SAFETY: the caller's promise.
        unsafe { (self.kernels.pack)(&source, (panel.end - panel.start) as usize, to) };
    }

    /// # Safety
    /// The rows are inside, and there is room for them.
    unsafe fn pack_rows<V: Vector<Float = F>>(&self, slab: &Slab<F>, row: u64, rows: u64) {
        let a = &self.call.a;
        for first in (0..rows).step_by(V::LANES) {
            let source = PanelSource {
                from: a.element(row + first, slab.term),
                lane: a.row,
                step: a.col,
                lanes: (rows - first).min(V::LANES as u64) as usize,
                terms: slab.terms as usize,
            };
            // SAFETY: the caller's promise.
            unsafe { (self.kernels.pack)(&source, 1, self.packed_a.wrapping_add((first * slab.terms) as usize)) };
        }
    }

    /// Returns the inputs in `a` of a tile that begins at a row of a block.
    fn rows<V: Vector<Float = F>>(&self, slab: &Slab<F>, block: u64, row: u64) -> Reads {
        if !self.plan.pack_a {
            return (self.call.a.element(block + row, slab.term), self.call.a.row, self.call.a.col);
        }
        let (lanes, element) = (V::LANES as u64, size_of::<F>() as i64);
        let at = row / lanes * lanes * slab.terms + row % lanes;
        (self.packed_a.wrapping_add(at as usize).cast::<u8>().cast_const(), element, V::LANES as i64 * element)
    }

    /// # Safety
    /// The rows and the panel are inside.
    unsafe fn tile<V: Vector<Float = F>>(
        &self,
        slab: &Slab<F>,
        (row, rows): (u64, u64),
        (a, a_row, a_step): Reads,
        panel: std::ops::Range<u64>,
    ) {
        let (first, columns) = self.columns::<V>(slab, &panel);
        let vectors = (panel.end - panel.start) as usize;
        let element = size_of::<F>() as i64;
        let (b, b_step) = if self.plan.pack_b {
            let at = panel.start * V::LANES as u64 * slab.terms;
            (self.packed_b.wrapping_add(at as usize).cast::<u8>().cast_const(), (vectors * V::LANES) as i64 * element)
        } else {
            (self.call.b.element(slab.term, first).cast_const(), self.call.b.row)
        };
        let c = self.call.c.from(row, first);
        let tile = Tile {
            c: c.at.cast(),
            c_row: c.row,
            columns: columns as usize,
            a,
            a_row,
            a_step,
            b,
            b_step,
            padded: self.plan.pack_b,
            terms: slab.terms,
            block: self.call.block,
            start: slab.start,
        };
        let run = self.kernels.tiles[rows as usize - 1][vectors - 1];
        // SAFETY: the caller's promise; the function is that for these numbers of rows and vectors.
        unsafe { if c.col == element { run(&tile) } else { scattered(run, tile, c.col, rows) } }
    }
}

/// Returns the number of rows in a tile of packed rows. Packed rows are in groups of as many rows as there are lanes;
/// no tile may cross a group.
const fn packed_rows<V: Vector>() -> usize {
    let parts = V::LANES.div_ceil(V::ROWS).next_power_of_two();
    V::LANES / parts
}

/// The number of elements of the largest tile.
const LARGEST: usize = 8 * 3 * 16;

/// Computes a tile of a `c` whose columns are strided.
///
/// # Safety
/// As that of the tile.
unsafe fn scattered<F: Float>(run: TileFn<F>, tile: Tile<F>, col: i64, rows: u64) {
    let mut near = [F::ZERO; LARGEST];
    let far = |i: usize, j: usize| {
        let ahead = (i as i64).wrapping_mul(tile.c_row).wrapping_add((j as i64).wrapping_mul(col));
        tile.c.wrapping_byte_offset(ahead as isize)
    };
    // SAFETY: row i and column j are inside `c`; the tile has at most as many elements as `near`.
    unsafe {
        for i in 0..rows as usize {
            for j in 0..tile.columns {
                near[i * tile.columns + j] = far(i, j).read_unaligned();
            }
        }
        let c_row = (tile.columns * size_of::<F>()) as i64;
        run(&Tile { c: near.as_mut_ptr(), c_row, ..tile });
        for i in 0..rows as usize {
            for j in 0..tile.columns {
                far(i, j).write_unaligned(near[i * tile.columns + j]);
            }
        }
    }
}
