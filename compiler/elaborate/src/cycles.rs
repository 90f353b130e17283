//! `cycles(codelet, …)`: the cost model as a static function.
//!
//! Invariant: the value is the modelled time of a tile that runs these vertices and no others, with the assumptions of
//! the estimates of placement: memory is placed as the codelet requests, and a block that only the data decide runs
//! once for each element of the vertex.

pub mod query;

use crate::elaborator::{Elaborator, SpecKey};
use crate::value::{Given, Value};
use girder_codelet::cost::{TileCosts, cost_of};
use girder_codelet::sizes::Sizes;
use girder_ir::codelet::{DimDecl, Dir, GenericArg};
use girder_ir::ids::FieldId;
use girder_ir::types::{ElemType, Scalar};
use girder_source::{Diagnostic, Failed, Result, Span};
use girder_syntax::ast::{self, ExprId};
use girder_typing::{Header, HeaderType, ModuleRef};
use query::{CodeletCost, Query, Slot, VERTICES};
use std::sync::Arc;

impl Elaborator<'_> {
    /// Evaluates `cycles(codelet, name: value, …)`.
    pub fn cycles(&mut self, args: &[ast::Arg], span: Span) -> Result<Value> {
        let (codelet, rest) = self.codelet_argument(args, span)?;
        let given = self.given(rest)?;
        let query = self.query(codelet, given, span)?;
        let costs = TileCosts::from(self.machine);
        match query.cycles(&costs) {
            Some((cycles, executed)) => {
                self.charge_many(executed, span)?;
                Ok(Value::Int(cycles))
            }
            None => {
                let message = "a dimension of the codelet has no length with these sizes";
                Err(self.error("elaborate::shape_mismatch", span, message))
            }
        }
    }

    /// Returns the codelet that the first argument names, and the other arguments.
    pub fn codelet_argument<'t>(
        &mut self,
        args: &'t [ast::Arg],
        span: Span,
    ) -> Result<((ModuleRef, usize), &'t [ast::Arg])> {
        let named = |id: ExprId| crate::trees::dotted(self.tree(), id);
        let path = args.split_first().filter(|(first, _)| first.name.is_none());
        let Some((path, first, rest)) = path.and_then(|(a, rest)| Some((named(a.value)?, a, rest))) else {
            let help = "write `cycles(name, n: 100)` with the sizes of a vertex";
            return Err(self.error_help("elaborate::arguments", span, "`cycles` needs the name of a codelet", help));
        };
        let at = self.tree().exprs[first.value].span;
        Ok((self.codelet_named(&path, at)?, rest))
    }

    /// Matches arguments to the generics, sizes and constants of a codelet.
    pub fn query(&mut self, (module, item): (ModuleRef, usize), given: Vec<Given>, span: Span) -> Result<Query> {
        let header = self.header(module, item)?;
        if let Some(g) = given.iter().find(|g| g.name.is_empty()) {
            let help = "write `name: value` for each size, generic and constant";
            return Err(self.error_help("elaborate::arguments", g.span, "this argument has no name", help));
        }
        for (k, g) in given.iter().enumerate() {
            if given[..k].iter().any(|other| other.name == g.name) {
                let message = format!("`{}` is given twice", g.name);
                return Err(self.error("elaborate::arguments", g.span, message));
            }
        }
        let is_generic = |g: &Given| header.generics.iter().any(|h| h.name == g.name);
        let (generics, given): (Vec<Given>, Vec<Given>) = given.into_iter().partition(is_generic);
        let args = self.query_generics(&header, generics, &given, span)?;
        let of = self.codelet_cost(module, item, args, span)?;
        let sizes = Sizes { shapes: Default::default(), sizes: Default::default() };
        let consts = of.codelet.fields.values().map(|f| Scalar::zero(f.ty)).collect();
        let mut query = Query { of, sizes, consts, vertices: 1 };
        let mut missing = self.open_numbers(&query);
        for g in &given {
            self.query_argument(&mut query, &header, g, &mut missing)?;
        }
        if missing.is_empty() {
            return Ok(query);
        }
        let names: Vec<String> = missing.iter().map(|n| format!("`{n}`")).collect();
        let message = format!("`cycles` needs {}", names.join(", "));
        let d = Diagnostic::error("elaborate::arguments", span, message).label(header.span, "the codelet");
        Err(self.report(d.help(format!("write `{}: …`", missing[0]))))
    }

    /// Returns the sizes and constants on which the cost depends.
    fn open_numbers(&self, query: &Query) -> Vec<smol_str::SmolStr> {
        let CodeletCost { codelet, cost, .. } = &*query.of;
        let is_read = |f: &girder_ir::codelet::FieldDecl| f.dir == Dir::Const && !f.ty.is_float();
        let consts = codelet.fields.values().filter(|f| is_read(f)).map(|f| f.name.clone());
        let consts = consts.filter(|_| cost.reads_constants());
        codelet.sizes.values().cloned().chain(consts).collect()
    }

    /// Takes one argument.
    fn query_argument(
        &mut self,
        query: &mut Query,
        header: &Header,
        g: &Given,
        missing: &mut Vec<smol_str::SmolStr>,
    ) -> Result<()> {
        let mut fill = |name: &str| missing.retain(|n| n != name);
        if let Some(slot) = query.slot(&g.name) {
            fill(&g.name);
            if let Slot::Const(field, ty) = slot {
                query.consts[field.as_u32() as usize] = self.const_scalar(&g.value, ty, g.span)?;
                return Ok(());
            }
            let Value::Int(n) = g.value else { return Err(self.expected("an integer", &g.value, g.span)) };
            return match query.set(slot, n) {
                Some(()) => Ok(()),
                None => {
                    let message = format!("`{}` cannot be {n}: it is a number of at least 0", g.name);
                    Err(self.error("elaborate::arguments", g.span, message))
                }
            };
        }
        let Some(field) = header.fields.iter().position(|f| f.name == g.name) else {
            let codelet = &query.of.codelet;
            let names = codelet.sizes.values().chain(codelet.fields.values().map(|f| &f.name));
            let names = names.chain(header.generics.iter().map(|h| &h.name)).map(|n| n.as_str());
            let near = girder_source::closest(&g.name, names.chain([VERTICES]));
            let message = format!("`{}` has no size, field or generic `{}`", codelet.name, g.name);
            let d = Diagnostic::error("elaborate::arguments", g.span, message).label(header.span, "the codelet");
            return Err(self.report(match near {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help("name its sizes, as in `n: 100`"),
            }));
        };
        let shape = self.given_shape(g)?;
        let codelet = query.of.clone();
        let dims = &codelet.codelet.fields[FieldId::from_u32(field as u32)].dims;
        if shape.len() != dims.len() {
            let message = format!("field `{}` has rank {}, and this has rank {}", g.name, dims.len(), shape.len());
            return Err(self.error("elaborate::shape_mismatch", g.span, message));
        }
        for (axis, (dim, &n)) in dims.iter().zip(&shape).enumerate() {
            let fits = match *dim {
                DimDecl::Size(size) => {
                    let name = &codelet.codelet.sizes[size];
                    let is_open = missing.contains(name);
                    missing.retain(|m| m != name);
                    if is_open {
                        query.sizes.sizes[size] = n;
                    }
                    query.sizes.sizes[size] == n
                }
                DimDecl::Fixed(length) => u64::try_from(n) == Ok(length),
                DimDecl::Expr(_) => true,
            };
            if !fits {
                let message = format!("axis {axis} of field `{}` has {n} elements, which does not fit", g.name);
                return Err(self.error("elaborate::shape_mismatch", g.span, message));
            }
        }
        Ok(())
    }

    /// Returns the shape that an argument gives for a field: of a tensor, or a list of lengths.
    fn given_shape(&mut self, g: &Given) -> Result<Vec<i64>> {
        let lengths: Option<Vec<i64>> = match &g.value {
            Value::Tensor(t) => t.view.shape().iter().map(|&n| i64::try_from(n).ok()).collect(),
            Value::List(list) => {
                let length = |v: &Value| if let Value::Int(n @ 0..) = v { Some(*n) } else { None };
                list.iter().map(length).collect()
            }
            _ => None,
        };
        lengths.ok_or(()).map_err(|()| self.expected("a shape, such as `[4, 8]`, or a tensor", &g.value, g.span))
    }

    /// Returns the generics that are given by name, or are types of tensors.
    fn query_generics(
        &mut self,
        header: &Header,
        named: Vec<Given>,
        given: &[Given],
        span: Span,
    ) -> Result<Vec<GenericArg>> {
        let mut types: Vec<(FieldId, ElemType)> = vec![];
        for (k, f) in header.fields.iter().enumerate() {
            if let Some(Value::Tensor(t)) = given.iter().find(|g| g.name == f.name).map(|g| &g.value) {
                types.push((FieldId::from_u32(k as u32), t.ty));
            }
        }
        let mut args = vec![];
        for (k, generic) in header.generics.iter().enumerate() {
            let of_field = |&(id, ty): &(FieldId, ElemType)| match header.fields[id.as_u32() as usize].ty {
                HeaderType::Generic(g) if g == k => Some(GenericArg::Type(ty)),
                _ => None,
            };
            let arg = match named.iter().find(|g| g.name == generic.name) {
                Some(other) => Some(self.generic_value(other.value.clone(), other.span)?),
                None => types.iter().find_map(of_field),
            };
            let Some(arg) = arg else {
                let message = format!("`cycles` needs `{}`", generic.name);
                let d = Diagnostic::error("elaborate::arguments", span, message).label(generic.span, "declared here");
                return Err(self.report(d.help(format!("write `{}: …`", generic.name))));
            };
            args.push(arg);
        }
        self.with_scope(|_, d| girder_typing::infer_args(header, &args, &types, span, d))
    }

    /// Returns the cost of a codelet with these generics, which is computed on first use.
    fn codelet_cost(
        &mut self,
        module: ModuleRef,
        item: usize,
        args: Vec<GenericArg>,
        span: Span,
    ) -> Result<Arc<CodeletCost>> {
        let key = SpecKey { module, item, args };
        if let Some(known) = self.codelets.costs.get(&key) {
            return known.clone().ok_or(Failed);
        }
        self.reporter.enter_call(span);
        let session = self.session;
        let made = self.with_scope(|names, diagnostics| match names.codelet(module, item) {
            Some((c, attrs)) => girder_typing::specialise(names, module, c, attrs, &key.args, session, diagnostics),
            None => Err(Failed),
        });
        self.reporter.leave_call();
        let costs = TileCosts::from(self.machine);
        // A codelet that cannot be pipelined has been reported.
        let cost = made.ok().and_then(|codelet| {
            let cost = cost_of(&codelet, &costs).ok()?;
            Some(Arc::new(CodeletCost::new(codelet, cost)))
        });
        self.codelets.costs.insert(key, cost.clone());
        cost.ok_or(Failed)
    }
}
