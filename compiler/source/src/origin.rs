//! Origins of the graph's entities: the span in the text, the chain of calls that made the entity, and the named scope.
//! One tree serves diagnostics, reports and profiles.
//!
//! Invariant: a parent is interned before its children, so ids descend towards the root and chains end.

use crate::{Diagnostic, Span};
use cranelift_entity::{PrimaryMap, entity_impl};
use smol_str::SmolStr;

/// Names an [`Origin`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OriginId(u32);
entity_impl!(OriginId, "origin");

/// An origin: one link of a chain of calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The span in the text.
    pub span: Span,
    /// The enclosing call or program.
    pub parent: Option<OriginId>,
    /// Name of the scope that this origin opens, or empty: `train`, `layer1`, `dense`.
    pub scope: SmolStr,
}

/// All origins of a graph.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    list: PrimaryMap<OriginId, Origin>,
}

impl Origins {
    /// Adds an origin.
    pub fn add(&mut self, span: Span, parent: Option<OriginId>, scope: impl Into<SmolStr>) -> OriginId {
        self.list.push(Origin { span, parent, scope: scope.into() })
    }

    /// Returns the origin of an id.
    pub fn get(&self, id: OriginId) -> &Origin {
        &self.list[id]
    }

    /// Returns the origin and the calls around it, innermost first.
    pub fn chain(&self, id: OriginId) -> impl Iterator<Item = &Origin> {
        std::iter::successors(Some(&self.list[id]), |o| o.parent.map(|p| &self.list[p]))
    }

    /// Returns the names of the scopes: `train/layer1/dense`.
    pub fn scope_path(&self, id: OriginId) -> String {
        let mut names: Vec<&str> = self.chain(id).map(|o| o.scope.as_str()).filter(|s| !s.is_empty()).collect();
        names.reverse();
        names.join("/")
    }

    /// Returns the innermost span in the user's text: for an entity that the library made, the user's call.
    pub fn span(&self, id: OriginId) -> Span {
        let spans = || self.chain(id).map(|o| o.span).filter(|s| !s.is_none());
        spans().find(|&s| !s.in_library()).or_else(|| spans().next()).unwrap_or(Span::NONE)
    }

    /// Puts the first label in the user's text before those in the library.
    pub fn user_first(&self, mut d: Diagnostic) -> Diagnostic {
        if let Some(k) = d.labels.iter().position(|l| !l.span.in_library()) {
            d.labels[..=k].rotate_right(1);
        }
        d
    }
}
