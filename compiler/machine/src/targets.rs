//! The machines that come with Girder, one TOML file each.

use crate::Machine;

const FILES: [(&str, &str); 4] = [
    ("gc200", include_str!("../targets/gc200.toml")),
    ("bow-2000", include_str!("../targets/bow-2000.toml")),
    ("small", include_str!("../targets/small.toml")),
    ("small-2", include_str!("../targets/small-2.toml")),
];

/// The names that [`builtin`] takes, in the order in which `girder targets` lists them.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The machine of a name. The files are part of the crate and its tests read every one.
pub fn builtin(name: &str) -> Option<Machine> {
    let (_, text) = FILES.iter().find(|(n, _)| *n == name)?;
    Machine::from_toml(text).ok()
}

/// The TOML text of a machine, comments included.
pub fn builtin_text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
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
}
