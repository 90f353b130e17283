//! Replicas: copies between them and collectives against arrays of the host, in all modes; bits that do not depend on
//! their number; what the machine takes.

use crate::numbers::Random;
use girder_engine::Mode;
use girder_profile::Profile;
use girder_tests::{MODES, Outcome, Program};

#[path = "replicas/rungs.rs"]
mod rungs;

#[path = "replicas/sharded.rs"]
mod sharded;

/// Returns the elements of a variable by replica.
fn of_each(outcome: &Outcome, name: &str, replicas: usize, len: usize) -> Vec<Vec<f32>> {
    let all: Vec<f32> = outcome.get(name);
    match all.len() == len {
        true => vec![all; replicas],
        false => all.chunks_exact(len).map(<[f32]>::to_vec).collect(),
    }
}

/// Returns the elements that replica `r` begins with: sums of them depend on the order in which they are added.
fn begins(r: usize, len: usize) -> Vec<f32> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (r as u64 + 1) << 20);
    (0..len).map(|_| (random.below(2_000_001) as f32 - 1_000_000.0) / (1 << random.below(24)) as f32).collect()
}

/// Returns a program whose replicas begin with the values of [`begins`].
fn with_values(target: &str, replicas: usize, len: usize, rest: &str) -> Program {
    let rows: Vec<String> = (0..replicas).map(|r| format!("{:?}", begins(r, len))).collect();
    let text = format!(
        "use chains; use collectives; const table: f32[{replicas}, {len}] = [{}]; var x: f32[{len}]; {rest}",
        rows.join(", ")
    );
    Program::text(text).target(target).replicas(replicas as u32)
}

#[test]
fn random_copies_between_replicas_do_what_they_say() {
    for seed in 1..=24u64 {
        let mut random = Random(seed.wrapping_mul(0x1234_5678_9abc_def1));
        let replicas = [2usize, 4, 8][random.below(3)];
        let len = 1 + random.below(40);
        let mut text = "program main() { x <- table[replica_index];".to_string();
        let mut values: Vec<Vec<f32>> = (0..replicas).map(|r| begins(r, len)).collect();
        for _ in 0..1 + random.below(4) {
            let mut before = values.clone();
            text += " copy {";
            // Each replica receives at most once, a part of some other one or of its own.
            for receiver in (0..replicas).filter(|_| true) {
                if random.below(4) == 0 {
                    continue;
                }
                let sender = random.below(replicas);
                let n = 1 + random.below(len);
                let (to, from) = (random.below(len - n + 1), random.below(len - n + 1));
                text += &format!(
                    " at_replica({receiver}, x[{to}..{}]) <- at_replica({sender}, x[{from}..{}]);",
                    to + n,
                    from + n
                );
                before[receiver][to..to + n].copy_from_slice(&values[sender][from..from + n]);
            }
            text += " }";
            values = before;
        }
        let outcome = with_values("small-8", replicas, len, &(text + " }")).run_everywhere();
        assert_eq!(of_each(&outcome, "x", replicas, len), values, "seed {seed}");
    }
}

fn fold(op: &str, a: f32, b: f32) -> f32 {
    match op {
        "mul" => a * b,
        "min" => a.min(b),
        "max" => a.max(b),
        _ => a + b,
    }
}

/// Returns the groups of a call, and its text.
fn groups(kind: usize, replicas: usize) -> (Vec<Vec<usize>>, String) {
    match kind {
        1 => {
            let groups = (0..2).map(|g| (0..replicas / 2).map(|i| g * replicas / 2 + i).collect()).collect();
            (groups, format!(", groups: collectives.consecutive({})", replicas / 2))
        }
        2 => {
            ((0..replicas / 2).map(|g| vec![g, g + replicas / 2]).collect(), ", groups: collectives.strided(2)".into())
        }
        3 => {
            let turned: Vec<usize> = (0..replicas).map(|i| (i * 3 + 1) % replicas).collect();
            let text = format!(", groups: [{turned:?}]");
            (vec![turned], text)
        }
        _ => (vec![(0..replicas).collect()], String::new()),
    }
}

#[test]
fn collectives_give_what_arrays_of_the_host_give() {
    let mut seed = 0;
    for (replicas, len) in [(2, 6), (4, 1), (4, 37), (8, 16), (8, 100), (2, 3000), (8, 6000)] {
        for kind in 0..4 {
            seed += 1;
            let op = ["add", "mul", "min", "max", "mean"][seed % 5];
            let (lists, text) = groups(kind, replicas);
            let size = lists[0].len();
            let rows = len / size * size;
            let m = rows / size;
            let parts = match m {
                0 => String::new(),
                _ => format!(
                    "part <- collectives.reduce_scatter(x[..{rows}], op: \"{op}\"{text});
                     swapped <- collectives.all_to_all(x[..{rows}].reshape([{size}, {m}]){text}).flatten();"
                ),
            };
            // The tiles have no room for all ways of many elements.
            let short = len.min(500);
            let ways = format!(
                "let lists = collectives.groups_of({});
                 let at = collectives.position_of(lists);
                 relayed <- chains.relayed(x[..{short}], lists, at);
                 chunked <- chains.chunked(x[..{short}], collectives.operation(\"{op}\"), lists, at, {});",
                text.strip_prefix(", groups: ").unwrap_or("()"),
                1 + seed % 4
            );
            let program = format!(
                "var sum: f32[{len}]; var onto: f32[{len}]; var all: f32[{size}, {len}]; var sent: f32[{len}];
                 var relayed: f32[{size}, {short}]; var chunked: f32[{short}];
                 var part: f32[{}]; var swapped: f32[{}];
                 program main() {{
                     x <- table[replica_index];
                     sum <- collectives.all_reduce(x, op: \"{op}\"{text});
                     onto <- collectives.all_reduce([x], onto: [table[0]]{text})[0];
                     all <- collectives.all_gather(x{text});
                     {ways}
                     sent <- collectives.broadcast(x, from: {}{text});
                     {parts}
                 }}",
                m.max(1),
                rows.max(1),
                size - 1
            );
            let outcome = with_values("small-8", replicas, len, &program).compile(&MODES).run_on(&MODES, &[1, 2]);
            let values: Vec<Vec<f32>> = (0..replicas).map(|r| begins(r, len)).collect();
            let of = |name: &str, len: usize| of_each(&outcome, name, replicas, len);
            let (sum, onto, all, sent) = (of("sum", len), of("onto", len), of("all", size * len), of("sent", len));
            let (relayed, chunked) = (of("relayed", size * short), of("chunked", short));
            let (part, swapped) = (of("part", m.max(1)), of("swapped", rows.max(1)));
            for list in &lists {
                let combined = |first: Option<f32>, op: &str, i: usize| {
                    let all = first.into_iter().chain(list.iter().map(|&r| values[r][i]));
                    all.reduce(|a, b| fold(op, a, b)).unwrap()
                };
                let result = |i: usize| {
                    let y = combined(None, op, i);
                    if op == "mean" { y / size as f32 } else { y }
                };
                for (p, &r) in list.iter().enumerate() {
                    let context = format!("{replicas} replicas, {len} elements, {op}{text}, replica {r}");
                    let expected: Vec<f32> = (0..len).map(result).collect();
                    assert_eq!(sum[r], expected, "{context}: all_reduce");
                    let from_table: Vec<f32> = (0..len).map(|i| combined(Some(values[0][i]), "add", i)).collect();
                    assert_eq!(onto[r], from_table, "{context}: onto");
                    let cut = all[r].chunks_exact(len).flat_map(|x| x[..short].to_vec()).collect::<Vec<_>>();
                    assert_eq!(relayed[r], cut, "{context}: relayed");
                    let combined: Vec<f32> = (0..short).map(|i| combined(None, op, i)).collect();
                    assert_eq!(chunked[r], combined, "{context}: chunked");
                    assert_eq!(all[r], list.iter().flat_map(|&s| values[s].clone()).collect::<Vec<_>>(), "{context}");
                    assert_eq!(sent[r], values[list[size - 1]], "{context}: broadcast");
                    if m > 0 {
                        assert_eq!(part[r], expected[p * m..(p + 1) * m], "{context}: reduce_scatter");
                        let turned: Vec<f32> =
                            list.iter().flat_map(|&s| values[s][p * m..(p + 1) * m].to_vec()).collect();
                        assert_eq!(swapped[r], turned, "{context}: all_to_all");
                    }
                }
            }
        }
    }
}

/// Eight samples, dealt out to replicas in turn, give one gradient: one replica takes eight micro-batches, two take
/// four each, and so on.
#[test]
fn replicas_and_micro_batches_give_the_same_bits() {
    let text = "
        use collectives; use optim; use random;
        let micro = 1;
        param w: f32[7, 3] = random.normal(seed: 3);
        var s: f32[7, 3];
        var turn: i32;
        program main() {
            let data = random.normal([8, 5, 7], seed: 2);
            repeat 3 {
                s <- 0.0; turn <- 0;
                repeat micro {
                    let x = data[turn * replicas + replica_index];
                    let loss = mean(tanh(x @ w));
                    s <- collectives.all_reduce(grad(loss, wrt: w), onto: s);
                    turn += 1;
                }
                optim.sgd(w, s, rate: 0.25);
            }
        }";
    let weights = |replicas: u32| {
        let program = Program::text(text).target("small-8").replicas(replicas);
        let outcome = program.arg(&format!("micro={}", 8 / replicas)).run_everywhere();
        outcome.get::<f32>("w")
    };
    let one = weights(1);
    assert_eq!(one.len(), 21);
    for replicas in [2, 4, 8] {
        assert_eq!(weights(replicas), one, "{replicas} replicas");
    }
}

/// A gradient through collectives is that of the sum of what all replicas compute.
#[test]
fn collectives_have_derivatives() {
    let text = "
        program main() {
            x <- table[replica_index];
            let y = collectives.all_reduce(x * x) * f32(replica_index + 1);
            let z = collectives.all_gather(x)[2] * x + collectives.reduce_scatter(x * x, op: \"mean\")[0];
            let t = collectives.all_to_all(x.reshape([4, 2])).flatten() * x;
            let b = collectives.broadcast(x * x, from: 3) * f32(replica_index + 2);
            g <- grad(sum(y) + sum(z) + sum(t) + sum(b), wrt: x);
        }";
    let text = format!("var g: f32[8]; {text}");
    let outcome = with_values("small-4", 4, 8, &text).run_everywhere();
    let (found, x) = (of_each(&outcome, "g", 4, 8), (0..4).map(|r| begins(r, 8)).collect::<Vec<_>>());
    for (r, found) in found.iter().enumerate() {
        for (i, &found) in found.iter().enumerate() {
            let x = |r: usize, i: usize| f64::from(x[r][i]);
            let mut d = 20.0 * x(r, i) + x(2, i);
            d += if r == 2 { (0..4).map(|s| x(s, i)).sum() } else { 0.0 };
            // Part r / 2 · 2 of the mean is in replica i / 2, where it is added to all eight elements of z.
            d += if i % 2 == 0 { 8.0 * 2.0 * x(r, i) / 4.0 } else { 0.0 };
            // Row k of replica r is row r of replica k: it is multiplied with the elements there, and with those here.
            d += x(i / 2, 2 * r + i % 2) + x(i / 2, 2 * r + i % 2);
            d += if r == 3 { (2.0 + 3.0 + 4.0 + 5.0) * 2.0 * x(3, i) } else { 0.0 };
            let error = (f64::from(found) - d).abs() / d.abs().max(1.0);
            assert!(error < 1e-4, "replica {r}, element {i}: {found} against {d}");
        }
    }
}

fn estimate(text: &str, target: &str, replicas: u32) -> Profile {
    Program::text(text).target(target).replicas(replicas).estimate("main")
}

/// A copy between neighbours takes what its words take on the fullest group of links, and no more with more replicas.
#[test]
fn neighbours_exchange_at_the_rate_of_their_links() {
    let text = "var x: f32[400_000]; var y: f32[400_000];
        program main() { copy ring { at_replica(r, y) <- at_replica(r - 1, x) for r in 1..replicas; } }";
    let machine = girder_machine::builtin("bow-pod16").unwrap();
    let rate = machine.group_bytes_per_cycle(girder_machine::Group::Up);
    let bound = 1_600_000.0 / rate + f64::from(machine.links.fixed_cycles);
    for replicas in [4, 16] {
        // The variables of a replica of four processors are on one of them, whose words go over two rungs.
        let profile = estimate(text, "bow-pod16", replicas);
        let taken = profile.total.exchange as f64;
        assert!((bound * 0.99..bound * 1.01).contains(&taken), "{replicas}: {taken} against {bound}");
        assert_eq!(profile.total.bytes_between, 1_600_000);
    }
}

/// Where replicas are pairs on rungs, both sides of the machine carry the words of a large sum.
#[test]
fn a_large_sum_takes_less_than_its_bytes_on_one_link_group() {
    let text = "use collectives; var x: f32[25_000_000]; program main() { x <- collectives.all_reduce(x); }";
    for (target, replicas, most) in [("bow-pod16", 16, 0.70), ("bow-pod64", 64, 0.95)] {
        let machine = girder_machine::builtin(target).unwrap();
        let bound = 1e8 / machine.group_bytes_per_cycle(girder_machine::Group::Up);
        let taken = estimate(text, target, replicas).total.cycles() as f64;
        assert!(taken <= most * bound, "{target}: {taken} against {bound}");
    }
}

/// The time between two meetings is that of the replica that takes longest.
#[test]
fn the_slowest_replica_counts() {
    let text = |most: &str| {
        format!(
            "use collectives; var x: f32[64] = 1.0; var most: i32;
            program main() {{
                most <- {most};
                var k: i32 = most;
                while k > 0 {{ x <- sin(x); k -= 1; }}
                print(sum(collectives.all_reduce(x, op: \"max\")) > 0.0);
            }}"
        )
    };
    let cycles = |most: &str, replicas| {
        let program = Program::text(text(most)).target("small-8").replicas(replicas);
        MODES.map(|mode: Mode| program.profile(mode, 1).cycles)
    };
    let (slowest, all) = (cycles("max(replica_index, 0)", 8), cycles("max(replica_index, 7)", 8));
    assert_eq!(slowest, all);
    assert!(cycles("max(replica_index, 0)", 4)[0] < slowest[0]);
}

#[test]
fn a_part_is_compiled_once_for_all_replicas() {
    let text = "use collectives; var x: f32[1000];
        program main() { x <- collectives.all_reduce(x * 2.0); }";
    let compiled = |replicas| {
        let program = Program::text(text).target("bow-pod64").replicas(replicas).compile(&[Mode::Fast]);
        (program.graph().families.len(), program.graph().vars.len(), program.graph().steps.len())
    };
    let (some, many) = (compiled(32), compiled(64));
    assert!(many.0 <= some.0 + 2 && many.1 <= some.1 + 2 && many.2 <= some.2 + 2, "{some:?} {many:?}");
}

#[test]
fn what_replicas_cannot_do_is_reported() {
    let code = |text: &str, replicas: u32| {
        let program = Program::text(format!("use collectives; var x: f32[4]; {text}")).target("small-4");
        let codes = program.replicas(replicas).stage_and_codes(girder::Stage::Planned).1;
        codes.first().copied().unwrap_or("")
    };
    for (text, expected) in [
        ("program main() { copy { at_replica(4, x) <- at_replica(0, x); } }", "replica::index"),
        ("program main() { copy { at_replica(-1, x) <- at_replica(0, x); } }", "replica::index"),
        ("program main() { copy { at_replica(replica_index, x) <- at_replica(0, x); } }", "elaborate::type_mismatch"),
        ("program main() { copy { at_replica(1, x) <- x; } }", "replica::row"),
        ("program main() { copy { x <- at_replica(1, x); } }", "replica::row"),
        ("program main() { copy { at_replica(1, x) <- at_replica(0, x * 2.0); x[0] <- 1.0; } }", "replica::row"),
        ("program main() { print(at_replica(1, x)); }", "replica::row"),
        (
            "program main() { copy { at_replica(1, x) <- at_replica(0, x * 2.0);
             at_replica(1, x[0..2]) <- at_replica(2, x[2..4] * 2.0); } }",
            "race::copy_overlap",
        ),
        ("program main() { copy { at_replica(1, x) <- at_replica(0, x[0..2]); } }", "elaborate::shape_mismatch"),
        ("program main() { x <- collectives.all_reduce(x, op: \"median\"); }", "elaborate::assertion"),
        ("program main() { x <- collectives.all_reduce(x, groups: [[0, 1], [2]]); }", "elaborate::assertion"),
        ("program main() { x <- collectives.all_reduce(x, groups: [[0, 1], [1, 2]]); }", "elaborate::assertion"),
        ("program main() { x <- collectives.all_reduce(x, groups: collectives.strided(3)); }", "elaborate::assertion"),
        ("program main() { print(collectives.reduce_scatter(x[0..3])); }", "elaborate::assertion"),
        ("program main() { print(collectives.all_to_all(x[0..3])); }", "elaborate::assertion"),
        ("program main() { x <- collectives.broadcast(x, from: 4); }", "elaborate::assertion"),
        ("stream s: in f32 with (replicas: \"all\"); program main() { }", "elaborate::unknown_option"),
        ("program main() { copy { at_replica(1, x) <- at_replica(0, x * 2.0); } x <- grad(sum(x * x), wrt: x); }", ""),
        (
            "program main() { let y = copy(x); let z = copy(x); copy { at_replica(1, z) <- at_replica(0, y); }
             x <- grad(sum(z), wrt: y); }",
            "grad::no_rule",
        ),
    ] {
        assert_eq!(code(text, 4), expected, "{text}");
    }
}

/// Replicas that normalise their parts of a batch as one have the values and gradients of the whole batch on one.
#[test]
fn batches_of_replicas_are_normalised_as_one() {
    let text = "use collectives; use nn; use random;
        param gain: f32[3] = 1.5; param bias: f32[3] = 0.25;
        state m: f32[3]; state v: f32[3] = 1.0;
        var y: f32[8, 4, 3]; var dx: f32[8, 4, 3]; var dgain: f32[3]; var dbias: f32[3];
        program main() {
            let parts = fn(x) { x.reshape([replicas, 8 / replicas, 4, 3])[replica_index] };
            let x = copy(parts(random.normal([8, 4, 3], seed: 2) * 3.0 + 1.0));
            let t = parts(random.normal([8, 4, 3], seed: 3));
            let norm = nn.batch_norm(x, gain: gain, bias: bias, mean: m, variance: v, across: true);
            let d = grad(sum(norm * t), wrt: (x, gain, bias));
            y <- collectives.all_gather(norm).reshape([8, 4, 3]);
            dx <- collectives.all_gather(d[0]).reshape([8, 4, 3]);
            dgain <- collectives.all_reduce(d[1]);
            dbias <- collectives.all_reduce(d[2]);
        }";
    let run = |replicas: u32| {
        let outcome = Program::text(text).target("small-4").replicas(replicas).run_everywhere();
        ["y", "dx", "dgain", "dbias", "m", "v"].map(|name| outcome.get::<f32>(name))
    };
    let one = run(1);
    for replicas in [2, 4] {
        for (one, many) in one.iter().zip(run(replicas)) {
            assert_eq!(one.len(), many.len());
            assert!(one.iter().zip(&many).all(|(a, b)| (a - b).abs() < 4e-6 * a.abs().max(1.0)), "{one:?}\n{many:?}");
        }
    }
}

/// Each group of replicas normalises a batch of its own.
#[test]
fn batches_of_groups_are_normalised_each() {
    let text = |norm: &str| {
        format!(
            "use collectives; use nn; use random;
            var y: f32[8, 4, 3]; var dx: f32[8, 4, 3];
            program main() {{
                let parts = fn(x) {{ x.reshape([replicas, 8 / replicas, 4, 3])[replica_index] }};
                let x = copy(parts(random.normal([8, 4, 3], seed: 2) * 3.0 + 1.0));
                let t = parts(random.normal([8, 4, 3], seed: 3));
                let norm = {norm};
                y <- collectives.all_gather(norm).reshape([8, 4, 3]);
                dx <- collectives.all_gather(grad(sum(norm * t), wrt: x)).reshape([8, 4, 3]);
            }}"
        )
    };
    let run = |norm: &str, replicas: u32| {
        let program = Program::text(text(norm)).target("small-4").replicas(replicas);
        let outcome = program.run_everywhere();
        ["y", "dx"].map(|name| outcome.get::<f32>(name))
    };
    let halves = "nn.batch_norm(x, across: true, groups: collectives.consecutive(2))";
    let (each, grouped) = (run("nn.batch_norm(x)", 2), run(halves, 4));
    let all = run("nn.batch_norm(x, across: true)", 4);
    for ((each, grouped), all) in each.iter().zip(&grouped).zip(&all) {
        let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 4e-6 * a.abs().max(1.0));
        assert!(each.len() == 96 && close(each, grouped) && !close(each, all), "{each:?}\n{grouped:?}");
    }
}

/// The way in which vectors are gathered is chosen by a formula; neither of the two is much faster than the chosen one.
#[test]
fn vectors_are_gathered_in_the_faster_way() {
    let cases = [("bow-pod16", 16u32, [64, 4096, 65_536, 1_000_000]), ("small-8", 4, [16, 64, 256, 1024])];
    for (target, replicas, sizes) in cases {
        for n in sizes {
            let cycles = |gathered: &str| {
                let text = format!(
                    "use chains; use collectives; var x: f32[{n}]; var y: f32[replicas, {n}];
                     program main() {{ y <- {gathered}; }}"
                );
                Program::text(text).target(target).replicas(replicas).estimate("main").total.cycles()
            };
            let chosen = cycles("collectives.all_gather(x)");
            let groups = "collectives.groups_of(())";
            let relayed = format!("chains.relayed(x, {groups}, collectives.position_of({groups}))");
            for way in [format!("collectives.sent_to_all(x, {groups})"), relayed] {
                let other = cycles(&way);
                assert!(chosen as f64 <= 1.25 * other as f64, "{target}, {n} elements: {chosen}, {way} {other}");
            }
        }
    }
}

/// Bools travel as other elements do: at once, from replica to replica, and in groups of one.
#[test]
fn bools_are_gathered() {
    let cases = [
        (1u32, "collectives.all_gather(x)"),
        (2, "collectives.all_gather(x, groups: [[0], [1]])"),
        (4, "collectives.all_gather(x)"),
        (4, "chains.relayed(x, [list(0..4)], replica_index)"),
    ];
    for (replicas, gathered) in cases {
        let text = format!(
            "use chains; use collectives; var y: i32[3];
             program main() {{
                 var x: bool[3] = false;
                 x[2] <- replica_index % 2 == 0;
                 let all = {gathered};
                 y[0] <- i32(all[0, 2]); y[1] <- i32(all[all.shape[0] - 1, 2]); y[2] <- i32(any(all[.., ..2]));
             }}"
        );
        let found: Vec<i32> = Program::text(text).target("small-4").replicas(replicas).run_everywhere().get("y");
        let expected: &[i32] = match replicas {
            1 => &[1, 1, 0],
            2 => &[1, 1, 0, 0, 0, 0],
            _ => &[1, 0, 0],
        };
        assert_eq!(found, expected, "{replicas} replicas, {gathered}");
    }
}
