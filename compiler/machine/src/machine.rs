//! The parameters of one machine and how they are read from TOML.

use serde::{Deserialize, Serialize};

/// A virtual machine of one or more IPUs. Units stand in the field's name or doc.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// As `--target` takes it.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// Processors.
    pub ipus: u32,
    /// Tiles of each processor.
    pub tiles_per_ipu: u32,
    /// Worker contexts of each tile.
    pub workers: u32,
    /// Tile clock, Hz.
    pub clock_hz: f64,
    /// One tile's memory.
    pub memory: Memory,
    /// The exchange inside one processor, and between them.
    pub exchange: Exchange,
    /// What synchronising costs.
    pub sync: Sync,
}

/// One tile's memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Bytes of a tile.
    pub bytes_per_tile: u32,
    /// Bytes at the top that programs may not use.
    pub reserved_bytes: u32,
    /// Bytes of one memory element (bank).
    pub element_bytes: u32,
    /// The narrowest store, bytes.
    pub store_bytes: u32,
    /// Regions from address 0 upwards; they fill the memory.
    pub regions: Vec<Region>,
}

/// A region of a tile's memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Bytes.
    pub bytes: u32,
    /// Whether code can run from it.
    pub executable: bool,
    /// Whether two elements are interleaved, so that 128 bits can be loaded at once.
    pub interleaved: bool,
}

/// Exchange.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// Bytes a tile receives (and sends) in a cycle.
    pub bytes_per_cycle: u32,
    /// Cycles from the release of a sync to the first word landed.
    pub latency_cycles: u32,
    /// Bytes a tile's own copy moves in a cycle.
    pub local_copy_bytes_per_cycle: u32,
    /// Bytes per cycle between a pair of processors, each way.
    pub link_bytes_per_cycle: f64,
    /// Cycles that an exchange between processors takes beyond its words.
    pub link_latency_cycles: u32,
}

/// Sync.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sync {
    /// Cycles to sync the tiles of one processor.
    pub internal_cycles: u32,
    /// Cycles to sync all processors.
    pub global_cycles: u32,
}

/// What is wrong with a machine file; `span` is a range of bytes in it where that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineError {
    /// Lower case, no full stop.
    pub message: String,
    /// Bytes in the TOML text.
    pub span: Option<std::ops::Range<usize>>,
}

impl Machine {
    /// All tiles of all processors.
    pub fn tiles(&self) -> u32 {
        self.ipus * self.tiles_per_ipu
    }

    /// The processor of a tile.
    pub fn ipu_of(&self, tile: u32) -> u32 {
        tile / self.tiles_per_ipu
    }

    /// Bytes of a tile that programs may use.
    pub fn usable_bytes(&self) -> u32 {
        self.memory.bytes_per_tile - self.memory.reserved_bytes
    }
}

impl Machine {
    /// Reads and checks a machine.
    pub fn from_toml(text: &str) -> Result<Machine, MachineError> {
        let machine: Machine = toml::from_str(text)
            .map_err(|e: toml::de::Error| MachineError { message: e.message().trim().to_string(), span: e.span() })?;
        machine.check().map_err(|(key, message)| MachineError { message, span: find_key(text, key) })?;
        Ok(machine)
    }

    /// The first value that makes no sense: its key and why.
    fn check(&self) -> Result<(), (&'static str, String)> {
        let at_least_one = [
            ("ipus", self.ipus),
            ("tiles_per_ipu", self.tiles_per_ipu),
            ("workers", self.workers),
            ("bytes_per_tile", self.memory.bytes_per_tile),
            ("element_bytes", self.memory.element_bytes),
            ("bytes_per_cycle", self.exchange.bytes_per_cycle),
            ("local_copy_bytes_per_cycle", self.exchange.local_copy_bytes_per_cycle),
        ];
        for (key, value) in at_least_one {
            if value == 0 {
                return Err((key, format!("`{key}` must be at least 1")));
            }
        }
        if self.ipus as u64 * self.tiles_per_ipu as u64 > 1 << 20 {
            return Err(("ipus", "a machine has at most 1048576 tiles".to_string()));
        }
        for (key, value) in [("clock_hz", self.clock_hz), ("link_bytes_per_cycle", self.exchange.link_bytes_per_cycle)]
        {
            if !(value.is_finite() && value > 0.0) {
                return Err((key, format!("`{key}` must be a positive number")));
            }
        }
        self.check_memory()
    }

    fn check_memory(&self) -> Result<(), (&'static str, String)> {
        let memory = &self.memory;
        if !matches!(memory.store_bytes, 1 | 2 | 4 | 8) {
            return Err(("store_bytes", "`store_bytes` must be 1, 2, 4 or 8".to_string()));
        }
        if !memory.bytes_per_tile.is_multiple_of(16) || memory.bytes_per_tile > 1 << 30 {
            return Err(("bytes_per_tile", "`bytes_per_tile` must be a multiple of 16, at most 1 GiB".to_string()));
        }
        if memory.reserved_bytes >= memory.bytes_per_tile {
            return Err(("reserved_bytes", "`reserved_bytes` leaves no memory".to_string()));
        }
        let total: u64 = memory.regions.iter().map(|r| r.bytes as u64).sum();
        if total != memory.bytes_per_tile as u64 {
            let message = format!("the regions hold {total} bytes, but a tile has {}", memory.bytes_per_tile);
            return Err(("regions", message));
        }
        if !memory.regions.iter().any(|r| r.executable) {
            return Err(("regions", "no region is executable".to_string()));
        }
        Ok(())
    }
}

/// Where a key stands in the text.
fn find_key(text: &str, key: &str) -> Option<std::ops::Range<usize>> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let name = line.trim_start().trim_start_matches('[').trim_start_matches("memory.");
        if name.starts_with(key) && !name[key.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            let start = at + (line.len() - line.trim_start().len());
            return Some(start..at + line.trim_end().len());
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_reported_at_its_key() {
        let text = crate::builtin_text("small").unwrap().replace("workers = 6", "workers = 0");
        let error = Machine::from_toml(&text).unwrap_err();
        assert_eq!(error.message, "`workers` must be at least 1");
        assert_eq!(&text[error.span.unwrap()].split('#').next().unwrap().trim(), &"workers = 0");
    }

    #[test]
    fn an_unknown_key_is_an_error() {
        let text = format!("colour = 3\n{}", crate::builtin_text("small").unwrap());
        let error = Machine::from_toml(&text).unwrap_err();
        assert!(error.message.contains("unknown field `colour`"), "{error:?}");
        assert_eq!(&text[error.span.unwrap()], "colour");
    }
}
