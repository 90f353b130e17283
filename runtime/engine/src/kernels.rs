//! The kernels that a mode needs, each once, and how they are compiled.
//!
//! Invariant: one entry per codelet (a specialisation of the graph, or one that fused steps share), shapes, byte strides
//! and addressing; indices are given out in the order in which kernels are first wanted, so that they do not depend on
//! hashes.

use crate::counts::Counting;
use crate::error::EngineError;
use crate::kernel::Kernel;
use crate::maps::Recipe;
use crate::sizes::bind_family;
use cranelift_entity::{EntityRef, SecondaryMap};
use girder_codegen::abi::Addressing;
use girder_codegen::{FieldLayout, Host, KernelSpec, Lines, asm_text, clif_text, compile};
use girder_codelet::facts::{Cover, Facts, facts};
use girder_codelet::sizes::{Shape, Sizes, bind_sizes};
use girder_ir::codelet::{Codelet, Dir};
use girder_ir::family::Family;
use girder_ir::graph::Graph;
use girder_ir::ids::{FieldId, SpecId};
use indexmap::{IndexMap, IndexSet};
use std::sync::Arc;

/// How generated code is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodeForm {
    /// In Cranelift's text, before its optimiser.
    Clif,
    /// In assembly.
    Asm,
}

/// Kernels in the making.
pub(crate) struct KernelSet<'g> {
    graph: &'g Graph,
    counting: Option<&'g Counting>,
    /// Codelets that the graph does not have.
    woven: IndexMap<Recipe, Codelet>,
    shaped: IndexMap<(Source, Vec<Shape>), (Sizes, Facts)>,
    keys: IndexSet<Key>,
}

/// Where a codelet stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    Graph(SpecId),
    Woven(usize),
}

/// What one kernel is made from.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    shaped: Shaped,
    /// One per edge field.
    strides: Vec<FieldLayout>,
    addressing: Addressing,
    lines: Option<RowLines>,
}

/// What is regular about the rows of a family: blocks of `length` rows in which every field moves by a fixed number of
/// bytes from one to the next.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct RowLines {
    /// `u64::MAX` if all rows lie on one line.
    pub length: u64,
    /// One per edge field.
    pub steps: Vec<i64>,
    /// All rows have the same constants.
    pub shares_consts: bool,
}

/// Names a codelet specialisation with the shapes of its fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shaped(usize);

impl<'g> KernelSet<'g> {
    /// Of a graph; no kernel is wanted yet. Kernels count what `counting` says.
    pub(crate) fn new(graph: &'g Graph, counting: Option<&'g Counting>) -> KernelSet<'g> {
        let (woven, shaped, keys) = (IndexMap::new(), IndexMap::new(), IndexSet::new());
        KernelSet { graph, counting, woven, shaped, keys }
    }

    /// The codelet of a family with its sizes; `None` if it has no vertex.
    pub(crate) fn shaped(&mut self, family: &Family) -> Result<Option<Shaped>, EngineError> {
        if family.domain.count() == 0 {
            return Ok(None);
        }
        let key = (Source::Graph(family.codelet), family.fields.iter().map(|f| f.shape()).collect::<Vec<_>>());
        if let Some(index) = self.shaped.get_index_of(&key) {
            return Ok(Some(Shaped(index)));
        }
        let Some(sizes) = bind_family(self.graph, family)? else { return Ok(None) };
        let facts = facts(&self.graph.codelets[family.codelet], &sizes);
        Ok(Some(Shaped(self.shaped.insert_full(key, (sizes, facts)).0)))
    }

    /// A codelet that cannot fail, made if it is new, with the shapes of its edge fields.
    pub(crate) fn woven(
        &mut self,
        recipe: Recipe,
        make: impl FnOnce() -> Codelet,
        shapes: Vec<Shape>,
    ) -> Result<Shaped, EngineError> {
        let entry = self.woven.entry(recipe);
        let index = entry.index();
        let codelet = entry.or_insert_with(make);
        let key = (Source::Woven(index), shapes);
        if let Some(index) = self.shaped.get_index_of(&key) {
            return Ok(Shaped(index));
        }
        let mut of_fields = vec![Shape::new(); codelet.fields.len()];
        for ((field, _), shape) in codelet.edges().zip(&key.1) {
            of_fields[field.index()] = shape.clone();
        }
        let sizes = bind_sizes(codelet, &of_fields, &[]);
        let sizes = sizes.map_err(|_| EngineError::Internal("a fused codelet does not fit its fields".into()))?;
        let mut facts = facts(codelet, &sizes);
        // What is proven of the codelets that it is made from may lie beyond what is seen of it as a whole.
        codelet.sites.keys().for_each(|site| {
            facts.proven.insert(site);
        });
        facts.weights.clear();
        Ok(Shaped(self.shaped.insert_full(key, (sizes, facts)).0))
    }

    /// Whether every run writes all elements of a field.
    pub(crate) fn writes_all(&self, shaped: Shaped, field: FieldId) -> bool {
        self.shaped[shaped.0].1.cover[field] == Cover::Full
    }

    /// Sizes and facts of a codelet.
    pub(crate) fn known(&self, shaped: Shaped) -> (&Sizes, &Facts) {
        let (sizes, facts) = &self.shaped[shaped.0];
        (sizes, facts)
    }

    /// The index of a kernel, given byte strides per edge field.
    pub(crate) fn want(
        &mut self,
        shaped: Shaped,
        strides: Vec<FieldLayout>,
        addressing: Addressing,
        lines: Option<RowLines>,
    ) -> usize {
        self.keys.insert_full(Key { shaped, strides, addressing, lines }).0
    }

    /// Compiles what is wanted, in the order of indices.
    pub(crate) fn compile(&self) -> Result<Vec<Kernel>, EngineError> {
        let specs: Vec<KernelSpec> = self.keys.iter().map(|key| self.spec(key)).collect();
        let code = Arc::new(compile(&specs).map_err(|e| EngineError::Code(e.to_string()))?);
        let kernel = |(n, key): (usize, &Key)| Kernel {
            function: code.kernel(n),
            _code: code.clone(),
            spans: self.spans(key),
            writes: self.codelet(key).edges().map(|(_, decl)| decl.dir != Dir::In).collect(),
            multi: self.codelet(key).multi,
        };
        Ok(self.keys.iter().enumerate().map(kernel).collect())
    }

    /// What is wanted as text, in the order of indices.
    pub(crate) fn text(&self, form: CodeForm) -> Result<String, EngineError> {
        let refused = |e: girder_codegen::CodegenError| EngineError::Code(e.to_string());
        let host = Host::detect().map_err(refused)?;
        let mut text = format!("; {}\n", host.name());
        for (n, key) in self.keys.iter().enumerate() {
            let spec = self.spec(key);
            let shapes = spec.codelet.edges().map(|(f, decl)| format!("{}{:?}", decl.name, &spec.sizes.shapes[f][..]));
            let shapes: Vec<String> = shapes.collect();
            text += &format!("\n; kernel {n}: codelet {}({})\n", spec.codelet.name, shapes.join(", "));
            text += &match form {
                CodeForm::Clif => clif_text(&host, &spec),
                CodeForm::Asm => asm_text(&host, &spec),
            }
            .map_err(refused)?;
        }
        Ok(text)
    }

    fn source(&self, key: &Key) -> Source {
        self.shaped.get_index(key.shaped.0).map_or(Source::Woven(usize::MAX), |(k, _)| k.0)
    }

    fn codelet(&self, key: &Key) -> &Codelet {
        match self.source(key) {
            Source::Graph(spec) => &self.graph.codelets[spec],
            Source::Woven(index) => &self.woven[index],
        }
    }

    fn spec(&self, key: &Key) -> KernelSpec<'_> {
        let (sizes, facts) = &self.shaped[key.shaped.0];
        let codelet = self.codelet(key);
        let mut strides = SecondaryMap::new();
        for ((field, _), layout) in codelet.edges().zip(&key.strides) {
            strides[field] = layout.clone();
        }
        let points = match self.source(key) {
            Source::Graph(spec) => self.counting.map(|c| c.points(spec)),
            Source::Woven(_) => None,
        };
        let lines = key.lines.as_ref().map(|l| {
            let mut steps = SecondaryMap::new();
            for ((field, _), &step) in codelet.edges().zip(&l.steps) {
                steps[field] = step;
            }
            Lines { length: l.length, steps, shares_consts: l.shares_consts }
        });
        let (proven, weights) = (&facts.proven, &facts.weights);
        KernelSpec { codelet, sizes, strides, proven, weights, addressing: key.addressing, lines, points }
    }

    fn spans(&self, key: &Key) -> Vec<Option<(i64, i64)>> {
        let sizes = &self.shaped[key.shaped.0].0;
        let fields = self.codelet(key).edges().zip(&key.strides);
        fields.map(|((field, decl), strides)| span(&sizes.shapes[field], strides, decl.ty.bytes())).collect()
    }
}

/// The bytes that elements at some strides take, from that of element (0, …, 0) on; `None` without elements.
fn span(shape: &[u64], strides: &[i64], element_bytes: u32) -> Option<(i64, i64)> {
    if shape.contains(&0) {
        return None;
    }
    let reach = |(&n, &s): (&u64, &i64)| (n as i64 - 1).saturating_mul(s);
    let reaches = || shape.iter().zip(strides).map(reach);
    let lo = reaches().map(|r| r.min(0)).fold(0, i64::saturating_add);
    let hi = reaches().map(|r| r.max(0)).fold(element_bytes as i64, i64::saturating_add);
    Some((lo, hi))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_holds_every_element() {
        assert_eq!(span(&[], &[], 4), Some((0, 4)));
        assert_eq!(span(&[3, 5], &[-20, 4], 4), Some((-40, 20)));
        assert_eq!(span(&[3, 0], &[4, 4], 4), None);
    }
}
