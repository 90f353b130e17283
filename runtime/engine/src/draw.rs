//! Initial values that are drawn at load.
//!
//! Invariant: the bytes depend on the drawn value alone, not on pieces, threads, the mode or the instruction set.

use crate::natives;
use crate::store::Store;
use girder_ir::drawn::{Drawn, Law, normal_cdf};
use girder_ir::types::ElemType;
use girder_ir::view::Run;
use girder_kernels::Level;
use girder_kernels::random::{self, Sequence, draw_f32, draw_f64};
use girder_source::par_map;

/// Elements of a piece that one thread draws; a multiple of 4.
const PIECE: u64 = 1 << 16;
/// Pieces that are drawn before they are written.
const PIECES: u64 = 32;

/// Draws the elements of a run of stride 1 that contains all elements of a variable.
pub(crate) fn draw(store: &mut dyn Store, run: Run, ty: ElemType, drawn: &Drawn) {
    let level = girder_codegen::Level::chosen().map_or(Level::Portable, natives::level);
    for start in (0..run.len).step_by((PIECE * PIECES) as usize) {
        let count = (run.len - start).div_ceil(PIECE).min(PIECES);
        let pieces = par_map(count as usize, |k| {
            let first = start + k as u64 * PIECE;
            bytes(level, ty, drawn, first, (run.len - first).min(PIECE) as usize)
        });
        for (k, piece) in pieces.iter().enumerate() {
            let first = start + k as u64 * PIECE;
            store.write(Run { start: run.start + first, len: (run.len - first).min(PIECE), ..run }, piece);
        }
    }
}

/// Returns the little-endian bytes of elements `first..first + len`.
fn bytes(level: Level, ty: ElemType, drawn: &Drawn, first: u64, len: usize) -> Vec<u8> {
    let sequence = Sequence { seed: drawn.seed, site: drawn.site };
    match ty {
        ElemType::F32 => {
            let mut values = vec![0.0; len];
            draw_f32(level, sequence, law(drawn.law, |x| x as f32), first, &mut values);
            values.iter().flat_map(|v: &f32| v.to_le_bytes()).collect()
        }
        _ => {
            let mut values = vec![0.0; len];
            draw_f64(level, sequence, law(drawn.law, |x| x), first, &mut values);
            values.iter().flat_map(|v: &f64| v.to_le_bytes()).collect()
        }
    }
}

/// Returns a distribution with its numbers as elements, each rounded once.
fn law<T>(law: Law, round: impl Fn(f64) -> T) -> random::Law<T> {
    match law {
        Law::Uniform { lo, hi } => random::Law::Uniform { lo: round(lo), range: round(hi - lo) },
        Law::Normal { mean, scale } => random::Law::Normal { mean: round(mean), scale: round(scale) },
        Law::Truncated { mean, scale, lo, hi } => random::Law::Truncated {
            mean: round(mean),
            scale: round(scale),
            lo: round(lo),
            hi: round(hi),
            below: round(normal_cdf(lo)),
            above: round(normal_cdf(-hi)),
            between: round(normal_cdf(hi) - normal_cdf(lo)),
        },
    }
}
