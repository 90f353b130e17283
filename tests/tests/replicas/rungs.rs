//! Numbers of replicas that are no powers of two, on machines of such numbers of rungs.

use girder_tests::{MODES, Program};

/// Replicas in groups of three, of all, and of one rung, each with integers of its own, so that sums are exact.
#[test]
fn any_number_of_rungs_is_divided() {
    let len = 7;
    for (ipus, topology, replicas, size) in
        [(6, "ladder", 6, 6), (6, "torus", 3, 3), (12, "torus", 12, 3), (12, "ladder", 6, 2), (10, "torus", 10, 10)]
    {
        let text = format!(
            "use chains; use collectives;
             let groups = collectives.consecutive({size});
             var sum: f32[{len}]; var chunked: f32[{len}]; var all: f32[{size}, {len}]; var relayed: f32[{size}, {len}];
             var part: f32[{len}]; var swapped: f32[{size}]; var sent: f32[{len}];
             program main() {{
                 var x: f32[{len}];
                 x <- f32([0, 1, 2, 3, 4, 5, 6]) + 10.0 * f32(replica_index * replica_index);
                 let at = collectives.position_of(groups);
                 sum <- collectives.all_reduce(x, groups: groups);
                 chunked <- chains.chunked(x, collectives.operation(\"add\"), groups, at, 2);
                 all <- collectives.all_gather(x, groups: groups);
                 relayed <- chains.relayed(x, groups, at);
                 var rows: f32[{size}, {len}];
                 rows <- x + f32(replica_index);
                 part <- collectives.reduce_scatter(rows, groups: groups).flatten();
                 swapped <- collectives.all_to_all(rows[.., 2] * 2.0, groups: groups);
                 sent <- collectives.broadcast(x, from: {size} - 1, groups: groups);
             }}"
        );
        let machine =
            format!("name = \"own\"\nextends = \"small-2\"\nipus = {ipus}\n[links]\ntopology = \"{topology}\"");
        let outcome =
            Program::text(text).described(&machine).replicas(replicas as u32).compile(&MODES).run_on(&MODES, &[1, 2]);
        let begins = |r: usize, i: usize| i as f32 + 10.0 * (r * r) as f32;
        let group = |r: usize| r / size * size..r / size * size + size;
        let expected = |f: &dyn Fn(usize, usize) -> f32, len: usize| -> Vec<f32> {
            let rows: Vec<Vec<f32>> = (0..replicas).map(|r| (0..len).map(|i| f(r, i)).collect()).collect();
            // A value that is equal in all replicas is there once.
            match rows.iter().all(|row| *row == rows[0]) {
                true => rows[0].clone(),
                false => rows.concat(),
            }
        };
        let context = format!("{replicas} replicas on {ipus} processors in groups of {size}");
        let sum = expected(&|r, i| group(r).map(|s| begins(s, i)).sum(), len);
        let of = |name: &str| outcome.get::<f32>(name);
        assert_eq!(of("sum"), sum, "{context}");
        assert_eq!(of("chunked"), sum, "{context}");
        let all = expected(&|r, i| begins(group(r).start + i / len, i % len), size * len);
        assert_eq!(of("all"), all, "{context}");
        assert_eq!(of("relayed"), all, "{context}");
        let part = expected(&|r, i| group(r).map(|s| begins(s, i) + s as f32).sum(), len);
        assert_eq!(of("part"), part, "{context}");
        let swapped = expected(&|r, j| 2.0 * (begins(group(r).start + j, 2) + (group(r).start + j) as f32), size);
        assert_eq!(of("swapped"), swapped, "{context}");
        assert_eq!(of("sent"), expected(&|r, i| begins(group(r).end - 1, i), len), "{context}");
    }
}
