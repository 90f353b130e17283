//! Compiles many specifications to code, in parallel.
//!
//! Invariant: the bytes depend only on the specification and the host. Equal specifications are compiled once. An error
//! is that of the first specification that has one.

use crate::lower::{self, Lowered, NAMESPACE};
use crate::memory::Code;
use crate::target::CodeTarget;
use crate::validate::{CodegenError, validate};
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::ExternalName;
use cranelift_codegen::ir::function::FunctionParameters;
use cranelift_codegen::{CompiledCode, Context, FinalizedRelocTarget};
use cranelift_frontend::FunctionBuilderContext;
use girder_codelet::kernel::KernelSpec;
use girder_simd::Machine;
use girder_source::par_map_uneven;
use rustc_hash::FxHashMap;

/// The number of bytes of stack that a kernel may use.
const FRAME_BYTES: u32 = 512 << 10;

/// Machine code that is not yet in executable memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernels {
    /// The position-independent code of each distinct kernel.
    pub codes: Vec<Vec<u8>>,
    /// The index in `codes` for each specification.
    pub index: Vec<usize>,
}

impl Kernels {
    /// Places the code in executable memory.
    pub fn load(&self, target: &CodeTarget) -> Result<Code, CodegenError> {
        let codes: Vec<&[u8]> = self.codes.iter().map(Vec::as_slice).collect();
        Code::new(target, &codes, &self.index)
    }
}

/// Compiles for this machine. Kernel n of the result is that of specification n.
pub fn compile(kernels: &[KernelSpec<'_>]) -> Result<Code, CodegenError> {
    let target = CodeTarget::detect()?;
    compile_for(&target, kernels)?.load(&target)
}

/// Compiles to bytes for a given machine.
pub fn compile_for(target: &CodeTarget, kernels: &[KernelSpec<'_>]) -> Result<Kernels, CodegenError> {
    let (distinct, index) = distinct(kernels);
    let length = |&n: &usize| kernels[n].codelet.exprs.len() as u64;
    let codes = par_map_uneven(&distinct, length, |&n| machine_code(target, &kernels[n]));
    Ok(Kernels { codes: codes.into_iter().collect::<Result<_, _>>()?, index })
}

/// Prints one kernel in Cranelift's text format, before Cranelift optimises it.
pub fn clif_text(target: &CodeTarget, kernel: &KernelSpec<'_>) -> Result<String, CodegenError> {
    Ok(lowered(target, kernel, false)?.function.display().to_string())
}

/// Prints the vector kernels of one kernel; the text is empty if it has none.
///
/// # Errors
/// If the specification is rejected.
pub fn simd_text(target: &CodeTarget, kernel: &KernelSpec<'_>) -> Result<String, CodegenError> {
    let kernels = lowered(target, kernel, true)?.kernels;
    Ok(kernels.into_iter().filter_map(|machine| machine.kernel).collect::<Vec<_>>().join("\n"))
}

/// Prints one kernel in assembly: why loops stay scalar, the code from Cranelift, and the vector kernels.
pub fn asm_text(target: &CodeTarget, kernel: &KernelSpec<'_>) -> Result<String, CodegenError> {
    let Lowered { function, kernels, scalar } = lowered(target, kernel, true)?;
    let mut context = Context::for_function(function);
    context.set_disasm(true);
    let refused = |reason: String| CodegenError::Backend { codelet: kernel.codelet.name.to_string(), reason };
    let code = context.compile(&*target.isa, &mut ControlPlane::default());
    let code = code.map_err(|error| refused(format!("{:?}", error.inner)))?;
    let mut text = scalar.concat();
    text += code.vcode.as_deref().unwrap_or_default();
    for (n, machine) in kernels.iter().enumerate() {
        text += &format!("vector kernel {n}, called as u{NAMESPACE}:{n}:\n");
        text += machine.listing.as_deref().unwrap_or_default();
    }
    Ok(text)
}

/// Lowers a kernel to a Cranelift function, its vector kernels, and the reasons why loops stay scalar.
fn lowered(target: &CodeTarget, kernel: &KernelSpec<'_>, listed: bool) -> Result<Lowered, CodegenError> {
    validate(kernel)?;
    Ok(lower::lower(kernel, target, listed, &mut FunctionBuilderContext::new()))
}

/// Returns the first of each group of equal specifications, and the group of each specification.
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

fn machine_code(target: &CodeTarget, kernel: &KernelSpec<'_>) -> Result<Vec<u8>, CodegenError> {
    let Lowered { function, kernels, .. } = lowered(target, kernel, false)?;
    let refused = |reason: String| CodegenError::Backend { codelet: kernel.codelet.name.to_string(), reason };
    let params = function.params.clone();
    let mut context = Context::for_function(function);
    let code = match context.compile(&*target.isa, &mut ControlPlane::default()) {
        Ok(code) => code,
        Err(error) => return Err(refused(format!("{:?}", error.inner))),
    };
    let linked = link(code, &kernels, &params);
    let linked = linked.ok_or_else(|| refused("the code is not position-free".to_string()))?;
    let frame = code.buffer.frame_layout().map_or(0, |f| f.frame_to_fp_offset);
    if frame > FRAME_BYTES {
        return Err(refused(format!("it needs {frame} bytes of stack")));
    }
    Ok(linked)
}

/// Appends the vector kernels to the code of a kernel and resolves the calls of them. Returns `None` if the code has
/// any other relocation.
fn link(code: &CompiledCode, kernels: &[Machine], params: &FunctionParameters) -> Option<Vec<u8>> {
    let mut bytes = code.code_buffer().to_vec();
    let entries: Vec<usize> = kernels
        .iter()
        .map(|machine| {
            bytes.resize(bytes.len().next_multiple_of(Machine::ALIGNMENT), 0);
            let start = bytes.len();
            bytes.extend_from_slice(&machine.bytes);
            start + machine.entry
        })
        .collect();
    for reloc in code.buffer.relocs() {
        let FinalizedRelocTarget::ExternalName(ExternalName::User(name)) = reloc.target else { return None };
        let name = params.user_named_funcs().get(name)?;
        if reloc.kind != Reloc::X86CallPCRel4 || name.namespace != NAMESPACE {
            return None;
        }
        let at = reloc.offset as usize;
        let distance = *entries.get(name.index as usize)? as i64 + reloc.addend - at as i64;
        bytes[at..at + 4].copy_from_slice(&(distance as i32).to_le_bytes());
    }
    Some(bytes)
}
