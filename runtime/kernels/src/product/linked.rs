//! Linked products: sums whose terms lie in several places of both operands, for rows at any addresses. A convolution
//! is one: its rows are the elements of the result, and its links are the taps.
//!
//! # Note: Order of links
//! An element takes the terms of all links in order, each link's in the order of k. A link that is `fresh` ends the
//! block before it: the sum of its own block begins at +0 and is added to `c` when the block is complete, as in
//! [`Product`](super::Product). The first block consists of the links before the first fresh one.
//!
//! The columns are taken in panels, the links in slabs whose part of `b` stays in the second-level cache, and the rows
//! in tiles. A sum of a single block continues from slab to slab; other slabs are whole blocks.
//!
//! Invariant: no element is accessed but those of the rows' columns, and those of `a` and `b` that the links name.

use super::Start;
use super::pack::PanelSource;
use super::plan::share;
use super::scratch;
use super::sums::{self, Columns, Sums};
use super::vector::{Float, Vector};
use std::ops::Range;

/// A row of the result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Row {
    /// Byte of its first column.
    pub c: i64,
    /// Byte in `a` to which the links add.
    pub a: i64,
}

/// Consecutive terms of the sums of all rows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Link {
    /// Bytes from a row's `a` to the first term.
    pub a: i64,
    /// Byte of column 0 of the first term.
    pub b: i64,
    /// Bytes from term to term in `a`.
    pub a_step: i64,
    /// Bytes from term to term in `b`.
    pub b_step: i64,
    /// The number of terms.
    pub terms: u64,
    /// Whether a new block begins.
    pub fresh: bool,
}

/// Rows that share their links: `c[row, j] = start + Σ a[row, link, k] · b[link, k, j]`.
#[derive(Clone, Copy, Debug)]
pub struct LinkedProduct<'a> {
    /// The address to which all bytes are relative.
    pub base: *mut u8,
    /// The rows.
    pub rows: &'a [Row],
    /// The columns to compute, which are contiguous in `c`.
    pub columns: (u64, u64),
    /// Bytes from column to column of `b`.
    pub b_col: i64,
    /// The links.
    pub links: &'a [Link],
}

/// Bytes of a slab of `b`.
const SLAB_BYTES: u64 = 192 << 10;
/// With fewer rows, a contiguous `b` is not packed.
const ROWS_WORTH_PACKING: usize = 48;

/// A link, or a part of one, with the place of its part of `b`.
#[derive(Clone, Copy)]
pub(super) struct SlabLink {
    a: i64,
    b: *const u8,
    a_step: i64,
    b_step: i64,
    terms: u64,
    fresh: bool,
}

/// Up to `ROWS` rows of up to `LINKED_WIDTH` vectors.
pub(super) struct LinkedTile<'a, F> {
    base: *mut u8,
    rows: &'a [Row],
    /// Bytes from a row's `c` to the first column of the tile.
    shift: i64,
    columns: usize,
    links: &'a [SlabLink],
    /// Whether rows of `b` have all lanes of the tile's vectors, not only the columns.
    padded: bool,
    start: Start<F>,
}

/// The function for tiles of certain rows and vectors.
pub(super) type LinkedTileFn<F> = unsafe fn(&LinkedTile<'_, F>);

/// The functions that are compiled for the instructions of a vector type.
pub(super) struct LinkedKernels<F: 'static> {
    /// Tiles, by rows and vectors from 1 on.
    pub tiles: &'static [&'static [LinkedTileFn<F>]],
    /// `pack::pack`, with vectors and destination.
    pub pack: unsafe fn(&PanelSource, usize, *mut F),
}

/// Computes a linked product.
///
/// # Safety
/// The machine has the instructions, and the call satisfies the note on sound access of the parent module.
pub(super) unsafe fn product<V: Vector>(
    call: &LinkedProduct<'_>,
    start: Start<V::Float>,
    kernels: &LinkedKernels<V::Float>,
) {
    let (first, end) = call.columns;
    let (lanes, element) = (V::LANES as u64, size_of::<V::Float>() as i64);
    if call.rows.is_empty() || first >= end {
        return;
    }
    let vectors = (end - first).div_ceil(lanes);
    let panels = vectors.div_ceil(V::LINKED_WIDTH as u64);
    let packs = call.b_col != element || panels > 1 && call.rows.len() >= ROWS_WORTH_PACKING;
    let widest = vectors.div_ceil(panels);
    let slabs = slabs(call.links, widest * lanes * element as u64, start == Start::Added);
    let most = slabs.iter().map(|slab| slab.iter().map(|part| part.terms).sum::<u64>()).max().unwrap_or(0);
    let room = if packs { (most * widest * lanes * element as u64) as usize } else { 0 };
    scratch::with(room, |at| {
        let mut links = Vec::with_capacity(slabs.iter().map(Vec::len).max().unwrap_or(0));
        for panel in (0..panels).map(|p| share(vectors, panels, p)) {
            let left = first + panel.start * lanes;
            let panel = Panel {
                vectors: (panel.end - panel.start) as usize,
                left,
                columns: (end - left).min((panel.end - panel.start) * lanes) as usize,
            };
            let mut start = start;
            for slab in &slabs {
                links.clear();
                let to = packs.then_some(at.cast::<V::Float>());
                // SAFETY: passed on; the scratch has room for the terms of the slab.
                unsafe {
                    place::<V>(call, slab, &panel, to, kernels, &mut links);
                    run::<V>(call, &panel, (&links, packs), start, kernels);
                }
                start = next_start(slab, call.links, start);
            }
        }
    });
}

/// Columns that are computed together.
struct Panel {
    vectors: usize,
    left: u64,
    columns: usize,
}

/// Some terms of a link.
#[derive(Clone, Copy)]
struct SlabPart {
    link: usize,
    first: u64,
    terms: u64,
}

/// Cuts links into slabs of about [`SLAB_BYTES`], whose rows of `b` have some bytes. There is at least one slab,
/// because sums without terms are their start.
fn slabs(links: &[Link], row_bytes: u64, added: bool) -> Vec<Vec<SlabPart>> {
    let most = (SLAB_BYTES / row_bytes.max(1)).max(16);
    let continues = !added && !links.iter().any(|link| link.fresh);
    let mut all = vec![Vec::new()];
    let mut room = most;
    for (index, link) in links.iter().enumerate() {
        let mut first = 0;
        loop {
            let may_end = continues || link.fresh && first == 0;
            if room == 0 && may_end {
                all.push(Vec::new());
                room = most;
            }
            let terms = if continues { (link.terms - first).min(room) } else { link.terms };
            if let Some(slab) = all.last_mut() {
                slab.push(SlabPart { link: index, first, terms });
            }
            room = room.saturating_sub(terms);
            first += terms;
            if first == link.terms {
                break;
            }
        }
    }
    all
}

/// Returns the start of the slab after one.
fn next_start<F: Copy>(slab: &[SlabPart], links: &[Link], start: Start<F>) -> Start<F> {
    let ends_block = slab.last().is_some_and(|part| links.get(part.link + 1).is_some_and(|link| link.fresh));
    let is_whole = slab.last().is_some_and(|part| part.first + part.terms == links[part.link].terms);
    match start {
        Start::Added => Start::Added,
        _ if ends_block && is_whole => Start::Added,
        _ => Start::Old,
    }
}

/// Lists the parts of a slab with the addresses of their `b`, after packing it if there is a place for it.
///
/// # Safety
/// The links' terms of `b` may be read in the columns of the panel; there is room for them.
unsafe fn place<V: Vector>(
    call: &LinkedProduct<'_>,
    slab: &[SlabPart],
    panel: &Panel,
    to: Option<*mut V::Float>,
    kernels: &LinkedKernels<V::Float>,
    links: &mut Vec<SlabLink>,
) {
    let width = panel.vectors * V::LANES;
    let mut to = to;
    for (number, part) in slab.iter().enumerate() {
        let link = &call.links[part.link];
        let ahead = (panel.left as i64).wrapping_mul(call.b_col);
        let from = link.b.wrapping_add(ahead).wrapping_add((part.first as i64).wrapping_mul(link.b_step));
        let from = call.base.wrapping_offset(from as isize).cast_const();
        let (b, b_step) = match to {
            None => (from, link.b_step),
            Some(at) => {
                let source = PanelSource {
                    from,
                    lane: call.b_col,
                    step: link.b_step,
                    lanes: panel.columns,
                    terms: part.terms as usize,
                };
                // SAFETY: the caller's promise.
                unsafe { (kernels.pack)(&source, panel.vectors, at) };
                to = Some(at.wrapping_add(part.terms as usize * width));
                (at.cast::<u8>().cast_const(), (width * size_of::<V::Float>()) as i64)
            }
        };
        let a = link.a.wrapping_add((part.first as i64).wrapping_mul(link.a_step));
        // The start of a slab that begins with a fresh link says that its sum is added.
        let fresh = link.fresh && part.first == 0 && (number > 0 || part.link == 0);
        links.push(SlabLink { a, b, a_step: link.a_step, b_step, terms: part.terms, fresh });
    }
}

/// Computes a slab of a panel, tile by tile.
///
/// # Safety
/// As [`product`]; the links name terms that may be read.
unsafe fn run<V: Vector>(
    call: &LinkedProduct<'_>,
    panel: &Panel,
    (links, padded): (&[SlabLink], bool),
    start: Start<V::Float>,
    kernels: &LinkedKernels<V::Float>,
) {
    let tallest = (V::SUMS / panel.vectors).min(V::ROWS);
    let rows = call.rows.len() as u64;
    let count = rows.div_ceil(tallest as u64);
    let shift = (panel.left as usize * size_of::<V::Float>()) as i64;
    for range in (0..count).map(|t| share(rows, count, t)) {
        let Range { start: from, end } = range;
        let rows = &call.rows[from as usize..end as usize];
        let tile = LinkedTile { base: call.base, rows, shift, columns: panel.columns, links, padded, start };
        let run = kernels.tiles[rows.len() - 1][panel.vectors - 1];
        // SAFETY: the caller's promise; the function is that for these numbers of rows and vectors.
        unsafe { run(&tile) };
    }
}

/// Computes a tile of `M` rows of `N` vectors.
///
/// # Safety
/// There are `M` rows; their columns and the links' terms are inside; the machine has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn tile<V: Vector, const M: usize, const N: usize>(t: &LinkedTile<'_, V::Float>) {
    let rows: &[Row; M] = match t.rows.try_into() {
        Ok(rows) => rows,
        Err(_) => return,
    };
    let at = |i: usize, n: usize| {
        let row = t.base.wrapping_offset(rows[i].c.wrapping_add(t.shift) as isize);
        row.cast::<V::Float>().wrapping_add(n * V::LANES)
    };
    let a: [*const u8; M] = std::array::from_fn(|i| t.base.wrapping_offset(rows[i].a as isize).cast_const());
    let columns = Columns::of::<N>(t.columns);
    let (mut links, mut start) = (t.links, t.start);
    // At least once: sums without terms are their start.
    let mut is_first = true;
    loop {
        let block = links.iter().skip(usize::from(!is_first)).position(|link| link.fresh);
        let (now, next) = links.split_at(block.map_or(links.len(), |end| end + usize::from(!is_first)));
        // SAFETY: the columns of every row are inside `c`; rows of `b` have the columns, or all lanes if they are
        // padded.
        unsafe {
            let mut sums = sums::begin::<V, M, N>(at, &columns, start);
            if t.padded || columns.is_whole {
                take::<V, M, N, true>(&a, now, &mut sums, columns.last);
            } else {
                take::<V, M, N, false>(&a, now, &mut sums, columns.last);
            }
            sums::end::<V, M, N>(sums, at, &columns, start);
        }
        if next.is_empty() {
            break;
        }
        (links, start, is_first) = (next, Start::Added, false);
    }
}

/// Adds the terms of some links; rows of `b` have all lanes if they are `WHOLE`, otherwise those of `last` in the last
/// vector.
///
/// # Safety
/// As [`tile`].
#[inline(always)]
unsafe fn take<V: Vector, const M: usize, const N: usize, const WHOLE: bool>(
    a: &[*const u8; M],
    links: &[SlabLink],
    sums: &mut Sums<V, M, N>,
    last: V::Mask,
) {
    for link in links {
        let (mut b, mut ahead) = (link.b, link.a);
        for _ in 0..link.terms {
            // SAFETY: the term is inside `a` and `b`.
            unsafe { sums::term::<V, M, N, WHOLE>(sums, |i| a[i].wrapping_offset(ahead as isize), b, last) };
            ahead = ahead.wrapping_add(link.a_step);
            b = b.wrapping_offset(link.b_step as isize);
        }
    }
}

/// Computes a linked product with plain loops.
///
/// # Safety
/// See the note on sound access.
pub(super) unsafe fn plain<F: Float>(call: &LinkedProduct<'_>, start: Start<F>) {
    let at = |byte: i64| call.base.wrapping_offset(byte as isize).cast::<F>();
    for row in call.rows {
        for j in call.columns.0..call.columns.1 {
            let c = at(row.c + j as i64 * size_of::<F>() as i64);
            let (mut links, mut start) = (call.links, start);
            let mut is_first = true;
            loop {
                let block = links.iter().skip(usize::from(!is_first)).position(|link| link.fresh);
                let (now, next) = links.split_at(block.map_or(links.len(), |end| end + usize::from(!is_first)));
                // SAFETY: the row's columns are inside `c`, and the links' terms inside `a` and `b`.
                unsafe {
                    let mut sum = match start {
                        Start::Old => c.read_unaligned(),
                        Start::Value(value) => value,
                        Start::Added => F::ZERO,
                    };
                    for (link, k) in now.iter().flat_map(|link| (0..link.terms as i64).map(move |k| (link, k))) {
                        let a = at(row.a + link.a + k * link.a_step).read_unaligned();
                        let b = at(link.b + k * link.b_step + j as i64 * call.b_col).read_unaligned();
                        sum = a.mul_add(b, sum);
                    }
                    c.write_unaligned(if start == Start::Added { c.read_unaligned().add(sum) } else { sum });
                }
                if next.is_empty() {
                    break;
                }
                (links, start, is_first) = (next, Start::Added, false);
            }
        }
    }
}

#[cfg(test)]
mod tests;
