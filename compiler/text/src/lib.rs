//! Printing and reading of stages.
//!
//! A printed stage is a module. Its header (`header`) names the last pass and the machine. The graph (`graph`) is
//! printed as items that `girder_elaborate` reads back. The tables of later stages are: tiles, in the declarations; the
//! plan and its schedule, in the items `exchange` (`exchange`); addresses, in the item `layout` (`layout`).
//!
//! Invariant: a printed stage reads back to the same stage, which prints to the same bytes. This crate checks the form
//! of tables; `girder_passes::pipeline::resume` verifies their content.

mod exchange;
mod graph;
mod header;
mod layout;
mod values;

pub use header::{header, target_of};

use girder_elaborate::{Context, Modules};
use girder_ir::graph::Graph;
use girder_ir::layout::HostLayout;
use girder_ir::placement::Placement;
use girder_ir::stage::{Allocated, Placed, Planned, RaceFree, Scheduled};
use girder_machine::Machine;
use girder_passes::pipeline::{After, AnyStage, Stage};
use girder_source::{Diagnostic, Failed, Result, Span};
use girder_syntax::ast::ItemKind;
use graph::Printer;

/// Prints a stage as the pass that makes it leaves it; a graph, as `elaborate` does.
pub fn print(stage: &AnyStage, machine: &Machine) -> String {
    print_after(stage, stage.stage().into(), machine)
}

/// Prints a stage whose header names the last pass that has run: passes from graph to graph do not change the stage.
pub fn print_after(stage: &AnyStage, after: After, machine: &Machine) -> String {
    let (graph, tables) = (stage.graph(), stage.tables());
    let mut p = Printer::new(graph, tables.placed.map(|s| &*s.placement));
    let options = header::options(&mut p.make, after, machine);
    p.header(options);
    p.streams();
    let mut text = p.text();
    for item in graph.items.values() {
        text += &format!("\n{}\n", item.text);
    }
    p.variables();
    p.flush();
    p.sets();
    p.copies();
    p.flush();
    if let Some(planned) = tables.planned {
        exchange::print(&mut p, graph, &planned.plan, tables.scheduled.map(|s| &s.schedule));
    }
    if let Some(allocated) = tables.allocated {
        layout::print(&mut p, graph, &allocated.layout);
    }
    p.programs();
    let rest = p.text();
    if !rest.is_empty() {
        text += &format!("\n{rest}");
    }
    text
}

/// Reads the tables of a stage from its text. `graph` is the elaborated graph of the same text.
///
/// # Errors
/// A table has the wrong form, is missing, or belongs to a later stage.
pub fn read_tables(graph: Graph, stage: Stage, modules: &Modules, cx: &mut Context<'_>) -> Result<AnyStage> {
    let tree = &modules.get(Modules::ROOT).tree;
    let mut wrong = false;
    for item in &tree.items {
        let needs = match item.kind {
            ItemKind::Exchange { .. } => Stage::Planned,
            ItemKind::Layout { .. } => Stage::Allocated,
            _ => continue,
        };
        if needs > stage {
            wrong = true;
            cx.diagnostics.push(unexpected(needs, item.span));
        }
    }
    if wrong {
        return Err(Failed);
    }
    if stage == Stage::Graph {
        return Ok(AnyStage::Graph(graph));
    }
    let placed = placed(graph, cx)?;
    if stage == Stage::Placed {
        return Ok(AnyStage::Placed(placed));
    }
    let race_free = RaceFree { placed };
    if stage == Stage::RaceFree {
        return Ok(AnyStage::RaceFree(race_free));
    }
    let (plan, schedule) = exchange::read(&race_free, stage >= Stage::Scheduled, tree, cx.diagnostics)?;
    let planned = Planned { race_free, plan };
    let Some(schedule) = schedule else { return Ok(AnyStage::Planned(planned)) };
    let scheduled = Scheduled { planned, schedule };
    if stage == Stage::Scheduled {
        return Ok(AnyStage::Scheduled(scheduled));
    }
    let layout = layout::read(&scheduled, tree, cx.machine, cx.diagnostics)?;
    Ok(AnyStage::Allocated(Allocated { scheduled, layout, host: HostLayout::default() }))
}

/// Reports a table of a pass that the header does not name.
fn unexpected(needs: Stage, span: Span) -> Diagnostic {
    let pass = After::from(needs).name();
    let message = format!("this is a table of `{pass}`, which the header of the module says has not run");
    let help = format!("remove the table, or write `after: \"{pass}\"` in the header");
    Diagnostic::error("resume::unexpected_table", span, message).help(help)
}

/// Moves all tiles from the graph to a placement.
fn placed(mut graph: Graph, cx: &mut Context<'_>) -> Result<Placed> {
    let mut placement = Placement::default();
    let mut open = vec![];
    for (id, var) in graph.vars.iter_mut() {
        let mapping = var.mapping.take();
        var.within = None;
        if !mapping.as_ref().is_some_and(|m| m.is_complete()) {
            open.push((format!("elements of `{}` have", var.name), var.origin));
        }
        placement.vars[id] = mapping;
    }
    for (id, family) in graph.families.iter_mut() {
        placement.families[id] = family.tile.take();
        family.within = None;
        if placement.families[id].is_none() {
            open.push((format!("vertices of `{}` have", graph.codelets[family.codelet].name), family.origin));
        }
    }
    for (what, origin) in &open {
        let message = format!("{what} no tile, but the header says that `place-tiles` has run");
        let d = Diagnostic::error("resume::incomplete", graph.origins.span(*origin), message);
        cx.diagnostics.push(d.help("add `on tile(…)`, or write `after: \"elaborate\"` in the header"));
    }
    if open.is_empty() { Ok(Placed { graph, placement: placement.into() }) } else { Err(Failed) }
}
