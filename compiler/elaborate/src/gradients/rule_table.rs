//! The table of rules, `grad f(x, w; y; dy) { … }`: which function each belongs to, and errors that all rules share.
//!
//! Invariant: a function has at most one rule, in its own module.

use crate::modules::{Entry, Modules};
use girder_source::{Diagnostic, Diagnostics, Span};
use girder_syntax::ast::{self, ExprId, ExprKind, ItemKind, StmtKind};
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
                        let wrong = misnamed(&m.tree, f, g);
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
fn misnamed(tree: &ast::Module, f: &ast::Fn, g: &ast::Grad) -> Option<Diagnostic> {
    for p in &g.params {
        if !is_parameter(f, &p.name) {
            return Some(no_parameter(f, p));
        }
    }
    if let Some(d) = wrong_members(tree, f, g) {
        return Some(d);
    }
    if g.results.len() != g.adjoints.len() || g.results.is_empty() {
        let message = "a rule names as many adjoints as results";
        let d = Diagnostic::error("grad::rule_name", g.name.span, message);
        return Some(d.help("write `grad f(x; y; dy) { … }`: parameters, the result, its adjoint"));
    }
    None
}

/// Returns the error of a tuple of adjoints whose names are not those of parameters, or stand in it twice.
fn wrong_members(tree: &ast::Module, f: &ast::Fn, g: &ast::Grad) -> Option<Diagnostic> {
    let RuleBody { last, .. } = split(tree, &g.body);
    let ExprKind::Tuple(args) = &tree.exprs[last?].kind else { return None };
    let names: Vec<&ast::Ident> = args.iter().filter_map(|a| a.name.as_ref()).collect();
    for (k, name) in names.iter().enumerate() {
        if !is_parameter(f, &name.name) {
            return Some(no_parameter(f, name));
        }
        if let Some(first) = names[..k].iter().find(|n| n.name == name.name) {
            let message = format!("the rule of `{}` gives two adjoints of `{}`", f.name.dotted(), name.name);
            let d = Diagnostic::error("grad::rule_name", name.span, message).here("again here");
            return Some(d.label(first.span, "given here").help("add them: `x: a + b`"));
        }
    }
    None
}

fn is_parameter(f: &ast::Fn, name: &str) -> bool {
    f.params.iter().any(|p| p.name.name == name)
}

/// Returns the error of a rule that names no parameter of its function.
pub fn no_parameter(f: &ast::Fn, name: &ast::Ident) -> Diagnostic {
    let message = format!("`{}` has no parameter `{}`", f.name.dotted(), name.name);
    let near = girder_source::closest(&name.name, f.params.iter().map(|p| p.name.name.as_str()));
    let d = Diagnostic::error("grad::rule_name", name.span, message).label(f.name.span, "the function");
    match near {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None => d.help("a rule takes parameters of its function, and gives adjoints of parameters"),
    }
}

/// Returns the error of a rule that returns something else than a tuple with names.
pub fn no_members(span: Span) -> Diagnostic {
    let d = Diagnostic::error("grad::rule_shape", span, "a rule returns a tuple with names");
    d.help("write `return (x: …, w: …);` with the names of parameters")
}

/// The parts of a rule's body.
pub struct RuleBody<'t> {
    /// The statements before the last one.
    pub before: &'t [ast::StmtId],
    /// What the last one returns.
    pub last: Option<ExprId>,
}

/// Returns the parts of a rule's body.
pub fn split<'t>(tree: &'t ast::Module, body: &'t ast::Body) -> RuleBody<'t> {
    match (body.value, body.stmts.split_last()) {
        (Some(e), _) => RuleBody { before: &body.stmts, last: Some(e) },
        (None, Some((&s, before))) => match tree.stmts[s].kind {
            StmtKind::Return(e) => RuleBody { before, last: e },
            StmtKind::Expr { expr, semi: false } => RuleBody { before, last: Some(expr) },
            _ => RuleBody { before: &body.stmts, last: None },
        },
        _ => RuleBody { before: &body.stmts, last: None },
    }
}
