//! The state of elaboration: the graph so far, the names in scope, the steps being emitted; and how errors are said.
//!
//! Invariant: names of entities are unique; a failed expression is reported once, where it failed, and its value is
//! [`Value::Error`] to whatever comes after.

use crate::codelet::ModuleRef;
use crate::modules::{Loader, Modules};
use crate::nodes::{Node, NodeKind};
use crate::value::{Place, Tensor, Value};
use girder_ir::graph::{Graph, Var, VarClass};
use girder_ir::ids::{ComputeSetId, CopyId, ProgramId, SpecId, VarId};
use girder_ir::placement::Mapping;
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_machine::Machine;
use girder_source::{Diagnostic, Diagnostics, Failed, Label, OriginId, Result, Session, SourceMap, Span};
use girder_syntax::ast;
use girder_syntax::token::Token;
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

/// What `--arg name=value` sets: parameters of programs and `let`s of the root module.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Name and text in the order given; a later one of the same name wins.
    pub list: Vec<(SmolStr, SmolStr)>,
}

/// A name that can be executed.
#[derive(Clone, Copy, Debug)]
pub enum Set {
    /// A compute set.
    Compute(ComputeSetId),
    /// A copy.
    Copy(CopyId),
}

/// A local name.
#[derive(Clone, Debug)]
pub struct Binding {
    pub name: SmolStr,
    pub value: Value,
    pub mutable: bool,
    /// Depth of run-time bodies at its `let`: a deeper body may not rename it.
    pub depth: u32,
}

/// The body of a function or program.
#[derive(Debug)]
pub struct Frame {
    pub module: ModuleRef,
    pub names: Vec<Binding>,
    /// Static loops around what is being evaluated, whose `break` and `continue` may stand here.
    pub loops: u32,
}

/// What a global name holds.
#[derive(Clone, Debug)]
pub enum Global {
    /// Being evaluated: to meet it again is a cycle.
    Pending,
    /// Known.
    Known(Value),
}

/// See the module.
pub struct Elaborator<'a> {
    pub modules: &'a Modules,
    pub machine: &'a Machine,
    pub session: &'a Session,
    pub loader: &'a dyn Loader,
    pub arguments: &'a Arguments,
    pub diagnostics: &'a mut Diagnostics,
    pub graph: Graph,
    pub globals: FxHashMap<(ModuleRef, SmolStr), Global>,
    /// What names that are no locals were found to be worth, by the module that says them.
    pub known: FxHashMap<(ModuleRef, SmolStr), Value>,
    pub sets: FxHashMap<(ModuleRef, SmolStr), Set>,
    pub programs: FxHashMap<(ModuleRef, SmolStr, String), ProgramId>,
    pub specs: FxHashMap<crate::vertices::SpecKey, Option<SpecId>>,
    pub headers: FxHashMap<(ModuleRef, usize), Option<std::sync::Arc<crate::codelet::Header>>>,
    /// Modules that the compiler made, numbered after those of `modules`.
    pub made: Vec<ast::Module>,
    pub map: &'a mut SourceMap,
    /// The temporary that the last element-wise step computed, and that step's set.
    pub fresh: Option<(VarId, ComputeSetId)>,
    pub items: FxHashSet<(ModuleRef, usize)>,
    pub each: FxHashMap<SmolStr, std::sync::Arc<crate::each::EachCodelet>>,
    pub constants: FxHashMap<Scalar, VarId>,
    /// What `map` statements put on tiles, in their order.
    pub mapped: Vec<crate::maps::VarRows>,
    /// Fields that were warned of.
    pub warned: FxHashSet<(SpecId, girder_ir::ids::FieldId)>,
    pub taken: Taken,
    pub taken_sets: Taken,
    pub taken_programs: Taken,
    pub frames: Vec<Frame>,
    /// Bodies being emitted, innermost last; empty where nothing runs.
    pub emit: Vec<Vec<Node>>,
    /// How many of them are under run-time control.
    pub depth: u32,
    /// Names of the calls around, for paths of entities.
    pub path: Vec<SmolStr>,
    pub origin: Option<OriginId>,
    pub places: Vec<Place>,
    /// Indices of the loops around the vertex or row at hand, outermost first.
    pub indices: Vec<i64>,
    pub steps_left: u64,
    /// Whether an assertion of the function or program being evaluated failed, which ends it.
    pub ended: bool,
    /// Whether evaluation has ended because it took too many steps, or was cancelled.
    pub stopped: bool,
    pub calls: Vec<(ModuleRef, usize)>,
    pub call_spans: Vec<Span>,
    pub program_stack: Vec<(ModuleRef, SmolStr)>,
}

impl<'a> Elaborator<'a> {
    /// The syntax of the module whose text is being evaluated.
    pub fn tree(&self) -> &'a ast::Module {
        &self.modules.get(self.module()).tree
    }

    /// The module whose text is being evaluated.
    pub fn module(&self) -> ModuleRef {
        self.frames.last().map_or(Modules::ROOT, |f| f.module)
    }

    /// Says an error, with the calls that led to it.
    pub fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) -> Failed {
        self.say(Diagnostic::error(code, span, message))
    }

    /// Says an error with its next step.
    pub fn error_help(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Failed {
        self.say(Diagnostic::error(code, span, message).help(help))
    }

    /// Says a diagnostic, with the calls that led to it. What goes wrong in the library is the call's that the user
    /// wrote, who has no file of the library before him.
    pub fn say(&mut self, mut d: Diagnostic) -> Failed {
        let in_library = d.labels.first().is_some_and(|l| self.in_library(l.span));
        let own = self.call_spans.iter().rev().copied().find(|&s| !self.in_library(s)).filter(|_| in_library);
        if let Some(call) = own {
            d.labels.insert(0, Label { span: call, text: "in this call".into() });
        }
        for &span in self.call_spans.iter().rev().take(3).filter(|s| Some(**s) != own) {
            d = d.label(span, "in this call");
        }
        self.diagnostics.push(d);
        Failed
    }

    fn in_library(&self, span: Span) -> bool {
        let file = self.map.file_of(span).map(|f| self.map.file(f));
        file.is_some_and(|f| f.path.to_str().is_some_and(|p| p.starts_with('<')))
    }

    /// Says that something of the language is not supported yet.
    pub fn unsupported(&mut self, span: Span, what: &str) -> Failed {
        self.error("elaborate::not_supported", span, format!("{what} is not yet supported"))
    }

    /// Charges one step of static evaluation.
    pub fn charge(&mut self, span: Span) -> Result<()> {
        if self.steps_left == 0 || (self.steps_left.is_multiple_of(1024) && self.session.cancel.is_cancelled()) {
            return Err(self.stop(span));
        }
        self.steps_left -= 1;
        Ok(())
    }

    /// Ends all evaluation, and says why once.
    fn stop(&mut self, span: Span) -> Failed {
        self.steps_left = 0;
        if std::mem::replace(&mut self.stopped, true) {
            return Failed;
        }
        if self.session.cancel.is_cancelled() {
            return self.error("elaborate::cancelled", span, "cancelled");
        }
        let message = format!("building the graph takes more than {} steps", self.session.limits.static_steps);
        let help = "a loop of elaboration may never end; `--limit static_steps=N` allows more";
        self.error_help("elaborate::too_many_steps", span, message, help)
    }

    /// An origin at a place, under the call being evaluated.
    pub fn origin_at(&mut self, span: Span) -> OriginId {
        self.graph.origins.add(span, self.origin, SmolStr::default())
    }

    /// A step at the end of the body being emitted.
    pub fn push(&mut self, mut kind: NodeKind, span: Span) -> Result<()> {
        kind.settle();
        let origin = self.origin_at(span);
        match self.emit.last_mut() {
            Some(body) => {
                body.push(Node { kind, origin });
                Ok(())
            }
            None => {
                let help = "move it into a `program`, or make the value static";
                Err(self.error_help("elaborate::outside_program", span, "nothing runs outside a program", help))
            }
        }
    }

    /// The path of what is named `name` here, made unique by `_2`, `_3`, …
    pub fn unique_name(&mut self, name: &str) -> SmolStr {
        let path = self.qualified(name);
        unique(&mut self.taken, path)
    }

    /// As [`Elaborator::unique_name`], for compute sets and copies; `None` names it by the scope alone.
    pub fn unique_set_name(&mut self, name: Option<&str>, fallback: &str) -> SmolStr {
        let path = match name {
            Some(name) => self.qualified(name),
            None if self.path.len() > 1 => self.path.join(".").into(),
            None => self.qualified(fallback),
        };
        unique(&mut self.taken_sets, path)
    }

    fn qualified(&self, name: &str) -> SmolStr {
        if self.path.is_empty() {
            return name.into();
        }
        format!("{}.{name}", self.path.join(".")).into()
    }

    /// A fresh variable, after its size was checked.
    pub fn add_var(
        &mut self,
        name: SmolStr,
        class: VarClass,
        ty: ElemType,
        shape: &[u64],
        mapping: Option<Mapping>,
        span: Span,
    ) -> Result<VarId> {
        let limit = self.session.limits.elements;
        let len = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).filter(|&n| n <= limit);
        if len.is_none() {
            let what = crate::value::shaped(ty, shape);
            let message = format!("{what} has more than {limit} elements");
            let help = "`--limit elements=N` allows more, up to 4294967295";
            return Err(self.error_help("elaborate::too_many_elements", span, message, help));
        }
        self.bounded_shape(shape, ty, span)?;
        if !ty.is_supported() {
            return Err(self.unsupported(span, &format!("the element type `{ty}`")));
        }
        let origin = self.origin_at(span);
        let shape = shape.iter().copied().collect();
        Ok(self.graph.vars.push(Var { name, class, ty, shape, init: None, mapping, origin }))
    }

    /// Refuses what has no elements but axes longer than the numbers of elements reach.
    pub fn bounded_shape(&mut self, shape: &[u64], ty: ElemType, span: Span) -> Result<()> {
        let product = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d.max(1)));
        if product.is_none_or(|n| n > u32::MAX as u64) {
            let message = format!("the axes of {} are too long", crate::value::shaped(ty, shape));
            let help = "without the empty ones they have at most 4294967295 elements";
            return Err(self.error_help("elaborate::too_many_elements", span, message, help));
        }
        Ok(())
    }

    /// A fresh temporary for a value made here.
    pub fn temporary(&mut self, name: &str, ty: ElemType, shape: &[u64], span: Span) -> Result<Tensor> {
        let name = self.unique_name(name);
        let mapping = self.default_mapping(shape, ty);
        let var = self.add_var(name, VarClass::Temp, ty, shape, mapping, span)?;
        Ok(Tensor { view: View::whole(var, shape), ty })
    }

    /// A read-only scalar of a value; equal ones are one variable.
    pub fn constant(&mut self, value: Scalar, span: Span) -> Result<Tensor> {
        let var = match self.constants.get(&value) {
            Some(&v) => v,
            None => {
                let name = unique(&mut self.taken, format!("constant.{}", value.ty).into());
                let v = self.add_var(name, VarClass::Const, value.ty, &[], None, span)?;
                self.graph.vars[v].init = Some(girder_ir::graph::Init::Fill(value));
                self.constants.insert(value, v);
                v
            }
        };
        Ok(Tensor { view: View::whole(var, &[]), ty: value.ty })
    }
}

/// Names that are in use, each with the last number that was put behind it.
pub type Taken = FxHashMap<SmolStr, u64>;

fn unique(taken: &mut Taken, path: SmolStr) -> SmolStr {
    let Some(&last) = taken.get(&path) else {
        taken.insert(path.clone(), 1);
        return path;
    };
    numbered(taken, path, last)
}

/// `path_2`, `path_3`, …: the first number above `last` that makes a name of its own.
pub fn numbered(taken: &mut Taken, path: SmolStr, last: u64) -> SmolStr {
    let mut k = last + 1;
    let mut name = SmolStr::from(format!("{path}_{k}"));
    while taken.contains_key(&name) {
        k += 1;
        name = format!("{path}_{k}").into();
    }
    taken.insert(path, k);
    taken.insert(name.clone(), 1);
    name
}

impl<'a> Elaborator<'a> {
    /// Before anything is elaborated.
    pub fn new(modules: &'a Modules, cx: &'a mut crate::Context<'_>) -> Elaborator<'a> {
        Elaborator {
            modules,
            machine: cx.machine,
            session: cx.session,
            loader: cx.loader,
            arguments: cx.arguments,
            diagnostics: cx.diagnostics,
            map: cx.map,
            graph: Graph { name: module_name(modules), ..Graph::default() },
            globals: FxHashMap::default(),
            known: FxHashMap::default(),
            sets: FxHashMap::default(),
            programs: FxHashMap::default(),
            specs: FxHashMap::default(),
            headers: FxHashMap::default(),
            made: vec![],
            items: FxHashSet::default(),
            each: FxHashMap::default(),
            constants: FxHashMap::default(),
            mapped: vec![],
            warned: FxHashSet::default(),
            taken: Taken::default(),
            taken_sets: Taken::default(),
            taken_programs: Taken::default(),
            fresh: None,
            frames: vec![],
            emit: vec![],
            depth: 0,
            path: vec![],
            origin: None,
            places: vec![],
            indices: vec![],
            steps_left: cx.session.limits.static_steps,
            ended: false,
            stopped: false,
            calls: vec![],
            call_spans: vec![],
            program_stack: vec![],
        }
    }
}

/// `module name;`, or the file's name.
fn module_name(modules: &Modules) -> SmolStr {
    let root = modules.get(Modules::ROOT);
    if let Some(h) = &root.tree.header {
        return h.name.dotted();
    }
    let stem = root.path.file_stem().and_then(|s| s.to_str()).unwrap_or("main");
    let ident = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let name: String = stem.chars().map(ident).collect();
    // A name that is a word of the grammar, or begins like a number, could not be printed.
    let word = girder_syntax::token::lex(&name, 0).lexemes.first().map(|l| l.token);
    let is_name = word.is_some_and(|t| t == Token::Ident && name != "_" || t.is_contextual());
    if is_name { name.into() } else { format!("m_{name}").into() }
}
