//! Executable memory.
//!
//! Invariant: the code of [`Code::kernel`] stays mapped, readable and executable as long as its [`Code`] lives, and
//! nothing writes to it after `Code::new`.

use crate::abi::KernelFn;
use crate::target::CodeTarget;
use crate::validate::CodegenError;
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleError, default_libcall_names};
use std::sync::Mutex;

/// Compiled kernels, ready to run.
pub struct Code {
    /// Owns the memory. Locked only to free it.
    module: Mutex<Option<JITModule>>,
    entries: Vec<KernelFn>,
    bytes: usize,
}

impl Code {
    /// Places the machine code of kernels in executable memory; `index` records the code of each kernel in the caller's
    /// list. The code has no relocations.
    pub(crate) fn new(target: &CodeTarget, codes: &[&[u8]], index: &[usize]) -> Result<Code, CodegenError> {
        let refused = |e: ModuleError| CodegenError::Backend { codelet: String::new(), reason: e.to_string() };
        let mut module = JITModule::new(JITBuilder::with_isa(target.isa(), default_libcall_names()));
        let mut ids: Vec<FuncId> = Vec::with_capacity(codes.len());
        let signature = module.make_signature();
        for (n, bytes) in codes.iter().enumerate() {
            let id = module.declare_function(&format!("kernel{n}"), Linkage::Local, &signature).map_err(refused)?;
            module.define_function_bytes(id, 64, bytes, &[]).map_err(refused)?;
            ids.push(id);
        }
        module.finalize_definitions().map_err(refused)?;
        let entry = |&n: &usize| {
            let address: *const u8 = module.get_finalized_function(ids[n]);
            // SAFETY: the address is that of a finalised function, which `lower` gave the signature of `KernelFn` in
            // the host's calling convention. `KernelFn` is itself unsafe to call; `abi` states when a call is sound.
            unsafe { std::mem::transmute::<*const u8, KernelFn>(address) }
        };
        let entries = index.iter().map(entry).collect();
        let bytes = codes.iter().map(|c| c.len()).sum();
        Ok(Code { module: Mutex::new(Some(module)), entries, bytes })
    }

    /// Returns the kernel of the n-th specification. It may be called while this value lives.
    ///
    /// # Panics
    /// If there is no n-th specification.
    pub fn kernel(&self, n: usize) -> KernelFn {
        self.entries[n]
    }

    /// Returns the number of specifications.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no specifications.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the size of the machine code in bytes. Equal kernels share their code.
    pub fn code_bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        let module = self.module.get_mut().map(Option::take).unwrap_or_else(|e| e.into_inner().take());
        if let Some(module) = module {
            // SAFETY: `KernelFn`s may be called only while this value lives, so nothing runs in the memory.
            unsafe { module.free_memory() }
        }
    }
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Code").field("kernels", &self.entries.len()).field("bytes", &self.bytes).finish()
    }
}
