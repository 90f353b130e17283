//! The built-in machines, one TOML file each.
//!
//! Invariant: every file is valid, contains the name under which it is listed, and extends only machines of this list.

use crate::Machine;

/// Chips, each with its boards and pods, then small machines.
const FILES: [(&str, &str); 16] = [
    ("gc2", include_str!("../targets/gc2.toml")),
    ("c2", include_str!("../targets/c2.toml")),
    ("dss8440", include_str!("../targets/dss8440.toml")),
    ("gc200", include_str!("../targets/gc200.toml")),
    ("m2000", include_str!("../targets/m2000.toml")),
    ("pod16", include_str!("../targets/pod16.toml")),
    ("pod64", include_str!("../targets/pod64.toml")),
    ("bow", include_str!("../targets/bow.toml")),
    ("bow-2000", include_str!("../targets/bow-2000.toml")),
    ("bow-pod16", include_str!("../targets/bow-pod16.toml")),
    ("bow-pod64", include_str!("../targets/bow-pod64.toml")),
    ("bow-pod256", include_str!("../targets/bow-pod256.toml")),
    ("small", include_str!("../targets/small.toml")),
    ("small-2", include_str!("../targets/small-2.toml")),
    ("small-4", include_str!("../targets/small-4.toml")),
    ("small-8", include_str!("../targets/small-8.toml")),
];

/// Returns the names that [`builtin`] accepts, in the order in which `girder targets` lists them.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// Returns a machine by name. The files are part of the crate, and its tests read every one.
pub fn builtin(name: &str) -> Option<Machine> {
    Machine::from_toml(builtin_text(name)?).ok()
}

/// Returns the TOML text of a machine, comments included.
pub fn builtin_text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

/// Returns the machine that a built-in machine extends.
pub fn builtin_base(name: &str) -> Option<&'static str> {
    base_of(builtin_text(name)?)
}

/// Returns the built-in machine that a machine file extends.
pub fn base_of(text: &str) -> Option<&'static str> {
    let top = text.lines().take_while(|line| !line.trim_start().starts_with('['));
    let mut pairs = top.filter_map(|line| line.split_once('='));
    let (_, base) = pairs.find(|(key, _)| key.trim() == "extends")?;
    builtin_names().find(|n| base.split(['"', '\'']).nth(1) == Some(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_machine_reads_and_bears_its_name() {
        for name in builtin_names() {
            let machine = Machine::from_toml(builtin_text(name).unwrap()).unwrap_or_else(|e| panic!("{name}: {e:?}"));
            assert_eq!(machine.name, name);
        }
    }

    #[test]
    fn a_machine_inherits_missing_keys_from_its_base() {
        assert_eq!(
            (builtin_base("gc200"), builtin_base("bow-pod16"), builtin_base("bow")),
            (None, Some("bow"), Some("gc200"))
        );
        assert_eq!(base_of("# extends = 'ipu'\nname = \"x\"\n extends='bow' # one\n[chip]\n"), Some("bow"));
        assert_eq!(base_of("name = \"x\"\n[chip]\nextends = \"bow\"\n"), None);
        let (pod, bow) = (builtin("bow-pod16").unwrap(), builtin("bow").unwrap());
        assert_eq!((&pod.chip, &pod.memory, &pod.links), (&bow.chip, &bow.memory, &bow.links));
    }

    #[test]
    fn boards_and_pods_have_their_published_tiles() {
        let tiles = |name| builtin(name).unwrap().tiles();
        assert_eq!((tiles("gc2"), tiles("c2"), tiles("dss8440")), (1216, 2432, 19456));
        assert_eq!((tiles("m2000"), tiles("pod16"), tiles("pod64")), (5888, 23552, 94208));
        assert_eq!((tiles("bow-2000"), tiles("bow-pod64"), tiles("bow-pod256")), (5888, 94208, 376832));
    }
}
