//! Linked products: vertices that run several products for the elements of their results, such as one for each tap of a
//! convolution, as few large ones.
//!
//! # Note: Links
//! The products of a vertex that add to one row of elements are the *links* of the row, in the order in which they run.
//! Rows of all vertices whose links read the same elements of `b`, and elements of `a` at the same distances, are one
//! linked product. Linked products of the same rows whose columns are adjacent are one with more columns.
//!
//! Invariant: every element takes the terms that its vertex adds to it, in the same order.

use super::ProductStart;
use super::events::{Events, FieldMatrix, may_run_products};
use crate::hosted::HostedGraph;
use girder_codelet::facts::Facts;
use girder_codelet::kernel::FieldLayout;
use girder_codelet::sizes::Sizes;
use girder_codelet::vertices::vertex_consts;
use girder_fusion::strides::field_strides;
use girder_ir::family::{Family, Field};
use girder_ir::ids::FieldId;
use girder_ir::types::ElemType;
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::ops::Range;

/// A row of the result of a linked product.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkedRow {
    /// Byte of its first column; the columns are contiguous.
    pub c: i64,
    /// Byte of `a` to which links add.
    pub a: i64,
}

/// Consecutive terms of every sum of a linked product.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProductLink {
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
    /// Whether it begins a new block: the sum of the block begins at +0 and is added to `c` when it is complete.
    pub fresh: bool,
}

/// Rows that share their links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkedProduct {
    /// Element type: `f32` or `f64`.
    pub ty: ElemType,
    /// The initial value of every sum.
    pub start: ProductStart,
    /// The number of columns.
    pub columns: u64,
    /// Bytes from column to column of `b`.
    pub b_col: i64,
    /// The links, in order.
    pub links: Vec<ProductLink>,
    /// The rows, by their bytes.
    pub rows: Vec<LinkedRow>,
}

/// What the rows of a linked product have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct LinkedKey {
    pub ty: ElemType,
    pub start: ProductStart,
    pub columns: u64,
    pub b_col: i64,
    pub links: Vec<ProductLink>,
}

/// Rows by what they have in common, in the order in which they are found.
pub(super) type LinkedRows = IndexMap<LinkedKey, Vec<LinkedRow>, FxBuildHasher>;

impl LinkedProduct {
    /// Returns the bytes that hold the results.
    pub(super) fn result(&self) -> Range<i64> {
        let bytes = self.columns as i64 * i64::from(self.ty.bytes());
        let (first, last) = (self.rows.first().map_or(0, |r| r.c), self.rows.last().map_or(0, |r| r.c + bytes));
        first..last
    }

    /// Returns the hull of the bytes of `a` that are read, or `None` if there are none.
    pub fn a_bytes(&self) -> Option<Range<i64>> {
        let links = self.links.iter().filter(|link| link.terms > 0);
        let of_links = hull(links.map(|link| reach(link.a, link.a_step, link.terms)))?;
        let of_rows = hull(self.rows.iter().map(|row| row.a..row.a.saturating_add(1)))?;
        let size = i64::from(self.ty.bytes());
        let end = (of_rows.end - 1).saturating_add(of_links.end - 1).saturating_add(size);
        Some(of_rows.start.saturating_add(of_links.start)..end)
    }

    /// Returns the hull of the bytes of `b` that are read, or `None` if there are none.
    pub fn b_bytes(&self) -> Option<Range<i64>> {
        let links = self.links.iter().filter(|link| link.terms > 0 && self.columns > 0 && !self.rows.is_empty());
        let of_links = hull(links.map(|link| reach(link.b, link.b_step, link.terms)))?;
        let across = reach(0, self.b_col, self.columns);
        let size = i64::from(self.ty.bytes());
        let end = (of_links.end - 1).saturating_add(across.end - 1).saturating_add(size);
        Some(of_links.start.saturating_add(across.start)..end)
    }
}

/// Returns the hull of the first bytes of `count` elements at a distance of `step` bytes.
fn reach(at: i64, step: i64, count: u64) -> Range<i64> {
    let last = at.saturating_add(step.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX).saturating_sub(1)));
    at.min(last)..at.max(last).saturating_add(1)
}

fn hull(ranges: impl Iterator<Item = Range<i64>>) -> Option<Range<i64>> {
    ranges.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
}

/// Adds the rows of all vertices of a family to `all`, if they only run linked products. Returns the greatest number of
/// iterations that one counts.
pub(crate) fn linked_of(
    hosted: HostedGraph<'_>,
    family: &Family,
    (sizes, facts): (&Sizes, &Facts),
    all: &mut Vec<LinkedProduct>,
) -> Option<u64> {
    let codelet = &hosted.codelets[family.codelet];
    if !may_run_products(codelet, facts) {
        return None;
    }
    let mut rows = LinkedRows::default();
    let iterations = collect(hosted, family, (sizes, facts), &mut rows)?;
    all.extend(finished(rows));
    Some(iterations)
}

/// Returns linked products with sorted rows.
pub(super) fn finished(
    rows: impl IntoIterator<Item = (LinkedKey, Vec<LinkedRow>)>,
) -> impl Iterator<Item = LinkedProduct> {
    rows.into_iter().map(|(key, mut rows)| {
        rows.sort_unstable();
        let LinkedKey { ty, start, columns, b_col, links } = key;
        LinkedProduct { ty, start, columns, b_col, links, rows }
    })
}

fn collect(hosted: HostedGraph<'_>, family: &Family, known_of: (&Sizes, &Facts), all: &mut LinkedRows) -> Option<u64> {
    let mut iterations = 0;
    let codelet = &hosted.codelets[family.codelet];
    let mut known: FxHashMap<Vec<u64>, VertexRows> = FxHashMap::default();
    let bases = Bases::of(hosted, family)?;
    for instance in 0..family.domain.count() {
        let consts = vertex_consts(codelet, family, instance);
        if !known.contains_key(&consts) {
            let events = Events::of(codelet, known_of, &consts, hosted.workers)?;
            iterations = iterations.max(events.iterations);
            if iterations > hosted.total_iterations {
                return None;
            }
            known.insert(consts.clone(), VertexRows::of(&bases, &events)?);
        }
        let vertex = &known[&consts];
        let at = |field: Option<FieldId>| field.map_or(0, |field| bases.at(field, instance));
        let (c, a, b) = (at(vertex.fields[0]), at(vertex.fields[1]), at(vertex.fields[2]));
        for (key, rows) in &vertex.rows {
            let links = key.links.iter().map(|link| ProductLink { b: link.b + b, ..*link }).collect();
            let key = LinkedKey { links, ..*key };
            let moved = rows.iter().map(|row| LinkedRow { c: row.c + c, a: row.a + a });
            all.entry(key).or_default().extend(moved);
        }
    }
    Some(iterations)
}

/// The addresses of a family's fields.
struct Bases<'a> {
    family: &'a Family,
    /// The layout of each field, and the bytes of its first elements by instance.
    fields: FxHashMap<FieldId, (FieldLayout, Vec<i64>)>,
    types: FxHashMap<FieldId, ElemType>,
    shapes: FxHashMap<FieldId, Vec<u64>>,
}

impl<'a> Bases<'a> {
    /// Returns the addresses, or `None` if a field does not have a stride for each axis.
    fn of(hosted: HostedGraph<'_>, family: &'a Family) -> Option<Bases<'a>> {
        let codelet = &hosted.codelets[family.codelet];
        let mut bases =
            Bases { family, fields: FxHashMap::default(), types: FxHashMap::default(), shapes: FxHashMap::default() };
        for field in &family.fields {
            let ty = codelet.fields[field.field].ty;
            let size = i64::from(ty.bytes());
            let strides = field_strides(field, ty.bytes())?;
            let at = match field.parts.first() {
                Some(part) => {
                    let start = hosted.byte(part.var, 0);
                    part.offset.values(&family.domain).map(|e| start + e * size).collect()
                }
                None => vec![0; family.domain.count() as usize],
            };
            bases.fields.insert(field.field, (strides, at));
            bases.types.insert(field.field, ty);
            bases.shapes.insert(field.field, Field::shape(field).to_vec());
        }
        Some(bases)
    }

    fn at(&self, field: FieldId, instance: u64) -> i64 {
        debug_assert!(instance < self.family.domain.count());
        self.fields[&field].1[instance as usize]
    }

    fn strides(&self, field: FieldId) -> &FieldLayout {
        &self.fields[&field].0
    }

    /// Returns the byte of a matrix's first element relative to that of its field, the bytes along each axis of rows,
    /// and along columns.
    fn bytes_of(&self, matrix: &FieldMatrix) -> (i64, Vec<i64>, i64) {
        let strides = self.strides(matrix.field);
        let at = matrix.at.iter().zip(strides).map(|(&i, &s)| i * s).sum();
        let bytes = |&(dim, step): &(usize, i64)| strides[dim] * step;
        (at, matrix.rows.iter().map(bytes).collect(), bytes(&matrix.col))
    }
}

/// The rows of a vertex, with bytes relative to the first elements of its fields.
struct VertexRows {
    /// The fields of `c`, `a` and `b`.
    fields: [Option<FieldId>; 3],
    rows: Vec<(LinkedKey, Vec<LinkedRow>)>,
}

/// A row that is being collected.
struct OpenRow {
    row: LinkedRow,
    columns: u64,
    start: ProductStart,
    links: Vec<ProductLink>,
}

/// The rows of a vertex that are being collected, by the bytes of their first columns.
#[derive(Default)]
struct OpenRows {
    rows: IndexMap<i64, OpenRow, FxBuildHasher>,
    /// The fields of `c`, `a` and `b` of all products.
    fields: Option<[FieldId; 3]>,
    /// Whether the products run as `cᵀ = bᵀ aᵀ`.
    is_turned: Option<bool>,
    b_col: Option<i64>,
}

impl VertexRows {
    fn of(bases: &Bases<'_>, events: &Events) -> Option<VertexRows> {
        let mut open = OpenRows::default();
        for product in &events.products {
            let start = match (product.first, events.fill_of(product).ok()?) {
                (true, _) => ProductStart::Number(0),
                (false, Some(fill)) => ProductStart::Number(fill.bits),
                (false, None) => ProductStart::Old,
            };
            let fields = [product.c.field, product.a.field, product.b.field];
            if *open.fields.get_or_insert(fields) != fields {
                return None;
            }
            open.product(bases, product, start)?;
        }
        let c = open.fields.map(|fields| fields[0]).or(events.fills.first().map(|fill| fill.field))?;
        open.fill(bases, events, c)?;
        let ty = bases.types[&c];
        let size = i64::from(ty.bytes());
        let mut order: Vec<(i64, u64)> = open.rows.values().map(|r| (r.row.c, r.columns)).collect();
        order.sort_unstable();
        if order.windows(2).any(|pair| pair[0].0 + pair[0].1 as i64 * size > pair[1].0) {
            return None;
        }
        let mut rows = LinkedRows::default();
        for OpenRow { row, columns, start, links } in open.rows.into_values() {
            let key = LinkedKey { ty, start, columns, b_col: open.b_col.unwrap_or(size), links };
            rows.entry(key).or_default().push(row);
        }
        let [a, b] = open.fields.map_or([None; 2], |[_, a, b]| [Some(a), Some(b)]);
        let fields = if open.is_turned == Some(true) { [Some(c), b, a] } else { [Some(c), a, b] };
        Some(VertexRows { fields, rows: rows.into_iter().collect() })
    }
}

impl OpenRows {
    /// Appends the links of a product to its rows.
    fn product(&mut self, bases: &Bases<'_>, product: &super::events::ProductEvent, start: ProductStart) -> Option<()> {
        let size = i64::from(bases.types[&product.c.field].bytes());
        let (c, a, b) = (bases.bytes_of(&product.c), bases.bytes_of(&product.a), bases.bytes_of(&product.b));
        let (mut c, mut a, mut b) = (Strided::of(c), Strided::of(a), Strided::of(b));
        let mut rows: Vec<u64> = product.rows.to_vec();
        let mut columns = product.cols;
        let is_column = rows.len() == 1 && c.rows[0] == size;
        let turns = match (columns, &rows[..]) {
            (1, [1]) => self.is_turned.unwrap_or(false),
            (1, _) => is_column,
            _ => c.col != size,
        };
        if *self.is_turned.get_or_insert(turns) != turns {
            return None;
        }
        if turns {
            // `cᵀ = bᵀ aᵀ`; the factors of each `fma` are swapped, which changes no bit.
            let [only] = rows[..] else { return None };
            (c, a, b) = (c.transposed()?, b.transposed()?, a.transposed()?);
            (rows, columns) = (vec![columns], only);
        }
        if columns > 1 && c.col != size {
            return None;
        }
        let b_col = if columns > 1 { b.col } else { self.b_col.unwrap_or(size) };
        if *self.b_col.get_or_insert(b_col) != b_col {
            return None;
        }
        let link = |row_a: i64, a_at: i64| ProductLink {
            a: a_at - row_a,
            b: b.at,
            a_step: if product.terms > 1 { a.col } else { 0 },
            b_step: if product.terms > 1 { b.rows[0] } else { 0 },
            terms: product.terms,
            fresh: false,
        };
        let mut index = vec![0u64; rows.len()];
        loop {
            let ahead = |m: &Strided| m.at + index.iter().zip(&m.rows).map(|(&i, &s)| i as i64 * s).sum::<i64>();
            let (c_at, a_at) = (ahead(&c), ahead(&a));
            match self.rows.get_mut(&c_at) {
                Some(open) => {
                    if open.columns != columns || product.first {
                        return None;
                    }
                    if product.terms > 0 {
                        if open.links.is_empty() {
                            open.row.a = a_at;
                        }
                        open.links.push(link(open.row.a, a_at));
                    }
                }
                None => {
                    let row = LinkedRow { c: c_at, a: a_at };
                    let links = if product.terms > 0 { vec![link(a_at, a_at)] } else { vec![] };
                    self.rows.insert(c_at, OpenRow { row, columns, start, links });
                }
            }
            // The next row in row-major order.
            let Some(axis) = (0..rows.len()).rev().find(|&axis| index[axis] + 1 < rows[axis]) else { return Some(()) };
            index[axis] += 1;
            index[axis + 1..].fill(0);
        }
    }

    /// Adds the rows that are filled, but that no product writes.
    fn fill(&mut self, bases: &Bases<'_>, events: &Events, c: FieldId) -> Option<()> {
        let size = i64::from(bases.types[&c].bytes());
        let total = |fill: &super::events::Fill| fill.extents.iter().map(|e| (e.end - e.start) as u64).product::<u64>();
        let filled: u64 = events.fills.iter().map(total).sum();
        let computed: u64 = self.rows.values().filter(|r| r.start != ProductStart::Old).map(|r| r.columns).sum();
        if filled == computed {
            return Some(());
        }
        for fill in &events.fills {
            if fill.field != c {
                return None;
            }
            let strides = bases.strides(c);
            let (last, outer) = fill.extents.split_last()?;
            let columns = (last.end - last.start) as u64;
            if columns > 1 && strides[outer.len()] != size {
                return None;
            }
            let mut index: Vec<i64> = fill.extents.iter().map(|e| e.start).collect();
            loop {
                let at: i64 = index.iter().zip(strides).map(|(&i, &s)| i * s).sum();
                let start = ProductStart::Number(fill.bits);
                let row = LinkedRow { c: at, a: 0 };
                let open = self.rows.entry(at).or_insert(OpenRow { row, columns, start, links: vec![] });
                if open.columns != columns {
                    return None;
                }
                let next = (0..outer.len()).rev().find(|&axis| index[axis] + 1 < outer[axis].end);
                let Some(axis) = next else { break };
                index[axis] += 1;
                (axis + 1..outer.len()).for_each(|inner| index[inner] = outer[inner].start);
            }
        }
        Some(())
    }
}

/// A matrix in memory, perhaps with several axes of rows.
struct Strided {
    at: i64,
    rows: Vec<i64>,
    col: i64,
}

impl Strided {
    fn of((at, rows, col): (i64, Vec<i64>, i64)) -> Strided {
        Strided { at, rows, col }
    }

    fn transposed(self) -> Option<Strided> {
        let [row] = self.rows[..] else { return None };
        Some(Strided { at: self.at, rows: vec![self.col], col: row })
    }
}

/// Joins linked products of the same rows and terms whose columns are adjacent.
pub(crate) fn join_columns(mut products: Vec<LinkedProduct>) -> Vec<LinkedProduct> {
    let terms =
        |p: &LinkedProduct| p.links.iter().map(|l| (l.a, l.a_step, l.b_step, l.terms, l.fresh)).collect::<Vec<_>>();
    products.sort_by_cached_key(|p| {
        let first = p.rows.first().map_or((0, 0), |row| (row.a, row.c));
        (p.ty, p.start, p.b_col, terms(p), p.rows.len(), first, p.links.first().map(|l| l.b))
    });
    let mut joined: Vec<LinkedProduct> = Vec::with_capacity(products.len());
    for product in products {
        match joined.last_mut() {
            Some(last) if last.continues(&product) => last.columns += product.columns,
            _ => joined.push(product),
        }
    }
    join_without_terms(&mut joined);
    joined
}

/// Joins adjacent pieces of rows without terms, such as those of a padding, to rows as long as the others.
fn join_without_terms(products: &mut [LinkedProduct]) {
    let mut lengths = products.iter().filter(|p| !p.links.is_empty()).map(|p| (p.columns, p.b_col));
    let Some((columns, b_col)) = lengths.next() else { return };
    if lengths.any(|other| other != (columns, b_col)) {
        return;
    }
    for product in products.iter_mut().filter(|p| p.links.is_empty()) {
        let pieces = columns.checked_div(product.columns).unwrap_or(0) as usize;
        let bytes = product.columns as i64 * i64::from(product.ty.bytes());
        let is_row = |row: &[LinkedRow]| row.len() == pieces && row.windows(2).all(|p| p[0].c + bytes == p[1].c);
        if pieces > 1 && pieces as u64 * product.columns == columns && product.rows.chunks(pieces).all(is_row) {
            product.rows = product.rows.iter().copied().step_by(pieces).collect();
            (product.columns, product.b_col) = (columns, b_col);
        }
    }
}

impl LinkedProduct {
    /// Returns whether another product has the next columns of the same rows.
    fn continues(&self, next: &LinkedProduct) -> bool {
        let own = |p: &LinkedProduct| (p.ty, p.start, p.b_col, p.links.len(), p.rows.len());
        let across = self.columns as i64 * self.b_col;
        let ahead = self.columns as i64 * i64::from(self.ty.bytes());
        let link = |(a, b): (&ProductLink, &ProductLink)| ProductLink { b: a.b + across, ..*a } == *b;
        let row = |(a, b): (&LinkedRow, &LinkedRow)| LinkedRow { c: a.c + ahead, ..*a } == *b;
        own(self) == own(next)
            && self.links.iter().zip(&next.links).all(link)
            && self.rows.iter().zip(&next.rows).all(row)
    }
}
