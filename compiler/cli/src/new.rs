//! `girder new`: a program to start from.

use crate::files::cannot_write;
use crate::report::{Done, Report, print};
use std::path::PathBuf;

/// Start a new program.
#[derive(clap::Args)]
pub struct New {
    /// The directory to make; the program bears its name.
    path: PathBuf,
}

const TEMPLATE: &str = r#"//! Adds two vectors on four tiles, one vertex for each.
//! girder: --target small

/// y = a + b
codelet add_vectors(in a: f32[n], in b: f32[n], out y: f32[n]) {
    for i in 0..n {
        y[i] = a[i] + b[i];
    }
}

var a: f32[16] = list i in 0..16 { i };
var b: f32[16] = 100.0;
var y: f32[16];

program main() {
    compute add {
        for t in 0..4 {
            let part = 4 * t..4 * t + 4;
            vertex add_vectors(a: a[part], b: b[part], y: y[part]) on tile(t);
        }
    }
    print("y", y);
}
"#;

impl New {
    /// Runs the subcommand.
    pub fn run(&self, report: &mut Report) -> Done {
        let Some(name) = self.path.file_name().and_then(|n| n.to_str()) else {
            return Err(report.usage("the path has no name", "write `girder new my_program`"));
        };
        if self.path.exists() {
            let message = format!("{} already exists", self.path.display());
            return Err(report.error("driver::exists", message, "choose another name; nothing was changed"));
        }
        let file = self.path.join(name).with_extension("gir");
        let made = std::fs::create_dir_all(&self.path).and_then(|()| std::fs::write(&file, TEMPLATE));
        made.map_err(|e| cannot_write(&file, &e, report))?;
        print(&format!("wrote {}; run it with `girder run {}`\n", file.display(), self.path.display()))
    }
}
