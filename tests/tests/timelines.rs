//! What processors do when: timelines of pipelines, of loops that are too long for one, and of replicas.

use girder_engine::Mode;
use girder_profile::{Interval, Profile, Timeline};
use girder_tests::Program;

/// Three stages of which the second takes longest, on processors 0 to 2 of four.
fn staged(schedule: &str, count: u32) -> Program {
    let text = format!(
        "param w: f32[64, 64] = 0.01;
        var x: f32[8, 64] = 1.0;
        program main() {{
            repeat {count} {{
                let (loss, g) = pipeline(micro_batches: 5, schedule: \"{schedule}\") {{
                    let a = stage on ipu(0) {{ tanh(x) }};
                    let b = stage on ipu(1) {{ tanh(tanh(a @ w) @ w) }};
                    let loss = stage on ipu(2) {{ mean(b * b) }};
                    (loss, grad(loss, wrt: w))
                }};
                w <- w - 0.1 * g;
            }}
        }}"
    );
    Program::text(text).target("small-4")
}

/// Checks that intervals of a processor follow one another, and that they are what it is busy with.
fn holds_together(profile: &Profile, timeline: &Timeline) {
    assert!(!timeline.is_cut);
    for (row, processor) in timeline.rows.iter().zip(&profile.processors) {
        assert!(row.iter().all(|i| i.start < i.end && i.end <= profile.cycles));
        assert!(row.windows(2).all(|w| w[0].end < w[1].start || (w[0].end == w[1].start && w[0].name != w[1].name)));
        assert_eq!(row.iter().map(|i| i.end - i.start).sum::<u64>(), processor.busy);
    }
}

/// Returns the intervals of a program on a processor.
fn of<'t>(timeline: &'t Timeline, ipu: usize, name: &str) -> Vec<&'t Interval> {
    timeline.rows[ipu].iter().filter(|i| timeline.names[i.name as usize] == name).collect()
}

#[test]
fn a_pipeline_fills_and_drains() {
    for schedule in ["1f1b", "gpipe", "sharded"] {
        let program = staged(schedule, 2);
        let (profile, timeline) = program.estimate_with_timeline("main");
        holds_together(&profile, &timeline);
        let (ran, found) = program.profile_with_timeline(Mode::Fast, 2);
        assert_eq!((ran.cycles, &found.rows), (profile.cycles, &timeline.rows), "{schedule}");
        let overlap = |x: &Interval, y: &Interval| x.start < y.end && y.start < x.end;
        if schedule == "sharded" {
            // One stage works at a time, and its steps have names of their own.
            assert!(profile.stages.is_none() && of(&timeline, 0, "main.tanh").len() == 10);
            continue;
        }
        // Each of ten micro-batches is in a stage forwards and backwards.
        let (a, b, back) = (of(&timeline, 0, "main.a"), of(&timeline, 1, "main.b"), of(&timeline, 1, "main.grad.b"));
        assert_eq!((a.len(), b.len(), back.len()), (10, 10, 10), "{schedule}");
        assert!(of(&timeline, 1, "main.a").is_empty() && of(&timeline, 3, "main.b").is_empty());
        assert!(a.iter().any(|x| b.iter().any(|y| overlap(x, y))), "{schedule}");
        assert!(a[0].end <= b[0].start, "{schedule}: b waits for a");
        let first_back = if schedule == "gpipe" { b[4].end } else { b[0].end };
        assert!(back[0].start >= first_back, "{schedule}");
    }
}

/// The table names the slowest stage, and the share of cycles in which processors wait.
#[test]
fn the_slowest_stage_and_the_bubble_are_told() {
    let (profile, timeline) = staged("1f1b", 1).estimate_with_timeline("main");
    let stages = profile.stages.as_ref().expect("stages");
    assert_eq!(stages.slowest, [1]);
    assert_eq!(stages.programs, ["main.b", "main.grad.b"]);
    let cycles = |name: &str| profile.called.iter().find(|c| c.name == name).map_or(0, |c| c.cycles);
    let all = ["main.a", "main.b", "main.grad.b", "main.loss"].map(cycles);
    assert!(all.iter().all(|&c| c > 0));
    assert_eq!(stages.cycles, all[1] + all[2]);
    assert_eq!(stages.mean, all.iter().sum::<u64>() / 3);
    let busy: u64 = timeline.rows.iter().flatten().map(|i| i.end - i.start).sum();
    // One of the four processors has no stage.
    let bubble = 1.0 - busy as f64 / (3 * profile.cycles) as f64;
    assert!((stages.bubble - bubble).abs() < 1e-9);
    let table = profile.table();
    let line = format!("bubble: processors wait for others in {:.1} % of their cycles", 100.0 * bubble);
    assert!(table.contains(&line), "{table}");
    assert!(table.contains("slowest stage: `main.b` and `main.grad.b` on IPU 1, "), "{table}");
    let ipus = |name: &str| &profile.called.iter().find(|c| c.name == name).expect("a program").ipus;
    assert_eq!((&ipus("main.a")[..], &ipus("main.grad.b")[..], &ipus("main.loss")[..]), (&[0][..], &[1][..], &[2][..]));
    // Without a pipeline there are no stages.
    let plain = Program::text("var x: f32[8]; program main() { x <- x * 2.0; }").target("small-4").estimate("main");
    assert!(plain.stages.is_none() && !plain.table().contains("bubble"));
}

/// Eight blocks in a row and a head, of which the stages on four processors have so many.
fn blocks(cut: [usize; 4]) -> Program {
    let layers: Vec<String> = (0..8).map(|k| format!("nn.dense(32, 32, seed: {k})")).collect();
    let mut first = 0;
    let mut next = |from: &str, count: usize| {
        first += count;
        format!("several(net[{}..{first}], {from})", first - count)
    };
    let stages: Vec<String> = ["x", "a", "b", "c"].iter().zip(cut).map(|(from, count)| next(from, count)).collect();
    Program::text(format!(
        "use nn;
        use random;
        let net = [{}];
        param head: f32[32, 4] = random.normal(seed: 99, scale: 0.2);
        var xs: f32[4, 8, 32] = random.normal(seed: 4);
        var micro: i32;
        fn block(l, x) {{ let h = nn.relu(l.apply(x)); x + h }}
        fn several(layers, x) {{ let mut y = x; for l in layers {{ y = block(l, y); }} y }}
        program main() {{
            let (loss, g) = pipeline(micro_batches: 4) {{
                let a = stage on ipu(0) {{ let x = xs[micro]; micro += 1; {} }};
                let b = stage on ipu(1) {{ {} }};
                let c = stage on ipu(2) {{ {} }};
                let loss = stage on ipu(3) {{ let d = {} @ head; mean(d * d) }};
                (loss, grad(loss, wrt: (net, head)))
            }};
            let d = loss;
            for k in 0..8 {{ net[k].w <- net[k].w - 0.05 * g[0][k].w; }}
            print(d);
        }}",
        layers.join(", "),
        stages[0],
        stages[1],
        stages[2],
        stages[3],
    ))
    .target("small-4")
}

/// The cut that `--stats` names takes about as many cycles as it says, or fewer: the blocks of a stage that is opened
/// bring what they cost where they stand, with copies from the stage before.
#[test]
fn a_more_even_cut_is_told_and_holds() {
    let uneven = blocks([1, 5, 2, 0]).estimate("main");
    let stages = uneven.stages.as_ref().expect("stages");
    let cut = stages.cut.as_ref().expect("a better cut");
    // The calls of `several` in the first and the third stage have one and two blocks; that in the second is opened.
    let mut of_several = [1, 2].into_iter();
    let mut blocks_of = |(name, count): &(String, u32)| match name.as_str() {
        "several" => (0..*count).filter_map(|_| of_several.next()).sum(),
        "several.block" => *count as usize,
        _ => 0,
    };
    let counts: Vec<usize> = cut.stages.iter().map(|s| s.calls.iter().map(&mut blocks_of).sum()).collect();
    assert_eq!(counts.iter().sum::<usize>(), 8, "{cut:?}");
    assert!(counts.iter().all(|n| (1..=3).contains(n)), "{cut:?}");
    assert!(cut.stages.iter().map(|s| s.cycles).max() == Some(cut.cycles) && cut.cycles < stages.cycles);
    let table = uneven.table();
    assert!(table.contains("a more even cut, about "), "{table}");
    assert!(table.contains("several.block × "), "{table}");

    let even = blocks([counts[0], counts[1], counts[2], counts[3]]).estimate("main");
    let found = even.stages.as_ref().expect("stages");
    let (told, found) = (cut.cycles as f64, found.cycles as f64);
    assert!((0.85..1.25).contains(&(told / found)) && found < 0.7 * stages.cycles as f64, "{told} against {found}");
}

/// A counter of micro-batches is written in the superstep of the layer that does not depend on it, which keeps its name
/// in the cut.
#[test]
fn a_layer_that_shares_a_superstep_is_in_the_cut() {
    let layers: Vec<String> = (0..6).map(|k| format!("let n{k} = nn.dense(32, 32, seed: {k});")).collect();
    let program = Program::text(format!(
        "use nn;
        {}
        let net = [n0, n1, n2, n3, n4, n5];
        var xs: f32[4, 24, 32];
        var micro: i32;
        program main() {{
            let (loss, g) = pipeline(micro_batches: 4) {{
                let a = stage on ipu(0) {{ let x = xs[micro]; micro += 1; nn.relu(n0.apply(x)) }};
                let b = stage on ipu(1) {{ nn.relu(n3.apply(nn.relu(n2.apply(nn.relu(n1.apply(a)))))) }};
                let c = stage on ipu(2) {{ nn.relu(n4.apply(b)) }};
                let loss = stage on ipu(3) {{ let d = n5.apply(c); mean(d * d) }};
                (loss, grad(loss, wrt: net))
            }};
            print(loss);
            for k in 0..6 {{ net[k].w <- net[k].w - 0.05 * g[k].w; }}
        }}",
        layers.join("\n")
    ));
    let profile = program.target("small-4").estimate("main");
    let cut = profile.stages.as_ref().and_then(|s| s.cut.as_ref()).expect("a better cut");
    let calls: Vec<&str> = cut.stages.iter().flat_map(|s| &s.calls).map(|c| c.0.as_str()).collect();
    let layers: Vec<&str> = calls.into_iter().filter(|c| c.ends_with(".apply")).collect();
    assert_eq!(layers, ["n0.apply", "n1.apply", "n2.apply", "n3.apply", "n4.apply", "n5.apply"], "{cut:?}");
}

#[test]
fn a_long_run_is_cut_and_replicas_show_the_first() {
    let long = staged("1f1b", 2000);
    let (_, timeline) = long.estimate_with_timeline("main");
    assert!(timeline.is_cut);
    assert_eq!(timeline.rows.iter().map(Vec::len).sum::<usize>(), 20_000);
    let text = "use collectives; var x: f32[64] = 1.0;
        program main() {
            var k: i32 = replica_index * 5 + 1;
            while k > 0 { x <- sin(x); k -= 1; }
            x <- collectives.all_reduce(x);
            x <- cos(x);
        }";
    let (profile, timeline) = Program::text(text).target("small-4").replicas(4).profile_with_timeline(Mode::Fast, 1);
    let row = &timeline.rows[0];
    assert!(row.windows(2).all(|w| w[0].end <= w[1].start));
    assert_eq!(row.last().map(|i| i.end), Some(profile.cycles));
    // The first replica leaves its loop long before the last one, and waits for it.
    let most = row.windows(2).map(|w| w[1].start - w[0].end).max().unwrap();
    assert!(most > profile.cycles / 4, "{most} of {}", profile.cycles);
}

#[test]
fn the_longest_branch_is_shown_once() {
    let text = "var x: f32[64] = 1.0; var k: i32;
        program main() {
            repeat 3 {
                if k > 0 { x <- sin(x); } else { x <- exp(sin(x)) + cos(x); x <- sin(x); }
            }
        }";
    let (profile, timeline) = Program::text(text).target("small-2").estimate_with_timeline("main");
    holds_together(&profile, &timeline);
}

/// Neighbouring steps of one name are one interval, and some take no time, so intervals alone bound no timeline.
#[test]
fn a_timeline_ends_in_loops_of_one_interval() {
    for body in ["x *= 2.0;", "repeat n { x *= 2.0; }", "repeat n { print(\"x\"); }"] {
        let text = format!("var x: f32[4]; program main(n: int = 1000000) {{ repeat n {{ repeat n {{ {body} }} }} }}");
        let (profile, timeline) = Program::text(text).target("small").estimate_with_timeline("main");
        assert!(timeline.is_cut, "{body}");
        let last = timeline.rows[0].last().map_or(0, |i| i.end);
        assert!(last <= profile.cycles && (profile.cycles > 1 << 40) == body.contains("x *="), "{body}: {last}");
    }
}
