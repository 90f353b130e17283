//! Random small graphs: element types of 1, 4 and 8 bytes, all forms of mapping, strided, reversed, repeated and joined
//! views, fields of every direction on any tile.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeSet, HashSet};

/// A stream of small decisions.
pub(super) struct Choices(pub Vec<u32>, pub usize);

impl Choices {
    pub fn below(&mut self, n: u64) -> u64 {
        self.1 += 1;
        self.0[(self.1 - 1) % self.0.len()] as u64 % n
    }

    fn mapping(&mut self, elements: u64) -> Mapping {
        match self.below(5) {
            0 => Mapping::One(self.below(4) as u32),
            1 => {
                let grain = 1 + self.below(4) as u32;
                let tiles = (1 + self.below(3) as u32).min((elements as u32).div_ceil(grain));
                Mapping::Linear { first: self.below(2) as u32, tiles, grain }
            }
            2 => {
                let tiles = TileMap::Table((0..elements).map(|e| (e % 3) as u32).collect());
                Mapping::Separable { domain: Domain(smallvec![elements as u32]), tiles }
            }
            _ => {
                let (mut end, mut tile): (Vec<u32>, Vec<u32>) = (vec![], vec![]);
                while end.last() != Some(&(elements as u32)) {
                    let next = end.last().unwrap_or(&0) + 1 + self.below(7) as u32;
                    end.push(next.min(elements as u32));
                    tile.push((tile.last().unwrap_or(&0) + 1 + self.below(3) as u32) % 4);
                }
                Mapping::Runs { end: end.into(), tile: tile.into() }
            }
        }
    }

    /// Blocks of a matrix: rows are cut at some places, and in each band of rows columns at places of its own or
    /// everywhere the same.
    fn blocks(&mut self, rows: u64, cols: u64) -> Mapping {
        let cut = |c: &mut Choices, n: u64| -> Vec<u64> {
            let mut edges: Vec<u64> = (0..1 + c.below(3)).map(|_| c.below(n)).chain([0, n]).collect();
            edges.sort_unstable();
            edges.dedup();
            edges
        };
        let (bands, same_cut, first) = (cut(self, rows), self.below(3) > 0, cut(self, cols));
        let mut runs = vec![];
        for band in bands.windows(2) {
            let columns = if same_cut { first.clone() } else { cut(self, cols) };
            let tiles: Vec<u32> = columns.iter().map(|_| self.below(4) as u32).collect();
            for row in band[0]..band[1] {
                let run = |(w, &tile): (&[u64], &u32)| (row * cols + w[0], row * cols + w[1], tile);
                runs.extend(columns.windows(2).zip(&tiles).map(run));
            }
        }
        Mapping::from_runs(runs)
    }

    /// What n instances read of a matrix: views of one signature.
    fn reads(&mut self, of: &View, n: u64) -> Vec<View> {
        let shape = of.shape();
        let (rows, cols) = (shape[0], shape[1]);
        let (form, flips) = (self.below(8), self.below(2) == 1);
        let (height, width) = (1 + self.below(rows), 1 + self.below(cols));
        let (count, step) = (1 + self.below(rows * cols / 2), 1 + self.below(3) as i64);
        let count = count.min((rows * cols - 1) / step as u64 + 1);
        let last = rows * cols - ((count - 1) * step as u64 + 1);
        let view = |c: &mut Choices| match form {
            0 => of.index(0, c.below(rows)),
            1 => of.index(1, c.below(cols)),
            2 => of.flatten().slice(0, c.below(last + 1), count, step),
            3 => of.flatten(),
            4 => of.index(0, c.below(rows)).broadcast(3, 0).flatten(),
            5 => of
                .slice(0, c.below(rows - height + 1), height, 1)
                .slice(1, c.below(cols - width + 1), width, 1)
                .flatten(),
            6 => of.slice(0, 0, height, 1).slice(1, c.below(cols - width + 1), width, 1).reverse(0).flatten(),
            _ => View::concat(&[of.index(1, c.below(cols)), of.index(0, 0)], 0),
        };
        let flipped = |v: View| if flips { v.reverse(0) } else { v };
        (0..n).map(|_| flipped(view(self))).collect()
    }

    /// Disjoint views, of one signature, of a matrix whose rows (or columns) are as many as there are instances.
    fn writes(&mut self, of: &View, n: u64) -> Vec<View> {
        let (axis, form) = if of.shape()[0] == n { (0, self.below(3)) } else { (1, self.below(3)) };
        let view = |i: u64| {
            let row = of.index(axis, i);
            let len = row.len();
            match form {
                0 => row,
                1 => row.reverse(0),
                _ => View::concat(&[row.slice(0, len / 2, len - len / 2, 1), row.slice(0, 0, len / 2, 1)], 0),
            }
        };
        (0..n).map(view).collect()
    }

    fn matrix(&mut self, b: &mut Build, ty: ElemType, rows: u64, cols: u64) -> View {
        let mapping = if self.below(2) == 0 { self.blocks(rows, cols) } else { self.mapping(rows * cols) };
        b.var(ty, &[rows, cols], mapping)
    }
}

pub(super) fn graph(c: &mut Choices) -> Build {
    let mut b = Build::new();
    let (ipus, tiles) = [(1, 4), (2, 2), (1, 12), (3, 4)][c.below(4) as usize];
    b.machine = b.machine.resized(ipus, tiles);
    b.machine.memory.store_bytes = [1, 4, 8][c.below(3) as usize];
    let types = [ElemType::U8, ElemType::Bool, ElemType::F32, ElemType::F64];
    let (ty, out) = (types[c.below(4) as usize], types[c.below(4) as usize]);
    let (rows, cols) = (2 + c.below(9), 2 + c.below(9));
    let a = c.matrix(&mut b, ty, rows, cols);
    let written: Vec<View> = (0..2).map(|_| family(c, &mut b, &a, (ty, out))).collect();
    // Mostly the copy has nothing to do with the set, else it reads or writes what a vertex may write.
    let src = c.reads(&a, 1).remove(0);
    let z = written[0].flatten();
    let room = z.len() >= src.len();
    let shared = if room { z.slice(0, c.below(z.len() - src.len() + 1), src.len(), 1) } else { src.clone() };
    let dst = c.matrix(&mut b, ty, 2, src.len()).index(0, c.below(2));
    let (dst, src) = match c.below(6) {
        0 if room => (shared, src),
        1 if room => (dst, shared),
        2 => (dst.reverse(0), src),
        _ => (dst, src),
    };
    b.copy(&dst, &src);
    b.program(&[c.below(8) == 0, c.below(8) == 0]);
    b
}

/// Returns whether neither the copy nor the compute set touches what the other writes, element by element.
fn is_apart(graph: &Graph) -> bool {
    let (mut read, mut written) = (HashSet::new(), HashSet::new());
    for family in graph.families.values() {
        for field in &family.fields {
            let is_read = graph.codelets[family.codelet].fields[field.field].dir == Dir::In;
            for instance in 0..family.domain.count() {
                let elements = field.view(&family.domain, instance);
                if is_read { &mut read } else { &mut written }.extend(elements.elements());
            }
        }
    }
    let copy = graph.copies.values().flat_map(|c| &c.families).next().unwrap();
    let (dst, src) = (copy.dst.view(&copy.domain, 0), copy.src.view(&copy.domain, 0));
    !dst.elements().any(|e| read.contains(&e) || written.contains(&e)) && !src.elements().any(|e| written.contains(&e))
}

/// Returns the IPUs of the elements that the copy touches, and those of all elements of its variables.
fn ipus_of_copy(planned: &Planned, machine: &Machine) -> [BTreeSet<u32>; 2] {
    let copy = &planned.copies.values().next().unwrap().families[0];
    let views = [copy.dst.view(&copy.domain, 0), copy.src.view(&copy.domain, 0)];
    let of = |var: VarId, element: Option<u64>| -> Vec<u32> {
        let len = planned.vars[var].len();
        let runs = planned.placement.vars[var].as_ref().unwrap().runs(len);
        let holds = |run: &(u64, u64, u32)| element.is_none_or(|e| run.0 <= e && e < run.1);
        runs.filter(holds).map(|run| machine.ipu_of(run.2)).collect()
    };
    let touched = views.iter().flat_map(View::elements).flat_map(|(var, e)| of(var, Some(e))).collect();
    [touched, views.iter().flat_map(View::vars).flat_map(|var| of(var, None)).collect()]
}

fn ipus_of_set(planned: &Planned, machine: &Machine) -> BTreeSet<u32> {
    let set = planned.sets.values().next().unwrap();
    let tiles = |&id: &FamilyId| {
        let map = planned.placement.families[id].as_ref().unwrap();
        map.iter(&planned.families[id].domain).collect::<Vec<u32>>()
    };
    set.families.iter().flat_map(tiles).map(|tile| machine.ipu_of(tile)).collect()
}

/// Adds vertices that read `a` and write two fresh matrices, the second of which is given back.
fn family(c: &mut Choices, b: &mut Build, a: &View, (ty, out): (ElemType, ElemType)) -> View {
    let n = 2 + c.below(12);
    let width = 2 + c.below(9);
    let (y, z) = match c.below(2) {
        0 => (c.matrix(b, out, n, width), c.matrix(b, ty, n, width)),
        _ => (c.matrix(b, out, width, n), c.matrix(b, ty, width, n)),
    };
    let dirs = [Dir::Out, Dir::InOut];
    let (d, e) = (dirs[c.below(2) as usize], dirs[c.below(2) as usize]);
    let codelet = b.codelet(&[(Dir::In, ty, 1), (Dir::In, ty, 1), (d, out, 1), (e, ty, 1)], c.below(2) == 1);
    let views = [c.reads(a, n), c.reads(a, n), c.writes(&y, n), c.writes(&z, n)];
    let (blocks, all) = (c.below(2) == 0, b.machine.tiles() as u64);
    let tiles: Vec<u32> = (0..n).map(|i| if blocks { i * all / n } else { c.below(all) } as u32).collect();
    b.set(codelet, &views, &tiles);
    z
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn plans_hold(choices in proptest::collection::vec(any::<u32>(), 20..80)) {
        let build = graph(&mut Choices(choices, 0));
        let machine = build.machine.clone();
        let planned = build.plan();
        let (session, mut diagnostics) = (Session::default(), Diagnostics::default());
        let mut cx = PassContext::new(&machine, &session, &mut diagnostics);
        let scheduled = crate::schedule_exchange::ScheduleExchange::run(planned, &mut cx).unwrap();
        let verdict = crate::schedule_exchange::verify(&scheduled.planned, &machine, &scheduled.schedule);
        prop_assert_eq!(verdict, Ok(()));
    }

    #[test]
    fn a_set_carries_the_copy_before_it_if_neither_touches_what_the_other_writes(
        choices in proptest::collection::vec(any::<u32>(), 20..80),
    ) {
        let build = graph(&mut Choices(choices, 0));
        let (apart, next) = (is_apart(&build.graph), build.graph.steps.len() == 3);
        let machine = build.machine.clone();
        let planned = build.plan();
        let carries = planned.plan.sets.values().next().unwrap().carries;
        // A copy that shares no IPU with the set stays a step of its own. The IPUs of a copy are those between its
        // least and its greatest element, so some that the copy does not touch may count.
        let [touched, near] = ipus_of_copy(&planned, &machine);
        let of_set = ipus_of_set(&planned, &machine);
        prop_assert!(carries.is_none() || (apart && next && !near.is_disjoint(&of_set)));
        prop_assert!(carries.is_some() || !(apart && next && !touched.is_disjoint(&of_set)));
        prop_assert_eq!(planned.plan.copies.values().next().unwrap() == &StepPlan::default(), carries.is_some());
    }

    #[test]
    fn nothing_in_a_plan_is_superfluous(choices in proptest::collection::vec(any::<u32>(), 20..80), which: usize) {
        let build = graph(&mut Choices(choices, 0));
        let machine = build.machine.clone();
        let mut planned = build.plan();
        let (set, copy) = (planned.sets.keys().next().unwrap(), planned.copies.keys().next().unwrap());
        let Plan { sets, copies, .. } = &mut planned.plan;
        let (set, copy) = (&mut sets[set], &mut copies[copy]);
        let phases = [&mut set.before, &mut set.after, &mut copy.before];
        let total: usize = phases.iter().map(|p| p.before.len() + p.transfers.len() + p.after.len()).sum();
        prop_assume!(total > 0);
        let mut k = which % total;
        for phase in phases {
            let (gathers, transfers) = (phase.before.len(), phase.transfers.len());
            match k {
                _ if k < gathers => drop(phase.before.remove(k)),
                _ if k < gathers + transfers => drop(phase.transfers.remove(k - gathers)),
                _ if k < gathers + transfers + phase.after.len() => drop(phase.after.remove(k - gathers - transfers)),
                _ => {
                    k -= gathers + transfers + phase.after.len();
                    continue;
                }
            }
            break;
        }
        prop_assert!(verify(&planned.race_free, &machine, &planned.plan).is_err());
    }
}
