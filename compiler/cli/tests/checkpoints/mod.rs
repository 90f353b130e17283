//! `--save` and `--load`, and the checks of files before a program is compiled.

use crate::shell::TestDirectory;
use girder::arrays;
use girder::ir::types::ElemType;
use std::io::Write;

/// A program that keeps a param, a state of a function and a variable. `x` is only read, and `y` only written.
const TRAINING: &str = "//! girder: --target small
fn dense(n: int, m: int) {
    param w: f32[n, m] = 0.5;
    return (w: w);
}
fn counted(x: f32[n]) {
    state calls: i32;
    calls <- calls + 1;
    return x + f32(calls);
}
let net = [dense(2, 3), dense(3, 2)];
var x: f32[2] = [1, 2];
var y: f32[2];
var seen: i32;
program main() {
    seen += 10;
    let h = counted(x @ net[0].w @ net[1].w);
    net[0].w <- net[0].w + sum(h);
    y <- h;
    print(\"y\", y);
}
";

const NAMES: [&str; 4] = ["main.h.counted.calls", "net.0.w", "net.1.w", "seen"];

#[test]
fn a_run_continues_from_its_checkpoint() {
    let directory = TestDirectory::new();
    directory.write("train.gir", TRAINING);
    let whole = directory.line("girder run train.gir main main main");
    assert_eq!((whole.code, whole.output.lines().count()), (0, 3), "{}", whole.errors);
    for file in ["a.npz", "a.safetensors"] {
        let first = directory.line(&format!("girder run train.gir --save {file}"));
        assert_eq!(first.code, 0, "{file}: {}", first.errors);
        let bytes = std::fs::read(directory.path(file)).expect("a checkpoint");
        assert_eq!(directory.line(&format!("girder run train.gir --save {file}")).code, 0);
        assert_eq!(std::fs::read(directory.path(file)).expect("a checkpoint"), bytes, "{file}: the same bytes");
        let rest = directory.line(&format!("girder run train.gir main main --load {file} --save {file}"));
        assert_eq!(first.output + &rest.output, whole.output, "{file}: {}", rest.errors);
        let done = directory.line(&format!("girder run train.gir --load {file} --get seen --mode exact"));
        assert!(done.output.ends_with("seen 40\n"), "{file}: {}{}", done.output, done.errors);
    }
    for name in NAMES {
        let array = arrays::read(&directory.path("a.npz"), Some(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(array.ty == ElemType::F32, name.ends_with(".w"), "{name}");
    }
    let held = arrays::read(&directory.path("a.npz"), Some("x")).expect_err("an input is not kept");
    let mut held: Vec<&str> = held.rsplit("holds ").next().unwrap_or_default().split(", ").collect();
    held.sort_unstable();
    assert_eq!(held, NAMES);
}

/// Returns what a program prints whose run succeeds.
fn output(directory: &TestDirectory, line: &str) -> String {
    let done = directory.line(&format!("girder run {line}"));
    assert_eq!(done.code, 0, "{line}: {}", done.errors);
    done.output
}

#[test]
fn remote_buffers_are_kept_like_variables() {
    let directory = TestDirectory::new();
    directory.write(
        "rows.gir",
        "//! girder: --target small-4
        remote rows: i32[3, 2];
        var k: i32;
        program main() {
            print(\"row\", read(rows[k]));
            rows[k] <- read(rows[k]) + k + 1 + replica_index;
            k += 1;
        }
        program first() { k <- 0; }
        program second() { k <- 1; }",
    );
    let run = |line: &str| output(&directory, &format!("rows.gir {line}"));
    for file in ["a.npz", "a.safetensors"] {
        run(&format!("main main --save {file} --get rows=rows.npy"));
        let rows = arrays::read(&directory.path("rows.npy"), None).expect("all rows");
        assert_eq!((&rows.shape[..], rows.ty), (&[3, 2][..], ElemType::I32));
        let elements: Vec<u8> = [1i32, 1, 2, 2, 0, 0].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(rows.bytes[..], elements[..]);
        assert_eq!(run(&format!("first main --load {file} --get rows")), "row [1, 1]\nrows [[2, 2], [2, 2], [0, 0]]\n");
        assert_eq!(run("second main --set rows=rows.npy"), "row [2, 2]\n");
    }
    let each = run("main main --replicas 2 --save each.npz --get rows");
    assert!(each.ends_with("rows [[[1, 1], [2, 2], [0, 0]], [[2, 2], [3, 3], [0, 0]]]\n"), "{each}");
    assert_eq!(run("second main --replicas 2 --load each.npz"), "row [[2, 2], [3, 3]]\n");
    run("main --get k=k.npy");
    let wrong = directory.line("girder run rows.gir main --set rows=k.npy");
    assert!(wrong.code != 0 && wrong.errors.contains("run::wrong_array"), "{}", wrong.errors);
}

/// A variable of a body without a first value keeps that of the last run, as one at the top of a module does.
#[test]
fn variables_of_bodies_that_keep_their_values_are_kept() {
    let directory = TestDirectory::new();
    directory.write(
        "body.gir",
        "//! girder: --target small-4
        fn counted(x: f32[n]) {
            var calls: i32;
            calls <- calls + 1 + replica_index;
            return x + f32(calls);
        }
        var at: i32;
        program main() {
            var total: f32;
            repeat 3 { total += 2.0; }
            print(\"total\", total);
            var last: f32[2];
            last[at % 2] <- total;
            at += 1;
            let h = counted(last);
            print(\"h\", h);
            var once: f32;
            once <- total;
            print(\"once\", once + 1.0);
        }",
    );
    let run = |line: &str| output(&directory, &format!("body.gir {line}"));
    for mode in ["", "--mode exact", "--replicas 2", "--without fuse-elementwise"] {
        let whole = run(&format!("main main main {mode}"));
        for file in ["a.npz", "a.safetensors"] {
            let first = run(&format!("main {mode} --save {file}"));
            let second = run(&format!("main {mode} --load {file} --save {file}"));
            let third = run(&format!("main {mode} --load {file}"));
            assert_eq!(first + &second + &third, whole, "{mode} {file}");
        }
    }
    let held = arrays::read(&directory.path("a.npz"), Some("x")).expect_err("there is no `x`");
    let mut held: Vec<&str> = held.rsplit("holds ").next().unwrap_or_default().split(", ").collect();
    held.sort_unstable();
    assert_eq!(held, ["at", "main.counted.calls", "main.last", "main.total"]);
    directory.write("total.gir", "program main() { var total: f32; repeat 3 { total += 2.0; } print(total); }");
    assert_eq!(directory.line("girder run total.gir --save total.npz").output, "6.0\n");
    assert_eq!(directory.line("girder run total.gir --load total.npz").output, "12.0\n");
    let done = directory.line("girder run body.gir --load total.npz");
    assert_eq!(done.code, 0, "a variable of a body may be missing: {}", done.errors);
    directory.write("other.gir", "program main() { var totals: f32; totals += 2.0; print(totals); }");
    let done = directory.line("girder run other.gir --load total.npz");
    assert!(done.errors.contains("it has `main.total`, f32, which the program does not have"), "{}", done.errors);
}

/// What `#[offload]` keeps is written before it is read, so the attribute may come and go between runs.
#[test]
fn a_checkpoint_leaves_out_what_is_kept_for_the_gradient() {
    let directory = TestDirectory::new();
    let text = |attribute: &str| {
        format!(
            "param w: f32 = 0.5;\nremote rows: f32[2, 1];\nprogram main() {{ var h: f32; h <- w; \
             {attribute} repeat 3 {{ h <- h * h; }} w <- w - grad(h, wrt: w); rows[1] <- h.expand(0); }}\n"
        )
    };
    directory.write("on.gir", &text("#[offload]"));
    directory.write("off.gir", &text(""));
    for (first, second) in [("on", "off"), ("off", "on"), ("on", "on")] {
        assert_eq!(directory.line(&format!("girder run {first}.gir --save w.npz")).code, 0);
        let done = directory.line(&format!("girder run {second}.gir --load w.npz --get rows"));
        assert_eq!(done.code, 0, "{first}, {second}: {}", done.errors);
    }
    // So is that of printed text.
    assert_eq!(directory.line("girder build on.gir --stage graph -o printed.gir").code, 0);
    assert_eq!(directory.line("girder run printed.gir --load w.npz").code, 0);
}

/// A param has one value for all replicas: a file with one for each does not fit.
#[test]
fn a_param_has_no_values_of_each_replica() {
    let directory = TestDirectory::new();
    let text = "//! girder: --target small-4 --replicas 2\nstate w: i32;\nprogram main() { w += replica_index; }\n";
    directory.write("state.gir", text);
    directory.write("param.gir", &text.replace("state w", "param w").replace("+= replica_index", "<- w + 1"));
    assert_eq!(directory.line("girder run state.gir --save w.npz").code, 0);
    assert_eq!(directory.line("girder run state.gir --load w.npz").code, 0);
    let done = directory.line("girder run param.gir --load w.npz");
    assert!(done.code == 1 && done.errors.contains("run::wrong_checkpoint"), "{}", done.errors);
}

/// A file with a value for each replica fits as many replicas, and one in which all are equal any number.
#[test]
fn values_of_each_replica_fit_as_many_replicas() {
    let directory = TestDirectory::new();
    directory.write(
        "own.gir",
        "//! girder: --target small-4
        param w: f32[2] = 1.0;
        state own: i32;
        program main(k: int = 1) { w <- w + 1.0; own += k * replica_index; }",
    );
    let run = |line: &str| directory.line(&format!("girder run own.gir {line}"));
    assert_eq!(run("--replicas 2 --save own.npz").code, 0);
    assert_eq!(run("--replicas 2 --save equal.npz --arg k=0").code, 0);
    for (replicas, names) in [("", "with one replica"), ("--replicas 4", "with 4 replicas")] {
        assert_eq!(run(&format!("{replicas} --load equal.npz")).code, 0, "{replicas}");
        let done = run(&format!("{replicas} --load own.npz"));
        let errors = done.errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(done.code, 1);
        for part in ["run::wrong_checkpoint", "one for each of 2 replicas", names, "run it with `--replicas 2`"] {
            assert!(errors.contains(part), "{replicas}: `{part}` is missing in\n{}", done.errors);
        }
    }
    assert_eq!(run("--replicas 2 --load own.npz").code, 0);
}

/// Another layer in another `let` renames nothing.
#[test]
fn differences_are_listed_all_at_once() {
    let directory = TestDirectory::new();
    directory.write("train.gir", TRAINING);
    assert_eq!(
        directory.line("girder run train.gir --save a.npz && girder run train.gir --save a.safetensors").code,
        0
    );
    let grown = TRAINING
        .replace("let net", "let embedding = dense(4, 4);\nlet net")
        .replace("dense(3, 2)", "dense(3, 4)")
        .replace("@ net[1].w", "@ net[1].w[.., 0..2]")
        .replace("seen", "done");
    directory.write("grown.gir", &grown);
    for file in ["a.npz", "a.safetensors"] {
        let done = directory.line(&format!("girder run grown.gir --load {file}"));
        assert_eq!((done.code, done.output.as_str()), (1, ""));
        for line in [
            "run::wrong_checkpoint",
            "it has no `embedding.w`, which is f32[4, 4]",
            "`net.1.w` is f32[3, 2] in it, but f32[3, 4] in the program",
            "it has `seen`, i32, which the program does not have",
        ] {
            assert!(done.errors.contains(line), "{file}: `{line}` is missing in\n{}", done.errors);
        }
        assert!(!done.errors.contains("net.0.w"), "{file}: {}", done.errors);
    }
    for (line, expected) in [
        ("girder run train.gir --load train.gir", "ends neither in `.npz` nor in `.safetensors`"),
        ("girder run train.gir --load b.npz", "run::cannot_read"),
        ("girder run train.gir --save b.txt", "driver::cannot_write"),
        ("girder run train.gir --save nowhere/b.npz", "driver::cannot_write"),
        ("girder run examples/matvec --save b.npz", "run::nothing_to_save"),
    ] {
        let done = directory.line(line);
        assert!(done.code == 1 && done.errors.contains(expected), "{line}: {}", done.errors);
        assert_eq!(done.output, "", "{line} ran");
    }
}

/// A run that fails leaves the checkpoint before it, and no file beside it.
#[test]
fn a_failed_run_keeps_the_old_checkpoint() {
    let directory = TestDirectory::new();
    std::fs::create_dir(directory.path("kept")).expect("a directory");
    directory.write("x.gir", "state n: i32;\nprogram main() { n += 1; abort(\"no\", when: n > 1); }\n");
    assert_eq!(directory.line("girder run x.gir --save kept/n.npz").code, 0);
    let before = std::fs::read(directory.path("kept/n.npz")).expect("a checkpoint");
    let done = directory.line("girder run x.gir --load kept/n.npz --save kept/n.npz");
    assert!(done.code == 1 && done.errors.contains("run::abort"), "{}", done.errors);
    assert_eq!(std::fs::read(directory.path("kept/n.npz")).expect("a checkpoint"), before);
    assert_eq!(std::fs::read_dir(directory.path("kept")).expect("a directory").count(), 1);
    std::fs::write(directory.path("kept/n.npz"), &before[..before.len() - 40]).expect("a file");
    let done = directory.line("girder run x.gir --load kept/n.npz");
    assert!(done.code == 1 && done.errors.contains("run::cannot_read"), "{}", done.errors);
    let text = b"\x10\0\0\0\0\0\0\0{\"n\":{\"dtype\":1}}";
    std::fs::write(directory.path("bad.safetensors"), text).expect("a file");
    let done = directory.line("girder run x.gir --load bad.safetensors");
    assert!(done.code == 1 && done.errors.contains("not a safetensors file"), "{}", done.errors);
}

/// A file of 6 GB (a sparse one) is refused by its header.
#[test]
fn sizes_are_compared_before_elements_are_read() {
    let directory = TestDirectory::new();
    let mut file = std::fs::File::create(directory.path("big.npy")).expect("a file");
    file.write_all(&arrays::npy_header(ElemType::F32, &[1_500_000_000])).expect("space");
    file.set_len(6_000_000_128).expect("a sparse file");
    let text = "stream s: in f32[4];\nvar x: f32[4];\nprogram main() { x <- read(s); }\n";
    directory.write("x.gir", text);
    directory.write("load.gir", "var x: f32[4] = load(\"big.npy\");\nprogram main() { print(\"x\", x); }\n");
    let start = std::time::Instant::now();
    for (line, expected) in [
        ("girder run x.gir --set x=big.npy", "big.npy holds f32[1500000000], but `x` is f32[4]"),
        ("girder run load.gir", "it holds 6000000000 bytes"),
    ] {
        let done = directory.line(line);
        assert!(done.code == 1 && done.errors.contains(expected), "{line}: {}", done.errors);
    }
    let done = directory.line("girder run x.gir --in s=big.npy --limit host_bytes=1_000_000 --get x");
    assert_eq!((done.code, done.output.as_str()), (0, "x [0.0, 0.0, 0.0, 0.0]\n"), "packets are read one by one");
    let mut big_endian = arrays::npy_header(ElemType::F32, &[1_500_000_000]);
    let at = big_endian.windows(3).position(|w| w == b"<f4").expect("a type");
    big_endian[at] = b'>';
    std::fs::write(directory.path("big_endian.npy"), big_endian).expect("a file");
    let done = directory.line("girder run x.gir --in s=big_endian.npy --limit host_bytes=1_000_000");
    assert!(done.code == 1 && done.errors.contains("run::host_memory"), "{}", done.errors);
    directory.write("shuffled.gir", &text.replacen("[4];", "[4] with (wrap: true, shuffle: 1);", 1));
    let rows = girder::Array { ty: ElemType::F32, shape: vec![60_000, 4], bytes: vec![0; 960_000].into() };
    arrays::write(&directory.path("rows.npy"), &rows).expect("a file");
    let done = directory.line("girder run shuffled.gir --in s=rows.npy --limit host_bytes=1_000_000");
    let expected = "rows.npy needs 1200000 bytes, 1200000 of them for the order of the rows of `s`";
    assert!(done.code == 1 && done.errors.contains(expected), "{}", done.errors);
    let done = directory.line("girder run shuffled.gir --in s=rows.npy --limit host_bytes=1_200_000 --get x");
    assert_eq!((done.code, done.output.as_str()), (0, "x [0.0, 0.0, 0.0, 0.0]\n"));
    // Three axes of the greatest length, behind one without elements.
    let idx = [&[0, 0, 0x0e, 4, 0, 0, 0, 0][..], &[255; 12]].concat();
    std::fs::write(directory.path("none.idx"), idx).expect("a file");
    let done = directory.line("girder run x.gir --in s=none.idx");
    assert!(done.code == 1 && done.errors.contains("its shape is too large"), "{}", done.errors);
    assert!(start.elapsed().as_secs() < 20, "refused after {:?}", start.elapsed());
}

/// What the command line names is checked before the passes run, which would report something else here.
#[test]
fn the_command_line_is_checked_first() {
    let directory = TestDirectory::new();
    directory.write(
        "large.gir",
        "//! girder: --target small\nstream s: in f32;\nvar x: f32[4000000];\nconst c: f32 = 1;\nremote b: f32[2, 2];\n\
         program main(n: int = 1) { x[0] <- read(s); }\n",
    );
    let save = |name: &str, bytes: &[u8]| {
        let array = girder::Array { ty: ElemType::F32, shape: vec![1], bytes: bytes.into() };
        arrays::write(&directory.path(name), &array).expect("a file");
    };
    save("one.npy", &[0; 4]);
    assert!(directory.line("girder run large.gir --in s=one.npy").errors.contains("memory::"));
    for (options, expected) in [
        ("--get y", "run::no_variable"),
        ("--set y=one.npy", "run::no_variable"),
        ("--get y", "variables that keep their values are x, c, b"),
        ("--set x=one.npy", "run::wrong_array"),
        ("--set c=one.npy", "run::constant"),
        ("--in t=one.npy", "run::no_stream"),
        ("--out s=one.npy", "run::no_stream"),
        ("--in s=two.npy", "run::cannot_read"),
        ("other", "run::no_program"),
        ("--arg m=1", "elaborate::unknown_argument"),
        ("--arg n=x", "elaborate::"),
    ] {
        let done = directory.line(&format!("girder run large.gir {options}"));
        assert!(done.code == 1 && done.errors.contains(expected), "{options}: {}", done.errors);
        assert!(!done.errors.contains("memory::"), "{options}: {}", done.errors);
    }
}

/// `--get` and `--set` take a variable of a body that keeps its value; for others, the message says what can be given.
#[test]
fn variables_of_bodies_that_keep_their_values_can_be_given() {
    let directory = TestDirectory::new();
    directory.write(
        "body.gir",
        "//! girder: --target small\nvar y: f32;\n\
         program main() {\n  var total: f32 = 2;\n  total += 3.0;\n  y <- total;\n\
         var runs: f32[2];\n  runs += 1.0;\n  print(runs);\n}\n",
    );
    let five = crate::floats(&[2], &[5.0, 6.0]);
    arrays::write(&directory.path("five.npy"), &five).expect("a file");
    let done = directory.line("girder run body.gir --set main.runs=five.npy --get main.runs");
    assert_eq!((done.code, &done.output[..]), (0, "[6.0, 7.0]\nmain.runs [6.0, 7.0]\n"), "{}", done.errors);
    for (name, message, help) in [
        (
            "main.total",
            "the variable is a temporary and keeps no value",
            "variables that keep their values are y, main.runs",
        ),
        (
            "total",
            "does not exist; `main.total` is a temporary and keeps no value",
            "write it to a variable at the top",
        ),
        ("runs", "`--get runs`: the variable does not exist\"", "did you mean `main.runs`?"),
        ("main.run", "the variable does not exist", "variables that keep their values are y, main.runs"),
    ] {
        let done = directory.line(&format!("girder run body.gir --get {name} --message-format json"));
        assert!(done.code == 1 && done.errors.contains("run::no_variable"), "{name}: {}", done.errors);
        assert!(done.errors.contains(message) && done.errors.contains(help), "{name}: {}", done.errors);
    }
}

/// An array of rank 0 is a number, and one value is written as one.
#[test]
fn arrays_of_rank_0_are_numbers() {
    let directory = TestDirectory::new();
    directory.write(
        "scalar.gir",
        "//! girder: --target small\nvar x: f32 = load(\"half.npy\");\nconst all: f32[2] = load(\"half.npy\");\n\
         let n = load(\"half.npy\");\nstream s: in f32;\nstream t: out f32;\n\
         program main() { x += read(s) + 4.0 * n; t <- x; print(all); }\n",
    );
    arrays::write(&directory.path("half.npy"), &crate::floats(&[], &[0.5])).expect("a file");
    arrays::write(&directory.path("two.npy"), &crate::floats(&[], &[2.0])).expect("a file");
    let done = directory.line(
        "girder run scalar.gir --set x=two.npy --in s=half.npy --get x=x.npy --out t=t.npy && \
         girder run scalar.gir --in s=half.npy --set x=x.npy --get x",
    );
    assert_eq!((done.code, &done.output[..]), (0, "[0.5, 0.5]\nx 7.0\n"), "{}", done.errors);
    let read = |name: &str| {
        let file = arrays::ArrayFile::open(&directory.path(name), None).expect("an array");
        (file.header.shape.clone(), file.elements().expect("its elements"))
    };
    let bytes = 4.5f32.to_le_bytes().to_vec();
    // A stream is a list of packets, here of one.
    assert_eq!((read("x.npy"), read("t.npy")), ((vec![], bytes.clone()), (vec![1], bytes)));
}

/// The help names what is to be changed: the type, the shape, or both.
#[test]
fn an_array_that_does_not_fit_is_to_be_changed_where_it_differs() {
    let directory = TestDirectory::new();
    directory.write("x.gir", "var x: f64[2, 2];\nvar k: i32[4];\nprogram main() { print(\"x\", sum(x)); }\n");
    let save = |name: &str, array: &girder::Array| arrays::write(&directory.path(name), array).expect("a file");
    save("four.npy", &crate::floats(&[4, 1], &[1.0, 2.0, 3.0, 4.0]));
    save("three.npy", &crate::floats(&[3], &[1.0, 2.0, 3.0]));
    for (given, help) in [
        ("x=four.npy", "np.save(file, x.astype(np.float64).reshape([2, 2]))"),
        ("k=four.npy", "np.save(file, x.astype(np.int32).reshape([4]))"),
        ("x=three.npy", "an array of the shape [2, 2] with NumPy: `np.save(file, x.astype(np.float64))`"),
    ] {
        let done = directory.line(&format!("girder run x.gir --set {given} --message-format json"));
        assert!(done.code == 1 && done.errors.contains(help), "{given}: {}", done.errors);
    }
}
