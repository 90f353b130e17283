//! The check of a plan, whoever made it, by replaying it on symbols.
//!
//! Every byte of every element is a unique token. Blocks hold the tokens of their elements; the phase before is replayed;
//! each field must show exactly its tokens at its landing; written fields then take fresh tokens; the phase after is
//! replayed; at last every element must be at home with the token that it should have.
//!
//! Invariant: shares no code with the planner but the layout of blocks; nothing that a table read from text
//! may hold makes it panic.

mod carried;
mod memory;

use girder_codelet::{Cover, Sizes, bind_sizes, facts};
use girder_ir::codelet::{Codelet, Dir};
use girder_ir::family::{Domain, Family, Field};
use girder_ir::graph::Graph;
use girder_ir::ids::{ComputeSetId, CopyId, VarId};
use girder_ir::plan::{FieldLandings, Landing, Loc, Object, Plan, StepPlan};
use girder_ir::stage::RaceFree;
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_machine::Machine;
use memory::{FRESH, Memory, Tokens};
use rustc_hash::FxHashMap;

/// Whether a plan fits its graph, placement and machine.
///
/// # Errors
/// The first thing that is wrong, and in which exchange.
pub fn verify(race_free: &RaceFree, machine: &Machine, plan: &Plan) -> Result<(), String> {
    verify_within(race_free, machine, machine.usable_bytes(), plan)
}

/// As [`verify`], where one block may have so many bytes.
pub fn verify_within(race_free: &RaceFree, machine: &Machine, limit: u32, plan: &Plan) -> Result<(), String> {
    let tokens = Tokens::new(race_free, machine, limit);
    for (s, set) in &race_free.sets {
        check_set(race_free, &tokens, plan, s).map_err(|e| format!("in the exchange of `{}`, {e}", set.name))?;
    }
    carried::check(race_free, plan)?;
    for (c, copy) in &race_free.copies {
        check_copy(race_free, &tokens, plan, c).map_err(|e| format!("in the exchange of `{}`, {e}", copy.name))?;
    }
    Ok(())
}

/// About how many bytes [`verify`] follows one by one; it takes some 0.1 µs for each.
pub fn verify_cost(graph: &Graph) -> u64 {
    let of = |field: &Field, domain: &Domain| field.len().saturating_mul(domain.count()).saturating_mul(4);
    let families = graph.families.values().flat_map(|f| f.fields.iter().map(|field| of(field, &f.domain)));
    let copies = graph.copies.values().flat_map(|c| &c.families).map(|f| of(&f.dst, &f.domain));
    families.chain(copies).fold(0, u64::saturating_add)
}

/// What each element should hold at the end, where that is not its own token.
type Expected = FxHashMap<(VarId, u64), u64>;

fn check_copy(race_free: &RaceFree, tokens: &Tokens, plan: &Plan, id: CopyId) -> Result<(), String> {
    if plan.sets.values().any(|s| s.carries == Some(id)) {
        // Its elements are looked at with those of the set.
        let empty = plan.copies[id] == StepPlan::default();
        return if empty { Ok(()) } else { Err("what a compute set carries moves".into()) };
    }
    let steps = &plan.copies[id];
    let expected = copied(race_free, tokens, id);
    let mut memory = Memory::new(tokens, &steps.buffers)?;
    memory.replay(&steps.before, true)?;
    memory.replay(&steps.after, true)?;
    memory.check_homes(&expected)
}

/// What each element that a copy writes holds after it.
fn copied(race_free: &RaceFree, tokens: &Tokens, id: CopyId) -> Expected {
    let mut expected = Expected::default();
    for family in &race_free.copies[id].families {
        for instance in 0..family.domain.count() {
            let (dst, src) = (family.dst.view(&family.domain, instance), family.src.view(&family.domain, instance));
            for at in 0..dst.len() {
                let (var, element) = src.element(at);
                expected.insert(dst.element(at), tokens.first(var, element));
            }
        }
    }
    expected
}

fn check_set(race_free: &RaceFree, tokens: &Tokens, plan: &Plan, id: ComputeSetId) -> Result<(), String> {
    let steps = &plan.sets[id];
    let mut memory = Memory::new(tokens, &steps.buffers)?;
    let mut expected = steps.carries.map(|copy| copied(race_free, tokens, copy)).unwrap_or_default();
    memory.replay(&steps.before, !expected.is_empty())?;
    let fields = fields(race_free, plan, id, steps)?;
    for field in &fields {
        field.each(|what, at, _| match expected.contains_key(&at) {
            true => Err(format!("{} touches element {} which a carried copy writes", what.name(), at.1)),
            false => Ok(()),
        })?;
    }
    for field in fields.iter().filter(|f| f.shows_tokens()) {
        field.each(|what, at, loc| match memory.load(loc, what.bytes)? == tokens.first(at.0, at.1) {
            true => Ok(()),
            false => Err(format!("{} does not see element {} of its variable", what.name(), at.1)),
        })?;
    }
    for field in fields.iter().filter(|f| f.dir != Dir::In) {
        field.each(|what, at, loc| {
            let token = tokens.first(at.0, at.1) + FRESH;
            expected.insert(at, token);
            memory.store(loc, what.bytes, token, what.vertex()).map_err(|e| format!("{} {e}", what.name()))
        })?;
    }
    // What is only read must not lie where anything is written, in whatever order vertices run.
    for field in fields.iter().filter(|f| f.dir == Dir::In) {
        field.each(|what, at, loc| match memory.load(loc, what.bytes)? == tokens.first(at.0, at.1) {
            true => Ok(()),
            false => Err(format!("{} is overwritten by another vertex", what.name())),
        })?;
    }
    memory.replay(&steps.after, true)?;
    memory.check_homes(&expected)
}

/// One field of one vertex with its landing.
struct Place<'a> {
    family: &'a Family,
    codelet: &'a Codelet,
    index: usize,
    instance: u64,
    position: usize,
    tile: u32,
    dir: Dir,
    bytes: u32,
    fetched: bool,
    landing: Landing,
    strides: &'a [i32],
    buffers: &'a StepPlan,
}

/// All fields of all vertices of a set.
fn fields<'a>(
    race_free: &'a RaceFree,
    plan: &'a Plan,
    id: ComputeSetId,
    steps: &'a StepPlan,
) -> Result<Vec<Place<'a>>, String> {
    let mut result = vec![];
    for (position, &f) in race_free.sets[id].families.iter().enumerate() {
        let family = &race_free.families[f];
        let codelet = &race_free.codelets[family.codelet];
        let landings = &plan.landings[f];
        if landings.len() != family.fields.len() {
            return Err(format!("family {position} has landings for {} fields", landings.len()));
        }
        let Some(tiles) = &race_free.placement.families[f] else { return Err("a family has no tiles".into()) };
        let full = full(codelet, family);
        for (index, (field, landings)) in family.fields.iter().zip(landings).enumerate() {
            let decl = &codelet.fields[field.field];
            let fetched = decl.dir != Dir::Out || !full.contains(&index);
            for instance in 0..family.domain.count() {
                let (landing, strides) = landing(landings, instance)?;
                let (tile, bytes, dir) = (tiles.at(&family.domain, instance), decl.ty.bytes(), decl.dir);
                let buffers = steps;
                let place = Place {
                    family,
                    codelet,
                    index,
                    instance,
                    position,
                    tile,
                    dir,
                    bytes,
                    fetched,
                    landing,
                    strides,
                    buffers,
                };
                result.push(place);
            }
        }
    }
    Ok(result)
}

fn landing(landings: &FieldLandings, instance: u64) -> Result<(Landing, &[i32]), String> {
    let missing = || format!("vertex {instance} has a field without a landing");
    let landing = *landings.at.get(instance as usize).ok_or_else(missing)?;
    if let Landing::Buffer { .. } = landing {
        return Ok((landing, &[]));
    }
    let index = *landings.strides_of.get(instance as usize).ok_or_else(missing)?;
    Ok((landing, landings.strides.get(index as usize).ok_or_else(missing)?))
}

/// Positions of the fields that are written fully for certain.
fn full(codelet: &Codelet, family: &Family) -> Vec<usize> {
    let shape = |id| family.fields.iter().find(|f| f.field == id).map(|f| f.shape()).unwrap_or_default();
    let shapes: Vec<_> = codelet.fields.keys().map(shape).collect();
    let value = |id| family.consts.iter().find(|c| c.0 == id).filter(|_| family.domain.count() > 0);
    let value = |id| value(id).map_or(Scalar::zero(ElemType::I64), |c| c.1.at(0));
    let consts: Vec<_> = codelet.fields.keys().map(value).collect();
    let cover = |sizes: &Sizes| facts(codelet, sizes).cover;
    let Ok(cover) = bind_sizes(codelet, &shapes, &consts).map(|sizes| cover(&sizes)) else { return vec![] };
    (0..family.fields.len()).filter(|&k| cover[family.fields[k].field] == Cover::Full).collect()
}

impl Place<'_> {
    fn name(&self) -> String {
        let field = &self.codelet.fields[self.family.fields[self.index].field].name;
        format!("field `{field}` of vertex {} of family {}", self.instance, self.position)
    }

    /// A number for the vertex, the same for all its fields.
    fn vertex(&self) -> u64 {
        (self.position as u64) << 40 | self.instance
    }

    /// Whether its elements must be there before the vertex runs: it is fetched, or it is where its elements live.
    fn shows_tokens(&self) -> bool {
        self.fetched || matches!(self.landing, Landing::InPlace(_))
    }

    /// Calls `f` for every element with the variable, the flat element, and its bytes.
    fn each(&self, mut f: impl FnMut(&Self, (VarId, u64), Loc) -> Result<(), String>) -> Result<(), String> {
        let view = self.family.fields[self.index].view(&self.family.domain, self.instance);
        for at in 0..view.len() {
            let loc = self.loc(&view, at).ok_or_else(|| format!("{} has no place on its tile", self.name()))?;
            f(self, view.element(at), loc)?;
        }
        Ok(())
    }

    /// Where the element at a row-major position is said to be.
    fn loc(&self, view: &View, at: u64) -> Option<Loc> {
        match self.landing {
            Landing::Buffer { buffer, offset } => {
                let offset = u32::try_from(offset as u64 + at * self.bytes as u64).ok()?;
                let there = self.buffers.buffers.get(buffer as usize).filter(|b| b.tile == self.tile);
                there.map(|_| Loc { tile: self.tile, object: Object::Buffer(buffer), offset })
            }
            Landing::InPlace(base) => {
                let [part] = view.parts.as_slice() else { return None };
                let shape = view.shape();
                if shape.len() != self.strides.len() {
                    return None;
                }
                let (mut rest, mut offset) = (at, base as i64);
                for (&len, &stride) in shape.iter().zip(self.strides).rev() {
                    offset += (rest % len) as i64 * stride as i64;
                    rest /= len;
                }
                let offset = u32::try_from(offset).ok()?;
                Some(Loc { tile: self.tile, object: Object::Var(part.var), offset })
            }
        }
    }
}
