//! Modelled time is a function of program, data and machine. It does not depend on the mode or the threads, nor on
//! whether it is estimated or measured in a run.

use girder_engine::Mode;
use girder_tests::{MODES, Program};

/// A program in which data determine trip counts of loops, in a codelet and in the program, and an arm of an `if`.
const DATA: &str = "
codelet halve(inout x: f32[n], out count: i32) {
    let mut k = 0;
    while x[0] > 1.0 {
        for i in 0..n { if x[i] > 1.0 { x[i] /= 2.0; } }
        k += 1;
    }
    count = k;
}

var x: f32[8, 4] = list i in 0..8 { list j in 0..4 { 1000 * i * (j + 1) } };
var counts: i32[8];
var left: i32 = 3;

program main() {
    compute { for i in 0..8 { vertex halve(x: x[i], count: counts[i]) on tile(i % 3); } }
    while left > 0 { left -= 1; }
    print(\"counts\", counts);
}
";

#[test]
fn modes_and_threads_do_not_matter() {
    let programs = [Program::text(DATA), Program::file("examples/heat/heat.gir").arg("steps=4")];
    for program in programs {
        let first = program.profile(Mode::Interpret, 1).to_json();
        for mode in MODES {
            for threads in [1, 2, 3] {
                assert_eq!(program.profile(mode, threads).to_json(), first, "{mode:?} on {threads} threads");
            }
        }
    }
}

/// In JSON, a step has the sum of its parts.
#[test]
fn steps_have_their_cycles_in_json() {
    let profile = Program::text(DATA).profile(Mode::Fast, 1);
    let json = profile.to_json();
    for step in &profile.steps {
        assert!(json.contains(&format!("\"cycles\":{},\"sync\":{}", step.total.cycles(), step.total.sync)), "{json}");
    }
}

#[test]
fn counted_iterations_take_time() {
    let of = |limit: &str| Program::text(DATA.replace("> 1.0 {\n", limit)).profile(Mode::Fast, 2);
    let (long, short) = (of("> 1.0 {\n"), of("> 100.0 {\n"));
    assert!(long.total.compute > short.total.compute + 1000);
}

#[test]
fn an_estimate_without_data_equals_a_run() {
    for name in ["heat", "matvec", "digits"] {
        let program = Program::file(format!("examples/{name}/{name}.gir"));
        let program = if name == "matvec" { program } else { program.arg("steps=6") };
        let (estimated, ran) = (program.estimate("main"), program.profile(Mode::Fast, 2));
        let steps = |p: &girder_profile::Profile| -> Vec<_> {
            p.steps.iter().map(|s| (s.name.clone(), s.executions, s.total)).collect()
        };
        assert_eq!((estimated.cycles, steps(&estimated)), (ran.cycles, steps(&ran)), "{name}");
    }
}

/// Windows at the edge of an image have fewer elements. Constants of vertices decide how many, so an estimate knows.
#[test]
fn an_estimate_counts_what_constants_decide() {
    let program = Program::text(
        "use nn;
        use random;
        param k: f32[3, 3, 1, 16] = random.normal(seed: 1);
        param x: f32[2, 9, 7, 16] = random.normal(seed: 2);
        program main() {
            let y = nn.max_pool(nn.conv(x, k, pad: \"same\", groups: 16), 3, stride: 2, pad: 1);
            let loss = sum(nn.avg_pool(y, 2, pad: 1));
            let (dk, dx) = grad(loss, wrt: (k, x));
            print(\"loss\", loss);
            print(\"k\", dk);
            print(\"x\", sum(dx));
        }",
    );
    let (estimated, ran) = (program.estimate("main"), program.profile(Mode::Fast, 2));
    for (e, r) in estimated.steps.iter().zip(&ran.steps) {
        assert_eq!((&e.name, e.executions, e.total), (&r.name, r.executions, r.total));
    }
    assert_eq!(estimated.cycles, ran.cycles);
}

/// The host moves packets while tiles compute: a loop takes as long as the slower of the two.
#[test]
fn packets_ahead_overlap_with_computing() {
    let text = |options: &str, products: usize| {
        format!(
            "stream x: in f32[64, 784] with (wrap: true{options});
             stream y: out f32 with (replicas: \"each\"{options});
             param w: f32[784, 512];
             program main() {{
                 repeat 50 {{
                     let x = read(x);
                     let mut h = x @ w;
                     for i in 0..{products} {{ h = relu(x @ w + h); }}
                     y <- sum(h);
                 }}
             }}"
        )
    };
    let estimate = |text: String| Program::text(text).target("gc200").estimate("main");
    for products in [0, 30] {
        let (waits, ahead) = (text("", products), text(", ahead: 2", products));
        let (waits, ahead) = (estimate(waits), estimate(ahead));
        let host = |p: &girder_profile::Profile, name: &str| {
            p.steps.iter().filter(|s| s.name == name).map(|s| s.total.host).sum::<u64>()
        };
        let computing = waits.cycles - host(&waits, "stream x") - host(&waits, "stream y");
        let slower = computing.max(host(&waits, "stream x")).max(host(&waits, "stream y"));
        let fill = (host(&waits, "stream x") + host(&waits, "stream y")) / 50;
        assert!((slower..=slower + slower / 100 + 2 * fill).contains(&ahead.cycles), "{products}: {}", ahead.cycles);
        assert!(ahead.memory.categories.iter().any(|c| c.name == "packets of streams"));
    }
}

/// One superstep computed by hand: a word for each of two other tiles, and two vertices of eleven and eight cycles.
#[test]
fn a_superstep_adds_up() {
    let text = "
        #[cycles(11)] codelet slow(in x: f32, out y: f32) { y = x; }
        #[cycles(8)] codelet fast(in x: f32, out y: f32) { y = x; }
        var x: f32 on tile(0);
        var y: f32[2];
        map y[i] on tile(i + 1) for i in 0..2;
        program main() {
            compute { vertex slow(x: x, y: y[0]) on tile(1); vertex fast(x: x, y: y[1]) on tile(2); }
        }";
    let profile = Program::text(text).target("gc2").estimate("main");
    let step = &profile.steps[0];
    let machine = girder_machine::builtin("gc2").expect("it comes with Girder");
    assert_eq!((step.total.sync, step.total.exchange), (117, 213 + 1));
    let tile = &machine.tile;
    assert_eq!(step.total.compute, 11 + u64::from(tile.launch_cycles) + u64::from(tile.supervisor_cycles));
    assert_eq!((step.worst_tile, step.total.bytes_inside), (Some(1), 8));
    assert_eq!(profile.cycles, step.total.cycles());
}

/// The last line of the table names the bottleneck of the program.
#[test]
fn the_limit_names_the_bottleneck() {
    let limit = |text: &str| Program::text(text).target("gc200").estimate("main").limit;
    let codelet = "codelet halve(inout x: f32[n]) { for i in 0..n { x[i] = x[i] * 0.5; } }";
    let tiny = limit("var x: f32[10]; program main() { repeat 1000 { x <- x * 0.5 + 1.0; } }");
    assert!(tiny.contains("supersteps cost whatever they do") && tiny.contains("of 1,000"), "{tiny}");
    let alone = limit(&format!(
        "{codelet} var x: f32[20000]; map x on tile(3);
        program main() {{ compute {{ vertex halve(x: x) on tile(3); }} }}"
    ));
    assert!(alone.ends_with("; tile 3 works there alone: spread the work"), "{alone}");
    let on_two = |vertices: usize| {
        limit(&format!(
            "{codelet} var x: f32[20000]; map x[..10000] on tile(3); map x[10000..] on tile(4); program main() {{
                 compute {{ for i in 0..{vertices} {{
                     let own = i * 20000 / {vertices}..(i + 1) * 20000 / {vertices};
                     vertex halve(x: x[own]) on tile(if i < {vertices} / 2 {{ 3 }} else {{ 4 }});
                 }} }}
             }}"
        ))
    };
    let uneven = on_two(40);
    assert!(uneven.ends_with("its fullest tile, 3, works 736.0 times the mean: spread the work"), "{uneven}");
    let coarse = on_two(10);
    assert!(coarse.ends_with("no vertex waits for a worker there: more and smaller vertices"), "{coarse}");
    let far =
        limit("var x: f32[60000]; var y: f32[60000]; map x on tile(3); map y on tile(4); program main() { y <- x; }");
    assert!(far.contains("exchange takes") && far.contains("inputs nearer to their users"), "{far}");
}

/// A text may state any number of cycles.
#[test]
fn sums_do_not_overflow() {
    let text = "
        #[cycles(4611686018427387904)] codelet long(out y: f32) { y = 1.0; }
        var y: f32;
        program main() { repeat 1000 { compute { vertex long(y: y); } } }";
    let profile = Program::text(text).estimate("main");
    assert_eq!((profile.cycles, profile.overflows), (u64::MAX, true));
    let table = profile.table();
    assert!(table.starts_with("more than 18,446,744,073,709,551,614 cycles"), "{table}");
    assert!(profile.to_json().contains("\"overflows\":true"));
}

/// A `sync();` costs a sync of all IPUs, in a run and in an estimate; IPUs that are ahead wait.
#[test]
fn a_sync_takes_its_time() {
    let text = "
        #[cycles(5000)] codelet work(out y: f32) { y = 1.0; }
        var y: f32;
        program main() {
            compute { vertex work(y: y) on tile(0); }
            repeat 3 { sync(); }
        }";
    for (target, one) in [("gc2", 117), ("small-2", 0)] {
        let machine = girder_machine::builtin(target).expect("it comes with Girder");
        let one = if one == 0 { machine.sync_cycles(0..2) } else { one };
        let program = Program::text(text).target(target);
        for profile in [program.estimate("main"), program.profile(Mode::Exact, 2)] {
            let [work, sync] = &profile.steps[..] else { panic!("two steps: {:?}", profile.steps) };
            assert_eq!((sync.name.as_str(), sync.executions, sync.total.sync), ("sync", 3, 3 * one));
            assert_eq!(sync.total.cycles(), sync.total.sync);
            assert_eq!(profile.cycles, work.total.cycles() + 3 * one);
        }
    }
}

/// No schedule is shorter than the bound, which accounts for pairs of tiles that receive at twice the rate.
#[test]
fn the_bound_of_an_exchange_knows_pairs() {
    let text = |first: u32| {
        format!(
            "codelet total(in x: f32[n], out y: f32) {{ y = sum i in 0..n {{ x[i] }}; }}
            var x: f32[101] on tile(0);
            var y: f32[6];
            map y[i] on tile(i + {first}) for i in 0..6;
            program main() {{ compute {{ for i in 0..6 {{ vertex total(x: x, y: y[i]) on tile(i + {first}); }} }} }}"
        )
    };
    for first in [1, 2, 3] {
        let profile = Program::text(text(first)).target("gc200").estimate("main");
        assert_eq!(profile.steps[0].schedule, Some(1.0), "from tile {first} on");
    }
}

/// Advice for a program that waits for the host: packets ahead, and where there are some, fewer packets.
#[test]
fn a_slow_host_gets_advice_that_helps() {
    let limit = |options: &str| {
        let text = format!(
            "stream s: in f32[4]{options}; var x: f32[4];
            program main() {{ repeat 50 {{ x <- x + read(s); }} print(x); }}"
        );
        Program::text(text).target("small").estimate("main").limit
    };
    let (plain, ahead) = (limit(""), limit(" with (ahead: 2)"));
    assert!(plain.contains("`with (ahead: 2)` do not wait"), "{plain}");
    assert!(ahead.contains("fewer, larger packets") && !ahead.contains("with (ahead"), "{ahead}");
}
