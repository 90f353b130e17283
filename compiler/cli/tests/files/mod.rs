//! Files that the command reads and writes: which it refuses, and what it leaves behind.

use crate::floats;
use crate::shell::TestDirectory;
use girder::arrays;

/// A program that reads a stream and a variable and writes both.
const COPIES: &str = "//! girder: --in later=later.npy --target small
stream numbers: in f32;
stream later: in f32;
stream sums: out f32;
stream twice: out f32;
var x: f32;
state kept: f32;
program main() {
    x += read(numbers);
    kept += 1.0;
    sums <- x;
    twice <- x + x;
}
";

/// Nothing is written over what the command reads, whatever the names are by which both are known.
#[test]
fn a_file_that_is_read_is_not_overwritten() {
    let directory = TestDirectory::new();
    directory.write("copies.gir", COPIES);
    directory.write("m.toml", &directory.line("girder targets small").output);
    let save = |name: &str, value| arrays::write(&directory.path(name), &floats(&[1], &[value])).expect("a file");
    save("numbers.npy", 1.0);
    save("later.npy", 2.0);
    std::fs::create_dir(directory.path("sub")).expect("a directory");
    std::os::unix::fs::symlink("../numbers.npy", directory.path("sub/link.npy")).expect("a link");
    let run = "girder run copies.gir --in numbers=numbers.npy";
    assert_eq!(directory.line(&format!("{run} --save all.npz")).code, 0);
    let old = |name: &str| std::fs::read(directory.path(name)).expect("a file");
    let files = ["copies.gir", "m.toml", "numbers.npy", "later.npy", "all.npz"];
    let before = files.map(old);
    for (line, why) in [
        ("girder build copies.gir -o copies.gir".to_string(), "which is the program"),
        ("girder build copies.gir -o ./sub/../copies.gir".to_string(), "which is the program"),
        ("girder build copies.gir --target m.toml -o m.toml".to_string(), "which describes the machine"),
        (format!("{run} --get x=copies.gir"), "which is the program"),
        (format!("{run} --get x=m.toml --target ./m.toml"), "which describes the machine"),
        (format!("{run} --out sums=numbers.npy"), "which `--in` reads"),
        (format!("{run} --out sums=sub/link.npy"), "`--out` would overwrite sub/link.npy, which `--in` reads"),
        (format!("{run} --get x=later.npy"), "at the head of the program"),
        (format!("{run} --load all.npz --get x=all.npz"), "which `--load` reads"),
        (format!("{run} --set kept=all.npz:kept --get x=all.npz"), "which `--set` reads"),
        (format!("{run} --out sums=a.npy --out twice=./a.npy"), "both write a.npy, also as ./a.npy"),
        (format!("{run} --out sums=a.npy --get x=a.npy"), "`--out` and `--get` both write a.npy"),
    ] {
        let done = directory.line(&line);
        assert!(done.code == 2 && done.errors.contains(why), "{line}: {}", done.errors);
    }
    assert!(files.map(old) == before, "a file was changed");
    // A drawing has a name of its own, so only a link can lead to a file that is read.
    std::os::unix::fs::symlink("numbers.npy", directory.path("n.svg")).expect("a link");
    for option in ["--plot sums=n.svg", "--timeline n.svg"] {
        let done = directory.line(&format!("{run} {option}"));
        assert!(done.code == 2 && done.errors.contains("which `--in` reads"), "{option}: {}", done.errors);
    }
    // What is read as a whole before anything is written may be written again.
    std::fs::copy(directory.path("numbers.npy"), directory.path("w.npy")).expect("a file");
    for options in
        ["--load all.npz --save all.npz", "--set x=w.npy --get x=w.npy", "--get x=/dev/null --get kept=/dev/null"]
    {
        let done = directory.line(&format!("{run} {options}"));
        assert_eq!(done.code, 0, "{options}: {}", done.errors);
    }
}

/// A module is not overwritten either.
#[test]
fn a_module_is_not_overwritten() {
    let directory = TestDirectory::new();
    directory.write("two.gir", "let two = 2;\n");
    directory.write("x.gir", "use \"two.gir\" as two;\nvar x: f32;\nprogram main() { x <- f32(two.two); }\n");
    assert_eq!(directory.line("girder run x.gir --get x").output, "x 2.0\n");
    for line in ["girder build x.gir -o two.gir", "girder run x.gir --get x=two.gir"] {
        let done = directory.line(line);
        assert!(done.code == 2 && done.errors.contains("is a module of the program"), "{line}: {}", done.errors);
    }
    assert_eq!(directory.read("two.gir"), "let two = 2;\n");
}

/// A pipe can be read only once.
#[test]
fn a_program_comes_from_a_pipe() {
    let directory = TestDirectory::new();
    let text = "//! girder: --target small\nprogram main() { print(\"tiles\", tiles); }\n";
    assert_eq!(directory.piped("run /dev/stdin", text).output, "tiles 16\n");
    directory.write("x.gir", text);
    let expected = directory.line("girder build x.gir").output;
    assert!(!expected.is_empty());
    let built = directory.piped("build /dev/stdin", text).output;
    assert_eq!(built.replace("module stdin", "module x"), expected);
    let done = directory.line("girder build missing.gir");
    assert!(done.code == 1 && done.errors.contains("driver::cannot_read"), "{}", done.errors);
}

/// An output has the form that its name promises.
#[test]
fn an_output_is_an_array_or_an_archive_of_one() {
    let directory = TestDirectory::new();
    directory
        .write("x.gir", "stream s: out i32[2];\nvar x: i32[2] = [3, 4];\nprogram main() { repeat 2 { s <- x; } }\n");
    let done = directory.line("girder run x.gir --get x=x.npz --out s=s.npz --get x=x.npy");
    assert_eq!(done.code, 0, "{}", done.errors);
    let array = |name: &str, key| arrays::read(&directory.path(name), key).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(array("x.npz", Some("x")), array("x.npy", None));
    assert_eq!((array("s.npz", Some("s")).shape, array("s.npz", None).bytes.len()), (vec![2, 2], 16));
    assert_eq!(directory.line("girder run x.gir --set x=x.npz:x").code, 0);
    for (option, help) in [
        ("--get x=x.npy.gz", "--get x=x.npy"),
        ("--get x=x.csv", "--get x=x.npy"),
        ("--out s=s.safetensors", "--out s=s.npy"),
        ("--out s=all.npz:s", "--out s=all.npz"),
    ] {
        let done = directory.line(&format!("girder run x.gir {option}"));
        assert!(done.code == 2 && done.errors.contains(help), "{option}: {}", done.errors);
    }
    let all = std::fs::read_dir(directory.path(".")).expect("a directory").count();
    assert_eq!(all, 5, "no file is left behind");
}

/// The help says what is in the way, and no name of a file of ours shows.
#[test]
fn the_help_tells_why_a_file_cannot_be_written() {
    let directory = TestDirectory::new();
    directory.write("x.gir", "stream s: out f32;\nstate x: f32;\nprogram main() { x += 1.0; s <- x; }\n");
    std::fs::create_dir(directory.path("folder")).expect("a directory");
    let mut lines = vec![
        ("run x.gir --get x=nowhere/x.npy", "name a file in a directory that exists"),
        ("run x.gir --save nowhere/x.npz", "name a file in a directory that exists"),
        ("run x.gir --save x.npy", "end the name in `.npz`"),
        ("run x.gir --get x=folder", "name a file, which"),
        ("run x.gir --out s=x.gir/s.npy", "a file has the name of a directory"),
        ("build x.gir -o nowhere/x.gir", "name a file in a directory that exists"),
        ("new x.gir/new", "a file has the name of a directory"),
    ];
    if std::path::Path::new("/dev/full").exists() {
        lines.push(("run x.gir --get x=/dev/full", "make room on the disk"));
        lines.push(("run x.gir --out s=/dev/full", "make room on the disk"));
        lines.push(("build x.gir -o /dev/full", "make room on the disk"));
    }
    for (line, help) in lines {
        let done = directory.line(&format!("girder {line}"));
        assert!(done.code == 1 && done.errors.contains("driver::cannot_write"), "{line}: {}", done.errors);
        assert!(done.errors.contains(help) && !done.errors.contains(".part"), "{line}: {}", done.errors);
    }
}

/// A checkpoint may be read by whoever may read other new files, and a link stays a link.
#[test]
fn a_checkpoint_is_a_file_like_others() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = TestDirectory::new();
    directory.write("x.gir", "state x: f32;\nprogram main() { x += 1.0; }\n");
    let mode = |name: &str| std::fs::metadata(directory.path(name)).expect("a file").permissions().mode();
    for file in ["a.npz", "a.safetensors"] {
        let (link, target) = (format!("link-{file}"), format!("real-{file}"));
        for name in [&link, file] {
            symlink(&target, directory.path(&link)).ok();
            let done = directory.line(&format!("girder run x.gir --save {name}"));
            assert_eq!(done.code, 0, "{name}: {}", done.errors);
            assert_eq!(mode(name), mode("x.gir"), "{name}");
        }
        assert!(directory.path(&link).is_symlink() && directory.path(&target).is_file(), "{file}");
    }
    // Also a link that leads nowhere yet.
    symlink("later.npy", directory.path("later")).expect("a link");
    assert_eq!(directory.line("girder run x.gir --get x=later").code, 0);
    assert!(directory.path("later").is_symlink() && directory.path("later.npy").is_file());
}

#[test]
fn a_head_names_files_beside_the_program() {
    let directory = TestDirectory::new();
    std::fs::create_dir(directory.path("sub")).expect("a directory");
    directory.write("sub/half.toml", "name = \"half\"\nextends = \"small\"\n[chip]\ntiles = 8\ncolumns = 1\n");
    let run = |head: &str| {
        directory.write("sub/x.gir", &format!("{head}\nprogram main() {{ print(\"tiles\", tiles); }}\n"));
        directory.line("girder run sub/x.gir")
    };
    for head in [
        "//! girder: --target half.toml",
        "//! girder: --target=half.toml",
        "// A program.\n\n//! girder: --target 'half.toml'",
    ] {
        let done = run(head);
        assert_eq!(done.output, "tiles 8\n", "{head}: {}", done.errors);
    }
    for (head, place) in [
        ("//! girder: --colour red", "sub/x.gir:1"),
        ("//! A program.\n//! girder: --arg 'a=b", "sub/x.gir:2"),
        ("let n = 1;\n//! girder: --arg n=2", "sub/x.gir:2"),
        ("//! girder: --arg n=2\n//! girder: --arg n=3", "sub/x.gir:2"),
        ("//! girder: --target small\n//! girder: --target small-2", "sub/x.gir:2"),
    ] {
        let done = run(head);
        assert!(done.code == 1 && done.errors.contains("driver::header"), "{head}: {}", done.errors);
        assert!(done.errors.contains(place), "{head}: {}", done.errors);
    }
    // `girder targets` prints a file like a built-in machine.
    let done = directory.line("girder targets sub/half.toml");
    assert!(done.output.starts_with("name = \"half\""), "{}{}", done.output, done.errors);
    assert!(done.output.contains("# Inherited from `small`"), "{}", done.output);
}

/// An argument of a program that does not run would change nothing.
#[test]
fn an_argument_belongs_to_what_runs() {
    let directory = TestDirectory::new();
    let text = "let n = 1;\nprogram main(a: int = 1) { print(\"a\", a + n); }\n\
                program other(b: int = 2) { print(\"b\", b); call inner(); }\n\
                program inner(c: int = 3) { print(\"c\", c); }\n";
    directory.write("x.gir", text);
    for options in ["--arg a=5 --arg n=2", "other --arg b=1", "main other --arg a=1 --arg b=2"] {
        let done = directory.line(&format!("girder run x.gir {options}"));
        assert_eq!(done.code, 0, "{options}: {}", done.errors);
    }
    for options in ["--arg b=5", "other --arg a=5", "other --arg c=5"] {
        let done = directory.line(&format!("girder run x.gir {options}"));
        assert!(done.code == 2 && done.errors.contains("which does not run"), "{options}: {}", done.errors);
    }
}

/// What replicas have apart goes out and comes back.
#[test]
fn replicas_are_set_apart() {
    let directory = TestDirectory::new();
    let text = "//! girder: --target small-4 --replicas 4\nvar own: i32[2];\nparam w: i32[2];\n\
                program main() { own[0] += replica_index; own[1] += 1; w <- w + 1; }\n";
    directory.write("x.gir", text);
    assert_eq!(directory.line("girder run x.gir --get own=own.npy").code, 0);
    let done = directory.line("girder run x.gir --set own=own.npy --get own");
    assert_eq!(done.output, "own [[0, 2], [2, 2], [4, 2], [6, 2]]\n", "{}", done.errors);
    let done = directory.line("girder run x.gir --set own=own.npy --replicas 2");
    assert!(done.code == 1 && done.errors.contains("run::wrong_array"), "{}", done.errors);
    assert!(done.errors.contains("has a value for each replica"), "{}", done.errors);
    // Parameters are equal in all replicas.
    let done = directory.line("girder run x.gir --set w=own.npy");
    assert!(done.code == 1 && done.errors.contains("equal values of a `param`"), "{}", done.errors);
    assert_eq!(directory.line("girder run x.gir --get w=w.npy").code, 0);
    assert_eq!(directory.line("girder run x.gir --set w=w.npy --get w").output, "w [2, 2]\n");
}

/// Messages about files and numbers name what is wrong with them.
#[test]
fn messages_name_the_cause() {
    let directory = TestDirectory::new();
    directory.write("x.gir", "var x: f32;\nprogram main() { x += 1.0; }\n");
    directory.write("six.toml", "name = \"six\"\nextends = \"small-4\"\nipus = 6\n");
    for file in ["e.npy", "e.npz", "e.safetensors"] {
        directory.write(file, "");
    }
    for (options, texts) in [
        ("--set x=e.npy", ["cannot read e.npy: it is empty", ""]),
        ("--set x=e.npz", ["it is empty", ""]),
        ("--load e.npz", ["it is empty", ""]),
        ("--load e.safetensors", ["it is empty", ""]),
        ("--limit iterations=1e9", ["`1e9` is not a whole number", "--limit iterations=1000000000"]),
        ("--limit iteration=1", ["there is no limit `iteration`", "total_iterations"]),
        ("--target six.toml --replicas 2", ["6 processors cannot be divided", "there may be 1, 3, 6 replicas"]),
        ("--target small-4 --replicas 3", ["4 processors", "may be 1, 2, 4"]),
    ] {
        let done = directory.line(&format!("girder run x.gir {options} --message-format json"));
        assert!(done.code != 0, "{options}");
        assert!(texts.iter().all(|text| done.errors.contains(text)), "{options}: {}", done.errors);
    }
}

#[test]
fn halves_of_a_file_are_numbers() {
    let directory = TestDirectory::new();
    let header = "{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }";
    let mut file = b"\x93NUMPY\x01\0\x76\0".to_vec();
    file.extend(format!("{header:<117}\n").bytes());
    file.extend([0x3c00u16, 0xc500, 0x3555].iter().flat_map(|x| x.to_le_bytes()));
    std::fs::write(directory.path("halves.npy"), file).expect("a file");
    directory.write(
        "halves.gir",
        "let a = load(\"halves.npy\");
        var x: f32[3] = f32(a);
        program main() { print(x); print(2.0 * a[1]); print(i32(a)); print(a); }",
    );
    let done = directory.line("girder run halves.gir --target small");
    let printed = "[1.0, -5.0, 0.33325195]\n-10.0\n[1, -5, 0]\n[1.0, -5.0, 0.333251953125]\n";
    assert_eq!((done.code, done.output.as_str()), (0, printed), "{}", done.errors);
}
