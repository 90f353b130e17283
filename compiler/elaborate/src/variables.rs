//! Creation of variables, temporaries and constants, and the names of entities.
//!
//! Invariant: a variable's size is checked before the variable is made.

use crate::elaborator::{Elaborator, memory};
use crate::places::StatedTiles;
use crate::value::{Tensor, Value, shaped};
use girder_ir::graph::{Init, Var, VarClass};
use girder_ir::ids::VarId;
use girder_ir::types::{ElemType, Scalar};
use girder_ir::view::View;
use girder_source::{Result, Span};
use smol_str::SmolStr;

/// Maximal number of axes of a tensor: views take time in proportion to them.
const MAX_AXES: usize = 64;

impl Elaborator<'_> {
    /// Returns the path of an entity named `name` here, made unique by `_2`, `_3`, …
    pub fn unique_name(&mut self, name: &str) -> SmolStr {
        let path = self.qualified(name);
        self.entities.vars.unique(path)
    }

    /// Returns the path of a persistent variable made here. It contains the names of the `let`s around, so that another
    /// `let` with a call of the same function does not change it.
    pub fn unique_persistent_name(&mut self, name: &str) -> SmolStr {
        let mut path = self.emission.path_with_lets();
        path.push(name.into());
        self.entities.vars.unique(path.join(".").into())
    }

    /// Returns the unique path of a compute set or copy; without a name, the scope alone names it.
    pub fn unique_set_name(&mut self, name: Option<&str>, fallback: &str) -> SmolStr {
        let path = match name {
            Some(name) => self.qualified(name),
            None if self.emission.path().len() > 1 => self.emission.path().join(".").into(),
            None => self.qualified(fallback),
        };
        self.entities.sets.unique(path)
    }

    /// Returns the path of an entity named `name` here.
    pub fn qualified(&self, name: &str) -> SmolStr {
        match self.emission.path() {
            [] => name.into(),
            path => format!("{}.{name}", path.join(".")).into(),
        }
    }

    /// Makes a variable whose size has been checked.
    pub fn add_var(
        &mut self,
        name: SmolStr,
        class: VarClass,
        ty: ElemType,
        shape: &[u64],
        site: StatedTiles,
        span: Span,
    ) -> Result<VarId> {
        let limit = self.session.limits.elements;
        let len = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).filter(|&n| n <= limit);
        if len.is_none() {
            let message = format!("{} has more than {limit} elements", shaped(ty, shape));
            let help = "`--limit elements=N` allows more, up to 4294967295";
            return Err(self.error_help("elaborate::too_many_elements", span, message, help));
        }
        self.bounded_shape(shape, ty, span)?;
        if !ty.is_supported() {
            return Err(self.unsupported(span, &format!("the element type `{ty}`")));
        }
        let origin = self.origin_at(span);
        // The name is in the table of names, too.
        self.charge_bytes(memory::VAR + 2 * name.len() as u64 + 8 * shape.len() as u64, span)?;
        let StatedTiles { mapping, within } = site;
        let shape = shape.iter().copied().collect();
        let var = self.graph.vars.push(Var { name, class, ty, shape, init: None, mapping, within, origin });
        self.recorder.make(var);
        Ok(var)
    }

    /// Reports a shape with too many axes, or one without elements whose axes exceed the range of element numbers.
    pub fn bounded_shape(&mut self, shape: &[u64], ty: ElemType, span: Span) -> Result<()> {
        if shape.len() > MAX_AXES {
            let message = format!("a tensor has at most {MAX_AXES} axes, and this one would have {}", shape.len());
            return Err(self.error_help("elaborate::too_many_axes", span, message, "merge axes with `reshape`"));
        }
        let product = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d.max(1)));
        if product.is_none_or(|n| n > u32::MAX as u64) {
            let message = format!("the axes of {} are too long", shaped(ty, shape));
            let help = "without the empty ones they have at most 4294967295 elements";
            return Err(self.error_help("elaborate::too_many_elements", span, message, help));
        }
        Ok(())
    }

    /// Makes a temporary.
    pub fn temporary(&mut self, name: &str, ty: ElemType, shape: &[u64], span: Span) -> Result<Tensor> {
        let name = self.unique_name(name);
        let var = self.add_var(name, VarClass::Temp, ty, shape, self.site_here(), span)?;
        Ok(Tensor { view: View::whole(var, shape), ty })
    }

    /// Returns a read-only scalar; equal values share one variable on the same processors.
    pub fn constant(&mut self, value: Scalar, span: Span) -> Result<Tensor> {
        let within = self.processors_here();
        let var = match self.entities.constants.get(&(value, within)) {
            Some(&v) => v,
            None => {
                let name = self.entities.vars.unique(format!("constant.{}", value.ty).into());
                let v =
                    self.add_var(name, VarClass::Const, value.ty, &[], StatedTiles { mapping: None, within }, span)?;
                self.graph.vars[v].init = Some(Init::Fill(value));
                self.entities.constants.insert((value, within), v);
                v
            }
        };
        Ok(Tensor { view: View::whole(var, &[]), ty: value.ty })
    }

    /// Returns a list or array as a constant tensor.
    pub fn constant_of(&mut self, value: &Value, ty: ElemType, shape: &[u64], span: Span) -> Result<Tensor> {
        let name = self.unique_name("constant");
        let init = self.init(value, ty, shape, span)?;
        let var = self.add_var(name, VarClass::Const, ty, shape, self.site_here(), span)?;
        self.graph.vars[var].init = init;
        Ok(Tensor { view: View::whole(var, shape), ty })
    }
}
