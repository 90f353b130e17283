//! References between items, as a graph over all modules.
//!
//! # Note: Mentions
//! An edge means that the text of one item mentions the name of another. Evaluation may not need that item: a branch
//! may not be taken, and a local name may hide the item. So a cycle here is not an error by itself; but every cycle
//! that evaluation meets is a cycle here, except cycles through functions that are passed as values.
//!
//! Invariant: the nodes are the items reachable from the roots; the neighbours of a node are in the order of their
//! first mention.

use crate::modules::{Entry, Module, Modules};
use crate::trees::{dotted, expressions, statements};
use girder_syntax::ast::{self, ExprId, ExprKind, ItemKind, StmtKind};
use girder_typing::ModuleRef;
use petgraph::algo::{astar, kosaraju_scc};
use petgraph::graphmap::DiGraphMap;
use petgraph::visit::DfsPostOrder;
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

/// An item: its module, and its number in the module.
pub type ItemId = (ModuleRef, usize);

/// The items that are reachable from some roots by mentions.
pub struct References<'m> {
    modules: &'m Modules,
    graph: DiGraphMap<ItemId, ()>,
}

impl<'m> References<'m> {
    /// Follows the mentions of some items.
    pub fn new(modules: &'m Modules, roots: &[ItemId]) -> References<'m> {
        let mut graph = DiGraphMap::new();
        let mut waiting = roots.to_vec();
        while let Some(item) = waiting.pop() {
            if graph.contains_node(item) && graph.neighbors(item).next().is_some() {
                continue;
            }
            graph.add_node(item);
            // The depth-first search visits neighbours from the last to the first.
            for mentioned in mentions(modules, item).into_iter().rev() {
                if !graph.contains_node(mentioned) {
                    waiting.push(mentioned);
                }
                graph.add_edge(item, mentioned, ());
            }
        }
        References { modules, graph }
    }

    /// Returns the reachable items in topological order: each item comes after the items that it mentions, otherwise in
    /// the order of the roots. Items in cycles through other items have no such order and are left out. An item that
    /// mentions its own name may well refer to something else, as `var bytes = bytes(…)` does.
    pub fn order(&self, roots: &[ItemId]) -> Vec<ItemId> {
        let is_cycle = |c: &Vec<ItemId>| c.len() > 1;
        let in_cycles: FxHashSet<ItemId> = kosaraju_scc(&self.graph).into_iter().filter(is_cycle).flatten().collect();
        let mut order = vec![];
        let mut search = DfsPostOrder::empty(&self.graph);
        for &root in roots {
            search.move_to(root);
            while let Some(item) = search.next(&self.graph) {
                if !in_cycles.contains(&item) {
                    order.push(item);
                }
            }
        }
        order
    }

    /// Returns the names along a shortest cycle through an item, from it to itself; `None` if there is no cycle.
    pub fn cycle(&self, item: ItemId) -> Option<Vec<SmolStr>> {
        let back = |first: ItemId| astar(&self.graph, first, |at| at == item, |_| 1, |_| 0);
        let (_, path) = self.graph.neighbors(item).filter_map(back).min_by_key(|(length, _)| *length)?;
        Some(std::iter::once(item).chain(path).map(|i| self.name(i)).collect())
    }

    fn name(&self, (module, index): ItemId) -> SmolStr {
        let module = self.modules.get(module);
        let name = crate::modules::item_names(&module.tree.items[index]).into_iter().next().unwrap_or_default();
        match module.prefix.as_str() {
            "" => name,
            prefix => format!("{prefix}.{name}").into(),
        }
    }
}

/// Returns the items that an item mentions, in order, each once.
fn mentions(modules: &Modules, (module, index): ItemId) -> Vec<ItemId> {
    let tree = &modules.get(module).tree;
    let item = &tree.items[index];
    let mut found: Vec<ItemId> = vec![];
    let mut seen = FxHashSet::default();
    let mut add = |name: &str, called: bool, table: fn(&Module) -> &FxHashMap<SmolStr, Entry>| {
        let entry = modules.find(module, name, table);
        let mentioned = entry.and_then(|(m, e)| modules.item(m, e));
        // A variable cannot be called: `tile(0)` does not mention a variable `tile`.
        let mentioned = mentioned.filter(|(.., i)| !called || !matches!(i.kind, ItemKind::Decl(ast::Decl::Var(_))));
        found.extend(mentioned.map(|(m, i, _)| (m, i)).filter(|m| seen.insert(*m)));
    };
    let callee =
        |(_, e): (ExprId, &ast::Expr)| if let ExprKind::Call { callee, .. } = e.kind { Some(callee) } else { None };
    let callees: FxHashSet<ExprId> = expressions(tree, item).filter_map(callee).collect();
    for (id, e) in expressions(tree, item) {
        match &e.kind {
            ExprKind::Name(name) => add(name, callees.contains(&id), |m| &m.values),
            ExprKind::Field { .. } => {
                if let Some(path) = dotted(tree, id) {
                    add(&path, callees.contains(&id), |m| &m.values);
                }
            }
            _ => {}
        }
    }
    if let ItemKind::Program(_) = item.kind {
        for (_, s) in statements(tree, item) {
            if let StmtKind::Call { name, .. } = &s.kind {
                add(&name.dotted(), false, |m| &m.programs);
            }
        }
    }
    for name in stated_types(item) {
        add(&name.dotted(), false, |m| &m.values);
    }
    found
}

/// Returns the names of the types that a declaration states.
fn stated_types(item: &ast::Item) -> Vec<&ast::Path> {
    let ty = match &item.kind {
        ItemKind::Decl(ast::Decl::Let(l)) => l.ty.as_ref(),
        ItemKind::Decl(ast::Decl::Var(v)) => Some(&v.ty),
        ItemKind::Stream(s) => Some(&s.ty),
        _ => None,
    };
    ty.and_then(|ty| if let ast::TypeKind::Name { name, .. } = &ty.kind { Some(name) } else { None })
        .into_iter()
        .collect()
}

/// Describes a cycle of names: "`a` needs `b`, which needs `a`".
pub fn cycle_text(names: &[SmolStr], verb: &str) -> String {
    let mut text = format!("`{}`", names.first().map_or("", |n| n.as_str()));
    for (k, name) in names.iter().enumerate().skip(1) {
        let which = if k > 1 { ", which" } else { "" };
        text += &format!("{which} {verb} `{name}`");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::{Array, Library, Loader, PRELUDE};
    use girder_source::{Diagnostics, Session, SourceMap};
    use std::path::{Path, PathBuf};
    use std::sync::LazyLock;

    /// A loader without library and files.
    struct Nothing;

    impl Loader for Nothing {
        fn library(&self) -> &Library {
            static EMPTY: LazyLock<Library> = LazyLock::new(|| Library::new(&[(PRELUDE, "")]));
            &EMPTY
        }

        fn file(&self, _: &Path, _: &str) -> Result<(PathBuf, String), String> {
            Err("none".into())
        }

        fn array(&self, _: &Path, _: &str, _: Option<&str>, _: u64) -> Result<Array, String> {
            Err("none".into())
        }
    }

    fn modules(text: &str) -> Modules {
        let mut map = SourceMap::default();
        let root = map.add("test.gir", text).unwrap();
        Modules::load(&mut map, root, &Nothing, &Session::default(), &mut Diagnostics::default())
    }

    fn roots(count: usize) -> Vec<ItemId> {
        (0..count).map(|i| (Modules::ROOT, i)).collect()
    }

    #[test]
    fn an_item_comes_after_what_it_mentions_and_cycles_are_left_out() {
        let text = "let a = f(); let b = 1; fn f() { return c + b; } let c = 2; let d = e; let e = d; let g = d;";
        let modules = modules(text);
        let references = References::new(&modules, &roots(7));
        let order: Vec<usize> = references.order(&roots(7)).into_iter().map(|i| i.1).collect();
        assert_eq!(order, [3, 1, 2, 0, 6]);
        assert_eq!(references.cycle((Modules::ROOT, 4)).unwrap(), ["d", "e", "d"]);
        assert_eq!(references.cycle((Modules::ROOT, 6)), None);
    }

    #[test]
    fn a_long_chain_is_ordered_without_deep_recursion() {
        let count = 50_000;
        let mut text: String = (0..count).map(|i| format!("let a{i} = a{};", i + 1)).collect();
        text += &format!("let a{count} = 0;");
        let modules = modules(&text);
        let all = roots(count + 1);
        let order: Vec<usize> = References::new(&modules, &all).order(&all).into_iter().map(|i| i.1).collect();
        assert!(order.into_iter().eq((0..=count).rev()));
    }

    #[test]
    fn a_cycle_is_told_in_a_sentence() {
        let names = ["a", "b", "a"].map(SmolStr::from);
        assert_eq!(cycle_text(&names, "needs"), "`a` needs `b`, which needs `a`");
        assert_eq!(cycle_text(&names[1..], "calls"), "`b` calls `a`");
    }
}
