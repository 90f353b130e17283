//! Rows that differ only in numbers, one after the other.
//!
//! Invariant: the rows of a run are like its first one, and their numbers are in the order of [`Row::numbers`].

use super::row::Row;

/// Rows like the first one.
#[derive(Clone, Debug)]
pub struct RowRun {
    /// The first row.
    pub first: Row,
    /// The number of rows, at least 1.
    pub count: usize,
    /// The numbers of all rows, one row after the other.
    numbers: Vec<i64>,
}

impl RowRun {
    /// Returns the numbers of a row.
    pub fn numbers(&self, row: usize) -> &[i64] {
        let width = self.numbers.len() / self.count;
        &self.numbers[row * width..][..width]
    }

    /// Returns a row.
    pub fn row(&self, row: usize) -> Row {
        // The numbers of a row fit it.
        self.first.with(self.numbers(row)).unwrap_or_else(|| self.first.clone())
    }
}

/// All rows of a table, run after run.
#[derive(Clone, Debug, Default)]
pub struct RowRuns(pub Vec<RowRun>);

impl RowRuns {
    /// Adds a row.
    pub fn push(&mut self, row: Row) {
        let numbers = row.numbers();
        match self.0.last_mut() {
            Some(run) if run.first.is_like(&row) => {
                run.numbers.extend_from_slice(&numbers);
                run.count += 1;
            }
            _ => self.0.push(RowRun { first: row, count: 1, numbers: numbers.to_vec() }),
        }
    }

    /// Adds rows in order.
    pub fn extend(&mut self, rows: impl IntoIterator<Item = Row>) {
        rows.into_iter().for_each(|row| self.push(row));
    }
}
