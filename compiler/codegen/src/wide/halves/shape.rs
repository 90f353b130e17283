//! Which places the vectors of a program are of.
//!
//! Invariant: a vector of eight places depends on no place of the other half.

use crate::wide::codes::*;
use crate::wide::encode::Code;
use crate::wide::inst::{Class, Op, Reg};
use crate::wide::program::{Carried, Program};

/// The places that a vector, or a mask, has lanes for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// The same for all, or made of what is carried.
    Any,
    /// One half of the vector for each half of the places.
    Sixteen,
    /// Those of one half, in so many vectors of 256 bits.
    Eight { half: u8, vectors: u8 },
}

/// The shapes of all registers.
pub(super) fn shapes(program: &Program) -> Vec<Shape> {
    let mut shapes = vec![Shape::Any; program.made.len()];
    for carried in &program.carried {
        if let Carried::Accumulator { reg, at, .. } = carried {
            shapes[reg.0 as usize] = lanes(at.long, at.upper);
        }
    }
    for n in 0..program.made.len() {
        let Some(inst) = program.made[n].as_ref().filter(|_| !program.is_fixed(Reg(n as u32))) else { continue };
        let of = |reg: Reg| shapes[reg.0 as usize];
        let first = inst.args.iter().map(|&a| of(a)).find(|&s| s != Shape::Any).unwrap_or(Shape::Any);
        let is_mask = program.classes[n] == Class::Mask;
        shapes[n] = match inst.op {
            Op::Load { from, .. } | Op::Gather { from, .. } => lanes(from.bytes == 8, from.upper),
            // A mask for two vectors of 64 bits stands before them.
            Op::Blend { .. } | Op::Merge { .. } => {
                inst.args[1..].iter().map(|&a| of(a)).find(|&s| s != Shape::Any).unwrap_or(first)
            }
            Op::Zeroed { code } => of_converted(code, of(inst.args[1])),
            Op::Plain { code, .. } | Op::Reversed { code, .. } => of_converted(code, first),
            Op::Mask { code: MASK_SHIFT_RIGHT, .. } if first == Shape::Sixteen => Shape::Eight { half: 1, vectors: 1 },
            Op::Mask { code: MASK_JOIN, .. } if first != Shape::Any => Shape::Sixteen,
            _ => match first {
                Shape::Eight { half, .. } if is_mask => Shape::Eight { half, vectors: 1 },
                shape => shape,
            },
        };
    }
    shapes
}

fn lanes(long: bool, upper: bool) -> Shape {
    if long { Shape::Eight { half: u8::from(upper), vectors: 2 } } else { Shape::Sixteen }
}

/// What an instruction on one vector, or two of a kind, gives.
fn of_converted(code: Code, from: Shape) -> Shape {
    match (code, from) {
        (_, Shape::Any) => Shape::Any,
        (UPPER, _) => Shape::Eight { half: 1, vectors: 1 },
        (JOIN, _) => Shape::Sixteen,
        (code, Shape::Sixteen) if widens(code) => Shape::Eight { half: 0, vectors: 2 },
        (code, Shape::Eight { half, .. }) if widens(code) => Shape::Eight { half, vectors: 2 },
        (code, Shape::Eight { half, .. }) if narrows(code) => Shape::Eight { half, vectors: 1 },
        (_, shape) => shape,
    }
}

/// Eight lanes of 32 bits to eight of 64.
pub(super) fn widens(code: Code) -> bool {
    code == F64_OF_F32 || F64_OF_INT.contains(&code) || LONG_OF_INT.contains(&code)
}

/// Eight lanes of 64 bits to eight of 32.
pub(super) fn narrows(code: Code) -> bool {
    code == F32_OF_F64 || code == INT_OF_LONG || INT_OF_F64.contains(&code) || F32_OF_LONG.contains(&code)
}
