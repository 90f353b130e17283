//! Locations on several tiles that are treated as one while moves to them are made, so that common decisions are made
//! once.
//!
//! Invariant: a shared location stands for one location on each of several tiles, at one distance from their first
//! bytes. No real tile has the number [`SHARED`].

use super::moves::Move;
use girder_ir::plan::{Grouping, Loc, Object, To};

/// The tile number of a shared location; its buffer is the number of the group.
const SHARED: u32 = u32::MAX;

/// Returns a nonempty list of locations as one location.
pub(super) fn shared_loc(groups: &mut Grouping, places: &[Loc]) -> Loc {
    match groups.to(places) {
        To::One(loc) => loc,
        To::Group { group, offset } => Loc { tile: SHARED, object: Object::Buffer(group), offset },
    }
}

/// Returns the group and the offset of a shared location.
pub(super) fn group(at: Loc) -> Option<(u32, u32)> {
    match at.object {
        Object::Buffer(group) if at.tile == SHARED => Some((group, at.offset)),
        _ => None,
    }
}

/// Returns the locations that one stands for, except on the sender's tile.
pub(super) fn receivers(groups: &Grouping, at: Loc, sender: u32) -> impl Iterator<Item = Loc> {
    let shared = group(at).map(|(group, offset)| (groups.locations(group), offset));
    let one = shared.is_none().then_some(at);
    let several = shared.into_iter().flat_map(|(list, offset)| list.iter().map(move |&l| offset_by(l, offset)));
    one.into_iter().chain(several).filter(move |l| l.tile != sender)
}

/// Returns a location as transfers name it.
pub(super) fn to(at: Loc) -> To {
    match group(at) {
        Some((group, offset)) => To::Group { group, offset },
        None => To::One(at),
    }
}

/// The landings of elements that vertices on several tiles read.
pub(super) struct Sharing {
    /// The landings, by ascending tile.
    landings: Vec<Loc>,
    /// All landings as one location.
    all: Loc,
}

impl Sharing {
    /// Creates a shared location of landings on different tiles.
    pub fn new(mut landings: Vec<Loc>, groups: &mut Grouping) -> Sharing {
        landings.sort_unstable();
        Sharing { all: shared_loc(groups, &landings), landings }
    }

    /// Splits a move to the landings into one to those on other tiles and one to that on its own.
    pub fn split(&self, m: Move) -> (Option<Move>, Option<Move>) {
        let to = |place: Loc| Move { to: offset_by(place, m.to.offset), ..m };
        let own = self.landings.binary_search_by_key(&m.from.tile, |l| l.tile).ok();
        let others = self.landings.len() > own.is_some() as usize;
        (others.then(|| to(self.all)), own.map(|k| to(self.landings[k])))
    }
}

fn offset_by(loc: Loc, bytes: u32) -> Loc {
    Loc { offset: loc.offset + bytes, ..loc }
}
