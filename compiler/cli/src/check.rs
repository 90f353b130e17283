//! `girder check`: all passes, no code.

use crate::entries;
use crate::inputs;
use crate::options::Compile;
use crate::report::{Done, Report};
use crate::stats::StatsFormat;
use crate::timeline;
use girder::profile::{Assumed, Profiler};
use girder::{AnyStage, Stage, by_step};
use std::path::PathBuf;

/// Check a program: all passes, no code.
#[derive(clap::Args)]
pub struct Check {
    /// A `.gir` file, or a directory that contains one of its own name.
    file: PathBuf,
    /// The programs whose time `--stats` estimates; by default `main`, or the only program.
    programs: Vec<String>,
    /// Print the time that each pass took.
    #[arg(long)]
    time: bool,
    /// Print also the steps of the program where the time goes, the largest first.
    #[arg(long, value_enum, value_name = "WHAT", requires = "time")]
    by: Option<By>,
    /// Print an estimate of the modelled time of a run, as far as it does not depend on data.
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "table"
    )]
    stats: Option<StatsFormat>,
    /// Draw what each processor does when, by the same estimate, to a `.svg` file.
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    #[command(flatten)]
    compile: Compile,
}

/// `--by`
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// The compute sets, copies and statements of the program.
    Step,
}

impl Check {
    /// Runs the subcommand.
    pub fn run(&self, report: &mut Report) -> Done {
        self.timeline.iter().try_for_each(|file| timeline::checked(file, report))?;
        let mut input = inputs::open(&self.file, &self.compile, report)?;
        self.timeline.iter().for_each(|path| input.files.writes(path, "--timeline"));
        input.files.check(report)?;
        input.compilation.measures_steps = self.by == Some(By::Step);
        let done = input.stage(Stage::Allocated, report);
        if self.time {
            for (name, time) in &input.compilation.timings {
                eprintln!("{name:<20} {:>9.3} ms", time.as_secs_f64() * 1e3);
            }
        }
        if self.by == Some(By::Step) {
            let rows = by_step::rows(&input.compilation.timings, &input.compilation.step_times);
            match report.is_json() {
                true => eprintln!("{}", by_step::to_json(&rows, &input.compilation.map)),
                false => eprint!("\n{}", by_step::table(&rows, &input.compilation.map)),
            }
        }
        let AnyStage::Allocated(allocated) = done? else { return Ok(()) };
        if self.stats.is_none() && self.timeline.is_none() {
            return Ok(());
        }
        input.files.reads_modules(&input.compilation.map);
        input.files.check(report)?;
        let mut profiler = Profiler::new(&allocated, &input.compilation.options.machine);
        if self.timeline.is_some() {
            profiler.record_timeline();
        }
        let mut assumed = Assumed::default();
        for program in entries::chosen(&allocated, &self.programs, report)? {
            assumed |= profiler.estimate(program);
        }
        if let (Some(file), Some(found)) = (&self.timeline, profiler.timeline()) {
            timeline::draw(found, file, report)?;
        }
        let Some(format) = self.stats else { return Ok(()) };
        format.print(&profiler.profile(&input.compilation.map))?;
        format.note(assumed)
    }
}
