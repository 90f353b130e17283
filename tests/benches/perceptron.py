"""A training step of the MNIST example with 512 hidden units, in `girder run` and in JAX, on two threads each.

    cargo build --release
    python tests/benches/perceptron.py [path of girder]

prints the time of a step of each, and the ratio of 0.9 of JAX's time to ours, which should be at least 1. Windows of
both are interleaved, and a figure is the lower quartile of the windows of 200 steps, because a disturbance can only
make a window longer. Without JAX (`pip install jax`) it says so and ends.

Both train the same network from the same initial values on the same batches, and the losses are compared. JAX runs one
jitted function for each step, with donated buffers. The time of `girder run` is that between two lines of its output,
so that it does not contain the start.
"""
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/mnist"
BAR, ROUNDS, WINDOWS, EVERY, UNITS = 0.9, 7, 4, 200, 512


def girder(command, *arguments):
    """Runs the example. Returns the losses that it prints and the seconds between them."""
    line = [command, "run", str(EXAMPLE), "--threads", "2", "--arg", f"units={UNITS}", *arguments]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    times, losses = [], []
    for text in process.stdout:
        if text.startswith("loss "):
            times.append(time.perf_counter())
            losses.append(float(text.split()[1]))
    if process.wait() != 0:
        sys.exit(f"`{' '.join(line)}` failed")
    return losses, [b - a for a, b in zip(times, times[1:])]


def jax_worker(initial):
    """Answers each line on the standard input with the seconds of a window and the loss of its first step."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    data, first = np.load(EXAMPLE / "mnist.npz"), np.load(initial)
    images, classes = data["train_images"].reshape(60000, 784), data["train_labels"]
    steps = WINDOWS * ROUNDS * EVERY

    def loss_of(net, x, c):
        h = jax.nn.relu(x @ net[0] + net[1])
        rows = jax.nn.log_softmax(h @ net[2] + net[3])
        return -jnp.take_along_axis(rows, c[:, None], axis=1).mean()

    def step(net, slots, x, c, k):
        x, c = x.astype(jnp.float32) / 255, c.astype(jnp.int32)
        loss, gradients = jax.value_and_grad(loss_of)(net, x, c)
        rate = 0.05 * (1 + jnp.cos(jnp.pi * k / steps))
        slots = [0.9 * m + g for m, g in zip(slots, gradients)]
        net = [p - rate * (g + 0.9 * m) for p, g, m in zip(net, gradients, slots)]
        return net, slots, loss

    train = jax.jit(step, donate_argnums=(0, 1))
    net = [jnp.asarray(first[f"layers.{k}.{name}"]) for k in range(2) for name in "wb"]
    slots, k = [jnp.zeros_like(p) for p in net], 0
    for _ in sys.stdin:
        start, losses = time.perf_counter(), []
        for _ in range(EVERY):
            at = k * 64 % (len(images) - 64)
            net, slots, loss = train(net, slots, images[at:at + 64], classes[at:at + 64], k)
            losses.append(loss)
            k += 1
        losses[-1].block_until_ready()
        print(time.perf_counter() - start, float(losses[0]), flush=True)


def main(command):
    if importlib.util.find_spec("jax") is None:
        print("JAX is not installed: nothing is measured")
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    with tempfile.TemporaryDirectory() as folder:
        initial = str(Path(folder) / "initial.npz")
        girder(command, "--arg", "steps=0", "--save", initial)
        worker = subprocess.Popen([sys.executable, __file__, "--worker", initial], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        def window():
            print(file=worker.stdin, flush=True)
            return [float(x) for x in worker.stdout.readline().split()]

        # Compiles, and has the loss of the first step.
        theirs, ours = [window()], []
        for _ in range(ROUNDS):
            steps = WINDOWS * EVERY + 1
            losses, seconds = girder(command, "--arg", f"steps={steps}", "--arg", f"every={EVERY}")
            ours += seconds
            theirs += [window() for _ in range(WINDOWS)]
        worker.stdin.close()
        worker.wait()
    assert abs(losses[0] - theirs[0][1]) < 1e-4 * losses[0], f"first losses {losses[0]} and {theirs[0][1]}"
    us = [1e6 * statistics.quantiles(times)[0] / EVERY for times in (ours, [t for t, _ in theirs[1:]])]
    ratio = BAR * us[1] / us[0]
    print(f"{'':32}{'a step':>13}{'ratio':>10}")
    print(f"{f'perceptron 64 x 784-{UNITS}-10':32}{us[0]:10.1f} us{ratio:10.2f}  "
          f"({us[0] / us[1]:.2f} of JAX, which takes {us[1]:.1f})")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        jax_worker(sys.argv[2])
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "target/release/girder"))
