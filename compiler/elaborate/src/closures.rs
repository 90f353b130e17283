//! Closures: `fn(x) { … }` as a value.
//!
//! Invariant: a closure holds the values that the names of its scope had where it is written. A call sees these, the
//! parameters, and the items of the closure's module, never the names of its caller.

use crate::elaborator::{Captured, CapturedFn, Closed, Elaborator, Generated, memory};
use crate::memo_table::Callee;
use crate::trees::{dotted, expressions_within};
use crate::value::{Closure, Given, Value};
use girder_ir::codelet::GenericArg;
use girder_source::{Failed, Result, Span};
use girder_syntax::ast::{self, ExprId, ExprKind};
use girder_syntax::token::{Token, lex};
use girder_typing::ModuleRef;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smol_str::SmolStr;
use std::fmt::Write;
use std::sync::Arc;

impl<'a> Elaborator<'a> {
    /// Makes a closure with the values that the names of its text have here.
    pub fn closure(&mut self, expr: ExprId, f: &ast::Fn, span: Span) -> Result<Value> {
        let module = self.module();
        let names = self.names_in((module, expr), span);
        let mut captured = vec![];
        for name in names.iter().filter(|n| f.params.iter().all(|p| p.name.name != **n)) {
            captured.extend(self.scopes.local(name).map(|b| (name.clone(), b.value.clone())));
        }
        self.charge_values(1 + captured.len() as u64, span)?;
        Ok(Value::Closure(Arc::new(Closure { module, expr, captured })))
    }

    /// Returns the words of a closure's text that may be names, each once. Words before `:` and after `.` are names of
    /// arguments and members.
    fn names_in(&mut self, closure: (ModuleRef, ExprId), span: Span) -> Arc<[SmolStr]> {
        if let Some(names) = self.closures.names.get(&closure) {
            return names.clone();
        }
        let text = self.reporter.text(span);
        let mut names: Vec<SmolStr> = vec![];
        let lexemes = lex(text, 0).lexemes;
        for (k, l) in lexemes.iter().enumerate() {
            let word = &text[l.span.lo as usize..l.span.hi as usize];
            let is_of =
                |at: Option<usize>, token: Token| at.and_then(|k| lexemes.get(k)).is_some_and(|l| l.token == token);
            let is_label = is_of(Some(k + 1), Token::Colon) || is_of(k.checked_sub(1), Token::Dot);
            let is_word = l.token == Token::Ident || l.token.is_contextual();
            if is_word && !is_label && !names.iter().any(|n| n == word) {
                names.push(word.into());
            }
        }
        self.closures.names.entry(closure).or_insert(names.into()).clone()
    }

    /// Returns the function of a closure.
    pub fn function_of(&self, closure: &Closure) -> Result<&'a ast::Fn> {
        function_of(&self.modules.get(closure.module).tree, closure).ok_or(Failed)
    }

    /// Calls a closure. The value of a call that depends on static values only is remembered.
    pub fn call_closure(&mut self, closure: &Arc<Closure>, given: Vec<Given>, span: Span) -> Result<Value> {
        let f = self.function_of(closure)?;
        let key = self.static_call(Callee::Closure(closure), &given);
        self.memoized(key, |this| this.enter_call((closure.module, None), f, &closure.captured, given, span))
    }

    /// Returns a closure as an argument of a codelet's generic: a function of the codelet, whose captured numbers are
    /// constants. Closures of equal constants are one function.
    pub fn generic_closure(&mut self, closure: &Arc<Closure>, span: Span) -> Result<GenericArg> {
        let module = self.closed(closure, 0, span)?;
        let Some(Closed { name, .. }) = self.codelets.closed(self.modules, module) else { return Err(Failed) };
        let name = name.clone();
        self.codelets.functions.insert(name.clone(), (module, 0));
        Ok(GenericArg::Fn(name))
    }

    /// Returns the generated module of a closure as a function of codelets.
    fn closed(&mut self, closure: &Arc<Closure>, depth: u32, span: Span) -> Result<ModuleRef> {
        if depth >= self.session.limits.nesting {
            let message = format!("functions that capture functions nest more than {depth} deep");
            return Err(self.error_help("elaborate::too_deep", span, message, "`--limit nesting=N` allows more"));
        }
        let mut names = FxHashMap::default();
        let mut key = String::new();
        for path in self.paths_in((closure.module, closure.expr)).iter() {
            self.charge(span)?;
            if let Some(value) = member(&closure.captured, path) {
                let captured = self.captured(value, depth, span)?;
                // Writing to a string does not fail.
                let _ = match &captured {
                    Captured::Float(x) => write!(key, "{path}={:x};", x.to_bits()),
                    other => write!(key, "{path}={other:?};"),
                };
                names.insert(path.clone(), captured);
            }
        }
        let key = (closure.module, closure.expr, key);
        if let Some(known) = self.codelets.closures.get(&key) {
            return Ok(*known);
        }
        self.specialises(self.codelets.generated.len(), memory::CODELET, span)?;
        let mut name = self.entities.vars.unique("closure".into());
        while self.modules.find(crate::Modules::ROOT, &name, |m| &m.values).is_some() {
            name = self.entities.vars.unique("closure".into());
        }
        let module = self.generate(Generated::Closure(Closed { closure: closure.clone(), name, names }));
        self.codelets.closures.insert(key, module);
        Ok(module)
    }

    /// Returns the names in the expressions and types of a closure, also the dotted ones, each once.
    fn paths_in(&mut self, closure: (ModuleRef, ExprId)) -> Arc<[SmolStr]> {
        if let Some(paths) = self.closures.paths.get(&closure) {
            return paths.clone();
        }
        let tree = &self.modules.get(closure.0).tree;
        let names = self.closures.names.get(&closure).into_iter().flat_map(|names| names.iter().cloned());
        let mut paths: IndexSet<SmolStr, FxBuildHasher> = names.collect();
        for (id, e) in expressions_within(tree, tree.exprs[closure.1].span) {
            if let ExprKind::Field { .. } = e.kind {
                paths.extend(dotted(tree, id).map(SmolStr::from));
            }
        }
        let paths: Arc<[SmolStr]> = paths.into_iter().collect();
        self.closures.paths.insert(closure, paths.clone());
        paths
    }

    /// Returns the meaning of a captured value in a codelet.
    fn captured(&mut self, value: &Value, depth: u32, span: Span) -> Result<Captured> {
        Ok(match value {
            Value::Int(i) => Captured::Int(*i),
            Value::Float(x) => Captured::Float(*x),
            Value::Bool(b) => Captured::Bool(*b),
            Value::Type(t) => Captured::Type(*t),
            Value::Fn(module, item) => Captured::Fn(CapturedFn { module: *module, item: *item }),
            Value::Builtin(name) => match self.prelude_fn(name) {
                Some((module, item)) => Captured::Fn(CapturedFn { module, item }),
                None => Captured::Other("a function of the graph"),
            },
            Value::Closure(inner) => Captured::Fn(CapturedFn { module: self.closed(inner, depth + 1, span)?, item: 0 }),
            Value::Tuple(_) => Captured::Other("a captured tuple"),
            Value::Tensor(_) => Captured::Other("a captured tensor"),
            Value::List(_) => Captured::Other("a captured list"),
            _ => Captured::Other("a captured value of the graph"),
        })
    }

    /// Adds a generated module.
    pub fn generate(&mut self, generated: Generated) -> ModuleRef {
        self.codelets.generated.push(generated);
        ModuleRef((self.modules.count() + self.codelets.generated.len() - 1) as u32)
    }

    /// Prints the functions that are arguments of a specialisation.
    pub fn print_arguments(&mut self, args: &[GenericArg]) {
        for arg in args {
            if let GenericArg::Fn(name) = arg
                && let Some(&(module, item)) = self.codelets.functions.get(name)
            {
                self.print_item(module, item);
            }
        }
    }
}

/// Returns the captured value of a name, or of a dotted path through named tuples.
fn member<'v>(captured: &'v [(SmolStr, Value)], path: &str) -> Option<&'v Value> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let value = captured.iter().find(|(name, _)| name == first).map(|(_, value)| value)?;
    rest.into_iter().flat_map(|rest| rest.split('.')).try_fold(value, |value, part| match value {
        Value::Tuple(tuple) => tuple.get(part),
        _ => None,
    })
}

/// Returns the function of a closure, given the tree of its module.
pub fn function_of<'t>(tree: &'t ast::Module, closure: &Closure) -> Option<&'t ast::Fn> {
    match &tree.exprs[closure.expr].kind {
        ExprKind::Fn(f) => Some(f),
        _ => None,
    }
}
