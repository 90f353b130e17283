//! Random tables survive the conversion to rows and back.

use super::*;
use girder_ir::ids::CopyId;
use girder_ir::ids::VarId;
use girder_ir::plan::{Buffer, FieldLocation, FieldLocations, Grouping, Phase, StepPlan, Transfer};
use girder_ir::plan::{Loc, LocalCopy, Object};
use girder_ir::schedule::TransferSlice;
use girder_ir::schedule::{PhaseSchedule, Served, StepSchedule};
use proptest::prelude::*;

/// A stream of random decisions.
struct Choices(Vec<u32>, usize);

impl Choices {
    fn below(&mut self, n: u32) -> u32 {
        self.1 += 1;
        self.0[(self.1 - 1) % self.0.len()] % n
    }

    /// Returns a random location on a tile; without a tile, on any.
    fn loc(&mut self, buffers: &[Buffer], tile: Option<u32>) -> Loc {
        let offset = 4 * self.below(8);
        let own: Vec<usize> = (0..buffers.len()).filter(|&b| tile.is_none_or(|t| buffers[b].tile == t)).collect();
        if !own.is_empty() && self.below(2) == 0 {
            let b = own[self.below(own.len() as u32) as usize];
            return Loc { tile: buffers[b].tile, object: Object::Buffer(b as u32), offset };
        }
        let tile = tile.unwrap_or_else(|| self.below(8));
        Loc { tile, object: Object::Var(VarId::from_u32(self.below(2))), offset }
    }

    fn copies(&mut self, buffers: &[Buffer]) -> Vec<LocalCopy> {
        let copy = |c: &mut Self| {
            let (from, count) = (c.loc(buffers, None), 1 + c.below(3));
            let (to, bytes) = (c.loc(buffers, Some(from.tile)), 1 + c.below(8));
            LocalCopy { from, to, count, bytes, from_step: c.below(64) as i32 - 32, to_step: 8 * c.below(4) as i32 }
        };
        (0..self.below(6)).map(|_| copy(self)).collect()
    }

    /// Returns a random phase and its schedule.
    fn phase(&mut self, buffers: &[Buffer]) -> (Phase, PhaseSchedule) {
        let mut grouping = Grouping::default();
        let mut schedule = PhaseSchedule::default();
        let before = self.copies(buffers);
        let mut transfers = vec![];
        // Phases of many transfers have other rows.
        let most = [40, 200][self.below(2) as usize];
        for t in 0..self.below(most) {
            let (from, words, first) = (self.loc(buffers, None), 2 + self.below(3), self.below(6));
            let to: Vec<Loc> = (first..first + 1 + self.below(4)).map(|tile| self.loc(buffers, Some(tile))).collect();
            transfers.push(Transfer { from, to: grouping.to(&to), words });
            let slice = |first, words, start, to| TransferSlice {
                transfer: t,
                first,
                words,
                start,
                to,
                paired: start % 2 == 1,
            };
            match self.below(3) {
                0 => schedule.slices.push(slice(0, words, self.below(50), Served::All)),
                1 => {
                    let served = Served::Some { first: schedule.served.len() as u32, count: 1 };
                    schedule.served.push(self.below(3));
                    let start = self.below(50);
                    schedule.slices.push(slice(0, 1, start, served));
                    schedule.slices.push(slice(1, words - 1, start + 1 + self.below(50), Served::All));
                }
                _ => {}
            }
        }
        schedule.cycles = (0..self.below(4)).map(|ipu| (ipu, self.below(2))).collect();
        schedule.link_cycles = self.below(2);
        let groups = grouping.into_groups();
        (Phase { before, transfers, groups, after: self.copies(buffers) }, schedule)
    }

    fn locations(&mut self, instances: u32, buffers: &[Buffer]) -> FieldLocations {
        let mut all = FieldLocations::default();
        for _ in 0..instances {
            match self.below(2) {
                0 if !buffers.is_empty() => {
                    let buffer = self.below(buffers.len() as u32);
                    all.push(FieldLocation::Buffer { buffer, offset: 4 * self.below(3) }, &[]);
                }
                _ => all.push(FieldLocation::InPlace(8 * self.below(4)), &[4 * self.below(2) as i32]),
            }
        }
        all
    }
}

proptest! {
    #[test]
    fn rows_of_tables_read_back(choices in proptest::collection::vec(any::<u32>(), 20..400)) {
        let mut c = Choices(choices, 0);
        let buffers: Vec<Buffer> =
            (0..c.below(30)).map(|_| Buffer { tile: c.below(8), bytes: 4 * c.below(4) }).collect();
        let (before, first) = c.phase(&buffers);
        let (after, second) = c.phase(&buffers);
        let instances = 1 + c.below(40);
        let locations = vec![vec![c.locations(instances, &buffers), c.locations(instances, &buffers)]];
        let carries = (c.below(2) == 0).then(|| CopyId::from_u32(c.below(3)));
        let plan = StepPlan { buffers, before, after, carries };
        let schedule = StepSchedule { before: first.into(), after: second.into() };
        for schedule in [None, Some(schedule)] {
            let by_family: Vec<&[FieldLocations]> = locations.iter().map(|l| &l[..]).collect();
            let rows = fold(to_rows(&plan, &by_family, schedule.as_ref()));
            let tables = from_rows(&rows, &[(instances as u64, 2)]).unwrap();
            prop_assert_eq!(&tables.plan, &plan);
            prop_assert_eq!(&tables.locations, &locations);
            prop_assert_eq!(tables.schedule.unwrap_or_default(), schedule.unwrap_or_default());
        }
    }
}
