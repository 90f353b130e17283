//! Partitions: parts of a machine that programs have for themselves.
//!
//! A partition has a power of two of a machine's processors, or all of them, and divides them equally among replicas of
//! one program. What a program is compiled for is the part of one replica.
//!
//! Invariant: a part is whole rungs of the machine, or one processor.

use crate::machine::Partition;
use crate::network::Topology;
use crate::table::{Result, Table};
use crate::{Machine, MachineError};

impl Machine {
    /// Returns the part of one replica in a partition of `ipus` of these processors. Of rungs in a ring, a part is a
    /// row.
    ///
    /// # Errors
    /// If the processors are too many, are a part whose number is no power of two, or cannot be divided among the
    /// replicas.
    pub fn part(&self, ipus: u32, replicas: u32) -> std::result::Result<Machine, MachineError> {
        let fail = |message: String| Err(MachineError { message, span: None });
        if ipus > self.ipus {
            let all = self.ipus;
            return fail(format!("a partition of {ipus} processors is larger than the machine, which has {all}"));
        }
        if !ipus.is_power_of_two() && ipus != self.ipus {
            return fail(format!("a partition has a power of two of processors, not {ipus}"));
        }
        if !can_be_divided(ipus, replicas) {
            let plural = if ipus == 1 { "" } else { "s" };
            return fail(format!("{ipus} processor{plural} cannot be divided among {replicas} replicas"));
        }
        let topology = |ipus: u32| match ipus {
            1 => Topology::None,
            n if n == self.ipus => self.links.topology,
            _ => Topology::Ladder,
        };
        let mut part = Machine { ipus: ipus / replicas, ..self.clone() };
        part.links.topology = topology(part.ipus);
        part.partition = Partition { replicas, topology: topology(ipus) };
        Ok(part)
    }

    /// Returns the part of one of some replicas of a program on this machine. If the machine is such a part already,
    /// their number is given.
    ///
    /// # Errors
    /// If the processors cannot be divided among the replicas, or their number is not that of the partition.
    pub fn replicated(&self, replicas: u32) -> std::result::Result<Machine, MachineError> {
        let given = self.partition.replicas;
        if replicas == given {
            return Ok(self.clone());
        }
        if given > 1 {
            let message = format!("the partition `{}` is divided among {given} replicas, not {replicas}", self.name);
            return Err(MachineError { message, span: None });
        }
        self.part(self.ipus, replicas)
    }

    /// Returns the numbers of replicas among which the processors can be divided.
    pub fn possible_replicas(&self) -> Vec<u32> {
        (1..=self.ipus).filter(|&replicas| can_be_divided(self.ipus, replicas)).collect()
    }

    /// Returns the machine of which this one is the part of a replica.
    pub fn whole(&self) -> Machine {
        let Partition { replicas, topology } = self.partition;
        let mut whole = Machine { ipus: self.ipus * replicas, ..self.clone() };
        whole.links.topology = topology;
        whole.partition.replicas = 1;
        whole
    }

    /// Returns the processor of the whole machine that is number `ipu` of a replica.
    ///
    /// Replicas of one processor follow the rungs like a snake, so that each has direct links to the next one; larger
    /// ones follow one another, rung by rung.
    pub fn ipu_of_replica(&self, replica: u32, ipu: u32) -> u32 {
        match self.ipus {
            1 => replica ^ (replica / 2 % 2),
            n => replica * n + ipu,
        }
    }
}

/// Returns whether replicas get equal parts of some processors: whole rungs, or one processor.
fn can_be_divided(ipus: u32, replicas: u32) -> bool {
    let each = ipus.checked_div(replicas).unwrap_or(0);
    ipus.is_multiple_of(replicas) && (each == 1 || each > 0 && each.is_multiple_of(2))
}

/// Returns the part of a machine that the table `[partition]` describes, if the file has it.
pub(crate) fn partition(machine: Machine, top: &Table<'_, '_>) -> Result<Machine> {
    if !top.has("partition") {
        return Ok(machine);
    }
    let t = top.table("partition")?;
    t.only(&["ipus", "replicas"])?;
    let ipus = t.int("ipus", 1..=1 << 20)?;
    let replicas = if t.has("replicas") { t.int("replicas", 1..=1 << 20)? } else { 1 };
    match machine.part(ipus, replicas) {
        Ok(part) => Ok(part),
        Err(e) => top.fail(&["partition.ipus", "partition.replicas"], e.message),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Machine, Topology, builtin};

    #[test]
    fn a_part_has_the_processors_of_one_replica() {
        let pod = builtin("pod64").unwrap();
        let of = |ipus, replicas| pod.part(ipus, replicas).map(|m| (m.ipus, m.links.topology)).map_err(|e| e.message);
        assert_eq!(of(16, 4), Ok((4, Topology::Ladder)));
        assert_eq!(of(64, 1), Ok((64, Topology::Torus)));
        assert_eq!(of(64, 2), Ok((32, Topology::Ladder)));
        assert_eq!(of(16, 16), Ok((1, Topology::None)));
        assert_eq!(of(12, 1), Err("a partition has a power of two of processors, not 12".into()));
        let large = "a partition of 128 processors is larger than the machine, which has 64";
        assert_eq!(of(128, 1), Err(large.into()));
        assert_eq!(of(4, 8), Err("4 processors cannot be divided among 8 replicas".into()));
        assert_eq!(of(1, 2), Err("1 processor cannot be divided among 2 replicas".into()));
        assert_eq!(of(4, 3), Err("4 processors cannot be divided among 3 replicas".into()));
    }

    #[test]
    fn replicas_divide_any_number_of_rungs() {
        let machine = |ipus: u32| {
            Machine::from_toml(&format!(
                "name = \"own\"\nextends = \"pod64\"\nipus = {ipus}\n[links]\ntopology = \"torus\""
            ))
            .unwrap()
        };
        assert_eq!(machine(12).possible_replicas(), [1, 2, 3, 6, 12]);
        assert_eq!(machine(6).possible_replicas(), [1, 3, 6]);
        assert_eq!(machine(8).possible_replicas(), [1, 2, 4, 8]);
        assert_eq!(builtin("bow").unwrap().possible_replicas(), [1]);
        let of = |ipus, replicas| machine(ipus).replicated(replicas).map(|m| (m.ipus, m.links.topology));
        assert_eq!(of(12, 2).unwrap(), (6, Topology::Ladder));
        assert_eq!(of(6, 3).unwrap(), (2, Topology::Ladder));
        assert_eq!(of(6, 1).unwrap(), (6, Topology::Torus));
        let part = machine(12).replicated(6).unwrap();
        assert_eq!(Machine::from_toml(&part.to_toml()).unwrap(), part);
        let error = |ipus, replicas| of(ipus, replicas).unwrap_err().message;
        // A replica of three processors would have half of a rung.
        assert_eq!(error(6, 2), "6 processors cannot be divided among 2 replicas");
        assert_eq!(error(6, 0), "6 processors cannot be divided among 0 replicas");
        assert_eq!(error(6, 12), "6 processors cannot be divided among 12 replicas");
    }

    #[test]
    fn a_part_of_a_ladder_is_the_board_with_as_many_processors() {
        let (pod, board) = (builtin("pod16").unwrap(), builtin("m2000").unwrap());
        let part = pod.part(4, 1).unwrap();
        let own = Machine { name: board.name.clone(), description: board.description.clone(), ..part };
        assert_eq!(own, board);
    }

    #[test]
    fn a_replica_of_one_processor_has_links_to_the_next() {
        for name in ["pod16", "pod64"] {
            let machine = builtin(name).unwrap();
            let part = machine.replicated(machine.ipus).unwrap();
            let ipus: Vec<u32> = (0..machine.ipus).map(|r| part.ipu_of_replica(r, 0)).collect();
            assert_eq!(ipus[..6], [0, 1, 3, 2, 4, 5]);
            assert!(ipus.windows(2).all(|pair| machine.route(pair[0], pair[1]).count() == 1));
        }
        let part = builtin("pod16").unwrap().replicated(4).unwrap();
        assert_eq!(part.ipu_of_replica(2, 3), 11);
        assert_eq!(part.replicated(4).unwrap(), part);
        let other = part.replicated(2).unwrap_err().message;
        assert_eq!(other, "the partition `pod16` is divided among 4 replicas, not 2");
    }

    #[test]
    fn a_file_may_describe_a_partition() {
        let file =
            |rest: &str| Machine::from_toml(&format!("name = \"part\"\nextends = \"pod64\"\n[partition]\n{rest}"));
        let part = file("ipus = 16\nreplicas = 4").unwrap();
        assert_eq!((part.ipus, part.partition.replicas, part.name.as_str()), (4, 4, "part"));
        assert_eq!(file("ipus = 16").unwrap().ipus, 16);
        // The part knows the whole, over whose links replicas exchange words.
        assert_eq!((part.whole().ipus, part.whole().links.topology), (16, Topology::Ladder));
        assert_eq!(Machine::from_toml(&part.to_toml()).unwrap(), part);
        let text = "name = \"part\"\nextends = \"pod64\"\n[partition]\nipus = 12";
        let error = Machine::from_toml(text).unwrap_err();
        assert_eq!(&text[error.span.unwrap()], "ipus = 12");
        assert!(file("tiles = 3").unwrap_err().message.starts_with("unknown key `tiles`"));
    }
}
