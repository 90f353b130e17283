//! Many specifications to code, in parallel.
//!
//! Invariant: the bytes depend on the specification and the host only; equal specifications are compiled once; an
//! error is that of the first specification that has one.

use crate::host::Host;
use crate::lower;
use crate::memory::Code;
use crate::spec::KernelSpec;
use crate::validate::{CodegenError, validate};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_frontend::FunctionBuilderContext;
use girder_source::par_map;
use rustc_hash::FxHashMap;

/// Bytes of stack that a kernel may use.
const FRAME_BYTES: u32 = 512 << 10;

/// Machine code that is not yet in memory that may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernels {
    /// Position-free code of each distinct kernel.
    pub codes: Vec<Vec<u8>>,
    /// Which of `codes` each specification has.
    pub index: Vec<usize>,
}

impl Kernels {
    /// Places the code in memory.
    pub fn load(&self, host: &Host) -> Result<Code, CodegenError> {
        let codes: Vec<&[u8]> = self.codes.iter().map(Vec::as_slice).collect();
        Code::new(host, &codes, &self.index)
    }
}

/// Compiles for this machine; kernel n of the result is that of specification n.
pub fn compile(kernels: &[KernelSpec<'_>]) -> Result<Code, CodegenError> {
    let host = Host::detect()?;
    compile_for(&host, kernels)?.load(&host)
}

/// Compiles for a given machine, to bytes.
pub fn compile_for(host: &Host, kernels: &[KernelSpec<'_>]) -> Result<Kernels, CodegenError> {
    let (distinct, index) = distinct(kernels);
    let codes = par_map(distinct.len(), |n| machine_code(host, &kernels[distinct[n]]));
    Ok(Kernels { codes: codes.into_iter().collect::<Result<_, _>>()?, index })
}

/// One kernel in Cranelift's text, before its optimiser.
pub fn clif_text(kernel: &KernelSpec<'_>) -> Result<String, CodegenError> {
    validate(kernel)?;
    let host = Host::detect()?;
    Ok(lower::lower(kernel, &host, &mut FunctionBuilderContext::new()).display().to_string())
}

/// The first of each group of equal specifications, and each one's group.
fn distinct(kernels: &[KernelSpec<'_>]) -> (Vec<usize>, Vec<usize>) {
    let mut distinct: Vec<usize> = Vec::new();
    let mut by_codelet: FxHashMap<*const girder_ir::codelet::Codelet, Vec<usize>> = FxHashMap::default();
    let index = kernels.iter().enumerate().map(|(n, kernel)| {
        let groups = by_codelet.entry(std::ptr::from_ref(kernel.codelet)).or_default();
        if let Some(&group) = groups.iter().find(|&&g| kernels[distinct[g]].same(kernel)) {
            return group;
        }
        groups.push(distinct.len());
        distinct.push(n);
        distinct.len() - 1
    });
    let index = index.collect();
    (distinct, index)
}

fn machine_code(host: &Host, kernel: &KernelSpec<'_>) -> Result<Vec<u8>, CodegenError> {
    validate(kernel)?;
    let refused = |reason: String| CodegenError::Backend { codelet: kernel.codelet.name.to_string(), reason };
    let mut context = Context::for_function(lower::lower(kernel, host, &mut FunctionBuilderContext::new()));
    let code = match context.compile(&*host.isa, &mut ControlPlane::default()) {
        Ok(code) => code,
        Err(error) => return Err(refused(format!("{:?}", error.inner))),
    };
    if !code.buffer.relocs().is_empty() {
        return Err(refused("the code is not position-free".to_string()));
    }
    let frame = code.buffer.frame_layout().map_or(0, |f| f.frame_to_fp_offset);
    if frame > FRAME_BYTES {
        return Err(refused(format!("it needs {frame} bytes of stack")));
    }
    Ok(code.code_buffer().to_vec())
}
