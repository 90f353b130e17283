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
    assert_eq!(directory.piped("build /dev/stdin", text).output, expected);
    let done = directory.line("girder build missing.gir");
    assert!(done.code == 1 && done.errors.contains("driver::cannot_read"), "{}", done.errors);
}
