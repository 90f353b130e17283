//! Translates one codelet to one Cranelift function.
//!
//! - `frame`: the function around the body: instances, workers, field addresses, exits
//! - `stmt`: statements and loops
//! - `expr`, `arith`, `convert`: expressions
//! - `address`: the addresses of elements, and the bounds checks of their indices
//! - `iterations`: the limits on loops
//! - `reduce`, `amp`: the two large statements; `neighbours`: reductions that are translated together
//! - `vector`: innermost loops and reductions, four or two elements at a time
//!
//! # Note: Values
//! `bool` is an `I8` that is 0 or 1, in memory too. Signedness is in the operations. Scalar locals are variables of
//! the function builder, local arrays are stack slots.
//!
//! Invariants: operations are emitted in the order of evaluation that `girder_codelet::interpret` defines; after a
//! statement that does not fall through, nothing is emitted until a new block begins.

mod address;
mod amp;
mod arith;
mod convert;
mod expr;
mod frame;
mod loops;
mod neighbours;
mod if_conversion;
mod reduce;
mod stmt;
mod iterations;
mod vector;

use crate::helpers::Import;
use crate::target::{CodeTarget, Features};
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::{F32, F64, I8, I16, I32, I64};
use cranelift_codegen::ir::{
    AbiParam, AliasRegion, AliasRegionData, Block, Function, InstBuilder, MemFlagsData, Signature, StackSlot, Type,
    UserFuncName, Value,
};
use cranelift_codegen::isa::CallConv;
use cranelift_entity::SecondaryMap;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use girder_codelet::cost::Located;
use girder_codelet::fold::{Folded, fold};
use girder_codelet::kernel::KernelSpec;
use girder_ir::codelet::{Codelet, Dir, Label};
use girder_ir::ids::{ExprId, FieldId, LocalId, SiteId};
use girder_ir::types::ElemType;
use girder_simd::Machine;
use std::cell::Cell;

/// The namespace of vector kernels among the functions that a kernel calls.
pub(crate) const NAMESPACE: u32 = 1;

/// The translation of a specification.
pub(crate) struct Lowered {
    pub function: Function,
    /// The vector kernels that it calls.
    pub kernels: Vec<Machine>,
    /// A readable line for each loop that stays scalar.
    pub scalar: Vec<String>,
}

/// Translates a validated specification to a function and the vector kernels that it calls. With `listed`, the result
/// has listings.
pub(crate) fn lower(
    spec: &KernelSpec<'_>,
    target: &CodeTarget,
    listed: bool,
    context: &mut FunctionBuilderContext,
) -> Lowered {
    let convention = target.isa.default_call_conv();
    let mut signature = Signature::new(convention);
    signature.params.extend([AbiParam::new(I64); 3]);
    signature.returns.push(AbiParam::new(I64));
    let mut func = Function::with_name_signature(UserFuncName::testcase(&*spec.codelet.name), signature);
    let mut lower = Lower::new(spec, target.features, convention, FunctionBuilder::new(&mut func, context));
    lower.listed = listed;
    lower.kernel();
    let (kernels, scalar) = (lower.kernels, lower.scalar);
    lower.b.finalize(target.isa.frontend_config());
    Lowered { function: func, kernels, scalar }
}

/// Returns the Cranelift type that holds an element.
pub(crate) fn clif(ty: ElemType) -> Type {
    match ty {
        ElemType::Bool | ElemType::U8 | ElemType::I8 => I8,
        // `validate` rejects `f16`. It takes two bytes.
        ElemType::U16 | ElemType::I16 | ElemType::F16 => I16,
        ElemType::U32 | ElemType::I32 => I32,
        ElemType::F32 => F32,
        ElemType::U64 | ElemType::I64 => I64,
        ElemType::F64 => F64,
    }
}

/// The storage of a local.
#[derive(Clone, Copy, Debug)]
enum LocalStorage {
    Variable(Variable),
    Array(StackSlot),
}

/// The targets of `break` and `continue` for a label, and whether they are used.
struct Jump {
    label: Label,
    leave: Target,
    again: Option<Target>,
}

#[derive(Clone, Copy)]
struct Target {
    block: Block,
    used: bool,
}

/// An innermost loop, identified by what changes from iteration to iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Innermost {
    Index(LocalId),
    Vertices,
}

/// Values and blocks of the whole function.
struct Frame {
    batch: Value,
    /// The number of the instance.
    instance: Value,
    /// `I64`; zero unless the codelet is `multi`.
    worker: Value,
    /// The counters of this instance and worker; unused if nothing is counted.
    counters: Value,
    /// The table of imports.
    imports: Value,
    /// The address of the stop flag.
    cancel: Value,
    /// Its parameters are the site (`I32`) and the two values of the failure.
    failed: Block,
    cancelled: Block,
    /// The target of `return`.
    end: Block,
}

/// The translation of one codelet.
pub(crate) struct Lower<'a, 'b> {
    b: FunctionBuilder<'b>,
    spec: &'a KernelSpec<'a>,
    codelet: &'a Codelet,
    features: Features,
    convention: CallConv,
    folded: Folded,
    /// The number of reads of each local.
    reads: SecondaryMap<LocalId, u32>,
    /// For edge fields, the address of element (0, …, 0). For `const` fields, the value.
    fields: SecondaryMap<FieldId, Option<Value>>,
    field_regions: SecondaryMap<FieldId, Option<AliasRegion>>,
    locals: SecondaryMap<LocalId, Option<LocalStorage>>,
    local_regions: SecondaryMap<LocalId, Option<AliasRegion>>,
    /// The loop depth at the current position.
    depth: u32,
    /// The loop depth at which each local was last set.
    local_depths: SecondaryMap<LocalId, u32>,
    /// The number that is added to an index where it is read. It is not zero only in copies of a body, for example for
    /// the groups of `vector`.
    ahead: SecondaryMap<LocalId, i64>,
    /// The number of vertices between the first of the unrolled groups and the one for which code is emitted.
    vertices_ahead: i64,
    /// The innermost loop that encloses the current position, if the current code runs in every iteration.
    innermost: Option<Innermost>,
    /// The unrolled group of `vector` for which code is emitted.
    group: u64,
    jumps: Vec<Jump>,
    /// The number of iterations that count towards the limit of this vertex so far, `I64`.
    spent: Variable,
    /// Stack slots for lanes that no reduction uses at present.
    free_slots: Vec<StackSlot>,
    /// The vector kernels that are called.
    kernels: Vec<Machine>,
    /// Whether to make readable listings of the kernels, and to record why loops stay scalar.
    listed: bool,
    /// Why the last loop that was analysed has no plan.
    refusal: Cell<Option<&'static str>>,
    /// A line for each loop that stays scalar.
    scalar: Vec<String>,
    /// The points whose executions are counted.
    points: Option<Located<'a>>,
    frame: Option<Frame>,
}

impl<'a, 'b> Lower<'a, 'b> {
    fn new(
        spec: &'a KernelSpec<'a>,
        features: Features,
        convention: CallConv,
        mut b: FunctionBuilder<'b>,
    ) -> Lower<'a, 'b> {
        let folded = fold(spec.codelet, spec.sizes);
        let spent = b.declare_var(I64);
        Lower {
            b,
            spec,
            codelet: spec.codelet,
            features,
            convention,
            folded,
            reads: girder_codelet::locals::reads(spec.codelet, &spec.codelet.body),
            fields: SecondaryMap::new(),
            field_regions: SecondaryMap::new(),
            locals: SecondaryMap::new(),
            local_regions: SecondaryMap::new(),
            depth: 0,
            local_depths: SecondaryMap::new(),
            ahead: SecondaryMap::new(),
            vertices_ahead: 0,
            innermost: None,
            group: 0,
            jumps: Vec::new(),
            spent,
            free_slots: Vec::new(),
            kernels: Vec::new(),
            listed: false,
            refusal: Cell::new(None),
            scalar: Vec::new(),
            points: spec.points.filter(|p| !p.is_empty()).map(|p| p.located(spec.codelet)),
            frame: None,
        }
    }

    /// Returns the frame. It exists once the first instance begins.
    fn frame(&self) -> &Frame {
        self.frame.as_ref().expect("a body is translated inside its frame")
    }

    /// Records why a body has no plan. The first recorded reason is kept, as it is closest to the cause.
    fn refuse<T>(&self, why: &'static str) -> Option<T> {
        self.refusal.set(self.refusal.get().or(Some(why)));
        None
    }

    /// Records that a loop stays scalar, with the reason recorded since `refusal` was last cleared.
    fn stays_scalar(&mut self, what: &str, index: LocalId) {
        if self.listed {
            let name = &self.codelet.locals[index].name;
            let why = self.refusal.get().unwrap_or("vectors would not pay");
            self.scalar.push(format!("; {what} over `{name}` stays scalar: {why}\n"));
        }
    }

    fn ty(&self, e: ExprId) -> ElemType {
        self.codelet.exprs[e].ty
    }

    fn i64(&mut self, v: i64) -> Value {
        self.b.ins().iconst(I64, v)
    }

    /// Seals a block, whose predecessors are all known, and continues in it.
    fn enter(&mut self, block: Block) {
        self.b.seal_block(block);
        self.b.switch_to_block(block);
    }

    /// Declares an alias region. An access of the region aliases only accesses of the same region.
    fn region(&mut self, id: u32, what: String) -> AliasRegion {
        self.b.func.dfg.alias_regions.insert(AliasRegionData { user_id: id, description: what.into() })
    }

    /// Returns the flags for an element of a field.
    fn field_flags(&self, field: FieldId) -> MemFlagsData {
        let flags = MemFlagsData::new().with_notrap().with_alias_region(self.field_regions[field]);
        if self.codelet.fields[field].dir == Dir::In { flags.with_readonly() } else { flags }
    }

    /// Returns the flags for an element of a local array.
    fn local_flags(&self, local: LocalId) -> MemFlagsData {
        MemFlagsData::new().with_notrap().with_alias_region(self.local_regions[local])
    }

    /// Emits a check that fails at `site` if `bad` is true. The values are computed only then.
    fn guard(&mut self, bad: Value, site: SiteId, values: impl FnOnce(&mut Self) -> [Value; 2]) {
        let fails = self.b.create_block();
        let next = self.b.create_block();
        self.b.set_cold_block(fails);
        self.b.ins().brif(bad, fails, &[], next, &[]);
        self.enter(fails);
        let [v, w] = values(self);
        let site = self.b.ins().iconst(I32, i64::from(site.as_u32()));
        let failed = self.frame().failed;
        self.b.ins().jump(failed, &[site.into(), v.into(), w.into()]);
        self.enter(next);
    }

    /// Works like [`Lower::guard`], with zeros as values.
    fn guard_plain(&mut self, bad: Value, site: SiteId) {
        self.guard(bad, site, |l| {
            let zero = l.i64(0);
            [zero, zero]
        });
    }

    /// Returns whether a check may be omitted.
    fn is_proven(&self, site: SiteId) -> bool {
        self.spec.proven.contains(site)
    }

    /// Emits code that returns from the function if the stop flag is set.
    ///
    /// The load is atomic so that the backend does not merge two of them.
    fn poll(&mut self) {
        let (cancel, cancelled) = (self.frame().cancel, self.frame().cancelled);
        let flag = self.b.ins().atomic_load(I8, MemFlagsData::new().with_notrap(), cancel);
        let next = self.b.create_block();
        self.b.ins().brif(flag, cancelled, &[], next, &[]);
        self.enter(next);
    }

    /// Loads the address of a function of [`Imports`](crate::Imports).
    fn import(&mut self, import: Import, ty: ElemType) -> Value {
        self.imported(8 * (import as i32 + i32::from(ty == ElemType::F64)))
    }

    /// Loads the address of a function from a byte offset of [`Imports`](crate::Imports).
    fn imported(&mut self, byte: i32) -> Value {
        let imports = self.frame().imports;
        let flags = MemFlagsData::new().with_notrap().with_readonly().with_can_move();
        self.b.ins().load(I64, flags, imports, Offset32::new(byte))
    }

    /// Calls a function of [`Imports`](crate::Imports) whose parameters and result have one type.
    fn call_import(&mut self, import: Import, ty: ElemType, args: &[Value]) -> Value {
        let callee = self.import(import, ty);
        let mut signature = Signature::new(self.convention);
        signature.params.extend(args.iter().map(|_| AbiParam::new(clif(ty))));
        signature.returns.push(AbiParam::new(clif(ty)));
        let signature = self.b.import_signature(signature);
        let call = self.b.ins().call_indirect(signature, callee, args);
        self.b.inst_results(call)[0]
    }
}
