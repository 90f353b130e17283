//! The cost of a vertex on a tile: the bundles that one worker issues, as a closed form in the sizes and constants of
//! the vertex, and in counters where only the data decide.
//!
//! - [`cost_of`] reads a typed codelet. [`Cost::eval`] gives the bundles of one worker, [`Cost::busy`] the time for
//!   which a vertex occupies its tile, and [`tile_cycles`] the cycles of a tile's queue.
//! - `walk` turns the body into values and regions (`graph`; `poly` holds indices as sums of products). `demand` finds
//!   the values that are computed, `pairs` those that are computed two lanes at a time. `pipeline` models
//!   `#[pipelined]`, `unit` the matrix unit.
//! - [`Points`] are the program points whose executions the interpreter and compiled code count while a vertex runs;
//!   [`known_counts`] finds the counts beforehand if no data decide about them.
//!
//! # Note: Two kinds of code
//! Published measurements of compiled codelets agree with one instruction per bundle; those of hand-written kernels
//! agree with the width of the pipes. `docs/cycles.md` lists the rows.
//!
//! Invariant: a cost depends on the codelet and the machine only, never on the host; evaluating it takes a bounded
//! number of steps.

mod inputs;
mod quantity;
mod points;
mod counted;
mod poly;
mod graph;
mod shape;
mod walk;
mod pairs;
mod demand;
mod pipeline;
mod unit;
mod tile;
mod known;

pub use counted::CountedBlocks;
pub use inputs::{CostInputs, FieldRequest, MemFacts};
pub use known::{Deciding, known_counts};
pub use pipeline::Refusal;
pub use points::{Located, Point, Points, blocks};
pub use quantity::{Names, Quantity, Ramp};
pub use tile::{Busy, TileCosts, TileQueue, equal_vertices, tile_cycles};

use girder_ir::codelet::Codelet;
use girder_ir::types::ElemType;
use graph::{Count, RegionId};
use pipeline::Pipeline;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use unit::UnitTerm;
use walk::BodyWalk;

/// The cost of a codelet's vertices.
#[derive(Clone, PartialEq, Debug)]
pub struct Cost {
    /// `#[cycles(…)]`: cycles of one vertex.
    stated: Option<Quantity>,
    terms: Vec<Term>,
    pipelines: Vec<Pipeline>,
    units: Vec<UnitTerm>,
    points: Points,
    /// Upper bounds of the counters, where the text determines them.
    bounds: Vec<Option<Quantity>>,
    requests: Vec<FieldRequest>,
    /// Bundles that hardware loops over local arrays issue again. They take time each time, but code only once.
    repeated: u64,
    is_multi: bool,
    period: u32,
    names: Names,
    types: Vec<ElemType>,
}

/// Bundles and how often they are issued.
#[derive(Clone, PartialEq, Debug)]
struct Term {
    bundles: Bundles,
    count: Quantity,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bundles {
    Fixed(u64),
    /// The interval between two vectors of a pipeline.
    Interval(usize),
    /// The fill of a pipeline: its first vector, beyond the interval.
    Fill(usize),
}

/// Checks on any machine that a codelet with `#[pipelined]` can be pipelined; the error gives the reason.
pub fn check(codelet: &Codelet) -> Result<(), Refusal> {
    if codelet.pipelined { cost_of(codelet, &TileCosts::unit()).map(drop) } else { Ok(()) }
}

/// Works like [`cost_of`], but counts every loop and branch that has a point. Tests compare closed forms with it.
pub fn counted_cost_of(codelet: &Codelet, costs: &TileCosts) -> Result<Cost, Refusal> {
    formula(codelet, costs, false)
}

/// Returns the cost of a codelet on a machine. Only a codelet with `#[pipelined]` is ever refused.
pub fn cost_of(codelet: &Codelet, costs: &TileCosts) -> Result<Cost, Refusal> {
    formula(codelet, costs, true)
}

fn formula(codelet: &Codelet, costs: &TileCosts, closed: bool) -> Result<Cost, Refusal> {
    let mut cost = Cost::empty(codelet, costs);
    if let Some(e) = codelet.cycles {
        cost.stated = Some(walk::stated(codelet, e).ok_or_else(|| Refusal {
            span: codelet.exprs[e].span,
            reason: "the expression of `cycles` is too long".into(),
        })?);
        return Ok(cost);
    }
    let walk = walk::walk(codelet, closed);
    let pipelined = if codelet.pipelined { pipeline::innermost(&walk)? } else { FxHashMap::default() };
    let demand = demand::demand(&walk, costs, pipelined);
    let lines = pipeline::pipelines(&demand)?;
    cost.assemble(&walk, &demand, lines, costs);
    Ok(cost)
}

impl Cost {
    fn empty(codelet: &Codelet, costs: &TileCosts) -> Cost {
        let names = Names {
            sizes: codelet.sizes.values().cloned().collect(),
            fields: codelet.fields.values().map(|f| f.name.clone()).collect(),
        };
        Cost {
            stated: None,
            terms: vec![],
            pipelines: vec![],
            units: vec![],
            points: Points::default(),
            bounds: vec![],
            requests: vec![],
            repeated: 0,
            is_multi: codelet.multi,
            period: costs.period,
            names,
            types: codelet.fields.values().map(|f| f.ty).collect(),
        }
    }

    fn assemble(
        &mut self,
        walk: &BodyWalk<'_>,
        demand: &demand::Demand<'_, '_>,
        lines: FxHashMap<u32, Pipeline>,
        costs: &TileCosts,
    ) {
        let mut found: Vec<(Bundles, Count)> = vec![];
        self.repeated = walk.repeated;
        let mut regions: Vec<(RegionId, u64)> = demand.instructions.iter().map(|(&r, &n)| (r, n)).collect();
        regions.sort_unstable();
        for (region, n) in regions {
            found.push((Bundles::Fixed(n), walk.graph.regions[region].count.clone()));
        }
        let mut lines: Vec<(u32, Pipeline)> = lines.into_iter().collect();
        lines.sort_by_key(|l| l.0);
        for (n, line) in lines {
            let l = &walk.loops[n as usize];
            let at = self.pipelines.len();
            let once = walk.graph.regions[l.around].count.clone();
            let own = &walk.graph.regions[l.region].count;
            let width = i64::from(line.width);
            let factor = match &l.trip_count {
                Some(Quantity::Ramp(_)) => own.factor.clone().scale_ramp_steps(width),
                Some(trip_count) => once.factor.clone().mul(trip_count.clone().ceil(width)),
                None => own.factor.clone(),
            };
            found.push((Bundles::Interval(at), Count { counted: own.counted, factor }));
            found.push((Bundles::Fill(at), once));
            if walk.codelet.separate_elements {
                self.requests.extend(line.requests());
            }
            self.pipelines.push(line);
        }
        let mut passes = vec![];
        for p in &walk.products {
            let count = &walk.graph.regions[p.region].count;
            match UnitTerm::of(p, count, costs) {
                Some((term, count)) => {
                    self.requests.extend(term.request().filter(|_| walk.codelet.separate_elements));
                    self.units.push(term);
                    passes.push(count);
                }
                None => {
                    let factor = count.factor.clone().mul(unit::emulated(p, costs));
                    found.push((Bundles::Fixed(1), Count { counted: count.counted, factor }));
                }
            }
        }
        self.requests.sort();
        self.requests.dedup();
        self.number(found, passes, &walk.bounds);
    }

    /// Numbers the points that are counted, and adds up the bundles that are issued equally often.
    fn number(&mut self, found: Vec<(Bundles, Count)>, passes: Vec<Count>, bounds: &FxHashMap<Point, Quantity>) {
        let mut points: Vec<Point> = found.iter().map(|f| &f.1).chain(&passes).filter_map(|c| c.counted).collect();
        points.sort_unstable();
        points.dedup();
        let counter = |count: &Count| count.counted.and_then(|p| points.binary_search(&p).ok());
        for (unit, count) in self.units.iter_mut().zip(passes) {
            unit.passes = match counter(&count) {
                Some(k) => Quantity::Counter(k as u32).mul(count.factor),
                None => count.factor,
            };
        }
        for (bundles, count) in found {
            let counted = counter(&count);
            let count = match (counted, bundles) {
                (None, _) => count.factor,
                (Some(k), Bundles::Interval(at)) if count.factor == Quantity::Number(1) => {
                    Quantity::Counter(k as u32).ceil(self.pipelines[at].width.into())
                }
                (Some(k), _) => Quantity::Counter(k as u32).mul(count.factor),
            };
            let same = self.terms.iter_mut().find(|t| t.count == count);
            match (same.map(|t| &mut t.bundles), bundles) {
                (Some(Bundles::Fixed(sum)), Bundles::Fixed(n)) => *sum += n,
                _ => self.terms.push(Term { bundles, count }),
            }
        }
        self.terms.retain(|t| t.bundles != Bundles::Fixed(0) && t.count != Quantity::Number(0));
        self.terms.sort_by(|a, b| a.count.cmp(&b.count));
        self.bounds = points.iter().map(|p| bounds.get(p).cloned()).collect();
        self.points = Points::new(points);
    }

    fn value(&self, quantity: &Quantity, at: &CostInputs<'_>) -> u64 {
        quantity.eval(&|f| self.types[f.as_u32() as usize], at).max(0) as u64
    }

    fn bundles_of(&self, bundles: Bundles, facts: &MemFacts) -> u64 {
        match bundles {
            Bundles::Fixed(n) => n,
            Bundles::Interval(at) => self.pipelines[at].interval(facts),
            Bundles::Fill(at) => self.pipelines[at].fill(facts),
        }
    }

    /// Returns the bundles that one worker issues for a vertex, those for which it waits for its own products in the
    /// matrix unit included; saturates. Stated cycles are rounded up to whole bundles.
    pub fn eval(&self, at: &CostInputs<'_>) -> u64 {
        let period = u64::from(self.period.max(1));
        if let Some(cycles) = &self.stated {
            return self.value(cycles, at).div_ceil(period);
        }
        let filled = self.filled(at);
        let at = &CostInputs { counters: &filled, ..*at };
        let unit = self.units.iter().fold(0, |sum: u64, u| sum.saturating_add(self.unit_cycles(u, at)));
        self.code(at).saturating_add(unit.div_ceil(period))
    }

    /// Returns the bundles of one worker without the matrix unit.
    fn code(&self, at: &CostInputs<'_>) -> u64 {
        let of = |t: &Term| self.bundles_of(t.bundles, at.facts).saturating_mul(self.value(&t.count, at));
        self.terms.iter().fold(0, |sum, t| sum.saturating_add(of(t)))
    }

    /// Returns the cycles of a product for the rows of one worker.
    fn unit_cycles(&self, unit: &UnitTerm, at: &CostInputs<'_>) -> u64 {
        let pass = unit.pass(self.value(&unit.rows, at), at.facts, self.period);
        self.value(&unit.passes, at).saturating_mul(pass)
    }

    /// Returns the counters of one worker: those that are given, else upper bounds or 0.
    fn filled<'a>(&self, at: &CostInputs<'a>) -> Cow<'a, [u64]> {
        match at.counters.is_empty() && !self.points.is_empty() {
            true => Cow::Owned(self.counters_of(at, 0)),
            false => Cow::Borrowed(at.counters),
        }
    }

    fn counters_of(&self, at: &CostInputs<'_>, unknown: u64) -> Vec<u64> {
        self.bounds.iter().map(|b| b.as_ref().map_or(unknown, |q| self.value(q, at))).collect()
    }

    /// Returns counters for a vertex that has not run: upper bounds where the text determines them, else `unknown`. For
    /// a `multi` codelet they are those of worker 0, 1, … one after another. `at.counters` is not read.
    pub fn counters(&self, at: &CostInputs<'_>, unknown: u64) -> Vec<u64> {
        let workers = if self.is_multi { at.workers.max(1) } else { 1 };
        (0..workers).flat_map(|worker| self.counters_of(&CostInputs { worker, ..*at }, unknown)).collect()
    }

    /// Returns the cycles for which a vertex keeps one context, or all of them, and the matrix unit busy.
    ///
    /// For a `multi` codelet, `at.counters` holds the counters of worker 0, 1, … one after another, and `at.worker` is
    /// not read.
    pub fn busy(&self, at: &CostInputs<'_>) -> Busy {
        let period = u64::from(self.period);
        if !self.is_multi {
            let filled = self.filled(at);
            let at = &CostInputs { counters: &filled, ..*at };
            let code = || self.code(at).saturating_mul(period);
            return match (&self.stated, &self.units[..]) {
                (Some(cycles), _) => Busy::One(self.value(cycles, at)),
                (None, []) => Busy::One(code()),
                (None, units) => {
                    let unit = units.iter().fold(0, |sum: u64, u| sum.saturating_add(self.unit_cycles(u, at)));
                    Busy::Unit { code: code(), unit }
                }
            };
        }
        let own = self.points.len();
        let (mut code, mut units) = (0, vec![0u64; self.units.len()]);
        for worker in 0..at.workers.max(1) {
            let start = (worker as usize).saturating_mul(own).min(at.counters.len());
            let at = &CostInputs { worker, counters: &at.counters[start..], ..*at };
            let filled = self.filled(at);
            let at = &CostInputs { counters: &filled, ..*at };
            let cycles = match &self.stated {
                Some(cycles) => self.value(cycles, at),
                None => self.code(at).saturating_mul(period),
            };
            code = code.max(cycles);
            // Workers that share coefficients run in the same passes; others take turns.
            for (sum, unit) in units.iter_mut().zip(&self.units) {
                let cycles = self.unit_cycles(unit, at);
                *sum = if unit.is_shared { cycles.max(*sum) } else { sum.saturating_add(cycles) };
            }
        }
        Busy::All(units.into_iter().fold(code, u64::saturating_add))
    }

    /// Returns the bundles of its code, each counted once; `None` if its cycles are stated.
    pub fn code_bundles(&self) -> Option<u64> {
        let granted = MemFacts::granting(&self.requests);
        let all = self.terms.iter().fold(0, |sum: u64, t| sum.saturating_add(self.bundles_of(t.bundles, &granted)));
        self.stated.is_none().then_some(all.saturating_sub(self.repeated))
    }

    /// Returns the placement of fields in memory that would make the codelet faster.
    pub fn requests(&self) -> &[FieldRequest] {
        &self.requests
    }

    /// Returns the points at which executions must be counted; empty if the cost is known before a vertex runs.
    pub fn points(&self) -> &Points {
        &self.points
    }

    /// Returns whether vertices with equal sizes may differ in cost because their constants do.
    pub fn reads_constants(&self) -> bool {
        let units = self.units.iter().flat_map(|u| [&u.passes, &u.rows]);
        let counts = self.terms.iter().map(|t| &t.count).chain(&self.stated).chain(units);
        counts.into_iter().any(|q| q.any(&mut |p| matches!(p, Quantity::Const(_))))
    }

    /// Returns whether the codelet takes all workers of its tile.
    pub fn is_multi(&self) -> bool {
        self.is_multi
    }
}

/// Writes the bundles of one worker, such as `8 + 6·n + 3·⌈n/2⌉`, with all requests of the codelet granted; stated
/// cycles and those of the matrix unit appear with their unit. `#k` is the k-th counter.
impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(cycles) = &self.stated {
            return write!(f, "{} cycles", cycles.text(&self.names));
        }
        let granted = MemFacts::granting(&self.requests);
        let mut sum: Vec<(Quantity, u64)> = vec![];
        for t in &self.terms {
            let n = self.bundles_of(t.bundles, &granted);
            match sum.iter_mut().find(|s| s.0 == t.count) {
                Some(s) => s.1 += n,
                None => sum.push((t.count.clone(), n)),
            }
        }
        let parts = sum.into_iter().filter(|s| s.1 > 0).map(|(count, n)| {
            let n = i64::try_from(n).unwrap_or(i64::MAX);
            match count {
                Quantity::Add(_) if n != 1 => format!("{n}·({})", count.text(&self.names)),
                count => Quantity::Number(n).mul(count).text(&self.names),
            }
        });
        let text = quantity::sum(parts);
        f.write_str(if text.is_empty() { "0" } else { &text })?;
        self.units.iter().try_for_each(|u| {
            let (passes, rows) = (u.passes.factor(&self.names), u.rows.factor(&self.names));
            write!(f, ", {}", u.text(&passes, &rows, &granted, self.period))
        })
    }
}
