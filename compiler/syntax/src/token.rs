//! From text to tokens: what a word, a number, a string and a comment are.
//!
//! Invariant: tokens and comments stand in the order of the text and do not overlap; every problem found here is
//! reported here, and what stands there is either left out or a token whose value can still be taken.

pub mod repeated;
mod literal;
pub mod numbers;

pub use literal::{Number, number, quote, unquote};

use crate::ast::Comment;
use girder_source::{Diagnostic, Span};
use logos::{Lexer, Logos};

/// The kinds of tokens. Values are taken from the text when they are needed.
#[derive(Logos, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[logos(skip r"[ \t\r\n]+")]
#[allow(missing_docs)]
pub enum Token {
    // Words that are never names.
    #[token("as")]
    As,
    #[token("break")]
    Break,
    #[token("by")]
    By,
    #[token("codelet")]
    Codelet,
    #[token("compute")]
    Compute,
    #[token("const")]
    Const,
    #[token("continue")]
    Continue,
    #[token("else")]
    Else,
    #[token("exchange")]
    Exchange,
    #[token("execute")]
    Execute,
    #[token("false")]
    False,
    #[token("fn")]
    Fn,
    #[token("for")]
    For,
    #[token("if")]
    If,
    #[token("in")]
    In,
    #[token("let")]
    Let,
    #[token("map")]
    Map,
    #[token("module")]
    Module,
    #[token("mut")]
    Mut,
    #[token("on")]
    On,
    #[token("par")]
    Par,
    #[token("param")]
    Param,
    #[token("pipeline")]
    Pipeline,
    #[token("program")]
    Program,
    #[token("repeat")]
    Repeat,
    #[token("return")]
    Return,
    #[token("stage")]
    Stage,
    #[token("switch")]
    Switch,
    #[token("temp")]
    Temp,
    #[token("true")]
    True,
    #[token("use")]
    Use,
    #[token("var")]
    Var,
    #[token("vertex")]
    Vertex,
    #[token("where")]
    Where,
    #[token("while")]
    While,
    #[token("with")]
    With,
    // Words that are also names.
    #[token("call")]
    Call,
    #[token("copy")]
    Copy,
    #[token("grad")]
    Grad,
    #[token("inout")]
    InOut,
    #[token("layout")]
    Layout,
    #[token("multi")]
    Multi,
    #[token("out")]
    Out,
    #[token("remote")]
    Remote,
    #[token("stream")]
    Stream,
    // What has a value.
    #[regex("[A-Za-z_][A-Za-z0-9_]*")]
    Ident,
    #[regex("[0-9]")]
    Int,
    Float,
    #[token("\"")]
    Str,
    // Brackets.
    #[token("#[")]
    AttrOpen,
    #[token("(")]
    ParenOpen,
    #[token(")")]
    ParenClose,
    #[token("[")]
    BracketOpen,
    #[token("]")]
    BracketClose,
    #[token("{")]
    BraceOpen,
    #[token("}")]
    BraceClose,
    // Signs.
    #[token("_", priority = 10)]
    Underscore,
    #[token(",")]
    Comma,
    #[token(";")]
    Semi,
    #[token(":")]
    Colon,
    #[token(".")]
    Dot,
    #[token("..")]
    Dots,
    #[token("..=")]
    DotsEq,
    #[token("...")]
    Rest,
    #[token("->")]
    Arrow,
    #[token("=>")]
    FatArrow,
    #[token("<-")]
    Write,
    #[token("=")]
    Eq,
    #[token("+=")]
    PlusEq,
    #[token("-=")]
    MinusEq,
    #[token("*=")]
    StarEq,
    #[token("/=")]
    SlashEq,
    #[token("%=")]
    PercentEq,
    #[token("&=")]
    AndEq,
    #[token("|=")]
    OrEq,
    #[token("^=")]
    CaretEq,
    #[token("<<=")]
    ShlEq,
    #[token(">>=")]
    ShrEq,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("@")]
    At,
    #[token("!")]
    Not,
    #[token("&")]
    And,
    #[token("&&")]
    AndAnd,
    #[token("|")]
    Or,
    #[token("||")]
    OrOr,
    #[token("^")]
    Caret,
    #[token("<<")]
    Shl,
    #[token(">>")]
    Shr,
    #[token("==")]
    EqEq,
    #[token("!=")]
    NotEq,
    #[token("<")]
    Lt,
    #[token("<=")]
    Le,
    #[token(">")]
    Gt,
    #[token(">=")]
    Ge,
    // What the lexer itself takes away.
    #[token("//")]
    LineComment,
    #[token("/*")]
    BlockComment,
    /// Stands for text that could not be parsed and was reported.
    Error,
    /// Stands for statements that are alike, see [`repeated`].
    Repeated,
    /// Stands for numbers side by side in a list, see [`numbers`].
    Numbers,
}

impl Token {
    /// Returns whether this word of the grammar is also a name.
    pub fn is_contextual(self) -> bool {
        use Token::*;
        matches!(self, Call | Copy | Grad | InOut | Layout | Multi | Out | Remote | Stream)
    }

    /// Returns whether this is a word that can never be a name.
    pub fn is_reserved(self) -> bool {
        (self as u8) < (Token::Call as u8)
    }

    /// Returns whether this opens a bracket.
    pub fn opens(self) -> bool {
        matches!(self, Token::AttrOpen | Token::ParenOpen | Token::BracketOpen | Token::BraceOpen)
    }

    /// Returns whether this closes a bracket.
    pub fn closes(self) -> bool {
        matches!(self, Token::ParenClose | Token::BracketClose | Token::BraceClose)
    }
}

/// A token and where it stands. A token that the parser put in itself has an empty span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lexeme {
    /// Which.
    pub token: Token,
    /// Where, in the global offset space.
    pub span: Span,
}

impl Lexeme {
    /// Returns whether the parser put it in: it has no text.
    pub fn is_put_in(self) -> bool {
        self.span.lo == self.span.hi
    }
}

/// What a file consists of.
#[derive(Debug, Default)]
pub struct Lexed {
    /// What the grammar speaks of.
    pub lexemes: Vec<Lexeme>,
    /// What stands beside it.
    pub comments: Vec<Comment>,
    /// What is wrong, in the order of the text.
    pub problems: Vec<Diagnostic>,
    /// What each [`Token::Repeated`] stands for, in order.
    pub runs: Vec<repeated::Run>,
    /// How many [`Token::Numbers`] there are.
    pub lists: usize,
}

/// Takes a file apart, each statement and number by itself; `base` is the global offset of its first byte.
pub fn lex(text: &str, base: u32) -> Lexed {
    lex_with(text, base, false)
}

/// Takes a file apart; statements that are alike are one token, and so are the numbers of a list.
pub fn lex_in_runs(text: &str, base: u32) -> Lexed {
    lex_with(text, base, true)
}

fn lex_with(text: &str, base: u32, runs: bool) -> Lexed {
    let mut out = Lexed::default();
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let base = base + start as u32;
    let text = &text[start..];
    let mut lexer = Token::lexer(text);
    // The first token of the statement at hand.
    let mut first = 0;
    while let Some(next) = lexer.next() {
        match next {
            Ok(Token::LineComment) => line_comment(&mut lexer, base, &mut out),
            Ok(Token::BlockComment) => block_comment(&mut lexer, base, &mut out),
            Ok(token) => {
                let token = value(&mut lexer, token, base, &mut out);
                out.lexemes.push(Lexeme { token, span: span(&lexer, base) });
                if runs && token == Token::Comma {
                    list(&mut lexer, base, &mut out);
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

/// Takes in what is like the statement from the token `first` on.
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

/// Takes in the numbers of a list behind its first one.
fn list(lexer: &mut Lexer<'_, Token>, base: u32, out: &mut Lexed) {
    let before = |k: usize| out.lexemes.iter().rev().nth(k).map(|l| l.token);
    let first = if before(2) == Some(Token::Minus) { before(3) } else { before(2) };
    if first == Some(Token::BracketOpen)
        && matches!(before(1), Some(Token::Int | Token::Float))
        && let Some((space, len)) = numbers::numbers(lexer.remainder())
    {
        let lo = span(lexer, base).hi + space as u32;
        lexer.bump(space + len);
        out.lexemes.push(Lexeme { token: Token::Numbers, span: Span::new(lo, lo + len as u32) });
        out.lists += 1;
    }
}

/// Returns the span of the token at hand.
fn span(lexer: &Lexer<'_, Token>, base: u32) -> Span {
    let range = lexer.span();
    Span::new(base + range.start as u32, base + range.end as u32)
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

/// Takes in the rest of a number or string.
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
    // What other languages write as a character or a comment is one mistake.
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
        s if s.starts_with('\'') => problem.help("strings stand between double quotes: `\"…\"`"),
        s if s.starts_with('#') => problem.help("comments start with `//`, attributes are written `#[name]`"),
        "?" | "~" | "$" | "`" | "\\" => problem.help("remove it: no operator of the language is written so"),
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
