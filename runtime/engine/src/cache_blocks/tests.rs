use super::*;
use crate::arena::Arena;
use crate::kernel::Launch;
use crate::kernel::Offsets;
use crate::kernel::tests::{BYTES, mixing};
use crate::pool::Work;
use crate::task::Tasks;
use girder_ir::ids::FamilyId;
use girder_source::Session;
use proptest::prelude::*;

/// The number of rows of a variable.
const ROWS: i64 = 240;
const VARIABLE: i64 = ROWS * BYTES;
const VARIABLES: i64 = 4;
const ARENA: u64 = (VARIABLE * VARIABLES) as u64;

/// One task: from one variable to another, without `skip` rows at the ends of each.
#[derive(Clone, Debug)]
struct Step {
    from: i64,
    to: i64,
    skip: (i64, i64),
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Vertices,
    Backwards,
    Table,
    /// A table that visits rows by multiples of 11.
    Mixed,
    Copy,
    /// Every second row.
    Strided,
}

fn step() -> impl Strategy<Value = Step> {
    let kinds = [Kind::Vertices, Kind::Vertices, Kind::Table, Kind::Copy, Kind::Backwards, Kind::Mixed, Kind::Strided];
    let skip = prop_oneof![3 => Just((0, 0)), 1 => (0..3i64, 0..3i64)];
    let kind = proptest::sample::select(kinds.to_vec());
    (0..VARIABLES, 1..VARIABLES, skip, kind).prop_map(|(from, ahead, skip, kind)| Step {
        from,
        to: (from + ahead) % VARIABLES,
        skip,
        kind,
    })
}

fn task(step: &Step) -> Task {
    let rows = ROWS - step.skip.0.max(step.skip.1);
    let (from, to) = (VARIABLE * step.from + BYTES * step.skip.0, VARIABLE * step.to + BYTES * step.skip.1);
    let lines =
        |start: [i64; 2], step: i64| Offsets::Affine { start: start.map(|s| s as u64).into(), step: vec![step; 2] };
    let table = |row: &dyn Fn(i64) -> i64| {
        let entries = (0..rows).flat_map(|i| [from, to].map(|at| (at + BYTES * row(i)) as u32));
        Offsets::Table32(entries.collect())
    };
    let offsets = match step.kind {
        Kind::Vertices => lines([from, to], BYTES),
        Kind::Backwards => lines([from + BYTES * (rows - 1), to + BYTES * (rows - 1)], -BYTES),
        Kind::Table => table(&|i| i),
        // 11 divides none of the possible numbers of rows, so that every row is visited once.
        Kind::Mixed => table(&|i| 11 * i % rows),
        Kind::Copy => {
            let m = Move { from, to, bytes: (BYTES * rows) as u32, count: 1, from_step: 0, to_step: 0 };
            return Task::moves(vec![m], 1, ARENA).unwrap();
        }
        Kind::Strided => {
            let (bytes, count) = (BYTES as u32, rows as u32 / 2);
            let m = Move { from, to, bytes, count, from_step: 2 * BYTES, to_step: 2 * BYTES };
            return Task::moves(vec![m], 1, ARENA).unwrap();
        }
    };
    let kernel = mixing(matches!(step.kind, Kind::Table | Kind::Mixed));
    let launch = Launch::new(kernel, rows as u64, offsets, vec![], 0, ARENA).unwrap();
    let group = Group {
        launch,
        family: FamilyId::from_u32(0),
        family_size: rows as u64,
        order: 0,
        instances: None,
        scratch: None,
        // The number is large enough for several threads.
        elements: 1000,
    };
    Task::vertices(vec![group], 1)
}

/// Fuses steps for some threads; returns the tasks and the order in which to run them.
fn fused(steps: &[Step], threads: usize) -> (Vec<Task>, Vec<usize>) {
    let mut tasks: Vec<Task> = steps.iter().map(task).collect();
    let run: Vec<usize> = (0..tasks.len()).collect();
    let (mut order, mut at) = (Vec::new(), 0);
    for (count, together) in block_tasks(&tasks, &run, threads, ARENA).unwrap() {
        match together {
            Some(task) => {
                order.push(tasks.len());
                tasks.push(task);
            }
            None => order.push(at),
        }
        at += count;
    }
    assert_eq!(at, steps.len());
    (tasks, order)
}

/// Returns the memory after tasks have run, with the blocks of each in the order of `rank`.
fn after(mut tasks: Vec<Task>, order: &[usize], rank: impl Fn(usize) -> u64) -> Vec<u8> {
    for task in &mut tasks {
        if let Task::CacheBlocks { parts, .. } = task {
            *parts = parts.iter().flat_map(|p| p.clone().map(|s| s..s + 1)).collect();
            parts.sort_by_key(|p| rank(p.start));
        }
    }
    let arena = Arena::zeroed(ARENA, 1, ARENA).unwrap();
    let start: Vec<u8> = (0..ARENA).map(|b| (b * 31 % 251) as u8).collect();
    arena.write(0, 1, 1, &start);
    let tasks = Tasks::new(arena, tasks, 1, &Session::default());
    for &task in order {
        (0..tasks.parts(task)).for_each(|part| tasks.run(task, part));
    }
    let mut bytes = vec![0; ARENA as usize];
    tasks.arena().read(0, 1, 1, &mut bytes);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn blocks_in_any_order_do_what_the_tasks_do_one_after_another(
        steps in proptest::collection::vec(step(), 1..6), threads in 2usize..7, seed: u64,
    ) {
        let order: Vec<usize> = (0..steps.len()).collect();
        let expected = after(steps.iter().map(task).collect(), &order, |_| 0);
        let (tasks, order) = fused(&steps, threads);
        let rank = |block: usize| (block as u64 + 1).wrapping_mul(seed | 1).rotate_left(17);
        prop_assert!(after(tasks, &order, rank) == expected, "{order:?}");
    }
}

fn at(from: i64, to: i64, skip: (i64, i64), kind: Kind) -> Step {
    Step { from, to, skip, kind }
}

#[test]
fn element_wise_chains_and_the_copies_between_them_run_at_once() {
    let chain = [
        at(0, 1, (0, 0), Kind::Vertices),
        at(1, 2, (0, 0), Kind::Table),
        at(2, 0, (0, 0), Kind::Copy),
        at(0, 3, (0, 0), Kind::Vertices),
    ];
    let (tasks, order) = fused(&chain, 3);
    assert_eq!(order, [4]);
    let Task::CacheBlocks { members, parts } = &tasks[4] else { panic!("one task is several") };
    assert_eq!((members.len(), parts.as_slice()), (4, [0..1, 1..2, 2..3].as_slice()));
}

#[test]
fn tasks_that_touch_neighbouring_rows_run_one_after_another() {
    // Blocks are cut where they are read.
    let shifted = [at(0, 1, (0, 0), Kind::Vertices), at(1, 2, (1, 0), Kind::Vertices)];
    assert_eq!(fused(&shifted, 2).1, [2]);
    let there_and_back = [at(0, 1, (0, 0), Kind::Vertices), at(1, 0, (1, 0), Kind::Vertices)];
    assert_eq!(fused(&there_and_back, 2).1, [0, 1]);
    let overwritten = [at(1, 0, (1, 0), Kind::Vertices), at(0, 1, (0, 0), Kind::Vertices)];
    assert_eq!(fused(&overwritten, 2).1, [0, 1]);
    let scattered = [at(0, 1, (0, 0), Kind::Vertices), at(1, 2, (0, 0), Kind::Mixed)];
    assert_eq!(fused(&scattered, 2).1, [0, 1]);
}

#[test]
fn little_work_is_not_cut() {
    let chain = [at(0, 1, (0, 0), Kind::Vertices), at(1, 2, (0, 0), Kind::Vertices)];
    assert_eq!(fused(&chain, 1).1, [0, 1]);
}
