//! Long items are parsed in pieces, on all threads of the host: runs of whole statements, or of whole vertices.
//!
//! # Note: Pieces
//! Behind a `;` outside of all brackets of a body an element ends, and a run of elements is parsed as the body of an
//! item of its own. The item itself is parsed with a `parsed` token in the place of each run. The grammar is not
//! ambiguous, so this is how the whole is parsed; the nodes even have the same numbers. Where a run does not parse,
//! or something is to be said about it, all is forgotten and the item is parsed as a whole, which says the errors.
//!
//! Invariant: tree and messages do not depend on how an item is cut.

use super::generated::EntryParser;
use super::mend::group_end;
use crate::ast::{ItemKind, Program};
use crate::builder::{Builder, Elements, Entry, Parsed};
use crate::token::{Lexeme, Token};
use girder_source::{Span, par_map_slice};
use std::ops::Range;

/// Tokens of a piece: enough to be worth a turn of a thread.
pub const LEAST: usize = 1 << 14;

/// What a run consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Statements,
    Vertices,
}

/// A run of elements.
#[derive(Debug)]
struct Piece {
    at: Range<usize>,
    kind: Kind,
}

/// What is known of the file.
pub struct Text<'s> {
    /// All of it.
    pub text: &'s str,
    /// The global offset of its first byte.
    pub base: u32,
    /// How deep expressions may nest.
    pub limit: u32,
    /// Tokens of a piece.
    pub least: usize,
}

/// Parses what can be parsed apart: the tokens that are left, and the pieces in order. `None` if the item is short, or
/// is not to be cut.
pub fn parse_apart(tokens: &[Lexeme], text: &Text) -> Option<(Vec<Lexeme>, Vec<Parsed>)> {
    if tokens.len() < 2 * text.least {
        return None;
    }
    let pieces = cut(tokens, text.least);
    let parsed: Vec<Option<Parsed>> = par_map_slice(&pieces, |p| parse(&tokens[p.at.clone()], p.kind, text));
    let parsed: Vec<Parsed> = parsed.into_iter().collect::<Option<_>>()?;
    let mut left = Vec::new();
    let mut from = 0;
    for piece in &pieces {
        left.extend_from_slice(&tokens[from..piece.at.start]);
        let run = &tokens[piece.at.clone()];
        left.push(Lexeme { token: Token::Parsed, span: run[0].span.to(run[run.len() - 1].span) });
        from = piece.at.end;
    }
    left.extend_from_slice(&tokens[from..]);
    (!pieces.is_empty()).then_some((left, parsed))
}

/// The pieces of an item, in order.
fn cut(tokens: &[Lexeme], least: usize) -> Vec<Piece> {
    let mut pieces = vec![];
    let mut word = 0;
    while tokens.get(word).is_some_and(|l| l.token == Token::AttrOpen) {
        word = group_end(tokens, word);
    }
    use Token::*;
    let kind = match tokens.get(word).map(|l| l.token) {
        Some(Compute) => Kind::Vertices,
        Some(Program | Fn | Codelet | Multi | Grad) => Kind::Statements,
        _ => return pieces,
    };
    let mut open = word;
    while open < tokens.len() && tokens[open].token != BraceOpen {
        open = if tokens[open].token.opens() { group_end(tokens, open) } else { open + 1 };
    }
    if open < tokens.len() {
        cut_body(tokens, open, kind, least, &mut pieces);
    }
    pieces
}

/// Cuts the body that opens at `open`; gives the place of its end.
fn cut_body(tokens: &[Lexeme], open: usize, kind: Kind, least: usize, pieces: &mut Vec<Piece>) -> usize {
    let (mut start, mut depth) = (open + 1, 0u32);
    let mut i = open + 1;
    while i < tokens.len() {
        let token = tokens[i].token;
        if token.closes() && depth == 0 {
            return i;
        }
        if depth == 0 && kind == Kind::Statements && token == Token::Compute {
            let brace = i + 1 + tokens[i + 1..].iter().take_while(|l| l.token != Token::BraceOpen).take(8).count();
            if tokens.get(brace).is_some_and(|l| l.token == Token::BraceOpen) {
                let before = pieces.len();
                i = cut_body(tokens, brace, Kind::Vertices, least, pieces) + 1;
                // What comes before this statement stays where it is.
                start = if pieces.len() > before { i } else { start };
                continue;
            }
        }
        if token.opens() {
            depth += 1;
        } else if token.closes() {
            depth -= 1;
        } else if depth == 0 && token == Token::Semi && i + 1 - start >= least {
            pieces.push(Piece { at: start..i + 1, kind });
            start = i + 1;
        }
        i += 1;
    }
    tokens.len()
}

/// Parses a run as the body of an item.
fn parse(tokens: &[Lexeme], kind: Kind, text: &Text) -> Option<Parsed> {
    let at = Span::new(tokens[0].span.lo, tokens[0].span.lo);
    let put_in = |token: Token| Lexeme { token, span: at };
    let word = if kind == Kind::Vertices { Token::Compute } else { Token::Program };
    let head = [word, Token::Ident, Token::BraceOpen].map(put_in);
    let close = put_in(Token::BraceClose);
    let all = head.iter().chain(tokens).chain([&close]).enumerate().map(|(i, l)| Ok((i, *l, i + 1)));
    let mut builder = Builder::new(text.text, text.base, text.limit);
    let entry = EntryParser::new().parse(&mut builder, all).ok()?;
    let Entry::Item(item) = *entry else { return None };
    let elements = match item.kind {
        ItemKind::Compute { vertices, .. } => Elements::Vertices(vertices),
        ItemKind::Program(Program { body, .. }) if body.value.is_none() => Elements::Statements(body.stmts),
        _ => return None,
    };
    builder.parsed(elements)
}
