//! The codelets of a graph, and their texts, in the order in which the printed graph is read.
//!
//! Reading makes a specialisation when the first vertex in printed order names it, and keeps the text of an item when
//! the first specialisation needs it: functions that are arguments of generics, then the functions that the codelet
//! calls, then the codelet. A pass that adds or removes vertices calls [`settle`] at its end.
//!
//! Invariant: after [`settle`], no codelet is without vertices, no item is unused, and ids are in the order of reading.

use cranelift_entity::{PrimaryMap, SecondaryMap};
use girder_ir::codelet::{Codelet, GenericArg};
use girder_ir::graph::{CodeletItem, Graph};
use girder_ir::ids::{ItemId, SpecId};
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// Drops unused codelets and items, and renumbers the others in the order in which reading makes them. A codelet's item
/// has the codelet's name.
pub fn settle(graph: &mut Graph) {
    let mut order: Vec<SpecId> = Vec::new();
    let mut renamed: SecondaryMap<SpecId, Option<SpecId>> = SecondaryMap::new();
    for &family in graph.sets.values().flat_map(|set| &set.families) {
        let spec = &mut graph.families[family].codelet;
        let renamed = &mut renamed[*spec];
        if renamed.is_none() {
            *renamed = Some(SpecId::from_u32(order.len() as u32));
            order.push(*spec);
        }
        *spec = renamed.unwrap_or(*spec);
    }
    let mut codelets: SecondaryMap<SpecId, Option<Codelet>> =
        std::mem::take(&mut graph.codelets).into_iter().map(|(id, codelet)| (id, Some(codelet))).collect();
    for spec in order {
        codelets[spec].take().into_iter().for_each(|codelet| _ = graph.codelets.push(codelet));
    }
    let items = std::mem::take(&mut graph.items);
    let by_name = items.iter().map(|(id, item)| (item.name.clone(), id)).collect();
    let mut needed = Needed { items: &items, by_name, seen: SecondaryMap::new(), order: PrimaryMap::new() };
    for codelet in graph.codelets.values() {
        for arg in &codelet.args {
            if let GenericArg::Fn(name) = arg {
                needed.item(name);
            }
        }
        needed.item(&codelet.name);
    }
    graph.items = needed.order;
}

/// The items that were found to be needed.
struct Needed<'g> {
    items: &'g PrimaryMap<ItemId, CodeletItem>,
    by_name: BTreeMap<SmolStr, ItemId>,
    seen: SecondaryMap<ItemId, bool>,
    order: PrimaryMap<ItemId, CodeletItem>,
}

impl Needed<'_> {
    /// Adds an item after those that it calls. Functions do not call each other in a circle, so the recursion is as
    /// deep as calls are nested.
    fn item(&mut self, name: &str) {
        let Some(&id) = self.by_name.get(name) else { return };
        if std::mem::replace(&mut self.seen[id], true) {
            return;
        }
        for name in &self.items[id].calls {
            self.item(name);
        }
        self.order.push(self.items[id].clone());
    }
}
