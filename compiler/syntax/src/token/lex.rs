//! The lexer's run over a file: tokens, comments and errors.
//!
//! Invariant: tokens and comments are in the order of the text and do not overlap.

use super::integers::IntegerList;
use super::{Lexeme, Token, integers, literal, number, numbers, repeated};
use girder_source::{Diagnostic, Span};
use logos::{Lexer, Logos};
use smol_str::SmolStr;

/// The result of the lexer.
#[derive(Debug, Default)]
pub struct Lexed {
    /// The tokens for the grammar.
    pub lexemes: Vec<Lexeme>,
    /// The comments, which are not tokens.
    pub comments: Vec<Comment>,
    /// Errors, in the order of the text.
    pub problems: Vec<Diagnostic>,
    /// The run of each [`Token::Repeated`], in order.
    pub runs: Vec<repeated::Repetitions>,
    /// The number of [`Token::Numbers`].
    pub lists: usize,
    /// The list of each [`Token::Integers`], its first entry too, in order.
    pub integers: Vec<IntegerList>,
    /// Whether the text has more tokens than were asked for.
    pub is_cut: bool,
}

/// A comment with its slashes, without its line end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The text, `//` included.
    pub text: SmolStr,
    /// The source span.
    pub span: Span,
}

/// Splits a file into tokens, one for each word, number and sign; `base` is the global offset of its first byte.
pub fn lex(text: &str, base: u32) -> Lexed {
    lex_with(text, base, None)
}

/// Splits a file into tokens; repeated statements become one token, and so do the numbers of a list. Stops after about
/// `most` tokens.
pub fn lex_in_runs(text: &str, base: u32, most: usize) -> Lexed {
    lex_with(text, base, Some(most))
}

fn lex_with(text: &str, base: u32, most: Option<usize>) -> Lexed {
    let runs = most.is_some();
    let mut out = Lexed::default();
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let base = base + start as u32;
    let text = &text[start..];
    let mut lexer = Token::lexer(text);
    // The first token of the current statement.
    let mut first = 0;
    while let Some(next) = lexer.next() {
        if most.is_some_and(|most| out.lexemes.len() >= most) {
            out.is_cut = true;
            break;
        }
        match next {
            Ok(Token::LineComment) => line_comment(&mut lexer, base, &mut out),
            Ok(Token::BlockComment) => block_comment(&mut lexer, base, &mut out),
            Ok(token) => {
                let token = match token {
                    Token::Int if is_behind_dot(&lexer, base, &out) => part_of_name(&mut lexer),
                    _ => value(&mut lexer, token, base, &mut out),
                };
                out.lexemes.push(Lexeme { token, span: span(&lexer, base) });
                if runs && token == Token::Comma {
                    list(&mut lexer, (text, base), &mut out);
                }
                if !matches!(token, Token::Semi | Token::BraceOpen | Token::BraceClose) {
                    continue;
                }
                if runs && token == Token::Semi {
                    repeated_statements(&mut lexer, first, (text, base), &mut out);
                }
                first = out.lexemes.len();
            }
            Err(()) => unknown(&mut lexer, base, &mut out),
        }
    }
    out
}

/// Consumes the repetitions of the statement that starts at the token `first`.
fn repeated_statements(lexer: &mut Lexer<'_, Token>, first: usize, (text, base): (&str, u32), out: &mut Lexed) {
    let before = first.checked_sub(1).map_or(base, |k| out.lexemes[k].span.hi);
    if out.comments.last().is_some_and(|c| c.span.lo >= before) {
        return;
    }
    if let Some(run) = repeated::run_behind(&out.lexemes[first..], before, text, base) {
        lexer.bump((run.span.hi - span(lexer, base).hi) as usize);
        out.lexemes.push(Lexeme { token: Token::Repeated, span: run.span });
        out.runs.push(run);
    }
}

/// Consumes the numbers of a list after its first one, or its tuples of integers.
fn list(lexer: &mut Lexer<'_, Token>, (text, base): (&str, u32), out: &mut Lexed) {
    let behind = span(lexer, base).hi;
    let at = |k: usize| behind + k as u32;
    if let Some(first) = integers::first_entry(&out.lexemes, text, base)
        && out.comments.last().is_none_or(|c| c.span.lo < first.list)
        && let Some((found, range)) = integers::integers(lexer.remainder(), behind, first)
    {
        lexer.bump(range.end);
        out.lexemes.push(Lexeme { token: Token::Integers, span: Span::new(at(range.start), at(range.end)) });
        out.integers.push(found);
        return;
    }
    let before = |k: usize| out.lexemes.iter().rev().nth(k).map(|l| l.token);
    let first = if before(2) == Some(Token::Minus) { before(3) } else { before(2) };
    if first == Some(Token::BracketOpen)
        && matches!(before(1), Some(Token::Int | Token::Float))
        && let Some((space, len)) = numbers::numbers(lexer.remainder())
    {
        lexer.bump(space + len);
        out.lexemes.push(Lexeme { token: Token::Numbers, span: Span::new(at(space), at(space + len)) });
        out.lists += 1;
    }
}

/// Returns the span of the current token.
fn span(lexer: &Lexer<'_, Token>, base: u32) -> Span {
    let range = lexer.span();
    Span::new(base + range.start as u32, base + range.end as u32)
}

/// Returns whether the current token directly follows the dot of a dotted name, as in `net.0.w`.
fn is_behind_dot(lexer: &Lexer<'_, Token>, base: u32, out: &Lexed) -> bool {
    let ends = |t: Token| t.is_contextual() || matches!(t, Token::Ident | Token::ParenClose | Token::BracketClose);
    match out.lexemes[..] {
        [.., before, dot] => dot.token == Token::Dot && dot.span.hi == span(lexer, base).lo && ends(before.token),
        _ => false,
    }
}

/// Consumes the digits of a part of a dotted name, which is a position in a list or tuple.
fn part_of_name(lexer: &mut Lexer<'_, Token>) -> Token {
    let digits = lexer.remainder().bytes().take_while(u8::is_ascii_digit).count();
    lexer.bump(digits);
    Token::Ident
}

fn line_comment(lexer: &mut Lexer<'_, Token>, base: u32, out: &mut Lexed) {
    let rest = lexer.remainder();
    lexer.bump(rest.find('\n').unwrap_or(rest.len()));
    let text = lexer.slice().trim_end();
    let lo = span(lexer, base).lo;
    out.comments.push(Comment { text: text.into(), span: Span::new(lo, lo + text.len() as u32) });
}

fn block_comment(lexer: &mut Lexer<'_, Token>, base: u32, out: &mut Lexed) {
    let open = span(lexer, base);
    let rest = lexer.remainder();
    lexer.bump(rest.find("*/").map_or(rest.len(), |i| i + 2));
    let d = Diagnostic::error("syntax::character", open, "`/*` does not start a comment");
    out.problems.push(d.help("comments start with `//` and end with the line"));
}

/// Consumes the rest of a number or string.
fn value(lexer: &mut Lexer<'_, Token>, token: Token, base: u32, out: &mut Lexed) -> Token {
    match token {
        Token::Int => {
            let (len, is_float) = literal::scan_number(lexer.slice(), lexer.remainder());
            lexer.bump(len);
            if let Err(why) = number(lexer.slice()) {
                out.problems.push(why.report(span(lexer, base), lexer.slice()));
            }
            if is_float { Token::Float } else { Token::Int }
        }
        Token::Str => {
            lexer.bump(literal::scan_string(lexer.remainder()));
            literal::check_string(lexer.slice(), span(lexer, base).lo, &mut out.problems);
            token
        }
        _ => token,
    }
}

/// Reports characters that start no token; neighbours share one report.
fn unknown(lexer: &mut Lexer<'_, Token>, base: u32, out: &mut Lexed) {
    // Characters and comments in the syntax of other languages are reported as one mistake.
    let line = lexer.remainder().lines().next().unwrap_or("");
    match (lexer.slice(), line.find('\'')) {
        ("'", Some(len)) => lexer.bump(len + 1),
        ("#", _) => lexer.bump(line.len()),
        _ => {}
    }
    let (span, slice) = (span(lexer, base), lexer.slice());
    if let Some(last) = out.problems.last_mut()
        && last.code == "syntax::character"
        && let [label] = &mut last.labels[..]
        && label.span.hi == span.lo
        && last.message.starts_with("unexpected character")
    {
        label.span.hi = span.hi;
        last.message = "unexpected characters".into();
        return;
    }
    let shown = slice.chars().next().map_or(String::new(), |c| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    });
    let problem = Diagnostic::error("syntax::character", span, format!("unexpected character `{shown}`"));
    out.problems.push(match slice {
        s if s.starts_with('\'') => problem.help("strings are written in double quotes: `\"…\"`"),
        s if s.starts_with('#') => problem.help("comments start with `//`, attributes are written `#[name]`"),
        "?" => problem.help("a choice is `if c { a } else { b }`, and of elements `select(c, a, b)`"),
        "~" | "$" | "`" | "\\" => problem.help("remove it: no operator of the language is written so"),
        _ if !slice.is_ascii() => problem.help("names consist of the letters a to z, A to Z, digits and `_`"),
        _ => problem,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Token> {
        lex(text, 1).lexemes.iter().map(|l| l.token).collect()
    }

    #[test]
    fn numbers_end_where_ranges_begin() {
        use Token::*;
        assert_eq!(kinds("0..n"), [Int, Dots, Ident]);
        assert_eq!(kinds("0..=9"), [Int, DotsEq, Int]);
        assert_eq!(kinds("1.5..2.5"), [Float, Dots, Float]);
        assert_eq!(kinds("1.x 1e-3 1.5e3 0x1e-3"), [Int, Dot, Ident, Float, Float, Int, Minus, Int]);
        assert_eq!(kinds("x[...]"), [Ident, BracketOpen, Rest, BracketClose]);
    }

    #[test]
    fn a_number_behind_a_dot_is_a_part_of_a_name() {
        use Token::*;
        assert_eq!(kinds("net.0.1.w 0.1"), [Ident, Dot, Ident, Dot, Ident, Dot, Ident, Float]);
        assert_eq!(kinds("a.12[3]"), [Ident, Dot, Ident, BracketOpen, Int, BracketClose]);
        assert_eq!(kinds("= .5"), [Eq, Dot, Int]);
    }

    #[test]
    fn an_arrow_to_the_left_is_one_token() {
        use Token::*;
        assert_eq!(kinds("a <-b < -c"), [Ident, Write, Ident, Lt, Minus, Ident]);
        assert_eq!(kinds("_ _2 a_"), [Underscore, Ident, Ident]);
    }

    #[test]
    fn comments_stand_beside_the_tokens() {
        let l = lex("\u{feff}// ä\r\nx /// y", 1);
        assert_eq!(l.comments.iter().map(|c| c.text.as_str()).collect::<Vec<_>>(), ["// ä", "/// y"]);
        assert_eq!(l.comments[0].span, Span::new(4, 9));
        assert_eq!(l.lexemes[0].span, Span::new(11, 12));
        assert!(l.problems.is_empty());
    }
}
