//! Statements that differ from the one before them in integers only: they are read by comparing text.
//!
//! # Note: Repeated statements
//! A generated program may hold one statement a million times with different numbers, and a printed stage has as many
//! rows of tables. If the text after a `vertex` statement or a row repeats it exactly, including spaces and line ends,
//! except for the digits of its integers, all repetitions are one token, [`Token::Repeated`], and a table of integers.
//! The tree keeps this table ([`crate::ast::RepeatedStatements`]); elaboration and the reader of stages evaluate it.
//! Only integers in their shortest decimal form count, so that value and text determine each other. A statement with a
//! comment, a body, a table or a `for` does not qualify.
//!
//! Invariant: the text of a run has no errors of its own, and would lex as the tokens of the first statement repeated;
//! each of its integers in shortest form is in the table.

use super::{Lexeme, Token};
use girder_source::Span;

/// The number of decimal digits that always fit an `i64`.
const MOST_DIGITS: usize = 18;

/// The repetitions of a statement.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Repetitions {
    /// The span from its first statement to its last.
    pub span: Span,
    /// Whether they are rows of a table.
    pub of_rows: bool,
    /// The start of each of its statements.
    pub starts: Vec<u32>,
    /// For each integer of the first statement: its values in the repetitions.
    pub values: Vec<Vec<i64>>,
}

/// Looks for repetitions after a statement. `text` is the file from `base` on; `before` is the end of the token before
/// the statement.
pub fn run_behind(statement: &[Lexeme], before: u32, text: &str, base: u32) -> Option<Repetitions> {
    use Token::*;
    let (first, last) = (statement.first()?, statement.last()?);
    if last.token != Semi || !(first.token == Vertex || is_row(statement)) {
        return None;
    }
    let slice = |lo: u32, hi: u32| text.as_bytes().get((lo - base) as usize..(hi - base) as usize);
    let space = slice(before, first.span.lo)?;
    let rest = slice(last.span.hi, base + text.len() as u32)?;
    // This check rejects most statements that are not repeated.
    let word = if first.token == Int { &[] } else { slice(first.span.lo, first.span.hi)? };
    let next = rest.strip_prefix(space).filter(|next| next.starts_with(word));
    if next.is_none() || !space.iter().all(is_space) {
        return None;
    }
    let mut pieces = vec![];
    let mut from = before;
    for l in statement {
        match l.token {
            Int if number(slice(l.span.lo, l.span.hi)?).is_some_and(|n| n.1 == (l.span.hi - l.span.lo) as usize) => {
                pieces.push(slice(from, l.span.lo)?);
                from = l.span.hi;
            }
            For | Numbers | Integers => return None,
            _ => {}
        }
    }
    pieces.push(slice(from, last.span.hi)?);
    let run = Repetitions { of_rows: first.token != Vertex, ..follow(rest, &pieces, space.len(), last.span.hi) };
    (!run.starts.is_empty()).then_some(run)
}

/// Returns whether a statement is a row of a table: `3: …`, `0..4: …`, `name: …` or `name(…): …`.
fn is_row(statement: &[Lexeme]) -> bool {
    use Token::*;
    let token = |k: usize| statement.get(k).map(|l| l.token);
    let is_name = |t: Token| t == Ident || t.is_contextual();
    match (token(0), token(1)) {
        (Some(Int), Some(Colon)) => true,
        (Some(Int), Some(Dots)) => token(2) == Some(Int) && token(3) == Some(Colon),
        (Some(first), Some(Colon)) => is_name(first),
        (Some(first), Some(ParenOpen)) if is_name(first) => {
            let close = statement.iter().position(|l| l.token == ParenClose);
            close.is_some_and(|k| token(k + 1) == Some(Colon))
        }
        _ => false,
    }
}

/// Reads statements as long as they consist of these segments of text with integers between them; `at` is the offset of
/// the first byte, and `space` the number of bytes of the first segment before a statement.
fn follow(mut rest: &[u8], pieces: &[&[u8]], space: usize, mut at: u32) -> Repetitions {
    let mut run = Repetitions { values: vec![vec![]; pieces.len() - 1], ..Repetitions::default() };
    let mut numbers = vec![];
    while let Some(len) = statement(rest, pieces, &mut numbers) {
        run.starts.push(at + space as u32);
        run.values.iter_mut().zip(&numbers).for_each(|(values, &n)| values.push(n));
        at += len as u32;
        rest = &rest[len..];
    }
    run.span = Span::new(run.starts.first().copied().unwrap_or(at), at);
    run
}

/// Reads one statement: returns its length, and its integers in `numbers`.
fn statement(text: &[u8], pieces: &[&[u8]], numbers: &mut Vec<i64>) -> Option<usize> {
    numbers.clear();
    let (first, others) = pieces.split_first()?;
    let mut rest = text.strip_prefix(*first)?;
    for piece in others {
        let (value, len) = number(rest)?;
        numbers.push(value);
        rest = rest[len..].strip_prefix(*piece)?;
    }
    Some(text.len() - rest.len())
}

/// Returns the integer at the start of a text and its number of digits, if it is in shortest form.
pub(super) fn number(text: &[u8]) -> Option<(i64, usize)> {
    let digits = text.iter().take(MOST_DIGITS + 1).take_while(|b| b.is_ascii_digit()).count();
    let plain = (1..=MOST_DIGITS).contains(&digits) && (text[0] != b'0' || digits == 1);
    plain.then(|| (text[..digits].iter().fold(0, |n, d| 10 * n + (d - b'0') as i64), digits))
}

fn is_space(b: &u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r' | b'\n')
}
