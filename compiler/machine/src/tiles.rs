//! The position of a tile on its processor, and its effect on the latency of an exchange.
//!
//! Tiles are numbered lane by lane, then row by row, then column by column: tiles `lanes * k ..` share a row, and
//! neighbours `2k` and `2k + 1` share an exchange bus. The numbering of the hardware is not published. This order keeps
//! a pair on one bus and a run of tiles in few columns, as the pair rule and short wires need.

use crate::Machine;

impl Machine {
    /// Returns the row of a tile in its column.
    pub fn row(&self, tile: u32) -> u32 {
        tile % self.chip.tiles / self.chip.lanes % self.chip.rows
    }

    /// Returns the column of a tile.
    pub fn column(&self, tile: u32) -> u32 {
        tile % self.chip.tiles / self.chip.lanes / self.chip.rows
    }

    /// Returns the cycles from the release of the sync to the arrival of the first word on one processor. They are the
    /// sum of a sender's and a receiver's part, so a schedule can shift each tile's clock and ignore the wires.
    pub fn latency(&self, sender: u32, receiver: u32) -> u32 {
        self.sender_latency(sender) + self.receiver_latency(receiver)
    }

    /// Returns the sender's part of [`Machine::latency`].
    pub fn sender_latency(&self, tile: u32) -> u32 {
        self.exchange.latency_cycles + self.exchange.sender_row_cycles * self.row(tile)
    }

    /// Returns the receiver's part of [`Machine::latency`].
    pub fn receiver_latency(&self, tile: u32) -> u32 {
        self.exchange.receiver_row_cycles * self.row(tile)
    }

    /// Returns the largest [`Machine::latency`] of two tiles.
    pub fn latency_bound(&self) -> u32 {
        let last = self.chip.rows - 1;
        let e = &self.exchange;
        e.latency_cycles + last * (e.sender_row_cycles + e.receiver_row_cycles)
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin;

    #[test]
    fn the_latency_of_gc200_runs_from_165_to_209() {
        let m = builtin("gc200").unwrap();
        assert_eq!((m.latency(1000, 0), m.latency(0, 4), m.latency(0, 91)), (165, 167, 209));
        assert_eq!((m.latency_bound(), (0..1472).map(|t| m.latency(7, t)).max()), (209, Some(209)));
        let m = builtin("gc2").unwrap();
        assert_eq!((m.latency(5, 1215), m.latency_bound()), (213, 213));
    }

    #[test]
    fn a_pair_shares_row_and_column() {
        for name in ["gc2", "gc200", "small", "bow-2000"] {
            let m = builtin(name).unwrap();
            for t in (0..m.tiles()).step_by(2) {
                assert_eq!((m.row(t), m.column(t)), (m.row(t + 1), m.column(t + 1)), "{name} {t}");
                assert!(m.row(t) < m.chip.rows && m.column(t) < m.chip.columns);
            }
        }
    }
}
