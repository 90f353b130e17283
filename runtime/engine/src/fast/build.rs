//! Tasks of compute sets, fused steps and copies: their launches and moves.
//!
//! Invariant: every launch and every move is inside the arena; scratch memory follows all variables.

use super::code::FastCode;
use super::{byte, run_bytes};
use crate::arena::Move;
use crate::error::EngineError;
use crate::kernel::{Launch, Offsets};
use crate::linked::LinkedProducts;
use crate::moves::{Row, by_length, coalesce, push_elements};
use crate::products::Products;
use crate::task::{Group, RowMoves, ScratchMoves, Task};
use girder_codelet::cost::CountedBlocks;
use girder_codelet::kernel::Addressing;
use girder_host::strides::{all_instances, const_table, line};
use girder_host::{FamilyPlan, FieldAccess, FusedRows, FusedSteps, HostedGraph, PartId, SummedProducts};
use girder_ir::family::{CopyFamily, Family, Field};
use girder_ir::ids::{CopyId, FamilyId};
use girder_ir::view::{View, copy_runs};

/// The tables that tasks are built from.
pub(super) struct Build<'a> {
    pub hosted: HostedGraph<'a>,
    pub code: &'a FastCode,
    pub counting: Option<&'a CountedBlocks>,
    pub bytes: u64,
}

impl Build<'_> {
    /// Returns the task of one operation of a compute set.
    pub fn part(&self, id: PartId, threads: usize) -> Result<Task, EngineError> {
        let others = Task::vertices(self.groups(id)?, threads);
        let (products, linked) = (&self.code.plan.products[id], &self.code.plan.linked[id]);
        if products.is_empty() && linked.is_empty() {
            return Ok(others);
        }
        let products = Products::new(products, threads, self.bytes)?;
        let linked = LinkedProducts::new(linked, threads, self.bytes)?;
        Ok(Task::Products { products, linked, others: Box::new(others) })
    }

    /// Returns the task of products together with the vertices that add them.
    pub fn summed(&self, summed: &SummedProducts, threads: usize) -> Result<Task, EngineError> {
        let products = Products::new(&summed.products, threads, self.bytes)?;
        let linked = LinkedProducts::new(&summed.linked, threads, self.bytes)?;
        Ok(Task::Products { products, linked, others: Box::new(Task::vertices(Vec::new(), threads)) })
    }

    /// Returns the task of steps that were fused.
    pub fn fused(&self, fused: &FusedSteps, threads: usize) -> Result<Task, EngineError> {
        let group = |rows: &FusedRows| {
            let kernel = self.code.kernels[rows.kernel].clone();
            let offsets = Offsets::Affine { start: rows.start.clone(), step: rows.step.clone() };
            let launch = Launch::new(kernel, rows.count, offsets, fused.consts.clone(), 0, self.bytes)?;
            let (family, family_size, elements) = (fused.family, rows.count, rows.elements);
            Ok(Group { launch, family, family_size, order: 0, instances: None, scratch: None, elements })
        };
        Ok(Task::vertices(fused.rows.iter().map(group).collect::<Result<_, EngineError>>()?, threads))
    }

    fn groups(&self, part: PartId) -> Result<Vec<Group>, EngineError> {
        let mut groups = Vec::new();
        for (order, &id) in self.code.plan.parts.parts[part].families.iter().enumerate() {
            if let Some(plan) = &self.code.plan.families[id] {
                groups.push(self.group(order as u32, id, plan)?);
            }
        }
        Ok(groups)
    }

    fn group(&self, order: u32, id: FamilyId, plan: &FamilyPlan) -> Result<Group, EngineError> {
        let joined = plan.joined.as_deref();
        let family = joined.map_or(&self.hosted.families[id], |joined| &joined.family);
        let rows = family.domain.count();
        let (consts, const_step) = const_table(family, 0..rows);
        let kernel = self.code.kernels[plan.kernel].clone();
        let offsets = self.row_offsets(family, plan);
        let numbers = self.counting.map_or(0, |c| c.counters(&self.hosted, family.codelet));
        let launch = Launch::new(kernel, rows, offsets, consts, const_step, self.bytes)?.counting(numbers);
        let scratch = match plan.row_bytes {
            0 => None,
            _ => Some(self.scratch_moves(family, plan)?),
        };
        let elements = family.fields.iter().map(|f| f.len()).sum();
        let instances = joined.and_then(|joined| joined.first.clone());
        Ok(Group { launch, family: id, family_size: rows, order, instances, scratch, elements })
    }

    fn row_offsets(&self, family: &Family, plan: &FamilyPlan) -> Offsets {
        let lines = family.fields.iter().zip(&plan.fields).map(|(f, a)| self.field_line(family, plan, f, *a));
        let lines: Vec<Option<(i64, i64)>> = lines.collect();
        let (start, step) = lines.iter().map(|l| l.map_or((0, 0), |(at, step)| (at as u64, step))).unzip();
        let mut width = 0;
        let is_straight = |edge: usize| plan.addressing.is_straight(edge);
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
                    let size = self.hosted.vars[part.var].ty.bytes();
                    let bytes = |e: i64| byte(&self.hosted.layout.offsets, part.var, e, size) as u64;
                    column.zip(part.offset.values(&family.domain)).for_each(|(c, e)| *c = bytes(e));
                }
                (None, None) => {}
            }
        }
        let narrow = |table: Vec<u64>| table.into_iter().map(|b| b as u32).collect();
        match plan.addressing {
            Addressing::Affine => Offsets::Affine { start, step },
            Addressing::Table32 => Offsets::Table32(narrow(table)),
            Addressing::Table64 => Offsets::Table64(table),
            Addressing::Mixed { .. } => Offsets::Mixed { start, step, column, width, table: narrow(table) },
        }
    }

    /// Returns the first byte and the step of a field whose rows lie on a line.
    fn field_line(&self, family: &Family, plan: &FamilyPlan, field: &Field, access: FieldAccess) -> Option<(i64, i64)> {
        match access {
            FieldAccess::Scratch { at, .. } => {
                Some(((self.code.plan.var_bytes + plan.scratch + at) as i64, plan.row_bytes as i64))
            }
            FieldAccess::InPlace => {
                let Some(part) = field.parts.first() else { return Some((0, 0)) };
                let size = self.hosted.vars[part.var].ty.bytes();
                let (start, step) = line(&part.offset, &family.domain)?;
                Some((byte(&self.hosted.layout.offsets, part.var, start, size), step * size as i64))
            }
        }
    }

    /// Returns the moves between the scattered fields of a family and scratch memory.
    fn scratch_moves(&self, family: &Family, plan: &FamilyPlan) -> Result<ScratchMoves, EngineError> {
        let (mut fetch, mut send) = (Vec::new(), Vec::new());
        for row in 0..family.domain.count() {
            let (mut before, mut after) = (Vec::new(), Vec::new());
            for (field, access) in family.fields.iter().zip(&plan.fields) {
                let FieldAccess::Scratch { at, fetch, send } = *access else { continue };
                let scratch = self.code.plan.var_bytes + plan.scratch + row * plan.row_bytes + at;
                let (there, back) = self.field_moves(field, family, row, scratch as i64);
                before.extend(there.into_iter().filter(|_| fetch));
                after.extend(back.into_iter().filter(|_| send));
            }
            fetch.push(coalesce(before));
            send.push(coalesce(after));
        }
        Ok(ScratchMoves { fetch: RowMoves::new(fetch, self.bytes)?, send: RowMoves::new(send, self.bytes)? })
    }

    fn field_moves(&self, field: &Field, family: &Family, row: u64, scratch: i64) -> (Vec<Move>, Vec<Move>) {
        let (mut there, mut back) = (Vec::new(), Vec::new());
        let mut at = scratch;
        for run in field.view(&family.domain, row).runs() {
            let (start, step, size) = run_bytes(&self.hosted, &self.hosted.layout.offsets, run);
            let (home, landed) = (Row { start, step }, Row { start: at, step: size as i64 });
            push_elements(&mut there, home, landed, size as u32, run.len);
            push_elements(&mut back, landed, home, size as u32, run.len);
            at += run.len as i64 * size as i64;
        }
        (there, back)
    }

    /// Returns the moves of a copy, grouped by length.
    pub fn copy(&self, id: CopyId) -> Vec<Move> {
        by_length(self.hosted.copies[id].families.iter().flat_map(|family| self.family_moves(family)).collect())
    }

    /// Returns the task of a copy between replicas.
    pub fn exchange(&self, id: CopyId, threads: usize) -> Result<Task, EngineError> {
        let families = self.hosted.copies[id].families.iter();
        let of_pairs = |f: &CopyFamily| Some((f.source.pairs()?.clone(), by_length(self.family_moves(f))));
        Task::exchange(families.filter_map(of_pairs).collect(), threads, self.bytes)
    }

    fn family_moves(&self, CopyFamily { domain, dst, src, .. }: &CopyFamily) -> Vec<Move> {
        let mut list = Vec::new();
        match (all_instances(dst, domain), all_instances(src, domain)) {
            (Some(dst), Some(src)) => self.copy_views(&dst, &src, &mut list),
            _ => {
                (0..domain.count()).for_each(|i| self.copy_views(&dst.view(domain, i), &src.view(domain, i), &mut list))
            }
        }
        list
    }

    fn copy_views(&self, dst: &View, src: &View, list: &mut Vec<Move>) {
        for c in copy_runs(dst, src) {
            let size = self.hosted.vars[c.dst_var].ty.bytes();
            let row = |var, start: u64, stride: i64| Row {
                start: byte(&self.hosted.layout.offsets, var, start as i64, size),
                step: stride * size as i64,
            };
            let from = row(c.src_var, c.src_start, c.src_stride);
            push_elements(list, from, row(c.dst_var, c.dst_start, c.dst_stride), size, c.len);
        }
    }
}
