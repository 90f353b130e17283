"""A convolution with its derivatives by input and kernel, in `girder run` and in PyTorch, on two threads each.

    cargo build --release
    python tests/benches/convolutions.py [path of girder]

Each line is a shape: images, their sides, and the channels, which a 3 x 3 kernel with padding keeps. It prints the
milliseconds of a step in both and their ratio, as medians of interleaved rounds. The time of `girder run` is that of a
long run less that of a short one, so that it does not contain the start. PyTorch has its tensors in the memory format
`channels_last`, which is faster than the other for each of these shapes. Without PyTorch (`pip install torch`) the
script says so and ends.
"""
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHAPES = [(64, 7, 64), (40, 14, 128), (40, 24, 32), (16, 28, 64), (4, 56, 64)]
ROUNDS, SECONDS, FEW = 3, 2.0, 10

PROGRAM = """
use nn;
use random;

let (images, side, channels) = (1, 1, 1);
let steps = 1;
let conv = nn.conv_layer([3, 3], channels, channels, pad: 1, bias: false, seed: 1);
var x: f32[images, side, side, channels];
var dy: f32[images, side, side, channels];

program main() {
    x <- random.normal(x.shape, seed: 1);
    dy <- random.normal(x.shape, seed: 2);
    repeat steps {
        let y = conv.apply(x);
        let slopes = grad(y, wrt: (x: x, w: conv.w), dy: dy);
        // Each step depends on the one before it.
        x[0, 0, 0, 0] <- 0.001 * (y[0, 0, 0, 0] + slopes.x[0, 0, 0, 0] + slopes.w[0, 0, 0, 0]);
    }
    print("x", x[0, 0, 0, 0]);
}
"""


def girder(command, program, steps):
    """Returns the seconds of a run."""
    start = time.perf_counter()
    line = [command, "run", str(program), "--threads", "2", "--allow-over-memory", "--arg", f"steps={steps}"]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def torch_step(torch, shape):
    """Returns a function that takes a step."""
    images, side, channels = shape
    last = torch.channels_last
    x = torch.randn(images, channels, side, side).to(memory_format=last).requires_grad_()
    w = (0.05 * torch.randn(channels, channels, 3, 3)).to(memory_format=last).requires_grad_()
    dy = torch.randn(images, channels, side, side).to(memory_format=last)

    def step():
        x.grad = w.grad = None
        torch.nn.functional.conv2d(x, w, padding=1).backward(dy)

    return step


def seconds(step, count):
    start = time.perf_counter()
    for _ in range(count):
        step()
    return time.perf_counter() - start


def main():
    try:
        import torch
    except ImportError:
        sys.exit("PyTorch is not there: `pip install torch`")
    torch.set_num_threads(2)
    command = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "target/release/girder")
    print(f"{'images':>6} {'side':>4} {'channels':>8} {'girder':>9} {'PyTorch':>9} {'ratio':>6}")
    for shape in SHAPES:
        images, side, channels = shape
        step = torch_step(torch, shape)
        seconds(step, FEW)
        steps = FEW + int(SECONDS * FEW / seconds(step, FEW))
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "convolution.gir"
            sizes = f"({images}, {side}, {channels})"
            program.write_text(PROGRAM.replace("= (1, 1, 1)", f"= {sizes}"))
            rounds = [(girder(command, program, steps + FEW) - girder(command, program, FEW), seconds(step, steps))
                      for _ in range(ROUNDS)]
        ours, theirs = (1e3 * statistics.median(times) / steps for times in zip(*rounds))
        print(f"{images:6} {side:4} {channels:8} {ours:6.2f} ms {theirs:6.2f} ms {ours / theirs:6.2f}", flush=True)


main()
