//! The profiler, which advances one clock per IPU along a run.
//!
//! A step whose words cross between IPUs begins on all of them when the last has arrived. Any other step begins on each
//! IPU when that is free. A row of the profile sums, over executions, the parts of the IPU that takes longest.
//!
//! The clocks are those of one replica. Between two steps in which replicas meet, the one counts that takes longest.

use crate::estimate::Known;
use crate::memory;
use crate::packets::PacketQueue;
use crate::processors;
use crate::profile::{Profile, StepKind, StepProfile, Total};
use crate::timeline::Timeline;
use girder_ir::ids::{ComputeSetId, CopyId, FamilyId, StepId, StreamId};
use girder_ir::program::{Effect, StepKind as ProgramStep};
use girder_ir::stage::Allocated;
use girder_ir::timing::{ComputeTime, IpuTime, StepTime, Timing};
use girder_ir::trace::{Counts, Trace};
use girder_machine::Machine;
use girder_passes::model_time::{Counted, model_time};
use girder_passes::superstep;
use girder_source::{Origins, SourceMap};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A listener to runs that sums their times.
pub struct Profiler<'a> {
    pub(crate) allocated: &'a Allocated,
    machine: &'a Machine,
    timing: Timing,
    pub(crate) counted: Counted<'a>,
    pub(crate) sums: Sums,
    /// Steps that an estimate has followed; see the note in `estimate`.
    pub(crate) known: FxHashMap<StepId, Vec<Known>>,
    /// What replicas have done since they met, while one of them is on its way.
    apart: Option<Apart>,
    /// What each processor does when, if it is recorded.
    pub(crate) timeline: Option<Timeline>,
}

/// What replicas that run one after the other add to the sums. All of them begin at the same time.
struct Apart {
    start: Start,
    /// The sums when they met.
    met: Sums,
    /// What the one adds that takes longest so far.
    longest: Option<Sums>,
}

/// The sums of one step so far.
#[derive(Clone, Default)]
struct Row {
    executions: u64,
    total: Total,
    /// The cycles of vertices on all tiles.
    compute_sum: u64,
    exchange_words: u64,
    exchange_bound: u64,
    worst: Option<ComputeTime>,
}

impl Row {
    fn add(&mut self, more: &Row) {
        self.executions = self.executions.saturating_add(more.executions);
        self.total.add(&more.total);
        self.compute_sum = self.compute_sum.saturating_add(more.compute_sum);
        self.exchange_words = self.exchange_words.saturating_add(more.exchange_words);
        self.exchange_bound = self.exchange_bound.saturating_add(more.exchange_bound);
        self.worst = match (self.worst, more.worst) {
            (Some(a), Some(b)) if a.worst >= b.worst => Some(a),
            (a, b) => b.or(a),
        };
    }
}

impl<'a> Profiler<'a> {
    /// Creates a profiler with all clocks at zero.
    pub fn new(allocated: &'a Allocated, machine: &'a Machine) -> Profiler<'a> {
        let (timing, counted) = model_time(allocated, machine);
        let ahead = allocated.streams.iter().filter(|(_, s)| s.ahead > 0);
        let each = |id: StreamId| timing.ahead.values().flatten().find(|p| p.stream == id).map_or(0, |p| p.host);
        let sums = Sums {
            clocks: vec![0; machine.ipus as usize],
            busy: vec![0; machine.ipus as usize],
            queues: ahead.map(|(id, s)| PacketQueue::new(id, s.input, s.ahead, each(id))).collect(),
            tiles: machine.chip.tiles as u64,
            rows: BTreeMap::new(),
            supersteps: 0,
        };
        Profiler { allocated, machine, timing, counted, sums, known: FxHashMap::default(), apart: None, timeline: None }
    }

    /// Records a timeline from now on.
    pub fn record_timeline(&mut self) {
        self.timeline = Some(Timeline::new(self.allocated, self.machine.ipus));
    }

    /// Returns the timeline so far, if one is recorded.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.timeline.as_ref()
    }

    /// Returns whether a timeline is recorded that has room for more.
    pub(crate) fn records(&self) -> bool {
        self.timeline.as_ref().is_some_and(Timeline::is_open)
    }

    /// Adds an execution of a step.
    fn took(&mut self, id: StepId, time: &StepTime) {
        self.sums.took(id, time);
        if let Some(timeline) = &mut self.timeline {
            timeline.took(id, time, &self.sums.clocks);
        }
    }

    /// Takes note of the replica that has just ended its way.
    fn ended(&mut self) -> Option<Apart> {
        let mut apart = self.apart.take()?;
        let added = self.sums.begin(&apart.start);
        if apart.longest.as_ref().is_none_or(|longest| added.latest() > longest.latest()) {
            apart.longest = Some(added);
        }
        Some(apart)
    }

    /// Returns the profile of the runs so far; `map` gives the lines of steps.
    pub fn profile(&self, map: &SourceMap) -> Profile {
        let sums = self.sums.until_packets_left();
        let steps: Vec<StepProfile> = sums.rows.iter().map(|(&id, row)| self.step(id, row, map)).collect();
        let mut total = Total::default();
        steps.iter().for_each(|s| total.add(&s.total));
        let cycles = sums.latest();
        let (graph, layout) = (self.allocated, &self.allocated.layout);
        let processors = processors::processors(graph, layout, self.machine, &sums.busy);
        let row = |id: StepId| sums.rows.get(&id).map(|row| (row.executions, row.total.cycles()));
        let of_program = |program| location(&graph.origins, graph.programs[program].origin, map);
        let called = processors::called(graph, row, |step| self.ipus_of(step), of_program);
        let better = |phases: &[&_]| crate::cut::cut(graph, self.machine, phases, row);
        let stages = processors::stages(graph, &called, &processors, cycles, better);
        let kept = crate::kept::kept(graph, layout, |step| location(&graph.origins, graph.steps[step].origin, map));
        let mut profile = Profile {
            target: self.machine.name.clone(),
            ipus: self.machine.ipus,
            replicas: self.machine.partition.replicas,
            tiles_per_ipu: self.machine.chip.tiles,
            clock_hz: self.machine.chip.clock_hz,
            cycles,
            overflows: cycles == u64::MAX || total.cycles() == u64::MAX,
            seconds: self.machine.seconds(cycles),
            supersteps: self.sums.supersteps,
            total,
            steps,
            stages,
            called,
            processors,
            memory: memory::summarise(graph, &graph.placement, layout, self.machine, kept),
            limit: String::new(),
        };
        profile.limit = crate::table::limit(&profile);
        profile
    }

    fn step(&self, id: StepId, row: &Row, map: &SourceMap) -> StepProfile {
        let (name, kind) = self.name(id);
        let step = &self.allocated.steps[id];
        let ratio = |over: u64, under: u64| (under > 0).then(|| over as f64 / under as f64);
        StepProfile {
            name,
            kind,
            location: location(&self.allocated.origins, step.origin, map),
            also: self.also(id, map),
            executions: row.executions,
            total: row.total,
            fixed: self.fixed(row),
            compute_mean: row.compute_sum / self.sums.tiles,
            balance: ratio(row.compute_sum, self.sums.tiles.saturating_mul(row.total.compute)),
            schedule: ratio(row.exchange_words, row.exchange_bound),
            worst_tile: row.worst.map(|w| w.tile),
            waits: self.timing.waits.binary_search(&id).is_ok(),
            is_ahead: self.timing.ahead[id].is_some(),
            worst_is_one_round: row.worst.is_some_and(|w| self.is_one_round(id, w.tile)),
        }
    }

    /// Returns the processors on which a step runs.
    fn ipus_of(&self, id: StepId) -> Vec<u32> {
        let time = match self.allocated.steps[id].kind {
            ProgramStep::Execute(set) => &self.timing.sets[set],
            ProgramStep::Copy(copy) => &self.timing.copies[copy],
            _ => return vec![],
        };
        time.ipus.iter().map(|(ipu, _)| *ipu).collect()
    }

    /// Returns the places of the operations that a compute set has taken from other statements.
    fn also(&self, id: StepId, map: &SourceMap) -> Vec<String> {
        let graph = &self.allocated;
        let step = &graph.steps[id];
        let ProgramStep::Execute(set) = step.kind else { return vec![] };
        let mut places: Vec<String> = location(&graph.origins, step.origin, map).into_iter().collect();
        let own = places.len();
        let around = graph.origins.span(graph.sets[set].origin);
        for family in graph.operations(set).iter().filter_map(|families| families.first()) {
            let origin = graph.families[*family].origin;
            let span = graph.origins.span(origin);
            let place = location(&graph.origins, origin, map).filter(|at| !places.contains(at));
            places.extend(place.filter(|_| span.lo < around.lo || around.hi < span.hi));
        }
        places.split_off(own)
    }

    /// Returns whether a tile has at most one vertex of a compute set for each worker, or one that takes all of them.
    fn is_one_round(&self, id: StepId, tile: u32) -> bool {
        let graph = &self.allocated;
        let ProgramStep::Execute(set) = graph.steps[id].kind else { return false };
        let workers = self.machine.chip.workers;
        let taken = |&f: &FamilyId| {
            let family = &graph.families[f];
            let here = graph.placement.families[f].as_ref().map_or(0, |m| m.instances_on(&family.domain, tile).len());
            let each = if graph.codelets[family.codelet].multi { workers } else { 1 };
            u32::try_from(here).unwrap_or(u32::MAX).saturating_mul(each)
        };
        graph.sets[set].families.iter().map(taken).fold(0, u32::saturating_add) <= workers
    }

    /// Returns the fixed part of a step's cycles in every execution: its syncs, the latency of its first word (and the
    /// fixed part of a phase between processors), and the launch of a compute set with the start of one vertex.
    fn fixed(&self, row: &Row) -> u64 {
        let launch = superstep::first_vertex_cycles(self.machine);
        let latency = superstep::first_word_cycles(self.machine, row.total.bytes_between > 0);
        let of = |each: u64, all: u64| row.executions.saturating_mul(each).min(all);
        let sum = of(latency, row.total.exchange).saturating_add(of(launch, row.total.compute));
        sum.saturating_add(row.total.sync)
    }

    fn name(&self, id: StepId) -> (String, StepKind) {
        let graph = &self.allocated;
        let stream = |s: StreamId| graph.streams[s].title();
        match &graph.steps[id].kind {
            ProgramStep::Execute(set) => (graph.sets[*set].name.to_string(), StepKind::Compute),
            ProgramStep::Copy(copy) => (graph.copies[*copy].name.to_string(), StepKind::Copy),
            ProgramStep::Effect(Effect::Read { stream: s, .. } | Effect::Write { stream: s, .. }) => {
                (stream(*s), StepKind::Stream)
            }
            ProgramStep::Effect(_) => ("sync".to_string(), StepKind::Sync),
            ProgramStep::While { .. } => ("while".to_string(), StepKind::Predicate),
            ProgramStep::Switch { .. } => ("switch".to_string(), StepKind::Predicate),
            _ => ("if".to_string(), StepKind::Predicate),
        }
    }
}

/// The clocks and packets on which the time of a step depends.
#[derive(Clone, PartialEq)]
pub(crate) struct Start {
    clocks: Vec<u64>,
    queues: Vec<PacketQueue>,
}

/// The sums of the runs so far.
#[derive(Clone)]
pub(crate) struct Sums {
    /// The clock of each IPU.
    clocks: Vec<u64>,
    /// The cycles in which each IPU did not wait for another.
    busy: Vec<u64>,
    /// The packets of streams that hold packets ahead.
    queues: Vec<PacketQueue>,
    /// The number of tiles of an IPU.
    tiles: u64,
    rows: BTreeMap<StepId, Row>,
    supersteps: u64,
}

impl Sums {
    /// Returns the clock of the IPU that is furthest.
    pub fn latest(&self) -> u64 {
        self.clocks.iter().copied().max().unwrap_or(0)
    }

    /// Returns the number of clocks.
    pub fn clocks(&self) -> usize {
        self.clocks.len()
    }

    /// Returns the increase of each clock since `before`.
    pub fn increase(&self, before: &Sums) -> Vec<u64> {
        self.clocks.iter().zip(&before.clocks).map(|(now, then)| now - then).collect()
    }

    /// Returns the clocks, counted from that of the IPU that is least far, and the packets.
    pub fn start(&self) -> Start {
        let least = self.least();
        let queues = self.queues.iter().map(|q| q.since(least)).collect();
        Start { clocks: self.clocks.iter().map(|c| c - least).collect(), queues }
    }

    fn least(&self) -> u64 {
        self.clocks.iter().copied().min().unwrap_or(0)
    }

    /// Returns the packets, counted from the clock of the IPU that is furthest.
    pub fn packets(&self) -> Vec<PacketQueue> {
        let latest = self.latest();
        self.queues.iter().map(|q| q.since(latest)).collect()
    }

    /// Begins new sums; returns the sums so far.
    pub fn begin(&mut self, start: &Start) -> Sums {
        let Start { clocks, queues } = start.clone();
        let busy = vec![0; clocks.len()];
        let new = Sums { clocks, busy, queues, tiles: self.tiles, rows: BTreeMap::new(), supersteps: 0 };
        std::mem::replace(self, new)
    }

    /// Adds sums that began at `start`.
    pub fn add(&mut self, start: &Start, added: &Sums) {
        let least = self.least();
        self.queues = added.queues.iter().map(|q| q.later(least)).collect();
        for ((clock, &from), &to) in self.clocks.iter_mut().zip(&start.clocks).zip(&added.clocks) {
            // A clock that reached its greatest value stays there.
            *clock = if to == u64::MAX { u64::MAX } else { clock.saturating_add(to - from) };
        }
        self.busy.iter_mut().zip(&added.busy).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
        self.supersteps = self.supersteps.saturating_add(added.supersteps);
        for (&id, more) in &added.rows {
            self.rows.entry(id).or_default().add(more);
        }
    }

    /// Adds the increase since `before` another `times` times.
    pub fn extend(&mut self, before: &Sums, times: u64) {
        let passed = (self.latest() - before.latest()).saturating_mul(times);
        self.queues.iter_mut().for_each(|q| *q = q.later(passed));
        let more = |now: &mut u64, then: u64| *now = now.saturating_add((*now - then).saturating_mul(times));
        self.clocks.iter_mut().zip(&before.clocks).for_each(|(now, &then)| more(now, then));
        self.busy.iter_mut().zip(&before.busy).for_each(|(now, &then)| more(now, then));
        more(&mut self.supersteps, before.supersteps);
        let none = Row::default();
        for (id, row) in &mut self.rows {
            let then = before.rows.get(id).unwrap_or(&none);
            more(&mut row.executions, then.executions);
            more(&mut row.compute_sum, then.compute_sum);
            more(&mut row.exchange_words, then.exchange_words);
            more(&mut row.exchange_bound, then.exchange_bound);
            row.total.extend(&then.total, times);
        }
    }

    /// Moves a packet that the host moves while tiles compute. Returns the time of its step: the given one, and the
    /// wait for the host.
    fn packet(&mut self, id: StepId, mut time: StepTime, stream: StreamId) -> StepTime {
        let start = time.ipus.iter().map(|&(i, _)| self.clocks[i as usize]).max();
        let queue = self.queues.iter_mut().find(|q| q.stream == stream);
        if let (Some(start), Some(queue)) = (start, queue) {
            let cost = time.ipus.iter().map(|(_, part)| part.cycles()).max().unwrap_or(0);
            let waited = queue.move_packet(id, start, cost);
            time.ipus.iter_mut().for_each(|(_, part)| part.host = part.host.saturating_add(waited));
        }
        time
    }

    /// Returns the sums at the time at which the last packet has left. The step that wrote it waits for that.
    fn until_packets_left(&self) -> Sums {
        let mut sums = self.clone();
        let latest = self.latest();
        let last = self.queues.iter().filter(|q| q.left() > latest).max_by_key(|q| q.left());
        if let Some(queue) = last {
            sums.clocks.fill(queue.left());
            let row = queue.last.and_then(|id| sums.rows.get_mut(&id));
            let waited = Total { host: queue.left() - latest, ..Total::default() };
            row.into_iter().for_each(|row| row.total.add(&waited));
        }
        sums
    }

    /// Adds an execution of a step to its row and to the clocks.
    fn took(&mut self, id: StepId, time: &StepTime) {
        advance(&mut self.clocks, time);
        for (ipu, part) in &time.ipus {
            let busy = &mut self.busy[*ipu as usize];
            *busy = busy.saturating_add(part.cycles());
        }
        let row = self.rows.entry(id).or_default();
        row.executions = row.executions.saturating_add(1);
        let (bytes_inside, bytes_between) = (time.bytes_inside, time.bytes_between);
        row.total.add(&Total { bytes_inside, bytes_between, ..Total::default() });
        row.exchange_words = row.exchange_words.saturating_add(time.exchange_words);
        row.exchange_bound = row.exchange_bound.saturating_add(time.exchange_bound);
        let Some((_, longest)) = time.ipus.iter().max_by_key(|(ipu, t)| (t.cycles(), Reverse(*ipu))) else { return };
        row.total.add(&Total {
            sync: longest.sync,
            exchange: longest.exchange,
            pre_arrange: longest.pre_arrange,
            post_arrange: longest.post_arrange,
            host: longest.host,
            compute: longest.compute.worst,
            ..Total::default()
        });
        row.compute_sum = row.compute_sum.saturating_add(longest.compute.total);
        let more = row.worst.is_none_or(|w| longest.compute.worst > w.worst);
        if more && longest.compute.tiles > 0 {
            row.worst = Some(longest.compute);
        }
    }
}

impl Trace for Profiler<'_> {
    fn executed(&mut self, step: StepId, set: ComputeSetId, counts: &dyn Counts) {
        self.sums.supersteps = self.sums.supersteps.saturating_add(1);
        let fixed = &self.timing.sets[set];
        let time = match self.counted.compute(set, counts) {
            None => fixed.clone(),
            Some(compute) => with_compute(fixed, &compute),
        };
        self.took(step, &time);
    }

    fn copied(&mut self, step: StepId, copy: CopyId) {
        self.sums.supersteps = self.sums.supersteps.saturating_add(1);
        let time = self.timing.copies[copy].clone();
        self.took(step, &time);
    }

    fn tested(&mut self, step: StepId) {
        let time = self.timing.predicates[step].clone();
        self.took(step, &time);
    }

    fn packet(&mut self, step: StepId) {
        let time = self.timing.packets[step].clone();
        let time = match self.timing.ahead[step] {
            Some(ahead) => self.sums.packet(step, time, ahead.stream),
            None => time,
        };
        self.took(step, &time);
    }

    fn synced(&mut self, step: StepId) {
        let time = self.timing.sync.clone();
        self.took(step, &time);
    }

    fn replica(&mut self) {
        let ended = self.ended();
        let base = ended.is_none().then(|| self.sums.least());
        if let Some(timeline) = &mut self.timeline {
            timeline.replica(base);
        }
        let apart = ended.unwrap_or_else(|| {
            let start = self.sums.start();
            let met = self.sums.begin(&start);
            Apart { start, met, longest: None }
        });
        self.apart = Some(apart);
    }

    fn replicas_met(&mut self) {
        let Some(apart) = self.ended() else { return };
        self.sums = apart.met;
        if let Some(longest) = &apart.longest {
            self.sums.add(&apart.start, longest);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.replicas_met();
        }
    }
}

/// Returns a step's time with the counted time of its vertices by IPU.
fn with_compute(fixed: &StepTime, compute: &[(u32, ComputeTime)]) -> StepTime {
    let mut time = fixed.clone();
    for (ipu, t) in &mut time.ipus {
        if let Some((_, counted)) = compute.iter().find(|(i, _)| i == ipu) {
            *t = IpuTime { compute: *counted, ..*t };
        }
    }
    time
}

fn advance(clocks: &mut [u64], time: &StepTime) {
    let latest = time.ipus.iter().map(|&(i, _)| clocks[i as usize]).max().unwrap_or(0);
    for (ipu, part) in &time.ipus {
        let clock = &mut clocks[*ipu as usize];
        *clock = if time.joined { latest } else { *clock }.saturating_add(part.cycles());
    }
}

/// Returns the `file:line` of an origin.
fn location(origins: &Origins, origin: girder_source::OriginId, map: &SourceMap) -> Option<String> {
    let at = map.location(origins.span(origin))?;
    Some(format!("{}:{}", at.path.display(), at.line))
}
