//! The text of a profile: a table, and a sentence that names the bottleneck of the program.

use crate::profile::{Profile, StepProfile, Total};
use std::cmp::Reverse;

/// Maximal number of rows; the fastest steps are summed up.
const ROWS: usize = 24;
/// Maximal number of rows of what is kept for reverse programs; the smallest are summed up.
const KEPT: usize = 8;
/// Maximal number of steps that are named because branches of a `par` wait in them.
const WAITING: usize = 4;

impl Profile {
    /// Returns the profile as text: cycles by step, the memory of tiles, and the bottleneck of the program.
    pub fn table(&self) -> String {
        let mut out = self.head();
        let mut rows: Vec<Vec<String>> = vec![HEADINGS.map(String::from).to_vec()];
        let (shown, hidden) = self.shown();
        rows.extend(shown.iter().map(|s| row(s, self.total.cycles())));
        if !hidden.is_empty() {
            rows.push(others(&hidden, self.total.cycles()));
        }
        rows.push(totals("all", "", &self.total, self.total.cycles()));
        out += &aligned(&rows);
        if let Some(beside) = self.total.cycles().checked_sub(self.cycles).filter(|&n| n > 0) {
            out +=
                &format!("steps on different IPUs overlap: {} of these cycles pass beside others\n", grouped(beside));
        }
        out += &self.waiting();
        out += &self.called_table();
        out += &self.processor_table();
        out += &self.stages_lines();
        out += &self.words();
        out += &self.memory_table();
        out += &self.kept_table();
        out + &format!("\n{}\n", self.limit)
    }

    fn head(&self) -> String {
        let tiles = self.ipus as u64 * self.tiles_per_ipu as u64;
        if self.overflows {
            return format!(
                "more than {} cycles on {} ({} tiles): the modelled time exceeds 64 bits, so the figures below are \
                 lower bounds and their shares mean nothing\n\n",
                grouped(u64::MAX - 1),
                self.target,
                grouped(tiles),
            );
        }
        let cycles = grouped(self.cycles);
        let clock = self.clock_hz / 1e9;
        let replicas =
            if self.replicas > 1 { format!(" for each of {} replicas", self.replicas) } else { String::new() };
        format!(
            "{cycles} cycles = {} on {} ({} tiles{replicas}, {clock:.2} GHz), supersteps: {}\n\n",
            time(self.seconds),
            self.target,
            grouped(tiles),
            grouped(self.supersteps),
        )
    }

    /// Returns the slowest steps, in program order, and the others.
    fn shown(&self) -> (Vec<&StepProfile>, Vec<&StepProfile>) {
        let mut order: Vec<usize> = (0..self.steps.len()).collect();
        order.sort_by_key(|&i| (Reverse(self.steps[i].total.cycles()), i));
        let (mut shown, mut hidden) = (order.clone(), vec![]);
        if order.len() > ROWS {
            hidden = shown.split_off(ROWS - 1);
        }
        shown.sort_unstable();
        let of = |list: Vec<usize>| list.into_iter().map(|i| &self.steps[i]).collect();
        (of(shown), of(hidden))
    }

    /// Returns the steps that make branches of a `par` wait for each other, the longest first.
    fn waiting(&self) -> String {
        let mut steps: Vec<&StepProfile> = self.steps.iter().filter(|s| s.waits).collect();
        if steps.is_empty() {
            return String::new();
        }
        steps.sort_by_key(|s| Reverse(s.total.cycles()));
        let mut out = "branches of `par` wait for each other where words cross between their IPUs:\n".to_string();
        for step in steps.iter().take(WAITING) {
            let each = step.total.bytes_between / step.executions.max(1);
            let at = step.location.as_deref().map(|at| format!(" at {at}")).unwrap_or_default();
            out += &format!("  `{}`{at}: {} each time\n", step.name, bytes(each));
        }
        if steps.len() > WAITING {
            out += &format!("  and {} others\n", steps.len() - WAITING);
        }
        out
    }

    /// Returns the bytes moved.
    fn words(&self) -> String {
        let mut out = format!("\nexchanged {} inside IPUs", bytes(self.total.bytes_inside));
        let between = if self.replicas > 1 { "IPUs and replicas" } else { "IPUs" };
        if self.ipus > 1 || self.replicas > 1 {
            out += &format!(", {} between {between}", bytes(self.total.bytes_between));
        }
        out + "\n"
    }

    fn memory_table(&self) -> String {
        let m = &self.memory;
        let mut out = format!(
            "\nmemory: {} of {} on the fullest of {} tiles in use\n",
            bytes(m.peak as u64),
            bytes(m.usable_per_tile as u64),
            grouped(m.tiles_used as u64)
        );
        let mut rows = vec![["  for", "in all", "most on a tile", "at the peak"].map(String::from).to_vec()];
        for c in &m.categories {
            let figures = [c.bytes, c.worst.into(), c.at_peak.into()];
            rows.push([format!("  {}", c.name)].into_iter().chain(figures.map(bytes)).collect());
        }
        out += &aligned(&rows);
        let fullest = m.fullest.iter().map(|t| format!("{} ({})", t.tile, bytes(t.bytes as u64)));
        out += &format!("  fullest tiles: {}\n", fullest.collect::<Vec<_>>().join(", "));
        if m.remote > 0 {
            out += &format!("  beside the tiles: {} of {}, in remote buffers", bytes(m.remote), bytes(m.beside));
            if let Some(fullest) = m.remote_fullest.filter(|_| self.ipus > 1) {
                out += &format!("; most beside IPU {}: {}", fullest.ipu, bytes(fullest.bytes));
            }
            out.push('\n');
        }
        out
    }
}

impl Profile {
    fn kept_table(&self) -> String {
        let kept = &self.memory.kept;
        if kept.values.is_empty() {
            return String::new();
        }
        let (all, worst) = (bytes(kept.bytes), bytes(kept.worst.into()));
        let out = format!("\nkept for the reverse program: {all}, {worst} on the tile with most\n");
        let mut rows = vec![["  made by", "values", "in all", "most on a tile"].map(String::from).to_vec()];
        let shown = if kept.values.len() > KEPT { KEPT - 1 } else { KEPT };
        let row =
            |name: String, count: u32, all: u64, worst: String| vec![name, grouped(count.into()), bytes(all), worst];
        for v in kept.values.iter().take(shown) {
            let name = format!("  {}{}", v.name, beside(v.location.as_deref()));
            rows.push(row(name, v.count, v.bytes, bytes(v.worst.into())));
        }
        let hidden = &kept.values[shown.min(kept.values.len())..];
        if !hidden.is_empty() {
            let (count, all) = (hidden.iter().map(|v| v.count).sum(), hidden.iter().map(|v| v.bytes).sum());
            rows.push(row(format!("  … {} others", hidden.len()), count, all, String::new()));
        }
        out + &aligned(&rows)
    }
}

impl Profile {
    /// Returns the cycles of a call of each program that others call.
    fn called_table(&self) -> String {
        if self.called.is_empty() {
            return String::new();
        }
        let mut rows = vec![["called", "times", "cycles each"].map(String::from).to_vec()];
        for c in &self.called {
            let name = format!("{}{}", c.name, beside(c.location.as_deref()));
            rows.push(vec![name, grouped(c.calls), grouped(c.cycles)]);
        }
        format!("\n{}", aligned(&rows))
    }

    /// Returns how far the stages of a pipeline are from equal, and how much processors wait.
    fn stages_lines(&self) -> String {
        let Some(stages) = &self.stages else { return String::new() };
        let ipus: Vec<String> = stages.slowest.iter().map(u32::to_string).collect();
        let programs: Vec<String> = stages.programs.iter().map(|name| format!("`{name}`")).collect();
        let plural = if ipus.len() > 1 { "s" } else { "" };
        let mut out =
            format!("\nbubble: processors wait for others in {:.1} % of their cycles\n", 100.0 * stages.bubble);
        out += &format!(
            "slowest stage: {} on IPU{plural} {}, {} cycles of a slot; equal stages would take {}\n",
            programs.join(" and "),
            ipus.join(", "),
            grouped(stages.cycles),
            grouped(stages.mean)
        );
        if let Some(cut) = &stages.cut {
            out += &format!("a more even cut, about {} cycles of a slot:\n", grouped(cut.cycles));
            let list = |parts: Vec<String>| parts.join(", ");
            let times = |(name, n): &(String, u32)| if *n > 1 { format!("{name} × {n}") } else { name.clone() };
            let mut rows = vec![];
            for stage in &cut.stages {
                let on = format!("  IPU {}", list(stage.ipus.iter().map(u32::to_string).collect()));
                rows.push((on, grouped(stage.cycles), list(stage.calls.iter().map(times).collect())));
            }
            let width = |f: &dyn Fn(&(String, String, String)) -> usize| rows.iter().map(f).max().unwrap_or(0);
            let (first, second) = (width(&|r| r.0.len()), width(&|r| r.1.len()));
            for (on, cycles, calls) in &rows {
                out += &format!("{on:first$}  {cycles:>second$}  {calls}\n");
            }
        }
        out
    }

    /// Returns what each processor does and holds.
    fn processor_table(&self) -> String {
        if self.processors.is_empty() {
            return String::new();
        }
        let mut rows =
            vec![["ipu", "busy", "params", "states", "rings", "other values", "code"].map(String::from).to_vec()];
        for p in &self.processors {
            let share = 100.0 * p.busy as f64 / self.cycles.max(1) as f64;
            let held = [p.params, p.states, p.rings, p.values, p.code].map(bytes);
            rows.push([p.ipu.to_string(), format!("{share:.1} %")].into_iter().chain(held).collect());
        }
        format!("\n{}", aligned(&rows))
    }
}

const HEADINGS: [&str; 11] =
    ["step", "times", "cycles", "share", "sync", "exchange", "arrange", "compute", "host", "balance", "schedule"];

fn row(step: &StepProfile, all: u64) -> Vec<String> {
    let name = format!("{}{}{}", step.name, beside(step.location.as_deref()), also(step));
    let mut cells = totals(&name, &grouped(step.executions), &step.total, all);
    let ratio = |r: Option<f64>| r.map_or_else(String::new, |r| format!("{r:.2}"));
    let n = cells.len();
    cells[n - 2] = ratio(step.balance);
    cells[n - 1] = ratio(step.schedule);
    cells
}

/// Returns a location as it stands beside a name: the name of the file and the line.
fn beside(location: Option<&str>) -> String {
    location.map(|p| format!("  {}", p.rsplit('/').next().unwrap_or(p))).unwrap_or_default()
}

/// Returns the other places of a merged superstep: lines, with the name of the file if it is another one.
fn also(step: &StepProfile) -> String {
    let file_of = |at: &str| at.rsplit_once(':').map(|(file, line)| (file.to_string(), line.to_string()));
    let own = step.location.as_deref().and_then(file_of).map(|at| at.0);
    let shown = |at: &String| match file_of(at) {
        Some((file, line)) if Some(&file) == own.as_ref() => format!(", {line}"),
        _ => format!(", {}", at.rsplit('/').next().unwrap_or(at)),
    };
    step.also.iter().map(shown).collect()
}

fn others(hidden: &[&StepProfile], all: u64) -> Vec<String> {
    let mut total = Total::default();
    hidden.iter().for_each(|s| total.add(&s.total));
    let executions: u64 = hidden.iter().map(|s| s.executions).fold(0, u64::saturating_add);
    totals(&format!("{} others", hidden.len()), &grouped(executions), &total, all)
}

fn totals(name: &str, times: &str, total: &Total, all: u64) -> Vec<String> {
    let share = 100.0 * total.cycles() as f64 / all.max(1) as f64;
    let part = |n: u64| if n == 0 { "·".to_string() } else { grouped(n) };
    vec![
        name.to_string(),
        times.to_string(),
        grouped(total.cycles()),
        format!("{share:.1} %"),
        part(total.sync),
        part(total.exchange),
        part(total.arrange()),
        part(total.compute),
        part(total.host),
        String::new(),
        String::new(),
    ]
}

/// What rows of remote buffers wait for.
const BESIDE: &str = "the memory beside the tiles";

/// Returns a sentence about the largest part, and its reason.
pub(crate) fn limit(profile: &Profile) -> String {
    if profile.overflows {
        return "limit: the modelled time exceeds 64 bits".to_string();
    }
    let total = &profile.total;
    // Rows of remote buffers wait for the memory beside the tiles, and packets for the host.
    let is_row = |s: &&StepProfile| s.name.starts_with("remote ");
    let beside = profile.steps.iter().filter(is_row).map(|s| s.total.host).fold(0, u64::saturating_add);
    let parts = [
        ("compute", total.compute),
        ("exchange", total.exchange),
        ("sync", total.sync),
        ("on-tile copies", total.arrange()),
        ("the host", total.host.saturating_sub(beside)),
        (BESIDE, beside),
    ];
    let all = total.cycles();
    let fixed = profile.steps.iter().fold(0u64, |sum, s| sum.saturating_add(s.fixed));
    if fixed > all / 2 && profile.supersteps > 1 {
        return format!(
            "limit: {:.0} % of the cycles are what supersteps cost whatever they do (sync, first word, start of \
             vertices), {} in each of {}: fewer and larger steps",
            100.0 * fixed as f64 / all as f64,
            grouped(fixed / profile.supersteps),
            grouped(profile.supersteps),
        );
    }
    let Some((name, most)) = parts.into_iter().max_by_key(|p| p.1).filter(|p| p.1 > 0) else {
        return "limit: nothing ran on the machine".to_string();
    };
    let of = |s: &StepProfile| match name {
        "compute" => s.total.compute,
        "exchange" => s.total.exchange,
        "sync" => s.total.sync,
        "on-tile copies" => s.total.arrange(),
        _ if (name == BESIDE) == is_row(&s) => s.total.host,
        _ => 0,
    };
    let share = 100.0 * most as f64 / all as f64;
    let Some(step) = profile.steps.iter().max_by_key(|s| of(s)) else { return String::new() };
    let inside = 100.0 * of(step) as f64 / most as f64;
    format!(
        "limit: {name} takes {share:.0} % of the cycles, {inside:.0} % of it in `{}`{}",
        step.name,
        why(name, step, profile)
    )
}

/// Returns the reason for a step's part, from its figures.
fn why(part: &str, step: &StepProfile, profile: &Profile) -> String {
    // A tile that does all the work is this many times above the mean, up to rounding of cycles.
    let alone = |b: f64| b * (f64::from(profile.tiles_per_ipu) - 0.5) < 1.0;
    match (part, step.balance, step.schedule, step.worst_tile) {
        ("compute", Some(b), _, Some(tile)) if b < 0.8 && alone(b) => {
            format!("; tile {tile} works there alone: spread the work")
        }
        ("compute", Some(b), _, Some(tile)) if b < 0.8 && step.worst_is_one_round => {
            format!(
                "; its fullest tile, {tile}, works {:.1} times the mean, though no vertex waits for a worker there: \
                 more and smaller vertices",
                1.0 / b
            )
        }
        ("compute", Some(b), _, Some(tile)) if b < 0.8 => {
            format!("; its fullest tile, {tile}, works {:.1} times the mean: spread the work", 1.0 / b)
        }
        ("compute", Some(_), _, _) => "; its tiles are well balanced: the codelet itself is the limit".to_string(),
        ("exchange", _, Some(s), _) if s > 1.1 => format!("; its schedule takes {s:.2} of the bound"),
        ("exchange", _, Some(_), _) => {
            "; its schedule is at the bound: fewer words, or inputs nearer to their users".to_string()
        }
        (BESIDE, ..) => "; larger rows share its latency, and what fits on the tiles is faster there".to_string(),
        ("the host", ..) if step.is_ahead => {
            "; its packets come more slowly than the program takes them: fewer, larger packets share the host's answers"
                .to_string()
        }
        ("the host", ..) => {
            "; streams `with (ahead: 2)` do not wait for its answers, and fewer, larger packets share them".to_string()
        }
        ("sync", ..) => "; larger supersteps would share a sync".to_string(),
        _ => String::new(),
    }
}

/// Returns rows with aligned columns, the first to the left and the others to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (c, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            match c {
                0 => line += &format!("{cell:<width$}"),
                _ => line += &format!("  {cell:>width$}"),
            }
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// Returns a number with grouped digits, such as `1,234,567`.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}

/// Returns a size in a suitable unit.
fn bytes(n: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} bytes") } else { format!("{value:.1} {}", units[unit]) }
}

/// Returns a time in a suitable unit.
fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.2} µs", s * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_for_people() {
        assert_eq!((grouped(0), grouped(999), grouped(1234567)), ("0".into(), "999".into(), "1,234,567".into()));
        assert_eq!(
            (bytes(1023), bytes(2560), bytes(3 << 30)),
            ("1023 bytes".into(), "2.5 KiB".into(), "3.0 GiB".into())
        );
        assert_eq!((time(2.5), time(0.0025), time(2.5e-6)), ("2.500 s".into(), "2.500 ms".into(), "2.50 µs".into()));
    }

    #[test]
    fn columns_stand_under_each_other() {
        let rows = [vec!["a".to_string(), "10".into(), "".into()], vec!["long".into(), "5".into(), "x".into()]];
        assert_eq!(aligned(&rows), "a     10\nlong   5  x\n");
    }
}
