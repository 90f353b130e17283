//! The receivers of transfers: one location, or a group of locations that many transfers share.
//!
//! # Note: Groups
//! Data that several tiles read, word by word from many senders, have the same receivers again and again, at locations
//! that differ by one common distance. So a phase keeps each list of locations once. A transfer names the list and the
//! distance in bytes at which its words arrive. A sender that is itself on a tile of the group sends to the others: the
//! group is the same for all senders. Code that sums loads works on groups; [`Phase::receivers`] lists the locations of
//! one transfer.
//!
//! Invariant: a list has one form ([`Grouping::to`]): a single location is no group, the least byte of a group is 0,
//! groups are different and in the order in which transfers first name them.

use super::{Loc, Phase, Transfer};
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// The receivers of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum To {
    /// One location.
    One(Loc),
    /// The locations of a group, except the sender's.
    Group {
        /// Index into [`Phase::groups`].
        group: u32,
        /// Bytes added to the group's locations.
        offset: u32,
    },
}

/// The first words of a transfer on each of its receivers, see [`Phase::receivers`].
#[derive(Clone, Debug)]
pub struct Receivers<'a> {
    one: Option<Loc>,
    /// Locations before and after the sender's.
    groups: [&'a [Loc]; 2],
    offset: u32,
}

impl Iterator for Receivers<'_> {
    type Item = Loc;

    fn next(&mut self) -> Option<Loc> {
        if let Some(loc) = self.one.take() {
            return Some(loc);
        }
        let list = self.groups.iter_mut().find(|g| !g.is_empty())?;
        let (first, rest) = list.split_first()?;
        *list = rest;
        Some(self.behind(first))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.one.is_some() as usize + self.groups[0].len() + self.groups[1].len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for Receivers<'_> {}

impl Receivers<'_> {
    /// Returns a location by position.
    pub fn at(&self, k: usize) -> Option<Loc> {
        let [before, after] = self.groups;
        match self.one {
            Some(loc) => (k == 0).then_some(loc),
            None => before.get(k).or_else(|| after.get(k.checked_sub(before.len())?)).map(|l| self.behind(l)),
        }
    }

    fn behind(&self, loc: &Loc) -> Loc {
        Loc { offset: loc.offset.wrapping_add(self.offset), ..*loc }
    }
}

impl Phase {
    /// Returns the locations at which the words of a transfer arrive, one on each receiver.
    pub fn receivers(&self, transfer: &Transfer) -> Receivers<'_> {
        match transfer.to {
            To::One(loc) => Receivers { one: Some(loc), groups: [&[], &[]], offset: 0 },
            To::Group { group, offset } => {
                let locations = self.groups.get(group as usize).map_or(&[][..], Vec::as_slice);
                let groups = match locations.binary_search_by_key(&transfer.from.tile, |l| l.tile) {
                    Ok(own) => [&locations[..own], &locations[own + 1..]],
                    Err(_) => [locations, &[]],
                };
                Receivers { one: None, groups, offset }
            }
        }
    }
}

/// The groups of a phase under construction.
#[derive(Clone, Debug, Default)]
pub struct Grouping {
    known: IndexSet<Vec<Loc>, FxBuildHasher>,
    /// The list to look up; kept to reuse its memory.
    wanted: Vec<Loc>,
}

impl Grouping {
    /// Returns the form of a list of locations on different tiles, ascending by tile.
    pub fn to(&mut self, locations: &[Loc]) -> To {
        if let &[loc] = locations {
            return To::One(loc);
        }
        let offset = locations.iter().map(|l| l.offset).min().unwrap_or(0);
        self.wanted.clear();
        self.wanted.extend(locations.iter().map(|l| Loc { offset: l.offset - offset, ..*l }));
        let group = match self.known.get_index_of(self.wanted.as_slice()) {
            Some(group) => group,
            None => self.known.insert_full(self.wanted.clone()).0,
        };
        To::Group { group: group as u32, offset }
    }

    /// Returns the locations of a group named by [`Grouping::to`].
    pub fn locations(&self, group: u32) -> &[Loc] {
        &self.known[group as usize]
    }

    /// Returns whether no group has been named.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns the list for [`Phase::groups`].
    pub fn into_groups(self) -> Vec<Vec<Loc>> {
        self.known.into_iter().collect()
    }
}
