//! Initial values that are drawn at load, and the numbers of the places that draw.
//!
//! A drawing is a static value until a variable takes it: only then are the shape, on which a scale may depend, and the
//! name of the variable known.
//!
//! # Note: Sites
//! Draws of the same seed are told apart by a number, the *site*: the first 48 bits of the SipHash-1-3, with a key of
//! zeros, of the name of the variable or of the path of the call. Other variables and calls do not change it.
//!
//! Invariant: the distribution of a variable is valid ([`Law::is_valid`]), and its type is a float type.

pub mod drawing;

use crate::elaborator::Elaborator;
use crate::value::{Given, Value, shaped};
use drawing::{Drawing, Fan, Kind, Scaled, by_fan, fan_of};
use girder_ir::drawn::{Drawn, Law, normal_cdf};
use girder_ir::graph::Init;
use girder_ir::ids::VarId;
use girder_ir::types::ElemType;
use girder_source::{Diagnostic, Failed, Result, Span};
use siphasher::sip::SipHasher13;
use smol_str::SmolStr;
use std::hash::Hasher;
use std::sync::Arc;

impl Elaborator<'_> {
    /// Evaluates `drawn("normal", seed: 1, site: 7, scale: 0.05)`, or with `fan`, `gain` and `stack` instead of numbers
    /// of the distribution.
    pub(crate) fn drawn(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let names = ["kind", "seed?", "site?", "mean?", "scale?", "lo?", "hi?", "fan?", "gain?", "stack?", "type?"];
        let [kind, seed, site, mean, scale, lo, hi, fan, gain, stack, ty] =
            self.arguments("drawn", names, given, span)?;
        let kind = match kind.ok_or(Failed)? {
            Given { value: Value::Str(name), span: at, .. } => match name.as_str() {
                "uniform" => Kind::Uniform,
                "normal" => Kind::Normal,
                "truncated_normal" => Kind::Truncated,
                other => return Err(self.no_distribution(other, at)),
            },
            g => return Err(self.expected("a string", &g.value, g.span)),
        };
        let seed = self.number_of(seed, "seed")?.unwrap_or(0);
        let site = self.number_of(site, "site")?;
        let law = match fan {
            Some(fan) => {
                let fan = self.fan(fan)?;
                let gain = self.real(gain, 1.0)?;
                let stack = self.number_of(stack, "stack")?.unwrap_or(0) as usize;
                if !(gain.is_finite() && gain >= 0.0) {
                    return Err(self.not_drawn(span, format!("the gain is {gain:?}; it is not negative")));
                }
                Scaled::ByFan { kind, fan, gain, stack }
            }
            None => Scaled::Fixed(self.law(kind, [mean, scale, lo, hi], span)?),
        };
        let ty = self.drawn_type(ty)?;
        Ok(Value::Drawn(Arc::new(Drawing { law, seed, site, ty })))
    }

    fn law(&mut self, kind: Kind, [mean, scale, lo, hi]: [Option<Given>; 4], span: Span) -> Result<Law> {
        let (low, high) = if kind == Kind::Uniform { (0.0, 1.0) } else { (-2.0, 2.0) };
        let (mean, scale) = (self.real(mean, 0.0)?, self.real(scale, 1.0)?);
        let (lo, hi) = (self.real(lo, low)?, self.real(hi, high)?);
        let law = match kind {
            Kind::Uniform => Law::Uniform { lo, hi },
            Kind::Normal => Law::Normal { mean, scale },
            Kind::Truncated => Law::Truncated { mean, scale, lo, hi },
        };
        if law.is_valid() {
            return Ok(law);
        }
        Err(self.not_drawn(
            span,
            match law {
                _ if scale < 0.0 => format!("the scale is {scale:?}; it is not negative"),
                Law::Uniform { .. } => format!("{lo:?} and {hi:?} are not the bounds of a uniform distribution"),
                Law::Normal { .. } => format!("{mean:?} and {scale:?} are no mean and scale"),
                Law::Truncated { .. } => format!(
                    "less than a part in 10⁶ of a normal distribution is between {lo:?} and {hi:?} standard deviations"
                ),
            },
        ))
    }

    fn not_drawn(&mut self, span: Span, message: String) -> Failed {
        self.error("elaborate::drawn", span, message)
    }

    fn no_distribution(&mut self, name: &str, span: Span) -> Failed {
        let known = ["uniform", "normal", "truncated_normal"];
        let d = Diagnostic::error("elaborate::drawn", span, format!("there is no distribution `{name}`"));
        self.report(match girder_source::closest(name, known.into_iter()) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.help(format!("there are {}", known.map(|k| format!("`{k}`")).join(", "))),
        })
    }

    /// Returns an optional integer that is not negative.
    fn number_of(&mut self, given: Option<Given>, what: &str) -> Result<Option<u64>> {
        match given {
            None | Some(Given { value: Value::Unit, .. }) => Ok(None),
            Some(Given { value: Value::Int(n), span, .. }) => match u64::try_from(n) {
                Ok(n) => Ok(Some(n)),
                Err(_) => Err(self.not_drawn(span, format!("the {what} is {n}; it is not negative"))),
            },
            Some(g) => Err(self.expected("a static integer", &g.value, g.span)),
        }
    }

    /// Returns the type in which numbers are to be drawn, if it is given.
    fn drawn_type(&mut self, given: Option<Given>) -> Result<Option<ElemType>> {
        match given {
            None | Some(Given { value: Value::Unit, .. }) => Ok(None),
            Some(Given { value: Value::Type(ty), .. }) => Ok(Some(ty)),
            Some(g) => Err(self.expected("a type", &g.value, g.span)),
        }
    }

    fn real(&mut self, given: Option<Given>, default: f64) -> Result<f64> {
        match given.map(|g| (g.value, g.span)) {
            None => Ok(default),
            Some((Value::Float(x), _)) => Ok(x),
            Some((Value::Int(i), _)) => Ok(i as f64),
            Some((other, span)) => Err(self.expected("a static number", &other, span)),
        }
    }

    fn fan(&mut self, given: Given) -> Result<Fan> {
        let Value::Str(name) = &given.value else { return Err(self.expected("a string", &given.value, given.span)) };
        match name.as_str() {
            "in" => Ok(Fan::In),
            "out" => Ok(Fan::Out),
            "average" => Ok(Fan::Average),
            other => {
                let message = format!("no fan is called `{other}`: there are `in`, `out` and `average`");
                Err(self.not_drawn(given.span, message))
            }
        }
    }

    /// Returns the initial value of a variable that takes a drawing, and whether its name decides the site.
    pub(crate) fn init_drawn(&mut self, d: &Drawing, ty: ElemType, shape: &[u64], span: Span) -> Result<Init> {
        if !ty.is_float() {
            let message = format!("numbers are drawn for f32 and f64, not for {ty}");
            let help = "draw in a program, with a shape: `random.integers([n], seed: 1, lo: 0, hi: 10)`";
            return Err(self.error_help("elaborate::drawn", span, message, help));
        }
        if let Some(stated) = d.ty.filter(|&stated| stated != ty) {
            let message = format!("these numbers are drawn in {stated}, but the variable is {}", shaped(ty, shape));
            let help = "leave `T` out: an initial value has the type of its variable";
            return Err(self.error_help("elaborate::type_mismatch", span, message, help));
        }
        let law = match d.law {
            Scaled::Fixed(law) => law,
            Scaled::ByFan { stack, .. } if stack > shape.len() => {
                let message = format!("{} does not have {stack} axes that count copies", shaped(ty, shape));
                return Err(self.not_drawn(span, message));
            }
            Scaled::ByFan { kind, fan, gain, stack } => by_fan(kind, fan_of(fan, &shape[stack..]), gain),
        };
        Ok(Init::Drawn(Drawn { law, seed: d.seed, site: d.site.unwrap_or(0) }))
    }

    /// Notes that the site of a variable follows from its name.
    pub(crate) fn site_by_name(&mut self, var: VarId) {
        self.entities.sites_by_name.insert(var);
        self.renew_site(var);
    }

    /// Sets the site of a variable that has a new name.
    pub(crate) fn renew_site(&mut self, var: VarId) {
        if self.entities.sites_by_name.contains(&var)
            && let v = &mut self.graph.vars[var]
            && let Some(Init::Drawn(d)) = &mut v.init
        {
            d.site = site_of(&v.name);
        }
    }

    /// Evaluates `call_site()`: the number of the call that is being evaluated.
    pub(crate) fn call_site(&mut self) -> Value {
        // Each call has a number of its own, so that its value is not remembered.
        self.memo_table.reads += 1;
        let path = self.emission.path_with_lets().join(".");
        let name = self.entities.sites.unique(path.into());
        Value::Int(site_of(&name) as i64)
    }

    /// Evaluates `normal_cdf(x)` of a static number.
    pub(crate) fn normal_cdf(&mut self, given: Vec<Given>, span: Span) -> Result<Value> {
        let [x] = self.arguments("normal_cdf", ["x"], given, span)?;
        self.real(x, 0.0).map(|x| Value::Float(normal_cdf(x)))
    }
}

/// Returns the number of a name; see the note on sites.
fn site_of(name: &SmolStr) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(name.as_bytes());
    hasher.finish() >> 16
}
