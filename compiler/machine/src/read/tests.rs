//! Tests of broken machine files: each is refused at the wrong value, and none makes the reader panic.

use crate::*;
use proptest::prelude::*;

/// Returns the error of a file, and the text at which it is reported.
fn error(text: &str) -> (String, String) {
    let error = Machine::from_toml(text).expect_err("the file is broken");
    let at = error.span.map_or("nowhere", |s| &text[s]);
    (error.message, at.to_string())
}

/// Returns a file without inheritance.
fn whole() -> String {
    let gc200 = builtin_text("gc200").unwrap();
    assert!(builtin_base("gc200").is_none());
    gc200.to_string()
}

/// Returns the error of a file in which one line is replaced.
fn changed(from: &str, to: &str) -> (String, String) {
    let text = whole();
    assert!(text.contains(from), "{from}");
    error(&text.replacen(from, to, 1))
}

#[test]
fn a_wrong_value_is_reported_at_its_key() {
    let expect = |from: &str, to: &str, message: &str| assert_eq!(changed(from, to), (message.into(), to.into()));
    expect("workers = 6", "workers = 0", "`chip.workers` must be from 1 to 64");
    expect("workers = 6", "workers = 65", "`chip.workers` must be from 1 to 64");
    expect("ipus = 1", "ipus = -1", "`ipus` must be from 1 to 1048576");
    expect("ipus = 1", "ipus = 18446744073709551616", "`ipus` must be from 1 to 1048576");
    expect("ipus = 1", "ipus = \"one\"", "`ipus` must be a whole number, not of type string");
    expect("ipus = 1", "ipus = 1.5", "`ipus` must be a whole number, not of type float");
    expect("clock_hz = 1.33e9", "clock_hz = nan", "`chip.clock_hz` must be from 1000.0 to 1000000000000.0");
    expect("efficiency = 0.85", "efficiency = 0", "`links.efficiency` must be from 1e-6 to 1.0");
    expect("efficiency = 0.85", "efficiency = 1.01", "`links.efficiency` must be from 1e-6 to 1.0");
    expect("topology = \"ladder\"", "topology = \"ring\"", "there is no topology `ring`: it is none, ladder or torus");
    expect("name = \"gc200\"", "name = \"a b\"", "`name` must be 1 to 64 letters, digits, `-`, `_` or `.`");
}

#[test]
fn keys_are_known_and_all_there() {
    let (message, at) = error(&format!("colour = 3\n{}", whole()));
    assert!(message.starts_with("unknown key `colour`: a machine has name, description"), "{message}");
    assert_eq!(at, "colour = 3");
    let (message, at) = changed("workers = 6", "worker = 6");
    assert!(message.starts_with("unknown key `worker`: `[chip]` has tiles, columns"), "{message}");
    assert_eq!(at, "worker = 6");
    assert_eq!(changed("workers = 6", ""), ("there is no `chip.workers`".into(), "chip".into()));
    assert_eq!(changed("[chip]", "chip = 3\n[chips]").1, "chips");
    assert_eq!(error("name = \"x\"\nipus = 1\nchip = 3").0, "`chip` must be a table");
    assert_eq!(error("name = \"x\"\nipus = { a = 1 }"), ("`ipus` must be a value, not a table".into(), "ipus".into()));
    assert_eq!(error(""), ("there is no `name`".into(), "".into()));
    let text = whole().replacen("workers = 6", "workers = ", 1);
    let at = Machine::from_toml(&text).unwrap_err().span.unwrap().start;
    assert!(text[..at].trim_end().ends_with("workers ="), "{at}");
}

#[test]
fn values_must_fit_together() {
    let expect = |from: &str, to: &str, message: &str| assert_eq!(changed(from, to), (message.into(), to.into()));
    expect("tiles = 1472", "tiles = 1473", "16 columns of 23 rows of 4 lanes are not 1473 tiles");
    expect("ipus = 1", "ipus = 1000", "a machine has at most 1048576 tiles, not 1472000");
    expect("worker_period = 6", "worker_period = 5", "6 workers cannot take turns in a period of 5 cycles");
    expect("store_bytes = 4", "store_bytes = 3", "`memory.store_bytes` must be 1, 2, 4 or 8");
    expect("reserved_bytes = 1104", "reserved_bytes = 638976", "638976 reserved bytes leave none of 638976");
    expect("vector_bytes = 8", "vector_bytes = 12", "`tile.vector_bytes` must be a power of two");
    let pair = "a pair receives 4 or 8 bytes in a cycle, not 6";
    expect("pair_bytes_per_cycle = 8", "pair_bytes_per_cycle = 6", pair);
    let (message, at) = changed("bytes = 212992", "bytes = 200000");
    assert_eq!(message, "the regions hold 625984 bytes, but a tile has 638976");
    assert!(at.starts_with("regions = [") && at.ends_with(']'), "{at}");
    let (message, _) = changed("element_bytes = 16384", "element_bytes = 32768");
    assert_eq!(message, "a region of 212992 bytes is not whole elements of 32768");
    assert_eq!(changed("executable = true", "executable = false").0, "no region is executable");
    assert_eq!(changed("executable = true", "executable = 1").1, "executable = 1");
}

#[test]
fn inherited_values_are_checked_too() {
    let of = |rest: &str| error(&format!("name = \"mine\"\n{rest}"));
    let at = |message: &str, at: &str| (message.to_string(), at.to_string());
    assert_eq!(of("extends = \"bow\"\nipus = 3"), at("3 ipus do not form rungs of two", "ipus = 3"));
    let lost = of("extends = \"pod16\"\n[links]\ntopology = \"none\"");
    assert_eq!(lost, at("16 ipus with no links cannot work together", "topology = \"none\""));
    let tiles = of("extends = \"gc2\"\nchip.tiles = 100");
    assert_eq!(tiles, at("16 columns of 19 rows of 4 lanes are not 100 tiles", "tiles = 100"));
    let loop_ = of("extends = \"mine\"");
    assert_eq!(loop_, at("`extends` names `mine`, which is no built-in machine", "extends = \"mine\""));
    assert_eq!(of("extends = 3").0, "`extends` must be the name of a built-in machine");
    assert_eq!(of("extends = \"bow\"\n[chip]\nworkers = 7").0, "7 workers cannot take turns in a period of 6 cycles");
    assert_eq!(error("extends = \"bow\"").0, "there is no `name`");
}

#[test]
fn a_few_lines_over_a_base_are_a_machine() {
    let text = "name = \"mine\"\nextends = \"bow\"\nipus = 8\n[chip]\nclock_hz = 2e9\n[links]\ntopology = \"torus\"";
    let (mine, bow) = (Machine::from_toml(text).unwrap(), builtin("bow").unwrap());
    assert_eq!((mine.ipus, mine.chip.clock_hz, mine.links.topology), (8, 2e9, Topology::Torus));
    assert_eq!((mine.chip.rows, mine.memory, mine.tile), (23, bow.memory, bow.tile));
}

/// Returns the spans of the values in a file: after ` = `, up to a space, comma or brace.
fn values(text: &str) -> Vec<std::ops::Range<usize>> {
    let starts = text.match_indices(" = ").map(|(i, _)| i + 3);
    let end = |start: usize| start + text[start..].find([' ', ',', '\n', '}']).unwrap_or(0);
    starts.map(|s| s..end(s)).filter(|r| text[r.clone()].starts_with(|c: char| c.is_ascii_digit())).collect()
}

#[test]
fn no_number_that_is_wrong_makes_the_reader_panic() {
    let bad = ["0", "-1", "4294967295", "4294967296", "9223372036854775807", "1e308", "1e-308", "nan", "inf", "-inf"];
    let bad =
        bad.iter().chain(&["\"x\"", "true", "[]", "{}", "1979-05-27", "0xffff_ffff_ffff_ffff_ffff_ffff_ffff_ffff"]);
    for name in builtin_names() {
        let text = builtin_text(name).unwrap();
        for range in values(text) {
            for value in bad.clone() {
                let mut broken = text.to_string();
                broken.replace_range(range.clone(), value);
                match Machine::from_toml(&broken) {
                    Ok(machine) => exercise(&machine),
                    Err(e) => {
                        let span = e.span.unwrap_or_else(|| panic!("{name}: `{}` stands nowhere", e.message));
                        assert!(broken.get(span).is_some(), "{name}: {}", e.message);
                    }
                }
            }
        }
    }
}

/// Calls every query with extreme arguments: none may overflow.
fn exercise(m: &Machine) {
    let last = m.tiles() - 1;
    assert!(m.row(last) < m.chip.rows && m.column(last) < m.chip.columns && m.ipu_of(last) < m.ipus);
    assert!(m.latency(last, last) <= m.latency_bound() && m.usable_bytes() > 0);
    assert!(m.sync_cycles(0..m.ipus) >= m.sync_cycles([0]));
    let far = m.link_phase_cycles([(0, m.ipus - 1, u64::MAX), (m.ipus - 1, 0, 1)]);
    assert!((far > 0) == (m.ipus > 1));
    assert!(m.arrange.before.cycles(u64::MAX, u64::MAX) >= m.arrange.before.cycles(1, 1));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(
        cut in 0usize..6000,
        len in 0usize..40,
        junk in "[\\[\\]{}=.,\"a-z0-9\n -]{0,12}",
    ) {
        let mut text = whole();
        let at = (0..=cut.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap();
        let end = (at + len).min(text.len());
        text.replace_range(at..end, &junk);
        match Machine::from_toml(&text) {
            Ok(machine) => exercise(&machine),
            Err(e) => prop_assert!(e.span.is_none_or(|s| text.get(s).is_some())),
        }
    }
}

/// Returns the blocks of TOML in a document.
fn blocks(document: &str) -> Vec<&str> {
    document.split("```toml\n").skip(1).filter_map(|b| b.split_once("```")).map(|(block, _)| block).collect()
}

#[test]
fn the_documents_show_valid_machines() {
    let machines = include_str!("../../../../docs/machine.md");
    for text in blocks(machines) {
        Machine::from_toml(text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    }
    let explained = blocks(include_str!("../../../cli/explain/machine.md"));
    assert!(Machine::from_toml(explained[0]).is_err() && Machine::from_toml(explained[1]).is_ok());
    for line in whole().lines().filter(|l| !l.starts_with(['#', ' '])) {
        let key = line.split(['=', ']']).next().unwrap_or_default().trim().trim_start_matches('[');
        assert!(
            key.is_empty() || machines.contains(&format!("`{key}`")) || machines.contains(&format!("`[{key}]`")),
            "{key}"
        );
    }
}

#[test]
fn every_value_of_a_built_in_machine_names_its_source() {
    for name in builtin_names().filter(|n| !n.starts_with("small")) {
        // A comment line applies to the following lines, up to an empty line.
        let mut spoken = false;
        for line in builtin_text(name).unwrap().lines().skip_while(|l| !l.is_empty()) {
            spoken = !line.is_empty() && (spoken || line.starts_with('#'));
            let value = line.contains(" = ") && !line.starts_with(' ');
            assert!(!value || spoken || line.contains('#'), "{name}: {line}");
        }
    }
}
