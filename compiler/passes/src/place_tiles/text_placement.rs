//! The placement in the text: checks of its tiles and of total memory, and the elements and vertices that it leaves
//! open.

use crate::PassContext;
use crate::rings::ring_rows;
use girder_ir::family::{Domain, TileMap};
use girder_ir::graph::{Graph, Var, VarClass};
use girder_ir::placement::{Mapping, UNPLACED};
use girder_machine::Machine;
use girder_source::{Diagnostic, OriginId, Span};
use std::cmp::Reverse;

/// Returns the mapping of a variable that the text places at least in part.
pub(super) fn mapping(var: &Var) -> Option<&Mapping> {
    var.mapping.as_ref().filter(|m| **m != Mapping::One(UNPLACED))
}

/// Returns whether the text leaves enough of a variable open for its placement to matter.
pub(super) fn is_open(var: &Var) -> bool {
    !mapping(var).is_some_and(|m| m.is_complete() || few_are_open(m, var))
}

/// Returns whether few elements of a variable are open, in short runs: at most a sixteenth of the placed ones, and no
/// run longer than the average placed run. An example is the edges of a field that is cut into blocks. Such elements go
/// with the adjacent blocks.
pub(super) fn few_are_open(mapping: &Mapping, var: &Var) -> bool {
    let (mut open, mut longest, mut placed, mut tiles) = (0, 0, 0, 0u64);
    for (start, end, tile) in mapping.runs(var.len()) {
        match tile {
            UNPLACED => (open, longest) = (open + end - start, longest.max(end - start)),
            _ => (placed, tiles) = (placed + end - start, tiles + 1),
        }
    }
    open * 16 <= placed && longest * tiles <= placed
}

/// Reports every variable and family on tiles that the machine does not have. Returns whether there is none.
pub(super) fn check(graph: &Graph, cx: &mut PassContext) -> bool {
    let mut fits = true;
    for var in graph.vars.values() {
        if let Some(tile) = mapping(var).and_then(|m| mapping_outside(m, var.len(), cx.machine)) {
            fits &= no_such_tile(graph, cx, &format!("`{}`", var.name), tile, var.origin);
        }
        if let (Some(mapping), Some(within)) = (mapping(var), var.within) {
            let outside = |run: &(u64, u64, u32)| run.2 != UNPLACED && !within.contains(run.2);
            if let Some((_, _, tile)) = mapping.runs(var.len()).find(outside) {
                let (first, last) = (within.first, within.end() - 1);
                let message = format!("`{}` is within the tiles {first} to {last}, but on tile {tile} too", var.name);
                let d = Diagnostic::error("place::outside", graph.origins.span(var.origin), message);
                cx.diagnostics.push(d.help("leave out `within`, or place its elements on these tiles"));
                fits = false;
            }
        }
    }
    for family in graph.families.values() {
        if let Some(tile) = family.tile.as_ref().and_then(|m| tiles_outside(m, &family.domain, cx.machine)) {
            let what = format!("a vertex of `{}`", graph.codelets[family.codelet].name);
            fits &= no_such_tile(graph, cx, &what, tile, family.origin);
        }
    }
    fits
}

/// The number of variables that a message names.
const NAMED: usize = 4;

/// Reports variables that no placement can hold: all persistent variables together, or one variable alone, exceed the
/// memory of all tiles. This spares the user a long search. Returns whether all fit.
pub(super) fn fits(graph: &Graph, cx: &mut PassContext) -> bool {
    let room = u64::from(cx.machine.usable_bytes()) * u64::from(cx.machine.tiles());
    let of = |all: &[&Var]| all.iter().fold(0u64, |sum, v| sum.saturating_add(v.bytes()));
    let mut large: Vec<&Var> = graph.vars.values().filter(|v| v.class != VarClass::Temp).collect();
    if of(&large) <= room {
        large = graph.vars.values().filter(|v| v.bytes() > room).collect();
    }
    if large.is_empty() || of(&large) <= room || cx.session.allow_over_memory {
        return true;
    }
    large.sort_by_key(|v| Reverse(v.bytes()));
    let what = match &large[..] {
        [one] => format!("`{}` takes", one.name),
        _ => "the variables take".to_string(),
    };
    let (bytes, tiles, name) = (of(&large), cx.machine.tiles(), &cx.machine.name);
    let message = format!("{what} {bytes} bytes, but all {tiles} tiles of `{name}` together have {room}");
    let spans = large.iter().map(|v| graph.origins.span(v.origin));
    let mut d = Diagnostic::error("memory::out_of_memory", Span::NONE, message);
    for (var, span) in large.iter().zip(spans).take(NAMED) {
        d = d.label(span, format!("`{}`: {} bytes", var.name, var.bytes()));
    }
    let smaller = match large.iter().any(|v| ring_rows(v).is_some()) {
        true => {
            "use `schedule: \"1f1b\"`, in which fewer micro-batches wait, make fewer of them, write `#[recompute]` \
             before the `let` of a stage"
        }
        false => "make the largest of these smaller",
    };
    cx.diagnostics.push(d.help(format!(
        "take a larger `--target`, {smaller}, or pass `--allow-over-memory` to go on as if tiles were larger"
    )));
    false
}

/// Reports a tile that the machine does not have, and returns `false`.
fn no_such_tile(graph: &Graph, cx: &mut PassContext, what: &str, tile: i64, origin: OriginId) -> bool {
    let (name, tiles) = (&cx.machine.name, cx.machine.tiles());
    let message = format!("{what} is placed on tile {tile}, but `{name}` has {tiles} tiles");
    let help = format!("use tiles 0 to {}, or take a larger `--target`", tiles - 1);
    cx.diagnostics.push(Diagnostic::error("place::no_such_tile", graph.origins.span(origin), message).help(help));
    false
}

/// Returns a tile of a mapping that the machine does not have.
fn mapping_outside(mapping: &Mapping, len: u64, machine: &Machine) -> Option<i64> {
    if let Mapping::Separable { domain, tiles } = mapping {
        return tiles_outside(tiles, domain, machine);
    }
    mapping.max_tile(len).filter(|&t| t >= machine.tiles()).map(|t| t as i64)
}

/// Returns a tile of a tile map that the machine does not have.
fn tiles_outside(map: &TileMap, domain: &Domain, machine: &Machine) -> Option<i64> {
    if domain.count() == 0 {
        return None;
    }
    let (lo, hi) = match map {
        TileMap::Table(t) => {
            let placed = || t.iter().copied().filter(|&t| t != UNPLACED);
            (placed().min()? as i64, placed().max()? as i64)
        }
        TileMap::Separable { base, terms } => {
            let last = terms.iter().map(|t| t.stride as i64 * (t.function.count(domain.0[t.dim as usize]) as i64 - 1));
            let base = *base as i64;
            last.fold((base, base), |(lo, hi), l| (lo + l.min(0), hi + l.max(0)))
        }
    };
    if lo < 0 {
        return Some(lo);
    }
    Some(hi).filter(|&t| t >= machine.tiles() as i64)
}
