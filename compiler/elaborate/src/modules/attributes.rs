//! Validation of the attributes of items.
//!
//! Invariant: an attribute without meaning on its item is an error, so that a misspelt one is not ignored.

use girder_source::{Diagnostic, Diagnostics};
use girder_syntax::ast::{self, Decl, ItemKind, VarKind};

/// Attributes of codelets. Their arguments are checked during translation.
const CODELET: [&str; 3] = ["pipelined", "cycles", "at"];
/// Attributes that printed text puts before programs.
const PROGRAM: [&str; 2] = ["called", "at"];
/// Attributes that printed text puts before remote buffers.
const REMOTE: [&str; 2] = ["offload", "at"];
/// Attributes that take no arguments.
const PLAIN: [&str; 4] = ["recompute", "offload", "reverse", "called"];

/// Reports every attribute that has no meaning on its item.
pub fn attributes(tree: &ast::Module, diagnostics: &mut Diagnostics) {
    for item in &tree.items {
        let (what, known): (&str, &[&str]) = match &item.kind {
            ItemKind::Codelet(_) => ("a codelet", &CODELET),
            ItemKind::Program(_) => ("a program", &PROGRAM),
            ItemKind::Decl(Decl::Var(v)) if v.kind == VarKind::Remote => ("a remote buffer", &REMOTE),
            _ => ("this item", &["at"]),
        };
        for a in &item.attrs {
            let name = a.name.name.as_str();
            match known.contains(&name) {
                true => diagnostics.extend(needless_arguments(a)),
                false => diagnostics.push(unknown_attribute(a, what)),
            }
        }
    }
}

/// Returns the error of arguments of an attribute that takes none.
pub fn needless_arguments(a: &ast::Attr) -> Option<Diagnostic> {
    let name = a.name.name.as_str();
    if a.args.is_none() || !PLAIN.contains(&name) {
        return None;
    }
    let d = Diagnostic::error("elaborate::arguments", a.name.span, format!("`{name}` takes no arguments"));
    Some(d.help(format!("write `#[{name}]`")))
}

/// Returns the error of an attribute that has no meaning on something.
pub fn unknown_attribute(a: &ast::Attr, what: &str) -> Diagnostic {
    let name = a.name.name.as_str();
    let written = ["pipelined", "cycles", "recompute", "offload"];
    let d = Diagnostic::error("names::unknown", a.name.span, format!("`{name}` is not an attribute of {what}"));
    d.help(match girder_source::closest(name, written.iter().copied()) {
        Some(near) if near != name && what == "a codelet" => format!("did you mean `{near}`?"),
        _ => {
            "a codelet may have `pipelined` and `cycles(n)`; a `let`, a block or a `repeat` may have `recompute`, and \
             a `repeat` also `offload`"
                .into()
        }
    })
}
