"""A training step of two convolutional networks for MNIST, in `girder run` and in PyTorch, on two threads each.

    cargo build --release
    python tests/benches/cnn.py [path of girder]

The networks are that of `examples/mnist-cnn`, and a smaller one (5 x 5 x 10, 5 x 5 x 20, 320-256-10), both with AdamW
and batches of 40. For each the script prints the time of a step, its processor time, the greatest memory of the
process, the time from the start of the process to the first loss, and the ratios to those of PyTorch. Windows of both
are interleaved, and a figure is the lower quartile of the windows, because a disturbance can only make a window longer.
Without PyTorch (`pip install torch`) it says so and ends.

Both train the same network from the same initial values, and the losses of the first batch, without dropout, are
compared. PyTorch takes its batches in an order of its own
kind, and runs with the memory format and the form of its optimiser that are fastest on the host. The time of
`girder run` is that between two lines of its output, so that it does not contain the start.
"""
import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/mnist-cnn/mnist-cnn.gir"
BATCH, ROUNDS, WINDOWS = 40, 3, 4

SMALL = """
use nn;
use optim;

let batch = 40;
let steps = 200;
let every = 20;

stream digits: in u8[batch, 28, 28] with (wrap: true, shuffle: 1, ahead: 2);
stream classes: in u8[batch] with (wrap: true, shuffle: 1, ahead: 2);

let net = nn.sequential([
    nn.conv_layer([5, 5], 1, 10, seed: 1),
    fn(x) { nn.max_pool(x, 2) },
    nn.relu,
    nn.conv_layer([5, 5], 10, 20, seed: 2),
    fn(x) { nn.max_pool(x, 2) },
    nn.relu,
    fn(x) { x.reshape([x.shape[0], 320]) },
    nn.dense(320, 256, seed: 3),
    nn.relu,
    nn.dense(256, 10, seed: 4),
]);

program train() {
    repeat step in 0..steps {
        let x = (f32(read(digits)) / 255.0).reshape([batch, 28, 28, 1]);
        let loss = nn.cross_entropy(net.train(x), i32(read(classes)));
        optim.adamw(net, grad(loss, wrt: net));
        if step % every == 0 { print("loss", loss); }
    }
}
"""

# The steps of a window, and the layers with parameters: their number, and the image that a dense layer flattens.
NETWORKS = {
    "3x3x32 3x3x64 9216-128-10": (20, {0: None, 2: None, 7: (12, 12, 64), 10: None}),
    "5x5x10 5x5x20 320-256-10": (100, {0: None, 3: None, 7: (4, 4, 20), 9: None}),
}


def processor_seconds(pid):
    """Returns the time that all threads of a process have run."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def girder(command, program, *arguments):
    """Runs a program. Returns its losses, their times (from the start, and of the processor), and the memory in MB."""
    line = [command, "run", str(program), "train", "--threads", "2", *arguments]
    if program != EXAMPLE:
        data = ROOT / "examples/mnist/mnist.npz"
        line += ["--in", f"digits={data}:train_images", "--in", f"classes={data}:train_labels"]
    start = time.perf_counter()
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    times, losses = [], []
    for text in process.stdout:
        if text.startswith("loss "):
            times.append((time.perf_counter() - start, processor_seconds(process.pid)))
            losses.append(float(text.split()[1]))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status != 0:
        sys.exit(f"`{' '.join(line)}` failed")
    return losses, times, usage.ru_maxrss / 1024


def torch_worker(name, initial):
    """Answers each line on the standard input with the seconds of a window: on the clock, and of the processor."""
    import numpy as np
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.set_num_threads(2)
    data, first = np.load(ROOT / "examples/mnist/mnist.npz"), np.load(initial)
    images = torch.from_numpy(data["train_images"].reshape(-1, 1, 28, 28))
    classes = torch.from_numpy(data["train_labels"].astype(np.int64))
    every, shapes = NETWORKS[name]

    def network():
        if name == next(iter(NETWORKS)):
            layers = [nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                      nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5),
                      nn.Linear(128, 10)]
        else:
            layers = [nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2),
                      nn.ReLU(), nn.Flatten(), nn.Linear(320, 256), nn.ReLU(), nn.Linear(256, 10)]
        for k, image in shapes.items():
            w = torch.from_numpy(first[f"net.layers.{k}.w"])
            if image:
                w = w.reshape(*image, -1).permute(2, 0, 1, 3).reshape(w.shape)
            with torch.no_grad():
                layers[k].weight.copy_(w.permute(3, 2, 0, 1) if w.dim() == 4 else w.T)
                layers[k].bias.zero_()
        return nn.Sequential(*layers)

    def trained(layout, fused):
        """Returns a function that takes steps in one of PyTorch's forms."""
        net = network().to(memory_format=layout)
        optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=fused)
        order = torch.randperm(len(images))

        def steps(count, k=[0]):
            for _ in range(count):
                at = order[k[0] * BATCH % len(images):][:BATCH]
                x = (images[at].float() / 255).contiguous(memory_format=layout)
                loss = F.cross_entropy(net(x), classes[at])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                k[0] += 1
            return loss.item()

        return steps

    def seconds(steps, count):
        start = time.perf_counter(), time.process_time()
        steps(count)
        return time.perf_counter() - start[0], time.process_time() - start[1]

    start = importlib.util.spec_from_file_location("reference", EXAMPLE.parent / "reference.py")
    reference = importlib.util.module_from_spec(start)
    start.loader.exec_module(reference)
    first_batch = reference.order(1, 0, len(images))[:BATCH]
    net = network().eval()
    print(F.cross_entropy(net(images[first_batch].float() / 255), classes[first_batch]).item(), flush=True)
    forms = {(layout, fused): trained(layout, fused)
             for layout in (torch.contiguous_format, torch.channels_last) for fused in (False, True)}
    times = {form: [] for form in forms}
    for _ in range(6):
        for form, steps in forms.items():
            times[form].append(seconds(steps, every // 4)[1])
    best = min(forms, key=lambda form: min(times[form]))
    print(best, flush=True)
    for _ in sys.stdin:
        print(*seconds(forms[best], every), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, flush=True)


def measured(command, name, program, folder):
    """Prints the figures of a network."""
    every = NETWORKS[name][0]
    initial = str(folder / "initial.npz")
    plain = ["--arg", "drop=0.0"] if program == EXAMPLE else []
    girder(command, program, "--arg", "steps=0", "--save", initial)
    losses, _, _ = girder(command, program, "--arg", "steps=1", *plain)
    start = time.perf_counter()
    worker = subprocess.Popen([sys.executable, __file__, "--worker", name, initial], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    loss = float(worker.stdout.readline())
    assert abs(losses[0] - loss) < 1e-4 * loss, f"first losses {losses[0]} and {loss}"
    theirs_started, form = time.perf_counter() - start, worker.stdout.readline().strip()

    def window():
        print(file=worker.stdin, flush=True)
        return [float(x) for x in worker.stdout.readline().split()]

    window()
    theirs, ours, memory, started = [], [], [], []
    for _ in range(ROUNDS):
        steps = WINDOWS * every + 1
        _, times, most = girder(command, program, "--arg", f"steps={steps}", "--arg", f"every={every}")
        ours += [(b[0] - a[0], b[1] - a[1]) for a, b in zip(times, times[1:])]
        memory.append(most)
        started.append(times[0][0])
        theirs += [window() for _ in range(WINDOWS)]
    worker.stdin.close()
    worker.wait()

    def quartile(windows, k):
        return 1e3 * statistics.quantiles([w[k] for w in windows])[0] / every

    print(f"{name}, batch {BATCH} (PyTorch: {form})")
    rows = [("a step", "ms", quartile(ours, 0), quartile(theirs, 0)),
            ("its processor time", "ms", quartile(ours, 1), quartile(theirs, 1)),
            ("memory", "MB", min(memory), theirs[-1][2]),
            ("start to the first loss", "ms", 1e3 * min(started), 1e3 * theirs_started)]
    for what, unit, us, them in rows:
        print(f"  {what:26}{us:10.1f} {unit}{them:10.1f} {unit} in PyTorch{us / them:8.2f}")


def main(command):
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed: nothing is measured")
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        small = folder / "small.gir"
        small.write_text(SMALL)
        for name, program in zip(NETWORKS, (EXAMPLE, small)):
            measured(command, name, program, folder)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        torch_worker(*sys.argv[2:4])
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "target/release/girder"))
