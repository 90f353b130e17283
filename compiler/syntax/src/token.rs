//! The tokens of the language.
//!
//! Invariant: every lexical error is reported by [`lex`]; its text is either left out or becomes a token that still
//! has a value.

pub mod repeated;
pub mod integers;
mod lex;
mod literal;
pub mod numbers;

pub use lex::{Comment, Lexed, lex, lex_in_runs};
pub use literal::{Number, narrow_float, number, quote, unquote};

use girder_source::Span;
use logos::Logos;

/// The kinds of tokens. Values are read from the text when they are needed.
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
    // Words that may also be names.
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
    #[token("state")]
    State,
    #[token("stream")]
    Stream,
    #[token("within")]
    Within,
    // Tokens with a value.
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
    /// A `(` as the grammar sees it where the first pattern of a reduction starts: `list (a, b) in …`.
    PatternOpen,
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
    // Tokens that the lexer consumes itself.
    #[token("//")]
    LineComment,
    #[token("/*")]
    BlockComment,
    /// Text that could not be parsed and has been reported.
    Error,
    /// Repeated statements; see [`repeated`].
    Repeated,
    /// Numbers side by side in a list; see [`numbers`].
    Numbers,
    /// Integers, or tuples of them, side by side in a list; see [`integers`].
    Integers,
}

impl Token {
    /// Returns whether this word of the grammar is also a name.
    pub fn is_contextual(self) -> bool {
        use Token::*;
        matches!(self, Call | Copy | Grad | InOut | Layout | Multi | Out | Remote | State | Stream | Within)
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

/// A token and its span. A token inserted by the parser has an empty span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lexeme {
    /// The kind.
    pub token: Token,
    /// The span.
    pub span: Span,
}

impl Lexeme {
    /// Returns whether the parser inserted it.
    pub fn is_inserted(self) -> bool {
        self.span.lo == self.span.hi
    }
}
