//! Places on several tiles as one while moves to them are made: what is the same for all of them is decided once.
//!
//! Invariant: a shared place stands for one place on each of several tiles, at one distance from their first bytes; no real
//! tile has the number [`SHARED`].

use super::moves::Move;
use girder_ir::plan::{Grouping, Loc, Object, To};

/// The tile of a shared place; its buffer is the group's number.
const SHARED: u32 = u32::MAX;

/// A list of places, of which there is at least one, as one place.
pub(super) fn place(groups: &mut Grouping, places: &[Loc]) -> Loc {
    match groups.to(places) {
        To::One(loc) => loc,
        To::Group { group, offset } => Loc { tile: SHARED, object: Object::Buffer(group), offset },
    }
}

/// The group and the offset of a shared place.
pub(super) fn group(at: Loc) -> Option<(u32, u32)> {
    match at.object {
        Object::Buffer(group) if at.tile == SHARED => Some((group, at.offset)),
        _ => None,
    }
}

/// The places on tiles other than the sender's that one stands for.
pub(super) fn places(groups: &Grouping, at: Loc, sender: u32) -> impl Iterator<Item = Loc> {
    let shared = group(at).map(|(group, offset)| (groups.locations(group), offset));
    let one = shared.is_none().then_some(at);
    let several = shared.into_iter().flat_map(|(list, offset)| list.iter().map(move |&l| behind(l, offset)));
    one.into_iter().chain(several).filter(move |l| l.tile != sender)
}

/// The form that transfers name a place in.
pub(super) fn to(at: Loc) -> To {
    match group(at) {
        Some((group, offset)) => To::Group { group, offset },
        None => To::One(at),
    }
}

/// What vertices of several tiles read alike, once.
pub(super) struct Sharing {
    /// Where it lands, by ascending tile.
    landings: Vec<Loc>,
    /// All of these as one place.
    all: Loc,
}

impl Sharing {
    /// Of landings on different tiles, at least one.
    pub fn new(mut landings: Vec<Loc>, groups: &mut Grouping) -> Sharing {
        landings.sort_unstable();
        Sharing { all: place(groups, &landings), landings }
    }

    /// A move to the landings as one to those on other tiles and one to that on its own.
    pub fn split(&self, m: Move) -> (Option<Move>, Option<Move>) {
        let to = |place: Loc| Move { to: behind(place, m.to.offset), ..m };
        let own = self.landings.binary_search_by_key(&m.from.tile, |l| l.tile).ok();
        let others = self.landings.len() > own.is_some() as usize;
        (others.then(|| to(self.all)), own.map(|k| to(self.landings[k])))
    }
}

fn behind(loc: Loc, bytes: u32) -> Loc {
    Loc { offset: loc.offset + bytes, ..loc }
}
