//! Numbers side by side in a list: they are one token, so that a list of a million takes no million turns of the grammar.
//!
//! Invariant: the text of such a token is numbers, perhaps with a sign right before them, and between two of them a comma
//! and spaces; what it stands between are commas, and at its end perhaps the bracket of its list.

use super::literal::{number, scan_number};

/// Numbers that are worth a token of their own: more than anybody writes between the brackets of an index.
const LEAST: usize = 16;

/// Returns how many bytes of a text, which begins behind a comma, are spaces and how many are numbers behind them; `None` if
/// these are few.
pub fn numbers(text: &str) -> Option<(usize, usize)> {
    let (mut at, mut end, mut count) = (0, 0, 0);
    let start = space(text, 0);
    while let Some((_, behind)) = next(text, &mut at) {
        (end, count) = (behind, count + 1);
    }
    (count >= LEAST).then(|| (start, end - start))
}

/// Returns the numbers of a token: where each begins and ends, with its sign.
pub fn each(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = space(text, at);
        let end = number_end(text, start)?;
        at = end + text[end..].find(',').map_or(text.len() - end, |comma| comma + 1);
        Some((start, end))
    })
}

/// Returns the next number, if a comma or a bracket follows it; then `at` is behind the comma.
fn next(text: &str, at: &mut usize) -> Option<(usize, usize)> {
    let start = space(text, *at);
    let end = number_end(text, start)?;
    let behind = space(text, end);
    match text.as_bytes().get(behind) {
        Some(b',') => *at = behind + 1,
        Some(b']') => *at = text.len(),
        _ => return None,
    }
    Some((start, end))
}

/// Returns where a number ends that starts here, perhaps with a sign.
fn number_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = start + (bytes.get(start) == Some(&b'-')) as usize;
    bytes.get(digits).filter(|b| b.is_ascii_digit())?;
    let end = digits + 1 + scan_number(&text[digits..digits + 1], &text[digits + 1..]).0;
    number(&text[digits..end]).ok().map(|_| end)
}

/// Returns where spaces end that start here.
fn space(text: &str, start: usize) -> usize {
    let spaces = text.as_bytes()[start..].iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'));
    start + spaces.count()
}
