//! The item: fields, attributes, and the text.
//!
//! Invariant: sizes are declared in the order in which dimensions name them, as typing numbers them.

use super::block::Printer;
use super::printed::{Printed, Result, unprintable};
use girder_ir::codelet::{Codelet, DimDecl, Dir, ExprKind, FieldDecl};
use girder_ir::ids::SizeId;
use girder_source::Span;
use girder_syntax::ast::{self, Dim, FieldDir, Item, ItemKind, Type, TypeKind};
use girder_syntax::make::{arg, attr, body, ident, path};

/// Returns the text of a codelet under a name. The text has no generics, whatever arguments the codelet has: types and
/// integers are known in it, and functions are inlined.
///
/// # Errors
/// No text reads back to this codelet.
pub fn codelet_text(codelet: &Codelet, name: &str) -> Result<Printed> {
    let mut p = Printer::new(codelet)?;
    sizes(codelet)?;
    let mut fields = Vec::with_capacity(codelet.fields.len());
    for field in codelet.fields.values() {
        fields.push(p.field(field)?);
    }
    let attrs = p.attributes()?;
    let stmts = p.block(&codelet.body)?;
    let item = ast::Codelet { multi: codelet.multi, name: path(name), generics: vec![], fields, body: body(stmts) };
    p.make.module.items.push(Item { attrs, kind: ItemKind::Codelet(item), span: Span::NONE });
    let text = girder_syntax::format(&p.make.module, "").trim_end().to_string();
    Ok(Printed { text, calls: p.functions })
}

/// Checks that dimensions name all sizes, in order, and nothing else has their names.
fn sizes(codelet: &Codelet) -> Result<()> {
    let mut bound: Vec<SizeId> = vec![];
    for dim in codelet.fields.values().flat_map(|f| &f.dims) {
        match dim {
            DimDecl::Size(size) if !bound.contains(size) => bound.push(*size),
            _ => {}
        }
    }
    if !bound.iter().copied().eq(codelet.sizes.keys()) {
        return unprintable("sizes are not in the order in which dimensions bind them");
    }
    let fields = codelet.fields.values().map(|f| &f.name);
    let mut names: Vec<_> = fields.chain(codelet.sizes.values()).collect();
    names.sort();
    match names.windows(2).find(|w| w[0] == w[1]) {
        Some(w) => unprintable(format!("two fields or sizes are named `{}`", w[0])),
        None => Ok(()),
    }
}

impl Printer<'_> {
    fn field(&mut self, field: &FieldDecl) -> Result<ast::CodeletField> {
        let dir = match field.dir {
            Dir::In => FieldDir::In,
            Dir::Out => FieldDir::Out,
            Dir::InOut => FieldDir::InOut,
            Dir::Const => FieldDir::Const,
        };
        let mut attrs = vec![];
        if field.align != 1 {
            let align = self.make.uint(field.align.into());
            attrs.push(attr("align", Some(vec![arg(align)])));
        }
        let mut dims = Vec::with_capacity(field.dims.len());
        for dim in &field.dims {
            dims.push(Dim::Expr(match *dim {
                DimDecl::Size(size) => self.make.name(&self.codelet.sizes[size]),
                DimDecl::Fixed(n) => self.make.uint(n),
                DimDecl::Expr(e) => {
                    if matches!(self.codelet.exprs[e].kind, ExprKind::Const(_) | ExprKind::Size(_)) {
                        return unprintable("a dimension that is a number or a size is an expression");
                    }
                    self.bare(e)?
                }
            }));
        }
        let dims = (!dims.is_empty()).then_some(dims);
        let ty = Type { kind: TypeKind::Name { name: path(field.ty.name()), dims }, span: Span::NONE };
        Ok(ast::CodeletField { attrs, dir, name: ident(&field.name), ty, span: Span::NONE })
    }

    fn attributes(&mut self) -> Result<Vec<ast::Attr>> {
        let mut attrs = vec![];
        if self.codelet.pipelined {
            let apart = self.codelet.separate_elements.then(|| vec![arg(self.make.name("apart"))]);
            attrs.push(attr("pipelined", apart));
        }
        if let Some(cycles) = self.codelet.cycles {
            let cycles = self.bare(cycles)?;
            attrs.push(attr("cycles", Some(vec![arg(cycles)])));
        }
        Ok(attrs)
    }
}
