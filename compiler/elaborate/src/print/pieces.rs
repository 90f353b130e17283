//! A view as a tree of strided boxes of variables, side by side: how views are printed.
//!
//! Invariant: the tree of a view depends on its digits, axes and boxes, not on its offsets; a settled view is the one
//! that its own tree gives.

use girder_ir::family::{Domain, Field, FieldPart, Offset};
use girder_ir::ids::FieldId;
use girder_ir::view::{Shape, View};

/// A tree of boxes; all have one axis for each of the tree's axes.
#[derive(Debug)]
pub(super) enum Pieces {
    /// One part.
    Part(FieldPart),
    /// Side by side along an axis.
    Concat(usize, Vec<Pieces>),
}

/// The tree of a field, and what its axes are.
#[derive(Debug)]
pub(super) struct Tree {
    /// The boxes.
    pub pieces: Pieces,
    /// The digit behind each axis; `None` is an axis of length 1.
    pub axes: Vec<Option<usize>>,
    /// The shape that it must still be given, if its axes are not the field's.
    pub reshape: Option<Shape>,
}

impl Tree {
    /// The tree of a field that is not empty.
    pub fn of(field: &Field) -> Option<Tree> {
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
        let pieces = cut(field.parts.to_vec(), &axes)?;
        let reshape = (!simple).then(|| field.shape().iter().copied().collect());
        Some(Tree { pieces, axes, reshape })
    }

    /// The view of one instance.
    fn view(&self, domain: &Domain, instance: u64) -> View {
        let view = self.pieces.view(&self.axes, domain, instance);
        match &self.reshape {
            Some(shape) => view.reshape(shape),
            None => view,
        }
    }
}

impl Pieces {
    fn view(&self, axes: &[Option<usize>], domain: &Domain, instance: u64) -> View {
        match self {
            Pieces::Part(p) => {
                let (dims, strides): (Vec<u64>, Vec<i64>) = lines(p, axes).unzip();
                View::strided(p.var, p.offset.at(domain, instance), &dims, &strides)
            }
            Pieces::Concat(axis, all) => {
                let views: Vec<View> = all.iter().map(|p| p.view(axes, domain, instance)).collect();
                View::concat(&views, *axis)
            }
        }
    }
}

/// Length and stride of a part along each axis.
pub(super) fn lines<'a>(part: &'a FieldPart, axes: &'a [Option<usize>]) -> impl Iterator<Item = (u64, i64)> + 'a {
    axes.iter().map(|a| a.map_or((1, 0), |k| (part.len[k] as u64, part.stride[k])))
}

/// Boxes that fill a box, by cuts from side to side; a box that stands in the way of all of them is cut in two.
fn cut(mut parts: Vec<FieldPart>, axes: &[Option<usize>]) -> Option<Pieces> {
    if parts.len() <= 1 {
        return parts.pop().map(Pieces::Part);
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
            let pieces = groups.into_iter().map(|g| cut(g, axes)).collect::<Option<_>>()?;
            return Some(Pieces::Concat(axis, pieces));
        }
        parts = groups.into_iter().flatten().collect();
    }
    let k = axes.iter().flatten().copied().next()?;
    let first = parts.iter().map(|p| p.lo[k] + p.len[k]).min()?;
    cut(parts.into_iter().flat_map(|p| split(p, k, first)).collect(), axes)
}

/// A part cut before position `at` of digit `k`.
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

/// Whether a view is one part of axes that are no products, so that it is [`settled`] as it is.
pub fn is_plain(view: &View) -> bool {
    let of_one_part = view.parts.len() == 1 && view.axes.iter().all(|&n| n <= 1) && !view.digits.contains(&1);
    of_one_part && !view.is_empty()
}

/// The view with the same elements and shape that reading its text gives.
pub fn settled(mut view: View) -> View {
    if view.is_empty() {
        view.simplify();
        return view;
    }
    if is_plain(&view) {
        return view;
    }
    view.simplify();
    // Each turn joins what was apart; views of a program are joined after one.
    for _ in 0..16 {
        let domain = Domain::default();
        let field = Field::uniform(FieldId::from_u32(0), &view);
        let Some(next) = Tree::of(&field).map(|t| t.view(&domain, 0)) else { break };
        if next == view {
            break;
        }
        view = next;
    }
    view
}

#[cfg(test)]
mod tests {
    use super::*;
    use girder_ir::ids::VarId;

    fn whole(var: u32, shape: &[u64]) -> View {
        View::whole(VarId::from_u32(var), shape)
    }

    /// Settling keeps shape and elements, and a second time changes nothing.
    fn check(view: View) {
        let settled = settled(view.clone());
        assert_eq!(view.shape(), settled.shape());
        assert!(view.elements().eq(settled.elements()), "{view:?}\n{settled:?}");
        assert_eq!(super::settled(settled.clone()), settled);
    }

    #[test]
    fn views_of_many_parts_settle() {
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
