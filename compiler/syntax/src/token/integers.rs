//! Lists of integers, or of tuples of integers: all entries but the first are one token and a table.
//!
//! # Note: Tables of integers
//! A family with numbers of its own for each instance is printed over such a list: `for (i, c0) in [(0, 5), (1, 9)]`.
//! The list may have millions of entries. The tree keeps it as a table ([`IntegerList`]). Only integers in
//! their shortest decimal form count, perhaps with a sign, so that value and text determine each other.
//!
//! Invariant: the text of such a token would lex as entries of one width up to the end of their list, without errors.

mod list;

pub use list::IntegerList;

use super::repeated::number;
use super::{Lexeme, Token};

/// Fewer integers after the first entry are read one by one.
const LEAST: usize = 16;

/// The first entry of a list.
pub struct First {
    /// The start of its list.
    pub list: u32,
    start: u32,
    integers: Vec<i64>,
}

/// Returns the first entry of a list, if the last tokens of a text are `[1,` or `[(1, 2),` and its integers are in
/// shortest form; `base` is the offset of the text.
pub fn first_entry(lexemes: &[Lexeme], text: &str, base: u32) -> Option<First> {
    use Token::*;
    let [before @ .., Lexeme { token: Comma, .. }] = lexemes else { return None };
    let (inner, opening) = match before {
        [inner @ .., Lexeme { token: ParenClose, .. }] => (inner, &[BracketOpen, ParenOpen][..]),
        inner => (inner, &[BracketOpen][..]),
    };
    let is_tuple = opening.len() > 1;
    let inside = |l: &Lexeme| matches!(l.token, Int | Minus) || (is_tuple && l.token == Comma);
    let start = inner.iter().rposition(|l| !inside(l))? + 1;
    let open = start.checked_sub(opening.len())?;
    if !inner[open..start].iter().map(|l| l.token).eq(opening.iter().copied()) {
        return None;
    }
    let mut integers = vec![];
    for part in inner[start..].split(|l| l.token == Comma) {
        let (int, negative) = match part {
            [int] => (int, false),
            [Lexeme { token: Minus, .. }, int] => (int, true),
            _ => return None,
        };
        let digits = text.as_bytes().get((int.span.lo - base) as usize..(int.span.hi - base) as usize)?;
        let (value, _) = number(digits).filter(|n| int.token == Int && n.1 == digits.len())?;
        integers.push(if negative { -value } else { value });
    }
    let list = before[open].span.lo;
    (is_tuple == (integers.len() > 1)).then_some(First { list, start: before[open + 1].span.lo, integers })
}

/// Reads the entries after the first one of a list; `text` follows the comma after it, at offset `base`. Returns the
/// list with the range of this text, or `None` if there are few, or something else is in the list.
pub fn integers(text: &str, base: u32, first: First) -> Option<(IntegerList, std::ops::Range<usize>)> {
    let bytes = text.as_bytes();
    let (width, mut values, mut starts) = (first.integers.len(), first.integers, vec![first.start]);
    let begin = space(bytes, 0);
    let (mut at, mut end) = (begin, begin);
    while bytes.get(at).is_some_and(|&b| b != b']') {
        starts.push(base + at as u32);
        if width > 1 {
            at = behind(bytes, at, b'(')?;
        }
        for k in 0..width {
            at = space(bytes, at);
            let negative = bytes.get(at) == Some(&b'-');
            at += usize::from(negative);
            let (value, digits) = number(bytes.get(at..)?)?;
            values.push(if negative { -value } else { value });
            at += digits;
            if width > 1 {
                at = behind(bytes, space(bytes, at), if k + 1 < width { b',' } else { b')' })?;
            }
        }
        end = at;
        at = space(bytes, at);
        match bytes.get(at) {
            Some(b',') => at = space(bytes, at + 1),
            Some(b']') => {}
            _ => return None,
        }
    }
    let enough = values.len() >= LEAST + width && at < bytes.len();
    enough.then(|| (IntegerList::new(width, &values, starts), begin..end))
}

/// Returns the offset after a character that must be at `at`; `None` if it is not.
fn behind(text: &[u8], at: usize, character: u8) -> Option<usize> {
    (text.get(at) == Some(&character)).then_some(at + 1)
}

/// Returns the end of the spaces that start here.
fn space(text: &[u8], start: usize) -> usize {
    start + text[start..].iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')).count()
}
