//! Codelet functions applied to tensors, element by element with NumPy's broadcasting: `exp(x)`, and every operator on
//! tensors. One family, whose codelet is made here as text and then treated like any other.
//!
//! # Note: Pieces
//! The result is cut into boxes of equal shape, as many as the place has workers but none smaller than
//! [`LEAST`] elements, outermost axis first; one vertex computes one piece. There are more pieces than one processor has
//! workers only where each has [`FAR`] elements: less would not pay for crossing between processors.

mod pieces;

use crate::calls::Given;
use crate::codelet::ModuleRef;
use crate::elaborator::Elaborator;
use crate::families::{Families, Instance, Loops};
use crate::value::{Tensor, Value};
use girder_ir::family::Domain;
use girder_ir::graph::VarClass;
use girder_ir::ids::VarId;
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_source::{Result, Span};
use girder_syntax::ast;
use pieces::Pieces;
use std::sync::Arc;

/// Fewer elements than this are not worth a vertex of their own.
const LEAST: u64 = 32;
/// Elements of a piece from which on there is work for another processor.
const FAR: u64 = 128;

/// A codelet made here: its module (holding it as the only item).
#[derive(Debug)]
pub struct EachCodelet {
    pub module: ModuleRef,
}

/// What an argument is to the codelet.
#[derive(Clone)]
enum Operand {
    /// The elements of the result's shape.
    Full(Tensor),
    /// One element for all.
    One(Tensor),
    /// A static number.
    Static(Scalar),
}

impl Operand {
    fn ty(&self) -> ElemType {
        match self {
            Operand::Full(t) | Operand::One(t) => t.ty,
            Operand::Static(s) => s.ty,
        }
    }
}

impl Elaborator<'_> {
    /// Applies a codelet function to tensors and static numbers.
    pub fn apply_each(&mut self, module: ModuleRef, f: &ast::Fn, given: Vec<Given>, span: Span) -> Result<Value> {
        let mut values = self.each_arguments(f, given, span)?;
        if !values.iter().any(|v| matches!(v, Value::Tensor(_))) {
            let name = f.name.dotted();
            if module == self.modules.prelude && crate::builtins::STATIC.contains(&name.as_str()) {
                return self.each_static(&name, values, span);
            }
            // Numbers alone become constants, so that a codelet function means the same everywhere.
            for v in &mut values {
                let ty = match v {
                    Value::Float(_) => ElemType::F32,
                    Value::Bool(_) => ElemType::Bool,
                    _ => ElemType::I32,
                };
                let s = self.scalar(v, ty, span)?;
                *v = self.constant(s, span)?.into();
            }
        }
        let types = self.each_types(f, &values, span)?;
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
                number => Operand::Static(self.scalar(number, ty, span)?),
            });
        }
        let session = self.session;
        let result = self.with_scope(|names, diagnostics| {
            crate::codelet::result_type(names, module, f, &types, span, session, diagnostics)
        })?;
        let name = f.name.dotted();
        let out = self.temporary(name.rsplit('.').next().unwrap_or(&name), result, &shape, span)?;
        let path = self.qualified_item(module, &name);
        self.each_into(&path, operands, &out, span)?;
        Ok(out.into())
    }

    /// Writes a static number to every element.
    pub fn fill(&mut self, out: &Tensor, value: Scalar, span: Span) -> Result<()> {
        self.each_into("", vec![Operand::Static(value)], out, span)
    }

    /// Converts every element: `f32(x)`.
    pub fn convert_each(&mut self, x: Tensor, ty: ElemType, span: Span) -> Result<Tensor> {
        let out = self.temporary(ty.name(), ty, &x.view.shape(), span)?;
        let operand = if x.view.len() == 1 {
            Operand::One(Tensor { view: x.view.reshape(&[]), ty: x.ty })
        } else {
            Operand::Full(x)
        };
        self.each_into(ty.name(), vec![operand], &out, span)?;
        Ok(out)
    }

    /// The arguments in the order of the parameters, defaults filled in.
    fn each_arguments(&mut self, f: &ast::Fn, given: Vec<Given>, span: Span) -> Result<Vec<Value>> {
        let mut slots: Vec<Option<Value>> = vec![None; f.params.len()];
        let mut next = 0;
        for g in given {
            let slot = if g.name.is_empty() {
                next += 1;
                Some(next - 1)
            } else {
                f.params.iter().position(|p| p.name.name == g.name)
            };
            match slot.and_then(|s| slots.get_mut(s)) {
                Some(s @ None) => *s = Some(g.value),
                _ => {
                    let message = crate::calls::takes(&f.name.dotted(), f.params.len());
                    let d = girder_source::Diagnostic::error("elaborate::arguments", g.span, message);
                    return Err(self.say(d.label(f.name.span, "declared here")));
                }
            }
        }
        let mut values = Vec::with_capacity(slots.len());
        for (p, slot) in f.params.iter().zip(slots) {
            values.push(match (slot, p.default) {
                (Some(v), _) => v,
                (None, Some(d)) => self.expr(d)?,
                (None, None) => {
                    let message = format!("`{}` needs an argument for `{}`", f.name.dotted(), p.name.name);
                    return Err(self.error("elaborate::arguments", span, message));
                }
            });
        }
        Ok(values)
    }

    /// The element type of each argument: a static number takes the type of its parameter, which a tensor of the same
    /// generic decides.
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
                Value::Int(_) | Value::Float(_) | Value::Bool(_) => declared.or_else(twin).unwrap_or(match v {
                    Value::Float(_) => ElemType::F32,
                    Value::Bool(_) => ElemType::Bool,
                    _ => ElemType::I32,
                }),
                other => {
                    let what = format!("a tensor or a number for `{}`", f.params[k].name.name);
                    return Err(self.expected(&what, other, span));
                }
            });
        }
        Ok(types)
    }

    /// NumPy's rule for the shape of a result.
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

    /// One family that computes `out[i] = f(operands[i]…)`.
    fn each_into(&mut self, f: &str, operands: Vec<Operand>, out: &Tensor, span: Span) -> Result<()> {
        if out.view.is_empty() {
            return Ok(());
        }
        let (mut fulls, shape) = merged(&operands, out);
        let out_view = fulls.pop().unwrap_or_else(|| out.view.clone());
        let module = self.each_codelet(f, &operands, out.ty, shape.len())?;
        let spec = self.specialised(module, 0, &[], span)?;
        let grid = self.pieces(&shape);
        let mut families = Families::default();
        let name = self.unique_set_name(Some(f.rsplit('.').next().filter(|n| !n.is_empty()).unwrap_or("fill")), "");
        let views: Vec<View> = views_of(&operands, fulls, out_view);
        let consts: Vec<Scalar> =
            operands.iter().filter_map(|o| if let Operand::Static(s) = o { Some(*s) } else { None }).collect();
        let pieces = Pieces { shape: &shape, grid: &grid };
        let moves = |v: &View| v.parts.len() == 1 && v.axes.iter().all(|&n| n <= 1);
        let closed = views.iter().all(|v| v.rank() == 0 || moves(v));
        for (first, lens) in pieces.boxes() {
            self.charge_many(if closed { 1 } else { crate::columns::point_count(&lens) as u64 }, span)?;
            if closed {
                families.add_block(pieces.block(spec, span, &views, &consts, first, lens));
                continue;
            }
            for point in Domain(lens).points() {
                let at: Vec<u64> = first.iter().zip(&point).map(|(&f, &p)| f as u64 + p as u64).collect();
                let views = views.iter().map(|v| pieces.piece(v, &at)).collect();
                families.add(
                    Instance { spec, span, views, consts: consts.clone(), tile: None, index: vec![] },
                    &Loops::default(),
                );
            }
        }
        let set = self.finish_set(name, families, span)?;
        self.push(crate::nodes::NodeKind::Execute(set), span)?;
        let whole = |var: VarId| out.view == View::whole(var, &self.graph.vars[var].shape);
        let temporary = |var: &VarId| self.graph.vars[*var].class == VarClass::Temp && whole(*var);
        self.fresh = out.view.parts.first().map(|p| p.var).filter(temporary).map(|var| (var, set));
        Ok(())
    }

    /// The length of a piece along each axis. See the module.
    fn pieces(&self, shape: &[u64]) -> Vec<u64> {
        let total: u64 = shape.iter().product();
        let per_tile = self.machine.chip.workers as u64;
        let workers = self.current_place().count as u64 * per_tile;
        let near = workers.min(self.machine.chip.tiles as u64 * per_tile);
        let processors = (total / (FAR * near)).max(1);
        let mut left = (total / LEAST).clamp(1, workers.min(near * processors));
        let mut grid = Vec::with_capacity(shape.len());
        for &len in shape {
            let pieces = left.min(len).max(1);
            grid.push(len.div_ceil(pieces).max(1));
            left = left.div_ceil(pieces);
        }
        grid
    }

    /// The codelet that applies `f` (a path, a type, or nothing for the operand itself) over boxes of a rank.
    fn each_codelet(&mut self, f: &str, operands: &[Operand], out: ElemType, rank: usize) -> Result<ModuleRef> {
        use std::fmt::Write;
        let mut name = format!("each.{}", if f.is_empty() { "fill" } else { f });
        for o in operands {
            let kind = match o {
                Operand::Full(_) => "",
                Operand::One(_) => "s",
                Operand::Static(_) => "c",
            };
            let _ = write!(name, "_{}{kind}", o.ty());
        }
        let _ = write!(name, "_r{rank}");
        if let Some(known) = self.each.get(name.as_str()) {
            return Ok(known.module);
        }
        let list = |prefix: &str| (0..rank).map(|k| format!("{prefix}{k}")).collect::<Vec<_>>().join(", ");
        let dims = if rank == 0 { String::new() } else { format!("[{}]", list("n")) };
        let at = if rank == 0 { String::new() } else { format!("[{}]", list("i")) };
        let mut fields = Vec::new();
        let mut args = Vec::new();
        for (k, o) in operands.iter().enumerate() {
            let ty = o.ty();
            match o {
                Operand::Full(_) => {
                    fields.push(format!("in x{k}: {ty}{dims}"));
                    args.push(format!("x{k}{at}"));
                }
                Operand::One(_) => {
                    fields.push(format!("in x{k}: {ty}"));
                    args.push(format!("x{k}"));
                }
                Operand::Static(_) => {
                    fields.push(format!("const x{k}: {ty}"));
                    args.push(format!("x{k}"));
                }
            }
        }
        fields.push(format!("out y: {out}{dims}"));
        let value = if f.is_empty() { args.join(", ") } else { format!("{f}({})", args.join(", ")) };
        let store = format!("y{at} = {value};");
        let body = match rank {
            0 => store,
            _ => {
                let binders: Vec<String> = (0..rank).map(|k| format!("i{k} in 0..n{k}")).collect();
                format!("for {} {{ {store} }}", binders.join(", "))
            }
        };
        let text = format!("codelet {name}({}) {{ {body} }}\n", fields.join(", "));
        let module = self.add_text(&name, text)?;
        self.each.insert(name.into(), Arc::new(EachCodelet { module }));
        Ok(module)
    }
}

/// The views of all fields in the codelet's order.
fn views_of(operands: &[Operand], fulls: Vec<View>, out: View) -> Vec<View> {
    let mut fulls = fulls.into_iter();
    let view = |o: &Operand| match o {
        Operand::Full(_) => fulls.next(),
        Operand::One(t) => Some(t.view.clone()),
        Operand::Static(_) => None,
    };
    operands.iter().filter_map(view).chain([out]).collect()
}

/// The views of the full operands and the result over as few axes as all of them allow.
fn merged(operands: &[Operand], out: &Tensor) -> (Vec<View>, Vec<u64>) {
    let full = operands.iter().filter_map(|o| match o {
        Operand::Full(t) => Some(&t.view),
        _ => None,
    });
    let views: Vec<View> = full.chain([&out.view]).cloned().collect();
    let flat: Vec<View> = views.iter().map(|v| v.flatten()).collect();
    let shape = out.view.shape();
    if shape.len() <= 1 || flat.iter().all(|v| v.single().is_some()) {
        return (flat, vec![out.view.len()]);
    }
    (views, shape.to_vec())
}
