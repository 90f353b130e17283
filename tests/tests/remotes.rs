//! Remote buffers: rows against arrays of the host, in all modes and replicas; the time of a row; what is refused.

use crate::numbers::Random;
use girder_tests::Program;

#[test]
fn rows_are_those_of_an_array_of_the_host() {
    for seed in 1..=12u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (rows, len) = (1 + random.below(6), 1 + random.below(9));
        let replicas = [1usize, 2, 4][random.below(3)];
        let mut held = vec![vec![vec![0f32; len]; rows]; replicas];
        let mut seen = vec![Vec::new(); replicas];
        let mut text = format!(
            "remote held: f32[{rows}, {len}]; var seen: f32[24, {len}]; var k: i32; var x: f32[{len}];
             program main() {{ x <- f32(2 * replica_index); "
        );
        for step in 0..24 {
            let row = random.below(rows);
            let index = match random.below(2) {
                0 => row.to_string(),
                _ => {
                    text += &format!("k <- {row}; ");
                    "k".to_string()
                }
            };
            if random.below(2) == 0 {
                text += &format!("held[{index}] <- x + {step}.0; ");
                (0..replicas).for_each(|r| held[r][row] = vec![(2 * r + step) as f32; len]);
            } else {
                text += &format!("seen[{step}] <- read(held[{index}]); ");
            }
            for r in 0..replicas {
                let read = text.trim_end().ends_with("]);");
                seen[r].extend(if read { held[r][row].clone() } else { vec![0.0; len] });
            }
        }
        let program = Program::text(text + " }").target("small-4").replicas(replicas as u32);
        let found: Vec<f32> = program.run_everywhere().get("seen");
        let all = seen.concat();
        assert!(found == all || (found == seen[0] && found.repeat(replicas) == all), "seed {seed}");
    }
}

/// A row waits for the memory beside the tiles, and for the port of the tile that has most of it.
#[test]
fn a_row_takes_the_time_of_its_bytes() {
    for (len, ipus) in [(16u64, 1u32), (4096, 1), (100, 2)] {
        let half = len / 2;
        let place = match ipus {
            1 => "on tile(3)".to_string(),
            _ => format!("on {{ 0: 0..{half}; 16: {half}..{len}; }}"),
        };
        let text = format!(
            "remote rows: f32[3, {len}]; var x: f32[{len}] {place};
             program main() {{ rows[2] <- x; x <- read(rows[2]); }}"
        );
        let program = Program::text(text).target("small-8");
        let (machine, profile) = (program.machine().clone(), program.estimate("main"));
        let bytes_of_each = 4 * len / u64::from(ipus);
        let moved = bytes_of_each as f64 / machine.streaming.bytes_per_second * machine.chip.clock_hz;
        let memory = u64::from(machine.streaming.latency_cycles) + moved.ceil() as u64;
        assert_eq!(profile.total.host, 2 * memory, "{len} elements on {ipus} IPUs");
        let port = bytes_of_each.div_ceil(u64::from(machine.exchange.bytes_per_cycle));
        assert_eq!(profile.total.exchange, 2 * (u64::from(machine.latency_bound()) + port), "{len}");
        assert_eq!(profile.memory.remote, 3 * 4 * len);
    }
}

/// The last line of the statistics tells the memory beside the tiles and the host apart, and names a step that waits
/// for the one it is about.
#[test]
fn rows_and_packets_are_limits_of_their_own() {
    let limit = |rows: u32, packets: u32| {
        let text = format!(
            "remote rows: f32[300, 64]; stream xs: in f32[64]; var x: f32[64];
             program main() {{ repeat {packets} {{ x <- read(xs); }} repeat i in 0..{rows} {{ rows[i] <- x; }} }}"
        );
        let table = Program::text(text).target("small").estimate("main").table();
        table.lines().find(|line| line.starts_with("limit: ")).unwrap_or_default().to_string()
    };
    let (rows, packets) = (limit(300, 1), limit(9, 9));
    assert!(rows.contains("the memory beside the tiles takes") && rows.contains("in `remote rows`; larger"), "{rows}");
    assert!(packets.contains("the host takes") && packets.contains("in `stream xs`; streams"), "{packets}");
    // One packet takes longer than each row, but the rows together take most.
    let both = limit(300, 3);
    assert!(both.contains("beside the tiles takes") && both.contains("100 % of it in `remote rows`"), "{both}");
}

#[test]
fn wrong_rows_and_buffers_are_reported() {
    let code = |items: &str, body: &str| {
        let text = format!("remote rows: f32[3, 2]; var x: f32[2]; var k: i32; {items} program main() {{ {body} }}");
        let codes = Program::text(text).target("small").stage_and_codes(girder::Stage::Planned).1;
        codes.first().copied().unwrap_or("")
    };
    assert_eq!(code("", "rows[k] <- x; x <- read(rows[1 + k]);"), "");
    assert_eq!(code("", "rows[3] <- x;"), "elaborate::index_out_of_range");
    assert_eq!(code("", "x <- read(rows[-1]);"), "elaborate::index_out_of_range");
    assert_eq!(code("", "x <- read(rows[0, 1]);"), "elaborate::index");
    assert_eq!(code("", "x <- read(rows[0..1]);"), "elaborate::index");
    assert_eq!(code("", "x <- read(rows);"), "elaborate::remote");
    assert_eq!(code("", "rows <- x;"), "elaborate::remote");
    assert_eq!(code("", "x <- rows[0];"), "elaborate::type_mismatch");
    assert_eq!(code("", "rows[0] += x;"), "elaborate::bad_target");
    assert_eq!(code("", "print(rows[0] + x);"), "elaborate::type_mismatch");
    assert_eq!(code("", "rows[0] <- k;"), "elaborate::type_mismatch");
    assert_eq!(code("remote none: f32;", ""), "elaborate::remote");
    assert_eq!(code("remote some: f32[2, 2] = 1.0;", ""), "elaborate::remote");
    assert_eq!(code("remote most: f32[300_000];", ""), "memory::remote");
    assert_eq!(code("remote zero: f32[0, 4];", "x <- read(zero[0]);"), "elaborate::index_out_of_range");
}

/// What a loop keeps for the gradient may be beside the tiles: nothing else changes.
#[test]
fn offloaded_loops_have_the_same_gradients() {
    let text = |attributes: &str, inner: &str| {
        format!(
            "use random;
            param w: f32[3, 5, 8, 8] = random.normal(seed: 1);
            var x: f32[4, 8] = random.normal(seed: 2);
            var g: f32[3, 5, 8, 8];
            program main() {{
                repeat 2 {{
                    var y: f32[4, 8];
                    y <- x;
                    {attributes} repeat i in 0..3 {{
                        let a = sigmoid(y);
                        {inner} repeat j in 4..-1 by -1 {{ y <- tanh(y @ w[i][j]) * a; }}
                        y += exp(a) * y;
                    }}
                    let loss = mean(y * y);
                    g <- grad(loss, wrt: w);
                    w <- w - g * 0.1;
                    print(loss);
                }}
            }}"
        )
    };
    let run = |attributes: &str, inner: &str| {
        let program = Program::text(text(attributes, inner)).target("small");
        let (outcome, profile) = (program.run_everywhere(), program.estimate("main"));
        (outcome.get::<f32>("g"), outcome.get::<f32>("w"), profile.memory.remote, profile.memory.kept.bytes)
    };
    let tiles = run("", "");
    assert!(tiles.0.iter().any(|g| *g != 0.0) && tiles.2 == 0);
    // All kept values are of 4 · 8 elements; those of the inner loop have 15 rows, and the others 3.
    let (both, inner) = (run("#[offload]", ""), run("", "#[offload]"));
    for (offloaded, which) in [(&both, "both"), (&inner, "inner")] {
        assert!(offloaded.0 == tiles.0 && offloaded.1 == tiles.1, "{which}");
        assert!(offloaded.2 % (3 * 128) == 0 && offloaded.2 > 0, "{which}: {} bytes", offloaded.2);
        assert!(offloaded.3 < tiles.3, "{which}: {} and {} bytes on the tiles", offloaded.3, tiles.3);
    }
    assert!(inner.2 % (15 * 128) == 0 && inner.2 < both.2);
    let again = run("#[recompute] #[offload]", "");
    assert!(again.0 == tiles.0 && again.1 == tiles.1 && 0 < again.2 && again.2 < both.2, "recomputed");
    // The outer loop runs an iteration again; the inner one then keeps its values beside the tiles, once for each `i`.
    let nested = run("#[recompute]", "#[offload]");
    assert!(nested.0 == tiles.0 && nested.1 == tiles.1, "recomputed and offloaded");
    assert!(nested.2 % (5 * 128) == 0 && 0 < nested.2 && nested.2 < inner.2, "{} bytes", nested.2);
}

/// Where one micro-batch ends before the next one begins, and in a stage that is one phase, rows are not overwritten.
#[test]
fn loops_in_a_pipeline_may_keep_values_beside_the_tiles() {
    let text = |attribute: &str, schedule: &str, places: [u32; 2]| {
        let [first, second] = places;
        let inner = if places == [1, 1] || schedule == "sharded" { attribute } else { "" };
        format!(
            "use random;
            param w: f32[4, 4] = random.normal(seed: 1);
            var xs: f32[6, 2, 4] = random.normal(seed: 3);
            var m: i32;
            program main() {{
                repeat 2 {{
                    let (loss, g) = pipeline(micro_batches: 6, schedule: \"{schedule}\") {{
                        let a = stage on ipu({first}) {{
                            var h: f32[2, 4];
                            h <- xs[m % 6];
                            m += 1;
                            {inner} repeat 3 {{ h <- tanh(h @ w); }}
                            copy(h)
                        }};
                        let loss = stage on ipu({second}) {{
                            var h: f32[2, 4];
                            h <- a;
                            {attribute} repeat 2 {{ h <- sin(h @ w); }}
                            mean(h * h)
                        }};
                        (loss, grad(loss, wrt: w))
                    }};
                    w <- w - 0.1 * g;
                    print(\"loss\", loss);
                }}
                print(\"w\", w);
            }}"
        )
    };
    for (schedule, places) in [("sharded", [0, 1]), ("1f1b", [0, 1]), ("interleaved", [0, 1]), ("1f1b", [1, 1])] {
        let run = |attribute: &str| {
            let program = Program::text(text(attribute, schedule, places)).target("small-2");
            (program.run_everywhere().prints, program.estimate("main").memory.remote)
        };
        let (tiles, beside) = (run(""), run("#[offload]"));
        assert!(tiles.1 == 0 && beside.1 > 0, "{schedule}");
        assert_eq!(tiles.0, beside.0, "{schedule}");
    }
    let codes = |schedule: &str| {
        let program = Program::text(text("#[offload]", schedule, [0, 1])).target("small-2");
        program.stage_and_codes(girder::Stage::Graph).1
    };
    assert_eq!(codes("gpipe"), ["pipeline::stream"]);
}

#[test]
fn moments_beside_the_tiles_give_the_same_bits() {
    let text = |step: &str| {
        format!(
            "use random; use optim;
            fn dense(n: int, m: int) {{
                param w: f32[n, m] = random.normal(seed: 1); param b: f32[m]; return (w: w, b: b);
            }}
            let net = [dense(6, 9), dense(9, 3)];
            remote m: f32[3, 6, 9]; remote v: f32[3, 6, 9];
            var x: f32[4, 6] = random.normal(seed: 2);
            var t: i32;
            program main() {{
                repeat 3 {{
                    let y = tanh(x @ net[0].w + net[0].b) @ net[1].w + net[1].b;
                    let g = grad(mean(y * y), wrt: net);
                    t += 1;
                    {step}
                }}
            }}"
        )
    };
    let run = |step: &str| {
        let outcome = Program::text(text(step)).target("small").run_everywhere();
        ["net.0.w", "net.0.b", "net.1.w", "net.1.b"].map(|name| outcome.get::<f32>(name))
    };
    for (name, decay) in [("adam", "0.0"), ("adamw", "0.01"), ("adam", "0.1")] {
        let on = run(&format!("optim.{name}(net, g, rate: 0.05, decay: {decay});"));
        assert_eq!(on, run(&format!("optim.{name}(net, g, rate: 0.05, decay: {decay}, offload: true);")), "{name}");
        // One parameter has moments in a row of a buffer of the program, the others on the tiles.
        let apart = format!(
            "let (first, second) = (read(m[t - 1]), read(v[1]));
             optim.{name}_with(net[0].w, g[0].w, first, second, step: t, rate: 0.05, decay: {decay});
             if t < 3 {{ m[t] <- first; }}
             v[1] <- second;
             optim.{name}([net[0].b, net[1].w, net[1].b], [g[0].b, g[1].w, g[1].b], rate: 0.05, decay: {decay});"
        );
        assert_eq!(on, run(&apart), "{name}_with");
    }
}

/// An element that fills rows is on one tile, but the rows are on the tiles of what else is written to them.
#[test]
fn rows_that_a_number_fills_are_beside_several_processors() {
    let text = "remote held: f32[100, 7500];
        var x: f32[7500] on linear(first: 0, tiles: 64, grain: 118);
        program main() {
            repeat i in 0..100 { held[i] <- 2.0; }
            repeat i in 0..100 { x <- read(held[i]); x <- x + 1.0; held[i] <- x; }
        }";
    let found: Vec<f32> = Program::text(text).target("small-4").run_everywhere().get("x");
    assert!(found.iter().all(|&x| x == 3.0));
}
