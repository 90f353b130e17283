//! Types during translation: an element type, or a variable that stands for the type of a literal until a use decides
//! it.
//!
//! Invariant: a variable never stands for `bool`; binding or narrowing one never widens what it may become.

use girder_ir::types::ElemType;

/// A type that may still be open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ty {
    /// Decided.
    Known(ElemType),
    /// Decided by a later use, or by default at the end of the body.
    Open(u32),
}

impl Default for Ty {
    fn default() -> Ty {
        Ty::Known(ElemType::I64)
    }
}

/// The type of `int` values inside codelets: sizes, loop indices, `int(x)`.
pub(super) const INT: Ty = Ty::Known(ElemType::I64);
/// The type of conditions.
pub(super) const BOOL: Ty = Ty::Known(ElemType::Bool);

/// The element types that an open type can become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// Any number; `i64` by default. Integer literals.
    Number,
    /// Any integer; `i64` by default.
    Int,
    /// Any float; `f32` by default. Float literals.
    Float,
}

impl Class {
    /// Returns whether a type belongs to the class.
    pub(super) fn holds(self, ty: ElemType) -> bool {
        match self {
            Class::Number => ty.is_number(),
            Class::Int => ty.is_int(),
            Class::Float => ty.is_float(),
        }
    }

    fn meet(self, other: Class) -> Option<Class> {
        match (self, other) {
            (a, b) if a == b => Some(a),
            (Class::Number, c) | (c, Class::Number) => Some(c),
            _ => None,
        }
    }

    /// Returns the type if no use decides it.
    pub(super) fn default_type(self) -> ElemType {
        match self {
            Class::Number | Class::Int => ElemType::I64,
            Class::Float => ElemType::F32,
        }
    }

    /// Describes it for messages.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Class::Number => "number",
            Class::Int => "integer",
            Class::Float => "float",
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    Free(Class),
    Known(ElemType),
    Same(u32),
}

/// All open types of a body.
#[derive(Debug, Default)]
pub(super) struct Types {
    states: Vec<State>,
}

impl Types {
    /// Returns a new open type.
    pub(super) fn open(&mut self, class: Class) -> Ty {
        self.states.push(State::Free(class));
        Ty::Open(self.states.len() as u32 - 1)
    }

    /// Returns the type as far as it is decided.
    pub(super) fn resolve(&self, ty: Ty) -> Ty {
        let Ty::Open(mut v) = ty else { return ty };
        loop {
            match self.states[v as usize] {
                State::Free(_) => return Ty::Open(v),
                State::Known(t) => return Ty::Known(t),
                State::Same(w) => v = w,
            }
        }
    }

    /// Returns the decided type, if it is decided.
    pub(super) fn known(&self, ty: Ty) -> Option<ElemType> {
        match self.resolve(ty) {
            Ty::Known(t) => Some(t),
            Ty::Open(_) => None,
        }
    }

    /// Returns the decided type, or the default.
    pub(super) fn default_of(&self, ty: Ty) -> ElemType {
        match self.resolve(ty) {
            Ty::Known(t) => t,
            Ty::Open(v) => self.class(v).default_type(),
        }
    }

    fn class(&self, root: u32) -> Class {
        match self.states[root as usize] {
            State::Free(c) => c,
            State::Known(_) | State::Same(_) => Class::Number,
        }
    }

    /// Unifies two types; `false` if that is impossible.
    pub(super) fn unify(&mut self, a: Ty, b: Ty) -> bool {
        match (self.resolve(a), self.resolve(b)) {
            (Ty::Known(x), Ty::Known(y)) => x == y,
            (Ty::Known(t), Ty::Open(v)) | (Ty::Open(v), Ty::Known(t)) => {
                let fits = self.class(v).holds(t);
                if fits {
                    self.states[v as usize] = State::Known(t);
                }
                fits
            }
            (Ty::Open(v), Ty::Open(w)) if v == w => true,
            (Ty::Open(v), Ty::Open(w)) => {
                let Some(class) = self.class(v).meet(self.class(w)) else { return false };
                // The older variable stays the root, so that chains descend and end.
                let (root, child) = (v.min(w), v.max(w));
                self.states[root as usize] = State::Free(class);
                self.states[child as usize] = State::Same(root);
                true
            }
        }
    }

    /// Restricts a type to a class; `false` if that is impossible.
    pub(super) fn narrow(&mut self, ty: Ty, class: Class) -> bool {
        match self.resolve(ty) {
            Ty::Known(t) => class.holds(t),
            Ty::Open(v) => match self.class(v).meet(class) {
                Some(c) => {
                    self.states[v as usize] = State::Free(c);
                    true
                }
                None => false,
            },
        }
    }

    /// Returns whether a type is that of floats.
    pub(super) fn is_float(&self, ty: Ty) -> bool {
        match self.resolve(ty) {
            Ty::Known(t) => t.is_float(),
            Ty::Open(v) => self.class(v) == Class::Float,
        }
    }

    /// Describes it for messages, with an article unless it is a type's name.
    pub(super) fn describe(&self, ty: Ty) -> String {
        match self.resolve(ty) {
            Ty::Known(t) => format!("`{t}`"),
            Ty::Open(v) => match self.class(v) {
                Class::Float => "a float".to_string(),
                Class::Number | Class::Int => "an integer".to_string(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_take_the_type_of_their_uses() {
        let mut t = Types::default();
        let (i, f) = (t.open(Class::Number), t.open(Class::Float));
        assert!(t.unify(i, f));
        assert!(!t.unify(i, Ty::Known(ElemType::I32)));
        assert!(t.unify(f, Ty::Known(ElemType::F64)));
        assert_eq!(t.known(i), Some(ElemType::F64));
    }

    #[test]
    fn undecided_types_have_a_default() {
        let mut t = Types::default();
        let (i, f) = (t.open(Class::Number), t.open(Class::Float));
        assert_eq!((t.default_of(i), t.default_of(f)), (ElemType::I64, ElemType::F32));
        assert!(!t.unify(i, BOOL));
        assert!(t.narrow(i, Class::Int) && !t.unify(i, f));
    }
}
