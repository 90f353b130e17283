"""Trains the network of mnist-pipeline.gir in NumPy (f64), on one batch of 80 images in each step, from the same initial
values on the same images:

    girder run examples/mnist-pipeline train --arg steps=0 --save initial.npz
    python examples/mnist-pipeline/reference.py initial.npz

writes the losses of `--arg steps=10` to expected.npz. The network and its gradient are those of the reference of
mnist-cnn.
"""
import importlib.util
import sys
from pathlib import Path

import numpy as np

here = Path(__file__).parent
BATCH, STEPS, SEED, RATE = 80, 10, 1, 0.2


def reference(name):
    spec = importlib.util.spec_from_file_location("reference", here.parent / name / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(initial):
    cnn = reference("mnist-cnn")
    data, first = np.load(here / "../mnist/mnist.npz"), np.load(initial)
    net = [first[f"net.{layer}.{name}"].astype(float) for layer in ("c1", "c2", "d1", "d2") for name in "wb"]
    rows, losses = cnn.order(SEED, 0, len(data["train_images"])), []
    for t in range(STEPS):
        at = rows[t * BATCH:(t + 1) * BATCH]
        x = data["train_images"][at].reshape(BATCH, 28, 28, 1) / 255.0
        loss, gradient = cnn.step(net, x, data["train_labels"][at].astype(int))
        losses.append(loss)
        for p, g in zip(net, gradient):
            p -= RATE * (1 + np.cos(np.pi * t / STEPS)) / 2 * g
    print(losses)
    np.savez(here / "expected.npz", losses=np.array(losses))


if __name__ == "__main__":
    main(sys.argv[1])
