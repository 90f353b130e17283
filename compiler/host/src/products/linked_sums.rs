//! Linked products with the step that adds them: see the note on products in blocks in [`sums`](super::sums). Here the
//! links of a row of each part are a block.
//!
//! Invariant: as there.

use super::ProductStart;
use super::linked::{LinkedKey, LinkedProduct, LinkedRow, ProductLink, finished};
use super::sums::SumsLayout;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The products of a row's parts, and the bytes from the `a` of the first part that reads terms to that of each.
type Parts = Vec<(usize, i64)>;

impl SumsLayout {
    /// Returns linked products and these sums of them as linked products in blocks, or `None` if some product is no
    /// part, some part is not a product, or a result shares a byte with an operand.
    pub(super) fn of_linked(&self, linked: &[LinkedProduct]) -> Option<Vec<LinkedProduct>> {
        let mut places: FxHashMap<i64, (usize, i64)> = FxHashMap::default();
        for (index, product) in linked.iter().enumerate() {
            places.extend(product.rows.iter().map(|row| (row.c, (index, row.a))));
        }
        let mut merged: FxHashMap<Parts, usize> = FxHashMap::default();
        let mut all: Vec<(LinkedKey, Vec<LinkedRow>)> = Vec::new();
        let (mut elements, mut rows) = (0u64, 0u64);
        for (index, product) in linked.iter().enumerate() {
            let bytes = product.columns as i64 * i64::from(product.ty.bytes());
            let is_first = |row: &&LinkedRow| self.first.start <= row.c && row.c + bytes <= self.first.end;
            for row in product.rows.iter().filter(is_first) {
                let mut found: Parts = vec![(index, row.a)];
                for l in 1..self.count as i64 {
                    found.push(*places.get(&(row.c + l * self.step))?);
                }
                // A part without terms, such as one in the padding, reads nothing.
                let reads = |part: usize| !linked[part].links.is_empty();
                let from = found.iter().find(|part| reads(part.0)).map_or(row.a, |part| part.1);
                let ahead = |(part, a)| (part, if reads(part) { a - from } else { 0 });
                let parts: Parts = found.into_iter().map(ahead).collect();
                elements += product.columns;
                rows += self.count;
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
        // All elements of the sums are different and lie in the first part, so that equal counts mean equal sets.
        let size = i64::from(linked.first()?.ty.bytes());
        let is_packed = self.first.end - self.first.start == elements as i64 * size;
        let total: u64 = linked.iter().map(|p| p.rows.len() as u64).sum();
        if elements != self.elements || !is_packed || rows != total {
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
