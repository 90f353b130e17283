//! Plans with one number changed: the verifier, which works on segments, refuses exactly what a replay byte by byte
//! refuses.

use super::random::{Choices, graph};
use super::*;
use proptest::prelude::*;

/// A number of a plan.
enum Number<'a> {
    Unsigned(&'a mut u32),
    Signed(&'a mut i32),
}

impl Number<'_> {
    /// Adds to the number, or doubles it if there is nothing to add.
    fn change(self, by: i32) {
        match self {
            Number::Unsigned(n) => *n = if by == 0 { n.saturating_mul(2) } else { n.saturating_add_signed(by) },
            Number::Signed(n) => *n = if by == 0 { n.saturating_mul(2) } else { n.saturating_add(by) },
        }
    }
}

fn of_loc(loc: &mut Loc) -> [Number<'_>; 2] {
    let which = match &mut loc.object {
        Object::Buffer(buffer) => buffer,
        Object::Var(_) => &mut loc.tile,
    };
    [which, &mut loc.offset].map(Number::Unsigned)
}

fn of_phase(phase: &mut Phase) -> Vec<Number<'_>> {
    let mut all = vec![];
    for copy in phase.before.iter_mut().chain(&mut phase.after) {
        let LocalCopy { from, to, count, bytes, from_step, to_step } = copy;
        all.extend(of_loc(from).into_iter().chain(of_loc(to)));
        all.extend([count, bytes].map(Number::Unsigned));
        all.extend([from_step, to_step].map(Number::Signed));
    }
    for Transfer { from, to, words } in &mut phase.transfers {
        all.extend(of_loc(from));
        all.push(Number::Unsigned(words));
        match to {
            To::One(loc) => all.extend(of_loc(loc)),
            To::Group { group, offset } => all.extend([group, offset].map(Number::Unsigned)),
        }
    }
    all.extend(phase.groups.iter_mut().flatten().flat_map(of_loc));
    all
}

/// The numbers of a plan.
fn numbers(plan: &mut Plan) -> Vec<Number<'_>> {
    let Plan { sets, copies, locations } = plan;
    let mut all = vec![];
    for steps in sets.values_mut().chain(copies.values_mut()) {
        all.extend(steps.buffers.iter_mut().flat_map(|b| [&mut b.tile, &mut b.bytes]).map(Number::Unsigned));
        all.extend(of_phase(&mut steps.before));
        all.extend(of_phase(&mut steps.after));
    }
    for fields in locations.values_mut().flatten() {
        all.extend(fields.strides.iter_mut().flatten().map(Number::Signed));
        all.extend(fields.strides_of.iter_mut().map(Number::Unsigned));
        for location in &mut fields.at {
            match location {
                FieldLocation::InPlace(byte) => all.push(Number::Unsigned(byte)),
                FieldLocation::Buffer { buffer, offset } => all.extend([buffer, offset].map(Number::Unsigned)),
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn a_changed_number_is_refused_as_a_replay_byte_by_byte_refuses_it(
        choices in proptest::collection::vec(any::<u32>(), 20..80),
        which: usize,
        by in prop::sample::select(vec![1, -1, 2, -2, 4, -4, 8, -8, 64, 0]),
    ) {
        let build = graph(&mut Choices(choices, 0));
        let machine = build.machine.clone();
        let mut planned = build.plan();
        let mut all = numbers(&mut planned.plan);
        prop_assume!(!all.is_empty());
        all.swap_remove(which % all.len()).change(by);
        let found = verify(&planned.race_free, &machine, &planned.plan);
        let expected = bytewise::verify(&planned.race_free, &machine, &planned.plan);
        prop_assert_eq!(found.is_ok(), expected.is_ok(), "{:?}, but byte by byte {:?}", &found, &expected);
    }
}
