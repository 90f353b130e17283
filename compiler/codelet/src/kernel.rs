//! Kernel specifications: the inputs of the compilation of one function.
//!
//! A *kernel* is a codelet for concrete shapes, sizes and byte strides of its fields, with a way to find the fields of
//! an instance. Rewrites (`girder_host`) go from specification to specification, code generation (`girder_codegen`)
//! from a specification to machine code.
//!
//! Invariant: two specifications that are equal by [`KernelSpec::same`] compile to the same code.

use crate::Sizes;
use crate::cost::Points;
use crate::facts::Weights;
use cranelift_entity::{EntitySet, SecondaryMap};
use girder_ir::codelet::{Codelet, Local, Stmt, StmtBlock};
use girder_ir::ids::{ExprId, FieldId, SiteId};
use girder_ir::types::ElemType;
use smallvec::SmallVec;

/// Byte strides of a field, one per dimension; any sign, zero too.
pub type FieldLayout = SmallVec<[i64; 3]>;

/// A codelet with the properties of its fields that all instances share.
#[derive(Clone, Debug)]
pub struct KernelSpec<'a> {
    /// The codelet to run.
    pub codelet: &'a Codelet,
    /// Shapes and sizes, as [`bind_sizes`](crate::bind_sizes) returns them.
    pub sizes: &'a Sizes,
    /// Byte strides of each edge field; those of `const` fields are not read.
    pub strides: SecondaryMap<FieldId, FieldLayout>,
    /// Checks that cannot fail for these sizes: [`Facts::proven`](crate::Facts).
    pub proven: &'a EntitySet<SiteId>,
    /// What loops count: [`Facts::weights`](crate::Facts).
    pub weights: &'a Weights,
    /// How instances are found.
    pub addressing: Addressing,
    /// The regularity of the instances, if any.
    pub lines: Option<Lines>,
    /// Blocks whose executions are counted. Code that counts is slower; without points it is as if this were `None`.
    pub points: Option<&'a Points>,
}

/// How a kernel finds the offsets of an instance's fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Addressing {
    /// From a first offset and a step for each field.
    Affine,
    /// From a table of `u32`.
    Table32,
    /// From a table of `u64`.
    Table64,
    /// As `Affine` for the edge fields whose bit is set, as `Table32` for the others; the table has entries for those
    /// only.
    Mixed {
        /// Bit f is that of edge field f, of at most 64.
        straight: u64,
    },
}

/// Instances that lie on lines: within each block of `length` instances (counted from instance 0), every field moves
/// by a fixed number of bytes from one to the next.
#[derive(Clone, PartialEq, Debug)]
pub struct Lines {
    /// Instances of a block, at least 1; `u64::MAX` if all lie on one line.
    pub length: u64,
    /// Bytes from instance to instance, by edge field.
    pub steps: SecondaryMap<FieldId, i64>,
    /// Whether all instances have the same `const` fields.
    pub shares_consts: bool,
}

/// The properties of the code generator's vector code on which the gain of a rewrite depends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelTarget {
    /// Whether there are vector kernels, whose last vector may be partial.
    pub vector_kernels: bool,
    /// Nodes of code up to which an inner loop is unrolled in a vector kernel.
    pub unrolled_nodes: u64,
    /// The size of the groups of iterations in which vector kernels run nests of short loops; `None` if there are none.
    pub nest_group: Option<u64>,
}

impl Addressing {
    /// Returns whether an edge field is found from a first offset and a step.
    pub fn is_straight(self, edge: usize) -> bool {
        match self {
            Addressing::Affine => true,
            Addressing::Mixed { straight } => straight >> edge & 1 == 1,
            Addressing::Table32 | Addressing::Table64 => false,
        }
    }

    /// Returns the bytes of an entry of the table.
    pub fn entry_bytes(self) -> i64 {
        if self == Addressing::Table64 { 8 } else { 4 }
    }
}

impl KernelSpec<'_> {
    /// Returns the row-major strides of a contiguous view.
    pub fn contiguous(shape: &[u64], element_bytes: u32) -> FieldLayout {
        let mut stride = i64::from(element_bytes);
        let mut strides: FieldLayout = shape.iter().map(|_| 0).collect();
        for (s, &n) in strides.iter_mut().zip(shape).rev() {
            *s = stride;
            stride = stride.wrapping_mul(n as i64);
        }
        strides
    }

    /// Returns whether all instances have the same `const` fields.
    pub fn shares_consts(&self) -> bool {
        self.lines.as_ref().is_some_and(|l| l.shares_consts)
    }

    /// Returns whether executions of some block are counted.
    pub fn counts(&self) -> bool {
        self.points.is_some_and(|p| !p.is_empty())
    }

    /// Returns whether `other` is the same codelet (by address) with the same sizes, strides, facts and addressing.
    pub fn same(&self, other: &KernelSpec<'_>) -> bool {
        std::ptr::eq(self.codelet, other.codelet)
            && self.addressing == other.addressing
            && self.lines == other.lines
            && self.points == other.points
            && (std::ptr::eq(self.sizes, other.sizes) || self.sizes == other.sizes)
            && self.codelet.edges().all(|(f, _)| self.strides[f] == other.strides[f])
            && (std::ptr::eq(self.weights, other.weights)
                || self.codelet.sites.keys().all(|s| self.weights[s] == other.weights[s]))
            && (std::ptr::eq(self.proven, other.proven)
                || self.codelet.sites.keys().all(|s| self.proven.contains(s) == other.proven.contains(s)))
    }
}

/// Bytes that the local arrays of one codelet may take together: they live on the stack of a host thread.
pub const ARRAY_BYTES: u64 = 256 << 10;

/// Nesting of expressions and statements up to which recursive analyses and translations accept a codelet.
pub const MAX_DEPTH: u32 = 600;

/// Returns the bytes of all local arrays of a codelet.
pub fn array_bytes(codelet: &Codelet) -> u64 {
    let bytes = |l: &Local| {
        let Some(dims) = &l.array else { return 0 };
        dims.iter().fold(u64::from(l.ty.bytes()), |n, &d| n.saturating_mul(u64::from(d)))
    };
    codelet.locals.values().map(bytes).fold(0, u64::saturating_add)
}

/// Returns an element type that the codelet computes with and that has no operations on a host, if there is one.
pub fn unsupported_type(codelet: &Codelet) -> Option<ElemType> {
    let types = codelet.exprs.values().map(|e| e.ty);
    let types = types.chain(codelet.fields.values().map(|f| f.ty)).chain(codelet.locals.values().map(|l| l.ty));
    types.into_iter().find(|&ty| ty == ElemType::F16)
}

/// Returns how deeply the statements and the expressions of a codelet nest together, or `None` beyond [`MAX_DEPTH`].
/// Does not recurse.
pub fn depth(codelet: &Codelet) -> Option<u32> {
    let depth = expr_depth(codelet)? + block_depth(&codelet.body)?;
    (depth <= MAX_DEPTH).then_some(depth)
}

/// Returns the nesting of statements, or `None` if it is beyond the limit.
fn block_depth(body: &StmtBlock) -> Option<u32> {
    let mut deepest = 0;
    let mut open: Vec<(&StmtBlock, u32)> = vec![(body, 1)];
    while let Some((block, depth)) = open.pop() {
        deepest = deepest.max(depth);
        if depth > MAX_DEPTH {
            return None;
        }
        open.extend(block.iter().flat_map(Stmt::blocks).map(|inner| (inner, depth + 1)));
    }
    Some(deepest)
}

/// Returns the nesting of the deepest expression, or `None` if it is beyond the limit (or endless). Visits operands
/// first.
fn expr_depth(codelet: &Codelet) -> Option<u32> {
    let mut depth: SecondaryMap<ExprId, u32> = SecondaryMap::with_capacity(codelet.exprs.len());
    let mut greatest = 0;
    let mut open: Vec<ExprId> = Vec::new();
    for root in codelet.exprs.keys() {
        open.push(root);
        while let Some(&e) = open.last() {
            if open.len() as u32 > MAX_DEPTH {
                return None;
            }
            let mut pending = None;
            let mut deepest = 0;
            for &x in codelet.exprs[e].kind.operands().iter() {
                match depth[x] {
                    0 => pending = Some(x),
                    d => deepest = deepest.max(d),
                }
            }
            match pending {
                Some(x) => open.push(x),
                None => {
                    depth[e] = deepest + 1;
                    greatest = greatest.max(deepest + 1);
                    open.pop();
                }
            }
        }
    }
    (greatest <= MAX_DEPTH).then_some(greatest)
}
