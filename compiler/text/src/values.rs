//! The values in the rows of tables: numbers, ranges, names.
//!
//! Invariant: reading an expression gives a value or an error message, and never panics.

use girder_source::{Diagnostic, Span};
use girder_syntax::ast::{self, Arg, BinaryOp, ExprId, ExprKind, IntegerList, UnaryOp};

/// The reason why a value cannot be read.
pub type Wrong = String;

/// The help of an error about a row.
pub const HELP: &str = "take the row from a text that this compiler prints, or name an earlier pass in the header";

/// The maximal number of errors about rows that are reported.
pub const MOST: usize = 20;

/// Returns the error about a row.
pub fn bad_row(span: Span, why: &str, help: &str) -> Diagnostic {
    Diagnostic::error("resume::bad_row", span, why).help(help)
}

/// The maximal number of indices of a family of rows over a box.
const MOST_INDICES: usize = 3;
/// The maximal number of columns of a family of rows over a table.
pub const MAX_COLUMNS: usize = 8;

/// The columns of a row over a table, `for (c0, c1) in [(1, 2), (3, 4)]`.
pub struct Columns<'t> {
    /// Their names.
    pub names: Vec<&'t str>,
    /// Their values.
    pub list: IntegerList,
}

/// Reads expressions of a table.
#[derive(Clone, Copy)]
pub struct Values<'t> {
    /// The module that holds the table.
    tree: &'t ast::Module,
    /// The indices of the current row and their values.
    indices: [Option<(&'t str, i64)>; MAX_COLUMNS],
    /// The current row, if it repeats the one that is read.
    repeated: Option<(&'t ast::RepeatedStatements, usize)>,
}

impl<'t> Values<'t> {
    /// Reads rows without indices.
    pub fn new(tree: &'t ast::Module) -> Values<'t> {
        Values { tree, indices: [None; MAX_COLUMNS], repeated: None }
    }

    /// Returns the module that holds the table.
    pub fn tree(self) -> &'t ast::Module {
        self.tree
    }

    /// Returns the names and counts of the indices of a row, which start at 0.
    pub fn indices(self, family: &'t [ast::Binder]) -> Result<Vec<(&'t str, u32)>, Wrong> {
        let index = |binder: &'t ast::Binder| {
            let ast::Pattern::Name(name) = &binder.pattern else { return Err("an index is one name".to_string()) };
            match self.short_span(binder.range)? {
                (0, count) if count > 1 => Ok((name.name.as_str(), count)),
                _ => Err("an index runs from 0 to 2 or more: `for i in 0..16`".into()),
            }
        };
        match family.len() <= MOST_INDICES {
            true => family.iter().map(index).collect(),
            false => Err(format!("a row has at most {MOST_INDICES} indices")),
        }
    }

    /// Returns a reader with values for the indices.
    pub fn at(self, names: &[&'t str], values: &[i64]) -> Values<'t> {
        let index = |k: usize| names.get(k).copied().zip(values.get(k).copied());
        Values { indices: std::array::from_fn(index), ..self }
    }

    /// Returns the columns of a row over a table; `None` if it is not over a list.
    ///
    /// # Errors
    /// The span of a wrong entry, and the reason.
    pub fn columns(self, family: &'t [ast::Binder]) -> Option<Result<Columns<'t>, (Option<Span>, Wrong)>> {
        let [ast::Binder { pattern, range, .. }] = family else { return None };
        let kind = &self.tree.exprs[*range].kind;
        if !matches!(kind, ExprKind::List(_) | ExprKind::Integers(_)) {
            return None;
        }
        Some(self.table(pattern, kind))
    }

    fn table(self, pattern: &'t ast::Pattern, list: &'t ExprKind) -> Result<Columns<'t>, (Option<Span>, Wrong)> {
        let name = |p: &'t ast::Pattern| match p {
            ast::Pattern::Name(name) => Ok(name.name.as_str()),
            _ => Err((None, "a column is one name".to_string())),
        };
        let names = match pattern {
            ast::Pattern::Tuple(all, _) => all.iter().map(name).collect::<Result<Vec<_>, _>>()?,
            one => vec![name(one)?],
        };
        if names.len() > MAX_COLUMNS {
            return Err((None, format!("a row has at most {MAX_COLUMNS} columns")));
        }
        let width = |n: usize, entry: Span| match n == names.len() {
            true => Ok(()),
            false => Err((Some(entry), format!("an entry of {n} numbers does not fit {} columns", names.len()))),
        };
        let list = match list {
            ExprKind::Integers(list) => IntegerList::clone(list),
            ExprKind::List(entries) => {
                let mut values: Vec<i64> = vec![];
                for &entry in entries {
                    let ast::Expr { kind, span } = &self.tree.exprs[entry];
                    let numbers = match kind {
                        ExprKind::Tuple(args) => args.iter().map(|a| a.value).collect(),
                        _ => vec![entry],
                    };
                    width(numbers.len(), *span)?;
                    for e in numbers {
                        values.push(self.int(e).map_err(|why| (Some(*span), why))?);
                    }
                }
                let starts = entries.iter().map(|&e| self.tree.exprs[e].span.lo).collect();
                IntegerList::new(names.len(), &values, starts)
            }
            _ => return Err((None, "the columns of a row are over a list".into())),
        };
        if list.is_empty() {
            return Err((None, "a table of numbers has at least one entry".into()));
        }
        width(list.width(), list.span(0))?;
        Ok(Columns { names, list })
    }

    /// Returns a reader of a row that repeats another, from the expressions of the other.
    pub fn repeated(self, all: &'t ast::RepeatedStatements, other: usize) -> Values<'t> {
        Values { repeated: Some((all, other)), ..self }
    }

    /// Reads a number of its type: a literal, or a sum of multiples of indices.
    pub fn int<T: TryFrom<i128>>(self, e: ExprId) -> Result<T, Wrong> {
        fit(self.number(e, 0)?.0)
    }

    /// Reads a number. Also returns whether it depends on an index.
    fn number(self, e: ExprId, depth: u32) -> Result<(i128, bool), Wrong> {
        let none = || "a number is needed here".to_string();
        // Printed numbers are sums of a few terms.
        if depth > 64 {
            return Err("this number is nested too deeply".into());
        }
        let large = || "this number is too large".to_string();
        match &self.tree.exprs[e].kind {
            ExprKind::Paren(inner) => self.number(*inner, depth + 1),
            ExprKind::Int { value, .. } => {
                let own = self.repeated.and_then(|(all, other)| all.value(e, other));
                Ok((own.map_or(i128::from(*value), i128::from), false))
            }
            ExprKind::Name(name) => {
                let known = self.indices.iter().flatten().find(|i| i.0 == name.as_str());
                known.map(|i| (i128::from(i.1), true)).ok_or_else(none)
            }
            ExprKind::Unary { op: UnaryOp::Neg, value } => {
                let (value, depends) = self.number(*value, depth + 1)?;
                Ok((value.checked_neg().ok_or_else(large)?, depends))
            }
            ExprKind::Binary { op, left, right } => {
                let (a, b) = (self.number(*left, depth + 1)?, self.number(*right, depth + 1)?);
                let value = match op {
                    BinaryOp::Add => a.0.checked_add(b.0),
                    BinaryOp::Sub => a.0.checked_sub(b.0),
                    BinaryOp::Mul if a.1 && b.1 => return Err("two indices cannot be multiplied here".into()),
                    BinaryOp::Mul => a.0.checked_mul(b.0),
                    _ => return Err(none()),
                };
                Ok((value.ok_or_else(large)?, a.1 || b.1))
            }
            _ => Err(none()),
        }
    }

    /// Reads `3` or `3..7`. Returns the first and the count, which is at least one.
    pub fn span(self, e: ExprId) -> Result<(u64, u64), Wrong> {
        match self.tree.exprs[e].kind {
            ExprKind::Range { start, end, closed: false, by: None } => {
                let (start, end) = (self.int::<u64>(start)?, self.int::<u64>(end)?);
                match end.checked_sub(start) {
                    Some(count) if count > 0 => Ok((start, count)),
                    _ => Err(format!("the range {start}..{end} is empty")),
                }
            }
            _ => Ok((self.int(e)?, 1)),
        }
    }

    /// Reads a [`Values::span`] in 32 bits.
    pub fn short_span(self, e: ExprId) -> Result<(u32, u32), Wrong> {
        let (start, count) = self.span(e)?;
        let fits = |v: u64| u32::try_from(v).map_err(|_| format!("{v} does not fit here"));
        Ok((fits(start)?, fits(count)?))
    }

    /// Reads `3`, `3..7` or `3..11 by 2`. Returns the first, the count, which is at least one, and the step.
    pub fn strided(self, e: ExprId) -> Result<(u32, u32, u32), Wrong> {
        let ExprKind::Range { start, end, closed: false, by: Some(by) } = self.tree.exprs[e].kind else {
            return self.short_span(e).map(|(first, count)| (first, count, 1));
        };
        let depends = self.number(start, 0)?.1 || self.number(end, 0)?.1;
        let (start, end, step): (u32, u32, u32) = (self.int(start)?, self.int(end)?, self.int(by)?);
        match end.checked_sub(start) {
            Some(n) if n > 0 && step > 0 && depends && n % step > 0 => {
                Err(format!("the range {start}..{end} of a family of rows does not end at a multiple of {step}"))
            }
            Some(n) if n > 0 && step > 0 => Ok((start, n.div_ceil(step), step)),
            _ => Err(format!("the range {start}..{end} by {step} is empty")),
        }
    }

    /// Reads a list of numbers.
    pub fn ints<T: TryFrom<i128>>(self, e: ExprId) -> Result<Vec<T>, Wrong> {
        match &self.tree.exprs[e].kind {
            ExprKind::Integers(list) if list.width() == 1 => list.entries().map(|e| fit(e[0].into())).collect(),
            _ => self.list(e)?.iter().map(|&e| self.int(e)).collect(),
        }
    }

    /// Reads a list of [`Values::short_span`].
    pub fn short_spans(self, e: ExprId) -> Result<Vec<(u32, u32)>, Wrong> {
        match &self.tree.exprs[e].kind {
            ExprKind::Integers(_) => Ok(self.ints(e)?.into_iter().map(|first| (first, 1)).collect()),
            _ => self.list(e)?.iter().map(|&e| self.short_span(e)).collect(),
        }
    }

    /// Reads a list.
    pub fn list(self, e: ExprId) -> Result<&'t [ExprId], Wrong> {
        match &self.tree.exprs[e].kind {
            ExprKind::List(list) => Ok(list),
            _ => Err("a list is needed here".into()),
        }
    }

    /// Reads a name such as `a.b.c`.
    pub fn name(self, e: ExprId) -> Option<String> {
        let mut parts = vec![];
        let mut at = e;
        loop {
            match &self.tree.exprs[at].kind {
                ExprKind::Field { base, name } => {
                    parts.push(name.name.as_str());
                    at = *base;
                }
                ExprKind::Name(name) => {
                    parts.push(name);
                    parts.reverse();
                    return Some(parts.join("."));
                }
                _ => return None,
            }
        }
    }

    /// Reads `name(args)`. Returns the name and the arguments, which must have no names.
    pub fn call(self, e: ExprId) -> Option<(String, Vec<ExprId>)> {
        let ExprKind::Call { callee, args } = &self.tree.exprs[e].kind else { return None };
        let plain = args.iter().all(|a| a.name.is_none());
        plain.then(|| Some((self.name(*callee)?, args.iter().map(|a| a.value).collect())))?
    }
}

/// Returns a number of its type.
fn fit<T: TryFrom<i128>>(value: i128) -> Result<T, Wrong> {
    T::try_from(value).map_err(|_| format!("{value} does not fit here"))
}

/// The named values of a row.
pub struct Options<'t> {
    list: Vec<&'t Arg>,
}

impl<'t> Options<'t> {
    /// Takes arguments that all have names.
    pub fn new(args: &'t [Arg]) -> Result<Options<'t>, Wrong> {
        match args.iter().all(|a| a.name.is_some()) {
            true => Ok(Options { list: args.iter().collect() }),
            false => Err("a value without a name is too much here".into()),
        }
    }

    /// Removes and returns the value of a name.
    pub fn take(&mut self, name: &str) -> Option<ExprId> {
        let k = self.list.iter().position(|a| a.name.as_ref().is_some_and(|n| n.name == name))?;
        Some(self.list.remove(k).value)
    }

    /// Removes and returns a value that is required.
    pub fn need(&mut self, name: &str) -> Result<ExprId, Wrong> {
        self.take(name).ok_or_else(|| format!("`{name}` is missing"))
    }

    /// Removes and returns a number, which is 0 by default.
    pub fn number<T: TryFrom<i128> + Default>(&mut self, values: Values<'_>, name: &str) -> Result<T, Wrong> {
        self.take(name).map_or(Ok(T::default()), |e| values.int(e))
    }

    /// Checks that no value is left.
    pub fn finish(self) -> Result<(), Wrong> {
        match self.list.first().and_then(|a| a.name.as_ref()) {
            Some(name) => Err(format!("`{}` is unknown here or given twice", name.name)),
            None => Ok(()),
        }
    }
}
