//! Compiles the kernels of a plan, or prints their code.
//!
//! Invariant: the printed code is the code that runs.

use crate::error::EngineError;
use crate::kernel::Kernel;
use crate::natives::imports;
use cranelift_entity::PrimaryMap;
use girder_codegen::{CodeTarget, CodegenError, asm_text, clif_text, compile_for};
use girder_codelet::KernelSpec;
use girder_host::{KernelId, KernelTable};
use girder_ir::graph::Graph;
use std::sync::Arc;

/// The form of printed code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodeForm {
    /// In Cranelift's text, before its optimiser.
    Clif,
    /// In assembly.
    Asm,
}

/// Detects the host for which code is compiled.
pub(crate) fn detect() -> Result<CodeTarget, EngineError> {
    CodeTarget::detect().map_err(refused)
}

/// Compiles all kernels of a table.
pub(crate) fn compile_kernels(
    target: &CodeTarget,
    graph: &Graph,
    table: &KernelTable,
) -> Result<PrimaryMap<KernelId, Kernel>, EngineError> {
    let specs: Vec<KernelSpec<'_>> = table.kernels.keys().map(|id| table.spec(graph, id)).collect();
    let code = Arc::new(compile_for(target, &specs).and_then(|kernels| kernels.load(target)).map_err(refused)?);
    let kernel = |(n, id): (usize, KernelId)| Kernel {
        function: code.kernel(n),
        _code: code.clone(),
        imports: imports(target.level()),
        byte_ranges: table.byte_ranges(graph, id),
        writes: table.writes(graph, id),
        multi: table.codelet(graph, id).multi,
    };
    Ok(table.kernels.keys().enumerate().map(kernel).collect())
}

/// Returns the code of all kernels of a table as text.
pub(crate) fn kernel_text(
    target: &CodeTarget,
    graph: &Graph,
    table: &KernelTable,
    form: CodeForm,
) -> Result<String, EngineError> {
    let mut text = format!("; {}\n", target.name());
    for (n, id) in table.kernels.keys().enumerate() {
        let spec = table.spec(graph, id);
        let shapes = spec.codelet.edges().map(|(f, decl)| format!("{}{:?}", decl.name, &spec.sizes.shapes[f][..]));
        let shapes: Vec<String> = shapes.collect();
        text += &format!("\n; kernel {n}: codelet {}({})\n", spec.codelet.name, shapes.join(", "));
        text += &match form {
            CodeForm::Clif => clif_text(target, &spec),
            CodeForm::Asm => asm_text(target, &spec),
        }
        .map_err(refused)?;
    }
    Ok(text)
}

fn refused(error: CodegenError) -> EngineError {
    EngineError::Code(error.to_string())
}
