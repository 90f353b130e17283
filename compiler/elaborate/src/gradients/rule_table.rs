//! The table of rules, `grad f(x, w; y; dy) { … }`: which function each belongs to.
//!
//! Invariant: a function has at most one rule, in its own module.

use crate::modules::{Entry, Modules};
use girder_source::{Diagnostic, Diagnostics};
use girder_syntax::ast::{self, ItemKind};
use girder_typing::ModuleRef;
use rustc_hash::FxHashMap;

/// A rule and its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleRef {
    /// The module of both.
    pub module: ModuleRef,
    /// The item of the rule.
    pub item: usize,
    /// The item of the function.
    pub function: usize,
}

/// The rules of all modules.
#[derive(Debug, Default)]
pub struct Rules(FxHashMap<(ModuleRef, usize), RuleRef>);

impl Rules {
    /// Returns the rule of a function.
    pub fn of(&self, function: (ModuleRef, usize)) -> Option<RuleRef> {
        self.0.get(&function).copied()
    }

    /// Finds the rules of all modules; reports those that fit no function.
    pub fn find(modules: &Modules, diagnostics: &mut Diagnostics) -> Rules {
        let mut rules = Rules::default();
        for (module, m) in modules.iter() {
            for (item, i) in m.tree.items.iter().enumerate() {
                let ItemKind::Grad(g) = &i.kind else { continue };
                match rule_of(modules, module, g) {
                    Ok((function, f)) => {
                        let wrong = misnamed(f, g);
                        if let Some(d) = wrong {
                            diagnostics.push(d);
                            continue;
                        }
                        let rule = RuleRef { module, item, function };
                        if let Some(first) = rules.0.insert((module, function), rule) {
                            let name = g.name.dotted();
                            let d = Diagnostic::error("grad::twice", g.name.span, format!("`{name}` has two rules"));
                            let d = d.here("second rule");
                            diagnostics.push(match &m.tree.items[first.item].kind {
                                ItemKind::Grad(h) => d.label(h.name.span, "first rule").help("remove one of them"),
                                _ => d,
                            });
                        }
                    }
                    Err(d) => diagnostics.push(d),
                }
            }
        }
        rules
    }
}

/// Returns the function of a rule.
fn rule_of<'m>(
    modules: &'m Modules,
    module: ModuleRef,
    g: &ast::Grad,
) -> std::result::Result<(usize, &'m ast::Fn), Diagnostic> {
    let name = g.name.dotted();
    let own = modules.get(module);
    if let Some(&Entry::Item(k)) = own.values.get(&name)
        && let ItemKind::Fn(f) = &own.tree.items[k].kind
    {
        return Ok((k, f));
    }
    let elsewhere = modules.find(module, &name, |m| &m.values).and_then(|(m, e)| modules.item(m, e));
    if let Some((_, _, ast::Item { kind: ItemKind::Fn(f), .. })) = elsewhere {
        let message = format!("`{name}` is a function of another module, so its rule cannot stand here");
        let d = Diagnostic::error("grad::foreign", g.name.span, message).label(f.name.span, "the function");
        return Err(d.help("write a function of your own that calls it, and give that one a rule"));
    }
    let functions = own.values.iter().filter(|(_, e)| match e {
        Entry::Item(k) => matches!(own.tree.items[*k].kind, ItemKind::Fn(_)),
        _ => false,
    });
    let near = girder_source::closest(&name, functions.map(|(n, _)| n.as_str()));
    let d = Diagnostic::error("grad::rule_name", g.name.span, format!("this module has no function `{name}`"));
    Err(match near {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None => d.help("a rule stands in the module of its function: `grad f(x; y; dy) { … }`"),
    })
}

/// Returns the error of a rule whose names do not fit its function.
fn misnamed(f: &ast::Fn, g: &ast::Grad) -> Option<Diagnostic> {
    for p in &g.params {
        if !f.params.iter().any(|q| q.name.name == p.name) {
            let message = format!("`{}` has no parameter `{}`", f.name.dotted(), p.name);
            let near = girder_source::closest(&p.name, f.params.iter().map(|q| q.name.name.as_str()));
            let d = Diagnostic::error("grad::rule_name", p.span, message).label(f.name.span, "the function");
            return Some(match near {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help("the first list of a rule names parameters of its function"),
            });
        }
    }
    if g.results.len() != g.adjoints.len() || g.results.is_empty() {
        let message = "a rule names as many adjoints as results";
        let d = Diagnostic::error("grad::rule_name", g.name.span, message);
        return Some(d.help("write `grad f(x; y; dy) { … }`: parameters, the result, its adjoint"));
    }
    None
}
