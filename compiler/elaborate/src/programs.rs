//! Programs: those that the host runs, and those that others call.

use crate::arguments::Kind;
use crate::calls::Given;
use crate::codelet::ModuleRef;
use crate::elaborator::{Elaborator, Frame, numbered};
use crate::modules::Modules;
use crate::nodes::{NodeKind, add_body};
use crate::value::Value;
use girder_ir::ids::ProgramId;
use girder_ir::program::Program;
use girder_source::{Diagnostic, Failed, Result, Span};
use girder_syntax::ast::{self, ItemKind};
use smol_str::SmolStr;

impl Elaborator<'_> {
    /// Elaborates the programs of the root module that the host can run.
    pub fn root_programs(&mut self) {
        let tree = &self.modules.get(Modules::ROOT).tree;
        for (index, item) in tree.items.iter().enumerate() {
            let ItemKind::Program(p) = &item.kind else { continue };
            let called = item.attrs.iter().any(|a| a.name.name == "called");
            if called {
                continue;
            }
            let Ok(given) = self.at_top(Modules::ROOT, |this| this.program_arguments(p)) else { continue };
            // Errors have been said; the other programs are still looked at.
            let _ = self.program(Modules::ROOT, index, given, true, p.name.span);
        }
    }

    /// What `--arg` says for the parameters of a program.
    fn program_arguments(&mut self, p: &ast::Program) -> Result<Vec<Given>> {
        let arguments = self.arguments;
        let mut given: Vec<Given> = Vec::new();
        for q in &p.params {
            let Some(argument) = arguments.list.iter().rev().find(|(n, _)| *n == q.name.name) else { continue };
            let kind = match (q.ty.as_ref().and_then(Kind::stated), &q.ty, q.default) {
                (Some(kind), ..) => kind,
                (None, None, Some(d)) => Kind::of(&self.expr(d)?),
                _ => Kind::Any,
            };
            let value = self.argument_as(argument, kind, q.span)?;
            given.push(Given { name: q.name.name.clone(), value, span: q.span });
        }
        Ok(given)
    }

    /// `call p(args);`
    pub fn call_program(&mut self, name: &ast::Path, args: &[ast::Arg], span: Span) -> Result<()> {
        let dotted = name.dotted();
        let found = self.modules.find(self.module(), &dotted, |m| &m.programs);
        let Some((module, index)) = found.and_then(|(m, e)| self.modules.item(m, e)).map(|(m, i, _)| (m, i)) else {
            let all = self.modules.get(self.module()).programs.keys().map(SmolStr::as_str);
            let near = crate::spelling::closest(&dotted, all);
            let d = Diagnostic::error("names::unknown", name.span, format!("there is no program `{dotted}`"));
            return Err(self.say(match near {
                Some(n) => d.help(format!("did you mean `{n}`?")),
                None => d.help("`call` runs a `program`; a function is called without `call`"),
            }));
        };
        let given = self.given(args)?;
        let id = self.program(module, index, given, false, span)?;
        self.push(NodeKind::Call(id), span)
    }

    /// A program with its arguments; equal arguments share one.
    fn program(
        &mut self,
        module: ModuleRef,
        index: usize,
        given: Vec<Given>,
        host: bool,
        span: Span,
    ) -> Result<ProgramId> {
        let item = &self.modules.get(module).tree.items[index];
        let ItemKind::Program(p) = &item.kind else { return Err(Failed) };
        let called = item.attrs.iter().any(|a| a.name.name == "called");
        let name = self.qualified_item(module, &p.name.dotted());
        let values = self.at_top(module, |this| this.program_values(p, given, span))?;
        values.iter().try_for_each(|v| self.charge_walk(v, span))?;
        let key = (module, name.clone(), format!("{values:?}"));
        let entry = module == Modules::ROOT && !called;
        if let Some(&id) = self.programs.get(&key) {
            return Ok(id);
        }
        if self.program_stack.contains(&(module, name.clone())) {
            let d = Diagnostic::error("elaborate::recursion", span, format!("program `{name}` calls itself"));
            return Err(self.say(d.label(p.name.span, "declared here").help("use `repeat` or `while`")));
        }
        // A call with other arguments than the host's makes a program of its own.
        let default = self.at_top(module, |this| {
            let quiet = std::mem::take(this.diagnostics);
            let given = this.program_arguments(p);
            let values = given.and_then(|g| this.program_values(p, g, span));
            *this.diagnostics = quiet;
            values
        });
        let is_host = entry && default.is_ok_and(|d| format!("{d:?}") == key.2) || host;
        let base = if is_host { name.clone() } else { SmolStr::from(format!("{name}.called")) };
        let unique = if is_host || called {
            self.taken_programs.insert(name.clone(), 1);
            name.clone()
        } else {
            let last = self.taken_programs.get(&base).copied().unwrap_or(0);
            numbered(&mut self.taken_programs, base, last)
        };
        self.program_stack.push((module, name));
        let nodes = self.at_top(module, |this| {
            this.path.push(unique.clone());
            if module != Modules::ROOT {
                this.path.remove(0);
            }
            this.emit.push(vec![]);
            // Without a place: a program is not a call that messages would have to name.
            this.origin = Some(this.graph.origins.add(Span::NONE, None, unique.clone()));
            this.frames.push(Frame { module, names: vec![], loops: 0 });
            for (q, v) in p.params.iter().zip(values) {
                this.define(q.name.name.clone(), v, false);
            }
            let done = this.block(&p.body);
            this.ended = false;
            this.frames.pop();
            let nodes = this.emit.pop().unwrap_or_default();
            done.map(|_| nodes)
        });
        self.program_stack.pop();
        let nodes = nodes?;
        let origin = self.graph.origins.add(p.name.span, None, unique.clone());
        let body = add_body(&mut self.graph, nodes, origin);
        let id = self.graph.programs.push(Program { name: unique, entry: is_host, body, origin });
        self.programs.insert(key, id);
        Ok(id)
    }

    fn program_values(&mut self, p: &ast::Program, given: Vec<Given>, span: Span) -> Result<Vec<Value>> {
        let mut slots: Vec<Option<Given>> = vec![None; p.params.len()];
        let mut next = 0;
        for g in given {
            let slot = if g.name.is_empty() {
                next += 1;
                Some(next - 1)
            } else {
                p.params.iter().position(|q| q.name.name == g.name)
            };
            match slot.and_then(|s| slots.get_mut(s)) {
                Some(s @ None) => *s = Some(g),
                _ => {
                    let d = Diagnostic::error(
                        "elaborate::arguments",
                        g.span,
                        format!("program `{}` has no parameter for this", p.name.dotted()),
                    );
                    return Err(self.say(d.label(p.name.span, "declared here")));
                }
            }
        }
        let mut sizes = crate::types::Sizes::default();
        let mut values = Vec::new();
        for (q, slot) in p.params.iter().zip(slots) {
            let (value, at) = match (slot, q.default) {
                (Some(g), _) => (g.value, g.span),
                (None, Some(d)) => (self.expr(d)?, self.tree().exprs[d].span),
                (None, None) => {
                    let message = format!("program `{}` needs a value for `{}`", p.name.dotted(), q.name.name);
                    let help = format!("give it a default, or pass `--arg {}=…`", q.name.name);
                    return Err(self.error_help("elaborate::program_argument", span, message, help));
                }
            };
            let value = match &q.ty {
                Some(ty) => self.fit(value, ty, &mut sizes, at)?,
                None => value,
            };
            self.define(q.name.name.clone(), value.clone(), false);
            values.push(value);
        }
        Ok(values)
    }
}
