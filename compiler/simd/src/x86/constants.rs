//! Constants that a kernel reads from its own code.
//!
//! Invariant: each constant is stored once, aligned to its size.

use super::Level;
use super::encode::Bytes;
use super::inst::Op;
use super::program::Program;
use super::registers::Pool;

/// The table from which AVX2 loads masks of active lanes at an offset: sixteen lanes of ones, then sixteen of zeros.
pub(super) const WINDOW: Op = Op::Active { half: 0 };

/// The table from which the masks of whole vectors are made.
pub(super) const ONES: Op = Op::Constant { bits: u64::MAX, bytes: 8 };

/// Returns the constants of a program, which precede the code.
pub(super) fn constants(program: &Program) -> (Pool, Bytes) {
    let (mut pool, mut out) = (Pool::default(), Bytes::new(program.level));
    // The masks of both halves are loaded from one table.
    let window = |op| if matches!(op, Op::Active { .. }) { WINDOW } else { op };
    let ops = || program.made.iter().flatten().map(|inst| window(inst.op));
    for op in ops() {
        let (lanes, bytes): (Vec<i64>, usize) = match op {
            // A whole vector, which an instruction can read as an operand.
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
            Op::Lanes { bits } => {
                let lanes = i64::from(program.level.bytes()) / 4;
                ((0..lanes).map(|lane| (bits >> (4 * lane) & 15) as i64).collect(), 4)
            }
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
