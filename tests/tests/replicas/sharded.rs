//! Steps of an optimiser of which each replica takes a part.

use girder_engine::Mode;
use girder_tests::Program;

/// A step of which each replica takes a part has the bits of the step by each replica.
#[test]
fn sharded_steps_have_the_same_bits() {
    let text = |step: &str| {
        format!(
            "use collectives; use nn; use optim; use random;
            let net = [nn.dense(5, 7, seed: 1), nn.dense(7, 3, seed: 2)];
            var x: f32[4, 5];
            program main() {{
                x <- random.normal([4, 5], seed: 2) * (1.0 + f32(replica_index));
                repeat 3 {{
                    let y = net[1].apply(tanh(net[0].apply(x)));
                    let g = grad(mean(y * y), wrt: net);
                    {step}
                }}
            }}"
        )
    };
    for optimiser in ["adamw", "sgd", "rmsprop", "adagrad"] {
        for replicas in [1, 2, 4] {
            let run = |step: &str| {
                let step = step.replace("OPTIMISER", optimiser);
                let outcome = Program::text(text(&step)).target("small-4").replicas(replicas).run_everywhere();
                ["net.0.w", "net.0.b", "net.1.w", "net.1.b"].map(|v| outcome.get::<f32>(v))
            };
            let whole = run("optim.OPTIMISER(net, collectives.all_reduce(g, op: \"mean\"), rate: 0.01);");
            let step = "optim.sharded(net, g, fn(p, d) { optim.OPTIMISER(p, d, rate: 0.01); }, op: \"mean\");";
            assert_eq!(whole, run(step), "{optimiser} in {replicas} replicas");
            if replicas == 4 && optimiser == "adamw" {
                let clipped = "let d = optim.clip_by_norm(collectives.all_reduce(g, op: \"mean\"), 0.01);";
                let whole = run(&format!("{clipped} optim.OPTIMISER(net, d, rate: 0.01);"));
                let step = "optim.sharded(net, d, fn(p, d) { optim.OPTIMISER(p, d, rate: 0.01); }, op: \"equal\");";
                assert_eq!(whole, run(&format!("{clipped} {step}")), "{optimiser}, clipped, in {replicas} replicas");
            }
        }
    }
    let memory = |step: &str| {
        let program = Program::text(text(step)).target("small-4").replicas(4).compile(&[Mode::Fast]);
        let slots = program.graph().vars.values().filter(|v| v.name.contains("adamw.m"));
        slots.map(|v| v.len()).sum::<u64>()
    };
    // 66 parameters are four parts of 17 elements.
    assert_eq!(memory("optim.adamw(net, collectives.all_reduce(g));"), 66);
    assert_eq!(memory("optim.sharded(net, g, fn(p, d) { optim.adamw(p, d); });"), 17);
}
