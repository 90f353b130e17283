//! Codelet functions applied to tensors, element by element with NumPy's broadcasting: `exp(x)`, and every operator on
//! tensors. Each application is one family with a generated codelet, which is then treated like any other.
//!
//! # Note: Pieces
//! The result is cut into boxes of equal shape, outermost axis first; one vertex computes one piece. There are as many
//! pieces as the place has workers, but none is smaller than [`LEAST`] elements or, about, larger than [`MOST`]. A
//! function that takes long has smaller pieces, of about [`SLOW`] bundles. The pieces occupy more than one processor
//! only if each has [`FAR`] times the least elements: smaller ones would not repay the crossing between processors.

mod operand;
mod codelet;
mod pieces;

use crate::binding::bind;
use crate::elaborator::{Elaborator, Generated};
use crate::families::{Families, Instance, Loops};
use crate::gradients::formulas::Derived;
use crate::gradients::tape::{EachOf, EntryKind};
use crate::literals::Literal;
use crate::value::Given;
use crate::value::{Tensor, Tuple, Value};
use codelet::{EachBody, EachCodelet};
use cranelift_entity::EntityRef;
use girder_codelet::cost::{CostInputs, MemFacts, TileCosts, cost_of};
use girder_codelet::sizes::{Shape, bind_sizes};
use girder_ir::codelet::Codelet;
use girder_ir::family::Domain;
use girder_ir::graph::VarClass;
use girder_ir::ids::{SpecId, VarId};
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_source::{Result, Span};
use girder_syntax::ast;
use girder_typing::{ModuleRef, Results};
use operand::{Form, Operand};
use pieces::Pieces;

/// The size of a word in bytes. No two vertices write parts of one word.
const WORD: u64 = 4;
/// Minimal number of elements of a vertex.
const LEAST: u64 = 32;
/// The largest number of elements of a piece. Loops over more elements count their iterations, so the limit might end
/// them.
const MOST: u64 = girder_codelet::interpret::FREE_ITERATIONS;
/// The approximate number of bundles of a piece with fewer than [`LEAST`] elements.
const SLOW: u64 = 1024;
/// A piece on a further processor has at least this many times the least number of elements.
const FAR: u64 = 4;

/// Maximal number of axes of a step whose axes were cut.
const MOST_AXES: usize = 4;

/// What an element-wise step computes.
struct Function<'f> {
    body: EachBody<'f>,
    /// The name of the compute set.
    name: &'f str,
    /// The codelet functions that it calls.
    callees: Vec<(ModuleRef, usize)>,
}

impl Elaborator<'_> {
    /// Applies a codelet function to tensors and static numbers.
    pub fn apply_each(
        &mut self,
        (module, item): (ModuleRef, usize),
        f: &ast::Fn,
        given: Vec<Given>,
        span: Span,
    ) -> Result<Value> {
        self.scalar_parameters(f, span)?;
        let mut values = self.each_arguments(module, f, given, span)?;
        let is_static = !values.iter().any(|v| matches!(v, Value::Tensor(_)));
        let name = f.name.dotted();
        if is_static && module == self.modules.prelude && crate::builtins::names::STATIC.contains(&name.as_str()) {
            let values = values.into_iter().map(|v| self.static_number(v, span)).collect::<Result<_>>()?;
            return self.each_static(&name, values, span);
        }
        let types = self.each_types(f, &values, span)?;
        if is_static {
            // Static numbers alone become constants, so that a codelet function gives the same results everywhere.
            for (v, &ty) in values.iter_mut().zip(&types) {
                let s = self.scalar(v, ty, span)?;
                *v = self.constant(s, span)?.into();
            }
        }
        let mut shape: Vec<u64> = vec![];
        for v in &values {
            if let Value::Tensor(t) = v {
                shape = self.broadcast_shape(&shape, &t.view.shape(), span)?;
            }
        }
        let mut operands = Vec::with_capacity(values.len());
        for (v, &ty) in values.iter().zip(&types) {
            operands.push(match v {
                Value::Tensor(t) if t.ty != ty => {
                    let message = format!(
                        "`{}` takes elements of type {ty} here, but this tensor holds {}",
                        f.name.dotted(),
                        t.ty
                    );
                    return Err(self.error_help(
                        "elaborate::type_mismatch",
                        span,
                        message,
                        format!("convert it: `{ty}(…)`"),
                    ));
                }
                Value::Tensor(t) if t.view.len() == 1 => {
                    let view = t.view.reshape(&[]);
                    Operand::One(Tensor { view, ty })
                }
                Value::Tensor(t) => Operand::Full(Tensor { view: self.broadcast(t, &shape, span)?, ty }),
                Value::Float(x) | Value::Literal(Literal::Decimal { wide: x, .. })
                    if ty.is_int() && values.iter().any(|v| matches!(v, Value::Tensor(_))) =>
                {
                    let message = format!("the float {x:?} and a tensor of type {ty} in one operator");
                    let help = format!("convert the tensor: `f32(…)`; or round the number: `{ty}(…)`");
                    return Err(self.error_help("elaborate::type_mismatch", span, message, help));
                }
                number => Operand::Static(self.scalar(number, ty, span)?),
            });
        }
        let session = self.session;
        let results = self.with_scope(|names, diagnostics| {
            girder_typing::result_types(names, module, f, &types, span, session, diagnostics)
        })?;
        let name = f.name.dotted();
        let short = name.rsplit('.').next().unwrap_or(&name);
        let path = self.qualified_item(module, &name);
        let own = path.rsplit('.').next().unwrap_or(&path);
        let (body, members) = match results {
            Results::One(ty) => (EachBody::Call(&path), vec![(None, ty)]),
            Results::Tuple(members) => (EachBody::Tuple(&path), members),
        };
        let is_tuple = matches!(body, EachBody::Tuple(_));
        let mut outs = Vec::with_capacity(members.len());
        for (_, ty) in &members {
            outs.push(self.temporary(short, *ty, &shape, span)?);
        }
        let function = Function { body, name: own, callees: vec![(module, item)] };
        let begin = self.moment();
        self.each_into(function, operands, &outs, span)?;
        if self.is_taping() {
            let operands = values.into_iter().zip(types).collect();
            let (function, outs) = (EachOf::Fn(module, item), outs.clone());
            self.record(begin, EntryKind::Each { function, operands, outs }, span);
        }
        let mut outs = outs.into_iter().map(Value::from);
        if !is_tuple {
            return Ok(outs.next().unwrap_or(Value::Unit));
        }
        let names = members.into_iter().map(|(n, _)| n.unwrap_or_default()).collect();
        Ok(Value::Tuple(std::sync::Arc::new(Tuple { names, values: outs.collect() })))
    }

    /// Applies a compact derivative to tensors and static numbers; operands that it does not read may be absent.
    /// Returns its results, of a shape to which all operands broadcast.
    pub fn apply_derived(
        &mut self,
        (derived, kept): (Derived, Vec<usize>),
        inputs: Vec<Option<(Value, ElemType)>>,
        shape: &[u64],
        span: Span,
    ) -> Result<Vec<Tensor>> {
        let mut operands = Vec::with_capacity(kept.len());
        let mut values = Vec::with_capacity(kept.len());
        let mut inputs = inputs;
        for k in kept {
            let Some((value, ty)) = inputs.get_mut(k).and_then(Option::take) else { continue };
            operands.push(match &value {
                Value::Tensor(t) if t.view.len() == 1 => Operand::One(Tensor { view: t.view.reshape(&[]), ty }),
                Value::Tensor(t) => Operand::Full(Tensor { view: self.broadcast(t, shape, span)?, ty }),
                number => Operand::Static(self.scalar(number, ty, span)?),
            });
            values.push((value, ty));
        }
        let mut outs = vec![];
        for ty in derived.outputs() {
            outs.push(self.temporary("adjoint", ty, shape, span)?);
        }
        let name = self.formulas.name(&derived);
        let body = EachBody::Derived(&derived, &name);
        let short = derived.name().rsplit('.').next().unwrap_or_default();
        let short = short.split("_f32").next().and_then(|s| s.split("_f64").next()).unwrap_or(short);
        let function = Function { body, name: short, callees: derived.callees() };
        let begin = self.moment();
        self.each_into(function, operands, &outs, span)?;
        let function = EachOf::Derived(derived.clone());
        self.record(begin, EntryKind::Each { function, operands: values, outs: outs.clone() }, span);
        Ok(outs)
    }

    /// Writes a static number to every element.
    pub fn fill(&mut self, out: &Tensor, value: Scalar, span: Span) -> Result<()> {
        let begin = self.moment();
        let function = Function { body: EachBody::Copy, name: "fill", callees: vec![] };
        self.each_into(function, vec![Operand::Static(value)], std::slice::from_ref(out), span)?;
        self.record(begin, EntryKind::Fill { dst: out.view.clone(), stream: None }, span);
        Ok(())
    }

    /// Converts every element: `f32(x)`.
    pub fn convert_each(&mut self, x: Tensor, ty: ElemType, span: Span) -> Result<Tensor> {
        let out = self.temporary(ty.name(), ty, &x.view.shape(), span)?;
        let operands = vec![(Value::from(x.clone()), x.ty)];
        let operand = if x.view.len() == 1 {
            Operand::One(Tensor { view: x.view.reshape(&[]), ty: x.ty })
        } else {
            Operand::Full(x)
        };
        let function = Function { body: EachBody::Call(ty.name()), name: ty.name(), callees: vec![] };
        let begin = self.moment();
        self.each_into(function, vec![operand], std::slice::from_ref(&out), span)?;
        let (function, outs) = (EachOf::Convert, vec![out.clone()]);
        self.record(begin, EntryKind::Each { function, operands, outs }, span);
        Ok(out)
    }

    /// Returns the arguments in the order of the parameters, with defaults, which are text of the function's module.
    fn each_arguments(&mut self, module: ModuleRef, f: &ast::Fn, given: Vec<Given>, span: Span) -> Result<Vec<Value>> {
        let parameter = |name: &str| f.params.iter().position(|p| p.name.name == name);
        let slots = bind(given, f.params.len(), parameter).map_err(|(g, why)| self.misplaced(f, &g, why))?;
        let mut values = Vec::with_capacity(slots.len());
        for (p, slot) in f.params.iter().zip(slots) {
            values.push(match (slot, p.default) {
                (Some(g), _) => g.value,
                (None, Some(d)) => self.at_module(module, |this| this.expr(d))?,
                (None, None) => {
                    let message = format!("`{}` needs an argument for `{}`", f.name.dotted(), p.name.name);
                    return Err(self.error("elaborate::arguments", span, message));
                }
            });
        }
        Ok(values)
    }

    /// Reports a parameter that is an array: what is applied to elements takes scalars.
    fn scalar_parameters(&mut self, f: &ast::Fn, span: Span) -> Result<()> {
        let is_array = |ty: &ast::Type| match &ty.kind {
            ast::TypeKind::Name { dims, .. } => dims.as_ref().is_some_and(|d| !d.is_empty()),
            _ => false,
        };
        let Some(p) = f.params.iter().find(|p| p.ty.as_ref().is_some_and(is_array)) else { return Ok(()) };
        let message = format!(
            "outside codelets `{}` is applied to each element, so its parameters are scalars, and `{}` is an array",
            f.name.dotted(),
            p.name.name
        );
        let d = girder_source::Diagnostic::error("codelet::elementwise", span, message).label(p.span, "this parameter");
        Err(self.report(d.help("call it in a `codelet`, or make it a `fn` of tensors")))
    }

    /// Returns the element type of each argument. A static number takes the type of its parameter, which a tensor of
    /// the same generic determines.
    fn each_types(&mut self, f: &ast::Fn, values: &[Value], span: Span) -> Result<Vec<ElemType>> {
        let generic = |ty: &Option<ast::Type>| match ty {
            Some(ast::Type { kind: ast::TypeKind::Name { name, .. }, .. }) => Some(name.dotted()),
            _ => None,
        };
        let names: Vec<_> = f.params.iter().map(|p| generic(&p.ty)).collect();
        let mut types = Vec::with_capacity(values.len());
        for (k, v) in values.iter().enumerate() {
            let declared = names[k].as_deref().and_then(ElemType::from_name);
            let twin = || {
                (0..values.len()).filter(|&j| names[j] == names[k]).find_map(|j| match &values[j] {
                    Value::Tensor(t) => Some(t.ty),
                    _ => None,
                })
            };
            types.push(match v {
                Value::Tensor(t) => declared.or_else(twin).unwrap_or(t.ty),
                Value::Float(x) if declared.is_some_and(ElemType::is_int) => {
                    let (parameter, ty) = (&f.params[k].name, declared.unwrap_or(ElemType::I32));
                    let message = format!("`{}` of `{}` is an {ty}, not {x:?}", parameter.name, f.name.dotted());
                    let d = girder_source::Diagnostic::error("elaborate::type_mismatch", span, message);
                    return Err(self.report(d.label(parameter.span, "declared here")));
                }
                Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Literal(_) => {
                    declared.or_else(twin).unwrap_or(match v {
                        Value::Float(_) | Value::Literal(Literal::Decimal { .. }) => ElemType::F32,
                        Value::Bool(_) => ElemType::Bool,
                        _ => ElemType::I32,
                    })
                }
                other => {
                    let what = format!("a tensor or a number for `{}`", f.params[k].name.name);
                    return Err(self.expected(&what, other, span));
                }
            });
        }
        Ok(types)
    }

    /// Returns the shape of a result, by NumPy's rule.
    pub fn broadcast_shape(&mut self, a: &[u64], b: &[u64], span: Span) -> Result<Vec<u64>> {
        let rank = a.len().max(b.len());
        let at = |s: &[u64], k: usize| if k + s.len() < rank { 1 } else { s[k + s.len() - rank] };
        let mut out = Vec::with_capacity(rank);
        for k in 0..rank {
            let (x, y) = (at(a, k), at(b, k));
            out.push(match (x, y) {
                (1, n) | (n, 1) => n,
                (x, y) if x == y => x,
                _ => {
                    let message = format!("shapes {a:?} and {b:?} do not broadcast: axis {k} has {x} and {y} elements");
                    let help = "axes are matched from the last; each pair must be equal or have a 1";
                    return Err(self.error_help("elaborate::shape_mismatch", span, message, help));
                }
            });
        }
        Ok(out)
    }

    /// Emits one family that computes `outs[…][i] = f(operands[i]…)`.
    fn each_into(&mut self, function: Function<'_>, operands: Vec<Operand>, outs: &[Tensor], span: Span) -> Result<()> {
        let Some(out) = outs.first().filter(|t| !t.view.is_empty()) else { return Ok(()) };
        let (mut fulls, shape) = merged(&operands, outs);
        let out_views = fulls.split_off(fulls.len() - outs.len());
        let types: Vec<ElemType> = outs.iter().map(|t| t.ty).collect();
        let Function { body, name, callees } = function;
        let forms: Vec<(Form, ElemType)> = operands.iter().map(|o| (o.form(), o.ty())).collect();
        let codelet = EachCodelet { body, operands: &forms, outs: &types, rank: shape.len() };
        let module = self.each_codelet(codelet, callees);
        let spec = self.specialised(module, 0, &[], span)?;
        let least = self.least_piece(spec, &types);
        let grid = self.pieces(&shape, least);
        let mut families = Families::default();
        let name = self.unique_set_name(Some(name), "");
        let views: Vec<View> = views_of(&operands, fulls, out_views);
        let consts: Vec<Scalar> =
            operands.iter().filter_map(|o| if let Operand::Static(s) = o { Some(*s) } else { None }).collect();
        let within = self.within_here();
        let pieces = Pieces { shape: &shape, grid: &grid, within };
        let closed = views.iter().all(|v| v.rank() == 0 || moves_evenly(v));
        for (first, extents) in pieces.boxes() {
            let count = crate::batched::point_count(&extents) as u64;
            self.charge_many(if closed { 1 } else { count }, span)?;
            self.charge_vertices(count, span)?;
            if closed {
                families.add_block(pieces.block(spec, span, &views, &consts, first, extents));
                continue;
            }
            for point in Domain(extents).points() {
                let at: Vec<u64> = first.iter().zip(&point).map(|(&f, &p)| f as u64 + p as u64).collect();
                let views = views.iter().map(|v| pieces.piece(v, &at)).collect();
                let consts = consts.clone();
                let vertex = Instance { spec, span, views, consts, tile: None, within, index: vec![] };
                families.add(vertex, &Loops::default());
            }
        }
        let set = self.finish_set(name, families, span)?;
        self.push(crate::elaborator::NodeKind::Execute(set), span)?;
        let whole = |var: VarId| out.view == View::whole(var, &self.graph.vars[var].shape);
        let temporary = |var: &VarId| self.graph.vars[*var].class == VarClass::Temp && whole(*var);
        let only = outs.len() == 1;
        let computed = out.view.parts.first().map(|p| p.var).filter(|v| only && temporary(v)).map(|var| (var, set));
        self.emission.note_computed(computed);
        Ok(())
    }

    /// Returns the minimal number of elements of a piece of an element-wise codelet with results of some types, a power
    /// of two. Pieces have whole words.
    fn least_piece(&mut self, spec: SpecId, types: &[ElemType]) -> u64 {
        if let Some(&known) = self.codelets.least_pieces.get(&spec) {
            return known;
        }
        let words = types.iter().map(|ty| WORD / u64::from(ty.bytes()).min(WORD)).max().unwrap_or(1);
        let bundles = self.bundles_of_element(&self.graph.codelets[spec]).unwrap_or(0);
        let slow = (SLOW / bundles.max(1)).max(1);
        let least = LEAST.min(1 << slow.ilog2()).max(words);
        self.codelets.least_pieces.insert(spec, least);
        least
    }

    /// Returns the bundles that one more element of an element-wise codelet takes.
    fn bundles_of_element(&self, codelet: &Codelet) -> Option<u64> {
        let cost = cost_of(codelet, &TileCosts::from(self.machine)).ok()?;
        let facts = MemFacts::granting(cost.requests());
        let bundles = |elements: u64| {
            let mut shapes = vec![Shape::new(); codelet.fields.len()];
            for (field, decl) in codelet.edges() {
                let last = decl.dims.len().saturating_sub(1);
                shapes[field.index()] = (0..decl.dims.len()).map(|k| if k == last { elements } else { 1 }).collect();
            }
            let sizes = bind_sizes(codelet, &shapes, &[]).ok()?;
            let workers = self.machine.chip.workers;
            let at = CostInputs { sizes: &sizes, consts: &[], worker: 0, workers, counters: &[], facts: &facts };
            Some(cost.eval(&at))
        };
        Some(bundles(2 * LEAST)?.saturating_sub(bundles(LEAST)?) / LEAST)
    }

    /// Returns the length of a piece along each axis. See the note on pieces.
    fn pieces(&self, shape: &[u64], least: u64) -> Vec<u64> {
        let total: u64 = shape.iter().product();
        let per_tile = self.machine.chip.workers as u64;
        let workers = self.current_place().count as u64 * per_tile;
        let near = workers.min(self.machine.chip.tiles as u64 * per_tile);
        let processors = (total / (FAR * least * near)).max(1);
        let enough = (total / least).clamp(1, workers.min(near * processors));
        // Every worker has equally many pieces.
        let mut left = enough * total.div_ceil(enough * MOST).max(1);
        let mut grid = Vec::with_capacity(shape.len());
        for &len in shape {
            let pieces = left.min(len).max(1);
            grid.push(len.div_ceil(pieces).max(1));
            left = left.div_ceil(pieces);
        }
        grid
    }

    /// Returns the module of a codelet that computes a compact derivative of scalars.
    pub fn scalar_codelet(&mut self, derived: &Derived, name: &str) -> ModuleRef {
        let operands: Vec<(Form, ElemType)> = derived.inputs().into_iter().map(|ty| (Form::One, ty)).collect();
        let body = EachBody::Derived(derived, name);
        let codelet = EachCodelet { body, operands: &operands, outs: &derived.outputs(), rank: 0 };
        self.each_codelet(codelet, derived.callees())
    }

    /// Returns the module of an element-wise codelet, which is generated on first use.
    fn each_codelet(&mut self, codelet: EachCodelet<'_>, callees: Vec<(ModuleRef, usize)>) -> ModuleRef {
        let name = codelet.name();
        if let Some(known) = self.codelets.elementwise.get(&name) {
            return *known;
        }
        let tree = codelet.module();
        let module = self.generate(Generated::Codelet { tree: Box::new(tree), callees });
        self.codelets.elementwise.insert(name, module);
        module
    }
}

/// Returns the views of all fields, in the codelet's order.
fn views_of(operands: &[Operand], fulls: Vec<View>, outs: Vec<View>) -> Vec<View> {
    let mut fulls = fulls.into_iter();
    let view = |o: &Operand| match o {
        Operand::Full(_) => fulls.next(),
        Operand::One(t) => Some(t.view.clone()),
        Operand::Static(_) => None,
    };
    operands.iter().filter_map(view).chain(outs).collect()
}

/// Returns whether the elements of a view are at equal distances along each axis.
fn moves_evenly(view: &View) -> bool {
    view.parts.len() == 1 && view.axes.iter().all(|&n| n <= 1)
}

/// Returns the views of the full operands and the results, with axes merged as far as all of them allow. Axes along
/// which a view does not move evenly are cut where all views do.
fn merged(operands: &[Operand], outs: &[Tensor]) -> (Vec<View>, Vec<u64>) {
    let full = operands.iter().filter_map(|o| match o {
        Operand::Full(t) => Some(&t.view),
        _ => None,
    });
    let views: Vec<View> = full.chain(outs.iter().map(|t| &t.view)).cloned().collect();
    let flat: Vec<View> = views.iter().map(|v| v.flatten()).collect();
    let shape = outs[0].view.shape();
    if flat.iter().all(|v| v.single().is_some()) {
        return (flat, vec![outs[0].view.len()]);
    }
    let is_one_box = |v: &View| v.parts.len() == 1;
    if !views.iter().all(moves_evenly)
        && flat.iter().all(is_one_box)
        && let Some(cut) = View::common_shape(&flat).filter(|cut| cut.len() <= MOST_AXES)
    {
        return (flat.iter().map(|v| v.reshape(&cut)).collect(), cut.to_vec());
    }
    if shape.len() <= 1 { (flat, vec![outs[0].view.len()]) } else { (views, shape.to_vec()) }
}
