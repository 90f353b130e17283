//! The elements of a variable that the steps of a phase touch.
//!
//! Invariant: elements that are read may be more than those that a run reads; elements that are certainly written are
//! at most those that each run writes. An `out` field counts as written in full.

use super::accesses::{Touch, each_touch};
use crate::elaborator::{Node, NodeKind};
use girder_ir::family::{Domain, FieldPart};
use girder_ir::graph::Graph;
use girder_ir::ids::VarId;
use girder_ir::program::Effect;
use girder_ir::region::Region;

/// Regions of one variable.
pub type Regions = Vec<(VarId, Region)>;

/// Returns the elements of a variable that steps may read.
pub fn read(graph: &Graph, nodes: &[Node], var: VarId) -> Regions {
    let mut all = vec![];
    for node in nodes {
        each_touch(graph, node, false, &mut |touch| match touch {
            Touch::Field { field, domain, reads: true, .. } => {
                let own = field.parts.iter().filter(|p| p.var == var);
                own.for_each(|p| all.extend(around(p, domain).map(|r| (var, r))));
            }
            Touch::View { view, writes: false } => all.extend(view.regions().into_iter().filter(|(v, _)| *v == var)),
            _ => {}
        });
    }
    all
}

/// Returns the elements of a variable that steps certainly write.
pub fn written(graph: &Graph, nodes: &[Node], var: VarId) -> Regions {
    let mut all = vec![];
    let ends = |n: &Node| matches!(n.kind, NodeKind::Effect(Effect::Undef { .. }));
    for node in nodes.iter().filter(|n| !ends(n)) {
        each_touch(graph, node, true, &mut |touch| match touch {
            Touch::Field { field, domain, writes: true, .. } => {
                for part in field.parts.iter().filter(|p| p.var == var) {
                    match part.region(domain) {
                        Some(region) if domain.count() > 0 => all.push((var, region)),
                        Some(_) => {}
                        None => all.extend(part.offset.values(domain).map(|at| (var, part.region_at(at)))),
                    }
                }
            }
            Touch::View { view, writes: true } => all.extend(view.regions().into_iter().filter(|(v, _)| *v == var)),
            _ => {}
        });
    }
    all
}

/// Returns the number of elements of regions, with repetitions.
pub fn count(regions: &[(VarId, Region)]) -> u64 {
    regions.iter().map(|(_, r)| r.dims.iter().map(|d| d.0).product::<u64>()).fold(0, u64::saturating_add)
}

/// Returns a region that holds the elements of a part over all instances; `None` without instances.
fn around(part: &FieldPart, domain: &Domain) -> Option<Region> {
    let (least, greatest) = part.offset.bounds(domain)?;
    part.region(domain).or_else(|| {
        let (lo, hi) = part.region_at(0).hull();
        let (lo, hi) = (lo + least, hi + greatest);
        Some(Region::new(lo, [((hi - lo) as u64 + 1, 1)]))
    })
}

/// Elements as ascending intervals that are apart.
#[derive(Clone, Debug, Default)]
pub struct Intervals(Vec<(u64, u64)>);

impl Intervals {
    /// Returns the elements of regions.
    pub fn of(regions: &[(VarId, Region)]) -> Intervals {
        let mut all = vec![];
        regions.iter().for_each(|(var, r)| r.list(*var, &mut all));
        Intervals::joined(all.into_iter().map(|(_, from, to)| (from, to)).collect())
    }

    /// Adds the elements of regions.
    pub fn add(&mut self, regions: &[(VarId, Region)]) {
        self.0.extend(Intervals::of(regions).0);
        *self = Intervals::joined(std::mem::take(&mut self.0));
    }

    /// Returns whether it has all elements of another set.
    pub fn contains(&self, other: &Intervals) -> bool {
        other.0.iter().all(|&(from, to)| {
            let k = self.0.partition_point(|i| i.1 < to);
            self.0.get(k).is_some_and(|i| i.0 <= from)
        })
    }

    fn joined(mut all: Vec<(u64, u64)>) -> Intervals {
        all.sort_unstable();
        let mut joined: Vec<(u64, u64)> = vec![];
        for (from, to) in all {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        Intervals(joined)
    }
}
