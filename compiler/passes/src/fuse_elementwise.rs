//! `fuse-elementwise`: steps that compute element by element become one step, cut like its neighbours.
//!
//! A step is a map if each of its elements is a function of elements at the same iteration. Maps over the same
//! iterations run as one codelet, which loads each element once and stores only what another step may read; a copy is a
//! map too, so that `p <- p - r * d` is one step in place. A map joins a chain if it reads or writes an element of it
//! and can be moved to it over the steps between. An operand that is a constant becomes one of the codelet, and then no
//! exchange brings it.
//!
//! # Note: Cuts
//! The vertices of a chain get a new cut (`cut`). The candidates are the boxes in which other steps have written what
//! the chain reads, each perhaps divided among the workers of a tile; the boxes of the chain's own steps; and equal
//! boxes. A candidate costs the time of its vertices, plus an exchange for each operand that was written in other
//! boxes. Steps with tiles in the text keep their vertices.
//!
//! Invariant: every element that another step reads has the value that the separate steps would give it. A step that
//! breaks the race rule, or that may fail, is left as it is.

mod around;
mod beside;
mod bodies;
mod choice;
mod cut;
mod families;
mod sequence;
mod writers;

use crate::PassContext;
use crate::pass::{Pass, Verdict};
use crate::rewrite::{Rewrite, executions, vars_of};
use crate::steps::sequences;
use bodies::Bodies;
use cranelift_entity::{EntityRef, EntitySet, SecondaryMap};
use girder_codelet::cost::{Cost, TileCosts, check, cost_of};
use girder_fusion::access::ElementAccess;
use girder_fusion::chain::{Chain, MemorySlots};
use girder_fusion::codelet::{codelet, codelet_around};
use girder_fusion::map::{AddressedGraph, Function, Map};
use girder_fusion::signature::FusedSignature;
use girder_ir::codelet::Codelet;
use girder_ir::family::Family;
use girder_ir::graph::{CodeletItem, Graph};
use girder_ir::ids::{ComputeSetId, SpecId, StepId, VarId};
use girder_ir::program::StepKind;
use girder_machine::Machine;
use girder_source::Result;
use indexmap::IndexMap;
use rustc_hash::FxHashMap;
use sequence::Sequence;
use smol_str::{SmolStr, format_smolstr};
use writers::{Writers, writes};

/// The pass `fuse-elementwise`.
pub struct FuseElementwise;

impl Pass for FuseElementwise {
    const NAME: &'static str = "fuse-elementwise";
    const SENTENCE: &'static str = "makes one step of steps that compute element by element, cut like its neighbours";
    const OPTIONAL: bool = true;
    type From = Graph;
    type To = Graph;

    /// Fuses the steps of a graph.
    fn run(mut graph: Graph, cx: &mut PassContext) -> Result<Graph> {
        let mut rewrite = Rewrite::default();
        let (fused, made) = ElementwiseFuser::new(&graph, cx.machine).run(cx)?;
        if fused.is_empty() {
            return Ok(graph);
        }
        for codelet in made {
            graph.items.push(codelet.1);
            graph.codelets.push(codelet.0);
        }
        for step in fused {
            rewrite.replace(step.set, step.families);
            graph.steps[step.at].reverse |= step.steps.iter().any(|&s| graph.steps[s].reverse);
            let of_set = step.steps.iter().copied().find(|&s| is_execution(&graph, s, step.set));
            step.steps.iter().filter(|&&s| s != step.at && Some(s) != of_set).for_each(|&s| rewrite.remove(s));
            if let Some(of_set) = of_set {
                rewrite.put(&mut graph, step.at, of_set);
            }
        }
        rewrite.apply(&mut graph);
        cx.forget_families();
        Ok(graph)
    }

    /// Checks that sizes and directions of all vertices fit their codelets.
    fn verify(graph: &Graph, _: &PassContext) -> Verdict {
        for family in graph.families.values() {
            let name = &graph.sets[family.set].name;
            if girder_codelet::vertices::bind_family(graph, family).is_err() {
                return Err(format!("a vertex of `{name}` has a view that does not fit its codelet"));
            }
        }
        Ok(())
    }
}

fn is_execution(graph: &Graph, step: StepId, set: ComputeSetId) -> bool {
    matches!(graph.steps[step].kind, StepKind::Execute(of) if of == set)
}

/// Steps that become one.
struct FusedStep {
    /// The steps.
    steps: Vec<StepId>,
    /// The one whose place it takes.
    at: StepId,
    /// The compute set whose name it keeps.
    set: ComputeSetId,
    families: Vec<Family>,
}

/// Returns a codelet of a graph, or one that the pass has made.
fn codelet_of<'a>(
    graph: &'a Graph,
    made: &'a IndexMap<FusedSignature, Option<MadeCodelet>>,
    made_at: &[usize],
    id: SpecId,
) -> &'a Codelet {
    let new = id.index().checked_sub(graph.codelets.len());
    let made = new.and_then(|n| made.get_index(made_at[n])).and_then(|m| m.1.as_ref());
    made.map_or_else(|| &graph.codelets[id], |made| &made.codelet)
}

/// New codelets with their texts.
type MadeItems = Vec<(Codelet, CodeletItem)>;

/// A chain that can run as one step.
struct Candidate<'g> {
    chain: Chain<'g>,
    memory: MemorySlots,
    steps: Vec<StepId>,
    at: StepId,
}

/// A codelet that the pass has made.
struct MadeCodelet {
    id: SpecId,
    codelet: Codelet,
    item: CodeletItem,
    cost: Cost,
}

/// The state of the pass.
struct ElementwiseFuser<'g> {
    graph: &'g Graph,
    machine: &'g Machine,
    costs: TileCosts,
    /// The first byte of each variable; no two share one.
    offsets: Vec<u64>,
    /// The steps that access each variable.
    users: SecondaryMap<VarId, Vec<StepId>>,
    /// How often each compute set and each copy is executed by the text.
    executions: (Vec<u32>, Vec<u32>),
    bodies: Bodies<'g>,
    writers: Writers,
    /// `None` for a codelet that has no text.
    made: IndexMap<FusedSignature, Option<MadeCodelet>>,
    /// The position in `made` of each new codelet.
    made_at: Vec<usize>,
    /// The vertices of compute sets that chains have joined.
    joined: FxHashMap<ComputeSetId, Vec<Family>>,
    /// The steps that execute them, where they are not those of the graph.
    joined_at: FxHashMap<StepId, ComputeSetId>,
    /// The steps whose places fused steps take.
    fused_at: EntitySet<StepId>,
}

impl<'g> ElementwiseFuser<'g> {
    fn new(graph: &'g Graph, machine: &'g Machine) -> ElementwiseFuser<'g> {
        let mut users: SecondaryMap<VarId, Vec<StepId>> = SecondaryMap::new();
        for step in graph.steps.keys() {
            vars_of(graph, step).into_iter().for_each(|var| users[var].push(step));
        }
        let mut next = 0;
        let offset = |bytes: u64| {
            next += bytes.next_multiple_of(8);
            next - bytes.next_multiple_of(8)
        };
        let offsets = graph.vars.values().map(|var| var.bytes()).map(offset).collect();
        ElementwiseFuser {
            graph,
            machine,
            costs: TileCosts::from(machine),
            offsets,
            users,
            executions: executions(graph),
            bodies: Bodies::new(graph),
            writers: Writers::of(graph),
            made: IndexMap::new(),
            made_at: vec![],
            joined: FxHashMap::default(),
            joined_at: FxHashMap::default(),
            fused_at: EntitySet::new(),
        }
    }

    /// Returns the fused steps, and the new codelets with their items.
    fn run(mut self, cx: &mut PassContext) -> Result<(Vec<FusedStep>, MadeItems)> {
        let mut fused: Vec<FusedStep> = vec![];
        let mut in_reverse: EntitySet<VarId> = EntitySet::new();
        for (id, _) in self.graph.steps.iter().filter(|s| s.1.reverse) {
            vars_of(self.graph, id).into_iter().for_each(|var| _ = in_reverse.insert(var));
        }
        for steps in sequences(self.graph) {
            cx.poll()?;
            let maps = steps.iter().map(|&step| self.map(step)).collect();
            let mut sequence = Sequence::new(self.graph, steps, maps, &in_reverse, &cx.session.cancel);
            fused.extend(self.prologues(&mut sequence));
            while let Some(step) = sequence.next_step() {
                let inside = |steps: &[StepId], var: VarId| {
                    !self.graph.vars[var].is_persistent() && self.users[var].iter().all(|u| steps.contains(u))
                };
                let candidate = sequence.chain(inside);
                let joined = candidate.as_ref().and_then(|chain| self.epilogue(chain, &mut sequence));
                match joined.or_else(|| candidate.and_then(|chain| self.fused(chain))) {
                    Some(mut step) => {
                        sequence.take(&step.steps, step.at);
                        self.note_readers(&step.families, &step.steps);
                        self.note_writers(&step.families);
                        self.fused_at.insert(step.at);
                        // A step may have been joined by other chains before.
                        if let Some(before) = fused.iter().position(|f| f.set == step.set) {
                            step.steps.extend(fused.remove(before).steps);
                        }
                        fused.push(step);
                    }
                    None if self.fused_at.contains(step) => {}
                    None => match self.set_of_step(step).and_then(|set| self.joined.get(&set).cloned()) {
                        Some(families) => self.note_writers(&families),
                        None => self.writers.step(self.graph, step),
                    },
                }
            }
        }
        let made = self.made.into_values().flatten().map(|made| (made.codelet, made.item)).collect();
        Ok((fused, made))
    }

    fn note_writers(&mut self, families: &[Family]) {
        let (graph, made, made_at) = (self.graph, &self.made, &self.made_at);
        let families = families.iter().map(|f| (f, codelet_of(graph, made, made_at, f.codelet)));
        self.writers.add(families, writes);
    }

    /// Returns a codelet of the graph or of the pass.
    fn codelet(&self, id: SpecId) -> &Codelet {
        codelet_of(self.graph, &self.made, &self.made_at, id)
    }

    /// Returns the present vertices of a compute set.
    fn families(&self, set: ComputeSetId) -> Vec<Family> {
        let of_graph = || self.graph.sets[set].families.iter().map(|&f| self.graph.families[f].clone()).collect();
        self.joined.get(&set).cloned().unwrap_or_else(of_graph)
    }

    fn set_of_step(&self, step: StepId) -> Option<ComputeSetId> {
        match self.graph.steps[step].kind {
            StepKind::Execute(set) => Some(set),
            _ => None,
        }
    }

    /// Returns a step as a map whose cut may change, or `None` if the step is no such map.
    fn map(&mut self, step: StepId) -> Option<Map<'g>> {
        let addressed = AddressedGraph { graph: self.graph, offsets: &self.offsets };
        let map = match self.graph.steps[step].kind {
            StepKind::Execute(set) if self.executions.0[set.index()] == 1 => {
                let families = &self.graph.sets[set].families;
                // Vertices that the text places, and vertices with stated cycles, stay as they are.
                let is_fixed = |f: &Family| f.tile.is_some() || self.graph.codelets[f.codelet].cycles.is_some();
                if families.iter().any(|&f| is_fixed(&self.graph.families[f])) {
                    return None;
                }
                let bodies = &mut self.bodies;
                let map = Map::of_families(addressed, families, |f| Ok::<_, std::convert::Infallible>(bodies.of(f)));
                map.unwrap_or_else(|never| match never {})?
            }
            StepKind::Copy(copy) if self.executions.1[copy.index()] == 1 => Map::of_copy(addressed, copy)?,
            _ => return None,
        };
        let map = map.with_constants(self.graph);
        map.obeys_the_race_rule().then_some(map)
    }

    /// Makes the codelet of a chain, if it is new.
    fn make(&mut self, chain: &Chain, signature: &FusedSignature) {
        if !self.made.contains_key(signature) {
            let made = codelet(signature, self.graph, chain);
            self.add(signature, Codelet { pipelined: true, ..made }, self.name(chain));
        }
    }

    /// Makes the codelet of a chain around an access of another one, if it is new.
    fn make_around(&mut self, chain: &Chain, signature: &FusedSignature, access: &ElementAccess) {
        if let Some(around) = signature.around.as_ref().filter(|_| !self.made.contains_key(signature)) {
            let base = self.codelet(around.spec);
            let name = self.unused_name(&base.name);
            let made = codelet_around(signature, base, access, self.graph, chain);
            self.add(signature, made, name);
        }
    }

    /// Adds a codelet under a name; it is pipelined only if a tile can run it so.
    fn add(&mut self, signature: &FusedSignature, mut codelet: Codelet, name: SmolStr) {
        codelet.pipelined &= check(&codelet).is_ok();
        codelet.name = name;
        let text = girder_typing::print::codelet_text(&codelet, &codelet.name).ok();
        let item =
            text.map(|printed| CodeletItem { name: codelet.name.clone(), text: printed.text.into(), calls: vec![] });
        let id = SpecId::new(self.graph.codelets.len() + self.made_at.len());
        let made = item.and_then(|item| {
            let cost = cost_of(&codelet, &self.costs).ok()?;
            Some(MadeCodelet { id, codelet, item, cost })
        });
        if made.is_some() {
            self.made_at.push(self.made.len());
        }
        self.made.insert(signature.clone(), made);
    }

    /// Returns a new name for the codelet of a chain.
    fn name(&self, chain: &Chain) -> SmolStr {
        let spec = chain.maps.iter().rev().find_map(|m| match &m.function {
            Function::Codelet(applied) => Some(applied.spec),
            Function::Copy(_) => None,
        });
        self.unused_name(spec.map_or("", |spec| &self.graph.codelets[spec].name))
    }

    /// Returns a new name for a codelet that continues one of this name.
    fn unused_name(&self, name: &str) -> SmolStr {
        let last = name.rsplit('.').next().unwrap_or_default();
        let short = last.split("_f").next().filter(|s| !s.is_empty()).unwrap_or(last);
        let is_taken = |name: &SmolStr| {
            self.graph.items.values().any(|item| item.name == *name)
                || self.made.values().flatten().any(|made| made.codelet.name == *name)
        };
        let names =
            (1..).map(|k| if k == 1 { format_smolstr!("fused.{short}") } else { format_smolstr!("fused.{short}_{k}") });
        names.into_iter().find(|name| !is_taken(name)).unwrap_or_default()
    }
}
