//! The time of a compilation by the steps of the program: `girder check --time --by step`.
//!
//! Invariant: the shares of all rows add up to one. Times of threads are summed, so they may exceed the time that
//! passes.

use girder_source::{SourceMap, Span};
use serde_json::json;
use std::fmt::Write;
use std::time::Duration;

/// The number of rows of a table.
const ROWS: usize = 40;

/// The time of one pass for one step.
#[derive(Clone, Debug)]
pub struct StepTime {
    /// The pass.
    pub pass: &'static str,
    /// The name of the step; empty for the part of the pass that belongs to no step.
    pub name: String,
    /// Its place in the text.
    pub span: Span,
    /// The time, summed over threads.
    pub time: Duration,
}

/// Returns the rows of a compilation, the largest first: the times of steps, and what is left of each pass.
pub fn rows(passes: &[(&'static str, Duration)], steps: &[StepTime]) -> Vec<StepTime> {
    let mut rows = steps.to_vec();
    for &(pass, time) in passes {
        let of_steps: Duration = steps.iter().filter(|s| s.pass == pass).map(|s| s.time).sum();
        rows.push(StepTime { pass, name: String::new(), span: Span::NONE, time: time.saturating_sub(of_steps) });
    }
    // The sort is stable, so rows of equal times stay in the order of passes and steps.
    rows.sort_by_key(|r| std::cmp::Reverse(r.time));
    rows
}

/// Returns the largest rows as a table.
pub fn table(rows: &[StepTime], map: &SourceMap) -> String {
    let mut text = format!("{:>12} {:>7}  {:<20} {}\n", "time", "share", "pass", "step");
    let line = |share: f64, time: Duration, pass: &str, step: &str| {
        format!("{:>9.3} ms {:>6.1}%  {pass:<20} {step}\n", time.as_secs_f64() * 1e3, share * 100.0)
    };
    let all = total(rows);
    for row in rows.iter().take(ROWS) {
        let step = match (&row.name[..], place(row, map)) {
            ("", _) => "what belongs to no step".to_string(),
            (name, None) => name.to_string(),
            (name, Some(place)) => format!("{name}  {place}"),
        };
        text += &line(share(row.time, all), row.time, row.pass, &step);
    }
    if let Some(rest @ [_, ..]) = rows.get(ROWS..) {
        let time = total(rest);
        text += &line(share(time, all), time, "", &format!("{} more", rest.len()));
    }
    // Writing to a string does not fail.
    let _ = writeln!(text, "{:>9.3} ms {:>6.1}%  all, summed over threads", all.as_secs_f64() * 1e3, 100.0);
    text
}

/// Returns all rows as one JSON object.
pub fn to_json(rows: &[StepTime], map: &SourceMap) -> String {
    let all = total(rows);
    let row = |r: &StepTime| {
        json!({
            "pass": r.pass,
            "step": r.name,
            "place": place(r, map),
            "seconds": r.time.as_secs_f64(),
            "share": share(r.time, all),
        })
    };
    json!({ "seconds": all.as_secs_f64(), "steps": rows.iter().map(row).collect::<Vec<_>>() }).to_string()
}

fn place(row: &StepTime, map: &SourceMap) -> Option<String> {
    map.location(row.span).map(|at| format!("{}:{}:{}", at.path.display(), at.line, at.column))
}

fn total(rows: &[StepTime]) -> Duration {
    rows.iter().map(|r| r.time).sum()
}

fn share(time: Duration, all: Duration) -> f64 {
    if all.is_zero() { 0.0 } else { time.as_secs_f64() / all.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_all_rows_add_up() {
        let ms = Duration::from_millis;
        let step = |name: &str, time| StepTime { pass: "plan", name: name.into(), span: Span::NONE, time };
        let steps: Vec<StepTime> = (0..60).map(|k| step(&format!("s{k}"), ms(k))).collect();
        let rows = rows(&[("parse", ms(100)), ("plan", ms(2000))], &steps);
        assert_eq!(rows[0].time, ms(2000 - 59 * 60 / 2));
        assert_eq!((rows[1].pass, rows[1].time), ("parse", ms(100)));
        let text = table(&rows, &SourceMap::default());
        let shares = text.lines().skip(1).filter_map(|l| l.split('%').next()?.split_whitespace().last()?.parse().ok());
        let shares: Vec<f64> = shares.collect();
        let (all, each) = shares.split_last().expect("a last line");
        assert_eq!((each.len(), *all), (ROWS + 1, 100.0));
        assert!((each.iter().sum::<f64>() - 100.0).abs() < 2.5, "{text}");
        let json: serde_json::Value = serde_json::from_str(&to_json(&rows, &SourceMap::default())).expect("JSON");
        let sum: f64 = json["steps"].as_array().expect("rows").iter().filter_map(|r| r["share"].as_f64()).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }
}
