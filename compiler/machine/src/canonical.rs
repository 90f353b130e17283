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
use std::fmt::Write;

impl Machine {
    /// Returns the canonical text.
    pub fn to_toml(&self) -> String {
        let mut w = Writer::default();
        w.value("name", format_args!("{:?}", self.name));
        w.value("description", toml::Value::from(self.description.as_str()));
        w.value("ipus", self.ipus);
        self.write_chip(&mut w);
        self.write_memory(&mut w);
        self.write_tile(&mut w);
        self.write_exchange(&mut w);
        w.copying("arrange.before", &self.arrange.before);
        w.copying("arrange.after", &self.arrange.after);
        self.write_sync(&mut w);
        self.write_links(&mut w);
        self.write_host(&mut w);
        w.text
    }

    /// Returns a hash of everything that compilation depends on: the canonical text without the description.
    pub fn content_hash(&self) -> u64 {
        let machine = Machine { description: String::new(), ..self.clone() };
        SipHasher24::new().hash(machine.to_toml().as_bytes())
    }

    fn write_chip(&self, w: &mut Writer) {
        let chip = &self.chip;
        w.table("chip");
        w.value("tiles", chip.tiles);
        w.value("columns", chip.columns);
        w.value("rows", chip.rows);
        w.value("lanes", chip.lanes);
        w.value("workers", chip.workers);
        w.real("clock_hz", chip.clock_hz);
    }

    fn write_memory(&self, w: &mut Writer) {
        let memory = &self.memory;
        w.table("memory");
        w.value("bytes_per_tile", memory.bytes_per_tile);
        w.value("reserved_bytes", memory.reserved_bytes);
        w.value("base_address", memory.base_address);
        w.value("element_bytes", memory.element_bytes);
        w.value("store_bytes", memory.store_bytes);
        let region = |r: &crate::MemoryRegion| {
            format!("\n    {{ bytes = {}, executable = {}, interleaved = {} }},", r.bytes, r.executable, r.interleaved)
        };
        let regions: String = memory.regions.iter().map(region).collect();
        w.value("regions", format_args!("[{regions}\n]"));
    }

    fn write_tile(&self, w: &mut Writer) {
        let tile = &self.tile;
        w.table("tile");
        w.value("worker_period", tile.worker_period);
        w.value("vector_bytes", tile.vector_bytes);
        w.value("load_bytes", tile.load_bytes);
        w.value("store_bytes", tile.store_bytes);
        w.value("loop_bundles", tile.loop_bundles);
        w.value("launch_cycles", tile.launch_cycles);
        w.value("supervisor_cycles", tile.supervisor_cycles);
        w.value("vertex_bundles", tile.vertex_bundles);
        w.value("field_bundles", tile.field_bundles);
        w.value("share_bundles", tile.share_bundles);
        w.value("emulated_bundles", tile.emulated_bundles);
        w.bundles("tile.f32", &tile.f32);
        w.bundles("tile.f16", &tile.f16);
        w.table("tile.int");
        w.value("mul", tile.int.mul);
        w.value("div", tile.int.div);
        w.table("tile.multiply_adds");
        w.value("f16_f16", tile.multiply_adds.f16_f16);
        w.value("f16_f32", tile.multiply_adds.f16_f32);
        w.value("f32", tile.multiply_adds.f32);
        w.value("coefficient_bytes", tile.multiply_adds.coefficient_bytes);
        w.value("plain_coefficient_bytes", tile.multiply_adds.plain_coefficient_bytes);
    }

    fn write_exchange(&self, w: &mut Writer) {
        let exchange = &self.exchange;
        w.table("exchange");
        w.value("bytes_per_cycle", exchange.bytes_per_cycle);
        w.value("pair_bytes_per_cycle", exchange.pair_bytes_per_cycle);
        w.value("latency_cycles", exchange.latency_cycles);
        w.value("sender_row_cycles", exchange.sender_row_cycles);
        w.value("receiver_row_cycles", exchange.receiver_row_cycles);
        w.value("switch_cycles", exchange.switch_cycles);
        w.value("words_per_send", exchange.words_per_send);
        w.value("receive_instructions", exchange.receive_instructions);
        w.value("instruction_bytes", exchange.instruction_bytes);
    }

    fn write_sync(&self, w: &mut Writer) {
        w.table("sync");
        w.value("internal_cycles", self.sync.internal_cycles);
        w.real("external_ns", self.sync.external_ns);
        w.real("hop_ns", self.sync.hop_ns);
    }

    fn write_links(&self, w: &mut Writer) {
        let links = &self.links;
        let topology = match links.topology {
            Topology::None => "none",
            Topology::Ladder => "ladder",
            Topology::Torus => "torus",
        };
        w.table("links");
        w.value("topology", format_args!("{topology:?}"));
        w.real("bytes_per_second", links.bytes_per_second);
        w.real("efficiency", links.efficiency);
        w.value("direct", links.direct);
        w.value("cross", links.cross);
        w.value("up", links.up);
        w.value("down", links.down);
        w.value("fixed_cycles", links.fixed_cycles);
    }

    fn write_host(&self, w: &mut Writer) {
        w.table("host");
        w.value("begin_cycles", self.host.begin_cycles);
        w.value("copy_cycles", self.host.copy_cycles);
        w.value("end_cycles", self.host.end_cycles);
        w.real("bytes_per_second", self.host.bytes_per_second);
    }
}

/// A TOML text under construction.
#[derive(Default)]
struct Writer {
    text: String,
}

impl Writer {
    fn table(&mut self, name: &str) {
        writeln!(self.text, "\n[{name}]").unwrap_or_default();
    }

    fn value(&mut self, key: &str, value: impl std::fmt::Display) {
        writeln!(self.text, "{key} = {value}").unwrap_or_default();
    }

    /// Writes a number with a fraction or an exponent; equal numbers have one text.
    fn real(&mut self, key: &str, value: f64) {
        self.value(key, format_args!("{value:?}"));
    }

    fn bundles(&mut self, table: &str, bundles: &Bundles) {
        self.table(table);
        self.value("elements", bundles.elements);
        self.value("div", bundles.div);
        self.value("sqrt", bundles.sqrt);
        self.value("rsqrt", bundles.rsqrt);
        self.value("exp", bundles.exp);
        self.value("log", bundles.log);
        self.value("tanh", bundles.tanh);
        self.value("sigmoid", bundles.sigmoid);
        self.value("sin", bundles.sin);
    }

    fn copying(&mut self, table: &str, copying: &Copying) {
        self.table(table);
        self.value("fixed_cycles", copying.fixed_cycles);
        self.value("run_cycles", copying.run_cycles);
        self.real("bytes_per_cycle", copying.bytes_per_cycle);
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
        assert_eq!(format!("{:016x}", small.content_hash()), "d878085e386fbe41");
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
