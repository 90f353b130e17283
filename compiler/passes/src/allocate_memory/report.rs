//! The diagnostics for tiles whose blocks do not fit, in the user's names.
//!
//! Invariant: the message names the fullest tile, the excess, the largest blocks at its fullest moment, and an action.

use super::inventory::{Class, Need};
use super::tile::is_executable;
use crate::liveness::Liveness;
use crate::rings;
use girder_ir::graph::{Graph, VarClass};
use girder_ir::layout::{Content, TileSet};
use girder_machine::Machine;
use girder_source::{Diagnostic, Severity, Span};
use indexmap::IndexMap;
use std::cmp::Reverse;

/// The greatest number of blocks that are named. After the first one, blocks smaller than one part in `SMALL` of the
/// peak are left out. At most `GROUPS` groups of other tiles are named.
const SHOWN: usize = 6;
const SMALL: u64 = 64;
const GROUPS: usize = 3;
/// The blocks of many steps are named together if none of them is larger than one part in `MANY` of their sum, and if
/// they fill at least one part in `MANY` of what the tile needs.
const MANY: u64 = 4;
/// What states need is mentioned if they fill at least one part in `STATES` of what the tile needs.
const STATES: u64 = 8;

/// A class that does not fit, and its size in bytes.
pub(super) type Over<'a> = (&'a Class, u64);

/// Returns the error or warning for tiles that do not fit (`over` is not empty).
pub(super) fn out_of_memory(
    severity: Severity,
    graph: &Graph,
    liveness: &Liveness,
    machine: &Machine,
    over: &[Over],
    is_scheduled: bool,
) -> Diagnostic {
    let mut over: Vec<Over> = over.to_vec();
    over.sort_by_key(|(class, peak)| (Reverse(*peak), class.tiles.first()));
    let (class, peak) = over[0];
    let tile = class.tiles.first().unwrap_or(0);
    let moment = fullest_moment(&class.needs);
    let steps = OfSteps::at(class, moment, machine).filter(|steps| steps.bytes.saturating_mul(MANY) >= peak);
    let least = if is_scheduled { "" } else { "at least " };
    let of_steps = steps.as_ref().map(|s| format!("; {} {}{} bytes of it", s.what, least, s.bytes));
    let message =
        message(class, peak, tile, moment, machine) + &of_steps.unwrap_or_default() + &others(&over, tile, machine);
    let mut d = match severity {
        Severity::Error => Diagnostic::error("memory::out_of_memory", Span::NONE, message),
        Severity::Warning => Diagnostic::warning("memory::out_of_memory", Span::NONE, message),
    };
    let things = things(graph, class, moment);
    let large = |(k, t): &(usize, &Thing)| *k == 0 || t.bytes.saturating_mul(SMALL) >= peak;
    for (_, thing) in things.iter().enumerate().filter(large).take(SHOWN) {
        let when = if thing.always { "always" } else { "for a time" };
        let others = match thing.others {
            0 => String::new(),
            1 => " and 1 other step".to_string(),
            n => format!(" and {n} other steps"),
        };
        d = d.label(thing.span, format!("{}{others}: {} bytes on tile {tile}, {when}", thing.name, thing.bytes));
    }
    let step = graph.steps.iter().find(|(id, _)| liveness.order.point(*id) == moment);
    if let Some((_, step)) = step.filter(|_| things.iter().any(|t| !t.always)) {
        d = d.label(graph.origins.span(step.origin), "the tile is fullest at this step");
    }
    let action = match steps {
        Some(_) => FEWER_STEPS,
        None => things.first().map_or("free the tile", |t| t.action),
    };
    let anyway = match severity {
        Severity::Error => ", or pass `--allow-over-memory` to go on as if tiles were larger",
        Severity::Warning => "",
    };
    d.help(format!("{action}{}, take a larger `--target`{anyway}", of_training(graph, class, peak)))
}

/// Returns what else makes room in a tile of a program with a pipeline, or with many states: the slots of an optimiser.
fn of_training(graph: &Graph, class: &Class, peak: u64) -> String {
    let mut ways = String::new();
    if graph.vars.values().any(rings::waits) {
        ways += ", cut the model into more stages, write `#[recompute]` before the `let` of a stage";
    }
    let is_state = |n: &&Need| matches!(n.content, Content::Var(v) if graph.vars[v].class == VarClass::State);
    let states = class.needs.iter().filter(is_state).fold(0, |sum: u64, n| sum.saturating_add(n.bytes));
    if states.saturating_mul(STATES) >= peak {
        ways += ", keep the moments of `optim.adam` or `optim.adamw` beside the tiles with `offload: true`";
        if graph.replicas > 1 {
            ways += ", let each replica keep a part of the slots with `optim.sharded`";
        }
    }
    ways
}

/// The bytes of many steps on a tile, none of which has a large part of them.
struct OfSteps {
    /// A text such as `the code of 3 exchanges takes`.
    what: String,
    bytes: u64,
}

impl OfSteps {
    /// Returns the exchange code or the vertices on a tile, whichever is larger, if no step has a large part of it.
    /// Vertices are left out if only code does not fit.
    fn at(class: &Class, moment: u32, machine: &Machine) -> Option<OfSteps> {
        let of = |is_part: fn(Content) -> bool| {
            let live = class.needs.iter().filter(|n| is_live(n, moment) && is_part(n.content));
            let parts: Vec<u64> = live.map(|n| n.bytes).collect();
            let bytes = parts.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
            let largest = parts.iter().copied().max().unwrap_or(0);
            (largest.saturating_mul(MANY) <= bytes).then_some((bytes, parts.len()))
        };
        let only_code = sum_at(&class.needs, moment) <= u64::from(machine.usable_bytes());
        let code = of(|c| matches!(c, Content::SetExchange(_) | Content::CopyExchange(_)));
        let vertices = of(|c| matches!(c, Content::VertexState(_))).filter(|_| !only_code);
        let code = code.map(|(bytes, n)| OfSteps { what: format!("the code of {n} exchanges takes"), bytes });
        let vertices = vertices.map(|(bytes, n)| OfSteps { what: format!("the vertices of {n} steps take"), bytes });
        code.into_iter().chain(vertices).max_by_key(|steps| steps.bytes)
    }
}

fn message(class: &Class, peak: u64, tile: u32, moment: u32, machine: &Machine) -> String {
    let usable = machine.usable_bytes() as u64;
    let live = sum_at(&class.needs, moment);
    let tile = match machine.ipus {
        1 => format!("{tile}"),
        _ => format!("{tile} of ipu({})", machine.ipu_of(tile)),
    };
    if live > usable {
        return format!("tile {tile} needs {peak} bytes, but has {usable}: {} too many", peak - usable);
    }
    let (code, room) = (code_at(class, moment), code_room(machine));
    if code > room {
        return format!("tile {tile} has {code} bytes of code and local arrays, but {room} where they can be");
    }
    let gaps = peak - usable;
    format!("tile {tile} holds {live} bytes of {usable}, but they cannot be put so that they fit: {gaps} are missing")
}

/// Returns the bytes of a class that need memory that can run code.
fn code_at(class: &Class, moment: u32) -> u64 {
    let code = class.needs.iter().filter(|n| is_executable(n.content) && is_live(n, moment));
    code.fold(0, |sum, n| sum.saturating_add(n.bytes))
}

/// Returns the bytes of memory that can run code.
pub(super) fn code_room(machine: &Machine) -> u64 {
    machine.memory.regions.iter().filter(|r| r.executable).map(|r| u64::from(r.bytes)).sum()
}

/// Returns the bytes that a tile of a class needs, and their unit in the message: bytes of code if everything else
/// fits.
fn needed((class, peak): &Over, machine: &Machine) -> (u64, &'static str) {
    let moment = fullest_moment(&class.needs);
    let code = code_at(class, moment);
    let fits = sum_at(&class.needs, moment) <= u64::from(machine.usable_bytes());
    if fits && code > code_room(machine) { (code, "bytes of code") } else { (*peak, "bytes") }
}

/// Returns the part of the message about other tiles.
fn others(over: &[Over], tile: u32, machine: &Machine) -> String {
    let count = over.iter().map(|(class, _)| class.tiles.count()).sum::<u64>() - 1;
    if count == 0 {
        return String::new();
    }
    let mut text = match count {
        1 => "; one other tile does not fit".to_string(),
        n => format!("; {n} other tiles do not fit"),
    };
    let mut groups: IndexMap<(u64, &str), Vec<u32>> = IndexMap::new();
    for one in over {
        groups.entry(needed(one, machine)).or_default().extend(one.0.tiles.iter().filter(|&t| t != tile));
    }
    groups.retain(|_, tiles| !tiles.is_empty());
    let shown = groups.len().min(GROUPS);
    for (k, ((amount, of), tiles)) in groups.into_iter().take(GROUPS).enumerate() {
        let (separator, verb) = (if k == 0 { ':' } else { ',' }, if tiles.len() == 1 { "needs" } else { "need" });
        text += &format!("{separator} {} {verb} {amount} {of}", names(&TileSet::new(tiles)));
    }
    if over.len() > shown + 1 { text + ", …" } else { text }
}

/// Returns a short text for a set of tiles.
fn names(tiles: &TileSet) -> String {
    let [one] = tiles.strided() else { return format!("{} tiles", tiles.count()) };
    match (one.count, one.step) {
        (1, _) => format!("tile {}", one.first),
        (_, 1) => format!("tiles {}..{}", one.first, one.last() + 1),
        (n, _) => format!("{n} tiles"),
    }
}

fn is_live(need: &Need, moment: u32) -> bool {
    need.live.as_ref().is_none_or(|l| l.contains(&moment))
}

fn sum_at(needs: &[Need], moment: u32) -> u64 {
    needs.iter().filter(|n| is_live(n, moment)).fold(0, |sum, n| sum.saturating_add(n.bytes))
}

/// Returns the first point at which the most bytes are live.
fn fullest_moment(needs: &[Need]) -> u32 {
    let mut changes: Vec<(u32, i128)> = vec![];
    for need in needs {
        let Some(live) = need.live.as_ref().filter(|live| !live.is_empty()) else { continue };
        changes.extend([(live.start, i128::from(need.bytes)), (live.end, -i128::from(need.bytes))]);
    }
    changes.sort_unstable_by_key(|c| c.0);
    let (mut now, mut most, mut fullest) = (0, 0, changes.first().map_or(0, |c| c.0));
    for at in changes.chunk_by(|a, b| a.0 == b.0) {
        now += at.iter().map(|c| c.1).sum::<i128>();
        if now > most {
            (most, fullest) = (now, at[0].0);
        }
    }
    fullest
}

/// Blocks of a tile that have one name for the user.
struct Thing {
    name: String,
    span: Span,
    /// The number of further steps of the same statement.
    others: usize,
    bytes: u64,
    always: bool,
    /// The user's next action if this is the largest.
    action: &'static str,
}

/// Returns the contents of a tile at a moment, the largest first.
fn things(graph: &Graph, class: &Class, moment: u32) -> Vec<Thing> {
    let mut things: IndexMap<(String, Span), Thing> = IndexMap::new();
    for need in class.needs.iter().filter(|n| is_live(n, moment)) {
        let (name, span, action) = describe(graph, need.content);
        // The steps of one statement, such as those of an unrolled loop, are named together.
        let kind = match need.content {
            Content::VertexState(_) => "the vertices of",
            Content::SetExchange(_) | Content::CopyExchange(_) => "the exchange code of",
            _ => &name,
        };
        let thing = || Thing { name: name.clone(), span, others: 0, bytes: 0, always: true, action };
        let thing = things
            .entry((kind.to_string(), span))
            .and_modify(|t| t.others += usize::from(t.name != name))
            .or_insert_with(thing);
        thing.bytes = thing.bytes.saturating_add(need.bytes);
        thing.always &= need.live.is_none();
    }
    let mut things: Vec<Thing> = things.into_values().collect();
    things.sort_by_key(|t| Reverse(t.bytes));
    things
}

const FEWER_STEPS: &str =
    "apply equal layers by `nn.repeated`, or put equal steps in a `repeat`, which has the code of one iteration";
const SPREAD: &str = "spread the largest of these over more tiles with `map`";
const NEARER: &str = "place the vertices nearer to their data, or let each of them touch less";
const LONGER: &str = "map what is copied in longer runs";
const SMALLER: &str = "make the local arrays smaller: each worker of a tile has its own";
const FEWER: &str = "let fewer vertices do more each, or place them on more tiles";
const SIMPLER: &str = "place the vertices of different codelets on different tiles";

/// Returns the user's name of a content, its span, and the action if it is too large.
fn describe(graph: &Graph, content: Content) -> (String, Span, &'static str) {
    let set = |id| (&graph.sets[id].name, graph.origins.span(graph.sets[id].origin));
    match content {
        Content::Code(spec) => {
            let codelet = &graph.codelets[spec];
            // The compiler's own codelets have no text; the first step that runs one has.
            let user = || graph.families.values().find(|f| f.codelet == spec).map(|f| graph.origins.span(f.origin));
            let span = if codelet.span.is_none() { user().unwrap_or(codelet.span) } else { codelet.span };
            (format!("the code of `{}`", codelet.name), span, SIMPLER)
        }
        Content::SetExchange(id) => (format!("the exchange code of `{}`", set(id).0), set(id).1, NEARER),
        Content::CopyExchange(id) => {
            let copy = &graph.copies[id];
            (format!("the exchange code of `{}`", copy.name), graph.origins.span(copy.origin), LONGER)
        }
        Content::Var(id) => {
            let var = &graph.vars[id];
            (format!("`{}`", var.name), graph.origins.span(var.origin), SPREAD)
        }
        Content::VertexState(id) => (format!("the vertices of `{}`", set(id).0), set(id).1, FEWER),
        Content::Stack(id) => {
            let codelets = graph.sets[id].families.iter().map(|&f| &graph.codelets[graph.families[f].codelet]);
            match codelets.max_by_key(|c| crate::sizes::stack_bytes(c)) {
                Some(codelet) => (format!("the local arrays of `{}`", codelet.name), codelet.span, SMALLER),
                None => (format!("the local arrays of `{}`", set(id).0), set(id).1, SMALLER),
            }
        }
        Content::SetBuffer(id, _) => (format!("the landing buffers of `{}`", set(id).0), set(id).1, NEARER),
        Content::CopyBuffer(id, _) => {
            let copy = &graph.copies[id];
            (format!("the landing buffers of `{}`", copy.name), graph.origins.span(copy.origin), SPREAD)
        }
        Content::Packets(id) => {
            let stream = &graph.streams[id];
            let what = format!("the packets that `{}` holds ahead", stream.name);
            (what, graph.origins.span(stream.origin), "hold fewer packets ahead, or make them smaller")
        }
    }
}
