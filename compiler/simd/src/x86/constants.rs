//! Numbers that a kernel reads from its own bytes.
//!
//! Invariant: a constant stands at a multiple of its size, once for all that read it.

use super::Level;
use super::encode::Bytes;
use super::inst::Op;
use super::program::Program;
use super::registers::Pool;

/// What the masks of active lanes are cut from, where masks are vectors: sixteen lanes of ones, then of zeros.
pub(super) const WINDOW: Op = Op::Active { half: 0 };

/// What the masks of whole vectors are cut from.
pub(super) const ONES: Op = Op::Constant { bits: u64::MAX, bytes: 8 };

/// The constants of a program, in front of the code.
pub(super) fn constants(program: &Program) -> (Pool, Bytes) {
    let (mut pool, mut out) = (Pool::default(), Bytes::new(program.level));
    // Masks of both halves are cut from one window.
    let window = |op| if matches!(op, Op::Active { .. }) { WINDOW } else { op };
    let ops = || program.made.iter().flatten().map(|inst| window(inst.op));
    for op in ops() {
        let (lanes, bytes): (Vec<i64>, usize) = match op {
            // A whole vector, which an instruction can have as an operand.
            Op::Constant { bits, bytes } if program.level == Level::Avx2 => {
                (vec![bits as i64; program.level.bytes() as usize / usize::from(bytes)], bytes.into())
            }
            Op::Ramp { start, step, bytes } => {
                let lane = |n| start.wrapping_add(step.wrapping_mul(n));
                ((0..i64::from(program.level.bytes()) / i64::from(bytes)).map(lane).collect(), bytes.into())
            }
            Op::Order { interleaved, phase, round, .. } => {
                let interleaved = &program.interleaved[interleaved as usize];
                (interleaved.order(phase, round), Level::Avx512.bytes() as usize / interleaved.lanes() as usize)
            }
            Op::Quarters { interleaved } => (program.interleaved[interleaved as usize].quarters(), 4),
            Op::Picked { interleaved, phase, upper } => {
                (program.interleaved[interleaved as usize].picked(phase, upper), 1)
            }
            Op::Lanes { bits } => ((0..8).map(|lane| i64::from(bits >> (4 * lane) & 15)).collect(), 4),
            WINDOW => ((0..32).map(|n| if n < 16 { -1 } else { 0 }).collect(), 4),
            _ => continue,
        };
        if pool.contains_key(&op) {
            continue;
        }
        pool.insert(op, out.bytes.len());
        lanes.into_iter().for_each(|lane| out.bytes.extend_from_slice(&lane.to_le_bytes()[..bytes]));
    }
    let ones = (program.level == Level::Avx512 && !program.interleaved.is_empty()).then_some(ONES);
    let bytes = |op: Op| match op {
        Op::Bytes { interleaved } => program.interleaved[interleaved as usize].bytes(),
        op => op,
    };
    for width in [8, 4, 2] {
        for op in ops().map(bytes).chain(ones) {
            let (bits, bytes) = match op {
                Op::Constant { bits, bytes } => (bits, bytes.into()),
                Op::MaskBits { bits } => (bits.into(), 2),
                _ => continue,
            };
            if bytes == width && !pool.contains_key(&op) {
                pool.insert(op, out.bytes.len());
                out.bytes.extend_from_slice(&bits.to_le_bytes()[..width]);
            }
        }
    }
    out.align(Level::Avx512.bytes() as usize);
    (pool, out)
}
