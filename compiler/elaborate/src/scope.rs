//! Resolution of names: locals of the current function, then items, imports and the prelude, then built-in names.

use crate::elaborator::{Binding, Elaborator, Global, Runs};
use crate::foreign;
use crate::modules::{Entry, Modules};
use crate::references::{ItemId, References, cycle_text};
use crate::replicas::REPLICA_INDEX;
use crate::value::{Given, Value};
use girder_ir::types::ElemType;
use girder_source::{Diagnostic, Failed, Result, Span};
use girder_syntax::ast::{self, ExprId, ItemKind};
use girder_typing::ModuleRef;
use smol_str::SmolStr;

impl Elaborator<'_> {
    /// Returns the value of a name.
    pub fn name(&mut self, name: &SmolStr, span: Span) -> Result<Value> {
        if let Some(b) = self.scopes.local(name) {
            return if b.value.is_error() { Err(Failed) } else { Ok(b.value.clone()) };
        }
        if let Some(value) = self.scopes.resolved(name) {
            return Ok(value.clone());
        }
        let value = match self.modules.find(self.module(), name, |m| &m.values) {
            Some((module, entry)) => self.global(module, entry, name, span)?,
            None => match self.builtin_name(name) {
                // The number of tiles depends on the place.
                Some(value @ Value::Int(_)) => return Ok(value),
                Some(value) => value,
                None if name == REPLICA_INDEX => return self.replica_index(span).map(Value::from),
                None => return Err(self.unknown_name(name, span)),
            },
        };
        self.scopes.set_resolved(name.clone(), value.clone());
        Ok(value)
    }

    /// Returns whether a name has a meaning here.
    pub fn is_name(&self, name: &str) -> bool {
        self.scopes.local(name).is_some()
            || self.modules.find(self.module(), name, |m| &m.values).is_some()
            || self.builtin_name(name).is_some()
            || name == REPLICA_INDEX
    }

    /// Returns the value of a built-in name.
    pub fn builtin_name(&self, name: &str) -> Option<Value> {
        if let Some(t) = ElemType::from_name(name) {
            return Some(Value::Type(t));
        }
        Some(match name {
            "tiles" => Value::Int(self.current_place().count as i64),
            "workers" => Value::Int(self.machine.chip.workers as i64),
            "ipus" => Value::Int(self.machine.ipus as i64),
            "replicas" => Value::Int(i64::from(self.machine.partition.replicas)),
            _ => Value::Builtin(crate::builtins::names::NAMES.iter().find(|n| **n == name)?),
        })
    }

    fn unknown_name(&mut self, name: &str, span: Span) -> Failed {
        let module = self.modules.get(self.module());
        let prelude = self.modules.get(self.modules.prelude);
        let all = self
            .scopes
            .locals()
            .iter()
            .map(|b| b.name.as_str())
            .chain(module.values.keys().map(SmolStr::as_str))
            .chain(prelude.values.keys().map(SmolStr::as_str))
            .chain(crate::builtins::names::NAMES.iter().copied())
            .chain(["tiles", "workers", "ipus", "replicas", REPLICA_INDEX, "target"])
            .chain(ElemType::ALL.into_iter().map(|t| t.name() as &str));
        let near = girder_source::closest(name, all);
        let d = Diagnostic::error("names::unknown", span, format!("there is no `{name}` here"));
        let library = self.loader.library();
        let places: Vec<String> = library
            .modules_of(name)
            .into_iter()
            .map(|of| match module.values.contains_key(of) {
                true => format!("`{of}.{name}`"),
                false => format!("`{of}.{name}`, after `use {of};`"),
            })
            .collect();
        let help = if module.codelets.contains_key(name) {
            Some(format!("`{name}` is a codelet: it runs as `vertex {name}(…)` in a compute set"))
        } else if module.programs.contains_key(name) {
            Some(format!("`{name}` is a program: it runs by `call {name}();`"))
        } else if crate::members::METHODS.contains(&name) {
            Some(format!("it stands behind a tensor: `x.{name}(…)`"))
        } else if crate::members::MEMBERS.contains(&name) {
            Some(format!("it stands behind a tensor: `x.{name}`"))
        } else if !places.is_empty() {
            Some(format!("the library has it as {}", places.join(", and as ")))
        } else if library.names().any(|m| m == name) {
            Some(format!("import the library module with `use {name};`"))
        } else if let Some(help) = foreign::function(name).or_else(|| girder_source::foreign(name)) {
            Some(help.into())
        } else {
            near.map(|n| format!("did you mean `{n}`?"))
        };
        self.report(match help {
            Some(h) => d.help(h),
            None => d,
        })
    }

    /// Returns the value of an item of a module.
    fn global(&mut self, module: ModuleRef, entry: Entry, name: &SmolStr, span: Span) -> Result<Value> {
        if let Entry::Module(m) = entry {
            return Ok(Value::Module(m));
        }
        let modules: &Modules = self.modules;
        let Some((module, index, item)) = modules.item(module, entry) else { return Err(Failed) };
        // An item of another module may be reached by its qualified name; its own name is the whole or the last part.
        let own = own_name(item, name);
        if let ItemKind::Fn(_) = &item.kind {
            return Ok(Value::Fn(module, index));
        }
        match self.scopes.global(module, &own) {
            Some(Global::Known(Value::Error)) => return Err(Failed),
            Some(Global::Known(v)) => return Ok(v.clone()),
            Some(Global::Pending) => {
                return Err(self.depends_on_itself((module, index), name, span));
            }
            None => {}
        }
        if self.scopes.item_depth() >= self.session.limits.nesting {
            return Err(self.needed_too_deep((module, index), name, span));
        }
        self.declare_item(module, index);
        match self.scopes.global(module, &own) {
            Some(Global::Known(v)) if !v.is_error() => Ok(v.clone()),
            _ => Err(Failed),
        }
    }

    /// Reports an item whose value depends on itself, with the items of the cycle.
    fn depends_on_itself(&mut self, item: ItemId, name: &str, span: Span) -> Failed {
        let cycle = References::new(self.modules, &[item]).cycle(item);
        self.report(cyclic(name, span, &cycle.unwrap_or_default()))
    }

    /// Reports a chain of dependent values that is deeper than evaluation may nest.
    fn needed_too_deep(&mut self, item: ItemId, name: &str, span: Span) -> Failed {
        let cycle = References::new(self.modules, &[item]).cycle(item);
        let limit = self.session.limits.nesting;
        self.report(match cycle {
            Some(names) => cyclic(name, span, &names),
            None => {
                let message = format!("values need one another more than {limit} deep, down to `{name}`");
                Diagnostic::error("elaborate::too_deep", span, message).help("`--limit nesting=N` allows more")
            }
        })
    }

    /// Evaluates `base.name`: a member of a value, or a dotted name.
    pub fn field(&mut self, id: ExprId, base: ExprId, name: &ast::Ident) -> Result<Value> {
        let tree = self.tree();
        let span = tree.exprs[id].span;
        if let Some(path) = crate::trees::dotted(tree, id) {
            let first = path.split('.').next().unwrap_or_default();
            if self.scopes.local(first).is_none() {
                if let Some((module, entry)) = self.modules.find(self.module(), &path, |m| &m.values) {
                    return self.global(module, entry, &path.into(), span);
                }
                if first == "target" && self.modules.find(self.module(), first, |m| &m.values).is_none() {
                    return self.target_fact(&name.name, span);
                }
            }
        }
        let base = self.expr(base)?;
        self.member(base, name, span)
    }

    fn target_fact(&mut self, name: &str, span: Span) -> Result<Value> {
        let m = self.machine;
        Ok(match name {
            "bytes_per_tile" => Value::Int(m.memory.bytes_per_tile as i64),
            "exchange_bytes" => Value::Int(m.exchange.bytes_per_cycle as i64),
            "tiles_per_ipu" => Value::Int(m.chip.tiles as i64),
            "clock" => Value::Float(m.chip.clock_hz),
            "store_bytes" => Value::Int(m.memory.store_bytes as i64),
            "memory_free" => Value::Int(m.usable_bytes() as i64),
            "pair_bytes" => Value::Int(m.exchange.pair_bytes_per_cycle as i64),
            "sync" => Value::Int(m.sync.internal_cycles as i64),
            "latency" => Value::Int(m.latency_bound() as i64),
            "arrange_before" => Value::Int(m.arrange.before.fixed_cycles as i64),
            "arrange_after" => Value::Int(m.arrange.after.fixed_cycles as i64),
            "arrange_bytes" => Value::Float(m.arrange.before.bytes_per_cycle),
            "worker_period" => Value::Int(m.tile.worker_period as i64),
            "send_words" => Value::Int(m.exchange.words_per_send as i64),
            "receive_instructions" => Value::Int(m.exchange.receive_instructions as i64),
            "instruction_bytes" => Value::Int(m.exchange.instruction_bytes as i64),
            "ring" => Value::Bool(m.whole().links.topology == girder_machine::Topology::Torus),
            "link_bytes" => Value::Float(m.group_bytes_per_cycle(girder_machine::Group::Up)),
            "rung_bytes" => Value::Float(m.group_bytes_per_cycle(girder_machine::Group::Direct)),
            "link_cycles" => Value::Int(m.links.fixed_cycles as i64),
            "link_sync" => Value::Int(whole_sync(m) as i64),
            "name" => Value::Str(m.name.as_str().into()),
            _ => return Err(self.no_fact(name, span)),
        })
    }

    fn no_fact(&mut self, name: &str, span: Span) -> Failed {
        let message = format!("the target has no fact `{name}`");
        let help = match girder_source::closest(name, FACTS.into_iter()) {
            Some(near) => format!("did you mean `target.{near}`?"),
            None => format!("it has {}", FACTS.join(", ")),
        };
        self.error_help("names::unknown", span, message, help)
    }

    /// Returns whether an expression is the built-in name `target`.
    pub fn is_target(&self, e: ExprId) -> bool {
        matches!(&self.tree().exprs[e].kind, ast::ExprKind::Name(n) if n == "target" && !self.is_name("target"))
    }

    /// Evaluates `target.multiply_adds(T)`: the multiply-adds of the matrix unit per cycle, 0 for a type that it does
    /// not compute.
    pub fn target_rate(&mut self, name: &ast::Ident, given: Vec<Given>, span: Span) -> Result<Value> {
        if name.name != "multiply_adds" {
            return Err(self.no_fact(&name.name, name.span));
        }
        let [ty] = self.arguments("multiply_adds", ["T"], given, span)?;
        match ty.map(|g| (g.value, g.span)) {
            Some((Value::Type(ElemType::F32), _)) => Ok(Value::Int(self.machine.tile.multiply_adds.f32 as i64)),
            Some((Value::Type(_), _)) => Ok(Value::Int(0)),
            Some((other, at)) => Err(self.expected("a type", &other, at)),
            None => Err(Failed),
        }
    }

    /// Binds the names of a pattern to a value.
    pub fn bind(&mut self, pattern: &ast::Pattern, value: Value, mutable: bool, span: Span) -> Result<()> {
        match pattern {
            ast::Pattern::Name(name) => {
                self.define(name.name.clone(), value, mutable);
                Ok(())
            }
            ast::Pattern::Wildcard(_) => Ok(()),
            ast::Pattern::Tuple(parts, at) => {
                let values = match &value {
                    Value::Tuple(t) => t.values.clone(),
                    Value::List(l) => l.to_vec(),
                    Value::Error => vec![Value::Error; parts.len()],
                    other => {
                        let at = if at.is_none() { span } else { *at };
                        return Err(self.expected("a tuple", other, at));
                    }
                };
                if values.len() != parts.len() {
                    let message = format!("{} names for {} values", parts.len(), values.len());
                    return Err(self.error("elaborate::pattern", *at, message));
                }
                for (p, v) in parts.iter().zip(values) {
                    self.bind(p, v, mutable, span)?;
                }
                Ok(())
            }
        }
    }

    /// Defines a local name; at module level the name is global.
    pub fn define(&mut self, name: SmolStr, value: Value, mutable: bool) {
        let depth = self.emission.run_time_depth();
        self.scopes.define(Binding { name, value, mutable, depth, captured: false });
    }

    /// Evaluates `h = value`.
    pub fn rename(&mut self, name: &SmolStr, value: Value, span: Span) -> Result<()> {
        let depth = self.emission.run_time_depth();
        match self.scopes.local_mut(name) {
            Some(b) if b.captured => {
                let help =
                    "return the new value, or name it with a `let mut` of its own; `<-` writes a tensor's elements";
                let message = format!("`{name}` has the value that it had where this function is written");
                Err(self.error_help("elaborate::immutable", span, message, help))
            }
            Some(b) if !b.mutable => {
                let help = format!("declare it with `let mut {name}`; to write a tensor's elements use `<-`");
                let message = format!("`{name}` cannot be given another value");
                Err(self.error_help("elaborate::immutable", span, message, help))
            }
            Some(b) if b.depth < depth => {
                let message = format!("a run-time body cannot rename `{name}` of the body around it");
                let help = match self.emission.runs_within(b.depth) {
                    Runs::AnyNumber => "the body may run any number of times; make it a `var` and write it with `<-`",
                    Runs::OrNot => "the body may run or not; make it a `var` and write it with `<-`",
                    Runs::Once => "the branches run at the same time; make it a `var` and write it with `<-`",
                };
                Err(self.error_help("elaborate::rename_at_run_time", span, message, help))
            }
            Some(b) => {
                b.value = value;
                Ok(())
            }
            None => {
                let known = self.modules.find(self.module(), name, |m| &m.values).is_some();
                if known {
                    let message = format!("`{name}` is an item of the module and cannot be given another value");
                    let help = "to write a tensor's elements use `<-`";
                    return Err(self.error_help("elaborate::immutable", span, message, help));
                }
                Err(self.unknown_name(name, span))
            }
        }
    }
}

/// The names of `target`'s facts.
const FACTS: [&str; 23] = [
    "arrange_after",
    "arrange_before",
    "arrange_bytes",
    "bytes_per_tile",
    "clock",
    "exchange_bytes",
    "instruction_bytes",
    "latency",
    "link_bytes",
    "link_cycles",
    "link_sync",
    "memory_free",
    "multiply_adds(T)",
    "name",
    "pair_bytes",
    "receive_instructions",
    "ring",
    "rung_bytes",
    "send_words",
    "store_bytes",
    "sync",
    "tiles_per_ipu",
    "worker_period",
];

/// Returns the cycles of a sync of all processors of all replicas.
fn whole_sync(machine: &girder_machine::Machine) -> u64 {
    let whole = machine.whole();
    whole.sync_cycles(0..whole.ipus)
}

/// Returns the diagnostic for a value that depends on itself, along a cycle of names.
fn cyclic(name: &str, span: Span, cycle: &[SmolStr]) -> Diagnostic {
    let d = Diagnostic::error("names::cycle", span, format!("the value of `{name}` depends on itself"));
    match cycle.len() {
        // A long cycle would not help.
        3..=8 => d.help(cycle_text(cycle, "needs")),
        _ => d,
    }
}

/// Reports that a module has no value of a name, and suggests another name.
pub fn not_in_module(module: &crate::modules::Module, name: &ast::Ident) -> Diagnostic {
    let field = name.name.as_str();
    // The root module has no prefix; the name of its file is shown.
    let shown = match module.prefix.as_str() {
        "" => module.path.file_stem().map_or("".into(), |s| s.to_string_lossy().to_string()),
        prefix => prefix.to_string(),
    };
    let other = if module.programs.contains_key(field) {
        Some(("program", "a program runs by `call`, and has no value"))
    } else if module.codelets.contains_key(field) {
        Some(("codelet", "a codelet runs as a `vertex` of a compute set, and has no value"))
    } else if module.sets.contains_key(field) {
        Some(("compute set or copy", "it runs by `execute`, and has no value"))
    } else {
        None
    };
    if let Some((kind, help)) = other {
        let message = format!("`{field}` of module `{shown}` is a {kind}, not a value");
        return Diagnostic::error("names::unknown", name.span, message).help(help);
    }
    let d = Diagnostic::error("names::unknown", name.span, format!("module `{shown}` has no `{field}`"));
    if let Some(help) = foreign::of_module(&shown, field) {
        return d.help(help);
    }
    let names = || module.values.keys().map(|k| k.as_str());
    let lower = field.to_lowercase();
    let near = names().find(|name| *name == lower).or_else(|| girder_source::closest(field, names()));
    match near {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None => d,
    }
}

/// Returns the name under which an item's module knows it, given the name by which it was reached.
fn own_name(item: &ast::Item, reached: &SmolStr) -> SmolStr {
    match &item.kind {
        ItemKind::Decl(ast::Decl::Var(v)) => v.name.dotted(),
        ItemKind::Stream(s) => s.name.dotted(),
        ItemKind::Fn(f) => f.name.dotted(),
        _ => reached.rsplit('.').next().unwrap_or(reached).into(),
    }
}
