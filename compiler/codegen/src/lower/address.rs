//! Addresses of elements.
//!
//! An address is the start of the storage, plus a sum of values times byte strides, plus a constant that is encoded in
//! the instruction. Terms are added from the outermost loop inwards, so that what is invariant in a loop can be hoisted
//! out of it.
//!
//! Invariant: no address is used before its unproven checks. All indices are evaluated first, in the order of the
//! dimensions; then they are checked in that order.

use super::{Innermost, LocalStorage, Lower, clif};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use girder_codelet::interpret::trips;
use girder_ir::codelet::{BinaryOp, ExprKind, Index, Storage, UnaryOp};
use girder_ir::ids::{ExprId, SiteId};
use girder_ir::types::ElemType;
use smallvec::SmallVec;

/// A sum of values times factors, plus a constant. All arithmetic wraps.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    /// Each term has a value, a factor, and the loop depth of the value.
    terms: SmallVec<[(Value, i64, u32); 4]>,
    pub(super) constant: i64,
}

/// Indices, with the lengths of their dimensions.
type Unchecked = SmallVec<[(Value, i64); 3]>;

/// The address of an element whose indices have been evaluated.
#[derive(Debug)]
pub(super) struct ElementAddress {
    storage: Storage,
    bytes: Sum,
    /// The remaining checks: each index with the length of its dimension.
    unchecked: Option<(SiteId, Unchecked)>,
    /// Whether the load may be moved to any point where its address is known.
    floats: bool,
}

impl Lower<'_, '_> {
    /// Emits a load of the element at an index.
    pub(super) fn load(&mut self, storage: Storage, index: &Index, site: SiteId) -> Value {
        let element = self.located(storage, index, site);
        let ty = clif(self.element_type(storage));
        let (address, offset) = self.address(&element);
        let flags = self.flags(storage);
        let flags = if element.floats && flags.readonly() { flags.with_can_move() } else { flags };
        self.b.ins().load(ty, flags, address, offset)
    }

    /// Emits a store to an element.
    pub(super) fn store(&mut self, element: &ElementAddress, value: Value) {
        let (address, offset) = self.address(element);
        let flags = self.flags(element.storage);
        self.b.ins().store(flags, value, address, offset);
    }

    pub(super) fn element_type(&self, storage: Storage) -> ElemType {
        match storage {
            Storage::Field(field) => self.codelet.fields[field].ty,
            Storage::Local(local) => self.codelet.locals[local].ty,
        }
    }

    pub(super) fn flags(&self, storage: Storage) -> MemFlagsData {
        match storage {
            Storage::Field(field) => self.field_flags(field),
            Storage::Local(local) => self.local_flags(local),
        }
    }

    /// Returns the length and the byte stride of each dimension.
    pub(super) fn dims(&self, storage: Storage) -> SmallVec<[(i64, i64); 3]> {
        match storage {
            Storage::Field(field) => {
                let lengths = self.spec.sizes.shapes[field].iter().map(|&n| n as i64);
                lengths.zip(self.spec.strides[field].iter().copied()).collect()
            }
            Storage::Local(local) => {
                let decl = &self.codelet.locals[local];
                let mut dims: SmallVec<[(i64, i64); 3]> = SmallVec::new();
                let mut stride = i64::from(decl.ty.bytes());
                for &n in decl.array.iter().flatten().rev() {
                    dims.insert(0, (i64::from(n), stride));
                    stride *= i64::from(n);
                }
                dims
            }
        }
    }

    /// Returns the address of element (0, …, 0).
    pub(super) fn storage_address(&mut self, storage: Storage) -> Value {
        match storage {
            Storage::Field(field) => self.fields[field].expect("fields are bound before the body"),
            Storage::Local(local) => match self.locals[local] {
                Some(LocalStorage::Array(slot)) => self.b.ins().stack_addr(I64, slot, Offset32::new(0)),
                _ => unreachable!("`verify` lets only arrays be indexed"),
            },
        }
    }

    /// Evaluates the indices of an access.
    pub(super) fn located(&mut self, storage: Storage, index: &Index, site: SiteId) -> ElementAddress {
        let dims = self.dims(storage);
        let mut bytes = Sum::default();
        let known = index.iter().zip(&dims).all(|(&e, &(length, _))| self.is_inside(e, length));
        if known || self.is_proven(site) {
            for (&e, &(_, stride)) in index.iter().zip(&dims) {
                self.add_scaled(&mut bytes, e, stride);
            }
            let floats = known || self.floats(storage, &bytes);
            return ElementAddress { storage, bytes, unchecked: None, floats };
        }
        let mut unchecked = Unchecked::new();
        for (&e, &(length, stride)) in index.iter().zip(&dims) {
            let value = self.expr(e);
            let depth = self.depth_of(e);
            bytes.add(value, stride, depth);
            unchecked.push((value, length));
        }
        ElementAddress { storage, bytes, unchecked: Some((site, unchecked)), floats: false }
    }

    /// Returns whether every iteration of the innermost loop reads its own element. The backend may then sink the load
    /// to its use, because no element is read that the program would not read.
    fn floats(&mut self, storage: Storage, bytes: &Sum) -> bool {
        match (self.innermost, storage, &self.spec.lines) {
            (Some(Innermost::Index(local)), ..) => {
                let index = self.stored(local);
                bytes.terms.iter().any(|t| t.0 == index)
            }
            (Some(Innermost::Vertices), Storage::Field(field), Some(lines)) => lines.steps[field] != 0,
            _ => false,
        }
    }

    /// Returns whether an index is a known number inside a dimension.
    fn is_inside(&self, e: ExprId, length: i64) -> bool {
        self.known(e).is_some_and(|i| (0..length).contains(&i))
    }

    /// Returns whether an expression is a load whose indices are all known to be inside, so that it cannot fail and its
    /// address is the same throughout an instance.
    pub(super) fn is_at_fixed_place(&self, e: ExprId) -> bool {
        let (storage, index) = match &self.codelet.exprs[e].kind {
            ExprKind::Load { field, index, .. } => (Storage::Field(*field), index),
            ExprKind::LoadLocal { local, index, .. } => (Storage::Local(*local), index),
            _ => return false,
        };
        index.iter().zip(self.dims(storage)).all(|(&e, (length, _))| self.is_inside(e, length))
    }

    /// Returns the address of an element that is known to be inside, a byte offset to add to it, and the flags of a
    /// load.
    pub(super) fn element_address(&mut self, storage: Storage, index: &Index) -> (Value, i64, MemFlagsData) {
        let mut sum = Sum::default();
        for (&e, (_, stride)) in index.iter().zip(self.dims(storage)) {
            self.add_scaled(&mut sum, e, stride);
        }
        let mut constant = std::mem::take(&mut sum.constant);
        if let (Storage::Field(field), Some(lines)) = (storage, &self.spec.lines) {
            constant = constant.wrapping_add(lines.steps[field].wrapping_mul(self.vertices_ahead));
        }
        let flags = self.flags(storage);
        let floats = flags.readonly() && self.floats(storage, &sum);
        let base = self.storage_address(storage);
        let flags = if floats { flags.with_can_move() } else { flags };
        (self.materialise(base, &sum).0, constant, flags)
    }

    /// Emits the remaining checks and computes the address.
    fn address(&mut self, element: &ElementAddress) -> (Value, Offset32) {
        if let Some((site, indices)) = &element.unchecked {
            for &(index, length) in indices {
                let bad = self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, index, length);
                self.guard(bad, *site, |l| [index, l.i64(length)]);
            }
        }
        let base = self.storage_address(element.storage);
        self.materialise(base, &element.bytes)
    }

    /// Adds a byte offset to an address, unless it fits into the instruction. Returns the address and the offset for
    /// the instruction.
    pub(super) fn with_offset(&mut self, address: Value, bytes: i64) -> (Value, Offset32) {
        match i32::try_from(bytes) {
            Ok(offset) => (address, Offset32::new(offset)),
            Err(_) => (self.b.ins().iadd_imm_s(address, bytes), Offset32::new(0)),
        }
    }

    /// Computes `base + sum`, as an address and an offset that fits into an instruction.
    pub(super) fn materialise(&mut self, base: Value, sum: &Sum) -> (Value, Offset32) {
        let mut terms = sum.terms.clone();
        terms.sort_by_key(|&(_, _, depth)| depth);
        let mut address = base;
        for (value, factor, _) in terms {
            let scaled = self.scaled(value, factor);
            address = self.b.ins().iadd(address, scaled);
        }
        self.with_offset(address, sum.constant)
    }

    /// Computes `value * factor`, by a shift where possible.
    pub(super) fn scaled(&mut self, value: Value, factor: i64) -> Value {
        match factor {
            1 => value,
            f if f > 0 && f & (f - 1) == 0 => self.b.ins().ishl_imm_u(value, i64::from(f.trailing_zeros())),
            f => self.b.ins().imul_imm_s(value, f),
        }
    }

    /// Evaluates `e` and adds `e * factor` to a sum, term by term where `e` is itself a sum.
    pub(super) fn add_scaled(&mut self, sum: &mut Sum, e: ExprId, factor: i64) {
        if let Some(value) = self.known(e) {
            sum.constant = sum.constant.wrapping_add(value.wrapping_mul(factor));
            return;
        }
        match self.codelet.exprs[e].kind {
            ExprKind::Binary { op: BinaryOp::Add, a, b, .. } => {
                self.add_scaled(sum, a, factor);
                self.add_scaled(sum, b, factor);
            }
            ExprKind::Binary { op: BinaryOp::Sub, a, b, .. } => {
                self.add_scaled(sum, a, factor);
                self.add_scaled(sum, b, factor.wrapping_neg());
            }
            ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } if self.known(a).is_some() => {
                let by = self.known(a).unwrap_or(0);
                self.add_scaled(sum, b, factor.wrapping_mul(by));
            }
            ExprKind::Binary { op: BinaryOp::Mul, a, b, .. } if self.known(b).is_some() => {
                let by = self.known(b).unwrap_or(0);
                self.add_scaled(sum, a, factor.wrapping_mul(by));
            }
            ExprKind::Unary { op: UnaryOp::Neg, x } => self.add_scaled(sum, x, factor.wrapping_neg()),
            ExprKind::Local(local) => {
                let value = self.stored(local);
                sum.add(value, factor, self.local_depths[local]);
                sum.constant = sum.constant.wrapping_add(self.ahead[local].wrapping_mul(factor));
            }
            _ => {
                let value = self.expr(e);
                let depth = self.depth_of(e);
                sum.add(value, factor, depth);
            }
        }
    }

    /// Returns the depth of the innermost loop in which the value of an expression may change, as far as its locals
    /// show.
    pub(super) fn depth_of(&self, e: ExprId) -> u32 {
        match self.codelet.exprs[e].kind {
            ExprKind::Local(local) => self.local_depths[local],
            ExprKind::ConstField(_) | ExprKind::Size(_) | ExprKind::Const(_) | ExprKind::Workers => 1,
            ExprKind::Load { .. } | ExprKind::LoadLocal { .. } => self.depth,
            ref kind => kind.operands().iter().map(|&x| self.shallow_depth(x)).fold(1, u32::max),
        }
    }

    /// Works like [`Lower::depth_of`], without recursion into operands.
    fn shallow_depth(&self, e: ExprId) -> u32 {
        match self.codelet.exprs[e].kind {
            _ if self.folded[e].is_some() => 0,
            ExprKind::Local(local) => self.local_depths[local],
            _ => self.depth,
        }
    }

    /// Returns the trip count of a range whose bounds are known.
    pub(super) fn known_trips(&self, lo: ExprId, hi: ExprId, step: i64) -> Option<u64> {
        Some(trips(self.known(lo)?, self.known(hi)?, step))
    }
}

impl Sum {
    /// Returns the values with their factors.
    pub(super) fn factors(&self) -> Vec<(Value, i64)> {
        self.terms.iter().map(|t| (t.0, t.1)).collect()
    }

    /// Removes the term of a value that is known to be zero.
    pub(super) fn leave_out(&mut self, zero: Value) {
        self.terms.retain(|t| t.0 != zero);
    }

    /// Adds `value * factor`.
    pub(super) fn add(&mut self, value: Value, factor: i64, depth: u32) {
        if factor == 0 {
            return;
        }
        match self.terms.iter_mut().find(|t| t.0 == value) {
            Some(term) => term.1 = term.1.wrapping_add(factor),
            None => self.terms.push((value, factor, depth)),
        }
        self.terms.retain(|t| t.1 != 0);
    }
}
