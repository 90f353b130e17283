//! Scopes: the local names of the functions being evaluated, and the values of the modules' items.
//!
//! Invariant: only the locals of the innermost function are visible; a global that is being evaluated is `Pending`.

use crate::modules::Modules;
use crate::value::Value;
use girder_typing::ModuleRef;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;

/// A local name.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The name.
    pub name: SmolStr,
    /// Its value.
    pub value: Value,
    /// Whether it was declared by `let mut`.
    pub mutable: bool,
    /// The number of run-time bodies around its `let`; a deeper body may not rename it.
    pub depth: u32,
    /// Whether a closure captured it; it is then not mutable.
    pub captured: bool,
}

/// The value of a global name.
#[derive(Clone, Debug)]
pub enum Global {
    /// The value is being evaluated; a use of it now is a cycle.
    Pending,
    /// Evaluated.
    Known(Value),
}

/// The body of a function, program or item that is being evaluated.
#[derive(Debug)]
struct Frame {
    module: ModuleRef,
    names: Vec<Binding>,
    /// The number of enclosing static loops, which `break` and `continue` may leave.
    loops: u32,
    /// Whether an assertion failed, which ends the body.
    ended: bool,
}

/// Names and their values.
#[derive(Debug, Default)]
pub struct Scopes {
    /// Frames, innermost last.
    frames: Vec<Frame>,
    globals: FxHashMap<(ModuleRef, SmolStr), Global>,
    /// The number of items being evaluated, each needed by the one before it.
    item_depth: u32,
    /// Values of names that are not local, by the module whose text contains the name.
    resolved: FxHashMap<(ModuleRef, SmolStr), Value>,
}

/// The number of names in scope at some point; [`Scopes::release`] forgets later names.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

impl Scopes {
    /// Returns the module whose text is being evaluated.
    pub fn module(&self) -> ModuleRef {
        self.frames.last().map_or(Modules::ROOT, |f| f.module)
    }

    /// Enters a body that sees the names of its module and none of its caller's.
    pub fn enter(&mut self, module: ModuleRef) {
        self.frames.push(Frame { module, names: vec![], loops: 0, ended: false });
    }

    /// Leaves the innermost body.
    pub fn leave(&mut self) {
        self.frames.pop();
    }

    /// Returns the locals of the innermost body, innermost last.
    pub fn locals(&self) -> &[Binding] {
        self.frames.last().map(|f| &f.names[..]).unwrap_or_default()
    }

    /// Returns the locals of all bodies.
    pub fn all_locals(&self) -> impl Iterator<Item = &Binding> {
        self.frames.iter().flat_map(|f| &f.names)
    }

    /// Returns a local by name.
    pub fn local(&self, name: &str) -> Option<&Binding> {
        self.locals().iter().rev().find(|b| b.name == name)
    }

    /// Returns a local by name, for assignment.
    pub fn local_mut(&mut self, name: &str) -> Option<&mut Binding> {
        self.frames.last_mut()?.names.iter_mut().rev().find(|b| b.name == name)
    }

    /// Adds a local name.
    pub fn define(&mut self, binding: Binding) {
        if let Some(f) = self.frames.last_mut() {
            f.names.push(binding);
        }
    }

    /// Adds the names that a closure captured.
    pub fn define_captured(&mut self, captured: &[(SmolStr, Value)], depth: u32) {
        for (name, value) in captured {
            let (name, value) = (name.clone(), value.clone());
            self.define(Binding { name, value, mutable: false, depth, captured: true });
        }
    }

    /// Returns a mark for [`Scopes::release`].
    pub fn mark(&self) -> Mark {
        Mark(self.locals().len())
    }

    /// Forgets the names since a mark.
    pub fn release(&mut self, mark: Mark) {
        if let Some(f) = self.frames.last_mut() {
            f.names.truncate(mark.0);
        }
    }

    /// Enters a static loop, which `break` and `continue` may leave.
    pub fn enter_loop(&mut self) {
        if let Some(f) = self.frames.last_mut() {
            f.loops += 1;
        }
    }

    /// Leaves a static loop.
    pub fn leave_loop(&mut self) {
        if let Some(f) = self.frames.last_mut() {
            f.loops -= 1;
        }
    }

    /// Returns whether a static loop of the innermost body is being evaluated.
    pub fn in_loop(&self) -> bool {
        self.frames.last().is_some_and(|f| f.loops > 0)
    }

    /// Ends the innermost body: one of its assertions failed.
    pub fn end(&mut self) {
        if let Some(f) = self.frames.last_mut() {
            f.ended = true;
        }
    }

    /// Returns whether an assertion ended the innermost body.
    pub fn has_ended(&self) -> bool {
        self.frames.last().is_some_and(|f| f.ended)
    }

    /// Returns the value of an item's name, as far as it was evaluated.
    pub fn global(&self, module: ModuleRef, name: &SmolStr) -> Option<&Global> {
        self.globals.get(&(module, name.clone()))
    }

    /// Sets the value of an item's name.
    pub fn set_global(&mut self, module: ModuleRef, name: SmolStr, global: Global) {
        self.globals.insert((module, name), global);
    }

    /// Enters the evaluation of an item.
    pub fn enter_item(&mut self) {
        self.item_depth += 1;
    }

    /// Leaves the evaluation of an item.
    pub fn leave_item(&mut self) {
        self.item_depth -= 1;
    }

    /// Returns the number of items being evaluated, each needed by the one before it.
    pub fn item_depth(&self) -> u32 {
        self.item_depth
    }

    /// Returns the cached value of a name of the current module.
    pub fn resolved(&self, name: &SmolStr) -> Option<&Value> {
        self.resolved.get(&(self.module(), name.clone()))
    }

    /// Caches the value of a name of the current module that is not local.
    pub fn set_resolved(&mut self, name: SmolStr, value: Value) {
        self.resolved.insert((self.module(), name), value);
    }
}
