//! Random kernels, drawn from a string of bytes so that failing ones shrink.
//!
//! Invariant: no iteration touches an element that another one stores, and all elements lie in the memory.

use super::case::Case;
use super::choices::Choices;
use girder_simd::ir::*;
use girder_simd::{Level, interleaved_stride};

struct Random<'a, 'c> {
    choices: &'c mut Choices<'a>,
    case: Case,
    values: Vec<Value>,
}

/// A kernel with one element per iteration.
pub fn case(choices: &mut Choices<'_>) -> Case {
    let case = Case::new(choices, 1);
    grown(choices, case)
}

/// A kernel with an outer loop.
pub fn outer(choices: &mut Choices<'_>) -> Case {
    let mut case = Case::new(choices, 1);
    case.repeat(choices.pick(&[2, 3, 7]));
    grown(choices, case)
}

fn grown(choices: &mut Choices<'_>, case: Case) -> Case {
    let mut random = Random { choices, case, values: Vec::new() };
    for _ in 0..1 + random.choices.below(4) {
        random.source();
    }
    while !random.choices.spent() && random.case.kernel.defs.len() < 90 {
        match random.choices.below(10) {
            0 => random.source(),
            1 => random.store(),
            2 => random.accumulate(),
            _ => random.operation(),
        }
    }
    random.store();
    random.case
}

/// A kernel that moves permuted elements.
pub fn permuted(choices: &mut Choices<'_>) -> Case {
    let mut case = Case::new(choices, 1);
    case.iterations = choices.pick(&[16, 32, 48, 64, 96]);
    let mut random = Random { choices, case, values: Vec::new() };
    for _ in 0..1 + random.choices.below(4) {
        let lane = random.choices.pick(&[Lane::F32, Lane::I32, Lane::U32]);
        let value = random.load_permuted(lane);
        random.values.push(value);
        random.store();
    }
    random.case
}

impl Random<'_, '_> {
    fn some(&mut self) -> Value {
        // Choosing recent values makes deep kernels.
        let n = self.values.len();
        let back = self.choices.below(n.min(12));
        self.values[n - 1 - back]
    }

    fn of(&mut self, lane: Lane) -> Value {
        let known: Vec<Value> = self.values.iter().copied().filter(|&v| self.case.kernel.lane(v) == lane).collect();
        if known.is_empty() || self.choices.below(8) == 0 {
            let bits = if lane.is_mask() { self.choices.below(2) as u64 } else { self.choices.bits(lane) };
            return self.case.kernel.constant(lane, bits);
        }
        self.choices.pick(&known)
    }

    fn mask(&mut self) -> Option<Value> {
        (self.choices.below(3) == 0).then(|| self.of(Lane::Mask))
    }

    fn stride(&mut self, lane: Lane) -> i64 {
        let bytes = i64::from(lane.bytes());
        match self.choices.below(6) {
            0 => bytes * self.choices.pick(&[2, 3, 4, -1]),
            1 if bytes >= 4 => bytes * self.choices.pick(&[5, 7, -2, 0]) + self.choices.pick(&[0, 1]),
            _ => bytes,
        }
    }

    /// Adds a value from outside the kernel.
    fn source(&mut self) {
        let lane = self.choices.pick(&Lane::NUMBERS);
        let value = match self.choices.below(6) {
            0 => {
                let bits = self.choices.bits(lane);
                let word = if lane.is_int() { lane.integer_value(bits) as u64 } else { bits };
                let offset = self.case.put(&word.to_le_bytes());
                self.case.kernel.uniform(lane, offset)
            }
            1 if self.case.trips == 1
                && !self.case.kernel.defs.iter().any(|def| matches!(def.op, Op::Index { .. })) =>
            {
                let lane = self.choices.pick(&[Lane::I32, Lane::I64]);
                let start = self.choices.bits(lane);
                let offset = self.case.put(&start.to_le_bytes());
                let step = self.choices.pick(&[1, 3, -1, 1000]);
                self.case.kernel.index(lane, offset, step)
            }
            _ => self.load(lane),
        };
        self.values.push(value);
    }

    /// Elements in any order; their memory ends with the last one that is used.
    fn load_permuted(&mut self, lane: Lane) -> Value {
        let most = self.choices.pick(&[0, 3, 7, 12, 15]);
        let numbers: Vec<u64> = (0..GROUP).map(|_| self.choices.below(most + 1) as u64).collect();
        let order = numbers.iter().rev().fold(0, |order, number| order << 4 | number);
        let used = 1 + numbers.into_iter().max().unwrap_or(0);
        let (stride, groups) = (self.choices.pick(&[4, 0, 1, 8]), self.case.iterations / GROUP);
        let span = stride as u64 * GROUP * (groups - 1) + 4 * used;
        let first = self.case.memory.len();
        (0..span.div_ceil(4)).for_each(|_| {
            let bits = self.choices.bits(Lane::U32) as u32;
            self.case.memory.extend_from_slice(&bits.to_le_bytes());
        });
        self.case.memory.truncate(first + span as usize);
        let offset = self.case.put(&(first as u64).to_le_bytes());
        let pointer = self.case.kernel.pointer(Moving { offset, stride, outer: 0 });
        // Other elements of the same array.
        let turned = (0..GROUP).fold(0, |sum, n| sum | (used - 1 - (order >> (4 * n) & 15)) << (4 * n));
        for (offset, order) in [(0, turned), (4 * (used as i32 - 1), 0)] {
            let value = self.case.kernel.load_permuted(lane, Memory { pointer, offset }, order);
            self.values.push(value);
        }
        self.case.kernel.load_permuted(lane, Memory { pointer, offset: 0 }, order)
    }

    fn load(&mut self, lane: Lane) -> Value {
        let permutes = self.case.trips == 1 && self.case.iterations.is_multiple_of(GROUP) && lane.bytes() == 4;
        if permutes && self.choices.below(3) == 0 {
            return self.load_permuted(lane);
        }
        let stride = self.stride(lane);
        let displaced = self.choices.pick(&[0, 4, -32, 200]);
        let steps = interleaved_stride(lane, stride);
        let phases = if steps.is_some_and(|s| s > 1) { 1 + self.choices.below(steps.unwrap_or(1) as usize) } else { 1 };
        let width = i64::from(lane.bytes()) * phases as i64;
        let ahead = self.ahead();
        let (memory, origin) = self.case.array((stride, ahead), width, displaced);
        for trip in 0..self.case.trips as i64 {
            for n in 0..self.case.iterations as i64 {
                for phase in 0..phases as i64 {
                    let within = stride * n + phase * i64::from(lane.bytes());
                    self.case.fill(self.choices, lane, (origin as i64 + ahead * width * trip + within) as usize);
                }
            }
        }
        let strided = stride != i64::from(lane.bytes());
        let mask = if strided && lane.bytes() < 4 { None } else { self.mask() };
        for phase in 1..phases as i32 {
            let at = Memory { offset: memory.offset + phase * lane.bytes() as i32, ..memory };
            let value = self.case.kernel.load(lane, at, mask);
            self.values.push(value);
        }
        self.case.kernel.load(lane, memory, mask)
    }

    fn operation(&mut self) {
        let x = self.some();
        let lane = self.case.kernel.lane(x);
        let kind = lane.kind();
        let y = self.of(lane);
        let choice = self.choices.below(24);
        let kernel = &mut self.case.kernel;
        let by = |n: usize| (n % lane.bits().max(1) as usize) as u8;
        let value = match (kind, choice) {
            (_, 0) => {
                let mask = self.of(Lane::Mask);
                self.case.kernel.select(mask, x, y)
            }
            (_, 1 | 2) => {
                let cond = self.choices.pick(&[Cond::Eq, Cond::Ne, Cond::Lt, Cond::Le, Cond::Gt, Cond::Ge]);
                self.case.kernel.compare(cond, x, y)
            }
            (_, 3 | 4) => self.convert(x),
            (Kind::Truth, 5..=11) => kernel.unary(Op::Not, x),
            (Kind::Truth, _) => {
                let op = self.choices.pick(&[Op::And, Op::Or, Op::Xor]);
                self.case.kernel.binary(op, x, y)
            }
            (Kind::Float, 5) => {
                let z = self.of(lane);
                self.case.kernel.fma(x, y, z)
            }
            (Kind::Float, 6) => kernel.bits(lane.integer(), x),
            (Kind::Float, 7..=12) => {
                let round = [Rounding::Nearest, Rounding::Floor, Rounding::Ceil, Rounding::Trunc];
                let round = Op::Round(self.choices.pick(&round));
                let op = self.choices.pick(&[Op::Neg, Op::Abs, Op::Sqrt, round]);
                self.case.kernel.unary(op, x)
            }
            (Kind::Float, _) => {
                let op = self.choices.pick(&[Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Min, Op::Max]);
                self.case.kernel.binary(op, x, y)
            }
            (_, 5..=8) => {
                let n = self.choices.below(64);
                let op = self.choices.pick(&[Op::Shl { by: by(n) }, Op::Shr { by: by(n) }]);
                self.case.kernel.unary(op, x)
            }
            (_, 9 | 10) if lane.bytes() <= 4 => {
                let bits = self.choices.bits(lane);
                let divisor = lane.integer_value(bits) as i64;
                let divisor = if divisor == 0 { 3 } else { divisor };
                let op = self.choices.pick(&[Op::DivideBy { divisor }, Op::RemainderBy { divisor }]);
                self.case.kernel.unary(op, x)
            }
            (_, 13 | 14) => {
                let op = self.choices.pick(&[Op::Neg, Op::Abs, Op::Not, Op::CountOnes, Op::LeadingZeros]);
                self.case.kernel.unary(op, x)
            }
            _ => {
                let ops = [Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Max, Op::And, Op::Or, Op::Xor];
                let op = self.choices.pick(&ops);
                self.case.kernel.binary(op, x, y)
            }
        };
        self.values.push(value);
    }

    fn convert(&mut self, x: Value) -> Value {
        let from = self.case.kernel.lane(x);
        let to = self.choices.pick(&[&Lane::NUMBERS[..], &[Lane::Mask]].concat());
        if !Level::Avx2.converts(from, to) {
            // Few kernels are for one level only.
            if self.choices.below(8) > 0 {
                return x;
            }
            self.case.only_avx512 = true;
        }
        self.case.kernel.convert(to, x)
    }

    fn store(&mut self) {
        let mut value = self.some();
        if self.case.kernel.lane(value).is_mask() {
            value = self.case.kernel.convert(Lane::U8, value);
        }
        let lane = self.case.kernel.lane(value);
        let bytes = i64::from(lane.bytes());
        let stride = if lane.bytes() < 4 { bytes } else { self.stride(lane) };
        let stride = if stride.abs() < bytes { bytes } else { stride };
        if let Some(steps) = interleaved_stride(lane, stride) {
            let phases: Vec<u8> = (0..steps.max(1) as u8).filter(|_| self.choices.below(4) > 0).collect();
            let phases = if phases.is_empty() { vec![0] } else { phases };
            let (width, ahead) = (bytes * steps.max(1), self.stored_ahead(stride));
            let (to, origin) = self.case.array((stride, ahead), width, 0);
            let values: Vec<(u8, Value)> = phases.iter().map(|&phase| (phase, self.of(lane))).collect();
            for &phase in &phases {
                self.note(origin, (stride, i64::from(phase) * bytes, ahead * width), lane);
            }
            return self.case.kernel.effect(Effect::StoreInterleaved { to, values: values.into_iter().collect() });
        }
        let mask = self.mask();
        let displaced = self.choices.pick(&[0, 64, -4]);
        let ahead = self.stored_ahead(stride);
        let (to, origin) = self.case.array((stride, ahead), bytes, displaced);
        self.note(origin, (stride, 0, ahead * bytes), lane);
        self.case.kernel.store(to, value, mask);
    }

    /// Adds a value to elements of memory, which may be those of the trip before.
    fn update(&mut self, value: Value) {
        let lane = self.case.kernel.lane(value);
        if lane.is_mask() || lane.bytes() < 4 {
            return self.store();
        }
        let bytes = i64::from(lane.bytes());
        let ahead = self.stored_ahead(bytes);
        let (at, origin) = self.case.array((bytes, ahead), bytes, 0);
        self.note(origin, (bytes, 0, ahead * bytes), lane);
        let old = self.case.kernel.load(lane, at, None);
        let new = self.case.kernel.binary(Op::Add, old, value);
        let mask = self.mask();
        self.case.kernel.store(at, new, mask);
        self.case.updates = true;
    }

    /// Records the locations of stored floats.
    fn note(&mut self, origin: usize, (stride, ahead, outer): (i64, i64, i64), lane: Lane) {
        if lane.is_float() {
            for trip in 0..self.case.trips as i64 {
                let at = |n: i64| ((origin as i64 + outer * trip + stride * n + ahead) as usize, lane);
                self.case.floats.extend((0..self.case.iterations as i64).map(at));
            }
        }
    }

    /// The elements by which a load moves from trip to trip.
    fn ahead(&mut self) -> i64 {
        if self.case.trips > 1 { self.choices.pick(&[0, 1, 17, -3]) } else { 0 }
    }

    /// The elements by which a store moves: none, or a row, so that no element is stored with an offset of some bytes.
    fn stored_ahead(&mut self, stride: i64) -> i64 {
        let row = stride.abs() * self.case.iterations as i64;
        if self.case.trips > 1 { self.choices.pick(&[0, row, -row]) } else { 0 }
    }

    fn accumulate(&mut self) {
        let value = self.some();
        let lane = self.case.kernel.lane(value);
        if self.case.trips > 1 {
            return self.update(value);
        }
        // Accumulators must fit into registers, together with an index.
        let carried = self.case.kernel.accumulators.iter().map(|a| Level::Avx2.vectors(a.lane)).sum::<usize>();
        let index = Level::Avx2.vectors(Lane::I64);
        if lane.bytes() < 4 || carried + index + Level::Avx2.vectors(lane) > Level::Avx2.most_carried() {
            return self.store();
        }
        let all = [Reduction::Sum, Reduction::Product, Reduction::Min, Reduction::Max, Reduction::And, Reduction::Or];
        let op = self.choices.pick(if lane.is_float() { &all[..4] } else { &all });
        let any_order = lane.is_int() || matches!(op, Reduction::Min | Reduction::Max);
        let start = (self.choices.below(2) == 0).then(|| op.identity(lane));
        let bytes: Vec<u8> =
            (0..GROUP).flat_map(|_| op.identity(lane).to_le_bytes()[..lane.bytes() as usize].to_vec()).collect();
        let offset = self.case.put(&bytes);
        let accumulator = self.case.kernel.accumulator(Accumulator { lane, offset, start, any_order });
        let mask = self.mask();
        if lane.is_float() && self.choices.below(3) == 0 {
            let factors = [value, self.of(lane)];
            let any_order = &mut self.case.kernel.accumulators[accumulator.0 as usize].any_order;
            *any_order = false;
            return self.case.kernel.effect(Effect::AccumulateProduct { accumulator, factors, mask });
        }
        self.case.kernel.accumulate(accumulator, op, value, mask);
    }
}

/// A narrow kernel.
pub fn narrow(choices: &mut Choices<'_>) -> Case {
    let per = choices.pick(&[4u8, 2]);
    let memory_lane = if per == 4 { [Lane::U8, Lane::I8] } else { [Lane::U16, Lane::I16] };
    let case = Case::new(choices, per);
    let mut random = Random { choices, case, values: Vec::new() };
    for _ in 0..1 + random.choices.below(3) {
        let lane = random.choices.pick(&memory_lane);
        let (from, origin) = random.case.array((4, 0), 4, 0);
        for n in 0..random.case.iterations as usize * usize::from(per) {
            random.case.fill(random.choices, lane, origin + n * lane.bytes() as usize);
        }
        let value = random.case.kernel.load(lane, from, None);
        random.values.push(value);
    }
    while !random.choices.spent() && random.case.kernel.defs.len() < 60 {
        random.narrow_operation(per);
    }
    let stored: Vec<Value> =
        random.values.iter().copied().filter(|&v| memory_lane.contains(&random.case.kernel.lane(v))).collect();
    let value = random.choices.pick(&stored);
    let (to, _) = random.case.array((4, 0), 4, 0);
    random.case.kernel.store(to, value, None);
    random.narrow_sum();
    random.case
}

impl Random<'_, '_> {
    fn narrow_operation(&mut self, per: u8) {
        let x = self.some();
        let lane = self.case.kernel.lane(x);
        if lane.is_mask() {
            let y = self.of_mask(lane);
            let op = self.choices.pick(&[Op::And, Op::Or]);
            let kernel = &mut self.case.kernel;
            let value = if self.choices.below(3) == 0 { kernel.unary(Op::Not, x) } else { kernel.binary(op, x, y) };
            return self.values.push(value);
        }
        let y = self.of(lane);
        let words = lane.bits() == 16;
        let by = self.choices.below(lane.bits() as usize) as u8;
        let choice = self.choices.below(12);
        let kernel = &mut self.case.kernel;
        let value = match choice {
            0 => kernel.compare(self.choices.pick(&[Cond::Eq, Cond::Lt, Cond::Le, Cond::Ne, Cond::Gt, Cond::Ge]), x, y),
            1 => {
                let mask = self.of_mask(lane.mask(per));
                self.case.kernel.select(mask, x, y)
            }
            2 if per == 4 => {
                let wide = if lane.is_signed() { [Lane::I8, Lane::I16] } else { [Lane::U8, Lane::U16] };
                kernel.convert(wide[usize::from(!words)], x)
            }
            3 => {
                let signed = !lane.is_signed();
                let to = match (words, signed) {
                    (false, false) => Lane::U8,
                    (false, true) => Lane::I8,
                    (true, false) => Lane::U16,
                    (true, true) => Lane::I16,
                };
                kernel.bits(to, x)
            }
            4 => kernel.unary(Op::Shl { by }, x),
            5 if words || !lane.is_signed() => kernel.unary(Op::Shr { by }, x),
            6 => kernel.unary(self.choices.pick(&[Op::Neg, Op::Not, Op::Abs]), x),
            7 if words => kernel.binary(Op::Mul, x, y),
            8 if !lane.is_signed() => kernel.binary(Op::Average, x, y),
            _ => {
                let ops = [Op::Add, Op::Sub, Op::Min, Op::Max, Op::And, Op::Or, Op::Xor];
                kernel.binary(self.choices.pick(&ops), x, y)
            }
        };
        self.values.push(value);
    }

    /// A mask that was compared in lanes of its width.
    fn of_mask(&mut self, mask: Lane) -> Value {
        let known: Vec<Value> = self.values.iter().copied().filter(|&v| self.case.kernel.lane(v) == mask).collect();
        if !known.is_empty() {
            return self.choices.pick(&known);
        }
        let lane = if mask == Lane::Mask8 { Lane::U8 } else { Lane::U16 };
        let (x, y) = (self.of(lane), self.of(lane));
        self.case.kernel.compare(Cond::Lt, x, y)
    }

    fn narrow_sum(&mut self) {
        let start = Some(0);
        let bytes = [0; 64];
        let offset = self.case.put(&bytes);
        let accumulator = self.case.kernel.accumulator(Accumulator { lane: Lane::I32, offset, start, any_order: true });
        let words: Vec<Value> =
            self.values.iter().copied().filter(|&v| self.case.kernel.lane(v) == Lane::I16).collect();
        let bytes: Vec<Value> = self.values.iter().copied().filter(|&v| self.case.kernel.lane(v) == Lane::U8).collect();
        let four = self.case.kernel.per_iteration == 4;
        let kernel = &mut self.case.kernel;
        let difference = match bytes.as_slice() {
            [x, y, ..] if self.choices.below(2) == 0 => {
                let (greater, less) = (kernel.binary(Op::Max, *x, *y), kernel.binary(Op::Min, *x, *y));
                Some(kernel.binary(Op::Sub, greater, less))
            }
            _ => None,
        };
        let bytes: Vec<Value> = bytes.iter().copied().chain(difference).collect();
        let sum = match (words.as_slice(), bytes.as_slice()) {
            ([x, .., y], _) if self.choices.below(2) == 0 => kernel.make(Lane::I32, Op::DotNeighbours, &[*x, *y]),
            ([.., x], _) => kernel.make(Lane::I32, Op::SumNeighbours, &[*x]),
            (_, [.., x]) if four => kernel.make(Lane::I32, Op::SumNeighbours, &[*x]),
            _ => kernel.constant(Lane::I32, 1),
        };
        self.case.kernel.accumulate(accumulator, Reduction::Sum, sum, None);
    }
}
