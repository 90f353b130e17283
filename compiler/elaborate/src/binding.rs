//! Binding of the arguments of a call, a vertex or a program to parameters.
//!
//! Invariant: batched evaluation and evaluation one iteration at a time both bind here, so that they agree on errors.

use smol_str::SmolStr;

/// An argument that may be named.
pub trait Named {
    /// Returns the name; empty if there is none.
    fn name(&self) -> &str;
}

impl<T> Named for (SmolStr, T) {
    fn name(&self) -> &str {
        &self.0
    }
}

impl Named for &girder_syntax::ast::Arg {
    fn name(&self) -> &str {
        self.name.as_ref().map_or("", |n| &n.name)
    }
}

/// The reason why an argument has no parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misplaced {
    /// No parameter has its name.
    Unknown,
    /// The parameter with this number already has an argument.
    Twice(usize),
    /// There are more arguments than parameters.
    TooMany,
}

/// Assigns arguments to `count` parameters: those with a name to the parameter that `position` finds, the others in
/// order. Returns one slot per parameter, or the first argument that has none.
pub fn bind<A: Named>(
    arguments: impl IntoIterator<Item = A>,
    count: usize,
    position: impl Fn(&str) -> Option<usize>,
) -> Result<Vec<Option<A>>, (A, Misplaced)> {
    let mut slots: Vec<Option<A>> = std::iter::repeat_with(|| None).take(count).collect();
    let mut next = 0;
    for argument in arguments {
        let slot = match argument.name() {
            "" => {
                next += 1;
                next - 1
            }
            name => match position(name) {
                Some(slot) => slot,
                None => return Err((argument, Misplaced::Unknown)),
            },
        };
        match slots.get_mut(slot) {
            Some(free @ None) => *free = Some(argument),
            Some(Some(_)) => return Err((argument, Misplaced::Twice(slot))),
            None => return Err((argument, Misplaced::TooMany)),
        }
    }
    Ok(slots)
}

/// Returns the message about the number of arguments that a function takes.
pub fn takes(name: &str, count: usize) -> String {
    format!("`{name}` takes {count} argument{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(arguments: &[(&str, i32)]) -> Result<Vec<Option<i32>>, (i32, Misplaced)> {
        let arguments = arguments.iter().map(|&(name, value)| (SmolStr::from(name), value));
        let slots = bind(arguments, 3, |name| ["a", "b", "c"].iter().position(|n| *n == name));
        slots.map(|s| s.into_iter().map(|a| a.map(|a| a.1)).collect()).map_err(|((_, value), why)| (value, why))
    }

    #[test]
    fn named_arguments_go_to_their_parameter_and_others_in_order() {
        assert_eq!(bound(&[("", 1), ("c", 2), ("", 3)]), Ok(vec![Some(1), Some(3), Some(2)]));
        assert_eq!(bound(&[("b", 1)]), Ok(vec![None, Some(1), None]));
        assert_eq!(bound(&[("", 1), ("a", 2)]), Err((2, Misplaced::Twice(0))));
        assert_eq!(bound(&[("d", 1)]), Err((1, Misplaced::Unknown)));
        assert_eq!(bound(&[("", 1), ("", 2), ("", 3), ("", 4)]), Err((4, Misplaced::TooMany)));
    }
}
