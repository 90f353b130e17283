//! `fuse-elementwise`: steps that compute element by element become one step, cut like its neighbours.
//!
//! A step is a map if each of its elements is a function of elements at the same iteration. Maps over the same
//! iterations run as one codelet, which loads each element once and stores only what another step may read; a copy is a
//! map too, so that `p <- p - r * d` is one step in place. A map joins a chain if it reads or writes an element of it
//! and can be moved to it over the steps between.
//!
//! # Note: Cuts
//! The vertices of a chain are made anew (`cut`). Candidates are the boxes in which other steps have written what the
//! chain reads, each perhaps divided among the workers of a tile; the boxes of the chain's own steps; and even ones. A
//! candidate costs the time of its vertices, plus an exchange for each operand that was written in other boxes. Steps
//! with tiles in the text keep their vertices.
//!
//! Invariant: every element that another step reads has the value that the separate steps would give it. A step that
//! breaks the race rule, or that may fail, is left as it is.

mod bodies;
mod cut;
mod families;
mod sequence;

use crate::PassContext;
use crate::pass::{Pass, Verdict};
use crate::rewrite::{Rewrite, executions, vars_of};
use crate::steps::sequences;
use crate::superstep::{self, Rate};
use bodies::Bodies;
use cranelift_entity::{EntityRef, EntitySet, SecondaryMap};
use cut::{Cut, FamilyField};
use families::{BoxVertices, constants, vertices};
use girder_codelet::cost::{Busy, Cost, CostInputs, MemFacts, TileCosts, check, cost_of, equal_vertices};
use girder_codelet::sizes::{Shape, bind_sizes};
use girder_fusion::chain::{Chain, MemorySlots};
use girder_fusion::codelet::codelet;
use girder_fusion::map::{AddressedGraph, Function, Map};
use girder_fusion::signature::FusedSignature;
use girder_fusion::space::Access;
use girder_ir::codelet::{Codelet, Dir};
use girder_ir::family::{Const, Family, Field};
use girder_ir::graph::{CodeletItem, Graph};
use girder_ir::ids::{ComputeSetId, SpecId, StepId, VarId};
use girder_ir::program::StepKind;
use girder_machine::Machine;
use girder_source::Result;
use indexmap::IndexMap;
use sequence::Sequence;
use smol_str::{SmolStr, format_smolstr};

/// See the module.
pub struct FuseElementwise;

impl Pass for FuseElementwise {
    const NAME: &'static str = "fuse-elementwise";
    const SENTENCE: &'static str = "makes one step of steps that compute element by element, cut like its neighbours";
    type From = Graph;
    type To = Graph;

    /// Fuses the steps of a graph.
    fn run(mut graph: Graph, cx: &mut PassContext) -> Result<Graph> {
        let mut rewrite = Rewrite::default();
        let (fused, made) = Fuser::new(&graph, cx.machine).run(cx)?;
        if fused.is_empty() {
            return Ok(graph);
        }
        for codelet in made {
            graph.items.push(codelet.1);
            graph.codelets.push(codelet.0);
        }
        for step in fused {
            rewrite.replace(step.set, step.families);
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
    codelet: Codelet,
    item: CodeletItem,
    cost: Cost,
}

/// The state of the pass.
struct Fuser<'g> {
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
    /// The fields that have written each variable last.
    writers: SecondaryMap<VarId, Vec<FamilyField>>,
    /// `None` for a codelet that has no text.
    made: IndexMap<FusedSignature, Option<MadeCodelet>>,
}

impl<'g> Fuser<'g> {
    fn new(graph: &'g Graph, machine: &'g Machine) -> Fuser<'g> {
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
        let mut fuser = Fuser {
            graph,
            machine,
            costs: TileCosts::from(machine),
            offsets,
            users,
            executions: executions(graph),
            bodies: Bodies::new(graph),
            writers: SecondaryMap::new(),
            made: IndexMap::new(),
        };
        // What follows in the text may come before in a loop, and a persistent variable is where its first reader is.
        graph.sets.keys().for_each(|set| fuser.note_writers(set));
        graph.sets.keys().rev().for_each(|set| fuser.note_readers(set));
        fuser
    }

    /// Returns the fused steps, and the new codelets with their items.
    fn run(mut self, cx: &mut PassContext) -> Result<(Vec<FusedStep>, MadeItems)> {
        let mut fused: Vec<FusedStep> = vec![];
        // The steps whose places fused steps take.
        let mut at: EntitySet<StepId> = EntitySet::new();
        for steps in sequences(self.graph) {
            cx.poll()?;
            let maps = steps.iter().map(|&step| self.map(step)).collect();
            let mut sequence = Sequence::new(self.graph, steps, maps, &cx.session.cancel);
            while let Some(step) = sequence.next_step() {
                let inside = |steps: &[StepId], var: VarId| {
                    !self.graph.vars[var].is_persistent() && self.users[var].iter().all(|u| steps.contains(u))
                };
                match sequence.chain(inside).and_then(|chain| self.fused(chain)) {
                    Some(step) => {
                        sequence.take(&step.steps, step.at);
                        self.note_fused(&step);
                        at.insert(step.at);
                        fused.push(step);
                    }
                    None if at.contains(step) => {}
                    None => self.note_step(step),
                }
            }
        }
        let made = self.made.into_values().flatten().map(|made| (made.codelet, made.item)).collect();
        Ok((fused, made))
    }

    /// Returns a step as a map that can be cut anew, or `None` if it is none.
    fn map(&mut self, step: StepId) -> Option<Map<'g>> {
        let addressed = AddressedGraph { graph: self.graph, offsets: &self.offsets };
        let map = match self.graph.steps[step].kind {
            StepKind::Execute(set) if self.executions.0[set.index()] == 1 => {
                let families = &self.graph.sets[set].families;
                if families.iter().any(|&f| self.graph.families[f].tile.is_some()) {
                    return None;
                }
                let bodies = &mut self.bodies;
                let map = Map::of_families(addressed, families, |f| Ok::<_, std::convert::Infallible>(bodies.of(f)));
                map.unwrap_or_else(|never| match never {})?
            }
            StepKind::Copy(copy) if self.executions.1[copy.index()] == 1 => Map::of_copy(addressed, copy)?,
            _ => return None,
        };
        map.obeys_the_race_rule().then_some(map)
    }

    fn note_step(&mut self, step: StepId) {
        match self.graph.steps[step].kind {
            StepKind::Execute(set) => self.note_writers(set),
            StepKind::Copy(copy) => {
                let written = self.graph.copies[copy].families.iter().flat_map(|f| &f.dst.parts);
                written.for_each(|p| self.writers[p.var].clear());
            }
            _ => {}
        }
    }

    fn note_writers(&mut self, set: ComputeSetId) {
        let families = self.graph.sets[set].families.iter().map(|&f| &self.graph.families[f]);
        let mut written = vec![];
        for family in families {
            let codelet = &self.graph.codelets[family.codelet];
            for field in family.fields.iter().filter(|f| codelet.fields[f.field].dir != Dir::In) {
                written.push((family.domain.clone(), field.clone()));
            }
        }
        self.set_writers(written);
    }

    /// Takes the fields of a compute set that read persistent variables for those that have written them.
    fn note_readers(&mut self, set: ComputeSetId) {
        let families = self.graph.sets[set].families.iter().map(|&f| &self.graph.families[f]);
        let mut read: Vec<FamilyField> = vec![];
        for family in families {
            let codelet = &self.graph.codelets[family.codelet];
            let is_read = |f: &&Field| codelet.fields[f.field].dir == Dir::In;
            let persistent = |f: &&Field| f.parts.iter().all(|p| self.graph.vars[p.var].is_persistent());
            read.extend(
                family.fields.iter().filter(is_read).filter(persistent).map(|f| (family.domain.clone(), f.clone())),
            );
        }
        self.set_writers(read);
    }

    fn note_fused(&mut self, step: &FusedStep) {
        let mut written = vec![];
        for family in &step.families {
            let made = self.made.values().flatten().nth(family.codelet.index() - self.graph.codelets.len());
            let Some(made) = made else { continue };
            for field in family.fields.iter().filter(|f| made.codelet.fields[f.field].dir != Dir::In) {
                written.push((family.domain.clone(), field.clone()));
            }
        }
        self.set_writers(written);
    }

    fn set_writers(&mut self, written: Vec<FamilyField>) {
        let vars = |written: &[FamilyField]| -> Vec<VarId> {
            written.iter().flat_map(|f| &f.1.parts).map(|p| p.var).collect()
        };
        vars(&written).into_iter().for_each(|var| self.writers[var].clear());
        for (domain, field) in written {
            let mut vars: Vec<VarId> = field.parts.iter().map(|p| p.var).collect();
            vars.dedup();
            vars.into_iter().for_each(|var| self.writers[var].push((domain.clone(), field.clone())));
        }
    }

    /// Returns a chain as one step with the cheapest of its cuts, or `None` if it stays as it is.
    fn fused(&mut self, candidate: Candidate<'g>) -> Option<FusedStep> {
        let Candidate { chain, memory, steps, at } = candidate;
        let last = steps.iter().rev().find_map(|&step| match self.graph.steps[step].kind {
            StepKind::Execute(set) => Some(set),
            _ => None,
        })?;
        let like = &self.graph.families[*self.graph.sets[last].families.first()?];
        let extents = &memory.space.extents;
        let tiles = like.within.map_or(self.machine.chip.tiles, |w| w.count.min(self.machine.chip.tiles));
        let workers = u64::from(self.machine.chip.workers);
        let own = self.own_cut(&chain, &memory);
        let mut cuts: Vec<(Cut, Cut)> = own.iter().map(|cut| (cut.clone(), cut.clone())).collect();
        let of_writers: Vec<Option<Cut>> =
            (0..memory.space.accesses.len()).map(|n| self.cut_of_writers(&memory, n)).collect();
        for cut in of_writers.iter().flatten() {
            cuts.push((cut.clone(), cut.divided(workers)));
            cuts.push((cut.clone(), cut.clone()));
        }
        cuts.extend(Cut::even(extents, u64::from(tiles) * workers).map(|cut| (cut.clone(), cut)));
        let mut best: Option<(u64, usize, Vec<BoxVertices>)> = None;
        for (n, (like, cut)) in cuts.iter().enumerate() {
            let Some(vertices) = vertices(&chain, &memory, cut, &self.offsets) else { continue };
            let moved =
                of_writers.iter().zip(&memory.space.accesses).filter(|(w, _)| w.as_ref().is_some_and(|w| w != like));
            let spread = cut.vertices().div_ceil(cut.beside).min(u64::from(tiles)).max(1);
            let exchange: u64 = moved.map(|(_, access)| self.exchange(access, memory.space.len() / spread)).sum();
            let Some(time) = self.time(&chain, &vertices, cut, u64::from(tiles)) else { continue };
            let time = time + exchange;
            if best.as_ref().is_none_or(|b| time < b.0) {
                best = Some((time, n, vertices));
            }
        }
        let (_, n, vertices) = best?;
        if steps.len() == 1 && own.as_ref() == Some(&cuts[n].1) {
            return None;
        }
        let consts = constants(&chain);
        let mut families = vec![];
        for BoxVertices { domain, fields, signature } in vertices {
            let (index, _, made) = self.made.get_full(&signature)?;
            let before = self.made.values().take(index).flatten().count();
            let codelet = SpecId::new(self.graph.codelets.len() + before);
            let made = made.as_ref()?;
            let names = made.codelet.fields.iter().filter(|f| f.1.dir == Dir::Const).map(|f| f.0);
            let consts = names.zip(&consts).map(|(field, &value)| (field, Const::Uniform(value))).collect();
            let (origin, within) = (like.origin, like.within);
            families.push(Family {
                set: last,
                codelet,
                domain,
                fields,
                consts,
                tile: None,
                within,
                origin,
                statements: None,
            });
        }
        Some(FusedStep { steps, at, set: last, families })
    }

    /// Returns the cycles in which a tile gathers a number of elements of an operand. Those of a persistent variable
    /// come from where the program reads it first, and go back there.
    fn exchange(&self, access: &Access, elements: u64) -> u64 {
        let bytes = elements * u64::from(access.ty.bytes());
        let words = superstep::port_cycles(self.machine, bytes, Rate::Tile);
        let arrange = self.machine.arrange.after.cycles(bytes, 1);
        let ways = if self.graph.vars[access.var].is_persistent() { 2 } else { 1 };
        ways * (superstep::exchange_cycles(self.machine, words) + arrange)
    }

    /// Returns the cut of a chain's own steps: that of the last one whose result is in memory.
    fn own_cut(&self, chain: &Chain, memory: &MemorySlots) -> Option<Cut> {
        let in_memory: Vec<usize> = in_memory(memory);
        chain.maps.iter().zip(&chain.at).rev().find_map(|(map, slots)| {
            let (Function::Codelet(applied), Some(family)) = (&map.function, map.family) else { return None };
            let written = map.uses.iter().position(|u| u.writes)?;
            let n = in_memory.iter().position(|&slot| slot == slots[written])?;
            let set = self.graph.families[family].set;
            let fields = self.graph.sets[set].families.iter().filter_map(|&f| {
                let family = &self.graph.families[f];
                let field = family.fields.iter().find(|f| f.field == applied.fields[written])?;
                Some((family.domain.clone(), field.clone()))
            });
            self.cut_like(memory, n, &fields.collect::<Vec<_>>())
        })
    }

    /// Returns the boxes in which an element that a chain loads was written.
    fn cut_of_writers(&self, memory: &MemorySlots, n: usize) -> Option<Cut> {
        let slot = *in_memory(memory).get(n)?;
        let var = memory.space.accesses[n].var;
        let writers = &self.writers[var];
        (memory.loads[slot] && !writers.is_empty()).then(|| self.cut_like(memory, n, writers)).flatten()
    }

    fn cut_like(&self, memory: &MemorySlots, n: usize, fields: &[FamilyField]) -> Option<Cut> {
        let access = &memory.space.accesses[n];
        let first = self.offsets[access.var.index()] as i64;
        let of_var: Vec<FamilyField> =
            fields.iter().filter(|f| f.1.parts.iter().all(|p| p.var == access.var)).cloned().collect();
        Cut::like(access, &memory.space.extents, first, &of_var)
    }

    /// Returns the time of the vertices of a cut on the tile that takes longest, or `None` if a codelet has no text.
    fn time(&mut self, chain: &Chain, vertices: &[BoxVertices], cut: &Cut, tiles: u64) -> Option<u64> {
        let mut longest = 0;
        for v in vertices {
            self.make(chain, &v.signature);
            let made = self.made.get(&v.signature)?.as_ref()?;
            let mut shapes = vec![Shape::new(); made.codelet.fields.len()];
            for (shape, field) in shapes.iter_mut().zip(&v.fields) {
                *shape = field.shape();
            }
            let sizes = bind_sizes(&made.codelet, &shapes, &[]).ok()?;
            let facts = MemFacts::granting(made.cost.wants());
            let at = CostInputs {
                sizes: &sizes,
                consts: &[],
                worker: 0,
                workers: self.costs.workers,
                counters: &[],
                facts: &facts,
            };
            let counters = made.cost.counters(&at, cut.boxes.first().map_or(1, |b| b.iterations()));
            longest = longest.max(match made.cost.busy(&CostInputs { counters: &counters, ..at }) {
                Busy::One(cycles) | Busy::All(cycles) => cycles,
                Busy::Unit { code, unit } => code.saturating_add(unit),
            });
        }
        let groups = cut.vertices().div_ceil(cut.beside).div_ceil(tiles.max(1));
        Some(equal_vertices(groups * cut.beside, &Busy::One(longest), &self.costs))
    }

    /// Makes the codelet of a signature, if it is new.
    fn make(&mut self, chain: &Chain, signature: &FusedSignature) {
        if self.made.contains_key(signature) {
            return;
        }
        let mut made = codelet(signature, self.graph, chain);
        made.pipelined = true;
        made.pipelined = check(&made).is_ok();
        made.name = self.name(chain);
        let text = girder_fusion::print::codelet_text(&made, &made.name).ok();
        let item =
            text.map(|printed| CodeletItem { name: made.name.clone(), text: printed.text.into(), calls: vec![] });
        let cost = cost_of(&made, &self.costs).ok();
        let made = item.zip(cost).map(|(item, cost)| MadeCodelet { codelet: made, item, cost });
        self.made.insert(signature.clone(), made);
    }

    /// Returns a new name for the codelet of a chain.
    fn name(&self, chain: &Chain) -> SmolStr {
        let spec = chain.maps.iter().rev().find_map(|m| match &m.function {
            Function::Codelet(applied) => Some(applied.spec),
            Function::Copy(_) => None,
        });
        let name = spec.map_or("", |spec| &self.graph.codelets[spec].name);
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

/// Returns the slots in memory, in order.
fn in_memory(memory: &MemorySlots) -> Vec<usize> {
    (0..memory.loads.len()).filter(|&n| memory.loads[n] || memory.stores[n]).collect()
}
