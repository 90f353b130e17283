//! Runs the command as a user does: every command that a README or an explanation shows, exit codes, arrays in and out.

mod checkpoints;
mod files;
mod shell;

use girder::ir::types::ElemType;
use girder::source::par_map_slice;
use girder::{Array, Head, arrays};
use shell::{TestDirectory, blocks, explained, repository};
use std::path::{Path, PathBuf};

/// Runs the commands of a README and compares their output with the text below them.
fn readme(path: &str) {
    let directory = TestDirectory::new();
    let text = std::fs::read_to_string(repository().join(path)).expect("a README");
    let blocks = blocks(&text);
    let mut ran = 0;
    for (k, (language, block)) in blocks.iter().enumerate().filter(|(_, (language, _))| *language == "sh") {
        let mut printed = String::new();
        for line in block.lines().filter(|l| l.starts_with("girder ")) {
            let done = directory.line(line);
            assert_eq!(done.code, 0, "{path}: {line}\n{}", done.errors);
            printed += &done.output;
            ran += 1;
        }
        if let Some(("text", expected)) = blocks.get(k + 1).map(|(language, text)| (*language, *text)) {
            assert_eq!(printed, expected, "{path}: what {language} commands print");
        }
    }
    assert!(ran > 0, "{path} shows no command");
}

#[test]
fn the_readme_shows_commands_that_work() {
    readme("README.md");
}

/// The command of the main job with fewer steps, on a machine for which it compiles in less time.
#[test]
fn the_main_job_of_the_readme_ends_with_its_accuracy() {
    let text = std::fs::read_to_string(repository().join("README.md")).expect("a README");
    let job = text.lines().find_map(|line| line.strip_prefix("cargo run --release -- ")).expect("a main job");
    let directory = TestDirectory::new();
    let done = directory.line(&format!("girder {job} --arg steps=2 --target small --allow-over-memory"));
    assert_eq!(done.code, 0, "{}", done.errors);
    let last = done.output.lines().last().unwrap_or_default();
    assert!(last.starts_with("test accuracy 0."), "the last line is `{last}`");
}

#[test]
fn readmes_of_examples_show_commands_that_work() {
    let examples = std::fs::read_dir(repository().join("examples")).expect("examples");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name().into_string();
    let names: Vec<String> = examples.map(|entry| name(entry).expect("a plain name")).collect();
    par_map_slice(&names, |name| {
        // The images of some examples are in packages of the system.
        let program = repository().join(format!("examples/{name}/{name}.gir"));
        let text = std::fs::read_to_string(&program).unwrap_or_default();
        let inputs = Head::read(&text, &program).expect("a head without errors").streams;
        let outside = |(_, file): &(String, PathBuf)| !file.starts_with(repository()) && !file.exists();
        match inputs.iter().find(|input| outside(input)) {
            Some((_, file)) => eprintln!("examples/{name} is skipped: there is no {}", file.display()),
            None => readme(&format!("examples/{name}/README.md")),
        }
    });
}

#[test]
fn explanations_show_commands_that_fail_and_commands_that_work() {
    for (code, text) in explained() {
        let commands: Vec<&str> =
            blocks(&text).into_iter().filter(|(language, _)| *language == "sh").map(|(_, block)| block).collect();
        if let [wrong, right] = commands[..] {
            let directory = TestDirectory::new();
            let done = directory.line(wrong.trim());
            assert!(done.code != 0 && done.errors.contains(&code), "{code}: {wrong}{}", done.errors);
            let done = directory.line(right.trim());
            assert_eq!(done.code, 0, "{code}: {right}{}", done.errors);
        }
    }
}

/// Linux has a file that is always full.
#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_printed_is_an_error() {
    let directory = TestDirectory::new();
    directory.write("good.gir", "program main() { print(1); }\n");
    for words in [&["run", "good.gir"][..], &["check", "good.gir", "--stats"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a full file");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_girder"));
        let done =
            command.args(words).current_dir(directory.path("")).stdout(full).output().expect("the command starts");
        let errors = String::from_utf8(done.stderr).expect("UTF-8");
        assert_eq!(done.status.code(), Some(1), "{errors}");
        assert!(errors.contains("driver::cannot_write"), "{errors}");
    }
}

#[test]
fn exit_codes_tell_whose_fault_it_is() {
    let directory = TestDirectory::new();
    directory.write("good.gir", "var x: f32;\nprogram main() { x <- 1.0; }\n");
    directory.write("bad.gir", "var x: f32;\nprogram main() { x <- y; }\n");
    let text = "codelet at(in x: f32[n], in k: i32, out y: f32) { y = x[int(k)]; }\nvar x: f32[4];\nvar k: i32 = 4;\n\
                var y: f32;\nprogram main() { compute { vertex at(x, k, y); } }\n";
    directory.write("wrong.gir", text);
    for (line, code, expected) in [
        ("girder check good.gir", 0, ""),
        ("girder check bad.gir", 1, "names::unknown"),
        ("girder run missing.gir", 1, "driver::cannot_read"),
        ("girder run wrong.gir --target small", 1, "on tile 0"),
        ("girder run good.gir other", 1, "run::no_program"),
        ("girder run good.gir --get y", 1, "run::no_variable"),
        ("girder run good.gir --in =s.npy", 2, "no name before the `=`"),
        ("girder run good.gir --in s.npy", 2, "has no `=`"),
        ("girder check good.gir --target nothing", 1, "machine::unknown"),
        ("girder check good.gir --target small-4 --replicas 3", 1, "machine::replicas"),
        ("girder check good.gir --target gc200 --replicas 2", 1, "machine::replicas"),
        ("girder check good.gir --arg x", 2, "usage::argument"),
        ("girder check good.gir --limit elephants=3", 2, "usage::argument"),
        ("girder check good.gir --without fuse-elementwise --without merge-copies", 0, ""),
        ("girder check good.gir --without place-tiles", 2, "no program runs without this pass"),
        ("girder check good.gir --without fusion", 2, "passes that may be left out are fold-constants, "),
        ("girder check good.gir --arg x=1 --arg x=2", 2, "twice"),
        ("girder run good.gir --set x=a.npy --set x=b.npy", 2, "twice"),
        ("girder run good.gir --in s=a.npy --in s=b.npy", 2, "twice"),
        ("girder run good.gir --get x=a.npz --save a.npz", 2, "`--get` and `--save` both write a.npz"),
        ("girder check good.gir --limit nesting=100000", 2, "at most 400"),
        ("girder check good.gir --limit nesting=8", 0, ""),
        ("girder check", 2, "required"),
        ("girder build good.gir --stage finished", 2, "stages are graph"),
        ("girder dance", 2, "unrecognized"),
        ("girder --version", 0, ""),
        ("girder help run", 0, ""),
    ] {
        let done = directory.line(line);
        assert!(done.code == code && done.errors.contains(expected), "{line}: {} {}", done.code, done.errors);
    }
}

#[test]
fn compile_time_is_listed_by_steps() {
    let directory = TestDirectory::new();
    let text = "codelet double(inout x: f32[n]) { for i in 0..n { x[i] *= 2.0; } }
        var x: f32[64];
        program main() {
            compute doubled { for i in 0..8 { vertex double(x: x[8 * i..8 * (i + 1)]); } }
            let y = x @ x;
            print(y);
        }";
    directory.write("steps.gir", text);
    let done = directory.line("girder check steps.gir --time --by step");
    assert_eq!((done.code, done.output.as_str()), (0, ""), "{}", done.errors);
    let (_, table) = done.errors.split_once("\n\n").expect("a table after the times of passes");
    for part in ["plan-transfers", "main.doubled", "steps.gir:4:13", "elaborate", "what belongs to no step"] {
        assert!(table.contains(part), "{part} is missing in {table}");
    }
    let shares = table.lines().filter_map(|l| l.split_once('%')?.0.split_whitespace().last()?.parse::<f64>().ok());
    let shares: Vec<f64> = shares.collect();
    let (all, each) = shares.split_last().expect("a last line");
    let sum: f64 = each.iter().sum();
    // Each share is rounded to a tenth.
    assert!(*all == 100.0 && (sum - 100.0).abs() <= 0.05 * each.len() as f64 + 1e-6, "{sum}: {table}");
    let sorted = each[..each.len() - 1].is_sorted_by(|a, b| a >= b);
    assert!(sorted, "{table}");
    let done = directory.line("girder check steps.gir --time --by step --message-format json");
    assert!(done.errors.lines().last().is_some_and(|l| l.starts_with("{\"seconds\":")), "{}", done.errors);
    assert_eq!(directory.line("girder check steps.gir --by step").code, 2);
}

#[test]
fn diagnostics_are_lines_of_json_on_request() {
    let directory = TestDirectory::new();
    directory.write("bad.gir", "var x: f32;\nprogram main() { x <- y; x <- z; }\n");
    let done = directory.line("girder check bad.gir --message-format json");
    assert_eq!(done.code, 1);
    let lines: Vec<&str> = done.errors.lines().collect();
    assert_eq!(lines.len(), 2, "{}", done.errors);
    for (line, column) in lines.iter().zip([23, 31]) {
        assert!(line.starts_with('{') && line.ends_with('}'), "{line}");
        for part in ["\"severity\":\"error\"", "\"code\":\"names::unknown\"", "\"path\":\"bad.gir\"", "\"line\":2"] {
            assert!(line.contains(part), "{part} is missing in {line}");
        }
        assert!(line.contains(&format!("\"column\":{column}")), "{line}");
    }
}

const DOORS: &str = "stream images: in f32[2];
stream sums: out f32;
var w: f32[2] = [1, 10];
let scale = 1.0;
program main(steps: int = 1) {
    repeat steps { sums <- sum(read(images) * w) * scale; }
}
";

fn floats(shape: &[u64], values: &[f32]) -> Array {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    Array { ty: ElemType::F32, shape: shape.to_vec(), bytes: bytes.into() }
}

#[test]
fn arrays_go_in_and_out() {
    let directory = TestDirectory::new();
    directory.write("doors.gir", DOORS);
    let save = |name: &str, array: &Array| arrays::write(&directory.path(name), array).expect("a file");
    save("images.npy", &floats(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    save("w.npy", &floats(&[2], &[1.0, -1.0]));
    let load = |name: &str| arrays::read(&directory.path(name), None).unwrap_or_else(|e| panic!("{name}: {e}"));
    let line = "girder run doors.gir --in images=images.npy --out sums=sums.npy --arg steps=3";
    assert_eq!(directory.line(line).code, 0);
    assert_eq!(load("sums.npy"), floats(&[3], &[21.0, 43.0, 65.0]));
    let done = directory.line(&format!("{line} --set w=w.npy --arg scale=0.5 --get w=back.npy --get w"));
    assert_eq!((done.code, done.output.as_str()), (0, "w [1.0, -1.0]\n"), "{}", done.errors);
    assert_eq!(load("sums.npy"), floats(&[3], &[-0.5, -0.5, -0.5]));
    assert_eq!(load("back.npy"), floats(&[2], &[1.0, -1.0]));
    let done = directory.line("girder run doors.gir --in images=images.npy --out sums=sums.npy --arg steps=4");
    assert!(done.code == 1 && done.errors.contains("run::stream_ended"), "{}", done.errors);
    assert_eq!(load("sums.npy"), floats(&[3], &[21.0, 43.0, 65.0]), "what was sent before the failure is kept");
    for (line, code) in [
        ("girder run doors.gir --set w=images.npy --in images=images.npy", "run::wrong_array"),
        ("girder run doors.gir --in images=doors.gir", "run::cannot_read"),
        ("girder run doors.gir --in images=w.npz:w", "run::cannot_read"),
        ("girder run doors.gir --in sums=w.npy", "run::no_stream"),
        ("girder run doors.gir", "run::stream"),
    ] {
        let done = directory.line(line);
        assert!(done.code == 1 && done.errors.contains(code), "{line}: {}", done.errors);
    }
}

#[test]
fn a_timeline_is_the_same_whether_it_is_estimated_or_run() {
    let directory = TestDirectory::new();
    let text = "//! girder: --target small-2\nvar x: f32[16] = 1.0;\n\
        program main() { repeat 3 { on ipu(0) { x <- sin(x); } on ipu(1) { print(sum(x)); } } }\n";
    directory.write("two.gir", text);
    let drawn = |line: &str| {
        let done = directory.line(&format!("girder {line} --timeline out.svg"));
        assert_eq!(done.code, 0, "{line}: {}", done.errors);
        std::fs::read_to_string(directory.path("out.svg")).expect("a picture")
    };
    let svg = drawn("check two.gir");
    assert!(svg.contains("IPU 0") && svg.contains("IPU 1") && svg.contains("main.sin") && svg.contains("cycles"));
    // The background, two rows of three bars each at least, and a square for each name.
    assert!(svg.matches("<rect").count() > 8);
    for line in ["run two.gir", "run two.gir --mode exact --threads 1", "check two.gir --stats"] {
        assert!(drawn(line) == svg, "{line}");
    }
    for (line, code, found) in [
        ("girder run two.gir --timeline out.png", 2, "usage::argument"),
        ("girder check two.gir --timeline none/out.svg", 1, "driver::cannot_write"),
    ] {
        let done = directory.line(line);
        assert!(done.code == code && done.errors.contains(found), "{line}: {}", done.errors);
    }
}

#[test]
fn a_plot_is_the_same_in_every_mode() {
    let directory = TestDirectory::new();
    let text = "stream wave: out f32;\nstream pairs: out i32[2];\nstream wide: out f32[3, 4];\n\
        program main() { repeat k in 0..700 { wave <- sin(f32(k) / 50.0); pairs <- k * i32([1, -1]); } }\n";
    directory.write("plot.gir", text);
    let plot = |mode: &str| {
        let done = directory.line(&format!("girder run plot.gir --mode {mode} --plot wave,pairs={mode}.svg"));
        assert_eq!(done.code, 0, "{}", done.errors);
        std::fs::read_to_string(directory.path(&format!("{mode}.svg"))).expect("a plot")
    };
    let svg = plot("fast");
    // A band and a line of the wave, and of each number of the pairs.
    assert_eq!(svg.matches("<polygon").count(), 3);
    assert!(svg.contains("wave") && svg.contains("pairs") && svg == plot("interpret") && svg == plot("exact"));
    for (line, code, found) in [
        ("girder run plot.gir --plot wide=wide.svg", 1, "run::no_plot"),
        ("girder run plot.gir --plot wave,waves=wide.svg", 1, "run::no_stream"),
        ("girder run plot.gir --plot wave=none/wide.svg", 1, "driver::cannot_write"),
        ("girder run plot.gir --plot wave=wave.png", 2, "usage::argument"),
        ("girder run plot.gir --plot wave", 2, "usage::argument"),
    ] {
        let done = directory.line(line);
        assert!(done.code == code && done.errors.contains(found), "{line}: {}", done.errors);
    }
}

/// A stream that wraps starts its file again inside a packet, between two rows of the file.
#[test]
fn a_file_of_a_stream_that_wraps_need_not_be_whole_packets() {
    let directory = TestDirectory::new();
    let text = "stream s: in f32[3, 2] with (wrap: true);\nprogram main() { repeat 3 { print(\"s\", read(s)); } }\n";
    directory.write("s.gir", text);
    let save = |name: &str, array: &Array| arrays::write(&directory.path(name), array).expect("a file");
    save("two.npy", &floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]));
    save("wide.npy", &floats(&[1, 4], &[1.0, 2.0, 3.0, 4.0]));
    save("none.npy", &floats(&[0, 2], &[]));
    let odd = "s [[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]\n";
    let even = "s [[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]\n";
    assert_eq!(directory.line("girder run s.gir --in s=two.npy").output, [odd, even, odd].concat());
    for (file, code) in [("wide", "run::wrong_array"), ("none", "run::stream_ended")] {
        let done = directory.line(&format!("girder run s.gir --in s={file}.npy"));
        assert!(done.code == 1 && done.errors.contains(code), "{file}: {}", done.errors);
    }
}

/// An output file that cannot be written is reported before the run, and no new file is left behind.
#[test]
fn files_are_found_to_be_unwritable_before_the_run() {
    let directory = TestDirectory::new();
    directory
        .write("x.gir", "stream s: out f32;\nvar x: f32;\nprogram main() { print(\"ran\"); s <- x; abort(\"no\"); }\n");
    for line in ["girder run x.gir --out s=nowhere/s.npy", "girder run x.gir --get x=nowhere/x.npy"] {
        let done = directory.line(line);
        assert!(done.code == 1 && done.errors.contains("driver::cannot_write"), "{line}: {}", done.errors);
        assert_eq!(done.output, "", "{line}");
    }
    assert_eq!(directory.line("girder run x.gir --get x=x.npy").code, 1);
    assert!(!directory.path("x.npy").exists(), "a run that failed leaves no empty file");
}

/// Mode fast runs while the tables of the machine are made. A program that does not fit is stopped, leaves no file, and
/// has the same report whatever it did until then.
#[test]
fn a_program_that_does_not_fit_is_stopped() {
    let directory = TestDirectory::new();
    directory.write("large.gir", LARGE);
    let mut reports = vec![];
    for go in ["true", "false"] {
        let done = directory.line(&format!("girder run large.gir --arg go={go} --out sent=s.npy --save kept.npz"));
        assert_eq!((done.code, done.output.as_str()), (1, ""), "{}", done.errors);
        reports.push(done.errors);
    }
    assert!(reports[0].contains("memory::out_of_memory") && !reports[0].contains("run::"), "{}", reports[0]);
    assert_eq!(reports[0], reports[1]);
    for file in ["s.npy", "kept.npz"] {
        assert!(!directory.path(file).exists(), "{file}");
    }
    let done = directory.line("girder run large.gir --arg go=false --allow-over-memory");
    assert!(done.code == 1 && done.errors.contains("run::"), "{}", done.errors);
}

const LARGE: &str = r#"//! girder: --target small
codelet sum(in a: f32[n], out s: f32) { s = sum i in 0..n { a[i] }; }
let go = true;
stream sent: out f32;
var far: f32[8000] on tile(1);
var near: f32[10000] on tile(0);
var s: f32 on tile(0);
state goes_on: bool = go;
program main() {
    near <- 1.0;
    far <- 1.0;
    while goes_on { s <- s + 1.0; sent <- s; }
    compute { vertex sum(a: far, s: s) on tile(0); }
    abort("the end");
}
"#;

/// A program with a race does not begin.
#[test]
fn nothing_runs_before_the_proof_that_nothing_races() {
    let directory = TestDirectory::new();
    let text = "codelet put(out y: f32) { y = 1.0; }\nvar x: f32[4];\nprogram main() { print(\"begins\"); \
                compute { vertex put(y: x[0]); vertex put(y: x[0]); } }\n";
    directory.write("race.gir", text);
    let done = directory.line("girder run race.gir");
    assert!(done.errors.contains("race::write_write"), "{}", done.errors);
    assert_eq!(done.output, "");
}

/// The message about an unknown variable lists only variables that the user named.
#[test]
fn only_names_of_the_user_are_listed() {
    let directory = TestDirectory::new();
    let text = "var x: f32[2];\nprogram main() { const t: f32[2] = [1, 2]; x <- x + t + 1.0; x[0..2] <- [3, 4]; }\n";
    directory.write("x.gir", text);
    let done = directory.line("girder run x.gir --get y");
    assert!(done.errors.contains("variables that keep their values are x\n"), "{}", done.errors);
}

#[test]
fn arrays_of_archives_are_named() {
    let directory = TestDirectory::new();
    directory.write("w.gir", "var w: f32[64, 10];\nprogram main() { print(\"sum\", sum(w * w) > 1.0); }\n");
    let done = directory.line("girder run w.gir --set w=examples/digits/expected.npz:w");
    assert_eq!(done.output, "sum true\n", "{}", done.errors);
    let done = directory.line("girder run w.gir --set w=examples/digits/expected.npz");
    assert!(done.code == 1 && done.errors.contains("name one"), "{}", done.errors);
}

#[test]
fn a_machine_comes_from_a_file() {
    let directory = TestDirectory::new();
    directory.write("x.gir", "program main() { print(\"tiles\", tiles); }\n");
    let text = directory.line("girder targets small").output;
    directory.write("half.toml", &text.replace("tiles = 16", "tiles = 8").replace("columns = 2", "columns = 1"));
    assert_eq!(directory.line("girder run x.gir --target half.toml").output, "tiles 8\n");
    directory.write("broken.toml", &text.replace("ipus = 1", "ipus = \"one\""));
    let done = directory.line("girder check x.gir --target broken.toml");
    assert!(done.code == 1 && done.errors.contains("machine::invalid"), "{}", done.errors);
    assert!(done.errors.contains("broken.toml:5"), "the line is shown: {}", done.errors);
}

#[test]
fn files_are_formatted_in_place_or_only_checked() {
    let directory = TestDirectory::new();
    directory.write("x.gir", "var   x:f32 ;\n");
    let done = directory.line("girder fmt x.gir --check");
    assert_eq!((done.code, done.output.as_str()), (1, "x.gir\n"));
    assert_eq!(directory.line("girder fmt x.gir").code, 0);
    assert_eq!(directory.read("x.gir"), "var x: f32;\n");
    assert_eq!(directory.line("girder fmt x.gir --check").code, 0);
    directory.write("broken.gir", "var x f32;\n");
    assert_eq!(directory.line("girder fmt broken.gir").code, 1);
    assert_eq!(directory.read("broken.gir"), "var x f32;\n");
}

#[test]
fn a_new_program_runs_and_is_never_overwritten() {
    let directory = TestDirectory::new();
    assert_eq!(directory.line("girder new hello").code, 0);
    let done = directory.line("girder run hello");
    assert!(done.output.starts_with("y [100.0, 101.0, 102.0"), "{}{}", done.output, done.errors);
    assert_eq!(directory.line("girder fmt hello --check").code, 0, "the first program is formatted");
    directory.write("hello/hello.gir", "mine");
    let done = directory.line("girder new hello");
    assert!(done.code == 1 && done.errors.contains("driver::exists"), "{}", done.errors);
    assert_eq!(directory.read("hello/hello.gir"), "mine");
}

#[test]
fn every_printed_stage_resumes_from_its_file() {
    let directory = TestDirectory::new();
    let expected = directory.line("girder run examples/suffix-sum").output;
    for stage in ["graph", "placed", "race-free", "planned", "scheduled", "allocated"] {
        let file = format!("{stage}.gir");
        assert_eq!(directory.line(&format!("girder build examples/suffix-sum --stage {stage} -o {file}")).code, 0);
        assert_eq!(directory.line(&format!("girder run {file} --mode exact")).output, expected, "from {stage}");
        assert_eq!(directory.line(&format!("girder build {file} --stage {stage}")).output, directory.read(&file));
    }
    assert!(Path::new(&directory.path("graph.gir")).exists());
}

#[test]
fn options_in_the_head_of_a_file_yield_to_the_command_line() {
    let directory = TestDirectory::new();
    directory.write(
        "x.gir",
        "//! girder: --arg n=3 --target small\nlet n = 1;\nprogram main() { print(\"n\", n * tiles); }\n",
    );
    assert_eq!(directory.line("girder run x.gir").output, "n 48\n");
    assert_eq!(directory.line("girder run x.gir --arg n=2 --target small-2").output, "n 64\n");
    directory.write("y.gir", "//! girder: --colour red\nprogram main() {}\n");
    let done = directory.line("girder run y.gir");
    assert!(done.code == 1 && done.errors.contains("driver::header"), "{}", done.errors);
}

#[test]
fn generated_code_is_printed() {
    let directory = TestDirectory::new();
    let text = "codelet twice(in x: f32[n], out y: f32[n]) { for i in 0..n { y[i] = 2.0 * x[i]; } }\n\
        var x: f32[100];\nvar y: f32[100];\n\
        program main() { compute set { vertex twice(x, y) on tile(0); } }\n";
    directory.write("twice.gir", text);
    for (stage, expected) in
        [("clif", "function %twice"), ("asm", "ret"), ("asm", "; kernel 0: codelet twice(x[100], y[100])")]
    {
        let done = directory.line(&format!("girder build twice.gir --stage {stage}"));
        assert!(done.code == 0 && done.output.contains(expected), "{stage}: {} {}", done.output, done.errors);
    }
}

#[test]
fn results_do_not_depend_on_the_level_of_the_instruction_set() {
    let directory = TestDirectory::new();
    let text =
        "codelet mixed(in x: f32[n], in b: u8[n], out y: f32[n], out s: f64, out most: f32, inout bins: i32[8]) {
            for i in 0..n { y[i] = sigmoid(x[i]) + tanh(x[i] * f32(b[i])) * exp(0.1 * x[i]); }
            s = sum i in 0..n { f64(x[i]) * 0.1 };
            most = max i in 0..n { log(abs(x[i])) };
            for i in 0..8 { bins[i] = 0; }
            for i in 0..n { bins[i32(b[i]) & 7] += i32(x[i]); }
        }
        codelet vertex_each(in x: f32, inout y: f32) { y = select(x < y, fma(x, y, 0.1), sqrt(abs(x))); }
        var x: f32[333] = list i in 0..333 { float(7 * i % 61) / 3.0 - 9.0 };
        var b: u8[333] = list i in 0..333 { i * i % 251 };
        var y: f32[333];
        var s: f64;
        var most: f32;
        var bins: i32[8];
        program main() {
            compute one { vertex mixed(x, b, y, s, most, bins) on tile(0); }
            compute each { for i in 0..333 { vertex vertex_each(x[i], y[i]) on tile(0); } }
        }\n";
    directory.write("mixed.gir", text);
    let run = |level: &str, mode: &str| {
        let gets = ["y", "s", "most", "bins"].map(|name| format!("--get {name}")).join(" ");
        directory.line(&format!("{level} girder run mixed.gir --mode {mode} {gets}"))
    };
    let expected = run("", "interpret");
    assert_eq!(expected.code, 0, "{}", expected.errors);
    for level in ["", "GIRDER_ISA=portable", "GIRDER_ISA=avx2", "GIRDER_ISA=avx512"] {
        for mode in ["fast", "exact"] {
            let done = run(level, mode);
            let is_here = !done.errors.contains("which this machine does not have");
            assert!(!is_here || done.output == expected.output, "{level} {mode}: {}{}", done.output, done.errors);
        }
    }
    let refused = run("GIRDER_ISA=sse9", "fast");
    assert!(refused.code == 1 && refused.errors.contains("levels are portable, avx2, avx512"), "{}", refused.errors);
}
