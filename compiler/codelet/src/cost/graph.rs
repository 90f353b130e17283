//! The values of a body as an optimising compiler sees them: computed at most once where operands allow it, and not at
//! all if unused.
//!
//! # Note: Homes
//! A region is straight-line code that runs a certain number of times. Regions form a tree: a region runs only after
//! its parent has. The *home* of a value is the region in which a compiler computes it. A pure value leaves every loop
//! to which none of its operands belongs, even from under a condition. A load leaves a loop only from the loop's own
//! level, and only if nothing in the loop may write what it reads. Two equal values are shared if the home of the first
//! encloses that of the second.
//!
//! Invariants: the operands of a node are older than the node, except those of an [`Op::Phi`]; homes of operands
//! enclose the home of a node.

use super::points::Point;
use super::poly::{Moving, Poly};
use super::quantity::Quantity;
use crate::scalar;
use cranelift_entity::{PrimaryMap, entity_impl};
use girder_ir::codelet::{BinaryOp, Elementary, Storage, UnaryOp};
use girder_ir::ids::{FieldId, SizeId};
use girder_ir::types::{ElemType, Scalar};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// Names a [`Node`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Val(u32);
entity_impl!(Val, "v");

/// Names a [`Region`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RegionId(u32);
entity_impl!(RegionId, "region");

/// The operation of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Op {
    Const(Scalar),
    Size(SizeId),
    Field(FieldId),
    Worker,
    Workers,
    /// The index of a loop.
    Index(u32),
    /// A value carried by a loop; its operands are the values before the first iteration and after each one.
    Phi,
    /// A value where control-flow paths join: one of the operands.
    Join,
    Load(AccessAddress),
    Unary(UnaryOp),
    Binary(BinaryOp),
    Select,
    Fma,
    Convert,
    Bits,
    Elementary(Elementary),
}

/// The address of an access, in elements from the start of a field or array, and the store that it follows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct AccessAddress {
    pub storage: Storage,
    /// The moving part, by [`Graph::moving`].
    pub moving: u32,
    /// The constant part.
    pub base: i64,
    pub version: u32,
}

/// A value.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub op: Op,
    pub args: SmallVec<[Val; 3]>,
    pub ty: ElemType,
    pub home: RegionId,
    /// The polynomial of an `i64`.
    pub poly: Option<Poly>,
    /// The closed form of a value that is known before the vertex runs.
    pub quantity: Option<Quantity>,
}

/// The number of times that a region runs.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Count {
    pub counted: Option<Point>,
    pub factor: Quantity,
}

/// Straight-line code.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub parent: Option<RegionId>,
    pub depth: u32,
    /// The loop of which the region is one iteration.
    pub iteration_of: Option<u32>,
    pub count: Count,
    /// The ratio of `count` to the parent's, where it is a closed form without loop indices.
    pub own: Option<Quantity>,
}

/// The key under which equal values are shared.
type Key = (Op, SmallVec<[Val; 3]>, ElemType);
/// All values and regions of a body.
pub(super) struct Graph {
    pub nodes: PrimaryMap<Val, Node>,
    pub regions: PrimaryMap<RegionId, Region>,
    movings: Vec<Moving>,
    numbers: FxHashMap<Moving, u32>,
    known: FxHashMap<Key, Vec<Val>>,
}

impl Graph {
    pub fn new() -> Graph {
        let mut regions = PrimaryMap::new();
        let count = Count { counted: None, factor: Quantity::Number(1) };
        regions.push(Region { parent: None, depth: 0, iteration_of: None, count, own: None });
        Graph {
            nodes: PrimaryMap::new(),
            regions,
            movings: vec![],
            numbers: FxHashMap::default(),
            known: FxHashMap::default(),
        }
    }

    /// Returns the region of the whole vertex.
    pub fn root(&self) -> RegionId {
        RegionId(0)
    }

    pub fn region(
        &mut self,
        parent: RegionId,
        iteration_of: Option<u32>,
        count: Count,
        own: Option<Quantity>,
    ) -> RegionId {
        let depth = self.regions[parent].depth + 1;
        self.regions.push(Region { parent: Some(parent), depth, iteration_of, count, own })
    }

    /// Returns whether `inner` is `outer` or inside it.
    pub fn is_inside(&self, outer: RegionId, mut inner: RegionId) -> bool {
        while self.regions[inner].depth > self.regions[outer].depth {
            match self.regions[inner].parent {
                Some(parent) => inner = parent,
                None => return false,
            }
        }
        inner == outer
    }

    /// Returns the home of a value that appears in region `at` and depends on these regions.
    fn home(&self, at: RegionId, depends: &[RegionId], pure: bool) -> RegionId {
        let mut home = at;
        loop {
            let mut iteration = home;
            while self.regions[iteration].iteration_of.is_none() {
                match self.regions[iteration].parent {
                    Some(parent) if pure => iteration = parent,
                    _ => return home,
                }
            }
            let Some(outside) = self.regions[iteration].parent else { return home };
            if depends.iter().any(|&d| self.is_inside(iteration, d)) {
                return home;
            }
            home = outside;
        }
    }

    /// Adds a node that equals no other.
    pub fn opaque(&mut self, op: Op, args: &[Val], ty: ElemType, home: RegionId) -> Val {
        let quantity = if let Op::Index(i) = op { Some(Quantity::Index(i)) } else { None };
        let v = self.nodes.push(Node { op, args: args.into(), ty, home, poly: None, quantity });
        self.nodes[v].poly = (ty == ElemType::I64).then(|| Poly { moving: smallvec![(smallvec![v], 1)], base: 0 });
        v
    }

    /// Returns the value of a constant.
    pub fn constant(&mut self, c: Scalar) -> Val {
        let root = self.root();
        self.pure(Op::Const(c), &[], c.ty, root)
    }

    /// Returns the value of an integer constant of type `i64`.
    pub fn int(&mut self, v: i64) -> Val {
        self.constant(Scalar::new(ElemType::I64, v as u64))
    }

    /// Returns the value of a constant.
    pub fn const_of(&self, v: Val) -> Option<Scalar> {
        if let Op::Const(c) = self.nodes[v].op { Some(c) } else { None }
    }

    /// Adds a load; `written` is the region of the store that it follows.
    pub fn load(&mut self, access: AccessAddress, ty: ElemType, at: RegionId, written: RegionId) -> Val {
        let mut depends: SmallVec<[RegionId; 4]> = smallvec![written];
        let mut args: SmallVec<[Val; 3]> = SmallVec::new();
        for (product, _) in &self.movings[access.moving as usize] {
            for &v in product {
                depends.push(self.nodes[v].home);
                args.push(v);
            }
        }
        let home = self.home(at, &depends, false);
        self.shared(Op::Load(access), args, ty, home)
    }

    /// Adds an operation that can be computed anywhere, folded if its operands are constants.
    pub fn pure(&mut self, op: Op, args: &[Val], ty: ElemType, at: RegionId) -> Val {
        if let Some(c) = self.fold(&op, args, ty) {
            return self.constant(c);
        }
        if let Some(v) = self.same_as_operand(&op, args) {
            return v;
        }
        let depends: SmallVec<[RegionId; 4]> = args.iter().map(|&v| self.nodes[v].home).collect();
        let home = self.home(at, &depends, true);
        self.shared(op, args.into(), ty, home)
    }

    fn shared(&mut self, op: Op, args: SmallVec<[Val; 3]>, ty: ElemType, home: RegionId) -> Val {
        let key = (op, args, ty);
        if let Some(list) = self.known.get(&key)
            && let Some(&v) = list.iter().find(|&&v| self.is_inside(self.nodes[v].home, home))
        {
            return v;
        }
        let (op, args, ty) = key.clone();
        let quantity = self.quantity(&op, &args, ty);
        let v = self.nodes.push(Node { op, args, ty, home, poly: None, quantity });
        self.nodes[v].poly = self.poly(v);
        self.known.entry(key).or_default().push(v);
        v
    }

    fn fold(&self, op: &Op, args: &[Val], ty: ElemType) -> Option<Scalar> {
        let values: Option<SmallVec<[Scalar; 3]>> = args.iter().map(|&v| self.const_of(v)).collect();
        let values = values?;
        let bits = match (op, &values[..]) {
            (Op::Unary(op), [x]) => scalar::unary(*op, ty, x.bits),
            (Op::Binary(op), [a, b]) => scalar::binary(*op, a.ty, a.bits, b.bits).ok()?,
            (Op::Select, [c, a, b]) => {
                if c.bits != 0 {
                    a.bits
                } else {
                    b.bits
                }
            }
            (Op::Fma, [a, b, c]) => scalar::fma(ty, a.bits, b.bits, c.bits),
            (Op::Convert, [x]) => scalar::convert(x.ty, ty, x.bits),
            (Op::Bits, [x]) => scalar::bits(x.ty, ty, x.bits),
            _ => return None,
        };
        Some(Scalar::new(ty, bits))
    }

    /// Simplifies `x + 0`, `x * 1`, `c ? x : x` and similar operations to an operand.
    fn same_as_operand(&self, op: &Op, args: &[Val]) -> Option<Val> {
        let is = |v: Val, n: i128| self.const_of(v).and_then(Scalar::as_int) == Some(n);
        match (op, args) {
            (Op::Binary(BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor), &[a, b]) if is(b, 0) => {
                Some(a).filter(|_| a != b)
            }
            (Op::Binary(BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor), &[a, b]) if is(a, 0) => Some(b),
            (Op::Binary(BinaryOp::Sub | BinaryOp::Shl | BinaryOp::Shr), &[a, b]) if is(b, 0) => Some(a),
            (Op::Binary(BinaryOp::Mul | BinaryOp::Div), &[a, b]) if is(b, 1) => Some(a),
            (Op::Binary(BinaryOp::Mul), &[a, b]) if is(a, 1) => Some(b),
            (Op::Select, &[c, a, b]) => match self.const_of(c) {
                Some(c) => Some(if c.bits != 0 { a } else { b }),
                None => (a == b).then_some(a),
            },
            _ => None,
        }
    }

    fn quantity(&self, op: &Op, args: &[Val], ty: ElemType) -> Option<Quantity> {
        let arg = |i: usize| self.nodes[args[i]].quantity.clone();
        let both = || Some((arg(0)?, arg(1)?));
        let whole = |v: Val| !self.nodes[v].ty.is_float();
        // Arithmetic on other integers wraps.
        let exact = matches!(ty, ElemType::I64 | ElemType::Bool) || matches!(op, Op::Const(_) | Op::Field(_));
        if ty.is_float() || !exact || !args.iter().all(|&v| whole(v)) {
            return None;
        }
        let quantity = match op {
            Op::Const(c) => Quantity::Number(i64::try_from(c.as_int()?).ok()?),
            Op::Size(s) => Quantity::Size(*s),
            Op::Field(f) => Quantity::Const(*f),
            Op::Worker => Quantity::Worker,
            Op::Workers => Quantity::Workers,
            Op::Unary(UnaryOp::Neg) => Quantity::Number(0).add_scaled(arg(0)?, -1),
            Op::Unary(UnaryOp::Not) if ty == ElemType::Bool => Quantity::Number(1).add_scaled(arg(0)?, -1),
            Op::Select => {
                let (c, a, b) = (arg(0)?, arg(1)?, arg(2)?);
                c.clone().mul(a).add(Quantity::Number(1).add_scaled(c, -1).mul(b))
            }
            Op::Convert if ty != ElemType::Bool => arg(0)?,
            Op::Binary(op) => {
                let (a, b) = both()?;
                let not = |q: Quantity| Quantity::Number(1).add_scaled(q, -1);
                let less = |a: Quantity, b: Quantity| Quantity::Less(Box::new([a, b]));
                match op {
                    BinaryOp::Add => a.add(b),
                    BinaryOp::Sub => a.add_scaled(b, -1),
                    BinaryOp::Mul | BinaryOp::And if *op == BinaryOp::Mul || ty == ElemType::Bool => a.mul(b),
                    BinaryOp::Or if ty == ElemType::Bool => a.max(b),
                    BinaryOp::Div => a.div(b),
                    BinaryOp::Rem => a.rem(b),
                    BinaryOp::Min => a.min(b),
                    BinaryOp::Max => a.max(b),
                    BinaryOp::Lt => less(a, b),
                    BinaryOp::Gt => less(b, a),
                    BinaryOp::Le => not(less(b, a)),
                    BinaryOp::Ge => not(less(a, b)),
                    BinaryOp::Eq => Quantity::Equal(Box::new([a, b])),
                    BinaryOp::Ne => not(Quantity::Equal(Box::new([a, b]))),
                    _ => return None,
                }
            }
            _ => return None,
        };
        quantity.fits()
    }

    fn poly(&self, v: Val) -> Option<Poly> {
        let node = &self.nodes[v];
        if node.ty != ElemType::I64 {
            return None;
        }
        let of = |i: usize| self.nodes[node.args[i]].poly.as_ref();
        let made = match node.op {
            Op::Const(c) => Some(Poly { moving: SmallVec::new(), base: c.bits as i64 }),
            Op::Unary(UnaryOp::Neg) => of(0).and_then(|x| Poly::default().plus(x, -1)),
            Op::Binary(BinaryOp::Add) => of(0).zip(of(1)).and_then(|(a, b)| a.plus(b, 1)),
            Op::Binary(BinaryOp::Sub) => of(0).zip(of(1)).and_then(|(a, b)| a.plus(b, -1)),
            Op::Binary(BinaryOp::Mul) => of(0).zip(of(1)).and_then(|(a, b)| a.times(b)),
            _ => None,
        };
        made.or_else(|| Some(Poly { moving: smallvec![(smallvec![v], 1)], base: 0 }))
    }

    /// Returns the step of `i = lo + k · step`, where `k` is the index of a loop.
    pub fn step_of(&self, i: Val, lo: Val, number: u32) -> Option<Val> {
        let far = self.nodes[i].poly.as_ref()?.plus(self.nodes[lo].poly.as_ref()?, -1)?;
        let is_index = |v: Val| matches!(self.nodes[v].op, Op::Index(n) if n == number);
        match (&far.moving[..], far.base) {
            ([(product, 1)], 0) => match product[..] {
                [a, b] if is_index(a) => Some(b),
                [a, b] if is_index(b) => Some(a),
                _ => None,
            },
            _ => None,
        }
    }

    /// Interns a moving part and returns its number.
    pub fn number(&mut self, moving: &Moving) -> u32 {
        if let Some(&n) = self.numbers.get(moving) {
            return n;
        }
        let n = self.movings.len() as u32;
        self.movings.push(moving.clone());
        self.numbers.insert(moving.clone(), n);
        n
    }

    /// Returns a moving part by number.
    pub fn moving(&self, n: u32) -> &Moving {
        &self.movings[n as usize]
    }
}
