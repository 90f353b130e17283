//! Parsing a file to its tree, with all its syntax errors in one run.
//!
//! The brackets of the tokens are balanced first (`balance`). Then the tokens are cut into items, and each item is
//! parsed by itself. At an error the parser repairs the tokens (it inserts a missing `;`, or removes the statement or
//! row at fault) and parses the item again, so the grammar itself has no error rules.
//!
//! Invariant: every call ends, for any text: each repair either moves the next error further back or is the last one of
//! its item, and the number of repairs is bounded.

mod balance;
mod repair;
#[cfg(test)]
mod tests;
mod unexpected;

use crate::ast::{Exprs, Item, ItemKind, Module};
use crate::builder::{Builder, Entry, Mark};
use crate::token::{Lexed, Lexeme, Token, lex, lex_in_runs};
use balance::{Balanced, balance};
use girder_source::{Diagnostic, Diagnostics, FileId, Session, SourceMap, Span};
use lalrpop_util::ParseError;
use repair::{Repair, repair};
use unexpected::{ErrorPosition, unexpected};

#[allow(clippy::all, missing_docs, unused, unreachable_pub)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/grammar.rs"));
}

/// Maximal number of reported errors of one file.
const MAX_ERRORS: usize = 100;
/// Maximal number of repairs of one item.
const MAX_REPAIRS: usize = 50;

/// About the most bytes that the syntax tree takes for each byte of text; measured with short statements.
const TREE: u64 = 50;
/// The most bytes that the numbers of repeated rows and of lists of integers take for each byte of text.
const ROWS: u64 = 4;

/// Parses a file. Errors are added to `diagnostics`; text that could not be parsed is an `Error` node in the tree.
pub fn parse(map: &SourceMap, file: FileId, session: &Session, diagnostics: &mut Diagnostics) -> Module {
    let source = map.file(file);
    let (text, base) = (source.text.as_str(), source.base);
    parse_lexed(lex_in_runs(text, base, usize::MAX), text, base, session, diagnostics, || Ok(()))
}

/// Parses a file as [`parse`] does, and charges the memory of its tree. The tree is empty if it would exceed the limit.
pub fn parse_charged(map: &SourceMap, file: FileId, session: &Session, diagnostics: &mut Diagnostics) -> Module {
    let source = map.file(file);
    let (text, base) = (source.text.as_str(), source.base);
    let left = session.limits.compile_bytes.saturating_sub(session.memory.used());
    // The tree of more tokens would be larger than what is left.
    let lexed = lex_in_runs(text, base, usize::try_from(left / TREE).unwrap_or(usize::MAX).saturating_add(1));
    let runs = lexed.runs.iter().filter(|run| run.of_rows).map(|run| run.span);
    let lists = lexed.lexemes.iter().filter(|l| l.token == Token::Integers).map(|l| l.span);
    let rows = runs.chain(lists).map(|span| u64::from(span.hi - span.lo)).sum::<u64>();
    let charge =
        |bytes: u64| session.charge_bytes(bytes).map_err(|exceeded| exceeded.of_memory(Span::new(base, base + 1)));
    let bytes = (text.len() as u64 - rows) * TREE + rows * ROWS;
    match charge(if lexed.is_cut { bytes.max(left.saturating_add(1)) } else { bytes }) {
        Ok(()) => parse_lexed(lexed, text, base, session, diagnostics, || charge(rows * (TREE - ROWS))),
        Err(exceeded) => {
            diagnostics.push(exceeded);
            Module::default()
        }
    }
}

/// Parses tokens; `again` is called before runs are read one by one.
fn parse_lexed(
    lexed: Lexed,
    text: &str,
    base: u32,
    session: &Session,
    diagnostics: &mut Diagnostics,
    again: impl FnOnce() -> Result<(), Diagnostic>,
) -> Module {
    let runs = !lexed.runs.is_empty() || lexed.lists > 0 || !lexed.integers.is_empty();
    let (mut module, mut problems) = parse_tokens(lexed, text, base, session);
    if runs && !problems.is_empty() {
        // After an error, repeated statements and numbers are read one by one, so that diagnostics do not depend on
        // them.
        (module, problems) = match again() {
            Ok(()) => parse_tokens(lex(text, base), text, base, session),
            Err(exceeded) => (Module::default(), vec![exceeded]),
        };
    }
    diagnostics.extend(problems);
    module
}

fn parse_tokens(lexed: Lexed, text: &str, base: u32, session: &Session) -> (Module, Vec<Diagnostic>) {
    let mut known: Vec<Span> = lexed.problems.iter().flat_map(|d| &d.labels).map(|l| l.span).collect();
    let balanced = balance(lexed.lexemes, text, base, session.limits.nesting);
    known.extend(balanced.problems.iter().flat_map(|d| &d.labels).map(|l| l.span));
    let Balanced { lexemes, problems, too_deep } = balanced;
    let mut parser = Parser {
        text,
        base,
        builder: Builder::new(text, base, session.limits.nesting, (lexed.runs, lexed.integers), &lexemes),
        entry: generated::EntryParser::new(),
        module: Module {
            comments: lexed.comments,
            span: Span::new(base, base + text.len() as u32),
            ..Module::default()
        },
        problems: lexed.problems.into_iter().chain(problems).collect(),
        known,
    };
    let mut at = 0;
    while at < lexemes.len() && parser.problems.len() < MAX_ERRORS && !session.cancel.is_cancelled() {
        let end = repair::item_end(&lexemes, at);
        let next = lexemes.get(end).copied();
        let deep = too_deep.partition_point(|&i| i < at);
        if too_deep.get(deep).is_some_and(|&i| i < end) {
            parser.error_item(&lexemes[at..end]);
        } else {
            parser.item(&lexemes[at..end], next);
        }
        at = end;
    }
    parser.finish()
}

/// The state of a file while it is parsed.
struct Parser<'s> {
    text: &'s str,
    base: u32,
    builder: Builder<'s>,
    entry: generated::EntryParser,
    module: Module,
    problems: Vec<Diagnostic>,
    /// Spans that were reported before the grammar saw them; an error next to one is not reported again.
    known: Vec<Span>,
}

impl Parser<'_> {
    /// Parses the tokens of one item; `next` follows them in the file.
    fn item(&mut self, tokens: &[Lexeme], next: Option<Lexeme>) {
        let mark = self.builder.mark();
        if let Some(entry) = self.parse_repairing(tokens, next, &mark) {
            return self.add(entry);
        }
        // The error is in the head; the body is parsed all the same.
        if let Some((head, body)) = repair::head_and_body(tokens) {
            let program = Lexeme { token: Token::Program, span: head.span };
            let name = Lexeme { token: Token::Ident, span: head.span };
            if self.parse_repairing(&[&[program, name], body].concat(), next, &mark).is_some() {
                self.problems.append(&mut self.builder.problems);
            }
        }
        self.builder.back_to(&mark);
        self.error_item(tokens);
    }

    /// Parses tokens with as many repairs as needed; `None` if nothing helps.
    fn parse_repairing(&mut self, tokens: &[Lexeme], next: Option<Lexeme>, mark: &Mark) -> Option<Entry> {
        let mut repaired = Vec::new();
        for _ in 0..MAX_REPAIRS {
            let tokens = if repaired.is_empty() { tokens } else { &repaired[..] };
            self.builder.back_to(mark);
            let mut patterns = patterns(tokens).into_iter().peekable();
            let spaced = tokens.iter().enumerate().map(|(i, l)| {
                let token = if patterns.next_if_eq(&i).is_some() { Token::PatternOpen } else { l.token };
                Ok((i, Lexeme { token, ..*l }, i + 1))
            });
            let (at, expected) = match self.entry.parse(&mut self.builder, spaced) {
                Ok(entry) => return Some(*entry),
                Err(ParseError::UnrecognizedToken { token, expected }) => (token.0, expected),
                Err(ParseError::UnrecognizedEof { expected, .. }) => (tokens.len(), expected),
                Err(ParseError::ExtraToken { token }) => (token.0, vec![]),
                Err(ParseError::InvalidToken { location }) => (location, vec![]),
                // Actions never fail.
                Err(ParseError::User { error: () }) => return None,
            };
            let position = ErrorPosition { tokens, at, next, expected: &expected, text: self.text, base: self.base };
            let found = repair(&position);
            let region = found.region(tokens);
            // Where a bracket is missing, the end of the statement may be missing too.
            let is_inserted = |at: usize| at > 0 && tokens[at - 1].is_inserted() && tokens[at - 1].token.closes();
            let consequence = position.missing_semi().is_some_and(is_inserted);
            let follows = consequence || tokens.get(at).is_some_and(|l| l.token == Token::Error);
            if !follows && !self.known.iter().any(|k| k.lo <= region.hi && region.lo <= k.hi) {
                self.problems.push(unexpected(&position));
            }
            match found {
                Repair::Tokens { tokens, .. } if self.problems.len() < MAX_ERRORS => repaired = tokens,
                _ => return None,
            }
        }
        None
    }

    fn add(&mut self, entry: Entry) {
        self.problems.append(&mut self.builder.problems);
        match entry {
            Entry::Item(item) => self.module.items.push(item),
            Entry::Header(header) if self.module.items.is_empty() && self.module.header.is_none() => {
                self.module.header = Some(header);
            }
            Entry::Header(header) => {
                let what = "the `module` line follows other items";
                self.problems.push(
                    Diagnostic::error("syntax::unexpected", header.span, what)
                        .help("make it the first line of the file"),
                );
            }
        }
    }

    fn error_item(&mut self, tokens: &[Lexeme]) {
        let span = tokens.iter().fold(Span::NONE, |s, l| s.to(l.span));
        self.module.items.push(Item { attrs: vec![], kind: ItemKind::Error, span });
    }

    fn finish(mut self) -> (Module, Vec<Diagnostic>) {
        self.problems.sort_by_key(|d| d.labels.first().map_or(0, |l| l.span.lo));
        if self.problems.len() >= MAX_ERRORS {
            self.problems.truncate(MAX_ERRORS);
            let last = self.problems.last().and_then(|d| d.labels.first()).map_or(Span::NONE, |l| l.span);
            let many = Diagnostic::error("syntax::many", last, format!("more than {MAX_ERRORS} errors in one file"));
            self.problems.push(many.here("the last one shown").help("correct these first: they hide what follows"));
        }
        self.module.exprs = Exprs::new(self.builder.exprs, self.builder.repeated);
        self.module.stmts = self.builder.stmts.into_iter().collect();
        (self.module, self.problems)
    }
}

/// Returns where `name (` starts the pattern of a reduction: its `)` stands before an `in`, and the name is not the
/// index of a loop. One token of lookahead does not tell it from a call.
fn patterns(tokens: &[Lexeme]) -> Vec<usize> {
    let token = |i: usize| tokens[i].token;
    let ends = (1..tokens.len()).filter(|&i| token(i) == Token::In && token(i - 1) == Token::ParenClose);
    let open = |end: usize| {
        let mut depth = 0;
        let open = (0..end).rev().find(|&i| {
            depth += i32::from(token(i) == Token::ParenClose) - i32::from(token(i) == Token::ParenOpen);
            depth == 0
        })?;
        let of_loop = open > 1 && matches!(token(open - 2), Token::For | Token::Repeat);
        (open > 0 && token(open - 1) == Token::Ident && !of_loop).then_some(open)
    };
    let mut found: Vec<usize> = ends.filter_map(open).collect();
    found.sort_unstable();
    found
}
