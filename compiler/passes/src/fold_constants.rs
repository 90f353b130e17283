//! `fold-constants`: a step that computes a number from constants leaves, and its result becomes a constant.
//!
//! A gradient begins with the adjoint of the loss, which is the number 1, and what a mean or a scaled loss makes of it
//! are numbers as well: `1 / n` is known when the program is compiled, and costs no superstep. The interpreter computes
//! it, so the value has the bits that a run would give.
//!
//! A step leaves if it is one vertex that reads constants alone and cannot fail, and if each of its results is a finite
//! number in a temporary of one element that no other step writes. Vertices that the text places stay.
//!
//! Invariant: every element that another step reads has the value that a run of the step would give it.

use crate::PassContext;
use crate::liveness::Liveness;
use crate::pass::{Pass, Verdict};
use crate::rewrite::{Rewrite, cannot_fail, executions, vars_of};
use crate::stage::Stage;
use cranelift_entity::{EntityRef, SecondaryMap};
use girder_codelet::interpret::{Interpreter, VertexMemory};
use girder_codelet::vertices::{bind_family, vertex_consts};
use girder_ir::codelet::Dir;
use girder_ir::family::{Family, Field};
use girder_ir::graph::{Graph, Init, VarClass};
use girder_ir::ids::{FieldId, StepId, VarId};
use girder_ir::program::{Effect, StepKind};
use girder_ir::types::Scalar;
use girder_source::Result;
use rustc_hash::FxHashMap;

/// The largest number of elements of a vertex's fields.
const MOST_ELEMENTS: u64 = 1 << 8;
/// The largest number of statements that are executed for one number.
const MOST_STATEMENTS: u64 = 1 << 12;

/// The pass `fold-constants`.
pub struct FoldConstants;

impl Pass for FoldConstants {
    const NAME: &'static str = "fold-constants";
    const SENTENCE: &'static str = "computes numbers that are made of constants alone";
    const OPTIONAL: bool = true;
    type From = Graph;
    type To = Graph;

    /// Folds steps until there are none.
    fn run(mut graph: Graph, cx: &mut PassContext) -> Result<Graph> {
        let mut rewrite = Rewrite::default();
        loop {
            cx.poll()?;
            let folded = folded(&graph, cx);
            if folded.is_empty() {
                break;
            }
            for (step, results) in folded {
                rewrite.remove(step);
                for (var, value) in results {
                    graph.vars[var].class = VarClass::Const;
                    graph.vars[var].init = Some(Init::Fill(value));
                }
            }
        }
        if !rewrite.is_empty() {
            rewrite.apply(&mut graph);
            cx.forget_families();
        }
        Ok(graph)
    }

    /// Checks that no temporary lacks the step that writes it.
    fn verify(graph: &Graph, _: &PassContext) -> Verdict {
        match Liveness::of(graph).exposed.first() {
            Some(e) => Err(format!("the temporary `{}` may be read before it is written", graph.vars[e.var].name)),
            None => Ok(()),
        }
    }

    /// Accepts text that was printed without this pass.
    fn admit(_: &mut Graph, _: Stage, _: &mut PassContext) -> Result<()> {
        Ok(())
    }
}

/// A step that leaves, with its results.
type Folded = (StepId, Vec<(VarId, Scalar)>);

/// Returns the steps whose operands are constants now.
fn folded(graph: &Graph, cx: &PassContext) -> Vec<Folded> {
    let executed = executions(graph).0;
    let mut found = vec![];
    for (id, step) in &graph.steps {
        let StepKind::Execute(set) = step.kind else { continue };
        let [family] = graph.sets[set].families[..] else { continue };
        let family = &graph.families[family];
        if executed[set.index()] == 1
            && reads_constants_alone(graph, family)
            && let Some(results) = results(graph, family, cx)
        {
            found.push((id, results));
        }
    }
    // Few steps come so far, so the others are looked at for these alone.
    let wanted: Vec<VarId> = found.iter().flat_map(|f| &f.1).map(|r| r.0).collect();
    let mut accesses: SecondaryMap<VarId, VarUse> = SecondaryMap::new();
    if !wanted.is_empty() {
        graph.steps.keys().for_each(|step| note_accesses(graph, step, &mut accesses));
    }
    let is_a_value = |var: VarId| accesses[var].writers == 1 && !accesses[var].others;
    found.retain(|(_, results)| results.iter().all(|r| is_a_value(r.0)));
    found
}

/// Returns whether a family is one vertex, placed nowhere by the text, that reads constants and writes temporaries of
/// one element.
fn reads_constants_alone(graph: &Graph, family: &Family) -> bool {
    let codelet = &graph.codelets[family.codelet];
    let fits = |field: &Field| {
        let [part] = &field.parts[..] else { return false };
        let var = &graph.vars[part.var];
        match codelet.fields[field.field].dir {
            Dir::In => graph.vars[part.var].constant().is_some(),
            Dir::Out => var.class == VarClass::Temp && var.len() == 1 && var.init.is_none() && var.mapping.is_none(),
            Dir::InOut | Dir::Const => false,
        }
    };
    family.domain.count() == 1
        && family.tile.is_none()
        && codelet.cycles.is_none()
        && family.fields.iter().all(fits)
        && family.fields.iter().map(Field::len).sum::<u64>() <= MOST_ELEMENTS
}

/// Returns what the vertex of a family writes, or `None` if it may fail, leaves an element as it is, or takes long.
fn results(graph: &Graph, family: &Family, cx: &PassContext) -> Option<Vec<(VarId, Scalar)>> {
    if !cannot_fail(graph, family) {
        return None;
    }
    let codelet = &graph.codelets[family.codelet];
    let sizes = bind_family(graph, family).ok()??;
    let var = |field: &Field| field.parts[0].var;
    let read = family.fields.iter().filter_map(|f| Some((f.field, graph.vars[var(f)].constant()?.bits))).collect();
    let mut vertex = Vertex { read, written: FxHashMap::default() };
    let mut interpreter = Interpreter::new(codelet);
    interpreter.allow(MOST_STATEMENTS);
    let consts = vertex_consts(codelet, family, 0);
    interpreter.run(&sizes, &mut vertex, &consts, graph.workers, cx.session).ok()?;
    let written = family.fields.iter().filter(|f| codelet.fields[f.field].dir.writes());
    let result = |field: &Field| {
        let value = Scalar::new(graph.vars[var(field)].ty, *vertex.written.get(&field.field)?);
        value.as_float().is_none_or(f64::is_finite).then_some((var(field), value))
    };
    written.map(result).collect()
}

/// The fields of a vertex: all elements of a field that it reads are equal, and one that it writes has one element.
struct Vertex {
    read: FxHashMap<FieldId, u64>,
    written: FxHashMap<FieldId, u64>,
}

impl VertexMemory for Vertex {
    fn load(&mut self, field: FieldId, _: u64) -> u64 {
        self.read.get(&field).or_else(|| self.written.get(&field)).copied().unwrap_or_default()
    }

    fn store(&mut self, field: FieldId, _: u64, bits: u64) {
        self.written.insert(field, bits);
    }
}

/// How the steps access a variable.
#[derive(Clone, Default)]
struct VarUse {
    /// The number of fields of vertices that write it.
    writers: u32,
    /// Whether it is accessed other than by vertices, as the source of a copy, or by a `print`.
    others: bool,
}

fn note_accesses(graph: &Graph, step: StepId, accesses: &mut SecondaryMap<VarId, VarUse>) {
    match &graph.steps[step].kind {
        StepKind::Execute(set) => {
            for &family in &graph.sets[*set].families {
                let family = &graph.families[family];
                let codelet = &graph.codelets[family.codelet];
                let written = family.fields.iter().filter(|f| codelet.fields[f.field].dir.writes());
                written.flat_map(|f| &f.parts).for_each(|p| accesses[p.var].writers += 1);
            }
        }
        StepKind::Copy(copy) if graph.copies[*copy].is_own() => {
            let written = graph.copies[*copy].families.iter().flat_map(|f| &f.dst.parts);
            written.for_each(|p| accesses[p.var].others = true);
        }
        StepKind::Effect(Effect::Print { .. }) => {}
        _ => vars_of(graph, step).into_iter().for_each(|var| accesses[var].others = true),
    }
}
