//! The pages of `explain/`: the meaning of each code, one page for each stage.
//!
//! Invariant: an entry is `## code`, a one-line summary, and the long form; entries are sorted by code. Tests compare
//! the entries with the codes in the sources and run the examples.

/// One page for each stage, sorted.
const PAGES: [&str; 21] = [
    include_str!("../explain/codegen.md"),
    include_str!("../explain/codelet.md"),
    include_str!("../explain/driver.md"),
    include_str!("../explain/elaborate.md"),
    include_str!("../explain/exchange.md"),
    include_str!("../explain/grad.md"),
    include_str!("../explain/internal.md"),
    include_str!("../explain/library.md"),
    include_str!("../explain/machine.md"),
    include_str!("../explain/memory.md"),
    include_str!("../explain/names.md"),
    include_str!("../explain/pipeline.md"),
    include_str!("../explain/place.md"),
    include_str!("../explain/race.md"),
    include_str!("../explain/replica.md"),
    include_str!("../explain/resume.md"),
    include_str!("../explain/run.md"),
    include_str!("../explain/session.md"),
    include_str!("../explain/syntax.md"),
    include_str!("../explain/transfers.md"),
    include_str!("../explain/usage.md"),
];

/// Returns every code and its text, sorted by code. The first line of a text is its summary.
pub fn codes() -> impl Iterator<Item = (&'static str, &'static str)> {
    let entries = PAGES.iter().flat_map(|page| page.trim_start_matches("## ").split("\n## "));
    entries.filter_map(|entry| entry.split_once('\n')).map(|(code, text)| (code, text.trim()))
}

#[cfg(test)]
mod tests {
    use super::codes;

    #[test]
    fn entries_are_sorted_and_begin_with_a_summary() {
        let all: Vec<_> = codes().collect();
        assert!(all.is_sorted_by(|a, b| a.0 < b.0));
        for (code, text) in all {
            assert!(code.contains("::") && !code.contains(' '), "`{code}` is not a code");
            assert!(text.lines().nth(1) == Some(""), "the summary of `{code}` is one line");
        }
    }
}
