//! A view as a set of elements.

use super::{View, ViewPart};
use crate::ids::VarId;
use crate::region::{Region, any_repeat, least_common};

impl View {
    /// Returns its parts as sets of elements.
    pub fn regions(&self) -> Vec<(VarId, Region)> {
        self.parts.iter().map(|p| (p.var, p.region())).collect()
    }

    /// Returns whether it names an element twice.
    pub fn has_aliases(&self) -> bool {
        any_repeat(&self.regions())
    }
}

impl ViewPart {
    /// Returns its elements as a set.
    pub fn region(&self) -> Region {
        Region::new(self.offset, self.len.iter().map(|&n| n as u64).zip(self.stride.iter().copied()))
    }
}

/// Returns the least element that two views both name.
pub fn overlap(a: &View, b: &View) -> Option<(VarId, u64)> {
    least_common(&a.regions(), &b.regions())
}
