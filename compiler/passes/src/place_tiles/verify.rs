//! The verifier of a placement, which shares no code with the pass.
//!
//! Invariant: every later pass can read an accepted placement without a panic, and the placement moves nothing that the
//! text maps.

use girder_ir::family::{Domain, IndexFn, TileMap};
use girder_ir::graph::{Graph, Var};
use girder_ir::placement::{Mapping, Placement, UNPLACED};
use girder_machine::Machine;

/// Checks a placement against its graph and machine.
///
/// # Errors
/// The first violation.
pub fn verify_placement(graph: &Graph, placement: &Placement, machine: &Machine) -> Result<(), String> {
    for (id, var) in &graph.vars {
        let wrong = |what: &str| Err(format!("the mapping of `{}` {what}", var.name));
        let Some(mapping) = &placement.vars[id] else {
            return wrong("is absent");
        };
        if let Err(what) = mapping_is_whole(mapping, var, machine) {
            return wrong(what);
        }
        if var.mapping.as_ref().is_some_and(|given| !keeps(given, mapping, var)) {
            return wrong("moves elements that the text has placed");
        }
        if var.within.is_some_and(|tiles| mapping.runs(var.len()).any(|run| !tiles.contains(run.2))) {
            return wrong("leaves the place of the text");
        }
    }
    for (id, family) in &graph.families {
        let wrong = |what: &str| {
            let (codelet, set) = (&graph.codelets[family.codelet].name, &graph.sets[family.set].name);
            Err(format!("the tile map of `{codelet}` in `{set}` {what}"))
        };
        let Some(map) = &placement.families[id] else {
            return wrong("is absent");
        };
        if let Err(what) = map_is_whole(map, &family.domain, machine) {
            return wrong(what);
        }
        if family.tile.as_ref().is_some_and(|given| !given.iter(&family.domain).eq(map.iter(&family.domain))) {
            return wrong("moves vertices that the text has placed");
        }
        if family.within.is_some_and(|tiles| map.iter(&family.domain).any(|tile| !tiles.contains(tile))) {
            return wrong("leaves the place of the text");
        }
    }
    Ok(())
}

fn mapping_is_whole(mapping: &Mapping, var: &Var, machine: &Machine) -> Result<(), &'static str> {
    let (len, tiles) = (var.len(), machine.tiles() as u64);
    match mapping {
        Mapping::One(tile) if (*tile as u64) < tiles => Ok(()),
        Mapping::One(_) => Err("names a tile that the machine does not have"),
        Mapping::Linear { first, tiles: n, grain } => {
            let grains = len.div_ceil((*grain).max(1) as u64);
            if *grain == 0 || *n == 0 || *n as u64 > grains {
                return Err("has more tiles than grains");
            }
            if *first as u64 + *n as u64 > tiles {
                return Err("names a tile that the machine does not have");
            }
            Ok(())
        }
        Mapping::Separable { domain, tiles: map } => {
            if domain.count() != len {
                return Err("has another number of elements");
            }
            map_is_whole(map, domain, machine)
        }
        Mapping::Runs { end, tile } => {
            let ascends = end.windows(2).all(|w| w[0] < w[1]) && end.first().is_none_or(|&e| e > 0);
            if end.len() != tile.len() || !ascends || end.last().map_or(0, |&e| e as u64) != len {
                return Err("does not cover all elements once");
            }
            if tile.iter().any(|&t| t as u64 >= tiles) {
                return Err("names a tile that the machine does not have");
            }
            Ok(())
        }
    }
}

fn map_is_whole(map: &TileMap, domain: &Domain, machine: &Machine) -> Result<(), &'static str> {
    let (base, terms) = match map {
        TileMap::Table(t) if t.len() as u64 != domain.count() => return Err("has another number of instances"),
        TileMap::Table(t) if t.iter().any(|&t| t >= machine.tiles()) => {
            return Err("names a tile that the machine does not have");
        }
        TileMap::Table(_) => return Ok(()),
        TileMap::Separable { base, terms } => (*base as i64, terms),
    };
    let mut seen = vec![false; domain.0.len()];
    let (mut lo, mut hi) = (base, base);
    for term in terms {
        let divisors = match term.function {
            IndexFn::Identity => [1, 1],
            IndexFn::Block(b) | IndexFn::Balanced(b) | IndexFn::Cyclic(b) => [b, 1],
            IndexFn::BlockCyclic(b, p) => [b, p],
        };
        let unread = seen.get_mut(term.dim as usize).map(|s| !std::mem::replace(s, true));
        if divisors.contains(&0) || unread != Some(true) {
            return Err("is not a function of its indices");
        }
        let n = domain.0[term.dim as usize];
        let last = term.stride as i64 * (term.function.count(n) as i64 - 1).max(0);
        (lo, hi) = (lo + last.min(0), hi + last.max(0));
    }
    if domain.count() > 0 && (lo < 0 || hi >= machine.tiles() as i64) {
        return Err("names a tile that the machine does not have");
    }
    Ok(())
}

/// Returns whether every element that `given` places has the same tile in `found`.
fn keeps(given: &Mapping, found: &Mapping, var: &Var) -> bool {
    let mut found = found.runs(var.len());
    let mut at = found.next();
    given.runs(var.len()).all(|(start, end, tile)| {
        loop {
            match at {
                Some((_, to, _)) if to <= start => at = found.next(),
                Some((_, to, found_tile)) => {
                    if tile != UNPLACED && found_tile != tile {
                        return false;
                    }
                    if to >= end {
                        return true;
                    }
                    at = found.next();
                }
                None => return true,
            }
        }
    })
}
