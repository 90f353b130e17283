//! The canonical form of a view, and the tree of boxes that gives it.
//!
//! Several digits and boxes can describe the same elements. A view is written as text as a tree of strided boxes of
//! variables, concatenated along axes; the canonical view is the one that this tree evaluates to.
//!
//! Invariant: the tree of a view depends on its digits, axes and boxes, not on its offsets; a canonical view is a fixed
//! point.

use super::{Domain, Field, FieldPart, Offset};
use crate::ids::FieldId;
use crate::view::{Shape, View};

/// A node of a [`BoxTree`]; every box has one length for each axis of the tree.
#[derive(Debug)]
pub enum BoxNode {
    /// One strided box of a variable.
    Box(FieldPart),
    /// Nodes side by side along an axis.
    Concat {
        /// The axis.
        axis: usize,
        /// The nodes, in order.
        nodes: Vec<BoxNode>,
    },
}

/// A field as concatenated boxes.
#[derive(Debug)]
pub struct BoxTree {
    /// The outermost node.
    pub root: BoxNode,
    /// The digit of each axis; `None` for an axis of length 1.
    pub axes: Vec<Option<usize>>,
    /// The shape of the field, if its axes are not those of the tree.
    pub reshape: Option<Shape>,
}

impl BoxTree {
    /// Returns the tree of a field, or `None` if the field is empty.
    pub fn of(field: &Field) -> Option<BoxTree> {
        let simple = field.axes.iter().all(|&n| n <= 1);
        let mut next = 0;
        let mut axis = |&n: &u8| {
            next += n as usize;
            (n > 0).then(|| next - 1)
        };
        let axes: Vec<Option<usize>> = match simple {
            true => field.axes.iter().map(&mut axis).collect(),
            false => (0..field.digits.len()).map(Some).collect(),
        };
        let root = cut(field.parts.to_vec(), &axes)?;
        let reshape = (!simple).then(|| field.shape().iter().copied().collect());
        Some(BoxTree { root, axes, reshape })
    }

    /// Evaluates the tree for one instance.
    fn view(&self, domain: &Domain, instance: u64) -> View {
        let view = self.root.view(&self.axes, domain, instance);
        match &self.reshape {
            Some(shape) => view.reshape(shape),
            None => view,
        }
    }
}

impl BoxNode {
    fn view(&self, axes: &[Option<usize>], domain: &Domain, instance: u64) -> View {
        match self {
            BoxNode::Box(part) => {
                let (dims, strides): (Vec<u64>, Vec<i64>) = part.extents(axes).unzip();
                View::strided(part.var, part.offset.at(domain, instance), &dims, &strides)
            }
            BoxNode::Concat { axis, nodes } => {
                let views: Vec<View> = nodes.iter().map(|n| n.view(axes, domain, instance)).collect();
                View::concat(&views, *axis)
            }
        }
    }
}

impl FieldPart {
    /// Returns the length and stride of the part along each axis of its tree.
    pub fn extents<'a>(&'a self, axes: &'a [Option<usize>]) -> impl Iterator<Item = (u64, i64)> + 'a {
        axes.iter().map(|a| a.map_or((1, 0), |k| (self.len[k] as u64, self.stride[k])))
    }
}

/// Divides the parts of a box by cuts through the whole box. If every cut would meet a part, that part is split in two.
fn cut(mut parts: Vec<FieldPart>, axes: &[Option<usize>]) -> Option<BoxNode> {
    if parts.len() <= 1 {
        return parts.pop().map(BoxNode::Box);
    }
    for (axis, digit) in axes.iter().enumerate() {
        let Some(k) = *digit else { continue };
        parts.sort_by_key(|p| p.lo[k]);
        let mut groups: Vec<Vec<FieldPart>> = vec![];
        let mut end = 0;
        for part in std::mem::take(&mut parts) {
            let (lo, hi) = (part.lo[k], part.lo[k] + part.len[k]);
            match groups.last_mut().filter(|_| lo < end) {
                Some(group) => group.push(part),
                None => groups.push(vec![part]),
            }
            end = end.max(hi);
        }
        if groups.len() > 1 {
            let nodes = groups.into_iter().map(|g| cut(g, axes)).collect::<Option<_>>()?;
            return Some(BoxNode::Concat { axis, nodes });
        }
        parts = groups.into_iter().flatten().collect();
    }
    let k = axes.iter().flatten().copied().next()?;
    let first = parts.iter().map(|p| p.lo[k] + p.len[k]).min()?;
    cut(parts.into_iter().flat_map(|p| split(p, k, first)).collect(), axes)
}

/// Splits a part before position `at` of digit `k`.
fn split(part: FieldPart, k: usize, at: u32) -> Vec<FieldPart> {
    if at <= part.lo[k] || at >= part.lo[k] + part.len[k] {
        return vec![part];
    }
    let (mut a, mut b) = (part.clone(), part);
    a.len[k] = at - a.lo[k];
    b.len[k] -= a.len[k];
    b.lo[k] = at;
    let shift = a.len[k] as i64 * b.stride[k];
    match &mut b.offset {
        Offset::Affine(f) => f.base += shift,
        Offset::Table(t) => *t = t.iter().map(|&v| (v as i64 + shift) as u32).collect(),
    }
    vec![a, b]
}

impl View {
    /// Returns whether the view is one part and each of its axes is at most one digit. Such a view is canonical.
    pub fn is_plain(&self) -> bool {
        let of_one_part = self.parts.len() == 1 && self.axes.iter().all(|&n| n <= 1) && !self.digits.contains(&1);
        of_one_part && !self.is_empty()
    }

    /// Returns the view with the same elements and shape that reading its text gives.
    pub fn canonical(mut self) -> View {
        if self.is_empty() {
            self.simplify();
            return self;
        }
        if self.is_plain() {
            return self;
        }
        self.simplify();
        // Each round joins neighbouring boxes; the views of a program are canonical after one.
        for _ in 0..16 {
            let domain = Domain::default();
            let field = Field::uniform(FieldId::from_u32(0), &self);
            let Some(next) = BoxTree::of(&field).map(|t| t.view(&domain, 0)) else { break };
            if next == self {
                break;
            }
            self = next;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::VarId;

    fn whole(var: u32, shape: &[u64]) -> View {
        View::whole(VarId::from_u32(var), shape)
    }

    /// Asserts that the canonical form keeps shape and elements and is a fixed point.
    fn check(view: View) {
        let canonical = view.clone().canonical();
        assert_eq!(view.shape(), canonical.shape());
        assert!(view.elements().eq(canonical.elements()), "{view:?}\n{canonical:?}");
        assert_eq!(canonical.clone().canonical(), canonical);
    }

    #[test]
    fn views_of_many_parts_have_a_canonical_form() {
        let (a, b) = (whole(0, &[4, 6]), whole(1, &[2, 6]));
        let joined = View::concat(&[a.clone(), b.clone()], 0);
        check(joined.clone());
        check(joined.reshape(&[9, 4]));
        check(joined.transpose().flatten());
        check(joined.reshape(&[2, 18]).slice(1, 5, 9, 1));
        check(joined.reverse(0).reshape(&[36]).slice(0, 1, 17, 2));
        check(a.slice(1, 0, 4, 1).flatten().reshape(&[2, 8]));
        check(View::concat(&[a.slice(0, 1, 2, 1), b.broadcast(3, 0).slice(0, 0, 2, 1)], 1).reshape(&[3, 8]));
    }

    #[test]
    fn a_pinwheel_is_cut() {
        let piece = |v: u32, shape: &[u64]| whole(v, shape);
        let top = View::concat(&[piece(0, &[1, 2]), piece(1, &[2, 1]).slice(0, 0, 1, 1)], 1);
        let middle = View::concat(
            &[piece(2, &[2, 1]).slice(0, 0, 1, 1), piece(3, &[1, 1]), piece(1, &[2, 1]).slice(0, 1, 1, 1)],
            1,
        );
        let bottom = View::concat(&[piece(2, &[2, 1]).slice(0, 1, 1, 1), piece(4, &[1, 2])], 1);
        let wheel = View::concat(&[top, middle, bottom], 0);
        assert_eq!(wheel.parts.len(), 5);
        check(wheel);
    }
}
