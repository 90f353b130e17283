//! Reverse-mode differentiation: `grad(loss, wrt: …)` appends the steps that compute the derivative of a scalar.
//!
//! While a program is elaborated, everything that has a derivative is recorded on the *tape* of the body that receives
//! its steps: element-wise steps, calls of functions with a rule, copies, fills, branches and loops ([`tape`]). Every
//! write to a variable is logged with its *moment* ([`moments`]), so that a needed value that was overwritten is an
//! error and never a wrong gradient. `grad` finds what depends on the wanted tensors ([`active`]), walks the tape
//! backwards ([`reverse`], [`control`], [`replay`]) and collects the derivative by each variable ([`adjoints`]).
//! Functions of numbers are differentiated as text, into one codelet for each backward step ([`derive`]); other
//! functions by their rules, `grad f(x; y; dy) { … }` ([`rules`]), or through their bodies.
//!
//! Invariant: nothing is recorded in a program that does not call `grad`.

pub mod tape;
pub mod moments;
pub mod onto;
mod active;
mod adjoints;
mod call;
pub mod carried;
mod wanted;
pub mod reverse;
pub mod needs;
mod control;
mod replay;
pub mod rules;
pub mod derive;
