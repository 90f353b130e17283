//! Plots of what `out` streams carried, as SVG: `--plot losses=losses.svg`, `--plot losses,accuracies=training.svg`.
//!
//! A plot has a panel for each stream, one below the other, in which each number of a packet is a line over the
//! packets. A line of more packets than a panel has columns shows the range of the packets of each column, and their
//! mean.
//!
//! Invariant: a plot depends on the packets and the names of the streams only, so that a run on another host, in
//! another mode, or on other threads writes the same bytes.

use crate::files::{cannot_write, writable};
use crate::host::find;
use crate::options::pair;
use crate::report::{Done, Report, Stop};
use girder::ir::graph::Graph;
use girder::ir::ids::StreamId;
use girder::ir::types::{ElemType, Scalar};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::io::Error;
use std::path::{Path, PathBuf};

/// The width of a plot, and the height of a panel.
const SIZE: (u32, u32) = (720, 260);

/// The columns of a line: the most points that are drawn one by one.
const COLUMNS: usize = 300;

/// The most numbers of a packet.
const MOST_LINES: u64 = 10;

/// The greatest number that is drawn. With it and [`LEAST`], the labels of an axis are distinct floats.
const MOST: f64 = 1e30;

/// The least height of a panel, and its least part of the numbers in it.
const LEAST: (f64, f64) = (1e-30, 1e-6);

/// The numbers that a stream carried.
struct Series {
    stream: StreamId,
    name: String,
    ty: ElemType,
    /// The numbers of a packet.
    lines: usize,
    values: Vec<f64>,
}

/// The plot of one file.
pub struct Plot {
    path: PathBuf,
    series: Vec<Series>,
}

/// Reads `--plot stream,…=file.svg`.
pub fn plot(text: &str, graph: &Graph, report: &Report) -> Result<Plot, Stop> {
    let (names, file) = pair(report, "--plot", text)?;
    if !file.ends_with(".svg") {
        let message = format!("`--plot {text}`: a plot is an SVG file");
        return Err(report.usage(message, "write `--plot stream=file.svg`"));
    }
    let series = names.split(',').map(|name| {
        let stream = find(graph, name, "--plot", false, report)?;
        let s = &graph.streams[stream];
        if s.is_empty() || s.len() > MOST_LINES {
            let packet = girder::shaped(s.ty, &s.shape);
            let message = format!("`--plot {text}`: packets of `{name}` are {packet}");
            let help = format!("a line is drawn for each number of a packet, of which there are 1 to {MOST_LINES}");
            return Err(report.error("run::no_plot", message, help));
        }
        Ok(Series { stream, name: name.into(), ty: s.ty, lines: s.len() as usize, values: vec![] })
    });
    let series = series.collect::<Result<_, _>>()?;
    writable(Path::new(file), report)?;
    Ok(Plot { path: file.into(), series })
}

impl Plot {
    /// Takes a packet. Returns the bytes of memory that it needs.
    pub fn write(&mut self, stream: StreamId, bytes: &[u8]) -> u64 {
        let mut needed = 0;
        for s in self.series.iter_mut().filter(|s| s.stream == stream) {
            s.values.extend(bytes.chunks_exact(s.ty.bytes() as usize).map(|b| number(s.ty, b)));
            needed += (s.lines * size_of::<f64>()) as u64;
        }
        needed
    }

    /// Writes the file.
    pub fn finish(self, report: &Report) -> Done {
        let svg = self.svg().map_err(|e| cannot_write(&self.path, &Error::other(e), report))?;
        std::fs::write(&self.path, svg).map_err(|e| cannot_write(&self.path, &e, report))
    }

    fn svg(&self) -> Result<String, String> {
        let mut svg = String::new();
        let all = SVGBackend::with_string(&mut svg, (SIZE.0, SIZE.1 * self.series.len() as u32)).into_drawing_area();
        all.fill(&WHITE).map_err(|e| e.to_string())?;
        for (area, series) in all.split_evenly((self.series.len(), 1)).iter().zip(&self.series) {
            panel(area, series).map_err(|e| e.to_string())?;
        }
        all.present().map_err(|e| e.to_string())?;
        drop(all);
        Ok(svg)
    }
}

/// Returns an element as a float: a bool as 0 or 1.
fn number(ty: ElemType, bytes: &[u8]) -> f64 {
    let bits = Scalar::from_le_bytes(ty, bytes).bits;
    match ty {
        ElemType::F32 => f64::from(f32::from_bits(bits as u32)),
        ElemType::F64 => f64::from_bits(bits),
        t if t.is_signed_int() => {
            let above = 64 - 8 * t.bytes();
            ((bits << above) as i64 >> above) as f64
        }
        _ => bits as f64,
    }
}

/// Returns a label of the vertical axis: few digits, and an exponent where a number is far from 1.
fn label(x: &f64) -> String {
    if *x != 0.0 && !(1e-3..1e5).contains(&x.abs()) {
        return format!("{x:.1e}");
    }
    let text = format!("{x:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// The numbers of a column of a line: the mean of the numbers of the packets, the least, and the greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Column {
    packet: f64,
    mean: f64,
    least: f64,
    most: f64,
}

/// Summarises a line in at most [`COLUMNS`] columns. Numbers that are not finite, or greater than [`MOST`], are left
/// out.
fn columns(line: &[f64]) -> Vec<Column> {
    let each = line.len().div_ceil(COLUMNS).max(1);
    let column = |(k, part): (usize, &[f64])| {
        let finite: Vec<f64> = part.iter().copied().filter(|x| x.abs() <= MOST).collect();
        let mean = finite.iter().map(|x| x / finite.len() as f64).sum();
        let (least, most) = (finite.iter().copied().reduce(f64::min)?, finite.iter().copied().reduce(f64::max)?);
        Some(Column { packet: (k * each) as f64 + (part.len() - 1) as f64 / 2.0, mean, least, most })
    };
    line.chunks(each).enumerate().filter_map(column).collect()
}

/// Draws the panel of a stream.
fn panel<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    series: &Series,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let line = |k: usize| series.values.iter().skip(k).step_by(series.lines).copied().collect::<Vec<_>>();
    let lines: Vec<Vec<Column>> = (0..series.lines).map(|k| columns(&line(k))).collect();
    let all = || lines.iter().flatten();
    let least = all().map(|c| c.least).reduce(f64::min).unwrap_or(0.0);
    let most = all().map(|c| c.most).reduce(f64::max).unwrap_or(1.0);
    // A line at one height has it in the middle.
    let room = if most > least { 0.05 * (most - least) } else { least.abs().max(1.0) };
    let room = room.max(LEAST.0).max(LEAST.1 * least.abs().max(most.abs()));
    let last = (series.values.len() / series.lines).saturating_sub(1).max(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(&series.name, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(24)
        .y_label_area_size(52)
        .build_cartesian_2d(0.0..last, least - room..most + room)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(8)
        .y_labels(6)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&label)
        .draw()?;
    for (k, line) in lines.iter().enumerate() {
        let color = Palette99::pick(k);
        if line.iter().any(|c| c.most > c.least) {
            let there = line.iter().map(|c| (c.packet, c.most));
            let back = line.iter().rev().map(|c| (c.packet, c.least));
            let band: Vec<_> = there.chain(back).collect();
            chart.draw_series([Polygon::new(band, color.mix(0.2))])?;
        }
        let points = line.iter().map(|c| (c.packet, c.mean));
        chart.draw_series(LineSeries::new(points, color.stroke_width(2)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_has_columns_with_range_and_mean() {
        let short = columns(&[3.0, f64::NAN, 5.0]);
        assert_eq!(short.iter().map(|c| (c.packet, c.mean)).collect::<Vec<_>>(), [(0.0, 3.0), (2.0, 5.0)]);
        let line: Vec<f64> = (0..2 * COLUMNS + 1).map(|k| k as f64).collect();
        let found = columns(&line);
        assert_eq!(found.len(), line.len().div_ceil(3));
        assert_eq!(found[1], Column { packet: 4.0, mean: 4.0, least: 3.0, most: 5.0 });
        assert!(columns(&[]).is_empty() && columns(&[f64::INFINITY]).is_empty());
    }

    #[test]
    fn numbers_of_all_types_are_drawn() {
        assert_eq!(number(ElemType::I32, &(-3i32).to_le_bytes()), -3.0);
        assert_eq!(number(ElemType::I64, &i64::MIN.to_le_bytes()), i64::MIN as f64);
        assert_eq!(number(ElemType::U8, &[200]), 200.0);
        assert_eq!(number(ElemType::F32, &0.5f32.to_le_bytes()), 0.5);
        let labels = [0.0, 0.25, -1.0, 98765.0, 1e5, 0.0001].map(|x| label(&x));
        assert_eq!(labels, ["0", "0.25", "-1", "98765", "1.0e5", "1.0e-4"]);
    }

    #[test]
    fn panels_stand_one_below_the_other() {
        let series = |name: &str, lines, values| Series {
            stream: StreamId::from_u32(0),
            name: name.into(),
            ty: ElemType::F64,
            lines,
            values,
        };
        let of = |series| Plot { path: PathBuf::new(), series }.svg().unwrap();
        let svg = of(vec![series("losses", 1, vec![2.0, 1.0, 0.5]), series("<both>", 2, vec![0.0, 1.0, 1.0, 1.0])]);
        assert!(svg.starts_with("<svg width=\"720\" height=\"520\""), "{svg}");
        assert!(svg.matches("<polyline").count() > 3);
        assert!(svg.contains("losses") && svg.contains("&lt;both&gt;") && svg.trim_end().ends_with("</svg>"));
        // Nothing, one number, equal numbers, neighbours, and the ends of the range can be drawn.
        for values in [
            &[][..],
            &[3.0],
            &[-2.0; 4],
            &[f64::NAN; 2],
            &[f64::MIN, f64::MAX],
            &[-1e30, 1e30],
            &[1e30; 2],
            &[1e-300, 0.0],
            &[1e9, 1e9f64.next_up()],
        ] {
            let svg = of(vec![series("x", 1, values.to_vec())]);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
