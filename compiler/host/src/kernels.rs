//! The kernels that a plan needs, without duplicates.
//!
//! Invariant: one kernel per codelet (a specialisation of the graph, or one that fused steps share), shapes, byte
//! strides and addressing. Ids are given out in the order in which kernels are first requested, so they do not depend
//! on hashes.

use crate::error::HostError;
use crate::rewrite::{Rewritten, rewrite};
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, entity_impl};
use girder_codelet::cost::{CountedBlocks, Points};
use girder_codelet::facts::{Cover, Facts, facts, facts_on};
use girder_codelet::kernel::{Addressing, FieldLayout, KernelSpec, KernelTarget, Lines};
use girder_codelet::sizes::{Shape, Sizes, bind_sizes};
use girder_codelet::vertices;
use girder_fusion::signature::FusedSignature;
use girder_ir::codelet::{Codelet, Dir};
use girder_ir::family::Family;
use girder_ir::graph::Graph;
use girder_ir::ids::{FieldId, SpecId};
use girder_source::par_map_uneven;
use indexmap::{IndexMap, IndexSet};

/// Names a kernel of a [`KernelTable`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelId(u32);
entity_impl!(KernelId, "kernel");

/// The kernels of a plan.
#[derive(Clone, Debug)]
pub struct KernelTable {
    /// The kernels, by id.
    pub kernels: PrimaryMap<KernelId, HostKernel>,
    /// Codelets of fused steps, which the graph does not have.
    pub fused: Vec<Codelet>,
    /// Codelets with the shapes of their fields, which kernels share.
    shaped: Vec<ShapedCodelet>,
}

/// A codelet for concrete layouts of its fields.
#[derive(Clone, Debug)]
pub struct HostKernel {
    shaped: ShapedId,
    /// Byte strides of each edge field.
    pub strides: Vec<FieldLayout>,
    /// The way in which the rows of a launch find their fields.
    pub addressing: Addressing,
    /// The regularity of the rows, if any.
    pub lines: Option<RowLines>,
    /// The codelet to compile instead, if a rewrite pays.
    pub rewritten: Option<Rewritten>,
    /// The blocks whose executions are counted.
    points: Option<Points>,
}

#[derive(Clone, Debug)]
struct ShapedCodelet {
    source: CodeletSource,
    sizes: Sizes,
    facts: Facts,
}

/// The table that defines a codelet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CodeletSource {
    /// In the graph.
    Graph(SpecId),
    /// In [`KernelTable::fused`].
    Fused(usize),
}

/// The regularity of a family's rows: in blocks of `length` rows, every field moves by a fixed number of bytes from one
/// row to the next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RowLines {
    /// Rows of a block; `u64::MAX` if all rows lie on one line.
    pub length: u64,
    /// Bytes from row to row, one per edge field.
    pub steps: Vec<i64>,
    /// Whether all rows have the same constants.
    pub shares_consts: bool,
}

/// Names a codelet with the shapes of its fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ShapedId(usize);

/// The identity of a kernel.
#[derive(Clone, PartialEq, Eq, Hash)]
struct KernelKey {
    shaped: ShapedId,
    strides: Vec<FieldLayout>,
    addressing: Addressing,
    lines: Option<RowLines>,
}

/// Kernels that are being collected.
pub struct KernelSet<'g> {
    graph: &'g Graph,
    counting: Option<&'g CountedBlocks>,
    fused: IndexMap<FusedSignature, Codelet>,
    shaped: IndexMap<(CodeletSource, Vec<Shape>), (Sizes, Facts)>,
    keys: IndexSet<KernelKey>,
}

impl<'g> KernelSet<'g> {
    /// Creates an empty set for a graph. Its kernels count the blocks of `counting`.
    pub fn new(graph: &'g Graph, counting: Option<&'g CountedBlocks>) -> KernelSet<'g> {
        let (fused, shaped, keys) = (IndexMap::new(), IndexMap::new(), IndexSet::new());
        KernelSet { graph, counting, fused, shaped, keys }
    }

    /// Returns the codelet of a family with its shapes, or `None` if the family has no vertex.
    ///
    /// # Errors
    /// If a view does not fit the codelet.
    pub fn shaped(&mut self, family: &Family) -> Result<Option<ShapedId>, HostError> {
        if family.domain.count() == 0 {
            return Ok(None);
        }
        let source = CodeletSource::Graph(family.codelet);
        let key = (source, family.fields.iter().map(|f| f.shape()).collect::<Vec<_>>());
        if let Some(index) = self.shaped.get_index_of(&key) {
            return Ok(Some(ShapedId(index)));
        }
        let mismatch = |e: girder_codelet::SizeMismatch| {
            HostError(format!(
                "a vertex of `{}` in `{}` has a view of length {} where {} is expected",
                self.graph.codelets[family.codelet].name, self.graph.sets[family.set].name, e.found, e.expected
            ))
        };
        let Some(sizes) = vertices::bind_family(self.graph, family).map_err(mismatch)? else { return Ok(None) };
        let facts = facts_on(&self.graph.codelets[family.codelet], &sizes, self.graph.workers);
        Ok(Some(ShapedId(self.shaped.insert_full(key, (sizes, facts)).0)))
    }

    /// Returns the codelet of fused steps with the shapes of its edge fields; `make` builds it if it is new. The
    /// codelet cannot fail.
    pub(crate) fn fused(
        &mut self,
        signature: FusedSignature,
        make: impl FnOnce() -> Codelet,
        shapes: Vec<Shape>,
    ) -> Result<ShapedId, HostError> {
        let entry = self.fused.entry(signature);
        let index = entry.index();
        let codelet = entry.or_insert_with(make);
        let key = (CodeletSource::Fused(index), shapes);
        if let Some(index) = self.shaped.get_index_of(&key) {
            return Ok(ShapedId(index));
        }
        let mut of_fields = vec![Shape::new(); codelet.fields.len()];
        for ((field, _), shape) in codelet.edges().zip(&key.1) {
            of_fields[field.index()] = shape.clone();
        }
        let sizes = bind_sizes(codelet, &of_fields, &[]);
        let sizes = sizes.map_err(|_| HostError("a fused codelet does not fit its fields".into()))?;
        let mut facts = facts(codelet, &sizes);
        // The analysis of the fused codelet may prove less than those of the original codelets, so its checks are
        // marked as proven here.
        codelet.sites.keys().for_each(|site| {
            facts.proven.insert(site);
        });
        facts.weights.clear();
        Ok(ShapedId(self.shaped.insert_full(key, (sizes, facts)).0))
    }

    /// Returns whether every run writes all elements of a field.
    pub fn writes_all(&self, shaped: ShapedId, field: FieldId) -> bool {
        self.shaped[shaped.0].1.cover[field] == Cover::Full
    }

    /// Returns sizes and facts of a codelet.
    pub fn known(&self, shaped: ShapedId) -> (&Sizes, &Facts) {
        let (sizes, facts) = &self.shaped[shaped.0];
        (sizes, facts)
    }

    /// Returns the id of a kernel, given the byte strides of each edge field.
    pub fn kernel(
        &mut self,
        shaped: ShapedId,
        strides: Vec<FieldLayout>,
        addressing: Addressing,
        lines: Option<RowLines>,
    ) -> KernelId {
        KernelId::new(self.keys.insert_full(KernelKey { shaped, strides, addressing, lines }).0)
    }

    /// Ends the collection and rewrites the codelets for a target, in parallel.
    pub fn finish(self, target: KernelTarget) -> KernelTable {
        let shaped = self.shaped.into_iter();
        let shaped = shaped.map(|((source, _), (sizes, facts))| ShapedCodelet { source, sizes, facts }).collect();
        let mut table = KernelTable { kernels: PrimaryMap::new(), fused: self.fused.into_values().collect(), shaped };
        for KernelKey { shaped, strides, addressing, lines } in self.keys {
            let points = match (self.counting, table.shaped[shaped.0].source) {
                (Some(counting), CodeletSource::Graph(spec)) => Some(counting.points(spec).clone()),
                _ => None,
            };
            table.kernels.push(HostKernel { shaped, strides, addressing, lines, rewritten: None, points });
        }
        let kernels: Vec<KernelId> = table.kernels.keys().collect();
        let nodes = |&kernel: &KernelId| table.codelet(self.graph, kernel).exprs.len() as u64;
        let rewritten = par_map_uneven(&kernels, nodes, |&kernel| rewrite(&table.spec(self.graph, kernel), target));
        table.kernels.values_mut().zip(rewritten).for_each(|(kernel, rewritten)| kernel.rewritten = rewritten);
        table
    }
}

impl KernelTable {
    /// Returns the table that defines the codelet of a kernel.
    pub fn source(&self, kernel: KernelId) -> CodeletSource {
        self.shaped[self.kernels[kernel].shaped.0].source
    }

    /// Returns the original codelet of a kernel, before rewrites. `graph` is the graph of the plan.
    pub fn codelet<'a>(&'a self, graph: &'a Graph, kernel: KernelId) -> &'a Codelet {
        match self.source(kernel) {
            CodeletSource::Graph(spec) => &graph.codelets[spec],
            CodeletSource::Fused(index) => &self.fused[index],
        }
    }

    /// Returns the shapes and sizes of a kernel.
    pub fn sizes(&self, kernel: KernelId) -> &Sizes {
        &self.shaped[self.kernels[kernel].shaped.0].sizes
    }

    /// Returns the specification from which a kernel is compiled, with the rewritten codelet if there is one.
    pub fn spec<'a>(&'a self, graph: &'a Graph, kernel: KernelId) -> KernelSpec<'a> {
        let HostKernel { shaped, strides: layouts, addressing, lines, rewritten, points } = &self.kernels[kernel];
        let ShapedCodelet { sizes, facts, .. } = &self.shaped[shaped.0];
        let codelet = self.codelet(graph, kernel);
        let mut strides = SecondaryMap::new();
        for ((field, _), layout) in codelet.edges().zip(layouts) {
            strides[field] = layout.clone();
        }
        let lines = lines.as_ref().map(|l| {
            let mut steps = SecondaryMap::new();
            for ((field, _), &step) in codelet.edges().zip(&l.steps) {
                steps[field] = step;
            }
            Lines { length: l.length, steps, shares_consts: l.shares_consts }
        });
        let (proven, weights, points) = (&facts.proven, &facts.weights, points.as_ref());
        let spec = KernelSpec { codelet, sizes, strides, proven, weights, addressing: *addressing, lines, points };
        match rewritten {
            Some(rewritten) => rewritten.spec(&spec),
            None => spec,
        }
    }

    /// Returns, for each edge field of a kernel, the bytes of its elements relative to element (0, …, 0), or `None`
    /// if it has no elements.
    pub fn byte_ranges(&self, graph: &Graph, kernel: KernelId) -> Vec<Option<(i64, i64)>> {
        let shapes = &self.sizes(kernel).shapes;
        let fields = self.codelet(graph, kernel).edges().zip(&self.kernels[kernel].strides);
        fields.map(|((field, decl), strides)| byte_range(&shapes[field], strides, decl.ty.bytes())).collect()
    }

    /// Returns, for each edge field of a kernel, whether elements are written through it.
    pub fn writes(&self, graph: &Graph, kernel: KernelId) -> Vec<bool> {
        self.codelet(graph, kernel).edges().map(|(_, decl)| decl.dir != Dir::In).collect()
    }
}

/// Returns the bytes that elements at some strides take, from element (0, …, 0) on, or `None` without elements.
fn byte_range(shape: &[u64], strides: &[i64], element_bytes: u32) -> Option<(i64, i64)> {
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
        assert_eq!(byte_range(&[], &[], 4), Some((0, 4)));
        assert_eq!(byte_range(&[3, 5], &[-20, 4], 4), Some((-40, 20)));
        assert_eq!(byte_range(&[3, 0], &[4, 4], 4), None);
    }
}
