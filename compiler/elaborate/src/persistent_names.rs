//! Names of the persistent variables and remote buffers that a `let` holds: the path by which the text reaches them,
//! such as `net.0.w`.
//!
//! Such a name does not depend on what else the text makes, so that values saved under it fit a program that has grown.
//!
//! Invariant: a variable has the path within the outermost `let` around the call that made it, and the first one where
//! several lead to it.

use crate::elaborator::Elaborator;
use crate::elaborator::entities::Persistent;
use crate::value::Value;
use girder_ir::graph::Graph;
use girder_ir::view::View;
use girder_syntax::ast;
use rustc_hash::FxHashSet;
use smol_str::{SmolStr, format_smolstr};
use std::fmt::Write;
use std::sync::Arc;

impl Elaborator<'_> {
    /// Evaluates the value of a `let`; what it makes has the name of the `let` in its path.
    pub fn value_of_let(&mut self, l: &ast::Let) -> girder_source::Result<Value> {
        let ast::Pattern::Name(name) = &l.pattern else { return self.initial(l.value) };
        self.emission.enter_let(name.name.clone());
        let value = self.initial(l.value);
        self.emission.leave_let();
        value
    }

    fn initial(&mut self, value: ast::ExprId) -> girder_source::Result<Value> {
        let e = &self.tree().exprs[value];
        match &e.kind {
            ast::ExprKind::If { cond, then, els } => {
                self.charge(e.span)?;
                self.named_if(*cond, then, *els, e.span)
            }
            _ => self.expr(value),
        }
    }

    /// Renames the persistent variables and remote buffers made after the first `before` ones, where the names of
    /// `pattern` hold them. The names are the last that were bound.
    pub fn name_held(&mut self, pattern: &ast::Pattern, before: usize) {
        let made = &self.entities.persistent[before..];
        if made.is_empty() {
            return;
        }
        let mut search = Search {
            graph: &self.graph,
            wanted: made.iter().copied().collect(),
            seen: FxHashSet::default(),
            found: vec![],
        };
        crate::modules::pattern_names(pattern, &mut |name| {
            if let Some(binding) = self.scopes.local(&name.name) {
                search.value(&binding.value, &mut name.name.to_string());
            }
        });
        let found = search.found;
        for (made, _) in &found {
            let name = match *made {
                Persistent::Var(var) => &self.graph.vars[var].name,
                Persistent::Remote(remote) => &self.graph.streams[remote].name,
            };
            self.entities.vars.release(name);
        }
        for (made, path) in found {
            let path = self.qualified(&path);
            let name = self.entities.vars.unique(path);
            match made {
                Persistent::Var(var) => {
                    self.graph.vars[var].name = name;
                    self.renew_site(var);
                }
                Persistent::Remote(remote) => self.graph.streams[remote].name = name,
            }
        }
    }
}

/// A search of a value for variables and remote buffers.
struct Search<'g> {
    graph: &'g Graph,
    /// What was not found yet.
    wanted: FxHashSet<Persistent>,
    /// The lists, tuples and closures that were searched; a value may contain the same one many times.
    seen: FxHashSet<*const ()>,
    /// What was found, with its paths.
    found: Vec<(Persistent, SmolStr)>,
}

impl Search<'_> {
    fn value(&mut self, value: &Value, path: &mut String) {
        match value {
            _ if self.wanted.is_empty() => {}
            Value::List(list) if self.seen.insert(Arc::as_ptr(list).cast()) => {
                list.iter().enumerate().for_each(|(k, v)| self.part(v, &format_smolstr!("{k}"), path));
            }
            Value::Tuple(tuple) if self.seen.insert(Arc::as_ptr(tuple).cast()) => {
                for (k, (name, v)) in tuple.names.iter().zip(&tuple.values).enumerate() {
                    let name = if name.is_empty() { format_smolstr!("{k}") } else { name.clone() };
                    self.part(v, &name, path);
                }
            }
            Value::Closure(c) if self.seen.insert(Arc::as_ptr(c).cast()) => {
                c.captured.iter().for_each(|(name, v)| self.part(v, name, path));
            }
            Value::Tensor(t) => {
                if let Some(var) = t.view.parts.first().map(|part| part.var)
                    && self.wanted.contains(&Persistent::Var(var))
                    && t.view == View::whole(var, &self.graph.vars[var].shape)
                {
                    self.found(Persistent::Var(var), path);
                }
            }
            Value::Stream(stream) => self.found(Persistent::Remote(*stream), path),
            _ => {}
        }
    }

    fn found(&mut self, made: Persistent, path: &str) {
        if self.wanted.remove(&made) {
            self.found.push((made, path.into()));
        }
    }

    fn part(&mut self, value: &Value, name: &str, path: &mut String) {
        let may_hold = |v: &Value| {
            matches!(v, Value::List(_) | Value::Tuple(_) | Value::Closure(_) | Value::Tensor(_) | Value::Stream(_))
        };
        if !may_hold(value) {
            return;
        }
        let len = path.len();
        // Writing to a string does not fail.
        let _ = write!(path, ".{name}");
        self.value(value, path);
        path.truncate(len);
    }
}
