//! `--arg name=value`: conversion of an argument's text to the kind of value of its `let` or parameter.
//!
//! Invariant: an argument never changes the kind of the value that it replaces; a text of another kind is reported by
//! name.

use crate::elaborator::Elaborator;
use crate::value::Value;
use girder_source::{Result, Span};
use girder_syntax::ast;
use smol_str::SmolStr;

/// The kind of value that an argument must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `int`
    Int,
    /// `float`
    Float,
    /// `bool`
    Bool,
    /// `string`
    Str,
    /// The kind that the text looks like, if the declaration implies none.
    Any,
    /// A kind that the command line cannot express.
    Never(&'static str),
}

impl Kind {
    /// Returns the kind of the value that an argument replaces.
    pub fn of(own: &Value) -> Kind {
        match own {
            Value::Int(_) => Kind::Int,
            Value::Float(_) => Kind::Float,
            Value::Bool(_) => Kind::Bool,
            Value::Str(_) => Kind::Str,
            Value::Error => Kind::Any,
            Value::List(_) => Kind::Never("a list"),
            Value::Tuple(_) => Kind::Never("a tuple"),
            Value::Array(_) => Kind::Never("an array"),
            Value::Place(_) => Kind::Never("a place"),
            Value::Range(_) => Kind::Never("a range"),
            Value::Type(_) => Kind::Never("a type"),
            _ => Kind::Never("no number, bool or string"),
        }
    }

    /// Returns the kind that a parameter's type names, if it names one.
    pub fn stated(ty: &ast::Type) -> Option<Kind> {
        let ast::TypeKind::Name { name, dims } = &ty.kind else { return None };
        if dims.as_ref().is_some_and(|d| !d.is_empty()) {
            return None;
        }
        match name.dotted().as_str() {
            "int" => Some(Kind::Int),
            "float" => Some(Kind::Float),
            "bool" => Some(Kind::Bool),
            "string" => Some(Kind::Str),
            _ => None,
        }
    }
}

impl Elaborator<'_> {
    /// Converts an argument to the value of a declaration at `at`.
    pub fn argument_as(&mut self, (name, text): &(SmolStr, SmolStr), kind: Kind, at: Span) -> Result<Value> {
        let wanted = match (kind, read(text, kind)) {
            (_, Ok(value)) => return Ok(value),
            (_, Err(Wrong::TooLarge)) => {
                let message = format!("`--arg {name}={text}` does not fit: the number is too large");
                return Err(self.error("elaborate::argument_value", at, message));
            }
            (Kind::Never(what), Err(Wrong::Kind)) => {
                let message = format!("`--arg {name}={text}` cannot set `{name}`, which is {what}");
                let help = "arguments are integers, floats, bools and strings";
                return Err(self.error_help("elaborate::argument_value", at, message, help));
            }
            (Kind::Int, _) => "an integer",
            (Kind::Float, _) => "a float",
            (Kind::Bool, _) => "`true` or `false`",
            _ => "a string",
        };
        let message = format!("`--arg {name}={text}`: `{name}` is {wanted}");
        Err(self.error("elaborate::argument_value", at, message))
    }
}

/// The reason why a text is not a value of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wrong {
    Kind,
    TooLarge,
}

fn read(text: &str, kind: Kind) -> std::result::Result<Value, Wrong> {
    match kind {
        Kind::Int => int(text).map(Value::Int),
        Kind::Float => float(text).map(Value::Float),
        Kind::Bool => text.parse().map(Value::Bool).map_err(|_| Wrong::Kind),
        Kind::Str => Ok(Value::Str(text.into())),
        Kind::Never(_) => Err(Wrong::Kind),
        Kind::Any => {
            for kind in [Kind::Int, Kind::Float, Kind::Bool] {
                match read(text, kind) {
                    Err(Wrong::Kind) => {}
                    done => return done,
                }
            }
            Ok(Value::Str(text.into()))
        }
    }
}

fn int(text: &str) -> std::result::Result<i64, Wrong> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.replace('_', "").parse::<i64>().map_err(|e| match e.kind() {
        PosOverflow | NegOverflow => Wrong::TooLarge,
        _ => Wrong::Kind,
    })
}

/// Parses a float as the language writes it, with an optional sign; infinity and NaN are spelt as members of types.
fn float(text: &str) -> std::result::Result<f64, Wrong> {
    let digits = text.replace('_', "");
    if !digits.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) || digits.ends_with(['f', 'n', 'N', 'y'])
    {
        return Err(Wrong::Kind);
    }
    match digits.parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(x),
        Ok(_) => Err(Wrong::TooLarge),
        Err(_) => Err(Wrong::Kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_its_kind_and_as_no_other() {
        assert!(matches!(read("5", Kind::Float), Ok(Value::Float(x)) if x == 5.0));
        assert!(matches!(read("5", Kind::Str), Ok(Value::Str(s)) if s == "5"));
        assert!(matches!(read("1_000", Kind::Any), Ok(Value::Int(1000))));
        assert!(matches!(read("-2.5", Kind::Any), Ok(Value::Float(x)) if x == -2.5));
        assert!(matches!(read("nan", Kind::Any), Ok(Value::Str(_))));
        for (text, kind, wrong) in [
            ("99999999999999999999", Kind::Int, Wrong::TooLarge),
            ("1e400", Kind::Float, Wrong::TooLarge),
            ("99999999999999999999", Kind::Any, Wrong::TooLarge),
            ("-inf", Kind::Float, Wrong::Kind),
            ("2.5", Kind::Int, Wrong::Kind),
            ("0", Kind::Bool, Wrong::Kind),
            ("5", Kind::Never("a list"), Wrong::Kind),
        ] {
            assert_eq!(read(text, kind).err(), Some(wrong), "{text}");
        }
    }
}
