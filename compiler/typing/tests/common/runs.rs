//! Runs of two codelets in the interpreter on the same random inputs.
//!
//! Invariant: both see the same bits, and NaNs compare as one value.

use girder_codelet::{Stop, VertexMemory, bind_sizes, run};
use girder_ir::codelet::{Codelet, DimDecl, FieldDecl};
use girder_ir::ids::FieldId;
use girder_ir::types::{ElemType, Scalar};
use girder_source::Session;
use smallvec::SmallVec;

#[derive(Clone)]
struct Memory(Vec<Vec<u64>>);

impl VertexMemory for Memory {
    fn load(&mut self, field: FieldId, at: u64) -> u64 {
        self.0[field.as_u32() as usize][at as usize]
    }

    fn store(&mut self, field: FieldId, at: u64, bits: u64) {
        self.0[field.as_u32() as usize][at as usize] = bits;
    }
}

/// Returns a random number of a type; integers are small, so that they are indices.
fn random(ty: ElemType, state: &mut u64) -> Scalar {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    let bits = *state >> 33;
    match ty {
        ElemType::F32 => Scalar::f32(bits as f32 / (1 << 28) as f32 - 4.0),
        ElemType::F64 => Scalar::f64(bits as f64 / (1 << 28) as f64 - 4.0),
        ElemType::Bool => Scalar::bool(bits & 1 == 1),
        ty => Scalar::new(ty, bits % 5),
    }
}

/// Panics if two codelets give different results for random inputs, where all sizes are 6. Returns whether they ran: a
/// dimension may need another size.
pub fn compare_runs(a: &Codelet, b: &Codelet) -> bool {
    let shape = |f: &FieldDecl| f.dims.iter().map(|d| if let DimDecl::Fixed(n) = d { *n } else { 6 }).collect();
    let shapes: Vec<SmallVec<[u64; 3]>> = a.fields.values().map(shape).collect();
    let mut state = 1;
    for _ in 0..8 {
        let fields = a.fields.values().zip(&shapes).map(|(f, shape)| {
            let count = shape.iter().product();
            (0..count).map(|_| random(f.ty, &mut state).bits).collect::<Vec<u64>>()
        });
        let memory = Memory(fields.collect());
        let ended = [a, b].map(|codelet| {
            let consts: Vec<u64> = memory.0.iter().map(|f| f.first().copied().unwrap_or(0)).collect();
            let typed: Vec<Scalar> =
                codelet.fields.values().zip(&consts).map(|(f, &bits)| Scalar::new(f.ty, bits)).collect();
            let sizes = bind_sizes(codelet, &shapes, &typed).ok()?;
            let mut memory = memory.clone();
            let stop = match run(codelet, &sizes, &mut memory, &consts, 6, &Session::default()) {
                Ok(()) => None,
                Err(Stop::Failed(f)) => Some((f.values, f.worker, codelet.sites[f.site].message.clone())),
                Err(stop) => panic!("{stop:?}"),
            };
            for (field, all) in codelet.fields.values().zip(&mut memory.0) {
                let is_nan = |bits: &u64| Scalar::new(field.ty, *bits).as_float().is_some_and(f64::is_nan);
                all.iter_mut().filter(|bits| is_nan(bits)).for_each(|bits| *bits = u64::MAX);
            }
            Some((stop, memory.0))
        });
        assert_eq!(ended[0], ended[1]);
        if ended[0].is_none() {
            return false;
        }
    }
    true
}
