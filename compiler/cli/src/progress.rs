//! A bar on the terminal that shows how far a run is, how fast it reads rows, and the numbers that it sends.
//!
//! Invariant: without a terminal at standard error nothing is shown; what a run computes, prints and writes to files
//! never depends on the bar.

use girder::ir::types::{ElemType, Scalar};
use girder::show;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// A run shorter than this shows no bar.
const PATIENCE: Duration = Duration::from_millis(700);

/// The time between two measurements of the rate.
const INTERVAL: Duration = Duration::from_millis(500);

/// The bar of a run; nothing if no terminal shows it.
pub struct Progress {
    watched: bool,
    bar: Option<ProgressBar>,
    started: Instant,
    /// The time of the last measurement, and the rows of each input that were read by then.
    measured: Instant,
    rows: Vec<u64>,
    /// The input that is read, with its rows in a second.
    rate: Option<(usize, f64)>,
    /// The last packet of each stream that sends single numbers, with its name, in the order of their first packets.
    numbers: Vec<(String, String)>,
}

impl Progress {
    /// Shows a bar if standard error is a terminal.
    pub fn new() -> Progress {
        let now = Instant::now();
        Progress {
            watched: std::io::stderr().is_terminal(),
            bar: None,
            started: now,
            measured: now,
            rows: vec![],
            rate: None,
            numbers: vec![],
        }
    }

    /// Takes a number that a stream sends.
    pub fn number(&mut self, name: &str, ty: ElemType, bytes: &[u8]) {
        if !self.watched {
            return;
        }
        let value = short(ty, bytes);
        match self.numbers.iter_mut().find(|(other, _)| other == name) {
            Some((_, last)) => *last = value,
            None => self.numbers.push((name.into(), value)),
        }
    }

    /// Takes the number of supersteps that have ended, and the number that the text implies. `rows` gives the name of
    /// each input, with its rows that were read.
    pub fn advance<'n>(&mut self, done: u64, total: u64, rows: impl Iterator<Item = (&'n str, u64)>) {
        if !self.watched || (self.bar.is_none() && self.started.elapsed() < PATIENCE) {
            return;
        }
        let style = || {
            let template = "{elapsed_precise} [{bar:30}] {pos}/{len} supersteps, {eta} left{msg}";
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        let bar = self.bar.get_or_insert_with(|| ProgressBar::new(total).with_style(style()));
        bar.set_position(done);
        let elapsed = self.measured.elapsed();
        if elapsed >= INTERVAL {
            self.measured += elapsed;
            let (names, now): (Vec<&str>, Vec<u64>) = rows.unzip();
            self.measure(&now, elapsed);
            if let Some(bar) = &self.bar {
                bar.set_message(self.message(&names));
            }
        }
    }

    /// Computes the rate from the rows that were read by now, `elapsed` after the last measurement. If several inputs
    /// are read, the rate is that of the first one.
    fn measure(&mut self, now: &[u64], elapsed: Duration) {
        self.rows.resize(now.len(), 0);
        let read = now.iter().zip(&self.rows).position(|(now, before)| now > before);
        self.rate = read.map(|k| (k, (now[k] - self.rows[k]) as f64 / elapsed.as_secs_f64()));
        self.rows = now.to_vec();
    }

    /// Returns the part of the bar after the supersteps.
    fn message(&self, names: &[&str]) -> String {
        let rate = self.rate.map(|(k, rate)| format!(", {rate:.0} {}/s", names[k]));
        let numbers = self.numbers.iter().map(|(name, value)| format!(", {name} {value}"));
        rate.into_iter().chain(numbers).collect()
    }

    /// Writes a line, above the bar if there is one.
    pub fn aside(&self, write: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Removes the bar.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Returns a number in few digits.
fn short(ty: ElemType, bytes: &[u8]) -> String {
    let scalar = Scalar::from_le_bytes(ty, bytes);
    match ty {
        ElemType::F32 => format!("{:.4}", f32::from_bits(scalar.bits as u32)),
        ElemType::F64 => format!("{:.4}", f64::from_bits(scalar.bits)),
        _ => show(ty, &[], bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_shows_the_rate_of_the_input_that_is_read_and_the_last_numbers() {
        let mut progress = Progress { watched: true, ..Progress::new() };
        let names = ["digits", "classes", "test_digits"];
        assert_eq!(progress.message(&names), "");
        progress.number("losses", ElemType::F32, &2.5f32.to_le_bytes());
        progress.measure(&[100, 100, 0], Duration::from_millis(500));
        progress.number("right", ElemType::I32, &7i32.to_le_bytes());
        progress.number("losses", ElemType::F32, &0.03125f32.to_le_bytes());
        assert_eq!(progress.message(&names), ", 200 digits/s, losses 0.0312, right 7");
        progress.measure(&[100, 100, 40], Duration::from_millis(800));
        assert_eq!(progress.message(&names), ", 50 test_digits/s, losses 0.0312, right 7");
        progress.measure(&[100, 100, 40], Duration::from_secs(1));
        assert_eq!(progress.message(&names), ", losses 0.0312, right 7");
    }
}
