//! Checks that the views and constants of a vertex fit the dimensions of its codelet.
//!
//! Invariant: an accepted vertex has sizes, and cycles if its codelet states them, so no later stage finds them
//! missing.

use crate::elaborator::Elaborator;
use girder_codelet::sizes::Shape;
use girder_ir::codelet::{DimDecl, Dir};
use girder_ir::family::Const;
use girder_ir::ids::{FieldId, SpecId};
use girder_ir::types::Scalar;
use girder_ir::view::View;
use girder_source::{Diagnostic, Result};
use girder_syntax::ast;
use girder_typing::Header;

impl Elaborator<'_> {
    /// Checks the sizes of a block of vertices, whose views have the lengths of `like`.
    pub fn check_block(
        &mut self,
        spec: SpecId,
        like: &[View],
        consts: &[Const],
        v: &ast::Vertex,
        header: &Header,
    ) -> Result<()> {
        let shapes = self.shapes(spec, like);
        let rows = consts.iter().map(|c| if let Const::Table(t) = c { t.len() } else { 1 }).max().unwrap_or(1);
        let rows = if self.computes_sizes(spec) { rows } else { 1 };
        for row in 0..rows as u64 {
            let row: Vec<Scalar> = consts.iter().map(|c| c.at(row)).collect();
            let values = self.const_values(spec, &row);
            self.check_sizes(spec, &shapes, &values, v, header)?;
        }
        Ok(())
    }

    /// Returns whether a codelet has computed dimensions or stated cycles, which may depend on constants.
    pub(super) fn computes_sizes(&self, spec: SpecId) -> bool {
        let codelet = &self.graph.codelets[spec];
        let computed = |f: &girder_ir::codelet::FieldDecl| f.dims.iter().any(|d| matches!(d, DimDecl::Expr(_)));
        let states = codelet.cycles.is_some() && codelet.fields.values().any(|f| f.dir == Dir::Const);
        states || codelet.fields.values().any(computed)
    }

    /// Returns the shape of the view of each field; empty for `const` fields.
    pub(super) fn shapes(&self, spec: SpecId, views: &[View]) -> Vec<Shape> {
        let mut views = views.iter();
        let shape = |f: &girder_ir::codelet::FieldDecl| match f.dir {
            Dir::Const => Shape::default(),
            _ => views.next().map(|v| v.shape().iter().copied().collect()).unwrap_or_default(),
        };
        self.graph.codelets[spec].fields.values().map(shape).collect()
    }

    /// Returns the constant of each field; zero for those that are not `const`.
    pub(super) fn const_values(&self, spec: SpecId, consts: &[Scalar]) -> Vec<Scalar> {
        let mut consts = consts.iter();
        let value = |f: &girder_ir::codelet::FieldDecl| match f.dir {
            Dir::Const => consts.next().copied().unwrap_or(Scalar::zero(f.ty)),
            _ => Scalar::zero(f.ty),
        };
        self.graph.codelets[spec].fields.values().map(value).collect()
    }

    /// Checks that the views of a vertex agree with the codelet's dimensions, and warns of `out` fields that it may
    /// leave partly unwritten.
    pub(super) fn check_sizes(
        &mut self,
        spec: SpecId,
        shapes: &[Shape],
        consts: &[Scalar],
        v: &ast::Vertex,
        header: &Header,
    ) -> Result<()> {
        let codelet = &self.graph.codelets[spec];
        let wrong = match girder_codelet::bind_sizes(codelet, shapes, consts) {
            Ok(sizes) => {
                self.check_cycles(spec, &sizes, consts, v)?;
                self.warn_of_partial(spec, &sizes, header);
                return Ok(());
            }
            Err(wrong) => wrong,
        };
        let field = &header.fields[wrong.field.as_u32() as usize];
        let axis = format!("axis {} of field `{}`", wrong.axis, field.name);
        let message = match wrong.what {
            girder_codelet::Expected::NoValue(_) => {
                format!("{axis} has no size here: its expression overflows or divides by zero")
            }
            _ => {
                let name = v.codelet.dotted();
                format!("{axis} has {} elements, but codelet `{name}` needs {}", wrong.found, wrong.expected)
            }
        };
        let d = Diagnostic::error("elaborate::shape_mismatch", v.span, message).label(field.span, "the field");
        Err(self.report(d))
    }

    /// Checks that the value of `#[cycles]` is a valid time.
    fn check_cycles(
        &mut self,
        spec: SpecId,
        sizes: &girder_codelet::Sizes,
        consts: &[Scalar],
        v: &ast::Vertex,
    ) -> Result<()> {
        let codelet = &self.graph.codelets[spec];
        let Some(stated) = codelet.cycles else { return Ok(()) };
        let name = v.codelet.dotted();
        let message = match girder_codelet::sizes::static_int(codelet, sizes, consts, stated) {
            Some(0..) => return Ok(()),
            Some(cycles) => format!("a vertex of `{name}` would take {cycles} cycles"),
            None => format!("the cycles of `{name}` have no value here: their expression overflows or divides by zero"),
        };
        let at = codelet.exprs[stated].span;
        let d = Diagnostic::error("codelet::cycles", v.span, message).label(at, "the cycles that are stated");
        Err(self.report(d.help("state a number of at least 0 for all sizes and constants that vertices have")))
    }

    /// Warns of `out` fields that may stay partly unwritten. Fields that the workers of a `multi` codelet share are not
    /// analysed.
    fn warn_of_partial(&mut self, spec: SpecId, sizes: &girder_codelet::Sizes, header: &Header) {
        let codelet = &self.graph.codelets[spec];
        if codelet.multi {
            return;
        }
        let written = codelet.fields.iter().filter(|(_, f)| f.dir == Dir::Out).map(|(id, _)| id);
        let facts = girder_codelet::facts(codelet, sizes);
        let partial: Vec<FieldId> = written.filter(|&f| facts.cover[f] == girder_codelet::Cover::Partial).collect();
        for f in partial {
            if self.codelets.warned.insert((spec, f)) {
                let field = &header.fields[f.as_u32() as usize];
                let message = format!("`{}` may be left partly unwritten: the old elements stay there", field.name);
                let d = Diagnostic::warning("codelet::partial_output", field.span, message);
                let help = "write every element on every path; or declare it `inout`, which costs the same";
                self.reporter.report_alone(d.help(help));
            }
        }
    }
}
