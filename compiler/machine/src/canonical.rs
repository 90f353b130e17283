//! The canonical TOML text of a machine and its hash.
//!
//! The text has every key of `docs/machine.md` once, in the order of that document, nothing inherited and no comments.
//!
//! Invariants: [`Machine::from_toml`] reads the text back to an equal machine; text and hash depend on the keys and
//! values of the file format, never on the names of Rust fields.

use crate::Machine;
use crate::costs::{Bundles, Copying};
use crate::network::Topology;
use siphasher::sip::SipHasher24;
use std::fmt::{Display, Formatter, Write};

impl Machine {
    /// Returns the canonical text.
    pub fn to_toml(&self) -> String {
        let replicas = self.partition.replicas;
        if replicas > 1 {
            let whole = self.whole();
            let ipus = whole.ipus;
            return whole.to_toml() + &format!("\n[partition]\nipus = {ipus}\nreplicas = {replicas}\n");
        }
        let mut w = Writer::default();
        w.rows(&[
            ("name", &format_args!("{:?}", self.name)),
            ("description", &toml::Value::from(self.description.as_str())),
            ("ipus", &self.ipus),
        ]);
        self.write_chip(&mut w);
        self.write_memory(&mut w);
        self.write_tile(&mut w);
        self.write_exchange(&mut w);
        w.copying("arrange.before", &self.arrange.before);
        w.copying("arrange.after", &self.arrange.after);
        self.write_sync(&mut w);
        self.write_links(&mut w);
        self.write_host(&mut w);
        self.write_streaming(&mut w);
        w.text
    }

    /// Returns a hash of everything that compilation depends on: the canonical text without the description.
    pub fn content_hash(&self) -> u64 {
        let machine = Machine { description: String::new(), ..self.clone() };
        SipHasher24::new().hash(machine.to_toml().as_bytes())
    }

    fn write_chip(&self, w: &mut Writer) {
        let chip = &self.chip;
        w.table(
            "chip",
            &[
                ("tiles", &chip.tiles),
                ("columns", &chip.columns),
                ("rows", &chip.rows),
                ("lanes", &chip.lanes),
                ("workers", &chip.workers),
                ("clock_hz", &Real(chip.clock_hz)),
            ],
        );
    }

    fn write_memory(&self, w: &mut Writer) {
        let memory = &self.memory;
        let region = |r: &crate::MemoryRegion| {
            format!("\n    {{ bytes = {}, executable = {}, interleaved = {} }},", r.bytes, r.executable, r.interleaved)
        };
        let regions: String = memory.regions.iter().map(region).collect();
        w.table(
            "memory",
            &[
                ("bytes_per_tile", &memory.bytes_per_tile),
                ("reserved_bytes", &memory.reserved_bytes),
                ("base_address", &memory.base_address),
                ("element_bytes", &memory.element_bytes),
                ("store_bytes", &memory.store_bytes),
                ("regions", &format_args!("[{regions}\n]")),
            ],
        );
    }

    fn write_tile(&self, w: &mut Writer) {
        let tile = &self.tile;
        w.table(
            "tile",
            &[
                ("worker_period", &tile.worker_period),
                ("vector_bytes", &tile.vector_bytes),
                ("load_bytes", &tile.load_bytes),
                ("store_bytes", &tile.store_bytes),
                ("loop_bundles", &tile.loop_bundles),
                ("launch_cycles", &tile.launch_cycles),
                ("supervisor_cycles", &tile.supervisor_cycles),
                ("vertex_bundles", &tile.vertex_bundles),
                ("field_bundles", &tile.field_bundles),
                ("share_bundles", &tile.share_bundles),
                ("emulated_bundles", &tile.emulated_bundles),
            ],
        );
        w.bundles("tile.f32", &tile.f32);
        w.bundles("tile.f16", &tile.f16);
        w.table("tile.int", &[("mul", &tile.int.mul), ("div", &tile.int.div)]);
        let rates = &tile.multiply_adds;
        w.table(
            "tile.multiply_adds",
            &[
                ("f16_f16", &rates.f16_f16),
                ("f16_f32", &rates.f16_f32),
                ("f32", &rates.f32),
                ("coefficient_bytes", &rates.coefficient_bytes),
                ("plain_coefficient_bytes", &rates.plain_coefficient_bytes),
            ],
        );
    }

    fn write_exchange(&self, w: &mut Writer) {
        let exchange = &self.exchange;
        w.table(
            "exchange",
            &[
                ("bytes_per_cycle", &exchange.bytes_per_cycle),
                ("pair_bytes_per_cycle", &exchange.pair_bytes_per_cycle),
                ("latency_cycles", &exchange.latency_cycles),
                ("sender_row_cycles", &exchange.sender_row_cycles),
                ("receiver_row_cycles", &exchange.receiver_row_cycles),
                ("switch_cycles", &exchange.switch_cycles),
                ("words_per_send", &exchange.words_per_send),
                ("receive_instructions", &exchange.receive_instructions),
                ("instruction_bytes", &exchange.instruction_bytes),
            ],
        );
    }

    fn write_sync(&self, w: &mut Writer) {
        w.table(
            "sync",
            &[
                ("internal_cycles", &self.sync.internal_cycles),
                ("external_ns", &Real(self.sync.external_ns)),
                ("hop_ns", &Real(self.sync.hop_ns)),
            ],
        );
    }

    fn write_links(&self, w: &mut Writer) {
        let links = &self.links;
        let topology = match links.topology {
            Topology::None => "none",
            Topology::Ladder => "ladder",
            Topology::Torus => "torus",
        };
        w.table(
            "links",
            &[
                ("topology", &format_args!("{topology:?}")),
                ("bytes_per_second", &Real(links.bytes_per_second)),
                ("efficiency", &Real(links.efficiency)),
                ("direct", &links.direct),
                ("cross", &links.cross),
                ("up", &links.up),
                ("down", &links.down),
                ("fixed_cycles", &links.fixed_cycles),
            ],
        );
    }

    fn write_host(&self, w: &mut Writer) {
        w.table(
            "host",
            &[
                ("begin_cycles", &self.host.begin_cycles),
                ("copy_cycles", &self.host.copy_cycles),
                ("end_cycles", &self.host.end_cycles),
                ("bytes_per_second", &Real(self.host.bytes_per_second)),
            ],
        );
    }

    fn write_streaming(&self, w: &mut Writer) {
        w.table(
            "streaming",
            &[
                ("bytes", &self.streaming.bytes),
                ("bytes_per_second", &Real(self.streaming.bytes_per_second)),
                ("latency_cycles", &self.streaming.latency_cycles),
            ],
        );
    }
}

/// A TOML text under construction.
#[derive(Default)]
struct Writer {
    text: String,
}

/// A number that is written with a fraction or an exponent; equal numbers have one text.
struct Real(f64);

impl Display for Real {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl Writer {
    /// Writes a table: its header and its keys with their values.
    fn table(&mut self, name: &str, rows: &[(&str, &dyn Display)]) {
        writeln!(self.text, "\n[{name}]").unwrap_or_default();
        self.rows(rows);
    }

    fn rows(&mut self, rows: &[(&str, &dyn Display)]) {
        for (key, value) in rows {
            writeln!(self.text, "{key} = {value}").unwrap_or_default();
        }
    }

    fn bundles(&mut self, table: &str, bundles: &Bundles) {
        self.table(
            table,
            &[
                ("elements", &bundles.elements),
                ("div", &bundles.div),
                ("sqrt", &bundles.sqrt),
                ("rsqrt", &bundles.rsqrt),
                ("exp", &bundles.exp),
                ("log", &bundles.log),
                ("tanh", &bundles.tanh),
                ("sigmoid", &bundles.sigmoid),
                ("sin", &bundles.sin),
            ],
        );
    }

    fn copying(&mut self, table: &str, copying: &Copying) {
        self.table(
            table,
            &[
                ("fixed_cycles", &copying.fixed_cycles),
                ("run_cycles", &copying.run_cycles),
                ("bytes_per_cycle", &Real(copying.bytes_per_cycle)),
            ],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{builtin, builtin_names};

    #[test]
    fn the_canonical_text_reads_back_to_the_same_machine() {
        for name in builtin_names() {
            let machine = builtin(name).unwrap();
            assert_eq!(Machine::from_toml(&machine.to_toml()).unwrap(), machine);
        }
        let quoted = Machine { description: "a \"quoted\" \\ text\n".into(), ..builtin("small").unwrap() };
        assert_eq!(Machine::from_toml(&quoted.to_toml()).unwrap(), quoted);
    }

    /// The text is a file of its own, so renaming a Rust field changes neither text nor hash.
    #[test]
    fn the_hash_is_that_of_the_text() {
        let small = Machine { description: String::new(), ..builtin("small").unwrap() };
        let text = include_str!("canonical/small.toml");
        assert_eq!(small.to_toml(), text);
        assert_eq!(SipHasher24::new().hash(text.as_bytes()), small.content_hash());
        assert_eq!(format!("{:016x}", small.content_hash()), "ea6342111568b625");
        // The first vector of the reference implementation: the function does not change with a library's version.
        let reference = SipHasher24::new_with_keys(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        assert_eq!(reference.hash(b""), 0x726f_db47_dd0e_0e31);
    }

    #[test]
    fn the_hash_ignores_the_description_and_nothing_else() {
        let small = builtin("small").unwrap();
        let described = Machine { description: "another".into(), ..small.clone() };
        assert_eq!(described.content_hash(), small.content_hash());
        let mut slower = small.clone();
        slower.sync.hop_ns += 1.0;
        assert_ne!(slower.content_hash(), small.content_hash());
    }
}
