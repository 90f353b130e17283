//! Linked products with the step that adds them: see the note on products in blocks in [`sums`](super::sums). Here the
//! links of a row of each part are a block.
//!
//! Invariant: as there.

use super::ProductStart;
use super::linked::{LinkedKey, LinkedProduct, LinkedRow, ProductLink, finished};
use super::sums::{SumsLayout, SumsLayouts};
use fixedbitset::FixedBitSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::ops::Range;

/// The products of a row's parts, and the bytes from the `a` of the first part that reads terms to that of each.
type Parts = Vec<(usize, i64)>;

/// The rows of linked products that are parts of sums.
struct PartRows<'a> {
    linked: &'a [LinkedProduct],
    /// The number of each row, by the first byte of its result. Rows are numbered product after product.
    by_result: FxHashMap<i64, u32>,
    /// The number of each product's first row.
    first: Vec<u32>,
    /// The rows that a sum has taken, by number.
    taken: FixedBitSet,
}

impl PartRows<'_> {
    /// Returns the rows of some products, or `None` if there are too many.
    fn of(linked: &[LinkedProduct]) -> Option<PartRows<'_>> {
        let total = linked.iter().map(|p| p.rows.len()).sum();
        u32::try_from(total).ok()?;
        let mut by_result = FxHashMap::with_capacity_and_hasher(total, FxBuildHasher);
        let (mut first, mut number) = (Vec::with_capacity(linked.len()), 0);
        for product in linked {
            first.push(number);
            by_result.extend(product.rows.iter().map(|row| row.c).zip(number..));
            number += product.rows.len() as u32;
        }
        Some(PartRows { linked, by_result, first, taken: FixedBitSet::with_capacity(total) })
    }

    /// Returns the product and the `a` of the row with this result, if no sum has taken it before.
    fn take(&mut self, result: i64) -> Option<(usize, i64)> {
        let number = *self.by_result.get(&result)?;
        let product = self.first.partition_point(|&first| first <= number) - 1;
        let row = &self.linked[product].rows[(number - self.first[product]) as usize];
        (!self.taken.put(number as usize)).then_some((product, row.a))
    }
}

impl SumsLayouts {
    /// Returns linked products and these sums of them as linked products in blocks, or `None` if some product is no
    /// part, some part is not a product, or a result shares a byte with an operand.
    pub(super) fn of_linked(&self, linked: &[LinkedProduct]) -> Option<Vec<LinkedProduct>> {
        let mut rows = PartRows::of(linked)?;
        let mut all: Vec<(LinkedKey, Vec<LinkedRow>)> = Vec::new();
        for layout in &self.0 {
            layout.add_linked(&mut rows, &mut all)?;
        }
        if !rows.taken.is_full() {
            return None;
        }
        let all: Vec<LinkedProduct> = finished(all).collect();
        let results = all.iter().map(LinkedProduct::result);
        let results = results.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))?;
        let is_apart = |bytes: Option<Range<i64>>| {
            bytes.is_none_or(|bytes| bytes.end <= results.start || results.end <= bytes.start)
        };
        all.iter().all(|p| is_apart(p.a_bytes()) && is_apart(p.b_bytes())).then_some(all)
    }
}

impl SumsLayout {
    /// Adds the rows whose parts these sums add, as rows in blocks.
    fn add_linked(&self, rows: &mut PartRows<'_>, all: &mut Vec<(LinkedKey, Vec<LinkedRow>)>) -> Option<()> {
        let linked = rows.linked;
        let mut merged: FxHashMap<Parts, usize> = FxHashMap::default();
        let mut elements = 0u64;
        for product in linked {
            let bytes = product.columns as i64 * i64::from(product.ty.bytes());
            let firsts = product.rows.iter().filter(|row| self.has_first(&(row.c..row.c + bytes)));
            for row in firsts {
                let found = (0..self.count as i64).map(|l| rows.take(row.c + l * self.step));
                let found: Parts = found.collect::<Option<_>>()?;
                // A part without terms, such as one in the padding, reads nothing.
                let reads = |part: usize| !linked[part].links.is_empty();
                let from = found.iter().find(|part| reads(part.0)).map_or(row.a, |part| part.1);
                let ahead = |(part, a)| (part, if reads(part) { a - from } else { 0 });
                let parts: Parts = found.into_iter().map(ahead).collect();
                elements += product.columns;
                let number = match merged.get(&parts) {
                    Some(&number) => number,
                    None => {
                        all.push((self.key(linked, &parts)?, Vec::new()));
                        merged.insert(parts, all.len() - 1);
                        all.len() - 1
                    }
                };
                all[number].1.push(LinkedRow { c: row.c + self.ahead, a: from });
            }
        }
        self.is_whole(elements, linked.first()?.ty.bytes()).then_some(())
    }

    /// Returns what rows with these parts have in common.
    fn key(&self, linked: &[LinkedProduct], parts: &Parts) -> Option<LinkedKey> {
        let first = &linked[parts.first()?.0];
        let mut links: Vec<ProductLink> = Vec::new();
        for (number, &(index, ahead)) in parts.iter().enumerate() {
            let part = &linked[index];
            let same = |p: &LinkedProduct| (p.ty, p.columns, p.b_col, p.start);
            if same(part) != same(first) || part.start != ProductStart::Number(0) {
                return None;
            }
            let own = links.len();
            links.extend(part.links.iter().map(|link| ProductLink { a: link.a + ahead, ..*link }));
            if number > 0 {
                match links.get_mut(own) {
                    Some(link) => link.fresh = true,
                    // A sum without terms is added too.
                    None => links.push(ProductLink { a: 0, b: 0, a_step: 0, b_step: 0, terms: 0, fresh: true }),
                }
            }
        }
        let start = if self.adds { ProductStart::Added } else { first.start };
        Some(LinkedKey { ty: first.ty, start, columns: first.columns, b_col: first.b_col, links })
    }
}
