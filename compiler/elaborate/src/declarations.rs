//! `let`, `var`, `param`, `const`, `temp`, `map`, streams: in bodies and at the top of a module.
//!
//! Invariant: a variable declared at the top of a module is persistent; one declared in a body is a temporary, except
//! `param`, `state` and `const`, which are always initialised at load.

use crate::arguments::Kind;
use crate::elaborator::entities::Persistent;
use crate::elaborator::{Elaborator, Global};
use crate::literals::Literal;
use crate::value::{READ_FIRST, Tensor, Value};
use girder_ir::graph::{Init, Stream, VarClass};
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_source::{Diagnostic, Failed, Result, Span};
use girder_syntax::ast::{self, ItemKind, VarKind};
use girder_typing::ModuleRef;
use smol_str::SmolStr;

/// The greatest number of packets that a stream may hold ahead of the program.
const MOST_AHEAD: u32 = 1024;

impl<'a> Elaborator<'a> {
    /// Elaborates an item that has a value, in its own module, and records the value. Errors are reported.
    pub fn declare_item(&mut self, module: ModuleRef, index: usize) {
        let item = &self.modules.get(module).tree.items[index];
        let names = crate::modules::item_names(item);
        if names.is_empty() || self.scopes.global(module, &names[0]).is_some() {
            return;
        }
        for n in &names {
            self.scopes.set_global(module, n.clone(), Global::Pending);
        }
        self.scopes.enter_item();
        let before = self.entities.persistent.len();
        let values = self.at_top(module, |this| this.item_values(module, item));
        self.entities.persistent.truncate(before);
        self.scopes.leave_item();
        let values = values.unwrap_or_else(|Failed| vec![Value::Error; names.len()]);
        for (n, v) in names.into_iter().zip(values) {
            self.scopes.set_global(module, n, Global::Known(v));
        }
    }

    fn item_values(&mut self, module: ModuleRef, item: &ast::Item) -> Result<Vec<Value>> {
        match &item.kind {
            ItemKind::Decl(ast::Decl::Let(l)) => {
                let before = self.entities.persistent.len();
                let own = self.value_of_let(l)?;
                let value = match self.argument_for(module, l) {
                    Some(given) => {
                        let own = self.stated(own, l)?;
                        let name = l.pattern.span();
                        self.argument_as(&given, Kind::of(&own), name)?
                    }
                    None => own,
                };
                let value = self.stated(value, l)?;
                self.bind(&l.pattern, value, false, l.span)?;
                self.name_held(&l.pattern, before);
                Ok(self.scopes.locals().iter().map(|b| b.value.clone()).collect())
            }
            ItemKind::Decl(ast::Decl::Var(v)) => {
                let class = match v.kind {
                    VarKind::Var => VarClass::Var,
                    VarKind::Param => VarClass::Param,
                    VarKind::State => VarClass::State,
                    VarKind::Const => VarClass::Const,
                    VarKind::Temp => VarClass::Temp,
                    VarKind::Remote => {
                        let remote = self.remote(v)?;
                        if let Value::Stream(id) = remote {
                            self.graph.streams[id].offloaded = item.attrs.iter().any(|a| a.name.name == "offload");
                        }
                        return Ok(vec![remote]);
                    }
                };
                Ok(vec![self.persistent(v, class)?.into()])
            }
            ItemKind::Stream(s) => self.stream(s, item.span).map(|v| vec![v]),
            _ => Ok(vec![]),
        }
    }

    /// Returns the value that `--arg` gives a `let` of the root module.
    fn argument_for(&self, module: ModuleRef, l: &ast::Let) -> Option<(SmolStr, SmolStr)> {
        let ast::Pattern::Name(name) = &l.pattern else { return None };
        let is_root = module == crate::modules::Modules::ROOT;
        is_root.then(|| self.arguments.get(&name.name).cloned()).flatten()
    }

    /// Checks a value against the type that its `let` states.
    fn stated(&mut self, value: Value, l: &ast::Let) -> Result<Value> {
        match &l.ty {
            Some(ty) => {
                let mut bound = crate::types::Sizes::default();
                self.fit(value, ty, &mut bound, self.tree().exprs[l.value].span)
            }
            None => Ok(value),
        }
    }

    /// Elaborates a declaration in a body.
    pub fn declaration(&mut self, decl: &'a ast::Decl) -> Result<()> {
        match decl {
            ast::Decl::Let(l) => {
                let before = self.entities.persistent.len();
                let value = self.value_of_let(l)?;
                let value = self.stated(value, l)?;
                self.bind(&l.pattern, value, l.mutable, l.span)?;
                self.name_held(&l.pattern, before);
                Ok(())
            }
            ast::Decl::Var(v) => {
                let value = match v.kind {
                    VarKind::Param => self.persistent(v, VarClass::Param)?.into(),
                    VarKind::State => self.persistent(v, VarClass::State)?.into(),
                    VarKind::Const => self.persistent(v, VarClass::Const)?.into(),
                    VarKind::Var | VarKind::Temp => self.local_var(v)?.into(),
                    VarKind::Remote => self.remote(v)?,
                };
                self.define(v.name.dotted(), value, false);
                Ok(())
            }
            ast::Decl::Map { view, place, family, span } => self.map_statement(*view, place, family, *span),
        }
    }

    /// Elaborates `var` in a body: a temporary whose initial value, if any, is written each time control reaches the
    /// declaration.
    fn local_var(&mut self, v: &ast::VarDecl) -> Result<Tensor> {
        let (ty, shape) = self.supported(&v.ty)?;
        let name = self.unique_name(&v.name.dotted());
        let site = self.site(v, &shape, ty)?;
        let var = self.add_var(name, VarClass::Temp, ty, &shape, site, v.span)?;
        let tensor = Tensor { view: View::whole(var, &shape), ty };
        if let Some(init) = v.init {
            self.write_expr(&tensor, init, v.span)?;
        }
        Ok(tensor)
    }

    /// Returns the element type and shape of a variable or stream; reports a type that the engines do not support.
    pub fn supported(&mut self, ty: &ast::Type) -> Result<(ElemType, Vec<u64>)> {
        let (elem, shape) = self.declared(ty)?;
        if elem.is_supported() {
            return Ok((elem, shape));
        }
        Err(self.unsupported(ty.span, &format!("the element type `{elem}`")))
    }

    /// Makes a variable that is initialised at load.
    fn persistent(&mut self, v: &ast::VarDecl, class: VarClass) -> Result<Tensor> {
        let name = self.unique_persistent_name(&v.name.dotted());
        let (ty, shape) = self.supported(&v.ty)?;
        let (init, is_named) = match v.init {
            Some(_) if class == VarClass::Const && self.is_replica_index(v) => (Some(Init::ReplicaIndex), false),
            Some(e) => {
                let value = self.elements(e)?;
                let span = self.tree().exprs[e].span;
                let is_named = matches!(&value, Value::Drawn(d) if d.is_named());
                (self.init(&value, ty, &shape, span)?, is_named)
            }
            None => (None, false),
        };
        let site = self.site(v, &shape, ty)?;
        let var = self.add_var(name, class, ty, &shape, site, v.span)?;
        self.graph.vars[var].init = init;
        if is_named {
            self.site_by_name(var);
        }
        self.entities.persistent.push(Persistent::Var(var));
        Ok(Tensor { view: View::whole(var, &shape), ty })
    }

    /// Returns the initial value of a variable; `None` for zeros.
    pub fn init(&mut self, value: &Value, ty: ElemType, shape: &[u64], span: Span) -> Result<Option<Init>> {
        match value {
            Value::Array(a) => {
                if a.ty != ty {
                    let message = format!("the array holds {}, but the variable {ty}", a.ty);
                    let help = format!("convert it: `{ty}(…)`");
                    return Err(self.error_help("elaborate::type_mismatch", span, message, help));
                }
                let data = self.broadcast_bytes(&a.bytes, &a.shape, ty, shape, span)?;
                Ok(init_of(ty, data))
            }
            Value::List(_) => {
                let mut dims = Vec::new();
                let mut flat = Vec::new();
                self.flatten_list(value, 0, &mut dims, &mut flat, span)?;
                let mut bytes = Vec::with_capacity(flat.len() * ty.bytes() as usize);
                for v in &flat {
                    bytes.extend(self.scalar(v, ty, span)?.to_le_bytes());
                }
                let data = self.broadcast_bytes(&bytes, &dims, ty, shape, span)?;
                Ok(init_of(ty, data))
            }
            Value::Drawn(d) => self.init_drawn(d, ty, shape, span).map(Some),
            Value::Tensor(_) => {
                let help = "write it in a program with `<-`, or use a list, a number or `load(…)`";
                let message = "a variable's initial value is known at load, but a tensor's is not";
                Err(self.error_help("elaborate::type_mismatch", span, message, help))
            }
            number => {
                let s = self.scalar(number, ty, span)?;
                Ok((s.bits != 0).then_some(Init::Fill(s)))
            }
        }
    }

    /// Returns the elements and dimensions of nested lists.
    pub fn flatten_list(
        &mut self,
        value: &Value,
        depth: usize,
        dims: &mut Vec<u64>,
        flat: &mut Vec<Value>,
        span: Span,
    ) -> Result<()> {
        match value {
            Value::List(items) => {
                let len = items.len() as u64;
                match dims.get(depth) {
                    None => dims.push(len),
                    Some(&d) if d != len => {
                        return Err(self.error(
                            "elaborate::ragged_list",
                            span,
                            format!("rows of a list have {d} and {len} values"),
                        ));
                    }
                    Some(_) => {}
                }
                self.charge_many(len, span)?;
                items.iter().try_for_each(|i| self.flatten_list(i, depth + 1, dims, flat, span))
            }
            _ if depth != dims.len() => Err(self.error("elaborate::ragged_list", span, "the list nests unevenly")),
            v => {
                flat.push(v.clone());
                Ok(())
            }
        }
    }

    /// Converts a static number to an element; floats round once, integers must fit.
    pub fn scalar(&mut self, value: &Value, ty: ElemType, span: Span) -> Result<Scalar> {
        let found = match (value, ty) {
            (Value::Bool(b), ElemType::Bool) => Some(Scalar::bool(*b)),
            (Value::Int(i), ElemType::F32) => Some(Scalar::f32(*i as f32)),
            (Value::Int(i), ElemType::F64) => Some(Scalar::f64(*i as f64)),
            (Value::Float(x), ElemType::F32) if x.is_finite() && (*x as f32).is_infinite() => {
                let help = format!("the greatest is {:?}; infinity is written `f32.inf`", f32::MAX);
                let message = format!("{x:?} does not fit the type f32");
                return Err(self.error_help("elaborate::does_not_fit", span, message, help));
            }
            (Value::Float(x), ElemType::F32) => Some(Scalar::f32(*x as f32)),
            (Value::Float(x), ElemType::F64) => Some(Scalar::f64(*x)),
            (Value::Literal(literal), ty) => match literal.element(ty) {
                None if ty.is_int() == matches!(literal, Literal::Unsigned(_)) && ty != ElemType::Bool => {
                    let message = format!("{literal} does not fit the type {ty}");
                    return Err(self.error("elaborate::does_not_fit", span, message));
                }
                found => found,
            },
            (Value::Int(i), t) if t.is_int() => match Scalar::int(t, *i as i128) {
                Some(s) => Some(s),
                None => {
                    return Err(self.error("elaborate::does_not_fit", span, format!("{i} does not fit the type {t}")));
                }
            },
            _ => None,
        };
        if let Some(s) = found {
            return Ok(s);
        }
        if value.is_error() {
            return Err(Failed);
        }
        let message = format!("expected a value of type {ty}, found {}", value.describe());
        let d = Diagnostic::error("elaborate::type_mismatch", span, message);
        Err(self.report(match value {
            Value::Float(_) if ty.is_int() => d.help(format!("convert it: `{ty}(…)`")),
            Value::Drawn(_) => d.help(
                "a `param`, `state` or `const`, or a `var` of the module, can begin with it; for \
                 numbers at run time give the function a shape",
            ),
            Value::Row(..) => d.help(READ_FIRST),
            Value::Tensor(_) => d.help(
                "a static value is needed here; tensors are joined by `concat([a, b])` or, along a new axis, by \
                 `nn.stack([a, b])` with `use nn;`",
            ),
            Value::Range(_) => d.help("the numbers of a range are a list: `list i in a..b { i }`"),
            _ => d,
        }))
    }

    /// Repeats an array's bytes to a shape that it broadcasts to.
    fn broadcast_bytes(&mut self, bytes: &[u8], from: &[u64], ty: ElemType, to: &[u64], span: Span) -> Result<Vec<u8>> {
        if from == to {
            return Ok(bytes.to_vec());
        }
        // A view of a placeholder variable implements the broadcasting rules.
        let view = View::whole(girder_ir::ids::VarId::from_u32(0), from);
        let limit = self.session.limits.elements;
        let fits = to.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).is_some_and(|n| n <= limit);
        let Some(view) = view.broadcast_to(to).filter(|_| fits) else {
            let (from, to) = (crate::value::shaped(ty, from), crate::value::shaped(ty, to));
            return Err(self.error("elaborate::shape_mismatch", span, format!("{from} does not broadcast to {to}")));
        };
        let size = ty.bytes() as usize;
        let at = |e: u64| &bytes[e as usize * size..(e as usize + 1) * size];
        Ok(view.elements().flat_map(|(_, e)| at(e).iter().copied()).collect())
    }

    fn stream(&mut self, s: &ast::Stream, span: Span) -> Result<Value> {
        let (ty, shape) = self.supported(&s.ty)?;
        let (mut wrap, mut shuffle, mut ahead, mut same) = (false, None, 0, false);
        for o in &s.options {
            let name = o.name.as_ref().map_or("", |n| n.name.as_str());
            let at = self.tree().exprs[o.value].span;
            match (name, self.expr(o.value)?) {
                ("wrap", Value::Bool(b)) if s.input => wrap = b,
                ("shuffle", Value::Int(seed)) if s.input && seed >= 0 => shuffle = Some(seed as u64),
                ("ahead", Value::Int(n)) => match u32::try_from(n).ok().filter(|&n| n <= MOST_AHEAD) {
                    Some(n) => ahead = n,
                    None => {
                        let message = format!("a stream holds 0 to {MOST_AHEAD} packets ahead, not {n}");
                        let help = "two packets are enough where the host is faster than the program";
                        return Err(self.error_help("elaborate::ahead", at, message, help));
                    }
                },
                ("replicas", Value::Str(s)) if s == "same" => same = true,
                ("replicas", Value::Str(s)) if s == "each" => same = false,
                ("replicas", other) => {
                    let message = format!(
                        "a stream's replicas have \"each\" its packets, or all the \"same\", not {}",
                        other.describe()
                    );
                    let help = "with \"each\", which need not be written, the packets of replicas follow one another";
                    return Err(self.error_help("elaborate::unknown_option", at, message, help));
                }
                ("wrap", other) if s.input => return Err(self.expected("a static bool", &other, at)),
                ("ahead", other) => return Err(self.expected("a static integer", &other, at)),
                ("shuffle", other) if s.input => {
                    return Err(self.expected("a seed, a static integer of 0 or more", &other, at));
                }
                _ => {
                    let help = match s.input {
                        true => "an `in` stream takes `wrap: true`, `shuffle: 1`, `ahead: 2` and `replicas: \"same\"`",
                        false => "an `out` stream takes `ahead: 2` and `replicas: \"same\"`",
                    };
                    return Err(self.error_help("elaborate::unknown_option", at, format!("no option `{name}`"), help));
                }
            }
        }
        let name = self.unique_name(&s.name.dotted());
        let origin = self.origin_at(span);
        let shape = shape.into_iter().collect();
        let id = self.graph.streams.push(Stream {
            name,
            input: s.input,
            ty,
            shape,
            wrap,
            shuffle,
            ahead,
            same,
            rows: None,
            offloaded: false,
            origin,
        });
        Ok(Value::Stream(id))
    }
}

/// Returns an initial value in its shortest form: `None` for zeros, one element if all are equal.
fn init_of(ty: ElemType, data: Vec<u8>) -> Option<Init> {
    let size = ty.bytes() as usize;
    let mut elements = data.chunks_exact(size);
    let first = elements.next()?;
    if elements.any(|e| e != first) {
        return Some(Init::Data(data.into()));
    }
    let value = Scalar::from_le_bytes(ty, first);
    (value.bits != 0).then_some(Init::Fill(value))
}
