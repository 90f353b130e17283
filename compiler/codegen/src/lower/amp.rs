//! The matrix-product unit.
//!
//! A product calls a native kernel if all matrices have one type, there is a kernel for that type, and the result
//! shares no storage with the operands; a kernel adds, so a result that starts at 0 is filled with zeros first. Any
//! other product becomes three plain loops, in the order of the language. Axes around the rows are loops around either,
//! unless the rows of all of them are at one distance.
//!
//! Invariant: all shapes and corners are checked before the first element is accessed. A corner is computed in 128
//! bits, so that no index overflows.

use super::{Lower, clif};
use crate::helpers::Imports;
use crate::lower::address::Sum;
use crate::lower::loops::Range;
use crate::native::{NativeKernel, product_offset};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::{I64, I128};
use cranelift_codegen::ir::{AbiParam, InstBuilder, MemFlagsData, Signature, Value};
use girder_codelet::work::SHORT;
use girder_ir::codelet::{Amp, Matrix, Storage};
use girder_ir::ids::{ExprId, SiteId};
use girder_ir::types::ElemType;
use smallvec::SmallVec;

/// A number that may be known at compile time.
#[derive(Clone, Copy)]
struct Number {
    value: Value,
    known: Option<i64>,
}

/// An axis around the rows.
#[derive(Clone, Copy)]
struct Outer {
    len: Number,
    /// Byte stride.
    bytes: i64,
    /// The dimension and the step of the index.
    axis: (usize, i64),
}

/// A matrix whose indices have been evaluated.
struct View {
    storage: Storage,
    ty: ElemType,
    at: SmallVec<[Number; 3]>,
    /// Outermost first.
    outer: SmallVec<[Outer; 2]>,
    rows: Number,
    cols: Number,
    /// Byte strides.
    row_bytes: i64,
    col_bytes: i64,
    /// The dimension and the step of the index.
    row: (usize, i64),
    col: (usize, i64),
}

impl Lower<'_, '_> {
    pub(super) fn amp(&mut self, amp: &Amp) {
        let mut c = self.view(&amp.c);
        let mut a = self.view(&amp.a);
        let b = self.view(&amp.b);
        if !self.is_proven(amp.site) {
            self.check_shapes(&c, &a, &b, amp.site);
            for view in [&c, &a, &b] {
                self.check_corners(view, amp.site);
            }
        }
        self.join_rows(&mut c, &mut a);
        // With a step of 0, elements are written several times, and each time start at 0 again.
        let again = amp.first && (c.row.1 == 0 || c.col.1 == 0);
        let apart = c.storage != a.storage && c.storage != b.storage && !again;
        let kernel = NativeKernel::product(c.ty).filter(|_| apart && a.ty == c.ty && b.ty == c.ty);
        let lengths = c.outer.iter().map(|outer| outer.len).chain([c.rows, c.cols, a.cols]);
        let total = lengths.map(|n| n.known.unwrap_or(1 << 20).max(0) as u64).fold(1, u64::saturating_mul);
        let corners = [&c, &a, &b].map(|v| self.corner(v));
        self.around(&c, &a, 0, corners, total >= SHORT, &mut |l, corners| match kernel {
            Some(kernel) => {
                if amp.first {
                    l.clear(&c, corners[0]);
                }
                l.amp_native(kernel, [&c, &a, &b], corners);
            }
            None => l.amp_loops([&c, &a, &b], corners, total >= SHORT, amp.first),
        });
    }

    /// Joins the rows with axes around them, as long as both matrices have them all at one distance.
    fn join_rows(&mut self, c: &mut View, a: &mut View) {
        while let (Some(&of_c), Some(&of_a), Some(rows)) = (c.outer.last(), a.outer.last(), c.rows.known) {
            let follow = |outer: Outer, bytes: i64| bytes != 0 && bytes.checked_mul(rows) == Some(outer.bytes);
            let total = of_c.len.known.and_then(|n| n.checked_mul(rows)).filter(|_| rows > 0);
            let (true, true, Some(total)) = (follow(of_c, c.row_bytes), follow(of_a, a.row_bytes), total) else {
                return;
            };
            let rows = Number { value: self.i64(total), known: Some(total) };
            (c.rows, a.rows) = (rows, rows);
            c.outer.pop();
            a.outer.pop();
        }
    }

    /// Emits loops over the axes around the rows, from some axis on, with the corners of the three matrices.
    fn around(
        &mut self,
        c: &View,
        a: &View,
        axis: usize,
        corners: [Value; 3],
        poll: bool,
        body: &mut dyn FnMut(&mut Self, [Value; 3]),
    ) {
        let (Some(of_c), Some(of_a)) = (c.outer.get(axis), a.outer.get(axis)) else { return body(self, corners) };
        let [at_c, at_a, at_b] = corners;
        self.upto(of_c.len, poll, |l, o| {
            let corners = [l.step_to(at_c, o, of_c.bytes), l.step_to(at_a, o, of_a.bytes), at_b];
            l.around(c, a, axis + 1, corners, poll, body);
        });
    }

    fn number(&mut self, e: ExprId) -> Number {
        Number { value: self.expr(e), known: self.known(e) }
    }

    fn view(&mut self, m: &Matrix) -> View {
        let at = m.at.iter().map(|&e| self.number(e)).collect();
        let lengths: SmallVec<[Number; 2]> = m.outer.iter().map(|axis| self.number(axis.len)).collect();
        let (rows, cols) = (self.number(m.rows), self.number(m.cols));
        let dims = self.dims(m.base);
        let (row, col) = ((m.row_dim as usize, m.row_step), (m.col_dim as usize, m.col_step));
        let bytes = |(dim, step): (usize, i64)| dims[dim].1.wrapping_mul(step);
        let outer = m.outer.iter().zip(lengths).map(|(axis, len)| {
            let axis = (axis.dim as usize, axis.step);
            Outer { len, bytes: bytes(axis), axis }
        });
        View {
            storage: m.base,
            ty: self.element_type(m.base),
            at,
            outer: outer.collect(),
            rows,
            cols,
            row_bytes: bytes(row),
            col_bytes: bytes(col),
            row,
            col,
        }
    }

    fn check_shapes(&mut self, c: &View, a: &View, b: &View, site: SiteId) {
        let around = a.outer.iter().zip(&c.outer).map(|(x, y)| (x.len, y.len));
        for (x, y) in around.chain([(a.rows, c.rows), (b.cols, c.cols), (a.cols, b.rows)]) {
            if x.known.is_none() || x.known != y.known {
                let bad = self.b.ins().icmp(IntCC::NotEqual, x.value, y.value);
                self.guard(bad, site, |_| [x.value, y.value]);
            }
        }
        for n in c.outer.iter().map(|outer| outer.len).chain([c.rows, c.cols, a.cols]) {
            if n.known.is_none_or(|n| n < 0) {
                let bad = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, n.value, 0);
                self.guard(bad, site, |l| [n.value, l.i64(0)]);
            }
        }
    }

    /// Emits checks that the first and the last index of every dimension are inside. An empty matrix passes.
    fn check_corners(&mut self, view: &View, site: SiteId) {
        let lengths = view.outer.iter().map(|outer| outer.len).chain([view.rows, view.cols]);
        let lengths: SmallVec<[Number; 4]> = lengths.collect();
        if lengths.iter().any(|n| n.known == Some(0)) {
            return;
        }
        // No length is negative, so the matrix is empty if one is zero.
        let mut empty = None;
        for n in lengths.iter().filter(|n| n.known.is_none()) {
            let none = self.b.ins().icmp_imm_u(IntCC::Equal, n.value, 0);
            empty = Some(empty.map_or(none, |others| self.b.ins().bor(others, none)));
        }
        let (check, done) = (self.b.create_block(), self.b.create_block());
        match empty {
            None => self.b.ins().jump(check, &[]),
            Some(empty) => self.b.ins().brif(empty, done, &[], check, &[]),
        };
        self.enter(check);
        let dims = self.dims(view.storage);
        for (dim, &(length, _)) in dims.iter().enumerate() {
            for greatest in [false, true] {
                self.check_corner(view, dim, length, greatest, site);
            }
        }
        self.b.ins().jump(done, &[]);
        self.enter(done);
    }

    fn check_corner(&mut self, view: &View, dim: usize, length: i64, greatest: bool, site: SiteId) {
        let outer = view.outer.iter().map(|outer| (outer.axis, outer.len));
        let reaches = outer.chain([(view.row, view.rows), (view.col, view.cols)]);
        let reaches = reaches.filter(|&((d, step), _)| d == dim && (step > 0) == greatest && step != 0);
        let reaches: SmallVec<[(i64, Number); 2]> = reaches.map(|((_, step), n)| (step, n)).collect();
        let first = view.at[dim];
        let known = reaches.iter().try_fold(i128::from(first.known.unwrap_or(-1)), |at, (step, n)| {
            Some(at + i128::from(*step) * (i128::from(n.known?) - 1))
        });
        if first.known.is_some() && known.is_some_and(|at| (0..i128::from(length)).contains(&at)) {
            return;
        }
        let mut index = self.b.ins().sextend(I128, first.value);
        for (step, n) in reaches {
            let step = self.i64(step);
            let step = self.b.ins().sextend(I128, step);
            let last = self.b.ins().iadd_imm_s(n.value, -1);
            let last = self.b.ins().sextend(I128, last);
            let reach = self.b.ins().imul(step, last);
            index = self.b.ins().iadd(index, reach);
        }
        let end = self.i64(length);
        let wide_end = self.b.ins().sextend(I128, end);
        let bad = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, wide_end);
        self.guard(bad, site, |l| [l.saturate(index), end]);
    }

    /// Returns the `i64` nearest to an `I128`.
    fn saturate(&mut self, wide: Value) -> Value {
        let low = self.b.ins().ireduce(I64, wide);
        let back = self.b.ins().sextend(I128, low);
        let fits = self.b.ins().icmp(IntCC::Equal, back, wide);
        let zero = self.i64(0);
        let zero = self.b.ins().sextend(I128, zero);
        let negative = self.b.ins().icmp(IntCC::SignedLessThan, wide, zero);
        let (least, greatest) = (self.i64(i64::MIN), self.i64(i64::MAX));
        let end = self.b.ins().select(negative, least, greatest);
        self.b.ins().select(fits, low, end)
    }

    /// Computes the address of element (0, 0).
    fn corner(&mut self, view: &View) -> Value {
        let mut sum = Sum::default();
        for (n, (_, stride)) in view.at.iter().zip(self.dims(view.storage)) {
            match n.known {
                Some(at) => sum.constant = sum.constant.wrapping_add(at.wrapping_mul(stride)),
                None => sum.add(n.value, stride, self.depth),
            }
        }
        let base = self.storage_address(view.storage);
        let (address, offset) = self.materialise(base, &sum);
        self.b.ins().iadd_imm_s(address, i64::from(offset))
    }

    /// Emits a call of a native kernel, with its arguments in memory.
    fn amp_native(&mut self, kernel: NativeKernel, [c, a, b]: [&View; 3], corners: [Value; 3]) {
        let slot = self.slot(product_offset::SIZE);
        let args = self.b.ins().stack_addr(I64, slot, Offset32::new(0));
        let put = |l: &mut Self, at: i32, v: Value| {
            l.b.ins().store(MemFlagsData::new().with_notrap(), v, args, Offset32::new(at));
        };
        let places = [product_offset::C, product_offset::A, product_offset::B];
        for ((view, corner), at) in [c, a, b].into_iter().zip(corners).zip(places) {
            let (row, col) = (self.i64(view.row_bytes), self.i64(view.col_bytes));
            put(self, at + product_offset::AT, corner);
            put(self, at + product_offset::ROW, row);
            put(self, at + product_offset::COL, col);
        }
        put(self, product_offset::M, c.rows.value);
        put(self, product_offset::N, c.cols.value);
        put(self, product_offset::K, a.cols.value);
        let callee = self.imported(Imports::NATIVES + kernel.offset());
        let mut signature = Signature::new(self.convention);
        signature.params.push(AbiParam::new(I64));
        let signature = self.b.import_signature(signature);
        self.b.ins().call_indirect(signature, callee, &[args]);
    }

    /// Emits loops that set a matrix to 0.
    fn clear(&mut self, c: &View, corner: Value) {
        let zero = self.zero(c.ty);
        let poll = c.rows.known.zip(c.cols.known).is_none_or(|(m, n)| m.saturating_mul(n).unsigned_abs() >= SHORT);
        self.upto(c.rows, poll, |l, i| {
            let row = l.step_to(corner, i, c.row_bytes);
            l.upto(c.cols, poll, |l, j| {
                let at = l.step_to(row, j, c.col_bytes);
                let flags = l.flags(c.storage);
                l.b.ins().store(flags, zero, at, Offset32::new(0));
            });
        });
    }

    fn zero(&mut self, ty: ElemType) -> Value {
        match ty {
            ElemType::F64 => self.b.ins().f64const(0.0),
            _ => self.b.ins().f32const(0.0),
        }
    }

    /// Emits three loops over the matrices.
    fn amp_loops(&mut self, [c, a, b]: [&View; 3], [ca, aa, ba]: [Value; 3], poll: bool, first: bool) {
        self.upto(c.rows, poll, |l, i| {
            let c_row = l.step_to(ca, i, c.row_bytes);
            let a_row = l.step_to(aa, i, a.row_bytes);
            l.upto(c.cols, poll, |l, j| {
                let at = l.step_to(c_row, j, c.col_bytes);
                let b_col = l.step_to(ba, j, b.col_bytes);
                l.amp_element((c, at), (a, a_row), (b, b_col), first);
            });
        });
    }

    /// Emits `c += Σ a[k] b[k]`, or `c = Σ a[k] b[k]`, in order. Each element is read just before its product is added.
    fn amp_element(
        &mut self,
        (c, at): (&View, Value),
        (a, a_row): (&View, Value),
        (b, b_col): (&View, Value),
        first: bool,
    ) {
        let zero = Offset32::new(0);
        let sum = self.b.declare_var(clif(c.ty));
        let flags = self.flags(c.storage);
        let start = if first { self.zero(c.ty) } else { self.b.ins().load(clif(c.ty), flags, at, zero) };
        self.b.def_var(sum, start);
        self.upto(a.cols, false, |l, k| {
            let (x_at, y_at) = (l.step_to(a_row, k, a.col_bytes), l.step_to(b_col, k, b.row_bytes));
            let (x_flags, y_flags) = (l.flags(a.storage), l.flags(b.storage));
            let x = l.b.ins().load(clif(a.ty), x_flags, x_at, zero);
            let y = l.b.ins().load(clif(b.ty), y_flags, y_at, zero);
            let (x, y) = (l.convert(a.ty, c.ty, x), l.convert(b.ty, c.ty, y));
            let old = l.b.use_var(sum);
            let new = l.fma(c.ty, x, y, old);
            l.b.def_var(sum, new);
        });
        let result = self.b.use_var(sum);
        self.b.ins().store(flags, result, at, zero);
    }

    fn step_to(&mut self, address: Value, n: Value, bytes: i64) -> Value {
        let ahead = self.scaled(n, bytes);
        self.b.ins().iadd(address, ahead)
    }

    /// Emits `for n in 0..count`.
    fn upto(&mut self, count: Number, poll: bool, body: impl FnOnce(&mut Self, Value)) {
        let trips = count.known.map(|n| n.max(0) as u64);
        if trips == Some(0) {
            return;
        }
        let range = Range { lo: self.i64(0), hi: count.value, step: 1, trips, poll };
        self.counted(range, None, |l, n| {
            body(l, n);
            true
        });
    }
}
