//! Schedules: when the phases of a pipeline run.
//!
//! Time is counted in *slots*. A phase runs micro-batch `m` in slot `first + m * period`, where `first` is its own and
//! the period is that of the schedule. In a slot the phases run in the order of falling `first`: what reads an old
//! micro-batch runs before what makes a new one.
//!
//! Invariant: phases are in the order of the text, and each has a later first slot than those before.

/// When the stages of a pipeline run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// One micro-batch after the other; stages do not overlap.
    Sharded,
    /// All micro-batches go forwards before the first one goes backwards.
    FillDrain,
    /// Each stage alternates between a micro-batch forwards and one backwards.
    OneForwardOneBackward,
    /// The same, where each IPU runs one of its stages in a slot.
    Interleaved,
}

/// What a schedule needs to know of a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhaseKind {
    /// The number of its place.
    pub place: usize,
    /// Whether it has forward steps.
    pub forward: bool,
    /// Whether it has reverse steps.
    pub reverse: bool,
}

/// The slots of a pipeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slots {
    /// The slots between two micro-batches of a phase.
    pub period: u64,
    /// The slot in which each phase runs the first micro-batch.
    pub first: Vec<u64>,
}

impl Schedule {
    /// The schedules by name.
    pub const NAMES: [(&'static str, Schedule); 4] = [
        ("1f1b", Schedule::OneForwardOneBackward),
        ("gpipe", Schedule::FillDrain),
        ("interleaved", Schedule::Interleaved),
        ("sharded", Schedule::Sharded),
    ];

    /// Returns the schedule with a name.
    pub fn named(name: &str) -> Option<Schedule> {
        Schedule::NAMES.iter().find(|(known, _)| *known == name).map(|(_, schedule)| *schedule)
    }

    /// Returns whether the reverse steps of a place are in a phase of their own.
    pub fn separates_directions(self) -> bool {
        self == Schedule::FillDrain
    }

    /// Returns the slots of phases for a number of micro-batches.
    pub fn slots(self, phases: &[PhaseKind], micro_batches: u64) -> Slots {
        match self {
            Schedule::Interleaved => interleaved(phases),
            _ => {
                let mut turned = 0;
                let mut first = Vec::with_capacity(phases.len());
                for (k, phase) in phases.iter().enumerate() {
                    let turns = k > 0 && phase.reverse && !phases[k - 1].reverse;
                    turned += u64::from(turns && self == Schedule::FillDrain) * (micro_batches - 1);
                    first.push(k as u64 + turned);
                }
                Slots { period: 1, first }
            }
        }
    }
}

/// Gives each place one forward and one reverse phase in a slot.
fn interleaved(phases: &[PhaseKind]) -> Slots {
    let count =
        |place: usize, f: fn(&PhaseKind) -> bool| phases.iter().filter(|p| p.place == place && f(p)).count() as u64;
    let most = |p: &PhaseKind| count(p.place, |p| p.forward).max(count(p.place, |p| p.reverse));
    let period = phases.iter().map(most).max().unwrap_or(1).max(1);
    let mut first: Vec<u64> = vec![];
    for phase in phases {
        let is_taken = |slot: u64| {
            let same = |(q, at): (&PhaseKind, &u64)| {
                q.place == phase.place
                    && (q.forward && phase.forward || q.reverse && phase.reverse)
                    && at % period == slot % period
            };
            phases.iter().zip(&first).any(same)
        };
        let from = first.last().map_or(0, |last| last + 1);
        let free = (from..from + period).find(|&slot| !is_taken(slot)).unwrap_or(from);
        first.push(free);
    }
    Slots { period, first }
}

/// Slots in which the same phases run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// How often the slots repeat.
    pub times: u64,
    /// The phases of each slot, in the order in which they run.
    pub slots: Vec<Vec<usize>>,
}

impl Slots {
    /// Returns all slots in order: those in which the pipeline fills or drains one by one, and equal ones as a repeated
    /// stretch.
    pub fn stretches(&self, micro_batches: u64) -> Vec<Stretch> {
        let end = |first: u64| first + self.period * (micro_batches - 1) + 1;
        let mut edges: Vec<u64> = self.first.iter().flat_map(|&first| [first, end(first)]).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut stretches = vec![];
        for edge in edges.windows(2) {
            let (from, to) = (edge[0], edge[1]);
            let mut alive: Vec<usize> =
                (0..self.first.len()).filter(|&k| self.first[k] <= from && from < end(self.first[k])).collect();
            alive.sort_by_key(|&k| std::cmp::Reverse(self.first[k]));
            let runs = |slot: u64, k: usize| (slot - self.first[k]).is_multiple_of(self.period);
            let slot = |slot: u64| alive.iter().copied().filter(|&k| runs(slot, k)).collect::<Vec<_>>();
            let times = (to - from) / self.period;
            if times > 0 {
                stretches.push(Stretch { times, slots: (from..from + self.period).map(slot).collect() });
            }
            let rest = from + times * self.period..to;
            stretches.extend(rest.map(|s| Stretch { times: 1, slots: vec![slot(s)] }));
        }
        stretches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The phases of a chain of stages: forwards, the last stage in both directions, backwards.
    fn chain(places: &[usize]) -> Vec<PhaseKind> {
        let last = places.len() - 1;
        let forward =
            places.iter().enumerate().map(|(k, &place)| PhaseKind { place, forward: true, reverse: k == last });
        let reverse = places[..last].iter().rev().map(|&place| PhaseKind { place, forward: false, reverse: true });
        forward.chain(reverse).collect()
    }

    /// Runs the slots: each phase takes all micro-batches in order, each after the phase before it.
    fn check(slots: &Slots, micro_batches: u64) -> u64 {
        let mut done = vec![0; slots.first.len()];
        let mut number = 0;
        for stretch in slots.stretches(micro_batches) {
            for _ in 0..stretch.times {
                for slot in &stretch.slots {
                    for &k in slot {
                        assert_eq!(number, slots.first[k] + done[k] * slots.period, "phase {k}");
                        assert!(k == 0 || done[k - 1] > done[k], "phase {k} runs before the one before it");
                        done[k] += 1;
                    }
                    number += 1;
                }
            }
        }
        assert!(done.iter().all(|&d| d == micro_batches), "{done:?}");
        number
    }

    #[test]
    fn one_forward_one_backward_takes_a_slot_for_each_micro_batch_and_each_phase_but_one() {
        for stages in 1..6 {
            for n in 1..20 {
                let slots = Schedule::OneForwardOneBackward.slots(&chain(&(0..stages).collect::<Vec<_>>()), n);
                assert_eq!(check(&slots, n), n + 2 * (stages as u64 - 1));
            }
        }
    }

    #[test]
    fn fill_drain_sends_all_forwards_first() {
        let mut phases = chain(&[0, 1, 2]);
        phases[2].reverse = false;
        phases.insert(3, PhaseKind { place: 2, forward: false, reverse: true });
        let slots = Schedule::FillDrain.slots(&phases, 7);
        assert_eq!(slots.first, [0, 1, 2, 9, 10, 11]);
        assert_eq!(check(&slots, 7), 18);
    }

    #[test]
    fn an_interleaved_ipu_runs_one_phase_of_each_direction_in_a_slot() {
        for places in [&[0, 1, 0, 1][..], &[0, 1, 2, 0, 1, 2], &[0, 0, 1], &[0, 1, 0]] {
            let phases = chain(places);
            let slots = Schedule::Interleaved.slots(&phases, 9);
            check(&slots, 9);
            for slot in slots.stretches(9).iter().flat_map(|s| &s.slots) {
                for place in 0..3 {
                    let of = |f: fn(&PhaseKind) -> bool| {
                        slot.iter().filter(|&&k| phases[k].place == place && f(&phases[k])).count()
                    };
                    assert!(of(|p| p.forward) <= 1 && of(|p| p.reverse) <= 1, "{places:?}");
                }
            }
        }
    }

    #[test]
    fn a_long_pipeline_has_as_many_stretches_as_a_short_one() {
        let phases = chain(&[0, 1, 2, 3]);
        let long = Schedule::OneForwardOneBackward.slots(&phases, 1 << 30).stretches(1 << 30);
        assert_eq!(long.len(), 13);
        assert_eq!(long[6].times, (1 << 30) - 6);
    }
}
