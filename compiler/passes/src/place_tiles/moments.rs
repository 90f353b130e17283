//! The moments at which the memory of tiles is counted. Temporaries that are never live together share memory.
//!
//! Invariant: every temporary is counted at one moment at least, and every variable that is always live at all moments.

use crate::liveness::Liveness;
use cranelift_entity::{EntityRef, SecondaryMap};
use girder_ir::graph::{Graph, VarClass};
use girder_ir::ids::VarId;

/// The number of moments. Temporaries that are live at no other moment are counted at the last one.
pub(super) const MOMENTS: usize = 8;

/// The bytes of a tile at each moment.
pub(super) type AtMoments = [u64; MOMENTS];

/// The moments at which memory is counted, and the variables that live at each.
pub(super) struct Moments {
    /// For each variable: whether it lives at a moment, as bits.
    live: SecondaryMap<VarId, u8>,
}

impl Moments {
    /// Chooses the moments. Each is the point with the most bytes of temporaries that are live at no moment chosen
    /// before.
    pub(super) fn of(graph: &Graph) -> Moments {
        let ranges = Liveness::of(graph).ranges;
        let mut live: SecondaryMap<VarId, u8> = SecondaryMap::new();
        let mut left = vec![];
        for (id, var) in &graph.vars {
            match ranges.get(id.index()).cloned().flatten().filter(|_| var.class == VarClass::Temp) {
                Some(range) => left.push((id, var.bytes(), range)),
                None => live[id] = u8::MAX,
            }
        }
        let temporaries = left.clone();
        for moment in 0..MOMENTS {
            let last = moment + 1 == MOMENTS;
            // The bytes change where a range begins or ends.
            let mut changes: Vec<(u32, bool, u64)> = vec![];
            for (_, bytes, range) in &left {
                changes.extend([(range.start, true, *bytes), (range.end, false, *bytes)]);
            }
            // At one point, ranges end before others begin.
            changes.sort_unstable();
            let (mut sum, mut most, mut at) = (0u64, 0, 0);
            for (point, begins, bytes) in changes {
                sum = if begins { sum.saturating_add(bytes) } else { sum.saturating_sub(bytes) };
                if sum > most {
                    (most, at) = (sum, point);
                }
            }
            for (id, _, range) in &temporaries {
                live[*id] |= u8::from(range.contains(&at)) << moment;
            }
            left.retain(|(_, _, range)| !range.contains(&at));
            if last {
                left.iter().for_each(|(id, ..)| live[*id] |= 1 << moment);
            }
        }
        Moments { live }
    }

    /// Returns a mask for each moment: all bits are set if a variable is live at the moment, otherwise none.
    pub(super) fn of_var(&self, var: VarId) -> AtMoments {
        std::array::from_fn(|moment| if self.live[var] >> moment & 1 == 1 { u64::MAX } else { 0 })
    }

    /// Returns the most bytes of all variables that live together.
    pub(super) fn most_bytes(&self, graph: &Graph) -> u64 {
        let mut sums = [0; MOMENTS];
        graph.vars.iter().for_each(|(id, var)| add(&self.of_var(id), var.bytes(), &mut sums));
        sums.into_iter().max().unwrap_or(0)
    }
}

/// Adds bytes of a variable at the moments at which it lives.
pub(super) fn add(live: &AtMoments, bytes: u64, to: &mut AtMoments) {
    for (sum, mask) in to.iter_mut().zip(live) {
        *sum += bytes & mask;
    }
}
