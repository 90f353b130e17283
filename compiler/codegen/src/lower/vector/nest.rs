//! Nests of short loops: the iterations of the inner loops are lanes as well as those of the outer one.
//!
//! ```text
//! for t in 0..m { for i in 0..4 { for j in 0..4 { y[t, 4 * i + j] = x[t, 4 * i] * w[t, j]; } } }
//! ```
//!
//! An inner loop of four iterations fills no vector, and what it moves from one iteration of the outer loop to the next
//! is not contiguous. All iterations together, in the order in which they run, often are: here those of `y`. Elements
//! that are not, as those of `x` and `w`, are permuted if those of a group of iterations lie in one vector.
//!
//! Invariant: the trip counts of the inner loops divide a group of iterations, and the iterations are whole groups.

use girder_codelet::nest::LoopNest;
use girder_ir::ids::LocalId;
use girder_ir::types::ElemType;
use girder_simd::ir::GROUP;
use smallvec::SmallVec;

/// The inner loops, from the outermost: their indices, which begin with 0, and their trip counts.
#[derive(Clone, Default)]
pub(in crate::lower) struct Nest(SmallVec<[(LocalId, u64); 3]>);

/// The loops inside and around the one whose iterations are lanes.
#[derive(Clone, Default)]
pub(in crate::lower) struct Loops {
    /// Those inside it whose iterations are lanes too.
    pub nest: Nest,
    /// The one around it that a vector kernel runs too.
    pub outer: Option<LocalId>,
}

/// How much a number grows along the outer loop, and along each inner one.
pub(super) type Steps = SmallVec<[i64; 4]>;

/// The elements of a load that are neither contiguous nor at one stride.
#[derive(Clone, Copy)]
pub(in crate::lower) struct Permuted {
    /// The bytes from group to group, divided by the iterations of a group.
    pub stride: i64,
    /// The place of the least element of a group, in bytes from that of its first iteration.
    pub first: i32,
    /// The number of each iteration's element, counted from there, in four bits.
    pub order: u64,
}

impl Nest {
    pub fn of(nest: &LoopNest<'_>) -> Nest {
        Nest(nest.inner.iter().map(|inner| (inner.index, inner.trips)).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, local: LocalId) -> bool {
        self.0.iter().any(|l| l.0 == local)
    }

    /// Returns the iterations of all inner loops together.
    pub fn iterations(&self) -> u64 {
        self.0.iter().map(|l| l.1).product()
    }

    /// Returns the indices of the inner loops.
    pub fn indices(&self) -> impl Iterator<Item = LocalId> {
        self.0.iter().map(|l| l.0)
    }

    /// Returns the steps along the outer loop, given by `None`, and along each inner one, given by its index.
    pub fn steps(&self, along: impl Fn(Option<LocalId>) -> i64) -> Steps {
        std::iter::once(None).chain(self.0.iter().map(|l| Some(l.0))).map(along).collect()
    }

    /// Returns the step from iteration to iteration, if it is the same for all.
    pub fn even_step(&self, steps: &Steps) -> Option<i64> {
        let evenly = |(pair, (_, trips)): (&[i64], &(LocalId, u64))| pair[1].wrapping_mul(*trips as i64) == pair[0];
        steps.windows(2).zip(&self.0).all(evenly).then(|| steps[self.0.len()])
    }

    /// Returns the order of a load's elements with given byte strides, if those of a group lie in one vector.
    pub fn permuted(&self, ty: ElemType, strides: &Steps) -> Option<Permuted> {
        let (bytes, iterations) = (i64::from(ty.bytes()), self.iterations());
        let even = strides.iter().all(|s| s % bytes == 0) && strides[0] % iterations as i64 == 0;
        if !even || bytes != 4 {
            return None;
        }
        let place = |n: u64| {
            let mut rest = n;
            let inner = self.0.iter().zip(&strides[1..]).rev().try_fold(0i64, |sum, (&(_, trips), &stride)| {
                let at = (rest % trips) as i64;
                rest /= trips;
                sum.checked_add(at.checked_mul(stride)?)
            });
            inner?.checked_add((rest as i64).checked_mul(strides[0])?)
        };
        let places: Vec<i64> = (0..GROUP).map(place).collect::<Option<_>>()?;
        let (least, most) = (*places.iter().min()?, *places.iter().max()?);
        if most.checked_sub(least)? >= GROUP as i64 * bytes {
            return None;
        }
        let order = places.iter().rev().fold(0, |order, place| order << 4 | ((place - least) / bytes) as u64);
        Some(Permuted { stride: strides[0] / iterations as i64, first: i32::try_from(least).ok()?, order })
    }
}
