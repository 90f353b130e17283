//! The library's cut of layers into stages, against all cuts.

use crate::numbers::Random;
use girder_tests::Program;

/// Returns the least cost of the greatest stage over all cuts into `count` stages that fit, if there is one.
fn least(layers: &[(u64, u64)], count: usize, room: u64) -> Option<u64> {
    let of = |stage: &[(u64, u64)]| {
        let held: u64 = stage.iter().map(|l| l.1).sum();
        (held <= room).then(|| stage.iter().map(|l| l.0).sum::<u64>())
    };
    if count == 1 {
        return of(layers);
    }
    let cuts = 1..=layers.len() + 1 - count;
    cuts.filter_map(|at| Some(of(&layers[..at])?.max(least(&layers[at..], count - 1, room)?))).min()
}

#[test]
fn the_greatest_stage_costs_as_little_as_it_can() {
    let mut random = Random(0x51a6_e5ad);
    let mut refused = 0;
    for _ in 0..60 {
        let n = 1 + random.below(8);
        let count = 1 + random.below(n);
        let layers: Vec<(u64, u64)> = (0..n).map(|_| (random.below(9) as u64, 1 + random.below(9) as u64)).collect();
        let room = 9 + random.below(12) as u64;
        let list = |of: fn(&(u64, u64)) -> u64| format!("{:?}", layers.iter().map(of).collect::<Vec<_>>());
        let text = format!(
            "use stages;
             let cut = stages.stages(list k in 0..{n} {{ k }}, {count}, costs: {}, bytes: {}, room: {room});
             var first: i32[{count}] = list k in 0..{count} {{ cut[k][0] }};
             var len: i32[{count}] = list k in 0..{count} {{ len(cut[k]) }};
             program main() {{ first <- first + 0; len <- len + 0; }}",
            list(|l| l.0),
            list(|l| l.1),
        );
        let Some(best) = least(&layers, count, room) else {
            refused += 1;
            let codes = Program::text(&text).stage_and_codes(girder::Stage::Graph).1;
            assert_eq!(codes, ["elaborate::assertion"], "{text}");
            continue;
        };
        let outcome = Program::text(&text).run_everywhere();
        let (first, len) = (outcome.get::<i32>("first"), outcome.get::<i32>("len"));
        let mut at = 0;
        let mut greatest = 0;
        for (&first, &len) in first.iter().zip(&len) {
            assert!(first as usize == at && len > 0, "{text}");
            let stage = &layers[at..at + len as usize];
            assert!(stage.iter().map(|l| l.1).sum::<u64>() <= room, "{text}");
            greatest = greatest.max(stage.iter().map(|l| l.0).sum());
            at += len as usize;
        }
        assert_eq!((at, greatest), (n, best), "{text}");
    }
    assert!((3..40).contains(&refused), "{refused}");
}
