//! Spelling in messages: the known name nearest to a misspelt one, and plurals.

/// Returns the nearest of some names, if one is near: at most a third of its letters differ.
///
/// An edit inserts, removes or replaces a letter, or swaps two neighbours.
pub fn closest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let distances = names.map(|name| (strsim::osa_distance(wrong, name), name));
    let near = distances.filter(|(d, name)| *d > 0 && *d * 3 <= name.len().max(wrong.len()));
    near.min().map(|(_, name)| name)
}

/// Returns the help for a name of another language: what the language has instead. `None` for any other name.
pub fn foreign(name: &str) -> Option<&'static str> {
    Some(match name {
        "range" | "xrange" | "arange" => "a range is written `0..n`, or `0..n by 2`",
        "True" | "False" => "`true` and `false` are written in lower case",
        "None" | "null" | "nil" | "nullptr" => "an absent value is `()`",
        "np" | "numpy" | "jnp" | "jax" | "torch" | "tf" => {
            "functions of the library have no such prefix: `mean(x)`; layers are imported with `use nn;`"
        }
        "self" | "this" => "there are no objects: a function takes what it needs as an argument",
        "double" | "float64" => "the type of 64 bits is `f64`",
        "float32" => "the type of 32 bits is `f32`",
        "int32" | "uint32" => "the types of 32 bits are `i32` and `u32`",
        "int64" | "uint64" | "long" => "the types of 64 bits are `i64` and `u64`",
        "bf16" | "bfloat16" | "float16" => "floats of 16 bits are not yet supported: use `f32`",
        "half" => "the type of 16 bits is `f16`, which is not yet supported",
        "char" | "byte" | "int8" | "uint8" => "the types of 8 bits are `i8` and `u8`",
        "pi" | "PI" => "name it: `let pi = 3.141592653589793;`",
        "inf" | "infinity" | "nan" | "NaN" => "it belongs to a type: `f32.inf`, `f32.nan`",
        "ln" => "the natural logarithm is `log(x)`",
        "power" => "a power is `pow(x, 2.0)`, and a square `x * x`",
        "fabs" => "it is `abs(x)`",
        "fmod" | "mod" | "remainder" => "the remainder is `x % y`",
        _ => return None,
    })
}

/// Formats a count with its noun: `1 axis`, `2 axes`.
pub fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_languages_are_known() {
        assert!(foreign("range").is_some_and(|help| help.contains("0..n")));
        assert_eq!(foreign("ranges"), None);
    }

    #[test]
    fn a_slip_of_a_letter_is_found_and_nonsense_is_not() {
        assert_eq!(closest("retrun", ["repeat", "return"].into_iter()), Some("return"));
        assert_eq!(closest("acc", ["ack", "bias"].into_iter()), Some("ack"));
        assert_eq!(closest("beta", ["bias", "x"].into_iter()), None);
        assert_eq!(closest("xyz", ["repeat", "return"].into_iter()), None);
    }
}
