//! How every family runs in mode `fast`, and the kernels that it takes.
//!
//! Invariant: a kernel is wanted for the shapes, strides and addressing that the tasks built from this code launch it with.

use crate::counts::Counting;
use crate::error::EngineError;
use crate::hosted::Hosted;
use crate::kernel::Kernel;
use crate::kernels::{CodeForm, KernelSet, RowLines};
use crate::maps::{Fusion, fusions};
use crate::products::{Call, of_family};
use crate::strides::{field_strides, line};
use crate::windows::joined;
use cranelift_entity::SecondaryMap;
use girder_codegen::abi::Addressing;
use girder_codegen::{FieldLayout, KernelSpec};
use girder_ir::codelet::Dir;
use girder_ir::family::{Const, Family, Field, Offset};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, FamilyId, FieldId, StepId};
use girder_ir::layout::HostLayout;

/// What mode `fast` has compiled.
pub struct FastCode {
    /// Of the variables that it reaches.
    host: HostLayout,
    pub(super) kernels: Vec<Kernel>,
    /// `None` for families without vertices, and for products.
    pub(super) families: SecondaryMap<FamilyId, Option<FamilyCode>>,
    /// All products of a set.
    pub(super) products: SecondaryMap<ComputeSetId, Vec<Call>>,
    /// Steps at which several run as one.
    pub(super) fusions: SecondaryMap<StepId, Option<Fusion>>,
    /// Of the variables, rounded up.
    pub(super) var_bytes: u64,
    /// Of the scratch of the set that needs most.
    pub(super) scratch_bytes: u64,
}

/// How the vertices of a family run.
#[derive(Clone)]
pub(super) struct FamilyCode {
    /// What runs in place of the family: fewer vertices with longer windows.
    pub joined: Option<Box<Family>>,
    pub kernel: usize,
    pub addressing: Addressing,
    /// One per edge field.
    pub fields: Vec<Access>,
    /// Bytes of one vertex's scratch.
    pub row_bytes: u64,
    /// First byte of its vertices' scratch in the set's.
    pub scratch: u64,
}

/// How a vertex reaches a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Where its elements are.
    InPlace,
    /// At this byte of the vertex's scratch.
    Scratch {
        at: u64,
        /// Its elements are needed.
        fetch: bool,
        /// Its elements are written.
        send: bool,
    },
}

impl FastCode {
    /// Decides how every family runs and compiles its kernel.
    pub(crate) fn compile(hosted: Hosted<'_>, counting: Option<&Counting>) -> Result<FastCode, EngineError> {
        let (wanted, code) = FastCode::decide(hosted, counting)?;
        Ok(FastCode { kernels: wanted.compile()?, ..code })
    }

    /// The code of a graph before it has a place on tiles, on which nothing of it depends; `host` is where the fast engine
    /// keeps its variables. What a run counts is not counted.
    ///
    /// # Errors
    /// As [`Executable::compile`](crate::Executable::compile).
    pub fn ahead(graph: &Graph, host: &HostLayout) -> Result<FastCode, EngineError> {
        FastCode::compile(Hosted { graph, host }, None)
    }

    /// Whether it is the code for variables that lie so.
    pub(crate) fn is_for(&self, host: &HostLayout) -> bool {
        self.host == *host
    }

    /// The kernels as text.
    pub(crate) fn text(hosted: Hosted<'_>, form: CodeForm) -> Result<String, EngineError> {
        FastCode::decide(hosted, None)?.0.text(form)
    }

    /// Decides how every family runs; the kernels that it needs are not yet compiled.
    fn decide<'g>(
        hosted: Hosted<'g>,
        counting: Option<&'g Counting>,
    ) -> Result<(KernelSet<'g>, FastCode), EngineError> {
        let mut wanted = KernelSet::new(hosted.graph, counting);
        let mut families: SecondaryMap<FamilyId, Option<FamilyCode>> = SecondaryMap::new();
        let mut scratch_bytes = 0;
        let mut strides = SecondaryMap::new();
        let mut products: SecondaryMap<ComputeSetId, Vec<Call>> = SecondaryMap::new();
        for (set_id, set) in &hosted.graph.sets {
            let mut used = 0;
            for &id in &set.families {
                let family = &hosted.graph.families[id];
                let Some(shaped) = wanted.shaped(family)? else { continue };
                let (sizes, facts) = wanted.known(shaped);
                // Who counts wants to know of every vertex.
                if counting.is_none()
                    && let Some(calls) = of_family(hosted, family, sizes, facts)
                {
                    products[set_id].extend(calls);
                    continue;
                }
                let joined = joined(hosted.graph, family).filter(|_| counting.is_none()).map(Box::new);
                let family = joined.as_deref().unwrap_or(family);
                let Some(shaped) = wanted.shaped(family)? else { continue };
                let (fields, layouts, row_bytes) = accesses(hosted.graph, family, |f| wanted.writes_all(shaped, f));
                let (addressing, scratch) = (Addressing::Affine, used);
                used += row_bytes * family.domain.count();
                let code = FamilyCode { joined, kernel: 0, addressing, fields, row_bytes, scratch };
                families[id] = Some(code);
                strides[id] = Some((shaped, layouts));
            }
            scratch_bytes = scratch_bytes.max(used);
        }
        let var_bytes = hosted.host.bytes.next_multiple_of(64);
        for (id, family) in &hosted.graph.families {
            if let (Some(code), Some((shaped, layouts))) = (&mut families[id], strides[id].take()) {
                let joined = code.joined.take();
                let family = joined.as_deref().unwrap_or(family);
                code.addressing = addressing(family, &code.fields, var_bytes + scratch_bytes);
                let lines = row_lines(hosted.graph, family, code);
                code.kernel = wanted.want(shaped, layouts, code.addressing, lines);
                code.joined = joined;
            }
        }
        // What is counted is asked for set by set.
        let fusions = if counting.is_some() { SecondaryMap::new() } else { fusions(hosted, &mut wanted)? };
        let host = hosted.host.clone();
        Ok((wanted, FastCode { host, kernels: Vec::new(), families, products, fusions, var_bytes, scratch_bytes }))
    }
}

/// Access and strides of each edge field, and bytes of scratch of a vertex.
fn accesses(
    graph: &Graph,
    family: &Family,
    writes_all: impl Fn(FieldId) -> bool,
) -> (Vec<Access>, Vec<FieldLayout>, u64) {
    let codelet = &graph.codelets[family.codelet];
    let mut row_bytes = 0;
    let (mut fields, mut layouts) = (Vec::new(), Vec::new());
    for field in &family.fields {
        let decl = &codelet.fields[field.field];
        let size = decl.ty.bytes();
        let in_place = field_strides(field, size);
        fields.push(match in_place {
            Some(_) => Access::InPlace,
            None => {
                let at = row_bytes;
                row_bytes += (field.len() * size as u64).next_multiple_of(8);
                let fetch = !(decl.dir == Dir::Out && writes_all(field.field));
                Access::Scratch { at, fetch, send: decl.dir != Dir::In }
            }
        });
        layouts.push(in_place.unwrap_or_else(|| KernelSpec::contiguous(&field.shape(), size)));
    }
    (fields, layouts, row_bytes)
}

fn addressing(family: &Family, fields: &[Access], bytes: u64) -> Addressing {
    let straight = |(field, access): (&Field, &Access)| match access {
        Access::Scratch { .. } => true,
        Access::InPlace => field.parts.first().is_none_or(|p| line(&p.offset, &family.domain).is_some()),
    };
    let straight: Vec<bool> = family.fields.iter().zip(fields).map(straight).collect();
    let mask = |bits: &[bool]| bits.iter().rev().fold(0, |mask, &bit| mask << 1 | u64::from(bit));
    match &straight[..] {
        all if all.iter().all(|&s| s) => Addressing::Affine,
        _ if bytes > u32::MAX as u64 => Addressing::Table64,
        some if some.contains(&true) && some.len() <= 64 => Addressing::Mixed { straight: mask(some) },
        _ => Addressing::Table32,
    }
}

/// How the rows of a family lie side by side: on one line, or on lines along the innermost index.
fn row_lines(graph: &Graph, family: &Family, code: &FamilyCode) -> Option<RowLines> {
    let last = family.domain.0.len().checked_sub(1)?;
    let whole = code.addressing == Addressing::Affine;
    let step = |(field, access): (&Field, &Access)| match (access, field.parts.first()) {
        (Access::Scratch { .. }, _) => Some(code.row_bytes as i64),
        (Access::InPlace, None) => Some(0),
        (Access::InPlace, Some(part)) => {
            let size = i64::from(graph.vars[part.var].ty.bytes());
            match (&part.offset, whole) {
                (offset, true) => line(offset, &family.domain).map(|(_, step)| step * size),
                (Offset::Affine(affine), false) => Some(affine.coef.get(last).copied().unwrap_or(0) * size),
                (Offset::Table(_), false) => None,
            }
        }
    };
    let steps = family.fields.iter().zip(&code.fields).map(step).collect::<Option<_>>()?;
    let length = if whole { u64::MAX } else { u64::from(family.domain.0[last]).max(1) };
    let shares_consts = family.consts.iter().all(|(_, c)| matches!(c, Const::Uniform(_)));
    Some(RowLines { length, steps, shares_consts })
}
