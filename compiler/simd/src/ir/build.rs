//! Construction of kernels.
//!
//! Invariant: operands have the lanes that the operation requires; anything else is a bug of the caller and panics.

use super::{
    Accumulator, AccumulatorId, Cond, Def, Effect, GROUP, Item, Kernel, Lane, Memory, Moving, Op, Pointer, Reduction,
    Value,
};
use rustc_hash::FxHashMap;

impl Default for Kernel {
    fn default() -> Self {
        Kernel::new(1)
    }
}

impl Kernel {
    /// Returns an empty kernel with a number of elements per iteration.
    pub fn new(per_iteration: u8) -> Kernel {
        Kernel {
            per_iteration,
            defs: Vec::new(),
            fixed: Vec::new(),
            known: FxHashMap::default(),
            items: Vec::new(),
            accumulators: Vec::new(),
            pointers: Vec::new(),
            outer: None,
        }
    }

    /// Returns the definition of a value.
    pub fn def(&self, value: Value) -> &Def {
        &self.defs[value.0 as usize]
    }

    /// Returns the type of a value's elements.
    pub fn lane(&self, value: Value) -> Lane {
        self.def(value).lane
    }

    /// Returns whether a value is a loop invariant.
    pub fn is_fixed(&self, value: Value) -> bool {
        self.fixed[value.0 as usize]
    }

    /// Returns the bits of a constant.
    pub fn constant_bits(&self, value: Value) -> Option<u64> {
        match self.def(value).op {
            Op::Constant { bits } => Some(bits),
            _ => None,
        }
    }

    /// Returns the result of an operation; reuses an equal one.
    pub fn make(&mut self, lane: Lane, op: Op, args: &[Value]) -> Value {
        let def = Def { lane, op, args: args.into() };
        if let Some(&value) = self.known.get(&def) {
            return value;
        }
        let moves = op.loads() || matches!(op, Op::Index { .. });
        self.fixed.push(!moves && args.iter().all(|&a| self.is_fixed(a)));
        self.defs.push(def.clone());
        let value = Value(self.defs.len() as u32 - 1);
        self.items.push(Item::Make(value));
        self.known.insert(def, value);
        value
    }

    /// Returns a value with the same bits in each element.
    pub fn constant(&mut self, lane: Lane, bits: u64) -> Value {
        self.make(lane, Op::Constant { bits: bits & lane.ones() }, &[])
    }

    /// Returns a number of the record.
    pub fn uniform(&mut self, lane: Lane, offset: u32) -> Value {
        if lane.is_mask() {
            let number = self.uniform(Lane::I32, offset);
            return self.convert(lane, number);
        }
        self.make(lane, Op::Uniform { offset }, &[])
    }

    /// Returns an index that starts with a number of the record.
    pub fn index(&mut self, lane: Lane, offset: u32, step: i64) -> Value {
        assert!(matches!(lane, Lane::I32 | Lane::I64), "an index is i32 or i64");
        self.make(lane, Op::Index { offset, step }, &[])
    }

    /// Loads elements of memory. An earlier load without a mask is reused for a masked one.
    pub fn load(&mut self, lane: Lane, from: Memory, mask: Option<Value>) -> Value {
        match (self.known_load(lane, from), mask) {
            (Some(known), _) => known,
            (None, Some(mask)) => self.make(lane, Op::Load(from), &[mask]),
            (None, None) => self.make(lane, Op::Load(from), &[]),
        }
    }

    /// Loads elements of memory in an order of their own.
    pub fn load_permuted(&mut self, lane: Lane, from: Memory, order: u64) -> Value {
        assert!(lane.bytes() == 4 && self.per_iteration == 1, "permuted elements have 32 bits");
        self.make(lane, Op::LoadPermuted { from, order }, &[])
    }

    /// Returns elements that were loaded without a mask, if nothing has been stored since.
    pub fn known_load(&self, lane: Lane, from: Memory) -> Option<Value> {
        self.known.get(&Def { lane, op: Op::Load(from), args: [].as_slice().into() }).copied()
    }

    /// Applies an operation to one value.
    pub fn unary(&mut self, op: Op, x: Value) -> Value {
        self.make(self.lane(x), op, &[x])
    }

    /// Applies an operation to two values of one lane.
    pub fn binary(&mut self, op: Op, a: Value, b: Value) -> Value {
        assert_eq!(self.lane(a), self.lane(b), "both operands have one lane");
        self.make(self.lane(a), op, &[a, b])
    }

    /// Compares two values; returns a mask.
    pub fn compare(&mut self, cond: Cond, a: Value, b: Value) -> Value {
        assert_eq!(self.lane(a), self.lane(b), "both operands have one lane");
        let lane = if self.lane(a).is_mask() { self.lane(a) } else { self.lane(a).mask(self.per_iteration) };
        self.make(lane, Op::Compare(cond), &[a, b])
    }

    /// Returns `mask ? yes : no`.
    pub fn select(&mut self, mask: Value, yes: Value, no: Value) -> Value {
        assert_eq!(self.lane(yes), self.lane(no), "both operands have one lane");
        self.make(self.lane(yes), Op::Select, &[mask, yes, no])
    }

    /// Returns `a * b + c`, rounded once.
    pub fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.make(self.lane(a), Op::Fma, &[a, b, c])
    }

    /// Converts a value to another lane.
    pub fn convert(&mut self, to: Lane, x: Value) -> Value {
        if self.lane(x) == to { x } else { self.make(to, Op::Convert, &[x]) }
    }

    /// Returns the bits of a value as another lane of the same width.
    pub fn bits(&mut self, to: Lane, x: Value) -> Value {
        assert_eq!(self.lane(x).bytes(), to.bytes(), "both lanes have one width");
        if self.lane(x) == to { x } else { self.make(to, Op::Bits, &[x]) }
    }

    /// Adds a pointer whose address is in the record.
    pub fn pointer(&mut self, moving: Moving) -> Pointer {
        self.pointers.push(moving);
        Pointer(self.pointers.len() as u32 - 1)
    }

    /// Returns the bytes from one iteration to the next.
    pub fn stride(&self, at: Memory) -> i64 {
        self.pointers[at.pointer.0 as usize].stride
    }

    /// Returns whether an access without a mask is to the same element in all iterations.
    pub(crate) fn is_still(&self, lane: Lane, at: Memory) -> bool {
        self.stride(at) == 0 && lane.bytes() >= 4 && self.per_iteration == 1
    }

    /// Returns whether elements of a lane are contiguous.
    pub fn is_contiguous(&self, lane: Lane, at: Memory) -> bool {
        self.stride(at) == i64::from(lane.bytes()) * i64::from(self.per_iteration)
    }

    /// Adds an accumulator.
    pub fn accumulator(&mut self, accumulator: Accumulator) -> AccumulatorId {
        self.accumulators.push(accumulator);
        AccumulatorId(self.accumulators.len() as u32 - 1)
    }

    /// Adds an effect.
    pub fn effect(&mut self, effect: Effect) {
        if effect.accumulator().is_none() {
            self.known.retain(|def, _| !def.op.loads());
        }
        self.items.push(Item::Do(effect));
    }

    /// Stores a value, everywhere or where a mask is true.
    pub fn store(&mut self, to: Memory, value: Value, mask: Option<Value>) {
        self.effect(Effect::Store { to, value, mask });
    }

    /// Accumulates a value.
    pub fn accumulate(&mut self, accumulator: AccumulatorId, op: Reduction, value: Value, mask: Option<Value>) {
        self.effect(Effect::Accumulate { accumulator, op, value, mask });
    }

    /// Returns the bytes of the record that the kernel uses.
    pub fn record_bytes(&self) -> usize {
        let pointers = self.pointers.iter().map(|p| p.offset + 8);
        let accumulators = self.accumulators.iter().map(|a| a.offset + GROUP as u32 * a.lane.bytes());
        let numbers = self.defs.iter().filter_map(|def| match def.op {
            Op::Uniform { offset } | Op::Index { offset, .. } => Some(offset + def.lane.bytes().max(4)),
            _ => None,
        });
        let trips = self.outer.map(|trips| trips + 8);
        pointers.chain(accumulators).chain(numbers).chain(trips).max().unwrap_or(0) as usize
    }

    /// Returns how often the items read each value.
    pub(crate) fn uses(&self) -> Vec<u32> {
        let mut uses = vec![0; self.defs.len()];
        for item in &self.items {
            match item {
                Item::Make(value) => self.def(*value).args.iter().for_each(|a| uses[a.0 as usize] += 1),
                Item::Do(effect) => effect.reads().iter().for_each(|a| uses[a.0 as usize] += 1),
            }
        }
        uses
    }

    /// Returns the operands of a sum of absolute differences of loaded bytes, whose elements may be accumulated in any
    /// order: two loads, or one whose bytes are summed themselves. Elements that are not loaded are 0, and so are their
    /// differences.
    pub(crate) fn summed_bytes(
        &self,
        id: AccumulatorId,
        op: Reduction,
        value: Value,
    ) -> Option<(Value, Option<Value>)> {
        let def = self.def(value);
        let sums = def.op == Op::SumNeighbours && self.accumulators[id.0 as usize].any_order;
        if !sums || op != Reduction::Sum || self.lane(def.args[0]) != Lane::U8 {
            return None;
        }
        let loaded = |value: Value| matches!(self.def(value).op, Op::Load(_));
        let bytes = def.args[0];
        if loaded(bytes) {
            return Some((bytes, None));
        }
        let difference = self.def(bytes);
        let &[greater, less] = (difference.op == Op::Sub).then_some(difference.args.as_slice())? else { return None };
        let (greater, less) = (self.def(greater), self.def(less));
        let same = greater.op == Op::Max && less.op == Op::Min && greater.args == less.args;
        let (x, y) = same.then(|| (greater.args[0], greater.args[1]))?;
        (loaded(x) && loaded(y)).then_some((x, Some(y)))
    }

    /// Returns the operands of `fma(a, b, c)` with the signs of its factors moved to the product, and whether the
    /// product is negated.
    pub(crate) fn signed_product(&self, args: &[Value]) -> ([Value; 3], bool) {
        let [a, b, c] = *args else { unreachable!("an `fma` has three operands") };
        let unsigned = |x: Value| match self.def(x).op {
            Op::Neg => (self.def(x).args[0], true),
            _ => (x, false),
        };
        let ((a, minus_a), (b, minus_b)) = (unsigned(a), unsigned(b));
        ([a, b, c], minus_a != minus_b)
    }

    /// Removes items that no effect needs.
    pub fn prune(&mut self) {
        let mut needed = vec![false; self.defs.len()];
        for item in self.items.iter().rev() {
            let reads = match item {
                Item::Do(effect) => effect.reads(),
                Item::Make(value) if needed[value.0 as usize] => self.def(*value).args.iter().copied().collect(),
                Item::Make(_) => continue,
            };
            reads.into_iter().for_each(|value| needed[value.0 as usize] = true);
        }
        self.items.retain(|item| if let Item::Make(value) = item { needed[value.0 as usize] } else { true });
    }
}
