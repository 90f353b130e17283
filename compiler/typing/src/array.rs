//! Local arrays, and the properties of arrays.
//!
//! Invariant: the size of a local array is static and within the limit; its declaration sets all its elements.

use super::builder::Builder;
use super::header::MAX_RANK;
use super::types::Ty;
use super::value::{Literal, Value, View};
use girder_ir::codelet::{Check, ExprKind, Stmt, Storage};
use girder_ir::ids::LocalId;
use girder_ir::types::{ElemType, Scalar};
use girder_source::{Diagnostic, Span};
use girder_syntax::ast;
use smallvec::SmallVec;

/// Maximal number of elements of one local array, which lives in the memory of one worker.
const MAX_ELEMENTS: u64 = 1 << 16;

/// An element of nested lists.
enum Leaf<'a> {
    Expr(ast::ExprId),
    /// An entry of a list of integers.
    Entry(&'a ast::IntegerList, usize),
}

impl<'a> Builder<'a, '_> {
    /// Translates `[value; count]`.
    pub(super) fn array_fill(&mut self, value: ast::ExprId, count: ast::ExprId, span: Span) -> Value {
        let at = self.tree().exprs[value].span;
        let (mut dims, mut inner) = (SmallVec::<[u32; 2]>::new(), value);
        let mut counts = vec![count];
        // `[[0.0; 4]; 4]` is one array of two dimensions.
        while let ast::ExprKind::Fill { value, count } = &self.tree().exprs[inner].kind {
            counts.push(*count);
            inner = *value;
        }
        let value = self.expr(inner);
        for c in counts {
            match self.count(c) {
                Some(n) => dims.push(n),
                None => return Value::Error,
            }
        }
        let Some(e) = self.scalar(value, at) else { return Value::Error };
        let Some(local) = self.array(dims, self.expr_types[e], span) else { return Value::Error };
        self.emit(Stmt::Fill { local, value: e });
        self.array_view(local, span)
    }

    /// Translates `[a, b]`.
    pub(super) fn array_list(&mut self, items: &'a [ast::ExprId], span: Span) -> Value {
        let mut leaves = vec![];
        let mut dims = SmallVec::<[u32; 2]>::new();
        if !self.list_leaves(items, 0, &mut dims, &mut leaves, span) {
            return Value::Error;
        }
        self.array_of(dims, &leaves, span)
    }

    /// Translates a list of many integers, or of tuples, which are no elements.
    pub(super) fn array_integers(&mut self, list: &'a ast::IntegerList, span: Span) -> Value {
        let leaves: Vec<Leaf> = (0..list.len()).map(|k| Leaf::Entry(list, k)).collect();
        self.array_of(SmallVec::from_slice(&[list.len() as u32]), &leaves, span)
    }

    fn array_of(&mut self, dims: SmallVec<[u32; 2]>, leaves: &[Leaf<'a>], span: Span) -> Value {
        let mut values = vec![];
        for leaf in leaves {
            let mark = self.mark();
            let value = match *leaf {
                Leaf::Expr(e) => self.expr(e),
                Leaf::Entry(list, k) => match &list.entry(k)[..] {
                    &[v] => Value::Int(v.into()),
                    entry => Value::Tuple(entry.iter().map(|&v| (None, Value::Int(v.into()))).collect()),
                },
            };
            self.keep_before(mark, &mut values);
            values.push(value);
        }
        let mut common: Option<Ty> = None;
        let mut elements = vec![];
        for (v, leaf) in values.into_iter().zip(leaves) {
            let at = match *leaf {
                Leaf::Expr(e) => self.tree().exprs[e].span,
                Leaf::Entry(list, k) => list.span(k),
            };
            let e = match common {
                None => self.scalar(v, at),
                Some(ty) => self.coerce(v, ty, at),
            };
            let Some(e) = e else { return Value::Error };
            common.get_or_insert(self.expr_types[e]);
            elements.push(e);
        }
        let Some(ty) = common else { return Value::Error };
        let Some(local) = self.array(dims.clone(), ty, span) else { return Value::Error };
        let zero = match self.types.known(ty) {
            Some(ElemType::Bool) => self.push(ExprKind::Const(Scalar::bool(false)), ty, span),
            _ => self.literal(Literal::Int(0), ty, span),
        };
        self.emit(Stmt::Fill { local, value: zero });
        for (i, value) in elements.into_iter().enumerate() {
            let mut rest = i as i64;
            let mut index: SmallVec<[_; 3]> = SmallVec::new();
            for &d in dims.iter().rev() {
                index.insert(0, self.int(rest % i64::from(d), span));
                rest /= i64::from(d);
            }
            let site = self.site(Check::Index, span, None);
            self.emit(Stmt::StoreLocal { local, index, value, site });
        }
        self.array_view(local, span)
    }

    /// Returns the elements of nested lists in row-major order. Reports rows of different lengths, and returns `false`
    /// for them.
    fn list_leaves(
        &mut self,
        items: &'a [ast::ExprId],
        depth: usize,
        dims: &mut SmallVec<[u32; 2]>,
        leaves: &mut Vec<Leaf<'a>>,
        span: Span,
    ) -> bool {
        if !self.is_row(items.len(), depth, dims, span) {
            return false;
        }
        for &e in items {
            let node = &self.tree().exprs[e];
            match &node.kind {
                ast::ExprKind::List(_) | ast::ExprKind::Integers(_)
                    if dims.len() == depth + 1 && !leaves.is_empty() =>
                {
                    self.error("codelet::rank_mismatch", node.span, "this is a row, where the others are elements");
                    return false;
                }
                ast::ExprKind::List(inner) => {
                    let ok = self.deeper(node.span, |s| s.list_leaves(inner, depth + 1, dims, leaves, node.span));
                    if ok != Some(true) {
                        return false;
                    }
                }
                ast::ExprKind::Integers(list) => {
                    if !self.is_row(list.len(), depth + 1, dims, node.span) {
                        return false;
                    }
                    leaves.extend((0..list.len()).map(|k| Leaf::Entry(list, k)));
                }
                _ if dims.len() > depth + 1 => {
                    self.error("codelet::rank_mismatch", node.span, "this is an element, where the others are rows");
                    return false;
                }
                _ => leaves.push(Leaf::Expr(e)),
            }
        }
        true
    }

    /// Returns whether a row at a depth of nested lists is as long as those before it; reports it if not.
    fn is_row(&mut self, len: usize, depth: usize, dims: &mut SmallVec<[u32; 2]>, span: Span) -> bool {
        if dims.len() == depth {
            dims.push(len as u32);
        }
        if dims[depth] as usize != len {
            self.error("codelet::rank_mismatch", span, "the rows of this array differ in length");
            return false;
        }
        if len == 0 {
            self.error("codelet::not_static", span, "an array has at least one element");
        }
        len > 0
    }

    fn count(&mut self, e: ast::ExprId) -> Option<u32> {
        let span = self.tree().exprs[e].span;
        let v = self.expr(e);
        let n = self.static_value(&v, "the length of a local array", span)?;
        match u32::try_from(n) {
            Ok(n) if n > 0 => Some(n),
            _ => {
                self.error("codelet::index_range", span, format!("a local array cannot have {n} elements"));
                None
            }
        }
    }

    fn array(&mut self, dims: SmallVec<[u32; 2]>, ty: Ty, span: Span) -> Option<LocalId> {
        if dims.len() > MAX_RANK {
            self.error("codelet::too_large", span, format!("an array of more than {MAX_RANK} dimensions"));
            return None;
        }
        let total = dims.iter().fold(1u64, |n, &d| n.saturating_mul(d.into()));
        if total > MAX_ELEMENTS {
            let message = format!("a local array of {total} elements is larger than {MAX_ELEMENTS}");
            let d = Diagnostic::error("codelet::too_large", span, message);
            self.report(d.help("declare an `inout` field and bind a variable to it"));
            return None;
        }
        let local = self.local("", ty, false, span);
        self.out.locals[local].array = Some(dims);
        Some(local)
    }

    fn array_view(&mut self, local: LocalId, span: Span) -> Value {
        let dims = self.out.locals[local].array.clone().unwrap_or_default();
        let lengths: Vec<_> = dims.iter().map(|&d| self.int(d.into(), span)).collect();
        Value::View(self.whole_view(Storage::Local(local), &lengths, span))
    }

    /// Returns the element type of a view.
    pub(super) fn element_type(&self, base: Storage) -> Ty {
        match base {
            Storage::Field(f) => Ty::Known(self.out.fields[f].ty),
            Storage::Local(l) => self.local_types[l],
        }
    }

    /// Translates `x.shape`, `x.rank`, `x.type`.
    pub(super) fn view_property(&mut self, view: View, name: &ast::Ident) -> Value {
        match name.name.as_str() {
            "rank" => Value::Int(view.rank() as i128),
            "shape" => {
                let lengths: Vec<_> = (0..view.rank()).filter_map(|d| view.range(d).map(|r| r.len)).collect();
                let lengths = lengths.into_iter().map(|e| (None, Value::Scalar(self.again(e))));
                Value::Tuple(lengths.collect())
            }
            "type" => match self.types.known(self.element_type(view.base)) {
                Some(ty) => Value::Type(ty),
                None => self.error("codelet::not_static", name.span, "the type of this array is not decided here"),
            },
            _ => self.no_member("an array in a codelet", name),
        }
    }
}
