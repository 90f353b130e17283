//! Texts of stages that were edited by hand: a text that does not hold is reported at the right span and never panics;
//! a text that is accepted gives the same results in every mode.

mod common;

use common::{compilation, print, read, rendered, try_run};
use girder::Stage;
use girder_engine::Mode;

const SOURCE: &str = "codelet dot(in a: f32[n], in b: f32[n], out y: f32, const c: f32) {
        y = c * (sum i in 0..n { a[i] * b[i] });
    }
    stream sums: out f32[5];
    var w: f32[5, 12] = 0.5 on tile(0);
    var x: f32[12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] on tile(1);
    var y: f32[5] on tile(2);
    var z: u8[10] = 3 on tile(3);
    program main() {
        compute rows {
            for i in 0..5 {
                vertex dot(a: w[i, i..i + 6], b: x[i..i + 6], y: y[i], c: float(i) + 0.5) on tile(i * tiles / 5);
            }
        }
        z[1..4] <- z[5..8] + u8(1);
        w[1..3, 2] <- y[3..5];
        if y[0] > 3.0 { y <- y * 2.0; } else { y <- y + w[0, 0..5]; }
        sums <- y;
        print(\"y\", y[0]);
    }";

/// Returns the codes of the errors in a text.
fn codes(text: &str) -> Vec<&'static str> {
    let mut c = compilation();
    let root = c.add("main.gir", text).expect("small");
    match c.stage(root, Stage::Allocated) {
        Ok(_) => vec![],
        Err(_) => {
            assert!(c.diagnostics.has_errors());
            // Rendering the diagnostics must not panic either.
            rendered(&c);
            c.diagnostics.iter().map(|d| d.code).collect()
        }
    }
}

/// Returns the text of a stage with one replacement.
fn edited(stage: Stage, from: &str, to: &str) -> String {
    let text = print(SOURCE, stage);
    assert!(text.contains(from), "no `{from}` in\n{text}");
    text.replacen(from, to, 1)
}

#[test]
fn wrong_rows_are_errors_at_their_spans() {
    use Stage::{Allocated, Graph, Placed, Planned, Scheduled};
    let cases = [
        (Scheduled, "cycles(", "cycle(", "resume::bad_row"),
        (Scheduled, "cycles(before, 0): ", "cycles(before, 0): 1, ", "resume::bad_row"),
        (Scheduled, "cycles(before, 0): ", "cycles(before, 0): 1", "resume::bad_table"),
        (Scheduled, "cycles(before", "cycles(during", "resume::bad_row"),
        (Scheduled, "field(0, a, ", "field(0, nothing, ", "resume::bad_row"),
        (Scheduled, "field(0, a, ", "field(7, a, ", "resume::bad_row"),
        (Scheduled, "buffer(0): tile: ", "buffer(1): tile: ", "resume::bad_row"),
        (Scheduled, "buffer(0): tile: ", "buffer(0): tile: 0 - 1 - ", "resume::bad_row"),
        (Scheduled, "buffer(0): tile: ", "buffer(0): tile: i + ", "resume::bad_row"),
        (
            Scheduled,
            "exchange main.rows {",
            "exchange main.rows { buffer(i): tile: i * i, bytes: 4 for i in 0..2;",
            "resume::bad_row",
        ),
        (
            Scheduled,
            "exchange main.rows {",
            "exchange main.rows { buffer(i): tile: i, bytes: 4 for i in 1..3;",
            "resume::bad_row",
        ),
        (
            Scheduled,
            "exchange main.rows {",
            "exchange main.rows { buffer(i): tile: 0, bytes: 8 - 8 * i - 4 for i in 0..9;",
            "resume::bad_row",
        ),
        (
            Scheduled,
            "exchange main.rows {",
            "exchange main.rows { buffer(i): tile: j + k, bytes: 4 for i in 0..9000000, j in 0..9000000, k in 0..9;",
            "resume::bad_row",
        ),
        (Scheduled, "words: ", "words: 99999999999, words: ", "resume::bad_row"),
        (Scheduled, "exchange main.rows {", "exchange main.rows { 3: x;", "resume::bad_row"),
        (Scheduled, "exchange main.rows {", "exchange main.lines {", "names::unknown"),
        (Scheduled, "exchange main.rows {", "exchange main.rows {} exchange main.rows {", "resume::duplicate_table"),
        (Scheduled, "schedule-exchange", "plan-transfers", "resume::bad_row"),
        (Planned, "plan-transfers", "schedule-exchange", "resume::bad_table"),
        (Planned, "plan-transfers", "check-races", "resume::unexpected_table"),
        (Allocated, "allocate-memory", "schedule-exchange", "resume::unexpected_table"),
        (Allocated, "state(main.rows)", "state(main.columns)", "resume::bad_row"),
        (Allocated, "code(dot)", "code(dot, f32)", "resume::bad_row"),
        (Allocated, "on tile(0) {", "on tile(99) {", "resume::bad_row"),
        (Allocated, "on tile(0) {", "on tile(0..4000000000) {", "resume::bad_row"),
        (Allocated, "on tile(0) {", "on tile(0) { 0x10..0x08: x;", "resume::bad_row"),
        (Allocated, "0x00000..", "0x00004..", "resume::bad_table"),
        (Allocated, "layout {", "layout {} layout {", "resume::duplicate_table"),
        (Placed, "on tile(0)", "on tile(16)", "place::no_such_tile"),
        (Placed, "place-tiles", "place-hats", "resume::unknown_pass"),
        (Placed, "version: 1", "version: 2", "resume::newer_version"),
        (Placed, "target_hash: \"0x", "target_hash: \"0x1", "resume::target_changed"),
        (Graph, "elaborate", "place-tiles", "resume::incomplete"),
    ];
    for (stage, from, to, code) in cases {
        let text = edited(stage, from, to);
        let found = codes(&text);
        assert!(found.contains(&code), "{from} -> {to}: {found:?}\n{text}");
    }
}

/// A generator of reproducible pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }
}

/// Changes one number or line of a text, or swaps two lines.
fn mutated(text: &str, dice: &mut Dice) -> String {
    if dice.roll(3) > 0 {
        return other_number(text, dice);
    }
    let mut lines: Vec<&str> = text.lines().collect();
    let k = dice.roll(lines.len());
    match dice.roll(3) {
        0 => _ = lines.remove(k),
        1 => lines.insert(k, lines[k]),
        _ => {
            let j = dice.roll(lines.len());
            lines.swap(k, j);
        }
    }
    lines.join("\n")
}

fn other_number(text: &str, dice: &mut Dice) -> String {
    let digit = |k: usize| text.as_bytes().get(k).is_some_and(u8::is_ascii_digit);
    let starts: Vec<usize> = (1..text.len()).filter(|&k| digit(k) && !digit(k - 1)).collect();
    let start = starts[dice.roll(starts.len())];
    let end = (start..).find(|&k| !digit(k)).unwrap_or(text.len());
    let value: u64 = text[start..end].parse().unwrap_or(0);
    let next = match dice.roll(8) {
        0 => value + 1,
        1 => value.saturating_sub(1),
        2 => value + 4,
        3 => value.saturating_sub(4),
        4 => value + 8,
        5 => [0, 1, 2, 3, 4, 7, 8, 16, 64, 100][dice.roll(10)],
        6 => 4294967295,
        _ => value * 2,
    };
    format!("{}{next}{}", &text[..start], &text[end..])
}

/// Checks that no message mentions the compiler's internal data structures.
fn in_plain_words(c: &girder::Compilation, text: &str) {
    rendered(c);
    for d in c.diagnostics.iter() {
        let labels = d.labels.iter().map(|l| l.text.as_str());
        for words in labels.chain([d.message.as_str()]).chain(d.help.as_deref()) {
            // Quoted text is the user's own.
            let own: String = words.split('`').step_by(2).collect();
            let inside = ["{", "}", "Some(", "None", "VarId", "Loc", "Domain", "::"];
            let found = inside.iter().find(|i| own.contains(**i));
            assert!(found.is_none(), "`{words}` shows `{}`\n{text}", found.unwrap_or(&""));
        }
    }
}

/// Checks that an accepted text runs with the same result in all modes.
fn survives(text: &str) {
    let mut c = compilation();
    let root = c.add("main.gir", text).expect("small");
    let Ok(stage) = c.stage(root, Stage::Allocated) else {
        assert!(c.diagnostics.has_errors(), "{text}");
        in_plain_words(&c, text);
        return;
    };
    let expected = try_run(c, stage, Mode::Interpret);
    for mode in [Mode::Exact, Mode::Fast] {
        let (c, stage) = read(text, Stage::Allocated);
        assert_eq!(expected, try_run(c, stage, mode), "{mode:?} of\n{text}");
    }
}

#[test]
fn mutated_texts_are_rejected_or_run() {
    let rounds = std::env::var("GIRDER_SHAKES").ok().and_then(|n| n.parse().ok()).unwrap_or(40);
    for stage in Stage::ALL {
        let text = print(SOURCE, stage);
        let mut dice = Dice(stage as u64 + 1);
        for _ in 0..rounds {
            survives(&mutated(&text, &mut dice));
        }
    }
}
