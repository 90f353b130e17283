//! Programs: those that the host runs, and those that other programs call.

use crate::arguments::Kind;
use crate::binding::bind;
use crate::elaborator::{Elaborator, NodeKind, add_body, memory};
use crate::modules::Modules;
use crate::references::{References, cycle_text};
use crate::statements::Flow;
use crate::value::Given;
use crate::value::Value;
use girder_ir::ids::ProgramId;
use girder_ir::program::Program;
use girder_source::{Diagnostic, Diagnostics, Failed, Result, Span};
use girder_syntax::ast::{self, ItemKind, StmtKind};
use girder_typing::ModuleRef;
use smol_str::SmolStr;

impl Elaborator<'_> {
    /// Elaborates the programs of the root module that the host can run.
    pub fn root_programs(&mut self) {
        let tree = &self.modules.get(Modules::ROOT).tree;
        for (index, item) in tree.items.iter().enumerate() {
            let ItemKind::Program(p) = &item.kind else { continue };
            if is_called(item) || self.only_called(p) {
                continue;
            }
            let Ok(given) = self.at_top(Modules::ROOT, |this| this.program_arguments(p)) else { continue };
            // Errors have been reported; the other programs are still elaborated.
            let _ = self.program(Modules::ROOT, index, given, true, p.name.span);
        }
    }

    /// Returns whether a program of the root has a parameter without a value that the host could give, and need not
    /// have one: it is called, or the host can start another program.
    pub fn only_called(&self, p: &ast::Program) -> bool {
        let open = |q: &ast::Param| q.default.is_none() && self.arguments.get(&q.name.name).is_none();
        let calls = |kind: &StmtKind| matches!(kind, StmtKind::Call { name, .. } if name.dotted() == p.name.dotted());
        let starts = |item: &ast::Item| match &item.kind {
            ItemKind::Program(p) => !is_called(item) && !p.params.iter().any(open),
            _ => false,
        };
        let tree = &self.modules.get(Modules::ROOT).tree;
        p.params.iter().any(open)
            && (tree.items.iter().any(starts) || tree.stmts.iter().any(|(_, stmt)| calls(&stmt.kind)))
    }

    /// Returns the values of `--arg` for the parameters of a program that the host runs.
    pub fn program_arguments(&mut self, p: &ast::Program) -> Result<Vec<Given>> {
        let arguments = self.arguments;
        let mut given: Vec<Given> = Vec::new();
        for q in &p.params {
            let Some(argument) = arguments.get(&q.name.name) else {
                if q.default.is_none() {
                    return Err(self.no_value_for(p, q, p.name.span));
                }
                continue;
            };
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

    /// Elaborates `call p(args);`.
    pub fn call_program(&mut self, name: &ast::Path, args: &[ast::Arg], span: Span) -> Result<()> {
        let dotted = name.dotted();
        let found = self.modules.find(self.module(), &dotted, |m| &m.programs);
        let Some((module, index)) = found.and_then(|(m, e)| self.modules.item(m, e)).map(|(m, i, _)| (m, i)) else {
            let all = self.modules.get(self.module()).programs.keys().map(SmolStr::as_str);
            let near = girder_source::closest(&dotted, all);
            let d = Diagnostic::error("names::unknown", name.span, format!("there is no program `{dotted}`"));
            return Err(self.report(match near {
                Some(n) => d.help(format!("did you mean `{n}`?")),
                None => d.help("`call` runs a `program`; a function is called without `call`"),
            }));
        };
        let given = self.given(args)?;
        let id = self.program(module, index, given, false, span)?;
        self.push(NodeKind::Call(id), span)
    }

    /// Returns a program with its arguments; calls with equal arguments share one.
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
        let called = is_called(item);
        let name = self.qualified_item(module, &p.name.dotted());
        let values = self.at_top(module, |this| this.program_values(p, given, span))?;
        values.iter().try_for_each(|v| self.charge_walk(v, span))?;
        let key = (module, name.clone(), format!("{values:?}"));
        let entry = module == Modules::ROOT && !called;
        if let Some(&id) = self.entities.made_programs.get(&key) {
            return Ok(id);
        }
        if self.programs.contains(&(module, name.clone())) {
            let d = Diagnostic::error("elaborate::recursion", span, format!("program `{name}` calls itself"));
            let cycle = References::new(self.modules, &[(module, index)]).cycle((module, index));
            let help = match cycle.filter(|c| c.len() > 2) {
                Some(names) => format!("{}; use `repeat` or `while`", cycle_text(&names, "calls")),
                None => "use `repeat` or `while`".into(),
            };
            return Err(self.report(d.label(p.name.span, "declared here").help(help)));
        }
        self.specialises(self.entities.made_programs.len(), memory::PROGRAM + 2 * key.2.len() as u64, span)?;
        // A call whose arguments differ from the host's makes a separate program.
        let default = self.at_top(module, |this| {
            let reported = this.reporter.replace(Diagnostics::default());
            let given = this.program_arguments(p);
            let values = given.and_then(|g| this.program_values(p, g, span));
            this.reporter.replace(reported);
            values
        });
        let is_host = entry && default.is_ok_and(|d| format!("{d:?}") == key.2) || host;
        let base = if is_host { name.clone() } else { SmolStr::from(format!("{name}.called")) };
        let unique = if is_host || called {
            self.entities.programs.take(name.clone());
            name.clone()
        } else {
            self.entities.programs.numbered(base)
        };
        self.programs.push((module, name));
        let body = self.at_top(module, |this| {
            // A program's name has the module's prefix already.
            if module != Modules::ROOT {
                this.emission.leave_path();
            }
            this.emission.enter_path(unique.clone());
            this.emission.open();
            // The span is empty because messages must not list a program as a call.
            let origin = this.graph.origins.add(Span::NONE, None, unique.clone());
            this.emission.replace_origin(Some(origin));
            for (q, v) in p.params.iter().zip(values) {
                this.define(q.name.name.clone(), v, false);
            }
            let done = match this.body(&p.body) {
                // A program may end early, but it has no value.
                Ok((_, Flow::Return(Value::Unit, _))) => Ok(Value::Unit),
                Ok((_, Flow::Return(_, at))) => {
                    let help = "write `return;`, and give results by variables or streams";
                    Err(this.error_help("elaborate::leaves_block", at, "a program has no value", help))
                }
                Ok((value, flow)) => this.stays(value, flow, "a program"),
                Err(failed) => Err(failed),
            };
            let body = this.emission.close();
            done.map(|_| body)
        });
        self.programs.pop();
        let body = body?;
        let origin = self.graph.origins.add(p.name.span, None, unique.clone());
        let body = add_body(&mut self.graph, body, origin);
        self.check_noted_steps(body);
        let id = self.graph.programs.push(Program { name: unique, entry: is_host, body, origin });
        self.entities.made_programs.insert(key, id);
        Ok(id)
    }

    fn program_values(&mut self, p: &ast::Program, given: Vec<Given>, span: Span) -> Result<Vec<Value>> {
        let parameter = |name: &str| p.params.iter().position(|q| q.name.name == name);
        let slots = bind(given, p.params.len(), parameter).map_err(|(g, _)| {
            let message = format!("program `{}` has no parameter for this", p.name.dotted());
            let d = Diagnostic::error("elaborate::arguments", g.span, message);
            self.report(d.label(p.name.span, "declared here"))
        })?;
        let mut sizes = crate::types::Sizes::default();
        let mut values = Vec::new();
        for (q, slot) in p.params.iter().zip(slots) {
            let (value, at) = match (slot, q.default) {
                (Some(g), _) => (g.value, g.span),
                (None, Some(d)) => (self.expr(d)?, self.tree().exprs[d].span),
                (None, None) => return Err(self.no_value_for(p, q, span)),
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

    fn no_value_for(&mut self, p: &ast::Program, q: &ast::Param, span: Span) -> Failed {
        let message = format!("program `{}` needs a value for `{}`", p.name.dotted(), q.name.name);
        let help = format!("give it a default, or pass `--arg {}=…`", q.name.name);
        self.error_help("elaborate::program_argument", span, message, help)
    }
}

/// Returns whether only other programs call a program.
pub fn is_called(item: &ast::Item) -> bool {
    item.attrs.iter().any(|a| a.name.name == "called")
}
