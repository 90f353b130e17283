//! Timelines as SVG: `--timeline run.svg`.
//!
//! A picture has a row for each processor, in which a bar covers the cycles of each interval, and the names of the bars
//! below. Those that take most have colours of their own.
//!
//! Invariant: a picture depends on the timeline only.

use crate::files::{cannot_write, writable};
use crate::report::{Done, Report};
use girder::profile::Timeline;
use plotters::prelude::*;
use std::cmp::Reverse;
use std::io::Error;
use std::path::Path;

/// The width of a picture, the height of a row and that of the axis, and the height of a line of names.
const WIDTH: u32 = 960;
const ROW: u32 = 28;
const AXIS: u32 = 40;
const LINE: u32 = 18;
const MARGIN: u32 = 8;
/// The letters of a name.
const LETTERS: usize = 30;
/// The names in a line.
const IN_LINE: usize = 4;
/// The names with colours of their own.
const COLOURED: usize = 15;
const OTHERS: RGBColor = RGBColor(150, 150, 150);

/// Checks the name of the file before anything runs.
pub fn checked(file: &Path, report: &Report) -> Done {
    if file.extension().is_none_or(|e| e != "svg") {
        let message = format!("`--timeline {}`: a timeline is an SVG file", file.display());
        return Err(report.usage(message, "write `--timeline file.svg`"));
    }
    writable(file, report)
}

/// Draws a timeline into a file.
pub fn draw(timeline: &Timeline, file: &Path, report: &Report) -> Done {
    let svg = svg(timeline).map_err(|e| cannot_write(file, &Error::other(e), report))?;
    std::fs::write(file, svg).map_err(|e| cannot_write(file, &e, report))
}

/// Returns the colour of each name, and the names by the cycles that they take, most first.
fn coloured(timeline: &Timeline) -> (Vec<RGBColor>, Vec<usize>) {
    let mut cycles = vec![0u64; timeline.names.len()];
    for interval in timeline.rows.iter().flatten() {
        cycles[interval.name as usize] += interval.end - interval.start;
    }
    let mut order: Vec<usize> = (0..cycles.len()).filter(|&k| cycles[k] > 0).collect();
    order.sort_by_key(|&k| (Reverse(cycles[k]), k));
    let mut colours = vec![OTHERS; cycles.len()];
    // Colours follow the names, so that those of two pictures with the same names agree.
    let mut first: Vec<usize> = order.iter().copied().take(COLOURED).collect();
    first.sort_unstable_by_key(|&k| &timeline.names[k]);
    for (at, &k) in first.iter().enumerate() {
        let (red, green, blue) = Palette99::pick(at).to_rgba().rgb();
        colours[k] = RGBColor(red, green, blue);
    }
    (colours, order)
}

fn svg(timeline: &Timeline) -> Result<String, String> {
    let (colours, order) = coloured(timeline);
    let shown = order.len().min(COLOURED);
    let mut entries: Vec<(&str, RGBColor)> =
        order[..shown].iter().map(|&k| (timeline.names[k].as_str(), colours[k])).collect();
    entries.sort_unstable_by_key(|entry| entry.0);
    if order.len() > shown {
        entries.push(("others", OTHERS));
    }
    let end = timeline.rows.iter().filter_map(|row| row.last()).map(|i| i.end).max().unwrap_or(0).max(1);
    let rows = timeline.rows.len() as u32;
    let lines = entries.len().div_ceil(IN_LINE) as u32 + u32::from(timeline.is_cut);
    let height = rows * ROW + AXIS + lines * LINE + 2 * MARGIN;
    let mut svg = String::new();
    let all = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
    let drawn = (|| {
        all.fill(&WHITE)?;
        let (upper, lower) = all.split_vertically(rows * ROW + AXIS + MARGIN);
        let mut chart = ChartBuilder::on(&upper)
            .margin(MARGIN)
            .margin_right(4 * MARGIN)
            .x_label_area_size(AXIS)
            .y_label_area_size(52)
            .build_cartesian_2d(0u64..end, 0.0..f64::from(rows))?;
        let of_row = |y: &f64| match (y.fract() - 0.5).abs() < 0.01 {
            true => format!("IPU {}", (f64::from(rows) - y).floor()),
            false => String::new(),
        };
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(TRANSPARENT)
            .x_labels(8)
            .y_labels(2 * rows as usize + 1)
            .x_label_formatter(&|x| format!("{}", Grouped(*x)))
            .y_label_formatter(&of_row)
            .x_desc("cycles")
            .draw()?;
        for (k, row) in timeline.rows.iter().enumerate() {
            let low = f64::from(rows) - k as f64 - 1.0;
            chart.draw_series(row.iter().map(|i| {
                let corners = [(i.start, low + 0.1), (i.end, low + 0.9)];
                Rectangle::new(corners, colours[i.name as usize].filled())
            }))?;
        }
        for (k, (name, colour)) in entries.iter().enumerate() {
            let (x, y) = ((k % IN_LINE) as i32, (k / IN_LINE) as i32);
            let (x, y) = (MARGIN as i32 + x * (WIDTH as i32 - 2 * MARGIN as i32) / IN_LINE as i32, y * LINE as i32);
            lower.draw(&Rectangle::new([(x, y + 3), (x + 12, y + 13)], colour.filled()))?;
            lower.draw(&Text::new(shortened(name), (x + 18, y + 2), ("sans-serif", 12)))?;
        }
        if timeline.is_cut {
            let at = (MARGIN as i32, (lines as i32 - 1) * LINE as i32 + 2);
            lower.draw(&Text::new("The run goes on: these are its first intervals.", at, ("sans-serif", 12)))?;
        }
        all.present()
    })();
    drop(all);
    drawn.map_err(|e: DrawingAreaErrorKind<_>| e.to_string())?;
    Ok(svg)
}

/// A number with commas between its thousands.
struct Grouped(u64);

impl std::fmt::Display for Grouped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = self.0.to_string();
        for (k, digit) in digits.chars().enumerate() {
            if k > 0 && (digits.len() - k).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// Returns the end of a long name, which tells most.
fn shortened(name: &str) -> String {
    let count = name.chars().count();
    if count <= LETTERS {
        return name.into();
    }
    let end: String = name.chars().skip(count - LETTERS + 1).collect();
    format!("…{end}")
}
