//! The matrix unit, `amp(c, a, b)`.
//!
//! Invariant: its operands are views of floats, and `c` is writable. All axes of `c` and `a` but the last are rows; `b`
//! is two-dimensional. `amp` never exposes an undefined element: an element of an `out` field has been written, or
//! keeps its old value, or is written again later.

use super::builder::Builder;
use super::types::Class;
use super::value::{Axis, Value, View};
use girder_ir::codelet::{Amp, Check, Matrix, RowAxis, Stmt};
use girder_source::{Diagnostic, Span};
use girder_syntax::ast;

impl<'a> Builder<'a, '_> {
    /// Translates `amp(c, a, b);` and `amp(c, a, b, first: true);`.
    pub(super) fn amp(&mut self, args: &'a [ast::Arg], span: Span) -> Value {
        let (named, matrices): (Vec<&ast::Arg>, Vec<&ast::Arg>) = args.iter().partition(|a| a.name.is_some());
        let exprs: Vec<_> = matrices.iter().map(|a| a.value).collect();
        let values = self.values(&exprs);
        let first = match named[..] {
            [] => Some(false),
            [ast::Arg { name: Some(name), value }] if name.name == "first" => self.zero_start(*value),
            _ => {
                let at = named.iter().filter_map(|a| a.name.as_ref()).find(|n| n.name != "first");
                let at = at.map_or(span, |n| n.span);
                return self.error("codelet::argument", at, "the only argument of `amp` with a name is `first`");
            }
        };
        let Some(first) = first else { return Value::Error };
        let Ok([c, a, b]) = <[Value; 3]>::try_from(values) else {
            return self.error("codelet::argument", span, "`amp` has three arguments: `amp(c, a, b)`");
        };
        let spans = [0, 1, 2].map(|i| self.tree().exprs[exprs[i]].span);
        let [c, a, b] = [(c, spans[0]), (a, spans[1]), (b, spans[2])].map(|(v, at)| self.operand(v, at));
        let (Some(c), Some(a), Some(b)) = (c, a, b) else { return Value::Error };
        if !self.fit([&c, &a, &b], spans) {
            return Value::Error;
        }
        if !self.writable(c.base, spans[0]) || !self.readable(a.base, spans[1]) || !self.readable(b.base, spans[2]) {
            return Value::Error;
        }
        // Elements of the product are written while the factors are still read, so `c` may share storage with neither.
        if a.base == c.base || b.base == c.base {
            let name = self.storage_name(c.base);
            let at = if a.base == c.base { spans[1] } else { spans[2] };
            let d = Diagnostic::error("codelet::amp_alias", at, format!("`amp` reads {name}, which it also writes"));
            self.report(d.label(spans[0], "written here").help("add into a local array first"));
            return Value::Error;
        }
        let (Some(c), Some(a), Some(b)) = (self.matrix(&c), self.matrix(&a), self.matrix(&b)) else {
            return Value::Error;
        };
        let site = self.site(Check::Shape, span, None);
        self.emit(Stmt::Amp(Box::new(Amp { c, a, b, first, site })));
        Value::Unit
    }

    /// Evaluates the argument `first`.
    fn zero_start(&mut self, value: ast::ExprId) -> Option<bool> {
        match self.expr(value) {
            Value::Bool(first) => Some(first),
            Value::Error | Value::Never => None,
            v => {
                let at = self.tree().exprs[value].span;
                let message = format!("`first` is `true` or `false`, and this is {}", v.noun());
                let d = Diagnostic::error("codelet::argument", at, message);
                self.report(d.help("write `if … { amp(c, a, b, first: true); } else { amp(c, a, b); }`"));
                None
            }
        }
    }

    /// Reports operands whose axes do not fit. Lengths that are not numbers are compared when the vertex runs.
    fn fit(&mut self, [c, a, b]: [&View; 3], spans: [Span; 3]) -> bool {
        let [of_c, of_a, of_b] = [c, a, b].map(|v| self.storage_name(v.base));
        if b.rank() != 2 {
            let message = format!("the last operand of `amp` is a matrix, and {of_b} has rank {} here", b.rank());
            let d = Diagnostic::error("codelet::rank_mismatch", spans[2], message);
            self.report(d.help("write one `amp` for each matrix, for example in a loop over the first axis"));
            return false;
        }
        if c.rank() != a.rank() {
            let (m, n) = (c.rank() - 1, a.rank() - 1);
            let axes = |n: usize| if n == 1 { "1 axis".to_string() } else { format!("{n} axes") };
            let message = format!("the rows of {of_c} have {} here, and those of {of_a} {}", axes(m), axes(n));
            let d = Diagnostic::error("codelet::rank_mismatch", spans[1], message).label(spans[0], "the result");
            self.report(d.help("all axes but the last are rows; `c` and `a` need the same ones"));
            return false;
        }
        let last = c.rank() - 1;
        let rows = (0..last).map(|axis| ((c, axis, 0), (a, axis, 1), format!("axis {axis}")));
        let others = [
            ((c, last, 0), (b, 1, 2), "the number of columns".to_string()),
            ((a, last, 1), (b, 0, 2), "the number of terms".to_string()),
        ];
        for ((x, of_x, i), (y, of_y, k), what) in rows.chain(others).collect::<Vec<_>>() {
            let length = |v: &View, axis: usize| self.const_int(v.range(axis)?.len);
            let (Some(n), Some(m)) = (length(x, of_x), length(y, of_y)) else { continue };
            if n != m {
                let message = format!("the operands of `amp` do not fit: {what} is {n} here, and {m} there");
                let d = Diagnostic::error("codelet::type_mismatch", spans[i], message).here(format!("{n}"));
                self.report(d.label(spans[k], format!("{m}")));
                return false;
            }
        }
        true
    }

    fn operand(&mut self, v: Value, span: Span) -> Option<View> {
        match v {
            Value::View(v) if v.rank() >= 2 => {
                let ty = self.element_type(v.base);
                if self.types.narrow(ty, Class::Float) {
                    return Some(v);
                }
                let is = self.types.describe(ty);
                self.error("codelet::type_mismatch", span, format!("`amp` multiplies floats, and this is {is}"));
            }
            Value::Error | Value::Never => {}
            Value::View(v) => {
                let message = format!("`amp` multiplies matrices, and this has rank {}", v.rank());
                self.error("codelet::rank_mismatch", span, message);
            }
            v => {
                let message = format!("`amp` multiplies matrices, and this is {}", v.noun());
                self.error("codelet::rank_mismatch", span, message);
            }
        }
        None
    }

    fn matrix(&mut self, view: &View) -> Option<Matrix> {
        let [outer @ .., of_rows, of_cols] = &view.order[..] else { return None };
        let last = outer.len();
        let (row, col) = (view.range(last)?.clone(), view.range(last + 1)?.clone());
        let outer = outer.iter().enumerate().map(|(axis, &dim)| {
            let range = view.range(axis)?;
            Some(RowAxis { dim, step: range.step, len: self.again(range.len) })
        });
        let outer = outer.collect::<Option<Vec<_>>>()?;
        let at = view
            .axes
            .iter()
            .map(|axis| match axis {
                Axis::At(e) => self.again(*e),
                Axis::Range(r) => self.again(r.start),
            })
            .collect();
        Some(Matrix {
            base: view.base,
            at,
            outer,
            row_dim: *of_rows,
            col_dim: *of_cols,
            row_step: row.step,
            col_step: col.step,
            rows: self.again(row.len),
            cols: self.again(col.len),
        })
    }
}
