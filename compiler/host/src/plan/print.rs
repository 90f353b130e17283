//! The text of a plan: memory, kernels, and for each step of the graph the kernels that it runs.
//!
//! Invariant: equal plans print equal text, and the text shows every decision of a plan.

use super::{FamilyPlan, FieldAccess, GroupRun, HostPlan, StepUnit, Unit, UnitGroup};
use crate::fuse::FusedSteps;
use crate::kernels::{CodeletSource, KernelId};
use crate::products::{LinkedProduct, LinkedRow, MatrixLayout, MatrixProduct, ProductStart};
use girder_codelet::kernel::{Addressing, FieldLayout};
use girder_ir::codelet::{Dir, FieldDecl};
use girder_ir::family::Family;
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, FieldId};
use std::fmt::Write;

impl HostPlan {
    /// Prints the plan. `graph` is the graph that it was made for.
    pub fn print(&self, graph: &Graph) -> String {
        let mut printer = Printer { plan: self, graph, text: String::new() };
        printer
            .line(0, format_args!("memory: {} bytes of variables, {} of scratch", self.var_bytes, self.scratch_bytes));
        self.kernels.kernels.keys().for_each(|id| printer.kernel(id));
        graph.sets.keys().for_each(|set| printer.set(set));
        for group in self.sequences.iter().flat_map(|s| &s.groups) {
            let name = printer.group(group);
            match &group.run {
                GroupRun::Alone => {}
                GroupRun::Summed(summed) => {
                    printer.line(0, format_args!("products {name}:"));
                    summed.products.iter().for_each(|p| printer.product(p));
                    summed.linked.iter().for_each(|p| printer.linked(p));
                }
                GroupRun::Fused(fused) => {
                    printer.line(0, format_args!("fused {name}:"));
                    printer.fused(fused);
                }
            }
        }
        for sequence in self.sequences.iter().filter(|s| s.groups.len() > 1) {
            let groups: Vec<String> = sequence.groups.iter().map(|group| printer.group(group)).collect();
            printer.line(0, format_args!("sequence: {}", groups.join(", ")));
        }
        printer.text
    }
}

struct Printer<'a> {
    plan: &'a HostPlan,
    graph: &'a Graph,
    text: String,
}

impl Printer<'_> {
    fn line(&mut self, depth: usize, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{:1$}{line}", "", 2 * depth);
    }

    fn kernel(&mut self, id: KernelId) {
        let (table, graph) = (&self.plan.kernels, self.graph);
        let (kernel, codelet) = (&table.kernels[id], table.codelet(graph, id));
        let shapes = &table.sizes(id).shapes;
        let field = |((field, decl), strides): ((FieldId, &FieldDecl), &FieldLayout)| {
            let shape: &[u64] = &shapes[field];
            let at = if shape.is_empty() { String::new() } else { format!(" by {}", list(strides)) };
            format!("{}: {} {}{shape:?}{at}", decl.name, direction(decl.dir), decl.ty)
        };
        let fields: Vec<String> = codelet.edges().zip(&kernel.strides).map(field).collect();
        let name = match table.source(id) {
            CodeletSource::Graph(_) => codelet.name.to_string(),
            CodeletSource::Fused(index) => format!("fused {index}"),
        };
        self.line(0, format_args!("{id}: {name}({}), {}", fields.join(", "), addressing(kernel.addressing)));
        if let Some(lines) = &kernel.lines {
            let length = match lines.length {
                u64::MAX => "all rows".to_string(),
                n => format!("blocks of {n} rows"),
            };
            let consts = if lines.shares_consts { "" } else { ", own constants" };
            self.line(1, format_args!("{length} by {}{consts}", list(&lines.steps)));
        }
        if kernel.rewritten.is_some() {
            self.line(1, format_args!("rewritten"));
        }
    }

    fn set(&mut self, id: ComputeSetId) {
        let set = &self.graph.sets[id];
        self.line(0, format_args!("compute {}:", set.name));
        let plan = self.plan;
        for &part in plan.parts.of_set(id) {
            plan.products[part].iter().for_each(|p| self.product(p));
            plan.linked[part].iter().for_each(|p| self.linked(p));
            for &family in &plan.parts.parts[part].families {
                if let Some(of_family) = &plan.families[family] {
                    self.family(&self.graph.families[family], of_family);
                }
            }
        }
    }

    fn product(&mut self, p: &MatrixProduct) {
        let matrix = |m: MatrixLayout| format!("{} by {} {}", m.at, m.row, m.col);
        let start = start(p.start);
        let blocks = if p.block < p.k { format!(", in blocks of {}", p.block) } else { String::new() };
        self.line(
            1,
            format_args!(
                "product {} {}×{}×{}: c at {}, a at {}, b at {}{start}{blocks}",
                p.ty,
                p.m,
                p.n,
                p.k,
                matrix(p.c),
                matrix(p.a),
                matrix(p.b)
            ),
        );
    }

    fn linked(&mut self, p: &LinkedProduct) {
        let (rows, start) = (p.rows.len(), start(p.start));
        self.line(1, format_args!("linked product {} {rows}×{}: b by {}{start}", p.ty, p.columns, p.b_col));
        // Consecutive rows at one distance.
        let mut runs: Vec<(LinkedRow, LinkedRow, usize)> = Vec::new();
        for &row in &p.rows {
            let step = |from: LinkedRow| LinkedRow { c: row.c - from.c, a: row.a - from.a };
            match runs.last_mut() {
                Some((first, by, count)) if *count == 1 => (*by, *count) = (step(*first), 2),
                Some((first, by, count)) if step(*first) == times(*by, *count) => *count += 1,
                _ => runs.push((row, LinkedRow { c: 0, a: 0 }, 1)),
            }
        }
        for (first, by, count) in runs {
            self.line(2, format_args!("{count} rows: c at {} by {}, a at {} by {}", first.c, by.c, first.a, by.a));
        }
        for l in &p.links {
            let block = if l.fresh { ", new block" } else { "" };
            let (at, step) = (format_args!("a {:+}, b at {}", l.a, l.b), format_args!("by {} {}", l.a_step, l.b_step));
            self.line(2, format_args!("{} terms: {at} {step}{block}", l.terms));
        }
    }

    fn family(&mut self, family: &Family, plan: &FamilyPlan) {
        let before = family.domain.count();
        let joined = plan.joined.as_deref().map_or(String::new(), |_| format!(", joined from {before}"));
        let family = plan.joined.as_deref().map_or(family, |joined| &joined.family);
        self.line(1, format_args!("{}: {} rows{joined}", plan.kernel, family.domain.count()));
        let codelet = &self.graph.codelets[family.codelet];
        for (field, access) in family.fields.iter().zip(&plan.fields) {
            if let FieldAccess::Scratch { at, fetch, send } = *access {
                let ways: Vec<&str> =
                    [(fetch, "fetched"), (send, "sent back")].iter().filter(|w| w.0).map(|w| w.1).collect();
                let (name, at) = (&codelet.fields[field.field].name, plan.scratch + at);
                self.line(2, format_args!("{name} in scratch at {at} by {}, {}", plan.row_bytes, ways.join(" and ")));
            }
        }
    }

    fn fused(&mut self, fused: &FusedSteps) {
        for rows in &fused.rows {
            let fields = rows.start.iter().zip(&rows.step).map(|(at, step)| format!("{at} + {step} row"));
            let fields: Vec<String> = fields.collect();
            self.line(1, format_args!("{}: {} rows at {}", rows.kernel, rows.count, fields.join(", ")));
        }
    }

    /// Names a group by its units: a part of a compute set by its number, if there are several.
    fn group(&self, group: &UnitGroup) -> String {
        let parts = &self.plan.parts;
        let name = |unit: &StepUnit| match unit.unit {
            Unit::Vertices(part) => {
                let set = parts.parts[part].set;
                let name = &self.graph.sets[set].name;
                match parts.of_set(set) {
                    [_] => name.to_string(),
                    all => format!("{name} {}", all.iter().position(|&p| p == part).unwrap_or_default()),
                }
            }
            Unit::Copy(copy) => format!("copy {}", copy.as_u32()),
        };
        let names: Vec<String> = group.units.iter().map(name).collect();
        if let [_] = names[..] { names.concat() } else { format!("({})", names.join(" + ")) }
    }
}

fn times(row: LinkedRow, count: usize) -> LinkedRow {
    LinkedRow { c: row.c * count as i64, a: row.a * count as i64 }
}

fn start(start: ProductStart) -> String {
    match start {
        ProductStart::Old => String::new(),
        ProductStart::Number(bits) => format!(", from {bits:#x}"),
        ProductStart::Added => ", added to c".to_string(),
    }
}

fn addressing(addressing: Addressing) -> String {
    match addressing {
        Addressing::Affine => "affine".to_string(),
        Addressing::Table32 => "table of u32".to_string(),
        Addressing::Table64 => "table of u64".to_string(),
        Addressing::Mixed { straight } => format!("affine fields {straight:#b}, table of u32"),
    }
}

fn direction(dir: Dir) -> &'static str {
    match dir {
        Dir::In => "in",
        Dir::Out => "out",
        Dir::InOut => "inout",
        Dir::Const => "const",
    }
}

fn list(numbers: &[i64]) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")
}
