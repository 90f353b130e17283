//! Spelling in messages: the known name nearest to a misspelt one, and plurals.

/// Returns the nearest of some names, if one is near: at most a third of its letters differ.
///
/// An edit inserts, removes or replaces a letter, or swaps two neighbours.
pub fn closest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let distances = names.map(|name| (strsim::osa_distance(wrong, name), name));
    let near = distances.filter(|(d, name)| *d > 0 && *d * 3 <= name.len().max(wrong.len()));
    near.min().map(|(_, name)| name)
}

/// Formats a count with its noun: `1 axis`, `2 axes`.
pub fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_a_letter_is_found_and_nonsense_is_not() {
        assert_eq!(closest("retrun", ["repeat", "return"].into_iter()), Some("return"));
        assert_eq!(closest("acc", ["ack", "bias"].into_iter()), Some("ack"));
        assert_eq!(closest("beta", ["bias", "x"].into_iter()), None);
        assert_eq!(closest("xyz", ["repeat", "return"].into_iter()), None);
    }
}
