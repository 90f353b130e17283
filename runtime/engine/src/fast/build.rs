//! Tasks: what is known of a set, a fusion or a copy as launches and moves.
//!
//! Invariant: every launch and every move lies inside the arena; scratch is behind all variables.

use super::code::{Access, FamilyCode, FastCode};
use super::{byte, place};
use crate::arena::Move;
use crate::counts::Counting;
use crate::error::EngineError;
use crate::kernel::{Launch, Offsets};
use crate::maps::{Fusion, Piece};
use crate::moves::{Row, by_length, coalesce, push_elements};
use crate::products::Products;
use crate::strides::{all_instances, const_table, line};
use crate::task::{Group, Landing, RowMoves, Task};
use girder_codegen::abi::Addressing;
use girder_ir::family::{CopyFamily, Family, Field};
use girder_ir::ids::{ComputeSetId, CopyId, FamilyId};
use girder_ir::stage::Allocated;
use girder_ir::view::{View, copy_runs};

/// What tasks are built from.
pub(super) struct Build<'a> {
    pub allocated: &'a Allocated,
    pub code: &'a FastCode,
    pub counting: Option<&'a Counting>,
    pub bytes: u64,
}

impl Build<'_> {
    pub fn set(&self, id: ComputeSetId, threads: usize) -> Result<Task, EngineError> {
        let others = Task::vertices(self.groups(id)?, threads);
        let calls = &self.code.products[id];
        if calls.is_empty() {
            return Ok(others);
        }
        let products = Products::new(calls, threads, self.bytes)?;
        Ok(Task::Products { products, others: Box::new(others) })
    }

    pub fn fusion(&self, fusion: &Fusion, threads: usize) -> Result<Task, EngineError> {
        let group = |piece: &Piece| {
            let kernel = self.code.kernels[piece.kernel].clone();
            let offsets = Offsets::Affine { start: piece.start.clone(), step: piece.step.clone() };
            let launch = Launch::new(kernel, piece.rows, offsets, fusion.consts.clone(), 0, self.bytes)?;
            let (family, family_size, elements) = (fusion.family, piece.rows, piece.elements);
            Ok(Group { launch, family, family_size, order: 0, instances: None, landing: None, elements })
        };
        Ok(Task::vertices(fusion.pieces.iter().map(group).collect::<Result<_, EngineError>>()?, threads))
    }

    fn groups(&self, set: ComputeSetId) -> Result<Vec<Group>, EngineError> {
        let mut groups = Vec::new();
        for (order, &id) in self.allocated.sets[set].families.iter().enumerate() {
            if let Some(code) = &self.code.families[id] {
                groups.push(self.group(order as u32, id, code)?);
            }
        }
        Ok(groups)
    }

    fn group(&self, order: u32, id: FamilyId, code: &FamilyCode) -> Result<Group, EngineError> {
        let family = code.joined.as_deref().unwrap_or(&self.allocated.families[id]);
        let rows = family.domain.count();
        let (consts, const_step) = const_table(family, 0..rows);
        let kernel = self.code.kernels[code.kernel].clone();
        let offsets = self.row_offsets(family, code);
        let numbers = self.counting.map_or(0, |c| c.row(self.allocated, family.codelet));
        let launch = Launch::new(kernel, rows, offsets, consts, const_step, self.bytes)?.counting(numbers);
        let landing = match code.row_bytes {
            0 => None,
            _ => Some(self.landing(family, code)?),
        };
        let elements = family.fields.iter().map(|f| f.len()).sum();
        Ok(Group { launch, family: id, family_size: rows, order, instances: None, landing, elements })
    }

    fn row_offsets(&self, family: &Family, code: &FamilyCode) -> Offsets {
        let lines = family.fields.iter().zip(&code.fields).map(|(f, a)| self.field_line(family, code, f, *a));
        let lines: Vec<Option<(i64, i64)>> = lines.collect();
        let (start, step) = lines.iter().map(|l| l.map_or((0, 0), |(at, step)| (at as u64, step))).unzip();
        let mut width = 0;
        let is_straight = |edge: usize| code.addressing.is_straight(edge);
        let column = |edge| {
            (!is_straight(edge)).then(|| {
                width += 1;
                width - 1
            })
        };
        let column: Vec<Option<usize>> = (0..family.fields.len()).map(column).collect();
        let mut table = vec![0u64; family.domain.count() as usize * width];
        for ((field, line), column) in family.fields.iter().zip(&lines).zip(&column) {
            let Some(column) = *column else { continue };
            let column = table.iter_mut().skip(column).step_by(width);
            match (line, field.parts.first()) {
                (Some((at, step)), _) => column.enumerate().for_each(|(i, c)| *c = (at + i as i64 * step) as u64),
                (None, Some(part)) => {
                    let size = self.allocated.vars[part.var].ty.bytes();
                    let bytes = |e: i64| byte(&self.allocated.host.offsets, part.var, e, size) as u64;
                    column.zip(part.offset.values(&family.domain)).for_each(|(c, e)| *c = bytes(e));
                }
                (None, None) => {}
            }
        }
        let narrow = |table: Vec<u64>| table.into_iter().map(|b| b as u32).collect();
        match code.addressing {
            Addressing::Affine => Offsets::Affine { start, step },
            Addressing::Table32 => Offsets::Table32(narrow(table)),
            Addressing::Table64 => Offsets::Table64(table),
            Addressing::Mixed { .. } => Offsets::Mixed { start, step, column, width, table: narrow(table) },
        }
    }

    /// First byte and step of a field whose rows lie on a line.
    fn field_line(&self, family: &Family, code: &FamilyCode, field: &Field, access: Access) -> Option<(i64, i64)> {
        match access {
            Access::Scratch { at, .. } => {
                Some(((self.code.var_bytes + code.scratch + at) as i64, code.row_bytes as i64))
            }
            Access::InPlace => {
                let Some(part) = field.parts.first() else { return Some((0, 0)) };
                let size = self.allocated.vars[part.var].ty.bytes();
                let (start, step) = line(&part.offset, &family.domain)?;
                Some((byte(&self.allocated.host.offsets, part.var, start, size), step * size as i64))
            }
        }
    }

    /// The moves between a family's scattered fields and its scratch.
    fn landing(&self, family: &Family, code: &FamilyCode) -> Result<Landing, EngineError> {
        let (mut fetch, mut send) = (Vec::new(), Vec::new());
        for row in 0..family.domain.count() {
            let (mut before, mut after) = (Vec::new(), Vec::new());
            for (field, access) in family.fields.iter().zip(&code.fields) {
                let Access::Scratch { at, fetch, send } = *access else { continue };
                let scratch = self.code.var_bytes + code.scratch + row * code.row_bytes + at;
                let (there, back) = self.field_moves(field, family, row, scratch as i64);
                before.extend(there.into_iter().filter(|_| fetch));
                after.extend(back.into_iter().filter(|_| send));
            }
            fetch.push(coalesce(before));
            send.push(coalesce(after));
        }
        Ok(Landing { fetch: RowMoves::new(fetch, self.bytes)?, send: RowMoves::new(send, self.bytes)? })
    }

    fn field_moves(&self, field: &Field, family: &Family, row: u64, scratch: i64) -> (Vec<Move>, Vec<Move>) {
        let (mut there, mut back) = (Vec::new(), Vec::new());
        let mut at = scratch;
        for run in field.view(&family.domain, row).runs() {
            let (start, step, size) = place(self.allocated, &self.allocated.host.offsets, run);
            let (home, landed) = (Row { start, step }, Row { start: at, step: size as i64 });
            push_elements(&mut there, home, landed, size as u32, run.len);
            push_elements(&mut back, landed, home, size as u32, run.len);
            at += run.len as i64 * size as i64;
        }
        (there, back)
    }

    pub fn copy(&self, id: CopyId) -> Vec<Move> {
        let mut list = Vec::new();
        for CopyFamily { domain, dst, src, .. } in &self.allocated.copies[id].families {
            match (all_instances(dst, domain), all_instances(src, domain)) {
                (Some(dst), Some(src)) => self.copy_views(&dst, &src, &mut list),
                _ => (0..domain.count())
                    .for_each(|i| self.copy_views(&dst.view(domain, i), &src.view(domain, i), &mut list)),
            }
        }
        by_length(list)
    }

    fn copy_views(&self, dst: &View, src: &View, list: &mut Vec<Move>) {
        for c in copy_runs(dst, src) {
            let size = self.allocated.vars[c.dst_var].ty.bytes();
            let row = |var, start: u64, stride: i64| Row {
                start: byte(&self.allocated.host.offsets, var, start as i64, size),
                step: stride * size as i64,
            };
            let from = row(c.src_var, c.src_start, c.src_stride);
            push_elements(list, from, row(c.dst_var, c.dst_start, c.dst_stride), size, c.len);
        }
    }
}
