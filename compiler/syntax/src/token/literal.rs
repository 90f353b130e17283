//! Numbers and strings: their extent in the text, their values, and the quoting of strings.
//!
//! Invariant: every literal that the lexer accepts has a value; for one that it has reported, the functions here return
//! some value.

use girder_source::{Diagnostic, Span};
use smol_str::{SmolStr, SmolStrBuilder};

/// The value of a number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// Decimal, `0x…`, `0o…` or `0b…`.
    Int(u64),
    /// A number with a fraction or an exponent.
    Float(f64),
}

/// The reason why a number has no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumberError {
    /// More than 64 bits.
    TooLarge,
    /// A prefix without digits.
    NoDigits,
    /// A letter or digit that the base does not have.
    BadDigit(char),
    /// A decimal number that would be infinite.
    Infinite,
}

impl NumberError {
    /// Returns the message for the number `text` at `span`.
    pub fn report(self, span: Span, text: &str) -> Diagnostic {
        let error = |message: String| Diagnostic::error("syntax::number", span, message);
        match self {
            NumberError::TooLarge => error(format!("the number `{text}` does not fit 64 bits"))
                .help("the largest integer is 18446744073709551615; a float is written with a point or an exponent"),
            NumberError::NoDigits => error(format!("the number `{text}` has no digits")),
            NumberError::Infinite => {
                error(format!("the number `{text}` is larger than any float")).help("infinity is written `f32.inf`")
            }
            NumberError::BadDigit(c) => error(format!("`{c}` is not allowed in the number `{text}`"))
                .help("put a space or an operator after the number; types are converted by calls: `f32(1)`"),
        }
    }
}

/// Returns the number of bytes of `rest` that belong to the number starting with the digit `first`, and whether it is a
/// float. Letters and digits that follow directly belong to it, so `12px` is one wrong number and not two tokens.
pub fn scan_number(first: &str, rest: &str) -> (usize, bool) {
    let bytes = rest.as_bytes();
    let word =
        |from: usize| from + bytes[from..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    let mut end = word(0);
    let based = first == "0" && matches!(bytes.first(), Some(b'x' | b'o' | b'b' | b'X' | b'O' | b'B'));
    if based {
        return (end, false);
    }
    let mut is_float = false;
    if rest[..end].bytes().all(|b| b.is_ascii_digit() || b == b'_') && bytes.get(end) == Some(&b'.') && digit(end + 1) {
        is_float = true;
        end = word(end + 1);
    }
    let exponent = end > 0 && matches!(bytes[end - 1], b'e' | b'E') && matches!(bytes.get(end), Some(b'+' | b'-'));
    if exponent && digit(end + 1) {
        is_float = true;
        end = word(end + 1);
    } else if !is_float {
        // `1e5`: digits, one `e`, digits.
        is_float = rest[..end].split_once(['e', 'E']).is_some_and(|(a, b)| {
            let plain = |s: &str| s.bytes().all(|b| b.is_ascii_digit() || b == b'_');
            plain(a) && plain(b) && !b.is_empty()
        });
    }
    (end, is_float)
}

/// Returns the value of the text of a number.
pub fn number(text: &str) -> Result<Number, NumberError> {
    // Most numbers have few digits and fit.
    if text.len() < 20 && text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() {
        return Ok(Number::Int(text.bytes().fold(0, |value, digit| 10 * value + (digit - b'0') as u64)));
    }
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', b'o' | b'O', ..] => (&text[2..], 8),
        [b'0', b'b' | b'B', ..] => (&text[2..], 2),
        _ => (text, 10),
    };
    let is_float = radix == 10 && text.contains(['.', 'e', 'E', '+', '-']);
    if is_float {
        return float(text);
    }
    let mut value: Option<u64> = Some(0);
    let mut any = false;
    for c in digits.chars().filter(|&c| c != '_') {
        let d = c.to_digit(radix).ok_or(NumberError::BadDigit(c))?;
        value = value.and_then(|v| v.checked_mul(radix.into())).and_then(|v| v.checked_add(d.into()));
        any = true;
    }
    if !any {
        return Err(NumberError::NoDigits);
    }
    value.map(Number::Int).ok_or(NumberError::TooLarge)
}

/// Returns the `f32` that is nearest to a float literal, where it is not that of the nearest `f64`, `wide`: the literal
/// is beside the middle of two numbers, and the `f64` is the middle.
pub fn narrow_float(text: &str, wide: f64) -> Option<f32> {
    let is_middle = wide.to_bits() & 0x1fff_ffff == 0x1000_0000;
    if !is_middle && wide.abs() >= f32::MIN_POSITIVE.into() {
        return None;
    }
    let clean: String = text.chars().filter(|&c| c != '_').collect();
    clean.parse().ok().filter(|&narrow: &f32| narrow != wide as f32)
}

fn float(text: &str) -> Result<Number, NumberError> {
    let clean: String = text.chars().filter(|&c| c != '_').collect();
    match clean.parse::<f64>() {
        Ok(v) if v.is_finite() => Ok(Number::Float(v)),
        Ok(_) => Err(NumberError::Infinite),
        Err(_) => {
            // A second `e`, another letter, or an exponent without digits.
            let mut seen = false;
            let bad = clean.chars().find(|&c| {
                let e = matches!(c, 'e' | 'E');
                let bad = c.is_ascii_alphabetic() && (!e || seen);
                seen |= e;
                bad
            });
            Err(bad.map_or(NumberError::NoDigits, NumberError::BadDigit))
        }
    }
}

/// Returns the number of bytes after the opening quote that belong to a string: up to its closing quote, or to the end
/// of the line.
pub fn scan_string(rest: &str) -> usize {
    let mut escaped = false;
    for (i, b) in rest.bytes().enumerate() {
        match b {
            b'\n' => return i,
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return i + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Reports the errors of the string `text` (quotes included), whose first byte is at `lo`.
pub fn check_string(text: &str, lo: u32, problems: &mut Vec<Diagnostic>) {
    let mut closed = false;
    for_each_piece(text, |at, piece| match piece {
        StringPiece::Bad(len) => problems.push(
            Diagnostic::error(
                "syntax::string",
                Span::new(lo + at as u32, lo + (at + len) as u32),
                "unknown escape in a string",
            )
            .help(r#"the escapes are \n \t \r \0 \\ \" and \u{…} with a hexadecimal number"#),
        ),
        StringPiece::End => closed = true,
        StringPiece::Char(_) => {}
    });
    if !closed {
        let end = lo + text.trim_end().len() as u32;
        problems.push(
            Diagnostic::error("syntax::string", Span::new(lo, end), "the string is not closed").help(
                "a string ends with `\"` on the line on which it starts; a line break inside it is written `\\n`",
            ),
        );
    }
}

/// Returns the value of a string with its quotes; wrong escapes are left out.
pub fn unquote(text: &str) -> SmolStr {
    let mut out = SmolStrBuilder::new();
    for_each_piece(text, |_, piece| {
        if let StringPiece::Char(c) = piece {
            out.push(c);
        }
    });
    out.finish()
}

/// Returns a string in quotes, with escapes.
pub fn quote(value: &str) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

enum StringPiece {
    Char(char),
    /// An invalid escape of this many bytes.
    Bad(usize),
    /// The closing quote.
    End,
}

/// Calls `f` with the byte offset of each character, escape and closing quote of a string.
fn for_each_piece(text: &str, mut f: impl FnMut(usize, StringPiece)) {
    let mut at = 1;
    while let Some(c) = text.get(at..).and_then(|t| t.chars().next()) {
        let rest = &text[at + c.len_utf8()..];
        let (len, piece) = match (c, rest.chars().next()) {
            ('"', _) => return f(at, StringPiece::End),
            ('\\', Some('n')) => (2, StringPiece::Char('\n')),
            ('\\', Some('t')) => (2, StringPiece::Char('\t')),
            ('\\', Some('r')) => (2, StringPiece::Char('\r')),
            ('\\', Some('0')) => (2, StringPiece::Char('\0')),
            ('\\', Some(c @ ('"' | '\\'))) => (2, StringPiece::Char(c)),
            ('\\', Some('u')) => unicode(rest),
            ('\\', next) => {
                let len = 1 + next.map_or(0, char::len_utf8);
                (len, StringPiece::Bad(len))
            }
            (c, _) => (c.len_utf8(), StringPiece::Char(c)),
        };
        f(at, piece);
        at += len;
    }
}

/// Returns the escape whose text after the backslash is `rest`, with its length.
fn unicode(rest: &str) -> (usize, StringPiece) {
    let Some((digits, _)) = rest.strip_prefix("u{").and_then(|r| r.split_once('}')) else {
        return (2, StringPiece::Bad(2));
    };
    let value = u32::from_str_radix(digits, 16)
        .ok()
        .filter(|_| digits.len() <= 6 && !digits.starts_with('+'))
        .and_then(char::from_u32);
    match value {
        Some(c) => (digits.len() + 4, StringPiece::Char(c)),
        None => (2, StringPiece::Bad(2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_value_that_is_written() {
        assert_eq!(number("0xff_ff"), Ok(Number::Int(65535)));
        assert_eq!(number("0o17"), Ok(Number::Int(15)));
        assert_eq!(number("0b1_01"), Ok(Number::Int(5)));
        assert_eq!(number("18446744073709551615"), Ok(Number::Int(u64::MAX)));
        assert_eq!(number("18446744073709551616"), Err(NumberError::TooLarge));
        assert_eq!(number("1_0.2_5e-1"), Ok(Number::Float(1.025)));
        assert_eq!(number("1e999"), Err(NumberError::Infinite));
        assert_eq!(number("0x"), Err(NumberError::NoDigits));
        assert_eq!(number("1e"), Err(NumberError::NoDigits));
        assert_eq!(number("0b12"), Err(NumberError::BadDigit('2')));
        assert_eq!(number("12px"), Err(NumberError::BadDigit('p')));
    }

    #[test]
    fn strings_come_back_as_they_were() {
        for s in ["", "a\"b\\c", "\n\t\r\0\u{1}ä\u{7f}", "{}"] {
            assert_eq!(unquote(&quote(s)), s);
        }
        assert_eq!(unquote(r#""\u{e4}\q""#), "ä");
    }
}
