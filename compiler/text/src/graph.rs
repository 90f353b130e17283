//! Printing a graph: items that elaborate to the same graph again.
//!
//! # Note: Fixed point
//! Every entity is printed under its unique name and in the order of its arena, so that reading the text makes the same
//! ids. The text of a view, a mapping or a family depends only on what reading restores: views are kept in their
//! canonical form ([`View::canonical`](girder_ir::view::View::canonical)), mappings are printed as [`Mapping::fit`]
//! finds them, and the closed forms of a family are those that are fitted again to its enumerated vertices.
//!
//! Invariant: everything is printed through [`girder_syntax::format()`].

mod binders;
mod families;
mod numbers;
mod places;
mod programs;
mod views;

use girder_ir::graph::{Graph, Var, VarClass};
use girder_ir::ids::VarId;
use girder_ir::placement::{Mapping, Placement};
use girder_source::Span;
use girder_syntax::ItemGroup;
use girder_syntax::ast::{self, Decl, Item, ItemKind, VarDecl, VarKind};
use girder_syntax::make::{Make, attr, named, path};
use rustc_hash::FxHashSet;
use smol_str::{SmolStr, format_smolstr};

/// A module to which the items of a graph are added. The printer of a stage adds its tables between them.
pub struct Printer<'g> {
    /// The items that have no text yet.
    pub make: Make,
    /// The text so far, and the group of the last item in it.
    done: String,
    last: Option<ItemGroup>,
    graph: &'g Graph,
    /// The tiles of all variables and vertices; if `None`, those that the graph itself states.
    placement: Option<&'g Placement>,
    /// The first components of all names, which a binder must not hide.
    taken: FxHashSet<&'g str>,
}

impl<'g> Printer<'g> {
    /// Starts an empty module.
    pub fn new(graph: &'g Graph, placement: Option<&'g Placement>) -> Printer<'g> {
        let names = graph.vars.values().map(|v| &v.name).chain(graph.streams.values().map(|s| &s.name));
        let taken = names.map(|n| n.split('.').next().unwrap_or_default()).collect();
        Printer { make: Make::default(), done: String::new(), last: None, graph, placement, taken }
    }

    /// Returns the text of what was added since the last call.
    pub fn text(&mut self) -> String {
        self.flush();
        self.last = None;
        std::mem::take(&mut self.done)
    }

    /// Turns items into text, which takes less memory. The tables of a large program have millions of rows.
    pub fn flush(&mut self) {
        let module = std::mem::take(&mut self.make).module;
        let groups = [module.items.first(), module.items.last()].map(|item| item.map(|i| ItemGroup::of(&i.kind)));
        if let (Some(last), Some(first)) = (self.last, groups[0])
            && last.is_apart_from(first)
        {
            self.done.push('\n');
        }
        self.last = groups[1].or(self.last);
        self.done += &girder_syntax::format(&module, "");
    }

    /// Adds `module name with (options);`.
    pub fn header(&mut self, options: Vec<ast::Arg>) {
        let header = ast::Header { name: path(&self.graph.name), options, span: Span::NONE };
        self.make.module.header = Some(header);
    }

    /// Adds the streams.
    pub fn streams(&mut self) {
        for s in self.graph.streams.values() {
            if let Some(rows) = s.rows {
                let shape: Vec<u64> = std::iter::once(u64::from(rows)).chain(s.shape.iter().copied()).collect();
                let ty = self.make.tensor(s.ty.name(), &shape);
                let (kind, name, span) = (VarKind::Remote, path(&s.name), Span::NONE);
                let decl = VarDecl { kind, name, ty, init: None, place: None, within: None, span };
                let attrs = if s.offloaded { vec![attr("offload", None)] } else { vec![] };
                self.make.module.items.push(Item { attrs, kind: ItemKind::Decl(Decl::Var(decl)), span });
                continue;
            }
            let ty = self.make.tensor(s.ty.name(), &s.shape);
            let yes = s.wrap.then(|| named("wrap", self.make.bool(true)));
            let ahead = (s.ahead > 0).then(|| named("ahead", self.make.uint(u64::from(s.ahead))));
            let shuffle = s.shuffle.map(|seed| named("shuffle", self.make.uint(seed)));
            let same = s.same.then(|| named("replicas", self.make.str("same")));
            let options = yes.into_iter().chain(shuffle).chain(ahead).chain(same).collect();
            self.make.item(ItemKind::Stream(ast::Stream { name: path(&s.name), input: s.input, ty, options }));
        }
    }

    /// Adds the variables with their initial values and tiles.
    pub fn variables(&mut self) {
        for (id, var) in &self.graph.vars {
            let kind = match var.class {
                VarClass::Var => VarKind::Var,
                VarClass::Param => VarKind::Param,
                VarClass::State => VarKind::State,
                VarClass::Const => VarKind::Const,
                VarClass::Temp => VarKind::Temp,
            };
            let ty = self.make.tensor(var.ty.name(), &var.shape);
            let init = self.init(var);
            let place = self.mapping_of(id, var).and_then(|m| self.mapping(m, &var.shape, var.len()));
            let within = var.within.filter(|_| self.placement.is_none()).map(|range| self.tiles(range));
            let decl = VarDecl { kind, name: path(&var.name), ty, init, place, within, span: Span::NONE };
            self.make.item(ItemKind::Decl(Decl::Var(decl)));
        }
    }

    fn mapping_of(&self, id: VarId, var: &'g Var) -> Option<&'g Mapping> {
        match self.placement {
            Some(p) => p.vars[id].as_ref(),
            None => var.mapping.as_ref(),
        }
    }

    /// Returns a name for an index: the k-th of `i`, `j`, …, `z`, `i2`, `j2`, … that hides nothing.
    fn index_name(&self, k: usize) -> SmolStr {
        let letters = |round: u32| {
            ('i'..='z').map(move |c| if round == 1 { format_smolstr!("{c}") } else { format_smolstr!("{c}{round}") })
        };
        self.free((1..).flat_map(letters), k)
    }

    /// Returns a name for a column of a table: the k-th of `c0`, `c1`, … that hides nothing.
    fn column_name(&self, k: usize) -> SmolStr {
        self.free((0u32..).map(|n| format_smolstr!("c{n}")), k)
    }

    fn free(&self, names: impl Iterator<Item = SmolStr>, k: usize) -> SmolStr {
        names.filter(|n| !self.taken.contains(n.as_str())).nth(k).unwrap_or_default()
    }
}
