//! Reverse-mode differentiation: `grad(loss, wrt: …)` appends the steps that compute the derivative of a scalar.
//!
//! While a program is elaborated, everything that has a derivative is recorded ([`record`]) on the *tape* of the body
//! that receives its steps: element-wise steps, calls of functions with a rule, copies, fills, branches and loops
//! ([`tape`]). Every write to a variable is logged with its *moment* ([`moments`], [`order`]), so that a needed value
//! that was overwritten is an error and never a wrong gradient. `grad` finds what depends on the wanted tensors
//! ([`active`], [`activate`]), walks the tape backwards ([`state`], [`reverse`], [`control`]) and collects the
//! derivative by each variable ([`adjoints`]). What the reverse steps need ([`needs`]) is kept, or computed again in a
//! few operations ([`rematerialize`]) or as a whole part of the text ([`recompute`]). Functions of numbers are
//! differentiated as text, into one codelet for each backward step ([`derive`], [`formulas`]); other functions by their
//! rules, `grad f(x; y; dy) { … }` ([`rule_table`], [`rules`]), or through their bodies.
//!
//! Invariant: nothing is recorded in a program that does not call `grad`.

pub mod order;
pub mod tape;
pub mod record;
mod checks;
pub mod moments;
mod inverse_views;
mod active;
mod activate;
mod adjoints;
mod stashes;
mod state;
mod call;
mod carried;
mod leaves;
mod wanted;
mod reverse;
pub mod formulas;
mod needs;
mod rematerialize;
mod control;
mod versions;
mod recompute;
pub mod rule_table;
mod rules;
pub mod derive;
