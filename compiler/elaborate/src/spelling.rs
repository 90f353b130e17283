//! "Did you mean": the known name that is nearest to a wrong one.

/// The nearest of some names, if one is near: at most a third of its letters differ.
pub fn closest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let near = names.map(|n| (distance(wrong, n), n)).filter(|(d, n)| *d > 0 && *d * 3 <= n.len().max(wrong.len()));
    near.min().map(|(_, n)| n)
}

/// Letters to insert, remove or replace, or neighbours to swap.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let width = b.len() + 1;
    let mut cost: Vec<usize> = (0..width).collect();
    for i in 1..=a.len() {
        cost.push(i);
        for j in 1..width {
            let here = |di: usize, dj: usize| cost[(i - di) * width + j - dj];
            let mut best = (here(1, 0) + 1).min(cost[i * width + j - 1] + 1);
            best = best.min(here(1, 1) + usize::from(a[i - 1] != b[j - 1]));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(here(2, 2) + 1);
            }
            cost.push(best);
        }
    }
    cost[a.len() * width + b.len()]
}

/// `1 axis`, `2 axes`
pub fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_a_letter_is_found_and_nonsense_is_not() {
        assert_eq!(closest("retrun", ["repeat", "return"].into_iter()), Some("return"));
        assert_eq!(closest("xyz", ["repeat", "return"].into_iter()), None);
    }
}
