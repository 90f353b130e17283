//! The messages of syntax errors: what was expected, what was found, and what the author probably meant.
//!
//! Invariant: messages depend on tokens only.

use crate::token::{Lexeme, Token};
use girder_source::{Diagnostic, Span};

/// The position at which the grammar stopped.
pub struct ErrorPosition<'a> {
    /// The tokens of the item.
    pub tokens: &'a [Lexeme],
    /// The first token that does not fit; one past the end if more were needed.
    pub at: usize,
    /// The token after the item.
    pub next: Option<Lexeme>,
    /// The terminals that would fit, by their names in the grammar.
    pub expected: &'a [String],
    /// The text of the file.
    pub text: &'a str,
    /// The global offset of its first byte.
    pub base: u32,
}

impl ErrorPosition<'_> {
    /// Returns whether a terminal would fit.
    fn fits(&self, terminal: &str) -> bool {
        self.expected.iter().any(|e| e.trim_matches('"') == terminal)
    }

    /// Returns the token that does not fit.
    fn found(&self) -> Option<Lexeme> {
        self.tokens.get(self.at).copied().or(self.next)
    }

    /// Returns the n-th token before the one that does not fit.
    fn before(&self, n: usize) -> Option<Lexeme> {
        self.tokens.get(self.at.checked_sub(n)?).copied()
    }

    fn kind_before(&self, n: usize) -> Option<Token> {
        self.before(n).map(|l| l.token)
    }

    fn str(&self, span: Span) -> &str {
        self.text.get((span.lo - self.base) as usize..(span.hi - self.base) as usize).unwrap_or("")
    }

    /// Returns the text of a token in backquotes, short.
    fn shown(&self, l: Lexeme) -> String {
        let text = self.str(l.span);
        if l.is_inserted() && l.token.closes() {
            return "what is not closed".into();
        }
        let cut = text.char_indices().nth(24).map_or(text.len(), |(i, _)| i);
        format!("`{}{}`", &text[..cut], if cut < text.len() { "…" } else { "" })
    }

    fn starts_line(&self, i: usize) -> bool {
        let Some(l) = self.tokens.get(i).copied().or(self.next) else { return true };
        let before = i.checked_sub(1).and_then(|i| self.tokens.get(i)).map_or(self.base, |l| l.span.hi);
        self.str(Span::new(before, l.span.lo)).contains('\n')
    }

    /// Returns the index in `tokens` where only a `;` is missing.
    pub fn missing_semi(&self) -> Option<usize> {
        let at = self.at;
        if at == 0 {
            return None;
        }
        if self.fits(";") {
            let Some(l) = self.tokens.get(at) else { return Some(at) };
            let closes = l.token == Token::BraceClose;
            return (closes || is_statement_word(l.token) || (self.starts_line(at) && can_start(l.token)))
                .then_some(at);
        }
        // `x = a` and `b = …` on the next line look like the start of `a b in … { … }`.
        let names = self.kind_before(1) == Some(Token::Ident) && self.kind_before(2) == Some(Token::Ident);
        let reads_as_binder = names && self.fits("in") && self.expected.len() == 1;
        (reads_as_binder && at >= 3 && self.starts_line(at - 1) && self.kind_before(3) != Some(Token::Semi))
            .then_some(at - 1)
    }
}

/// Words that only start a statement or an item.
fn is_statement_word(token: Token) -> bool {
    use Token::*;
    matches!(
        token,
        Let | Var
            | Param
            | Const
            | Temp
            | Map
            | While
            | Repeat
            | Return
            | Break
            | Continue
            | Compute
            | Vertex
            | Par
            | Execute
            | Exchange
            | Fn
            | Program
            | Use
            | AttrOpen
    )
}

/// Returns whether a statement may start so.
fn can_start(token: Token) -> bool {
    use Token::*;
    let sign = matches!(token, Ident | Int | Float | Str | ParenOpen | BraceOpen | Error);
    sign || token.is_contextual() || matches!(token, For | If | On | With | Switch | Pipeline | Stage | True | False)
}

/// Returns the diagnostic for an error.
pub fn unexpected(position: &ErrorPosition) -> Diagnostic {
    let end = position.tokens.last().map_or(Span::NONE, |l| Span::new(l.span.hi, l.span.hi));
    if let Some(at) = position.missing_semi() {
        let found = position.tokens.get(at).copied().or(position.next);
        let before = position.tokens[at - 1];
        let there = found.map_or("the end of the file".into(), |l| position.shown(l));
        let what = format!("expected `;` after {}, found {there}", position.shown(before));
        let gap = Span::new(before.span.hi, before.span.hi);
        let d = Diagnostic::error("syntax::unexpected", found.map_or(end, |l| l.span), what);
        return d.label(gap, "a `;` is missing here");
    }
    if let Some(d) = special(position) {
        return d;
    }
    let wanted = wanted(position);
    let mut message = format!("expected {}", one_of(&wanted));
    if let Some(before) = position.before(1) {
        message += &format!(" after {}", position.shown(before));
    }
    let there = position.found().map_or("the end of the file".into(), |l| position.shown(l));
    message += &format!(", found {there}");
    let d = Diagnostic::error("syntax::unexpected", position.found().map_or(end, |l| l.span), message);
    match hint(position) {
        Some(help) => d.help(help),
        None => d,
    }
}

/// Returns `a, b or c`.
fn one_of(list: &[String]) -> String {
    match list {
        [] => "nothing more".into(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// Returns the terminals that would fit, in groups, the likeliest first.
fn wanted(position: &ErrorPosition) -> Vec<String> {
    let fits = |t: &str| position.fits(t);
    let list = |words: &[&str]| words.iter().map(|w| w.to_string()).collect::<Vec<_>>();
    if fits("use") {
        return list(&["an item"]);
    } else if fits("return") {
        return list(&["a statement", "`}`"]);
    } else if fits("vertex") {
        return list(&["a vertex", "`}`"]);
    }
    let (group, hidden) = group(position);
    let mut groups: Vec<String> = group.map(String::from).into_iter().collect();
    let rest = PUNCTUATION.iter().filter(|p| fits(p) && !hidden.contains(p)).take(5);
    groups.extend(rest.map(|p| format!("`{p}`")));
    if groups.is_empty() && fits("+") {
        groups.push("an operator".into());
    }
    if groups.is_empty() {
        groups.extend(position.expected.iter().take(5).map(|e| format!("`{}`", e.trim_matches('"'))));
    }
    groups
}

/// Terminals that are named in addition to a group, the likeliest first.
const PUNCTUATION: [&str; 27] = [
    ";", ",", ")", "]", "}", ":", "{", "=", "<-", "->", "=>", "in", "out", "inout", "const", "on", "for", "with", "as",
    "where", "else", "if", "(", "[", "<", ">", ".",
];

/// Returns the name of a group of terminals that would fit, and the terminals that it covers.
fn group(position: &ErrorPosition) -> (Option<&'static str>, Vec<&'static str>) {
    let fits = |t: &str| position.fits(t);
    // Any token that continues a value is valid here, even a name, as in `sum i in …`; authors seldom mean that.
    let after_value = fits("+") || fits("by");
    let (group, mut hidden) = if fits("int") {
        let block: &[&str] = if fits("pipeline") { &["on", "with", "if"] } else { &[] };
        (Some("an expression"), [&["..", "...", "{", "[", "(", "_"], block].concat())
    } else if after_value {
        let assign: &[&str] = if fits(";") { &["=", "<-"] } else { &[] };
        (None, [&["(", "[", "<", ">", ".", "where"], assign].concat())
    } else if fits("ident") && fits("[") && fits("(") {
        (Some("a type"), vec!["(", "["])
    } else if fits("ident") {
        (Some("a name"), vec!["(", "_"])
    } else {
        (None, vec![])
    };
    if fits("int") || fits("ident") {
        hidden.extend(["inout", "out"]);
    }
    (group, hidden)
}

/// Tells whether the token is inside the pattern of a `let`.
fn is_in_pattern(position: &ErrorPosition) -> bool {
    use Token::*;
    let mut before = position.tokens[..position.at].iter().rev().map(|l| l.token);
    before.find(|token| !matches!(token, Ident | Underscore | Comma | ParenOpen | ParenClose | Mut)) == Some(Let)
}

/// Returns the diagnostic for mistakes with a message of their own.
fn special(position: &ErrorPosition) -> Option<Diagnostic> {
    use Token::*;
    let found = position.found()?;
    let error = |what: String| Diagnostic::error("syntax::unexpected", found.span, what);
    let shown = position.shown(found);
    if let Some(d) = word_as_operator(position) {
        return Some(d);
    }
    if found.token == Else && position.fits("return") {
        return Some(error("this `else` has no `if` before it".into()));
    }
    if found.token.is_reserved() && position.fits("ident") && !position.fits("return") && !position.fits("+") {
        let list = wanted(position);
        let what = format!("expected {}, found the keyword {shown}", one_of(&list[..list.len().min(2)]));
        let in_copy = matches!(found.token, Let | If) && position.fits("for") && !position.fits("vertex");
        let next = position.tokens.get(position.at + 1).map(|l| l.token);
        return Some(error(what).help(match found.token {
            _ if in_copy => "a `copy` holds rows such as `a[i] <- b[i]`, and `for`".to_string(),
            Mut if is_in_pattern(position) => "`mut` stands before the whole pattern: `let mut (a, b) = …`".to_string(),
            Where if next == Some(ParenOpen) => "elements are chosen by `select(condition, a, b)`".to_string(),
            Else if next == Some(FatArrow) => "the arm for all other values is `_ => …`".to_string(),
            If | Switch | On | With if position.fits("int") => {
                format!(
                    "an operand that begins with {shown} stands in parentheses: `1 + ({} …)`",
                    shown.trim_matches('`')
                )
            }
            _ => format!("{shown} is a word of the language and cannot be a name"),
        }));
    }
    if found.token == Semi && (position.fits("return") || position.fits("use")) {
        return Some(error("this `;` ends nothing".into()).help("remove it: what ends with `}` needs no `;`"));
    }
    None
}

/// Returns the diagnostic for a word that is an operator in other languages: `a and b`, `not a`. Either the word does
/// not fit or what follows it.
fn word_as_operator(position: &ErrorPosition) -> Option<Diagnostic> {
    let words = [
        (position.found(), position.kind_before(1)),
        (position.before(1), position.kind_before(2)),
        // `not a {` may begin a reduction up to the brace.
        (position.before(2), position.kind_before(3)),
    ];
    words.into_iter().find_map(|(word, before)| {
        let word = word.filter(|l| l.token == Token::Ident)?;
        let text = position.str(word.span);
        let instead = match (text, before.is_some_and(ends_value)) {
            ("and", true) => "`&&`, or `&` on tensors",
            ("or", true) => "`||`, or `|` on tensors",
            ("mod", true) => "`%`",
            ("xor", true) => "`^`",
            ("not", false) => "`!`",
            _ => return None,
        };
        let what = format!("expected an operator, found `{text}`");
        let d = Diagnostic::error("syntax::unexpected", word.span, what);
        Some(d.help(format!("this operator is written {instead}")))
    })
}

/// Returns whether a value may end with this token.
fn ends_value(token: Token) -> bool {
    use Token::*;
    token.is_contextual() || matches!(token, Ident | Int | Float | Str | True | False | ParenClose | BracketClose)
}

/// Returns what the author probably meant.
fn hint(position: &ErrorPosition) -> Option<String> {
    use Token::*;
    let found = position.found()?;
    let (one, two) = (position.kind_before(1), position.kind_before(2));
    let touches = |n: usize| {
        position
            .before(n)
            .is_some_and(|l| l.span.hi == position.tokens.get(position.at - n + 1).map_or(0, |l| l.span.lo))
    };
    let next = position.tokens.get(position.at + 1).copied();
    if position.fits("use") {
        return item_hint(position.str(found.span));
    }
    let text = match (one, found.token) {
        (Some(Dot), _) if two == Some(Int) && touches(2) => "a float needs a digit after its point: `1.0`",
        (_, Dot) if next.is_some_and(|l| l.token == Int) => "a float needs a digit before its point: `0.5`",
        (Some(Plus | Minus), Semi | BraceClose) if one == two => "write `x += 1` or `x -= 1`",
        (Some(Star), Star) if touches(1) => "a power is a function: `pow(x, 2.0)`; a square is `x * x`",
        (Some(At), Eq) if touches(1) => "there is no `@=`: write the product out, `x <- x @ y`",
        (Some(Fn), Ident) if !position.fits("ident") => {
            "a function that is a value has no name: `let f = fn(x) { … };`"
        }
        (Some(Plus), Plus) => "write `x += 1`",
        (_, Eq) if position.fits(":") && matches!(two, Some(Var | Param | State | Temp | Const)) => {
            "a variable needs a type: `var x: f32[4] = 0.0;`; `let` names a value without one, and `let mut` a local \
             of a codelet"
        }
        (_, Arrow) if position.fits("=>") => "the body of a case follows `=>`",
        (_, Colon) if next.is_some_and(|l| l.token == Colon && l.span.lo == found.span.hi) => {
            "names are joined with `.`: `nn.relu`"
        }
        (Some(Colon), Colon) => "names are joined with `.`: `nn.relu`",
        (_, Write) if position.fits("=") && !position.fits("<") => {
            "a declaration takes `=`; `<-` writes elements of what exists"
        }
        (_, Write) if position.fits("<") => "`<-` is one token: for a comparison with a negative number write `a < -b`",
        (_, Eq) if position.fits("in") && (one, two) == (Some(Ident), Some(Ident)) => {
            "a value is named with `let`, without its type: `let x = 0.0;`, or `let mut x = 0.0;` if it changes"
        }
        (_, Eq) if position.fits("in") => "write `i in 0..n`",
        (_, Colon) if position.before(2).is_some_and(|l| position.str(l.span) == "lambda") => {
            "a function as a value is written `fn(x) { … }`"
        }
        (_, FatArrow) if one == Some(Ident) && !position.fits("->") => "a function as a value is written `fn(x) { … }`",
        (Some(Eq | ParenOpen | Comma), Or) => "a function as a value is written `fn(x) { … }`",
        (Some(Let | Mut), BracketOpen) => "values are taken apart in parentheses: `let (a, b) = …;`",
        (Some(Ident), Str) if touches(1) => "a text has no values inside: write `print(\"x\", x)`",
        (Some(Str), Colon) => "values with names are a tuple: `(a: 1, b: 2)`",
        (Some(Str), Semi) if position.fits("as") => "a file gets a name: `use \"file.gir\" as file;`",
        (_, For) if innermost(position) == Some(BracketOpen) => "a list is made by `list i in 0..n { … }`",
        (Some(Ident), Colon) if two == Some(Lt) => "generics have no names here, only an order: `<f32, 4>`",
        (Some(ParenOpen | Comma), Ident) if position.fits("inout") => {
            "a field begins with `in`, `out`, `inout` or `const`: `in x: f32[n]`"
        }
        (Some(ParenClose), Arrow) if position.fits("{") && !position.fits("->") => {
            "a codelet writes `out` fields and has no result; a function of numbers is a `codelet fn`"
        }
        (_, Colon) if innermost(position) == Some(BracketOpen) => "a range of an axis is written `1..3`",
        (_, Eq) if position.fits("<-") => "elements are copied with `<-`: `to <- from;`",
        (_, PlusEq | MinusEq | StarEq | SlashEq | PercentEq | AndEq | OrEq | CaretEq) if position.fits("<-") => {
            "a `copy` only copies: write this as a statement of its own, outside of it"
        }
        (_, Vertex) if position.fits("return") => "a vertex is in a compute set: `compute { vertex c(…); }`",
        (_, Ident) if position.fits("vertex") && writes(position) => {
            "a compute set holds vertices: write this as a statement of its own, outside of it"
        }
        (_, Ident) if position.fits("vertex") && next.is_some_and(|l| l.token == ParenOpen) => {
            "a vertex begins with its word: `vertex c(…);`"
        }
        (_, Eq) if position.fits(":") && in_parentheses(position) => "arguments are named with `:`, as in `f(x: 1)`",
        (_, Eq) if position.fits("==") => "`=` names a value, `==` compares",
        (_, FatArrow | Colon) if position.fits("->") => "the type of the result follows `->`",
        (_, As) if position.tokens.first().is_some_and(|l| l.token == Use) => {
            "single names keep their names: import the module under another name, `use m as n;`, and write `n.a`"
        }
        (_, As) => "types are converted by calls: `f32(x)`",
        (Some(Ident), Not) => "there are no macros: write the call without `!`",
        _ if position.tokens.first().is_some_and(|l| l.token == Grad) && in_parentheses(position) => {
            "a gradient names parameters, results and their adjoints: `grad f(x, w; y; dy) { … }`"
        }
        _ if head(position) == Some(Stage) => "a stage has a place and a body: `stage on ipu(0) { … }`",
        _ if head(position) == Some(Pipeline) => {
            "a pipeline has micro-batches and a body of stages: `pipeline(micro_batches: 4) { … }`"
        }
        _ if one == Some(Else) => "`else` is followed by a body `{ … }` or another `if`",
        _ => return word_hint(position),
    };
    Some(text.into())
}

/// Returns whether the statement that does not fit writes elements.
fn writes(position: &ErrorPosition) -> bool {
    use Token::*;
    let rest = position.tokens.iter().skip(position.at).map(|l| l.token);
    rest.take_while(|t| !matches!(t, Semi | BraceOpen | BraceClose))
        .any(|t| matches!(t, Write | Eq | PlusEq | MinusEq | StarEq | SlashEq | PercentEq | AndEq | OrEq | CaretEq))
}

/// Returns the word whose head ends just before the token that does not fit: the word itself, or what it takes in
/// parentheses.
fn head(position: &ErrorPosition) -> Option<Token> {
    use Token::*;
    if !["(", "on", "{"].iter().any(|t| position.fits(t)) {
        return None;
    }
    let mut depth = 0;
    for l in position.tokens[..position.at.min(position.tokens.len())].iter().rev() {
        match l.token {
            t if t.closes() => depth += 1,
            t if t.opens() => {
                depth -= 1;
                if depth < 0 {
                    return None;
                }
            }
            Stage | Pipeline if depth == 0 => return Some(l.token),
            On | Ident | Dot => {}
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Returns a hint based on the words before the error.
fn word_hint(position: &ErrorPosition) -> Option<String> {
    for n in 0..=3 {
        let Some(l) = position.before(n) else { break };
        if matches!(position.str(l.span), "elif" | "elsif" | "elseif") {
            return Some("write `else if`".into());
        }
        if position.str(l.span) == "match" {
            return Some("write `switch x { 1 => { … } _ => { … } }`".into());
        }
    }
    let needs_body = position.fits("{") && position.fits("+");
    needs_body.then(|| "a body is written in braces: `{ … }`".into())
}

/// Returns whether the innermost open bracket is a parenthesis.
fn in_parentheses(position: &ErrorPosition) -> bool {
    innermost(position) == Some(Token::ParenOpen)
}

/// Returns the innermost open bracket.
fn innermost(position: &ErrorPosition) -> Option<Token> {
    let mut depth = 0;
    for l in position.tokens[..position.at.min(position.tokens.len())].iter().rev() {
        if l.token.closes() {
            depth += 1;
        } else if l.token.opens() {
            if depth == 0 {
                return Some(l.token);
            }
            depth -= 1;
        }
    }
    None
}

/// Returns the replacement for a word that starts no item.
fn item_hint(word: &str) -> Option<String> {
    let instead = match word {
        "function" | "func" | "def" | "fun" | "proc" => "functions start with `fn`",
        "kernel" | "class" | "struct" => "code of a tile starts with `codelet`",
        "import" | "include" | "from" => "modules are named with `use`",
        "main" => "programs start with `program`: `program main() { … }`",
        "mut" => "write `let mut`",
        "vertex" => "a vertex is in a compute set: `compute { vertex c(…); }`",
        "pub" | "export" => "remove it: all items of a module can be used by others",
        _ => {
            "the words that start an item are `use fn codelet program let var param const map stream compute \
              copy`, and some more; statements belong in the body of a `fn` or `program`"
        }
    };
    Some(instead.into())
}
