//! Matching of brackets, and their nesting depth.
//!
//! Invariant: in the resulting tokens every bracket has its partner. Inserted brackets have empty spans, and each
//! bracket that was inserted or removed has been reported.

use crate::builder::nesting;
use crate::token::{Lexeme, Token};
use girder_source::{Diagnostic, Span};

/// Tokens with matching brackets.
pub struct Balanced {
    /// The tokens.
    pub lexemes: Vec<Lexeme>,
    /// Errors.
    pub problems: Vec<Diagnostic>,
    /// Positions in `lexemes` at which brackets or `else if` nest deeper than the limit.
    pub too_deep: Vec<usize>,
}

/// An open bracket.
struct Open {
    lexeme: Lexeme,
    /// Semicolons directly inside.
    semis: u32,
    /// Whether it is the parameter list of a `grad`, with semicolons.
    grad: bool,
    /// Number of successive `else if` directly inside.
    chain: u32,
    /// Its line.
    line: Line,
}

/// A line of the text.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Line {
    /// Number, from 0.
    number: u32,
    /// Spaces and tabs at its start.
    indent: u32,
    /// Whether the current token is the first on it.
    fresh: bool,
}

struct Balancer<'s> {
    /// The input.
    lexemes: &'s [Lexeme],
    /// The number of tokens copied unchanged, until the first change.
    same: usize,
    /// The output from the first change on.
    changed: Vec<Lexeme>,
    text: &'s str,
    base: u32,
    limit: u32,
    stack: Vec<Open>,
    /// Number of open brackets and successive `else if`.
    depth: u32,
    /// The line of the current token, and the end of the token before it.
    line: Line,
    end: u32,
    /// A brace that was closed at a smaller indentation than it was opened at: the likely position of a missing one.
    suspect: Option<Span>,
    problems: Vec<Diagnostic>,
    too_deep: Vec<usize>,
}

/// Matches the brackets of a file.
pub fn balance(mut lexemes: Vec<Lexeme>, text: &str, base: u32, limit: u32) -> Balanced {
    let mut b = Balancer {
        lexemes: &lexemes,
        same: 0,
        changed: vec![],
        text,
        base,
        limit,
        stack: vec![],
        depth: 0,
        line: Line::default(),
        end: base,
        suspect: None,
        problems: vec![],
        too_deep: vec![],
    };
    for (i, &l) in lexemes.iter().enumerate() {
        b.step(l, lexemes.get(i + 1).map(|l| l.token));
    }
    let end = base + text.trim_end().len() as u32;
    b.close_down_to(0, Span::new(end, end), "the file ends here");
    let Balancer { same, changed, problems, too_deep, .. } = b;
    if changed.is_empty() {
        lexemes.truncate(same);
    } else {
        lexemes = changed;
    }
    Balanced { lexemes, problems, too_deep }
}

impl Balancer<'_> {
    /// Returns the output so far.
    fn written(&self) -> &[Lexeme] {
        if self.changed.is_empty() { &self.lexemes[..self.same] } else { &self.changed }
    }

    fn push(&mut self, l: Lexeme) {
        if self.changed.is_empty() {
            // No two tokens are equal, because their spans differ.
            if self.lexemes.get(self.same) == Some(&l) {
                self.same += 1;
                return;
            }
            self.changed.reserve(self.lexemes.len());
            self.changed.extend_from_slice(&self.lexemes[..self.same]);
        }
        self.changed.push(l);
    }

    fn step(&mut self, l: Lexeme, next: Option<Token>) {
        let token = l.token;
        self.advance(l.span);
        if self.starts_item(token, next) {
            self.close_down_to(0, l.span, "a new item starts here");
        } else if token == Token::Semi || (starts_statement(token) && self.line.fresh) {
            self.end_of_statement(l, next);
        }
        if token.closes() {
            return self.close(l, next);
        }
        if token == Token::Else && next == Some(Token::If) {
            if let Some(top) = self.stack.last_mut() {
                top.chain += 1;
                self.deeper(l.span, "chain of `else if`");
            }
        } else if token.opens() {
            let grad = token == Token::ParenOpen && self.after_grad();
            self.stack.push(Open { lexeme: l, semis: 0, grad, chain: 0, line: self.line });
            self.deeper(l.span, "bracket");
        }
        self.push(l);
    }

    fn deeper(&mut self, span: Span, what: &str) {
        self.depth += 1;
        if self.depth == self.limit + 1 {
            self.problems.push(nesting(span, what, self.limit));
        }
        if self.depth > self.limit {
            self.too_deep.push(self.written().len());
        }
    }

    /// Returns whether this word, inside brackets, can only start the next item.
    fn starts_item(&self, token: Token, next: Option<Token>) -> bool {
        use Token::*;
        let before = self.written().last().map(|l| l.token);
        !self.stack.is_empty()
            && match token {
                // A closure has no name.
                Fn if matches!(next, Some(ParenOpen | Lt)) => false,
                Fn if before == Some(Eq) && !self.line.fresh => false,
                Fn => !matches!(before, Some(Codelet | Colon | Arrow | BracketOpen)),
                Codelet => before != Some(Multi),
                Multi => next == Some(Codelet),
                Program | Use | Module => before != Some(Dot),
                _ => false,
            }
    }

    fn after_grad(&self) -> bool {
        let mut before = self.written().iter().rev().map(|l| l.token);
        let mut first = before.next();
        while matches!(first, Some(Token::Ident | Token::Dot)) {
            first = before.next();
        }
        first == Some(Token::Grad) && self.stack.is_empty()
    }

    /// Advances `line` to a token.
    fn advance(&mut self, span: Span) {
        if span.lo == self.end && !self.written().is_empty() {
            self.line.fresh = false;
            self.end = span.hi;
            return;
        }
        let gap = self.text.get((self.end - self.base) as usize..(span.lo - self.base) as usize).unwrap_or("");
        self.end = span.hi;
        let breaks = gap.bytes().filter(|b| *b == b'\n').count() as u32;
        self.line.fresh = breaks > 0 || self.written().is_empty();
        if self.line.fresh {
            let indent = gap.len() - gap.trim_end_matches([' ', '\t']).len();
            self.line = Line { number: self.line.number + breaks, indent: indent as u32, fresh: true };
        }
    }

    /// Handles a `;`, or a word that starts a statement: parentheses and square brackets do not extend beyond it.
    fn end_of_statement(&mut self, l: Lexeme, next: Option<Token>) {
        let Some(top) = self.stack.last_mut() else { return };
        let semi = l.token == Token::Semi;
        top.semis += semi as u32;
        let inside = match top.lexeme.token {
            Token::ParenOpen => top.grad && semi,
            // `[value; count]`
            Token::BracketOpen => semi && top.semis == 1 && !next.is_some_and(starts_statement),
            _ => true,
        };
        if !inside {
            let brace = self.stack.iter().rposition(|o| o.lexeme.token == Token::BraceOpen);
            self.close_down_to(brace.map_or(0, |i| i + 1), l.span, "it should be closed before this");
        }
    }

    fn close(&mut self, l: Lexeme, next: Option<Token>) {
        let fits = |o: &Open| partner(o.lexeme.token) == l.token;
        let found = self.stack.iter().rposition(fits);
        // Parentheses do not extend beyond braces.
        let hidden = |i: usize| {
            l.token != Token::BraceClose && self.stack[i..].iter().any(|o| o.lexeme.token == Token::BraceOpen)
        };
        let Some(i) = found.filter(|&i| !hidden(i)) else {
            let shown = &self.text[(l.span.lo - self.base) as usize..(l.span.hi - self.base) as usize];
            let what = format!("this `{shown}` closes nothing");
            let mut d = Diagnostic::error("syntax::unclosed", l.span, what);
            match self.stack.last() {
                Some(top) => d = d.label(top.lexeme.span, "this is open here"),
                None => d = d.help("remove it, or look for a bracket that is closed too early"),
            }
            return self.problems.push(d);
        };
        self.close_down_to(i + 1, l.span, "this closes what is around it");
        if let Some(open) = self.stack.pop() {
            self.depth -= 1 + open.chain;
            let outdented = open.line.number != self.line.number && self.line.indent < open.line.indent;
            if self.suspect.is_none() && l.token == Token::BraceClose && outdented {
                self.suspect = Some(open.lexeme.span);
            }
        }
        if next != Some(Token::Else)
            && let Some(top) = self.stack.last_mut()
        {
            self.depth -= std::mem::take(&mut top.chain);
        }
        if self.stack.is_empty() {
            self.suspect = None;
        }
        self.push(l);
    }

    /// Closes brackets until only `keep` are open, and reports them together.
    fn close_down_to(&mut self, keep: usize, here: Span, why: &str) {
        if self.stack.len() <= keep {
            return;
        }
        let end = self.written().last().map_or(here.lo, |l| l.span.hi);
        let mut missing: Vec<Span> = vec![];
        while self.stack.len() > keep {
            let Some(open) = self.stack.pop() else { break };
            self.depth -= 1 + open.chain;
            missing.push(open.lexeme.span);
            self.push(Lexeme { token: partner(open.lexeme.token), span: Span::new(end, end) });
        }
        let shown = |s: Span| &self.text[(s.lo - self.base) as usize..(s.hi - self.base) as usize];
        let what = format!("this `{}` is not closed", shown(missing[0]));
        let mut d = Diagnostic::error("syntax::unclosed", missing[0], what).here("opened here").label(here, why);
        for &also in missing[1..].iter().take(3) {
            d = d.label(also, "this is not closed either");
        }
        match self.suspect.take() {
            Some(span) if shown(missing[0]) == "{" => {
                d = d.label(span, "or this one: the `}` that closes it is indented less")
            }
            _ => {}
        }
        self.problems.push(d);
    }
}

fn partner(open: Token) -> Token {
    match open {
        Token::ParenOpen => Token::ParenClose,
        Token::BraceOpen => Token::BraceClose,
        _ => Token::BracketClose,
    }
}

/// Returns whether a word starts a statement and never occurs in parentheses or square brackets.
fn starts_statement(token: Token) -> bool {
    use Token::*;
    matches!(
        token,
        Let | Var | Param | Temp | For | While | Repeat | Return | Break | Continue | Compute | Vertex | Par | Execute
    )
}
