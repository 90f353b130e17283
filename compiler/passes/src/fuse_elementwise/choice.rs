//! The choice of a chain's cut, by the time of its vertices and of the exchanges before them.
//!
//! Invariant: a choice depends on the graph, the machine and the steps before it only.

use super::cut::{Cut, FamilyField, LEAST};
use super::families::{BoxVertices, constants, vertices};
use super::{Candidate, ElementwiseFuser, FusedStep};
use crate::superstep::{self, Rate};
use girder_codelet::cost::{Busy, Cost, CostInputs, MemFacts, cost_of, equal_vertices};
use girder_codelet::sizes::{Shape, Sizes, bind_sizes};
use girder_codelet::vertices::{bind_vertices, vertex_consts};
use girder_fusion::chain::{Chain, MemorySlots};
use girder_fusion::map::Function;
use girder_fusion::space::Access;
use girder_ir::codelet::Dir;
use girder_ir::family::{Const, Family, Field};
use girder_ir::ids::{ComputeSetId, FamilyId, FieldId, SpecId};
use girder_ir::program::StepKind;

/// The approximate cycles of a vertex with fewer than [`LEAST`] iterations, which take long.
const SLOW: u64 = 1 << 13;

/// A chain in its cheapest cut.
pub(super) struct CheapestCut {
    /// The last compute set of the chain.
    pub set: ComputeSetId,
    /// Its first family.
    pub family: FamilyId,
    /// Whether the cut is that of the chain's own steps.
    pub is_own: bool,
    /// The time of the vertices on the tile that takes longest, and of the exchanges before them.
    pub cycles: u64,
    /// The cut from which this one was made by dividing vertices among workers; boxes of both share tiles.
    pub like: Cut,
    pub vertices: Vec<BoxVertices>,
}

impl<'g> ElementwiseFuser<'g> {
    /// Returns a chain as one step with the cheapest of its cuts, or `None` if it stays as it is.
    pub(super) fn fused(&mut self, candidate: Candidate<'g>) -> Option<FusedStep> {
        let cheapest = self.cheapest(&candidate)?;
        let Candidate { chain, steps, at, .. } = candidate;
        let (last, like) = (cheapest.set, &self.graph.families[cheapest.family]);
        let consts = constants(&chain);
        let mut families = vec![];
        for BoxVertices { domain, fields, signature } in cheapest.vertices {
            let made = self.made.get(&signature)?.as_ref()?;
            let names = made.codelet.fields.iter().filter(|f| f.1.dir == Dir::Const).map(|f| f.0);
            let consts = names.zip(&consts).map(|(field, &value)| (field, Const::Uniform(value))).collect();
            let (origin, within) = (like.origin, like.within);
            families.push(Family {
                set: last,
                codelet: made.id,
                domain,
                fields,
                consts,
                tile: None,
                within,
                origin,
                statements: None,
            });
        }
        let gains = || Some(self.families_time(&families)? < self.families_time(&self.families(last))?);
        let is_same = steps.len() == 1 && cheapest.is_own && !self.reads_constants(&chain);
        if is_same && gains() != Some(true) {
            return None;
        }
        Some(FusedStep { steps, at, set: last, families })
    }

    /// Returns whether fields of a chain's maps have become constants.
    fn reads_constants(&self, chain: &Chain) -> bool {
        let applied = chain.maps.iter().filter_map(|map| match &map.function {
            Function::Codelet(applied) => Some(applied),
            Function::Copy(_) => None,
        });
        let is_edge = |spec: SpecId, field: FieldId| self.graph.codelets[spec].fields[field].dir != Dir::Const;
        applied.into_iter().any(|a| a.consts.iter().any(|&(field, _)| is_edge(a.spec, field)))
    }

    /// Returns the cheapest cut of a chain, or `None` if there is none.
    pub(super) fn cheapest(&mut self, candidate: &Candidate<'g>) -> Option<CheapestCut> {
        let Candidate { chain, memory, steps, .. } = candidate;
        let last = steps.iter().rev().find_map(|&step| match self.graph.steps[step].kind {
            StepKind::Execute(set) => Some(set),
            _ => None,
        })?;
        let family = *self.graph.sets[last].families.first()?;
        let within = self.graph.families[family].within;
        let extents = &memory.space.extents;
        let tiles = within.map_or(self.machine.chip.tiles, |w| w.count.min(self.machine.chip.tiles));
        let workers = u64::from(self.machine.chip.workers);
        let own = self.own_cut(chain, memory);
        let mut cuts: Vec<(Cut, Cut)> = own.iter().map(|cut| (cut.clone(), cut.clone())).collect();
        let of_writers: Vec<Option<Cut>> =
            (0..memory.space.accesses.len()).map(|n| self.cut_of_writers(memory, n)).collect();
        for cut in of_writers.iter().flatten() {
            cuts.push((cut.clone(), cut.divided(workers)));
            cuts.push((cut.clone(), cut.clone()));
        }
        let even = |least: u64| Cut::even(extents, u64::from(tiles) * workers, least).map(|cut| (cut.clone(), cut));
        cuts.extend(even(LEAST));
        // Vertices whose iterations take long can be smaller.
        cuts.extend(cuts.last().and_then(|(_, cut)| even(self.fewest(chain, memory, cut)?)));
        let mut best: Option<(u64, usize, Vec<BoxVertices>)> = None;
        for (n, (like, cut)) in cuts.iter().enumerate() {
            let Some(vertices) = vertices(chain, memory, cut, &self.offsets) else { continue };
            if vertices.iter().any(|v| writes_part_of_a_word(memory, v)) {
                continue;
            }
            let is_other = |w: &Option<Cut>| w.as_ref().is_some_and(|w| !w.has_boxes_of(like));
            let moved = of_writers.iter().zip(&memory.space.accesses).filter(|(w, a)| {
                // A variable that these steps read first is placed where they do.
                is_other(w) && !self.follows(a.var, steps)
            });
            let spread = cut.vertices().div_ceil(cut.beside).min(u64::from(tiles)).max(1);
            let exchange: u64 = moved.map(|(_, access)| self.exchange(access, memory.space.len() / spread)).sum();
            let Some(time) = self.time(chain, &vertices, cut, u64::from(tiles)) else { continue };
            let time = time + exchange;
            if best.as_ref().is_none_or(|b| time < b.0) {
                best = Some((time, n, vertices));
            }
        }
        let (cycles, n, vertices) = best?;
        let (like, cut) = cuts.swap_remove(n);
        Some(CheapestCut { set: last, family, is_own: own.is_some_and(|own| own == cut), cycles, like, vertices })
    }

    /// Returns the cycles in which a tile gathers a number of elements of an operand. The elements of a persistent
    /// variable travel twice: from the place where the program reads it first, and back.
    pub(super) fn exchange(&self, access: &Access, elements: u64) -> u64 {
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
    pub(super) fn cut_of_writers(&self, memory: &MemorySlots, n: usize) -> Option<Cut> {
        let slot = *in_memory(memory).get(n)?;
        let var = memory.space.accesses[n].var;
        let writers = self.writers.get(var);
        (memory.loads[slot] && !writers.is_empty()).then(|| self.cut_like(memory, n, writers)).flatten()
    }

    pub(super) fn cut_like(&self, memory: &MemorySlots, n: usize, fields: &[FamilyField]) -> Option<Cut> {
        let access = &memory.space.accesses[n];
        let first = self.offsets[access.var.as_u32() as usize] as i64;
        let of_var: Vec<FamilyField> =
            fields.iter().filter(|f| f.1.parts.iter().all(|p| p.var == access.var)).cloned().collect();
        Cut::like(access, &memory.space.extents, first, &of_var)
    }

    /// Returns the least number of iterations of a vertex if it is below [`LEAST`], because the iterations take long.
    fn fewest(&mut self, chain: &Chain<'g>, memory: &MemorySlots, cut: &Cut) -> Option<u64> {
        let iterations = cut.boxes.first()?.iterations();
        let cycles = self.longest(chain, &vertices(chain, memory, cut, &self.offsets)?, cut)?;
        let fewest = SLOW / (cycles / iterations.max(1)).max(1);
        (fewest < LEAST).then_some(fewest.max(1))
    }

    /// Returns the time of the vertices of a cut on the tile that takes longest, or `None` if a codelet has no text.
    fn time(&mut self, chain: &Chain, vertices: &[BoxVertices], cut: &Cut, tiles: u64) -> Option<u64> {
        let longest = self.longest(chain, vertices, cut)?;
        let groups = cut.vertices().div_ceil(cut.beside).div_ceil(tiles.max(1));
        Some(equal_vertices(groups * cut.beside, &Busy::One(longest), &self.costs))
    }

    /// Returns the time of the vertex of a cut that takes longest, or `None` if a codelet has no text.
    fn longest(&mut self, chain: &Chain, vertices: &[BoxVertices], cut: &Cut) -> Option<u64> {
        let mut longest = 0;
        for v in vertices {
            self.make(chain, &v.signature);
            let made = self.made.get(&v.signature)?.as_ref()?;
            let mut shapes = vec![Shape::new(); made.codelet.fields.len()];
            for (shape, field) in shapes.iter_mut().zip(&v.fields) {
                *shape = field.shape();
            }
            let sizes = bind_sizes(&made.codelet, &shapes, &[]).ok()?;
            let iterations = cut.boxes.first().map_or(1, |b| b.iterations());
            longest = longest.max(match self.busy(&made.cost, &sizes, &[], iterations) {
                Busy::One(cycles) | Busy::All(cycles) => cycles,
                Busy::Unit { code, unit } => code.saturating_add(unit),
            });
        }
        Some(longest)
    }

    /// Returns the time of vertices that are spread evenly, or `None` if a codelet has no cost.
    pub(super) fn families_time(&self, families: &[Family]) -> Option<u64> {
        let tiles = families.first().and_then(|f| f.within).map_or(u32::MAX, |w| w.count);
        let tiles = u64::from(tiles.min(self.machine.chip.tiles).max(1));
        let (mut longest, mut vertices) = (Busy::One(0), 0);
        let total = |busy: &Busy| match *busy {
            Busy::One(cycles) | Busy::All(cycles) => cycles,
            Busy::Unit { code, unit } => code.saturating_add(unit),
        };
        for family in families {
            let codelet = self.codelet(family.codelet);
            let sizes = bind_vertices(codelet, family).ok()??;
            let consts = vertex_consts(codelet, family, 0);
            let busy = self.busy(&cost_of(codelet, &self.costs).ok()?, &sizes, &consts, 1);
            vertices += family.domain.count();
            if total(&busy) > total(&longest) {
                longest = busy;
            }
        }
        Some(equal_vertices(vertices.div_ceil(tiles), &longest, &self.costs))
    }

    /// Returns the cost of a vertex, with `unknown` iterations of loops that depend on data.
    fn busy(&self, cost: &Cost, sizes: &Sizes, consts: &[u64], unknown: u64) -> Busy {
        let facts = MemFacts::granting(cost.requests());
        let workers = self.costs.workers;
        let at = CostInputs { sizes, consts, worker: 0, workers, counters: &[], facts: &facts };
        let counters = cost.counters(&at, unknown);
        cost.busy(&CostInputs { counters: &counters, ..at })
    }
}

/// Returns whether vertices write less than a word each. Several tiles then write parts of a word, which are put
/// together byte by byte.
fn writes_part_of_a_word(memory: &MemorySlots, vertices: &BoxVertices) -> bool {
    let accesses = in_memory(memory).into_iter().zip(&memory.space.accesses).zip(&vertices.fields);
    let mut written = accesses.filter(|((slot, _), _)| memory.stores[*slot]);
    let is_part = |((_, a), f): ((usize, &Access), &Field)| f.len() * u64::from(a.ty.bytes()) < superstep::WORD_BYTES;
    vertices.domain.count() > 1 && written.any(is_part)
}

/// Returns the slots in memory, in order.
pub(super) fn in_memory(memory: &MemorySlots) -> Vec<usize> {
    (0..memory.loads.len()).filter(|&n| memory.loads[n] || memory.stores[n]).collect()
}
