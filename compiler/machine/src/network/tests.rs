//! Tests of published figures of the ladder model, and of routes against graph searches.

use super::*;
use crate::builtin;
use petgraph::graph::NodeIndex;

fn machine(name: &str, ipus: u32, topology: Topology) -> Machine {
    let mut m = builtin(name).unwrap();
    m.ipus = ipus;
    m.links.topology = topology;
    m
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.05
}

#[test]
fn hops_cost_what_the_vendor_emulator_computes() {
    let hops = |name, ipus| builtin(name).unwrap().hop_cycles(ipus);
    assert_eq!([hops("gc2", 2), hops("gc200", 2), hops("bow", 2)], [48, 40, 56]);
    assert_eq!([hops("gc2", 16), hops("gc200", 16), hops("bow", 16)], [240, 200, 278]);
    assert_eq!([hops("gc2", 64), hops("gc200", 64), hops("bow", 64)], [816, 679, 944]);
}

#[test]
fn one_rule_gives_both_measured_syncs() {
    let m = builtin("dss8440").unwrap();
    assert_eq!((m.sync_cycles([3]), m.sync_cycles(0..16)), (117, 640));
}

#[test]
fn a_zone_pays_for_the_rungs_that_it_lies_across() {
    let ladder = machine("gc2", 16, Topology::Ladder);
    let torus = machine("gc2", 16, Topology::Torus);
    assert_eq!(ladder.sync_cycles([0, 1]), 117 + 283 + 48);
    assert_eq!(ladder.sync_cycles([15, 0]), 640);
    assert_eq!(torus.sync_cycles([15, 0]), 117 + 283 + 96);
    assert_eq!(torus.sync_cycles(0..16), 640);
    assert_eq!(torus.sync_cycles([6, 7]), ladder.sync_cycles([6, 7]));
}

#[test]
fn link_groups_have_their_derived_rates() {
    for name in ["gc2", "gc200", "bow"] {
        let m = builtin(name).unwrap();
        assert!(near(m.group_bytes_per_second(Group::Direct) / 1e9, 58.4));
        for group in [Group::Cross, Group::Up, Group::Down] {
            assert!(near(m.group_bytes_per_second(group) / 1e9, 29.2));
        }
    }
    assert!(near(builtin("gc2").unwrap().group_bytes_per_cycle(Group::Up) / 2.0, 9.1));
    assert!(near(builtin("gc200").unwrap().group_bytes_per_cycle(Group::Up) / 2.0, 11.0));
    assert!(near(builtin("bow").unwrap().group_bytes_per_cycle(Group::Up) / 2.0, 7.9));
}

#[test]
fn the_halo_of_the_blur_takes_the_published_link_time() {
    let m = builtin("dss8440").unwrap();
    // A blur distributed over the processors of each side of the ladder: every neighbour gets 35,200 bytes, two rungs
    // up.
    let up = (0..14).map(|i| (i, i + 2, 35_200));
    let down = (2..16).map(|i| (i, i - 2, 35_200));
    assert_eq!(m.link_phase_cycles(up.chain(down)), 2040 + 1929);
    assert_eq!(m.link_phase_cycles([(3, 3, 1 << 40), (1, 2, 0)]), 0);
}

#[test]
fn flows_that_share_a_group_add_up() {
    let m = builtin("small-8").unwrap();
    // Groups of two links of 4 bytes per cycle.
    let phase = |flows: &[(u32, u32, u64)]| m.link_phase_cycles(flows.iter().copied()) - 2040;
    assert_eq!(phase(&[(0, 1, 1600)]), 100);
    assert_eq!(phase(&[(0, 2, 1600)]), 200);
    assert_eq!(phase(&[(0, 4, 1600), (2, 6, 1600)]), 400);
    assert_eq!(phase(&[(0, 2, 1600), (2, 0, 1600)]), 200);
    assert_eq!(phase(&[(0, 1, 1600), (0, 3, 800)]), 100);
    assert_eq!(phase(&[(0, 1, u64::MAX), (0, 1, u64::MAX)]), u64::MAX / 8 + 1);
}

#[test]
fn every_route_is_a_shortest_path_of_the_network() {
    for topology in [Topology::Ladder, Topology::Torus] {
        for ipus in [2, 4, 6, 8, 16] {
            let m = machine("small", ipus, topology);
            let network = m.network();
            assert_eq!(petgraph::algo::kosaraju_scc(&network).len(), 1, "{topology:?} {ipus}");
            for from in 0..ipus {
                let hops = petgraph::algo::dijkstra(&network, from.into(), None, |_| 1);
                for to in 0..ipus {
                    let route: Vec<Link> = m.route(from, to).collect();
                    let end = route.iter().fold(from, |at, link| {
                        assert_eq!(link.ipu, at, "{topology:?} {ipus}: {from} to {to}");
                        link.to(&m).unwrap()
                    });
                    assert_eq!(
                        (end, route.len()),
                        (to, hops[&NodeIndex::from(to)]),
                        "{topology:?} {ipus}: {from} to {to}"
                    );
                }
            }
        }
    }
}

proptest::proptest! {
    /// Compares with the loads of all links, counted link by link along each route.
    #[test]
    fn a_phase_lasts_as_long_as_its_fullest_group(
        torus: bool,
        rungs in 1u32..9,
        flows in proptest::collection::vec((0u32..16, 0u32..16, 0u64..10_000), 0..40),
    ) {
        let m = machine("gc2", 2 * rungs, if torus { Topology::Torus } else { Topology::Ladder });
        let flows: Vec<(u32, u32, u64)> = flows.into_iter().map(|(f, t, b)| (f % m.ipus, t % m.ipus, b)).collect();
        let mut load = std::collections::BTreeMap::<Link, u64>::new();
        for &(from, to, bytes) in &flows {
            m.route(from, to).for_each(|link| *load.entry(link).or_default() += bytes);
        }
        let cycles = load.iter().map(|(l, &b)| (b as f64 / m.group_bytes_per_cycle(l.group)).ceil() as u64);
        let fullest = cycles.max().unwrap_or(0);
        let fixed = if fullest > 0 { 2040 } else { 0 };
        proptest::prop_assert_eq!(m.link_phase_cycles(flows), fixed + fullest);
    }
}
