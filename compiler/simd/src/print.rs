//! The text of a kernel.
//!
//! ```text
//! kernel {
//!     p0 = pointer record[0], stride 4
//!     a0 = accumulator f32 record[64], start 0x80000000
//!     v0 = load.f32 p0
//!     v1 = constant.f32 0x3f800000    // 1
//!     v2 = add.f32 v0, v1
//!     store p0, v2
//!     a0 = sum a0, v2
//! }
//! ```
//!
//! Invariant: equal kernels have equal texts, and the text has every field of an operation.

use crate::ir::{Cond, Effect, Item, Kernel, Lane, Memory, Op, Reduction, Rounding, Value};
use std::fmt::{Display, Formatter, Result};

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "v{}", self.0)
    }
}

impl Display for Memory {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.offset {
            0 => write!(f, "p{}", self.pointer.0),
            offset => write!(f, "p{}{offset:+}", self.pointer.0),
        }
    }
}

impl Op {
    /// Returns the name of an operation.
    fn name(self) -> &'static str {
        match self {
            Op::Constant { .. } => "constant",
            Op::Uniform { .. } => "uniform",
            Op::Index { .. } => "index",
            Op::Load(_) => "load",
            Op::LoadPermuted { .. } => "load_permuted",
            Op::Neg => "neg",
            Op::Abs => "abs",
            Op::Not => "not",
            Op::Sqrt => "sqrt",
            Op::Round(Rounding::Nearest) => "nearest",
            Op::Round(Rounding::Floor) => "floor",
            Op::Round(Rounding::Ceil) => "ceil",
            Op::Round(Rounding::Trunc) => "trunc",
            Op::CountOnes => "count_ones",
            Op::LeadingZeros => "leading_zeros",
            Op::Add => "add",
            Op::Sub => "sub",
            Op::Mul => "mul",
            Op::Div => "div",
            Op::Min => "min",
            Op::Max => "max",
            Op::And => "and",
            Op::Or => "or",
            Op::Xor => "xor",
            Op::Average => "average",
            Op::Shl { .. } => "shl",
            Op::Shr { .. } => "shr",
            Op::DivideBy { .. } => "divide_by",
            Op::RemainderBy { .. } => "remainder_by",
            Op::Fma => "fma",
            Op::Compare(Cond::Eq) => "eq",
            Op::Compare(Cond::Ne) => "ne",
            Op::Compare(Cond::Lt) => "lt",
            Op::Compare(Cond::Le) => "le",
            Op::Compare(Cond::Gt) => "gt",
            Op::Compare(Cond::Ge) => "ge",
            Op::Select => "select",
            Op::Convert => "convert",
            Op::Bits => "bits",
            Op::SumNeighbours => "sum_neighbours",
            Op::DotNeighbours => "dot_neighbours",
        }
    }
}

impl Reduction {
    fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Product => "product",
            Reduction::Min => "min",
            Reduction::Max => "max",
            Reduction::And => "and",
            Reduction::Or => "or",
        }
    }
}

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.per_iteration {
            1 => writeln!(f, "kernel {{")?,
            n => writeln!(f, "kernel, {n} elements per iteration {{")?,
        }
        for (n, pointer) in self.pointers.iter().enumerate() {
            write!(f, "    p{n} = pointer record[{}], stride {}", pointer.offset, pointer.stride)?;
            match self.outer {
                Some(_) => writeln!(f, ", outer {}", pointer.outer)?,
                None => f.write_str("\n")?,
            }
        }
        if let Some(trips) = self.outer {
            writeln!(f, "    outer loop, record[{trips}] trips")?;
        }
        for (n, accumulator) in self.accumulators.iter().enumerate() {
            write!(f, "    a{n} = accumulator {} record[{}]", accumulator.lane.name(), accumulator.offset)?;
            if let Some(bits) = accumulator.start {
                write!(f, ", start {bits:#x}")?;
            }
            writeln!(f, "{}", if accumulator.any_order { ", any order" } else { "" })?;
        }
        for item in &self.items {
            f.write_str("    ")?;
            match item {
                Item::Make(value) => self.print_value(*value, f)?,
                Item::Do(effect) => print_effect(effect, f)?,
            }
            f.write_str("\n")?;
        }
        f.write_str("}\n")
    }
}

impl Kernel {
    fn print_value(&self, value: Value, f: &mut Formatter<'_>) -> Result {
        let def = self.def(value);
        // Comparisons and conversions name the operand's lane.
        let of = def.args.first().map_or(def.lane, |&a| self.lane(a));
        match def.op {
            Op::Compare(_) => write!(f, "{value} = {}.{}", def.op.name(), of.name())?,
            Op::Convert | Op::Bits | Op::SumNeighbours | Op::DotNeighbours => {
                write!(f, "{value} = {}.{}.{}", def.op.name(), of.name(), def.lane.name())?;
            }
            _ => write!(f, "{value} = {}.{}", def.op.name(), def.lane.name())?,
        }
        let mut operands: Vec<String> = def.args.iter().map(Value::to_string).collect();
        match def.op {
            Op::Constant { bits } => operands.push(format!("{bits:#x}{}", note(def.lane, bits))),
            Op::Uniform { offset } => operands.push(format!("record[{offset}]")),
            Op::Index { offset, step } => operands.extend([format!("record[{offset}]"), format!("step {step}")]),
            Op::Load(from) => {
                operands.insert(0, from.to_string());
                if let [_, mask] = operands.as_mut_slice() {
                    *mask = format!("where {mask}");
                }
            }
            Op::LoadPermuted { from, order } => operands.extend([from.to_string(), format!("order {order:#018x}")]),
            Op::Shl { by } | Op::Shr { by } => operands.push(by.to_string()),
            Op::DivideBy { divisor } | Op::RemainderBy { divisor } => operands.push(divisor.to_string()),
            _ => {}
        }
        write!(f, " {}", operands.join(", "))
    }
}

/// Returns the value of a constant in readable form.
fn note(lane: Lane, bits: u64) -> String {
    match lane {
        _ if lane.is_float() => format!(" // {:?}", lane.float_value(bits)),
        _ if lane.is_signed() => format!(" // {}", lane.integer_value(bits)),
        _ => String::new(),
    }
}

fn print_effect(effect: &Effect, f: &mut Formatter<'_>) -> Result {
    let under = |mask: &Option<Value>| mask.map_or_else(String::new, |mask| format!(", where {mask}"));
    match effect {
        Effect::Store { to, value, mask } => write!(f, "store {to}, {value}{}", under(mask)),
        Effect::StoreInterleaved { to, values } => {
            let values: Vec<String> = values.iter().map(|(phase, value)| format!("{phase}: {value}")).collect();
            write!(f, "store_interleaved {to}, {}", values.join(", "))
        }
        Effect::Accumulate { accumulator, op, value, mask } => {
            let a = accumulator.0;
            write!(f, "a{a} = {} a{a}, {value}{}", op.name(), under(mask))
        }
        Effect::AccumulateProduct { accumulator, factors: [x, y], mask } => {
            let a = accumulator.0;
            write!(f, "a{a} = fma {x}, {y}, a{a}{}", under(mask))
        }
    }
}
