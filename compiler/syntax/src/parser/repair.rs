//! Cutting a file into items and an item into statements, and the repair of tokens after an error.
//!
//! Invariant: the tokens balance (see `balance`), before and after.

use super::unexpected::ErrorPosition;
use crate::token::{Lexeme, Token};
use girder_source::Span;

/// The repair of an error.
pub enum Repair {
    /// Parse these tokens instead.
    Tokens {
        /// The item's tokens.
        tokens: Vec<Lexeme>,
        /// The text that was replaced.
        region: Span,
    },
    /// No repair inside the item helps.
    GiveUp,
}

impl Repair {
    /// Returns the span of the text that is dropped.
    pub fn region(&self, tokens: &[Lexeme]) -> Span {
        match self {
            Repair::Tokens { region, .. } => *region,
            Repair::GiveUp => tokens.iter().fold(Span::NONE, |s, l| s.to(l.span)),
        }
    }
}

/// Returns the index after the last token of the item that starts at `start`.
pub fn item_end(tokens: &[Lexeme], start: usize) -> usize {
    let mut first = start;
    while tokens.get(first).is_some_and(|l| l.token == Token::AttrOpen) {
        first = group_end(tokens, first);
    }
    use Token::*;
    let Some(kind) = tokens.get(first).map(|l| l.token) else { return tokens.len() };
    let ends_with_semi =
        matches!(kind, Use | Module | Stream | Remote | Let | Var | Param | State | Const | Temp | Map);
    let mut i = first;
    while i < tokens.len() {
        let token = tokens[i].token;
        if i > first && starts_item(tokens, i) {
            return i;
        }
        if token == Semi {
            return i + 1;
        }
        i = if token.opens() { group_end(tokens, i) } else { i + 1 };
        if token == BraceOpen && !ends_with_semi {
            return i;
        }
    }
    tokens.len()
}

/// Returns the first token of an item and its body, if the item ends with a body of statements.
pub fn head_and_body(tokens: &[Lexeme]) -> Option<(Lexeme, &[Lexeme])> {
    let mut i = 0;
    let mut head = None;
    while i < tokens.len() {
        let token = tokens[i].token;
        if matches!(token, Token::Codelet | Token::Fn | Token::Program | Token::Grad) {
            head = head.or(Some(tokens[i]));
        }
        let end = if token.opens() { group_end(tokens, i) } else { i + 1 };
        if token == Token::BraceOpen {
            return (i > 0 && end == tokens.len()).then_some((head?, &tokens[i..]));
        }
        i = end;
    }
    None
}

/// Returns whether a token outside all brackets can only be the first of an item.
fn starts_item(tokens: &[Lexeme], i: usize) -> bool {
    use Token::*;
    let before = tokens[i - 1].token;
    match tokens[i].token {
        // A closure has no name.
        Fn if tokens.get(i + 1).is_some_and(|l| matches!(l.token, ParenOpen | Lt)) => false,
        Fn => !matches!(before, Codelet | Colon | Arrow | Eq),
        Codelet => before != Multi,
        Module | Use | Program | Compute | Exchange | Let | Var | Param | Const | Temp | Map | AttrOpen => true,
        Multi => tokens.get(i + 1).is_some_and(|l| l.token == Codelet),
        State => tokens.get(i + 1).is_some_and(|l| l.token == Ident),
        _ => false,
    }
}

/// Returns the index after the bracket that closes the one at `open`.
pub fn group_end(tokens: &[Lexeme], open: usize) -> usize {
    let mut depth = 0;
    for (i, l) in tokens.iter().enumerate().skip(open) {
        if l.token.opens() {
            depth += 1;
        } else if l.token.closes() {
            depth -= 1;
            if depth == 0 {
                return i + 1;
            }
        }
    }
    tokens.len()
}

/// Chooses the repair of an error.
pub fn repair(position: &ErrorPosition) -> Repair {
    let tokens = position.tokens;
    if let Some(at) = position.missing_semi() {
        let before = tokens[at - 1].span;
        let semi = Lexeme { token: Token::Semi, span: Span::new(before.hi, before.hi) };
        let repaired = [&tokens[..at], &[semi], &tokens[at..]].concat();
        return Repair::Tokens { tokens: repaired, region: semi.span };
    }
    let mut at = position.at.min(tokens.len().saturating_sub(1));
    while let Some(open) = enclosing_brace(tokens, at) {
        if let Some((lo, hi)) = element(tokens, open, position.at.max(open + 1)) {
            let region = tokens[lo..hi].iter().fold(Span::NONE, |s, l| s.to(l.span));
            let already = tokens[lo..hi].iter().any(|l| l.token == Token::Error) && hi - lo == 1;
            if !already {
                let error = Lexeme { token: Token::Error, span: region };
                let repaired = [&tokens[..lo], &[error], &tokens[hi..]].concat();
                return Repair::Tokens { tokens: repaired, region };
            }
        }
        at = open;
    }
    Repair::GiveUp
}

/// Returns the innermost `{` that is open before the token at `at` and holds statements, rows or arms.
fn enclosing_brace(tokens: &[Lexeme], at: usize) -> Option<usize> {
    let mut depth = 0;
    for i in (0..at).rev() {
        let token = tokens[i].token;
        if token.closes() {
            depth += 1;
        } else if token.opens() {
            if depth > 0 {
                depth -= 1;
            } else if token == Token::BraceOpen && !(i > 0 && tokens[i - 1].token == Token::Dot) {
                return Some(i);
            }
        }
    }
    None
}

/// Returns the statement, row or arm after the brace `open` that contains an error at the token `at`.
fn element(tokens: &[Lexeme], open: usize, at: usize) -> Option<(usize, usize)> {
    let close = group_end(tokens, open) - 1;
    let (mut before, mut lo) = (open + 1, open + 1);
    while lo < close {
        let hi = element_end(tokens, lo, close);
        let ended = matches!(tokens[lo - 1].token, Token::Semi | Token::BraceClose | Token::BraceOpen | Token::Error);
        if at == lo && !ended {
            // A word that starts a statement came before the previous statement had ended.
            return Some((before, lo));
        }
        if at < hi || (hi == close && at <= close) {
            return Some((lo, hi));
        }
        (before, lo) = (lo, hi);
    }
    None
}

/// Returns the index after the last token of the statement, row or arm that starts at `lo`, in a group that ends at
/// `close`.
fn element_end(tokens: &[Lexeme], lo: usize, close: usize) -> usize {
    use Token::*;
    if tokens[lo].token == Error {
        return lo + 1;
    }
    let mut first = lo;
    while first < close && tokens[first].token == AttrOpen {
        first = group_end(tokens, first);
    }
    let mut ends_with_brace = first < close
        && match tokens[first].token {
            For | While | Repeat | If | On | With | Pipeline | Switch | Par | Compute | Stage | BraceOpen => true,
            Copy => matches!(tokens[first + 1].token, Ident | BraceOpen),
            _ => false,
        };
    let mut i = first;
    while i < close {
        let token = tokens[i].token;
        // A word that starts a statement where the previous one had not ended.
        if i > first
            && matches!(
                token,
                Error | Let | Var | Param | Const | Temp | Return | While | Repeat | Vertex | Compute | Execute
            )
        {
            return i;
        }
        if token == Semi {
            return i + 1;
        }
        ends_with_brace |= token == FatArrow;
        i = if token.opens() { group_end(tokens, i) } else { i + 1 };
        if token == BraceOpen && ends_with_brace && tokens[i].token != Else {
            return i;
        }
    }
    close
}
