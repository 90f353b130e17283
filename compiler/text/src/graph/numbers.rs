//! Numbers: sums of indices, elements, initial values.
//!
//! Invariant: a printed element reads back to the same bits.

use super::Printer;
use base64::Engine as _;
use girder_ir::affine::Affine;
use girder_ir::drawn::{Drawn, Law};
use girder_ir::graph::{Init, Var, VarClass};
use girder_ir::types::{ElemType, Scalar};
use girder_syntax::ast::{BinaryOp, ExprId, UnaryOp};
use girder_syntax::make::{arg, named};
use smol_str::SmolStr;

/// An initial value of more elements than this is printed as base64.
const LIST: u64 = 16;

impl Printer<'_> {
    /// Returns `base + Σ coef · term`, without summands 0 and factors 1.
    pub(super) fn sum(&mut self, base: i64, terms: &[(i64, ExprId)]) -> ExprId {
        let terms = terms.iter().filter(|t| t.0 != 0);
        let base_first = base != 0 && terms.clone().next().is_some_and(|t| t.0 < 0);
        let mut sum = base_first.then(|| self.make.int(base));
        for &(coef, term) in terms {
            sum = Some(match sum {
                None => self.product(coef, term),
                Some(left) => {
                    let right = self.product(coef.saturating_abs(), term);
                    let op = if coef < 0 { BinaryOp::Sub } else { BinaryOp::Add };
                    self.make.binary(op, left, right)
                }
            });
        }
        match sum {
            None => self.make.int(base),
            Some(sum) if base == 0 || base_first => sum,
            Some(sum) => {
                let right = self.make.uint(base.unsigned_abs());
                self.make.binary(if base < 0 { BinaryOp::Sub } else { BinaryOp::Add }, sum, right)
            }
        }
    }

    fn product(&mut self, coef: i64, term: ExprId) -> ExprId {
        if coef == 1 {
            return term;
        }
        let coef = self.make.int(coef);
        self.make.binary(BinaryOp::Mul, coef, term)
    }

    /// Returns an affine function of named indices.
    pub(super) fn affine(&mut self, affine: &Affine, indices: &[SmolStr]) -> ExprId {
        let terms: Vec<(i64, ExprId)> =
            affine.coef.iter().zip(indices).map(|(&c, name)| (c, self.make.name(name))).collect();
        self.sum(affine.base, &terms)
    }

    /// Returns an element as a literal, or `None` if it can only be printed as bytes.
    pub(super) fn scalar(&mut self, value: Scalar) -> Option<ExprId> {
        Some(match value.ty {
            ElemType::Bool => self.make.bool(value.bits != 0),
            ElemType::F32 => {
                let v = f32::from_bits(value.bits as u32);
                // A signalling NaN would become a quiet one on its way through `f64`.
                let quiet = Scalar::f32(f64::from(v) as f32) == value;
                return quiet.then(|| self.make.float32(v));
            }
            ElemType::F64 => {
                let v = f64::from_bits(value.bits);
                if v.is_finite() || v.is_sign_positive() {
                    return Some(self.make.float(v));
                }
                // The bits of a negative number exceed the greatest `int`.
                let positive = self.make.float(-v);
                self.make.unary(UnaryOp::Neg, positive)
            }
            _ => match i64::try_from(value.as_int()?).ok()? {
                i64::MIN => self.make.name("i64.min"),
                v => self.make.int(v),
            },
        })
    }

    /// Returns the value of a variable at load. A `const` always has one.
    pub(super) fn init(&mut self, var: &Var) -> Option<ExprId> {
        match &var.init {
            None if var.class == VarClass::Const => self.scalar(Scalar::zero(var.ty)),
            None => None,
            Some(Init::Fill(v)) if v.bits == 0 && var.class != VarClass::Const => None,
            Some(Init::Fill(v)) => Some(match self.scalar(*v) {
                Some(e) => e,
                None => self.bytes(var.ty, &[], &v.to_le_bytes().collect::<Vec<u8>>()),
            }),
            Some(Init::Data(data)) => {
                let list = (var.len() <= LIST).then(|| self.nested(var.ty, &var.shape, data)).flatten();
                Some(list.unwrap_or_else(|| self.bytes(var.ty, &var.shape, data)))
            }
            Some(Init::Drawn(drawn)) => Some(self.drawn(drawn)),
            Some(Init::ReplicaIndex) => Some(self.make.name("replica_index")),
        }
    }

    /// Prints elements as `[[1.0, 2.0], [3.0, 4.0]]`, or returns `None` if one of them has no literal.
    fn nested(&mut self, ty: ElemType, shape: &[u64], data: &[u8]) -> Option<ExprId> {
        let Some((&n, rest)) = shape.split_first() else {
            let value = Scalar::from_le_bytes(ty, data);
            // NaNs differ in their bits, which a literal does not show.
            return if value.as_float().is_some_and(f64::is_nan) { None } else { self.scalar(value) };
        };
        let row = data.len() / (n as usize).max(1);
        let rows = data.chunks_exact(row.max(1)).map(|r| self.nested(ty, rest, r));
        let rows = rows.collect::<Option<Vec<_>>>()?;
        Some(self.make.list(rows))
    }

    /// Prints elements as `bytes(f32, [3], "…")`.
    fn bytes(&mut self, ty: ElemType, shape: &[u64], data: &[u8]) -> ExprId {
        let ty = self.make.name(ty.name());
        let shape = self.uints(shape);
        let text = self.make.str(base64::engine::general_purpose::STANDARD.encode(data));
        self.make.call_name("bytes", vec![arg(ty), arg(shape), arg(text)])
    }

    /// Prints `drawn("normal", seed: 1, site: 7, scale: 0.05)`, without numbers that are the reader's defaults.
    fn drawn(&mut self, drawn: &Drawn) -> ExprId {
        let (kind, numbers) = match drawn.law {
            Law::Uniform { lo, hi } => ("uniform", vec![("lo", lo, 0.0), ("hi", hi, 1.0)]),
            Law::Normal { mean, scale } => ("normal", vec![("mean", mean, 0.0), ("scale", scale, 1.0)]),
            Law::Truncated { mean, scale, lo, hi } => {
                let numbers = [("mean", mean, 0.0), ("scale", scale, 1.0), ("lo", lo, -2.0), ("hi", hi, 2.0)];
                ("truncated_normal", numbers.to_vec())
            }
        };
        let kind = self.make.str(kind.to_string());
        let (seed, site) = (self.make.uint(drawn.seed), self.make.uint(drawn.site));
        let mut args = vec![arg(kind), named("seed", seed), named("site", site)];
        for (name, value, assumed) in numbers {
            if value.to_bits() != f64::to_bits(assumed) {
                let value = self.make.float(value);
                args.push(named(name, value));
            }
        }
        self.make.call_name("drawn", args)
    }

    /// Prints `[3, 4]`.
    pub(super) fn uints(&mut self, list: &[u64]) -> ExprId {
        let list = list.iter().map(|&n| self.make.uint(n)).collect();
        self.make.list(list)
    }
}
