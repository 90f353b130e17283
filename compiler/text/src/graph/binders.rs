//! The binders of a family: the `for …` at the end of its statement.
//!
//! A family whose offsets, constants and tiles are closed forms is printed over its indices: `for i in 0..4, j in
//! 0..8`. Otherwise it is printed over a per-instance table: `for (i, c0, c1) in [(0, 5, 2.5), (1, 9, 1.5)]`. The table
//! contains the index only if it is used.

use super::Printer;
use girder_ir::affine::Affine;
use girder_ir::family::{Domain, Offset, fit_affine};
use girder_ir::types::Scalar;
use girder_source::Span;
use girder_syntax::ast::{Binder, ExprId, IntegerList, Pattern};
use girder_syntax::make::{arg, ident};
use smol_str::SmolStr;

/// A number for each instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Number {
    /// A closed form.
    Affine(Affine),
    /// One value per instance.
    Table(Vec<i64>),
}

impl Number {
    /// Converts an offset.
    pub fn of(offset: &Offset) -> Number {
        match offset {
            Offset::Affine(a) => Number::Affine(a.clone()),
            Offset::Table(t) => Number::Table(t.iter().map(|&v| v as i64).collect()),
        }
    }

    /// Returns the closed form of one value per instance, or a table if there is none.
    pub fn fit(domain: &Domain, values: Vec<i64>) -> Number {
        fit_affine(domain, &values).map_or(Number::Table(values), Number::Affine)
    }

    /// Returns the least and the greatest value. Precondition: the domain is not empty.
    pub fn bounds(&self, domain: &Domain) -> (i64, i64) {
        let both = match self {
            Number::Affine(a) => a.bounds(&domain.0),
            Number::Table(c) => c.iter().min().copied().zip(c.iter().max().copied()),
        };
        both.unwrap_or_default()
    }
}

/// The values of one column of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Values {
    Ints(Vec<i64>),
    Scalars(Vec<Scalar>),
}

/// The binders of one family while its parts are printed.
pub(super) struct Binders<'d> {
    pub domain: &'d Domain,
    /// The name of each index.
    indices: Vec<SmolStr>,
    columns: Vec<(SmolStr, Values)>,
    index_used: bool,
}

impl<'d> Binders<'d> {
    /// Starts the binders of a family over a domain.
    pub fn new(p: &Printer<'_>, domain: &'d Domain) -> Binders<'d> {
        let indices = (0..domain.0.len().max(1)).map(|k| p.index_name(k)).collect();
        Binders { domain, indices, columns: vec![], index_used: false }
    }

    fn column(&mut self, p: &Printer<'_>, values: Values) -> SmolStr {
        if let Some((name, _)) = self.columns.iter().find(|c| c.1 == values) {
            return name.clone();
        }
        let name = p.column_name(self.columns.len());
        self.columns.push((name.clone(), values));
        name
    }

    /// Returns the expression of a number plus a constant.
    pub fn number(&mut self, p: &mut Printer<'_>, number: &Number, plus: i64) -> ExprId {
        match number {
            Number::Affine(a) => {
                self.index_used |= !a.coef.is_empty();
                let shifted = Affine { base: a.base + plus, coef: a.coef.clone() };
                p.affine(&shifted, &self.indices)
            }
            Number::Table(values) => {
                let name = self.column(p, Values::Ints(values.clone()));
                let e = p.make.name(&name);
                p.sum(plus, &[(1, e)])
            }
        }
    }

    /// Returns the index of a dimension.
    pub fn index(&mut self, p: &mut Printer<'_>, dim: usize) -> ExprId {
        self.index_used = true;
        p.make.name(&self.indices[dim])
    }

    /// Returns the expression of one scalar per instance.
    pub fn scalars(&mut self, p: &mut Printer<'_>, values: &[Scalar]) -> ExprId {
        let name = self.column(p, Values::Scalars(values.to_vec()));
        p.make.name(&name)
    }

    /// Returns the binders of the `for`.
    pub fn binders(self, p: &mut Printer<'_>) -> Vec<Binder> {
        if self.columns.is_empty() {
            let line = |(name, &n): (&SmolStr, &u32)| {
                let range = p.make.span(0, n as u64);
                p.make.binder(name, range)
            };
            return self.indices.iter().zip(&self.domain.0).map(line).collect();
        }
        let count = self.domain.count() as usize;
        let names = self.indices[..1].iter().filter(|_| self.index_used).chain(self.columns.iter().map(|c| &c.0));
        let patterns: Vec<Pattern> = names.map(|n| Pattern::Name(ident(n))).collect();
        let range = match self.integers(count) {
            Some(list) => p.make.integers(list),
            None => {
                let rows = (0..count).map(|k| self.row(p, k)).collect();
                p.make.list(rows)
            }
        };
        let pattern = match <[Pattern; 1]>::try_from(patterns) {
            Ok([one]) => one,
            Err(many) => Pattern::Tuple(many, Span::NONE),
        };
        vec![Binder { pattern, range, span: Span::NONE }]
    }

    /// Returns the table as a list of integers, if it has no other values.
    fn integers(&self, count: usize) -> Option<IntegerList> {
        let columns: Vec<&[i64]> = self
            .columns
            .iter()
            .map(|(_, values)| match values {
                Values::Ints(v) => Some(&v[..]),
                Values::Scalars(_) => None,
            })
            .collect::<Option<_>>()?;
        let entry = |k: usize| self.index_used.then_some(k as i64).into_iter().chain(columns.iter().map(move |c| c[k]));
        let values: Vec<i64> = (0..count).flat_map(entry).collect();
        Some(IntegerList::new(columns.len() + usize::from(self.index_used), &values, vec![]))
    }

    fn row(&self, p: &mut Printer<'_>, k: usize) -> ExprId {
        let mut cells = Vec::with_capacity(self.columns.len() + 1);
        if self.index_used {
            cells.push(p.make.uint(k as u64));
        }
        for (_, values) in &self.columns {
            let cell = match values {
                Values::Ints(v) => p.make.int(v[k]),
                // A vertex has only static values, all of which have literals.
                Values::Scalars(v) => p.scalar(v[k]).unwrap_or_else(|| p.make.uint(v[k].bits)),
            };
            cells.push(cell);
        }
        match cells[..] {
            [one] => one,
            _ => p.make.tuple(cells.into_iter().map(arg).collect()),
        }
    }
}
