//! The access of a family's vertices to their fields: in place, or through scratch memory.
//!
//! Invariant: fields in scratch memory are consecutive in a vertex's part, aligned to 8 bytes, and the parts of the
//! vertices of a compute set are disjoint.

use crate::error::HostError;
use crate::kernels::{KernelId, KernelSet, RowLines, ShapedId};
use crate::windows::JoinedFamily;
use cranelift_entity::SecondaryMap;
use girder_codelet::kernel::{Addressing, FieldLayout, KernelSpec};
use girder_fusion::strides::{field_strides, line};
use girder_ir::codelet::Dir;
use girder_ir::family::{Const, Family, Field, Offset};
use girder_ir::graph::Graph;
use girder_ir::ids::FamilyId;

/// The plan of a family's vertices.
#[derive(Clone, Debug)]
pub struct FamilyPlan {
    /// The family that runs instead, with fewer vertices and longer fields, if vertices were joined.
    pub joined: Option<Box<JoinedFamily>>,
    /// The kernel that runs a vertex.
    pub kernel: KernelId,
    /// The access to each edge field.
    pub fields: Vec<FieldAccess>,
    /// Bytes of one vertex's scratch.
    pub row_bytes: u64,
    /// First byte of the vertices' scratch memory in that of the compute set.
    pub scratch: u64,
    /// The way in which the kernel finds the fields of a vertex.
    pub addressing: Addressing,
}

/// The access of a vertex to a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldAccess {
    /// At the addresses of its elements.
    InPlace,
    /// In the vertex's scratch.
    Scratch {
        /// First byte in the vertex's scratch.
        at: u64,
        /// Whether the elements are fetched before the vertex runs.
        fetch: bool,
        /// Whether the elements are sent back after it.
        send: bool,
    },
}

/// A family whose kernel is not requested yet, because its addressing depends on the size of all scratch memory.
#[derive(Clone)]
pub(super) struct ScratchFamily {
    joined: Option<Box<JoinedFamily>>,
    shaped: ShapedId,
    fields: Vec<FieldAccess>,
    strides: Vec<FieldLayout>,
    row_bytes: u64,
    scratch: u64,
    vertices: u64,
}

impl ScratchFamily {
    /// Plans the accesses of a family, or of the joined family that runs instead; its scratch memory begins at
    /// `scratch`. Returns `None` if it has no vertex.
    pub fn new(
        graph: &Graph,
        kernels: &mut KernelSet<'_>,
        (family, joined): (&Family, Option<Box<JoinedFamily>>),
        scratch: u64,
    ) -> Result<Option<ScratchFamily>, HostError> {
        let family = joined.as_deref().map_or(family, |joined| &joined.family);
        let Some(shaped) = kernels.shaped(family)? else { return Ok(None) };
        let codelet = &graph.codelets[family.codelet];
        let mut row_bytes = 0;
        let (mut fields, mut strides) = (Vec::new(), Vec::new());
        for field in &family.fields {
            let decl = &codelet.fields[field.field];
            let size = decl.ty.bytes();
            let in_place = field_strides(field, size);
            fields.push(match in_place {
                Some(_) => FieldAccess::InPlace,
                None => {
                    let at = row_bytes;
                    row_bytes += (field.len() * size as u64).next_multiple_of(8);
                    let fetch = !(decl.dir == Dir::Out && kernels.writes_all(shaped, field.field));
                    FieldAccess::Scratch { at, fetch, send: decl.dir != Dir::In }
                }
            });
            strides.push(in_place.unwrap_or_else(|| KernelSpec::contiguous(&field.shape(), size)));
        }
        let vertices = family.domain.count();
        Ok(Some(ScratchFamily { joined, shaped, fields, strides, row_bytes, scratch, vertices }))
    }

    /// Returns the bytes of scratch memory of all vertices.
    pub fn bytes(&self) -> u64 {
        self.row_bytes * self.vertices
    }
}

/// Requests the kernels of all families; variables and scratch memory take `bytes`.
pub(super) fn request_kernels<'g>(
    graph: &'g Graph,
    kernels: &mut KernelSet<'g>,
    mut families: SecondaryMap<FamilyId, Option<ScratchFamily>>,
    bytes: u64,
) -> SecondaryMap<FamilyId, Option<FamilyPlan>> {
    let mut plans: SecondaryMap<FamilyId, Option<FamilyPlan>> = SecondaryMap::new();
    for (id, family) in &graph.families {
        let Some(found) = families[id].take() else { continue };
        let ScratchFamily { joined, shaped, fields, strides, row_bytes, scratch, .. } = found;
        let family = joined.as_deref().map_or(family, |joined| &joined.family);
        let addressing = addressing(family, &fields, bytes);
        let lines = row_lines(graph, family, (&fields, row_bytes), addressing);
        let kernel = kernels.kernel(shaped, strides, addressing, lines);
        plans[id] = Some(FamilyPlan { joined, kernel, fields, row_bytes, scratch, addressing });
    }
    plans
}

fn addressing(family: &Family, fields: &[FieldAccess], bytes: u64) -> Addressing {
    let straight = |(field, access): (&Field, &FieldAccess)| match access {
        FieldAccess::Scratch { .. } => true,
        FieldAccess::InPlace => field.parts.first().is_none_or(|p| line(&p.offset, &family.domain).is_some()),
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

/// Returns the lines on which the vertices of a family lie: one line, or one for each value of the outer indices.
fn row_lines(
    graph: &Graph,
    family: &Family,
    (fields, row_bytes): (&[FieldAccess], u64),
    addressing: Addressing,
) -> Option<RowLines> {
    let last = family.domain.0.len().checked_sub(1)?;
    let whole = addressing == Addressing::Affine;
    let step = |(field, access): (&Field, &FieldAccess)| match (access, field.parts.first()) {
        (FieldAccess::Scratch { .. }, _) => Some(row_bytes as i64),
        (FieldAccess::InPlace, None) => Some(0),
        (FieldAccess::InPlace, Some(part)) => {
            let size = i64::from(graph.vars[part.var].ty.bytes());
            match (&part.offset, whole) {
                (offset, true) => line(offset, &family.domain).map(|(_, step)| step * size),
                (Offset::Affine(affine), false) => Some(affine.coef.get(last).copied().unwrap_or(0) * size),
                (Offset::Table(_), false) => None,
            }
        }
    };
    let steps = family.fields.iter().zip(fields).map(step).collect::<Option<_>>()?;
    let length = if whole { u64::MAX } else { u64::from(family.domain.0[last]).max(1) };
    let shares_consts = family.consts.iter().all(|(_, c)| matches!(c, Const::Uniform(_)));
    Some(RowLines { length, steps, shares_consts })
}
