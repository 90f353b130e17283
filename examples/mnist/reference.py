"""Trains the same perceptron in NumPy (f64) from the same initial values:

    girder run examples/mnist train --arg steps=0 --save initial.npz
    python examples/mnist/reference.py initial.npz

writes the losses of `--arg steps=20` to expected.npz, and those of 20 steps of plain gradient descent, rate 0.1.
Then it trains for three epochs and prints the test accuracy.
"""
import sys
from pathlib import Path

import numpy as np

here = Path(__file__).parent
data = np.load(here / "mnist.npz")
images, classes = data["train_images"].reshape(60000, 784) / 255.0, data["train_labels"].astype(int)
tests = data["test_images"].reshape(10000, 784) / 255.0
initial = np.load(sys.argv[1])
batch = 64


def network(net, x):
    z = x @ net[0] + net[1]
    return z, np.maximum(z, 0) @ net[2] + net[3]


def train(steps, rate_of, momentum=0.9):
    """Returns the parameters, and the loss of each step before its update."""
    net = [initial[f"layers.{k}.{name}"].astype(float) for k in range(2) for name in "wb"]
    slots = [np.zeros_like(p) for p in net]
    losses = []
    for step in range(steps):
        at = np.arange(step * batch, (step + 1) * batch) % len(images)
        x, c = images[at], classes[at]
        z, y = network(net, x)
        e = np.exp(y - y.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        losses.append(-np.log(p[np.arange(batch), c]).mean())
        d = (p - np.eye(10)[c]) / batch
        back = (d @ net[2].T) * (z > 0)
        gradients = [x.T @ back, back.sum(axis=0), np.maximum(z, 0).T @ d, d.sum(axis=0)]
        rate = rate_of(step / steps)
        for p, m, g in zip(net, slots, gradients):
            m[:] = momentum * m + g
            p -= rate * (g + momentum * m)
    return net, np.array(losses)


def cosine(done):
    return 0.05 * (1 + np.cos(np.pi * done))


descent = train(20, lambda done: 0.1, momentum=0)[1]
np.savez(here / "expected.npz", losses=train(20, cosine)[1], descent=descent)
net, losses = train(-(-3 * 60000 // batch), cosine)
for loss in losses[::200]:
    print("loss", loss)
print("test accuracy", (np.argmax(network(net, tests)[1], axis=1) == data["test_labels"]).mean())
