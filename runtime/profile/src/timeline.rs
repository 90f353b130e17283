//! The intervals in which each processor is busy.
//!
//! An interval has the name of the program that the step is in, such as a phase of a pipeline, or of the step itself.
//! Neighbouring intervals of one name are one. Those of a stream count the wait for the host too. Of several replicas,
//! the timeline shows the first.
//!
//! Invariant: a timeline has at most [`MOST`] intervals, of at most [`MOST_STEPS`] steps. It ends where the next
//! interval or step begins.

use cranelift_entity::SecondaryMap;
use girder_ir::graph::Graph;
use girder_ir::ids::StepId;
use girder_ir::program::{Effect, StepKind};
use girder_ir::timing::StepTime;
use rustc_hash::FxHashMap;

/// The most intervals.
pub const MOST: usize = 20_000;

/// The most steps in these intervals. Neighbouring steps of one name are one interval, so without this bound a loop of
/// them would be followed to its end.
pub const MOST_STEPS: u64 = 1_000_000;

/// The most steps that an estimate visits for a timeline, with those that take no time on any processor.
pub const MOST_VISITS: u64 = 4 * MOST_STEPS;

/// The intervals of each processor.
#[derive(Clone)]
pub struct Timeline {
    /// The names of intervals.
    pub names: Vec<String>,
    /// By processor: its intervals in the order of time.
    pub rows: Vec<Vec<Interval>>,
    /// Whether the run went on after the last interval.
    pub is_cut: bool,
    name_of: SecondaryMap<StepId, u32>,
    count: usize,
    /// The steps that were added, and those that an estimate has visited.
    steps: u64,
    visits: u64,
    /// The cycle from which the clocks of the profiler are counted.
    base: u64,
    /// Whether a replica other than the first is running.
    pauses: bool,
}

/// Cycles in which a processor is busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// The first cycle.
    pub start: u64,
    /// The cycle after the last one.
    pub end: u64,
    /// The name, as an index.
    pub name: u32,
}

impl Timeline {
    /// Creates a timeline without intervals.
    pub(crate) fn new(graph: &Graph, ipus: u32) -> Timeline {
        let mut names = Names::default();
        let mut name_of = SecondaryMap::new();
        for (id, step) in &graph.steps {
            name_of[id] = match &step.kind {
                StepKind::Execute(set) => names.of(stem(&graph.sets[*set].name)),
                StepKind::Copy(copy) => names.of(stem(&graph.copies[*copy].name)),
                StepKind::Effect(Effect::Read { stream, .. } | Effect::Write { stream, .. }) => {
                    names.of(&graph.streams[*stream].title())
                }
                _ => names.of("control"),
            };
        }
        for program in graph.programs.values().filter(|p| !p.entry) {
            let (name, mut left) = (names.of(&program.name), vec![program.body]);
            while let Some(step) = left.pop() {
                name_of[step] = name;
                left.extend(graph.steps[step].children());
            }
        }
        let rows = vec![vec![]; ipus as usize];
        let (names, is_cut, pauses) = (names.all, false, false);
        Timeline { names, rows, is_cut, name_of, count: 0, steps: 0, visits: 0, base: 0, pauses }
    }

    /// Returns whether there is room for more.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_cut
    }

    /// Adds a step, after which the clocks of the processors are as given.
    pub(crate) fn took(&mut self, id: StepId, time: &StepTime, clocks: &[u64]) {
        if self.is_cut || self.pauses {
            return;
        }
        if self.steps == MOST_STEPS {
            self.is_cut = true;
            return;
        }
        self.steps += 1;
        for (ipu, part) in time.ipus.iter().filter(|(_, part)| part.cycles() > 0) {
            let end = self.base.saturating_add(clocks[*ipu as usize]);
            let (start, name) = (end.saturating_sub(part.cycles()), self.name_of[id]);
            let row = &mut self.rows[*ipu as usize];
            match row.last_mut().filter(|last| last.end == start && last.name == name) {
                Some(last) => last.end = end,
                None if self.count == MOST => {
                    self.is_cut = true;
                    return;
                }
                None => {
                    row.push(Interval { start, end, name });
                    self.count += 1;
                }
            }
        }
    }

    /// Counts a visit of a step by an estimate.
    pub(crate) fn visit(&mut self) {
        self.visits += 1;
        self.is_cut |= self.visits > MOST_VISITS;
    }

    /// Begins a replica, whose clocks are counted from `base` on; with `None`, its intervals are not recorded.
    pub(crate) fn replica(&mut self, base: Option<u64>) {
        match base {
            Some(base) => self.base = base,
            None => self.pauses = true,
        }
    }

    /// Ends the part that replicas run one after another: all of them have met.
    pub(crate) fn replicas_met(&mut self) {
        (self.base, self.pauses) = (0, false);
    }
}

/// Names, of which each has an index.
#[derive(Default)]
struct Names {
    all: Vec<String>,
    known: FxHashMap<String, u32>,
}

impl Names {
    fn of(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        let index = self.all.len() as u32;
        self.all.push(name.into());
        self.known.insert(name.into(), index);
        index
    }
}

/// Returns a name without the number by which it differs from others.
fn stem(name: &str) -> &str {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit());
    plain.strip_suffix('_').filter(|_| plain.len() < name.len()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn a_number_at_the_end_is_no_part_of_a_name() {
        assert_eq!(
            ["main.boundary_12", "main.conv2", "main_", "a_1_2"].map(stem),
            ["main.boundary", "main.conv2", "main_", "a_1"]
        );
    }
}
