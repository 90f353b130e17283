//! The header `module name with (after: "…", target: "…", target_hash: "0x…", version: 1);`: the last pass that ran,
//! and the machine that the text was printed for.
//!
//! Invariant: compilation resumes only with the machine that the text was printed for.

use girder_elaborate::Modules;
use girder_machine::Machine;
use girder_passes::pipeline::After;
use girder_source::{Diagnostic, Diagnostics, Failed, Result, Session, SourceMap, Span};
use girder_syntax::ast::{self, Arg, ExprId, ExprKind, ItemKind};
use girder_syntax::make::{Make, named};
use smol_str::SmolStr;

/// The version of the text format.
const VERSION: u64 = 1;

/// Returns the options of the header of a stage.
pub fn options(make: &mut Make, after: After, machine: &Machine) -> Vec<Arg> {
    let after = make.str(after.name());
    let target = make.str(machine.name.as_str());
    let hash = make.str(hash(machine));
    let version = make.uint(VERSION);
    let replicas = machine.partition.replicas;
    let replicas = (replicas > 1).then(|| named("replicas", make.uint(u64::from(replicas))));
    let options = [named("after", after), named("target", target)].into_iter().chain(replicas);
    options.chain([named("target_hash", hash), named("version", version)]).collect()
}

/// Returns the hash of the parts of a machine on which compilation depends.
fn hash(machine: &Machine) -> String {
    format!("0x{:016x}", machine.content_hash())
}

/// Returns the pass after which the root module was printed, or `None` if the module is not a printed stage.
pub fn header(modules: &Modules, machine: &Machine, d: &mut Diagnostics) -> Result<Option<After>> {
    for (_, module) in modules.iter() {
        check_options(&module.tree, d)?;
    }
    let tree = &modules.get(Modules::ROOT).tree;
    let Some(header) = &tree.header else { return Ok(None) };
    let Some((after, at)) = string(tree, header, "after") else { return Ok(None) };
    let mut wrong = |error: Diagnostic| {
        d.push(error);
        Err(Failed)
    };
    let version = option(tree, header, "version");
    if let Some((v, at)) = version.and_then(|e| int(tree, e))
        && v > VERSION
    {
        let message = format!("this text has version {v}, but this compiler reads up to {VERSION}");
        let help = "use the compiler that printed it, or print it again from the source";
        return wrong(Diagnostic::error("resume::newer_version", at, message).help(help));
    }
    let after = match After::named(&after) {
        Some(after) => after,
        None => {
            let passes: Vec<&str> = After::all().map(After::name).collect();
            let message = format!("there is no pass `{after}`");
            let help = format!("`after` is one of {}", passes.join(", "));
            return wrong(Diagnostic::error("resume::unknown_pass", at, message).help(help));
        }
    };
    match string(tree, header, "target_hash") {
        Some((known, at)) if known != hash(machine) => {
            let (target, at) = string(tree, header, "target").unwrap_or_else(|| ("another machine".into(), at));
            let replicas = option(tree, header, "replicas").and_then(|e| int(tree, e)).map_or(1, |r| r.0);
            let runs = u64::from(machine.partition.replicas);
            let message = match target == machine.name {
                true if replicas != runs => {
                    format!("this text was printed for {replicas} replicas, but there are {runs} of `{target}`")
                }
                true => format!("the machine `{target}` has changed since this text was printed"),
                false => format!("this text was printed for `{target}`, but the machine is `{}`", machine.name),
            };
            let help = "pass the machine that it was printed for with `--target` and its `--replicas`, or build again \
                        from the source";
            wrong(Diagnostic::error("resume::target_changed", at, message).help(help))
        }
        _ => Ok(Some(after)),
    }
}

/// The options of a header, and whether each is a string.
const OPTIONS: [(&str, bool); 5] =
    [("after", true), ("target", true), ("replicas", false), ("target_hash", true), ("version", false)];

/// Reports the first wrong option of a module: one of its header, or any of a table.
fn check_options(tree: &ast::Module, d: &mut Diagnostics) -> Result<()> {
    let header: &[Arg] = tree.header.as_ref().map_or(&[], |h| &h.options);
    let wrong = (0..header.len()).find_map(|k| wrong_option(tree, &header[..k], &header[k]));
    let tables = tree.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Exchange { options, .. } | ItemKind::Layout { options, .. } => options.first(),
        _ => None,
    });
    let of_table = |o: &Arg| unknown_option(span_of(tree, o), "a table takes no options".into(), "remove `with (…)`");
    match wrong.or_else(|| tables.map(of_table).next()) {
        Some(error) => {
            d.push(error);
            Err(Failed)
        }
        None => Ok(()),
    }
}

/// Returns the error of an option of a header, if it is wrong; `before` are the options before it.
fn wrong_option(tree: &ast::Module, before: &[Arg], option: &Arg) -> Option<Diagnostic> {
    let at = span_of(tree, option);
    let known =
        "a module takes `after`, `target`, `replicas`, `target_hash` and `version`, as printed stages have them";
    let name = option.name.as_ref()?.name.as_str();
    let Some((_, is_string)) = OPTIONS.iter().find(|o| o.0 == name) else {
        return Some(unknown_option(at, format!("a module has no option `{name}`"), known));
    };
    if before.iter().any(|o| o.name.as_ref().is_some_and(|n| n.name == name)) {
        return Some(unknown_option(at, format!("the option `{name}` occurs twice here"), "remove one"));
    }
    let (wanted, right) = match (is_string, &tree.exprs[option.value].kind) {
        (true, kind) => ("a string", matches!(kind, ExprKind::Str(_))),
        (false, kind) => ("an integer", matches!(kind, ExprKind::Int { .. })),
    };
    let message = || format!("the option `{name}` is {wanted}");
    (!right).then(|| Diagnostic::error("elaborate::type_mismatch", tree.exprs[option.value].span, message()))
}

fn unknown_option(at: Span, message: String, help: &str) -> Diagnostic {
    Diagnostic::error("elaborate::unknown_option", at, message).help(help)
}

/// Returns the span of the name of an option, or of its value if it has no name.
fn span_of(tree: &ast::Module, option: &Arg) -> Span {
    option.name.as_ref().map_or(tree.exprs[option.value].span, |n| n.span)
}

fn option(tree: &ast::Module, header: &ast::Header, name: &str) -> Option<ExprId> {
    debug_assert!(tree.header.is_some());
    header.options.iter().find(|o| o.name.as_ref().is_some_and(|n| n.name == name)).map(|o| o.value)
}

fn string(tree: &ast::Module, header: &ast::Header, name: &str) -> Option<(SmolStr, Span)> {
    let e = &tree.exprs[option(tree, header, name)?];
    match &e.kind {
        ExprKind::Str(s) => Some((s.clone(), e.span)),
        _ => None,
    }
}

fn int(tree: &ast::Module, e: ExprId) -> Option<(u64, Span)> {
    let e = &tree.exprs[e];
    match e.kind {
        ExprKind::Int { value, .. } => Some((value, e.span)),
        _ => None,
    }
}

/// Returns the machine that a printed text names, if `--target` accepts it (a built-in machine or a file), and the
/// number of replicas.
pub fn target_of(text: &str) -> Option<(String, u32)> {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    while rest.starts_with("//") {
        rest = rest.split_once('\n')?.1.trim_start();
    }
    if !rest.starts_with("module") {
        return None;
    }
    // The names of machines contain no semicolon.
    let line = &rest[..=rest.find(';')?];
    let mut map = SourceMap::default();
    let file = map.add("<header>", line)?;
    let tree = girder_syntax::parse(&map, file, &Session::default(), &mut Diagnostics::default());
    let header = tree.header.as_ref()?;
    string(&tree, header, "after")?;
    let (target, _) = string(&tree, header, "target")?;
    let known = girder_machine::builtin_names().any(|n| n == target) || target.ends_with(".toml");
    let replicas = option(&tree, header, "replicas").and_then(|e| int(&tree, e)).map_or(1, |r| r.0);
    known.then(|| (target.to_string(), u32::try_from(replicas).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_read_from_the_head_alone() {
        let head = "// printed\n\nmodule m with (after: \"place-tiles\", target: \"small\", version: 1);\n";
        assert_eq!(target_of(&format!("{head} this is not even a program")), Some(("small".into(), 1)));
        let head = "module m with (after: \"place-tiles\", target: \"small-4\", replicas: 2, version: 1);";
        assert_eq!(target_of(head), Some(("small-4".into(), 2)));
        assert_eq!(target_of("module m;\nvar x: f32;"), None);
        assert_eq!(target_of("module m with (after: \"elaborate\", target: \"toaster\");"), None);
        assert_eq!(target_of("var target: f32;"), None);
    }

    #[test]
    fn a_machine_is_known_by_its_numbers() {
        let machine = girder_machine::builtin("small").unwrap();
        let renamed = Machine { description: "other words".into(), ..machine.clone() };
        assert_eq!(hash(&machine), hash(&renamed));
        let changed = machine.clone().resized(1, 8);
        assert_ne!(hash(&machine), hash(&changed));
    }
}
