//! Runs of numbers in a list: they are one token, so that a list of a million numbers does not take a million
//! reductions.
//!
//! Invariant: the text of such a token consists of numbers, perhaps with a sign directly before them, separated by a
//! comma and spaces. The token is between commas, or before the bracket that ends its list.

use super::literal::{number, scan_number};

/// Minimal number of numbers in a token of their own: more than anybody writes between the brackets of an index.
const LEAST: usize = 16;

/// Returns, for a text after a comma, the number of bytes of its leading spaces and of the run of numbers after them;
/// `None` if there are few numbers.
pub fn numbers(text: &str) -> Option<(usize, usize)> {
    let (mut at, mut end, mut count) = (0, 0, 0);
    let start = space(text, 0);
    while let Some((_, behind)) = next(text, &mut at) {
        (end, count) = (behind, count + 1);
    }
    (count >= LEAST).then(|| (start, end - start))
}

/// Returns start and end of each number of a token, with its sign.
pub fn each(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = space(text, at);
        let end = number_end(text, start)?;
        at = end + text[end..].find(',').map_or(text.len() - end, |comma| comma + 1);
        Some((start, end))
    })
}

/// Returns the next number if a comma or a bracket follows it, and moves `at` past the comma.
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

/// Returns the end of the number that starts here, perhaps with a sign.
fn number_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = start + (bytes.get(start) == Some(&b'-')) as usize;
    bytes.get(digits).filter(|b| b.is_ascii_digit())?;
    let end = digits + 1 + scan_number(&text[digits..digits + 1], &text[digits + 1..]).0;
    number(&text[digits..end]).ok().map(|_| end)
}

/// Returns the end of the spaces that start here.
fn space(text: &str, start: usize) -> usize {
    let spaces = text.as_bytes()[start..].iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'));
    start + spaces.count()
}
