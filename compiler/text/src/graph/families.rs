//! Compute sets and copies: one line for each family.
//!
//! Invariant: reading a printed family yields one family again. Values without a closed form are in a table over one
//! index, in the order in which reading enumerates them.

use super::Printer;
use super::binders::{Binders, Number};
use girder_ir::affine::Affine;
use girder_ir::codelet::{Codelet, Dir, GenericArg};
use girder_ir::family::{Const, CopyFamily, CopySource, Domain, Family, Field, Offset, ReplicaPair, TileMap};
use girder_ir::types::ElemType;
use girder_source::Span;
use girder_syntax::ast::{Arg, CopyItem, ExprId, ItemKind, Vertex, VertexItem};
use girder_syntax::make::{arg, named, path};

impl Printer<'_> {
    /// Adds the compute sets.
    pub fn sets(&mut self) {
        for set in self.graph.sets.values() {
            let mut vertices = Vec::with_capacity(set.families.len());
            for &id in &set.families {
                let family = &self.graph.families[id];
                let tile = match self.placement {
                    Some(p) => p.families[id].as_ref(),
                    None => family.tile.as_ref(),
                };
                vertices.push(VertexItem::Vertex(Box::new(self.vertex(family, tile))));
            }
            self.make.item(ItemKind::Compute { name: path(&set.name), vertices });
        }
    }

    /// Adds the copies.
    pub fn copies(&mut self) {
        for copy in self.graph.copies.values() {
            let copies = copy.families.iter().map(|f| self.copy(f)).collect();
            self.make.item(ItemKind::Copy { name: path(&copy.name), copies });
        }
    }

    fn copy(&mut self, f: &CopyFamily) -> CopyItem {
        if let Some(pairs) = f.source.pairs() {
            return self.copy_between(f, pairs);
        }
        let ty = self.copied_type(f);
        let (domain, dst, src) = match f.domain.0.len() > 1 && !(f.dst.is_closed() && f.src.is_closed()) {
            true => (line(&f.domain), on_line(&f.dst, &f.domain), on_line(&f.src, &f.domain)),
            false => (f.domain.clone(), f.dst.clone(), f.src.clone()),
        };
        let mut binders = Binders::new(self, &domain);
        let dst = self.field(&dst, ty, &mut binders);
        let mut src = self.field(&src, ty, &mut binders);
        if f.source == CopySource::Uniform {
            src = self.make.call_name("uniform", vec![arg(src)]);
        }
        let family = binders.binders(self);
        CopyItem::Copy { dst, src, family, span: Span::NONE }
    }

    /// Prints `at_replica(1 + i, y) <- at_replica(i, x) for i in 0..3`. The outermost loop goes over the pairs of
    /// replicas.
    fn copy_between(&mut self, f: &CopyFamily, pairs: &[ReplicaPair]) -> CopyItem {
        let ty = self.copied_type(f);
        let mut domain = Domain(std::iter::once(pairs.len() as u32).chain(f.domain.0.iter().copied()).collect());
        let of_pairs = |domain: &Domain, of: fn(&ReplicaPair) -> u32| {
            let all = (0..domain.count()).map(|k| i64::from(of(&pairs[(k / f.domain.count()) as usize])));
            Number::fit(domain, all.collect())
        };
        let numbers =
            |domain: &Domain| (of_pairs(domain, |p: &ReplicaPair| p.receiver), of_pairs(domain, |p| p.sender));
        let (mut dst, mut src) = (over_pairs(&f.dst, pairs.len()), over_pairs(&f.src, pairs.len()));
        let (mut receiver, mut sender) = numbers(&domain);
        let is_closed = |n: &Number| matches!(n, Number::Affine(_));
        if domain.0.len() > 1 && !(dst.is_closed() && src.is_closed() && is_closed(&receiver) && is_closed(&sender)) {
            (dst, src) = (on_line(&dst, &domain), on_line(&src, &domain));
            domain = line(&domain);
            (receiver, sender) = numbers(&domain);
        }
        let mut binders = Binders::new(self, &domain);
        let mut side = |this: &mut Self, replica: &Number, field: &Field| {
            let replica = binders.number(this, replica, 0);
            let view = this.field(field, ty, &mut binders);
            this.make.call_name("at_replica", vec![arg(replica), arg(view)])
        };
        let (dst, src) = (side(self, &receiver, &dst), side(self, &sender, &src));
        let family = binders.binders(self);
        CopyItem::Copy { dst, src, family, span: Span::NONE }
    }

    fn copied_type(&self, f: &CopyFamily) -> ElemType {
        f.dst.parts.first().map_or(ElemType::F32, |p| self.graph.vars[p.var].ty)
    }

    fn vertex(&mut self, family: &Family, tile: Option<&TileMap>) -> Vertex {
        let codelet = &self.graph.codelets[family.codelet];
        let closed = family.fields.iter().all(Field::is_closed)
            && family.consts.iter().all(|c| matches!(c.1, Const::Uniform(_)))
            && !matches!(tile, Some(TileMap::Table(_)));
        if closed || family.domain.0.len() <= 1 {
            let fields = family.fields.iter().collect::<Vec<_>>();
            return self.vertex_over(&family.domain, codelet, &fields, family, tile);
        }
        let domain = line(&family.domain);
        let fields: Vec<Field> = family.fields.iter().map(|f| on_line(f, &family.domain)).collect();
        let tile = tile.map(|t| TileMap::fit(&domain, &t.iter(&family.domain).collect::<Vec<_>>()));
        self.vertex_over(&domain, codelet, &fields.iter().collect::<Vec<_>>(), family, tile.as_ref())
    }

    fn vertex_over(
        &mut self,
        domain: &Domain,
        codelet: &Codelet,
        fields: &[&Field],
        family: &Family,
        tile: Option<&TileMap>,
    ) -> Vertex {
        let mut binders = Binders::new(self, domain);
        let (mut fields, mut consts) = (fields.iter(), family.consts.iter());
        let mut args: Vec<Arg> = Vec::with_capacity(codelet.fields.len());
        for f in codelet.fields.values() {
            let value = match f.dir {
                Dir::Const => consts.next().map(|c| self.constant(&c.1, &mut binders)),
                _ => fields.next().map(|field| self.field(field, f.ty, &mut binders)),
            };
            args.extend(value.map(|v| named(&f.name, v)));
        }
        let generics = self.generics(&codelet.args);
        let place = tile.map(|t| self.tile_map(t, &mut binders));
        let within = family.within.filter(|_| tile.is_none()).map(|range| self.tiles(range));
        let family = binders.binders(self);
        let codelet = path(&codelet.name);
        Vertex { attrs: vec![], codelet, generics, args, place, within, family, span: Span::NONE }
    }

    fn constant(&mut self, value: &Const, binders: &mut Binders<'_>) -> ExprId {
        match value {
            // A vertex has only static values, all of which have literals.
            Const::Uniform(s) => self.scalar(*s).unwrap_or_else(|| self.make.uint(s.bits)),
            Const::Table(all) => binders.scalars(self, all),
        }
    }

    /// Returns the generic arguments of a codelet.
    pub fn generics(&mut self, args: &[GenericArg]) -> Vec<ExprId> {
        let one = |a: &GenericArg| match a {
            GenericArg::Type(t) => self.make.name(t.name()),
            GenericArg::Int(i64::MIN) => self.make.name("i64.min"),
            GenericArg::Int(i) => self.make.int(*i),
            GenericArg::Fn(name) => self.make.name(name),
        };
        args.iter().map(one).collect()
    }
}

/// Returns a field over a further outermost index, which it does not depend on.
fn over_pairs(field: &Field, pairs: usize) -> Field {
    let mut field = field.clone();
    for part in &mut field.parts {
        part.offset = match &part.offset {
            Offset::Affine(a) if a.coef.is_empty() => Offset::Affine(a.clone()),
            Offset::Affine(a) => Offset::Affine(Affine {
                base: a.base,
                coef: std::iter::once(0).chain(a.coef.iter().copied()).collect(),
            }),
            Offset::Table(t) => Offset::Table(t.repeat(pairs).into()),
        };
    }
    field
}

/// Returns the domain flattened to one index.
fn line(domain: &Domain) -> Domain {
    Domain::line(domain.count() as u32)
}

/// Returns a field over the flattened domain.
fn on_line(field: &Field, domain: &Domain) -> Field {
    let mut field = field.clone();
    let flat = line(domain);
    for part in &mut field.parts {
        part.offset = Offset::fit(&flat, &part.offset.values(domain).collect::<Vec<_>>());
    }
    field
}
